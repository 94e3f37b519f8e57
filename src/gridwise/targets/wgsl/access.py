"""The arrays of one shader: what is declared, how long each is, and the address of each access."""

from __future__ import annotations

import math

from gridwise.ir import Kernel, Op, Value
from gridwise.ir.types import I64, ArrayType, Scalar
from gridwise.lang.errors import UnsupportedError

from .layout import Layout, Member, Variant
from .memory import Place, Plain, Words, binding_memory, block_memory
from .numeric import Numeric
from .text import Expr, Names, atom, call, infix, is_wide, u32


def _member(op: Op) -> Scalar | None:
    """The scalar that a memory operation reads or writes."""
    field = op.attrs.get("field", ())
    t = field[-1].type if field else getattr(op.operands[0].type, "elem", None)
    return t if isinstance(t, Scalar) else None


class Access:
    """Built before the body is written; asked for each access while it is."""

    def __init__(
        self, kernel: Kernel, params: list[str], layout: Layout, variant: Variant, numeric: Numeric, names: Names
    ):
        self.kernel, self.variant, self.numeric, self.layout = kernel, variant, numeric, layout
        self.arrays = [n for n, p in enumerate(kernel.params) if p.is_array]
        self.params = params
        self.memory: dict[Value, Plain] = {}
        self.members: dict[tuple[Value, str, int], Member] = {}
        for slot, member in zip(kernel.slots(), layout.members, strict=True):
            self.members[kernel.params[slot.param].value, slot.kind, slot.axis] = member
        self.atomics = {op.operands[0] for op in kernel.walk() if op.code == "atomic"}
        stores = [op for op in kernel.walk() if op.code == "store"]
        self.partial = {op.operands[0] for op in stores if (t := _member(op)) is not None and t.size < 4}
        self.grouped = {op.operands[0] for op in kernel.walk() if op.code in ("vload", "vstore")}
        changed = self.atomics | {op.operands[0] for op in kernel.walk() if op.code in ("store", "vstore")}
        self.writable = {kernel.params[n].value for n in self.arrays} & changed
        read = {op.operands[0] for op in kernel.walk() if op.code in ("load", "vload", "atomic")}
        self.written = bool(self.writable & read)  # whether a barrier must order global memory too
        self.globals()
        self.blocks(names)

    # -- what is declared --------------------------------------------------------------------------------
    def globals(self) -> None:
        leaders = self.variant.binding
        self.groups: dict[int, list[int]] = {}
        for n in range(len(self.arrays)):
            self.groups.setdefault(leaders[n], []).append(n)
        for leader, members in self.groups.items():
            values = [self.kernel.params[self.arrays[n]].value for n in members]
            atomic, partial = (any(v in which for v in values) for which in (self.atomics, self.partial))
            for v in values:
                assert isinstance(v.type, ArrayType)
                lanes = self.kernel.coarsen if v in self.grouped else 1
                self.memory[v] = binding_memory(
                    self.params[self.arrays[leader]],
                    v.type,
                    self.numeric,
                    atomic=atomic,
                    partial=partial,
                    shared_binding=len(members) > 1,
                    lanes=lanes,
                )

    def blocks(self, names: Names) -> None:
        self.shared: list[Value] = []
        self.lengths: dict[Value, tuple[int, ...]] = {}
        for op in self.kernel.body.ops:
            if op.code not in ("shared", "local") or op.result is None:
                continue
            v = op.result
            assert isinstance(v.type, ArrayType) and v.type.shape is not None
            size = v.type.elem.size
            shape = v.type.shape
            if shape and shape[0] == 0:
                shape = (self.variant.shared_bytes // (size * max(1, math.prod(shape[1:]))), *shape[1:])
            self.lengths[v] = shape
            self.memory[v] = block_memory(
                names(op.attrs["name"] or op.code), v.type, self.numeric, v in self.atomics, v in self.partial
            )
            if op.code == "shared":
                self.shared.append(v)

    def elements(self, v: Value) -> int:
        """Elements of the WGSL array that holds a shared or local array."""
        assert isinstance(v.type, ArrayType)
        count = max(1, math.prod(self.lengths[v]))
        return -(-count * v.type.elem.size // 4) if isinstance(self.memory[v], Words) else count

    def bindings(self) -> list[tuple[tuple[int, ...], bool]]:
        """For each storage buffer of group 0: the parameters in it, and whether one of them is written."""
        out = []
        for members in self.groups.values():
            numbers = tuple(self.arrays[n] for n in members)
            out.append((numbers, any(self.kernel.params[n].value in self.writable for n in numbers)))
        return out

    def units(self) -> tuple[int, ...]:
        """Bytes that one step of each array's start stands for."""
        out = []
        for n in self.arrays:
            v = self.kernel.params[n].value
            assert isinstance(v.type, ArrayType)
            out.append(1 if isinstance(self.memory[v], Words) else v.type.elem.size)
        return tuple(out)

    def declarations(self) -> list[str]:
        out = []
        for number, (params, writable) in enumerate(self.bindings()):
            m = self.memory[self.kernel.params[params[0]].value]
            mode = "read_write" if writable else "read"
            out.append(f"@group(0) @binding({number}) var<storage, {mode}> {m.name}: array<{m.element}>;")
        return out

    def workgroup(self) -> list[str]:
        return [
            f"var<workgroup> {self.memory[v].name}: array<{self.memory[v].element}, {self.elements(v)}>;"
            for v in self.shared
        ]

    def local(self, v: Value) -> str:
        return f"var {self.memory[v].name}: array<{self.memory[v].element}, {self.elements(v)}>;"

    def zeroed(self) -> list[tuple[str, int, str]]:
        """(name, elements, statement with ``{}`` for the name) that zeroes element ``gw_n`` of each shared array."""
        out = []
        for v in self.shared:
            m = self.memory[v]
            if m.element.startswith("atomic"):
                zero = f"atomicStore(&{{}}[gw_n], {m.element[7:-1]}(0));"
            else:
                zero = f"{{}}[gw_n] = {m.element}();"
            out.append((m.name, self.elements(v), zero))
        return out

    def refuse_more_shared_than(self, most: int) -> None:
        """Raise UnsupportedError if a block's arrays take more memory than WebGPU gives."""
        total = 0
        for v in self.shared:
            wide = self.memory[v].element in ("vec2<u32>", "f64")
            total += self.elements(v) * (8 if wide else 4)
        if total > most:
            loc = self.shared[0].op.loc if self.shared[0].op else self.kernel.loc
            raise UnsupportedError(
                f"{self.kernel.name}: {total} bytes of shared memory a block; WebGPU has {most}",
                loc,
                "make the shared arrays smaller (elements of 8 and 16 bits take 4 bytes there)",
            )

    # -- addresses ---------------------------------------------------------------------------------------
    def word(self, v: Value, kind: str, axis: int) -> Expr:
        """A dim or stride for address arithmetic: i32, or for 64-bit indices its low word."""
        member = self.members[v, kind, axis]
        return atom(f"args.{member.name}_low_word" if member.wide else f"args.{member.name}")

    def dim(self, v: Value, axis: int) -> Expr:
        assert isinstance(v.type, ArrayType)
        if v in self.lengths:
            n = self.lengths[v][axis]
            return call("vec2<u32>", u32(n), "0u") if v.type.index == I64 else atom(f"{n}i")
        member = self.members[v, "dim", axis]
        if member.wide:
            return call("vec2<u32>", f"args.{member.name}_low_word", f"args.{member.name}_high_word")
        return atom(f"args.{member.name}")

    def flat(self, v: Value, indices: list[Expr]) -> Expr:
        """The number of an element, counted from element 0 of the array."""
        t = v.type
        assert isinstance(t, ArrayType)
        if is_wide(t.index):
            indices = [atom(f"{i.operand}.x") for i in indices]
        if t.strided and v not in self.lengths:
            terms = [infix("*", i, self.word(v, "stride", axis)) for axis, i in enumerate(indices)]
            return _sum(terms)
        out = indices[0] if indices else atom("0u")
        for axis, i in enumerate(indices[1:], 1):
            extent = self.word(v, "dim", axis) if v not in self.lengths else self.extent(v, axis)
            out = infix("+", infix("*", out, extent), i)
        return out

    def group_start(self, v: Value) -> Expr | None:
        """Groups of a vectorised kernel before element 0: its start is a multiple of 16 bytes."""
        if not self.variant.starts:
            return None
        assert isinstance(v.type, ArrayType)
        unit = 1 if isinstance(self.memory[v], Words) else v.type.elem.size
        return infix(
            "/", atom(f"args.{self.members[v, 'ptr', 0].name}"), u32(self.kernel.coarsen * v.type.elem.size // unit)
        )

    def extent(self, v: Value, axis: int) -> Expr:
        assert isinstance(v.type, ArrayType)
        return atom(f"{self.lengths[v][axis]}{'u' if is_wide(v.type.index) else 'i'}")

    def place(self, op: Op, indices: list[Expr]) -> Place:
        """Where a load, store or atomic goes. ``indices``: the array's own, then one a fixed array among the fields."""
        v = op.operands[0]
        t = v.type
        member = _member(op)
        assert isinstance(t, ArrayType) and member is not None
        wide = is_wide(t.index)
        flat = self.flat(v, indices[: t.rank])
        start = (
            atom(f"args.{self.members[v, 'ptr', 0].name}") if self.variant.starts and v not in self.lengths else None
        )
        if not isinstance(self.memory[v], Words):
            if start is not None:
                flat = infix("+", flat if wide else call("u32", flat), start)
            return Place(flat, member)
        byte = _times(flat if wide else call("u32", flat), t.elem.size)
        offset, inner = 0, list(indices[t.rank :])
        for f in op.attrs.get("field", ()):
            offset += f.offset
            if f.count:
                i = inner.pop(0)
                byte = infix("+", byte, _times(atom(f"{i.operand}.x") if wide else call("u32", i), f.type.size))
        if offset:
            byte = infix("+", byte, u32(offset))
        if start is not None:
            byte = infix("+", byte, start)
        return Place(byte, member)


def _times(x: Expr, n: int) -> Expr:
    return x if n == 1 else infix("*", x, u32(n))


def _sum(terms: list[Expr]) -> Expr:
    out = terms[0]
    for term in terms[1:]:
        out = infix("+", out, term)
    return out
