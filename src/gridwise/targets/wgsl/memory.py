"""How an array lies in a binding (or in shared or local memory), and the text of each access to it.

Plain    array<T>: elements of 4 or 8 bytes.
Atomic   array<atomic<T>>: the same where any access is atomic; f32 as the bits in a u32.
Grouped  array<vec2<T>> or array<vec4<T>>: 16 bytes at a time for the vectorised kernels.
Words    array<u32> by byte address: elements below 4 bytes, structs, and bindings that several arrays share.
         Stores below a word are two atomics, because the other bytes of the word are other threads'.
"""

from __future__ import annotations

from gridwise.ir.types import BOOL, F64, ArrayType, Scalar, Struct
from gridwise.lang.records import dataclass

from .numeric import Numeric
from .text import Expr, atom, call, held, infix, is_wide, u32


@dataclass
class Place:
    """A computed address: the element's number, or (``Words``) the byte."""

    text: Expr
    type: Scalar  # of the member accessed


class Plain:
    """``array<T>`` in a binding, in shared or in local memory."""

    repeats = False  # whether a store writes its value's text more than once

    def __init__(self, name: str, t: Scalar, numeric: Numeric):
        self.name, self.t, self.numeric = name, t, numeric

    @property
    def element(self) -> str:
        return held(self.t)

    def at(self, p: Place) -> str:
        return f"{self.name}[{p.text}]"

    def load(self, p: Place) -> Expr:
        return atom(self.at(p))

    def store(self, p: Place, value: Expr) -> list[str]:
        return [f"{self.at(p)} = {value};"]

    def atomic_at(self, p: Place) -> tuple[str, str]:
        """(reference, WGSL type of the atomic)."""
        raise AssertionError("atomic access to a plain array")


def to_word(x: Expr, t: Scalar, word: str, n: Numeric) -> Expr:
    """A held value of ``t`` as the WGSL type that an atomic of it has."""
    if t.size == 8:
        pair = n.call("gw_bits_f64", x) if t == F64 else x
        return n.call("gw_i64" if word == "i64" else "gw_u64", pair)
    return x if held(t) == word else call(f"bitcast<{word}>", x)


def from_word(x: Expr, t: Scalar, word: str, n: Numeric) -> Expr:
    """The other way."""
    if t.size == 8:
        pair = n.call("gw_pair_i64" if word == "i64" else "gw_pair_u64", x)
        return n.call("gw_f64", pair) if t == F64 else pair
    return x if held(t) == word else call(f"bitcast<{held(t)}>", x)


class Atomic(Plain):
    """``array<atomic<T>>``, T i32 or u32 (i64 or u64 where the device has such atomics)."""

    @property
    def word(self) -> str:
        return f"{'i' if self.t.is_int and self.t.signed else 'u'}{8 * self.t.size}"

    @property
    def element(self) -> str:
        return f"atomic<{self.word}>"

    def load(self, p: Place) -> Expr:
        return from_word(call("atomicLoad", f"&{self.at(p)}"), self.t, self.word, self.numeric)

    def store(self, p: Place, value: Expr) -> list[str]:
        return [f"atomicStore(&{self.at(p)}, {to_word(value, self.t, self.word, self.numeric)});"]

    def atomic_at(self, p: Place) -> tuple[str, str]:
        return self.at(p), self.word


class Grouped(Plain):
    """``array<vecN<T>>``: N elements together, or one through a component."""

    repeats = True

    def __init__(self, name: str, t: Scalar, numeric: Numeric, lanes: int):
        super().__init__(name, t, numeric)
        self.lanes = lanes

    @property
    def element(self) -> str:
        return "vec4<u32>" if is_wide(self.t) else f"vec{self.lanes}<{held(self.t)}>"

    def component(self, p: Place, factor: int = 1, plus: int = 0) -> str:
        shift = self.lanes.bit_length() - 1
        lane = infix("&", p.text, atom(str(self.lanes - 1)))
        if factor > 1:
            lane = infix("+", infix("*", lane, atom(str(factor))), atom(str(plus)))
        return f"{self.name}[{infix('>>', p.text, u32(shift))}][{lane}]"

    def load(self, p: Place) -> Expr:
        if is_wide(self.t):
            return call("vec2<u32>", self.component(p, 2), self.component(p, 2, 1))
        return atom(self.component(p))

    def store(self, p: Place, value: Expr) -> list[str]:
        if is_wide(self.t):
            return [f"{self.component(p, 2, n)} = {value.operand}.{'xy'[n]};" for n in range(2)]
        return [f"{self.component(p)} = {value};"]

    def vload(self, group: Expr) -> str:
        return f"{self.name}[{group}]"

    def lane(self, vector: str, n: int) -> Expr:
        if is_wide(self.t):
            return atom(f"{vector}.{('xy', 'zw')[n]}")
        return atom(f"{vector}.{'xyzw'[n]}")

    def vstore(self, group: Expr, values: list[Expr]) -> list[str]:
        return [f"{self.name}[{group}] = {call(self.element, *values)};"]


class Words(Plain):
    """Bytes in ``array<u32>``; ``atomic``: declared so that stores below a word spare their neighbours.

    ``vector`` > 1 declares ``array<vecN<u32>>`` for vectorised kernels, where a thread owns whole groups.
    """

    repeats = True

    def __init__(self, name: str, t: Scalar | Struct, numeric: Numeric, atomic: bool, vector: int = 1, lanes: int = 1):
        self.name, self.numeric, self.is_atomic, self.vector, self.lanes = name, numeric, atomic, vector, lanes
        self.elem = t

    @property
    def element(self) -> str:
        if self.vector > 1:
            return f"vec{self.vector}<u32>"
        return "atomic<u32>" if self.is_atomic else "u32"

    def word_at(self, word: Expr) -> str:
        if self.vector > 1:
            shift = self.vector.bit_length() - 1
            return f"{self.name}[{infix('>>', word, u32(shift))}][{infix('&', word, u32(self.vector - 1))}]"
        return f"{self.name}[{word}]"

    def word(self, p: Place, plus: int = 0) -> str:
        word = infix(">>", p.text, u32(2))
        return self.word_at(infix("+", word, u32(plus)) if plus else word)

    def read(self, reference: str) -> Expr:
        return call("atomicLoad", f"&{reference}") if self.is_atomic else atom(reference)

    def shift(self, p: Place) -> Expr:
        """Bits from the start of the word to the member."""
        return infix("<<", infix("&", p.text, u32(3)), u32(3))

    def load(self, p: Place) -> Expr:
        t, n = p.type, self.numeric
        low = self.read(self.word(p))
        if t.size == 8:
            pair = call("vec2<u32>", low, self.read(self.word(p, 1)))
            return n.call("gw_f64", pair) if t == F64 else pair
        if t.size == 4:
            return n.from_bits(low, t)
        bits = infix("&", infix(">>", low, self.shift(p)), u32((1 << (8 * t.size)) - 1))
        return n.from_bits(bits, t)

    def write(self, reference: str, value: Expr) -> str:
        return f"atomicStore(&{reference}, {value});" if self.is_atomic else f"{reference} = {value};"

    def store(self, p: Place, value: Expr) -> list[str]:
        t, n = p.type, self.numeric
        if t.size == 8:
            pair = n.call("gw_bits_f64", value) if t == F64 else value
            return [self.write(self.word(p, k), atom(f"{pair.operand}.{'xy'[k]}")) for k in range(2)]
        bits = n.to_bits(value, t)
        if t.size == 4:
            return [self.write(self.word(p), bits)]
        ones = infix("<<", u32((1 << (8 * t.size)) - 1), self.shift(p))
        moved = infix("<<", bits, self.shift(p))
        ref = self.word(p)
        if self.is_atomic:
            return [f"atomicAnd(&{ref}, ~{ones.operand});", f"atomicOr(&{ref}, {moved});"]
        return [f"{ref} = ({ref} & ~{ones.operand}) | {moved.operand};"]

    def atomic_at(self, p: Place) -> tuple[str, str]:
        return self.word(p), "u32"

    # -- groups of a vectorised kernel -----------------------------------------------------------------
    def vload(self, group: Expr) -> str:
        return f"{self.name}[{group}]"

    def lane(self, vector: str, n: int) -> Expr:
        assert isinstance(self.elem, Scalar)
        byte = n * self.elem.size
        word = f"{vector}.{'xyzw'[byte // 4]}" if self.vector > 1 else vector
        shift, mask = 8 * (byte % 4), (1 << (8 * self.elem.size)) - 1
        bits = atom(word) if not shift else infix(">>", atom(word), u32(shift))
        return self.numeric.from_bits(infix("&", bits, u32(mask)), self.elem)

    def vstore(self, group: Expr, values: list[Expr]) -> list[str]:
        assert isinstance(self.elem, Scalar)
        size, words = self.elem.size, []
        for w in range(len(values) * size // 4):
            parts = []
            for k in range(4 // size):
                bits = self.numeric.to_bits(values[w * 4 // size + k], self.elem)
                parts.append(infix("<<", bits, u32(8 * size * k)).operand if k else bits.operand)
            words.append(" | ".join(parts))
        whole = words[0] if self.vector == 1 else call(self.element, *words)
        return [f"{self.name}[{group}] = {whole};"]


def binding_memory(
    name: str, t: ArrayType, numeric: Numeric, *, atomic: bool, shared_binding: bool, partial: bool, lanes: int
) -> Plain:
    """The memory of a global array. ``partial``: stores below a word happen; ``lanes``: of its vloads, or 1."""
    elem = t.elem
    if shared_binding:
        return Words(name, elem, numeric, atomic or partial)
    if isinstance(elem, Scalar) and elem.size >= 4 and elem != BOOL:
        if atomic:
            return Atomic(name, elem, numeric)
        return Grouped(name, elem, numeric, lanes) if lanes > 1 else Plain(name, elem, numeric)
    if lanes > 1 and isinstance(elem, Scalar):
        return Words(name, elem, numeric, False, max(1, lanes * elem.size // 4), lanes)
    return Words(name, elem, numeric, atomic or partial)


def block_memory(name: str, t: ArrayType, numeric: Numeric, atomic: bool, partial: bool) -> Plain:
    """The memory of a shared or local array: an element a variable, structs as words."""
    if isinstance(t.elem, Struct):
        return Words(name, t.elem, numeric, t.space == "shared" and (atomic or partial))
    return Atomic(name, t.elem, numeric) if atomic else Plain(name, t.elem, numeric)
