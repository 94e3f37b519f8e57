"""Symbolic values: what a kernel computes, as hash-consed terms over what it is given.

A term has the type and meaning of the IR operation it is named after. Three codes are added: ``leaf`` (an input,
or something unknown), and ``xadd`` and ``xmul``, sums and products that are known not to wrap, such as the
index of a ``for`` loop. Equal terms are one object, so equality is identity.

A leaf's scope says who shares it: ``launch`` (every thread), ``block`` (the threads of a block, at the same point of
the same iteration), ``thread`` (nobody).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from gridwise.ir.types import BOOL, Scalar
from gridwise.lang.records import dataclass

LAUNCH, BLOCK, THREAD = 0, 1, 2
MAX_SIZE = 600  # a term larger than this is replaced by an unknown


@dataclass(frozen=True, slots=True)
class Leaf:
    """An input or an unknown. ``kind``: tid bid gdim dim stride param iter data havoc. Bounds are inclusive."""

    kind: str
    scope: int
    name: str
    lo: int
    hi: int
    key: Any = None  # axis, or (array, axis), or a number that makes it unlike every other


class Term:
    """A symbolic value; made only by ``Terms``."""

    __slots__ = ("args", "code", "data", "newest", "scope", "serial", "size", "type")

    def __init__(self, code: str, type: Scalar, args: tuple[Term, ...], data: Any, serial: int):
        self.code, self.type, self.args, self.data, self.serial = code, type, args, data, serial
        self.size: int = 1 + sum(a.size for a in args)
        self.scope: int = data.scope if code == "leaf" else max((a.scope for a in args), default=LAUNCH)
        self.newest: int = serial if code == "leaf" else max((a.newest for a in args), default=-1)

    def __repr__(self) -> str:
        return show(self)


_NEGATED = {"eq": "ne", "ne": "eq", "lt": "ge", "ge": "lt", "gt": "le", "le": "gt"}


def _shift_count(count: int, bits: int) -> int:
    return count & ((1 << bits) - 1)


def _shl(t: Scalar, a: int, b: int) -> int:
    n = _shift_count(b, t.bits)
    return t.wrap(a << n) if n < t.bits else 0


def _shr(t: Scalar, a: int, b: int) -> int:
    n = _shift_count(b, t.bits)
    return a >> min(n, t.bits) if t.signed or n < t.bits else 0


def _unsigned(t: Scalar, a: int) -> int:
    return a & ((1 << t.bits) - 1)


# The integer meaning of each operation, on Python ints already in range of the type.
EVAL: dict[str, Callable[..., Any]] = {
    "add": lambda t, a, b: t.wrap(a + b),
    "sub": lambda t, a, b: t.wrap(a - b),
    "mul": lambda t, a, b: t.wrap(a * b),
    "xadd": lambda t, a, b: a + b,
    "xmul": lambda t, a, b: a * b,
    "floordiv": lambda t, a, b: t.wrap(a // b) if b else 0,
    "mod": lambda t, a, b: a % b if b else 0,
    "neg": lambda t, a: t.wrap(-a),
    "abs": lambda t, a: t.wrap(abs(a)),
    "min": lambda t, a, b: min(a, b),
    "max": lambda t, a, b: max(a, b),
    "and": lambda t, a, b: (a and b) if t == BOOL else t.wrap(a & b),
    "or": lambda t, a, b: (a or b) if t == BOOL else t.wrap(a | b),
    "xor": lambda t, a, b: (a != b) if t == BOOL else t.wrap(a ^ b),
    "not": lambda t, a: (not a) if t == BOOL else t.wrap(~a),
    "shl": _shl,
    "shr": _shr,
    "popcount": lambda t, a: _unsigned(t, a).bit_count(),
    "clz": lambda t, a: t.bits - _unsigned(t, a).bit_length(),
    "ctz": lambda t, a: (_unsigned(t, a) & -_unsigned(t, a)).bit_length() - 1 if a else t.bits,
    "eq": lambda t, a, b: a == b,
    "ne": lambda t, a, b: a != b,
    "lt": lambda t, a, b: a < b,
    "le": lambda t, a, b: a <= b,
    "gt": lambda t, a, b: a > b,
    "ge": lambda t, a, b: a >= b,
    "select": lambda t, c, a, b: a if c else b,
    "cast": lambda t, a: bool(a) if t == BOOL else t.wrap(int(a)),
}


def integral(t: Scalar) -> bool:
    """An integer or a bool: what terms are evaluated and reasoned about."""
    return t.is_int or t == BOOL


class Terms:
    """Makes terms of one kernel, simplifying as it goes."""

    def __init__(self) -> None:
        self.table: dict[Any, Term] = {}
        self.count = 0
        self.true = self.const(True, BOOL)
        self.false = self.const(False, BOOL)

    def _term(self, code: str, type: Scalar, args: tuple[Term, ...], data: Any) -> Term:
        key = (code, type, args, data) if code != "const" else (code, type, data.__class__, data)
        known = self.table.get(key)
        if known is None:
            self.count += 1
            known = self.table[key] = Term(code, type, args, data, self.count)
        return known

    def const(self, value: Any, type: Scalar) -> Term:
        return self._term("const", type, (), value)

    def leaf(self, kind: str, type: Scalar, scope: int, name: str, lo: int | None = None, hi: int | None = None,
             key: Any = None) -> Term:
        """An input, the same one for the same arguments."""
        low, high = (0, 0) if type.is_float else (type.min, type.max)
        return self._term("leaf", type, (), Leaf(kind, scope, name, low if lo is None else lo,
                                                 high if hi is None else hi, key))

    def fresh(self, kind: str, type: Scalar, scope: int, name: str, lo: int | None = None,
              hi: int | None = None) -> Term:
        """An unknown unlike any other."""
        return self.leaf(kind, type, scope, name, lo, hi, key=("fresh", self.count))

    def make(self, code: str, type: Scalar, *args: Term, data: Any = None) -> Term:
        """The term of one IR operation."""
        if args and integral(type) and code in EVAL and all(a.code == "const" and integral(a.type) for a in args):
            return self.const(EVAL[code](args[0].type if type == BOOL and code != "cast" else type,
                                         *(a.data for a in args)), type)
        simple = self._simplify(code, type, args)
        if simple is not None:
            return simple
        if code == "mod" and type.is_int and args[1].code == "const" and args[1].data > 0:
            data = self.make("floordiv", type, *args)  # the quotient, for x % k == x - k * (x // k)
        term = self._term(code, type, args, data)
        if term.size > MAX_SIZE:
            return self.leaf("havoc", type, term.scope, "a long expression", key=("long", term.serial))
        return term

    def _simplify(self, code: str, type: Scalar, args: tuple[Term, ...]) -> Term | None:
        if code in ("add", "xadd", "or", "xor", "mul", "xmul", "and", "min", "max") and args[0].code == "const":
            args = (args[1], args[0])  # constants to the right
            if code in ("add", "xadd", "mul", "xmul") and args[1].data not in (0, 1):
                return self._term(code, type, args, None)
        a = args[0] if args else None
        b = args[1] if len(args) > 1 else None
        k = b.data if b is not None and b.code == "const" else None
        if a is None:
            return None
        if type == BOOL:
            return self._simplify_bool(code, args, a, b)
        if type.is_float:
            return None
        if code in ("add", "xadd", "sub", "or", "xor", "shl", "shr") and k == 0 and a.type == type:
            return a
        if code in ("mul", "xmul"):
            return self.const(0, type) if k == 0 else a if k == 1 and a.type == type else None
        if code == "floordiv" and k == 1:
            return a
        if code == "mod" and k == 1:
            return self.const(0, type)
        if code in ("sub", "xor") and a is b:
            return self.const(0, type)
        if code in ("min", "max", "and", "or") and a is b:
            return a
        if code == "select":
            if a.code == "const":
                return args[1] if a.data else args[2]
            return args[1] if args[1] is args[2] else None
        return a if code == "cast" and a.type == type else None

    def _simplify_bool(self, code: str, args: tuple[Term, ...], a: Term, b: Term | None) -> Term | None:
        if code == "not":
            return self.negate(a, shallow=True)
        if code in ("and", "or"):
            assert b is not None
            absorbing = self.false if code == "and" else self.true
            neutral = self.true if code == "and" else self.false
            if a is absorbing or b is absorbing:
                return absorbing
            if a is neutral or a is b:
                return b
            if b is neutral:
                return a
            if a.code not in ("and", "or") and self.negate(a) is b:
                return absorbing
        if code == "select":
            x, y = args[1], args[2]
            if a.code == "const":
                return x if a.data else y
            if x is y:
                return x
            if y is self.false or y is a:
                return self.both(a, x)
            if x is self.true or x is a:
                return self.either(a, y)
            if x is self.false:
                return self.both(self.negate(a), y)
            if y is self.true:
                return self.either(self.negate(a), x)
        if a is b and integral(a.type) and code in _NEGATED:
            return self.const(code in ("eq", "le", "ge"), BOOL)
        if code == "ne" and a.type == BOOL:
            return self.make("xor", BOOL, *args)
        return a if code == "cast" and a.type == BOOL else None

    def negate(self, a: Term, shallow: bool = False) -> Term:
        """not a, pushed into comparisons of integers."""
        if a.code == "const":
            return self.const(not a.data, BOOL)
        if a.code == "not":
            return a.args[0]
        if a.code in _NEGATED and integral(a.args[0].type):
            return self._term(_NEGATED[a.code], BOOL, a.args, None)
        if a.code in ("and", "or") and not shallow and a.size < 40:
            return self.make("or" if a.code == "and" else "and", BOOL, *(self.negate(x) for x in a.args))
        return self._term("not", BOOL, (a,), None)

    def both(self, a: Term, b: Term) -> Term:
        return self.make("and", BOOL, a, b)

    def either(self, a: Term, b: Term) -> Term:
        return self.make("or", BOOL, a, b)

    def all(self, terms: tuple[Term, ...] | list[Term]) -> Term:
        out = self.true
        for t in terms:
            out = self.both(out, t)
        return out


def evaluate(term: Term, given: dict[Term, Any]) -> Any:
    """The value of a term where its leaves have the values ``given``; None if it depends on anything else."""
    if term.code == "const":
        return term.data
    if term in given:
        return given[term]
    if term.code not in EVAL or not integral(term.type):
        return None
    args = [evaluate(a, given) for a in term.args]
    if any(a is None for a in args) or not all(integral(a.type) for a in term.args):
        return None
    of = term.args[0].type if term.type == BOOL and term.code != "cast" else term.type
    return EVAL[term.code](of, *args)


def subterms(term: Term) -> Iterator[Term]:
    """A term and everything that it is made of, each once."""
    stack, seen = [term], set()
    while stack:
        t = stack.pop()
        if t not in seen:
            seen.add(t)
            yield t
            stack.extend(t.args)


def leaves(term: Term) -> set[Term]:
    """The leaves, and the loads from read-only arrays, that a term depends on."""
    return {t for t in subterms(term) if t.code in ("leaf", "load")}


_SIGNS = {"add": "+", "xadd": "+", "sub": "-", "mul": "*", "xmul": "*", "floordiv": "//", "mod": "%", "and": "&",
          "or": "|", "xor": "^", "shl": "<<", "shr": ">>", "eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">",
          "ge": ">="}


def show(term: Term) -> str:
    """A term as Python would write it."""
    if term.code == "const":
        return str(term.data)
    if term.code == "leaf":
        return str(term.data.name)
    parts = [show(a) if not a.args or a.code not in _SIGNS else f"({show(a)})" for a in term.args]
    if term.code in _SIGNS:
        return f"{parts[0]} {_SIGNS[term.code]} {parts[1]}"
    if term.code == "select":
        return f"({parts[1]} if {parts[0]} else {parts[2]})"
    return f"{term.code}({', '.join(parts)})"
