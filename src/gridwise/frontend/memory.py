"""Reads and writes of array elements, structs in memory included."""

from __future__ import annotations

import ast

from gridwise.ir.core import Value
from gridwise.ir.types import I64, Struct
from gridwise.lang.errors import KernelAttributeError, KernelTypeError, KernelValueError
from gridwise.lang.slices import NAMES

from .scopes import Frame
from .source import text
from .types import FixedTy, OptionTy, ScalarTy, StructTy, TupleTy, Ty, VecTy
from .values import (
    ArrayV,
    Const,
    ElementV,
    FixedV,
    Num,
    OptionV,
    StructV,
    TupleV,
    Val,
    VecV,
    WitnessV,
)


def dims(f: Frame, a: ArrayV) -> list[Num | Const]:
    """The extents of an array, as indices; constants where they are static."""
    if a.layout.shape is not None:
        return [Const(n, f.ctx.index) if n else dim(f, a, k) for k, n in enumerate(a.layout.shape)]
    return [dim(f, a, k) for k in range(a.layout.rank)]


def dim(f: Frame, a: ArrayV, axis: int) -> Num:
    value = f.b.dim(a.ir, axis)
    return Num(f.ctx.index, f.b.cast(value, f.ctx.index_ir))


def to_index(f: Frame, v: Val, array: ArrayV, axis: int, node: ast.AST) -> Value:
    """One index operand: any integer that keeps its value, a constant counted from the end if negative."""
    from .convert import name_of, number

    n = number(f, v, node, "an integer index")
    want = array.layout.index
    if isinstance(n, Const):
        if isinstance(n.value, bool) or not isinstance(n.value, int):
            f.fail(KernelTypeError, node, f"an index is an integer, and this is {name_of(n)}", fix_float(node))
        shape = array.layout.shape
        length = shape[axis] if shape is not None else 0
        if (length and not -length <= n.value < length) or not want.min <= n.value <= want.max:
            limit = f"of length {length}" if length else "of any length"
            f.fail(KernelValueError, node, f"index {n.value} is out of range for {array.name} {limit}")
        if n.value >= 0:
            return f.b.const(n.value, want)
        if length:
            return f.b.const(length + n.value, want)
        return f.b.binary("sub", f.b.dim(array.ir, axis), f.b.const(-n.value, want))
    t = n.type.ir
    if not t.is_int:
        f.fail(KernelTypeError, node, f"an index is an integer, and this is {n.type}", fix_float(node))
    if t.bits <= want.bits or want == I64:
        return f.b.cast(n.ir, want)  # a u32 of 2**31 or more turns negative: out of range either way
    narrow = f.b.cast(n.ir, want)
    whole = f.b.binary("eq", f.b.cast(narrow, t), n.ir)
    return f.b.select(whole, narrow, f.b.const(-1, want))


def fix_float(node: ast.AST) -> str:
    return f"write i32({text(node)})"


def operands(f: Frame, array: ArrayV, index: Val, node: ast.Subscript) -> list[Value]:
    """The index operands of ``array[index]``."""
    rank = array.layout.rank
    if isinstance(node.slice, ast.Slice) or (
        isinstance(node.slice, ast.Tuple) and any(isinstance(e, ast.Slice) for e in node.slice.elts)
    ):
        f.fail(
            KernelTypeError,
            node,
            "a kernel handles one element at a time: a slice of an array is not supported",
            "loop over the elements: for k in range(start, stop): ...",
        )
    if isinstance(index, WitnessV):
        if len(index.axes) != rank:
            get = f"thread.index_{rank}d()" if rank <= 3 else f"{rank} indices"
            f.fail(
                KernelTypeError,
                node,
                f"{array.name} has {axes(rank)}, and this index has {len(index.axes)}",
                f"take the index from {get}",
            )
        return [f.b.cast(a.ir, array.layout.index) for a in index.axes]
    parts = index.items if isinstance(index, TupleV) else (index,)
    if len(parts) != rank:
        example = ", ".join("ijkl"[:rank]) if rank <= 4 else "..."
        f.fail(
            KernelTypeError,
            node,
            f"{array.name} has {axes(rank)}, and {len(parts)} {'index' if len(parts) == 1 else 'indices'} given",
            f"write {array.name}[{example}]",
        )
    nodes = (
        node.slice.elts if isinstance(node.slice, ast.Tuple) and len(node.slice.elts) == rank else [node.slice] * rank
    )
    return [to_index(f, p, array, k, n) for k, (p, n) in enumerate(zip(parts, nodes))]


def axes(rank: int) -> str:
    return "1 axis" if rank == 1 else f"{rank} axes"


def subscript(f: Frame, array: ArrayV, index: Val, node: ast.Subscript) -> Val:
    """``array[index]`` as a value; a struct element is a place, read when it is needed."""
    if array.kind == "atomic":
        f.fail(
            KernelTypeError,
            node,
            f"{array.name} is an AtomicSlice: only atomic.* operations touch it",
            f"write atomic.add({array.name}, {text(node.slice)}, 0) to read it",
        )
    place = ElementV(array, tuple(operands(f, array, index, node)), (), array.elem)
    return read(f, place) if isinstance(array.elem, ScalarTy) else place


def store(f: Frame, array: ArrayV, index: Val, node: ast.Subscript) -> ElementV:
    """The place ``array[index]``, to be written; an error if the array is not the thread's to write."""
    check_writable(f, array, node)
    return ElementV(array, tuple(operands(f, array, index, node)), (), array.elem)


def check_writable(f: Frame, array: ArrayV, node: ast.AST) -> None:
    if array.kind == "slice":
        shown = f"{array.elem}{f', {array.layout.rank}' if array.layout.rank > 1 else ''}"
        f.fail(
            KernelTypeError,
            node,
            f"{array.name} is a {NAMES['slice']}, which is read-only",
            f"annotate it as DisjointSlice[{shown}] to write to it",
        )
    if array.kind == "atomic":
        f.fail(
            KernelTypeError,
            node,
            f"{array.name} is an AtomicSlice: only atomic.* operations touch it",
            f"write atomic.add({array.name}, i, value), or atomic.exchange to set it",
        )


# -- composite elements ----------------------------------------------------------------------------


def _struct(e: ElementV) -> Struct:
    t = e.path[-1].type if e.path else e.array.layout.elem
    assert isinstance(t, Struct)
    return t


def children(t: Ty) -> list[tuple[str, Ty]]:
    """The members of a composite type, in memory order."""
    if isinstance(t, StructTy):
        return list(t.fields)
    if isinstance(t, VecTy):
        return [("xyzw"[k], t.elem) for k in range(t.lanes)]
    if isinstance(t, OptionTy):
        from .types import BOOL

        return [("present", BOOL), ("value", t.elem)]
    assert isinstance(t, TupleTy)
    names = t.cls._fields if t.cls else [f"f{k}" for k in range(len(t.items))]  # type: ignore[attr-defined]
    return list(zip(names, t.items))


def member(e: ElementV, name: str) -> ElementV | None:
    """The place of a member of a struct element, or None if it has no such member."""
    if isinstance(e.elem, FixedTy | ScalarTy):
        return None
    struct = _struct(e)
    for field, (child, t) in zip(struct.fields, children(e.elem)):
        if child == name:
            return ElementV(e.array, e.indices, (*e.path, field), t)
    return None


def fixed_item(f: Frame, e: ElementV, index: Value) -> ElementV:
    """The place of one item of a fixed array field."""
    assert isinstance(e.elem, FixedTy)
    return ElementV(e.array, (*e.indices, index), e.path, e.elem.elem)


def read(f: Frame, e: ElementV) -> Val:
    """Load a place, leaf by leaf."""
    t = e.elem
    if isinstance(t, ScalarTy):
        value = f.b.load(e.array.ir, list(e.indices), e.path)
        mark(f, value)
        return validated(f, Num(t, value))
    if isinstance(t, FixedTy):
        return FixedV(t, tuple(read(f, fixed_item(f, e, _constant(f, e, k))) for k in range(t.count)))
    parts = {name: _read_member(f, e, name) for name, _ in children(t)}
    if isinstance(t, StructTy):
        return StructV(t, parts)
    if isinstance(t, VecTy):
        return VecV(t, tuple(parts.values()))  # type: ignore[arg-type]
    if isinstance(t, OptionTy):
        present = parts["present"]
        assert isinstance(present, Num)
        return OptionV(t, present, parts["value"])
    assert isinstance(t, TupleTy)
    return TupleV(tuple(parts.values()), t.cls)


def _read_member(f: Frame, e: ElementV, name: str) -> Val:
    inner = member(e, name)
    assert inner is not None
    return read(f, inner)


def _constant(f: Frame, e: ElementV, k: int) -> Value:
    return f.b.const(k, e.array.layout.index)


def read_element(f: Frame, e: ElementV, node: ast.AST) -> Val:
    """Read a pending struct element, blaming ``node``."""
    f.at(node)
    return read(f, e)


def write(f: Frame, e: ElementV, value: Val) -> None:
    """Store a value that already has the place's type, leaf by leaf."""
    t = e.elem
    if isinstance(t, ScalarTy):
        assert isinstance(value, Num)
        f.b.store(e.array.ir, list(e.indices), value.ir, e.path)
        mark(f, None)
        return
    if isinstance(t, FixedTy):
        assert isinstance(value, FixedV)
        for k, item in enumerate(value.items):
            write(f, fixed_item(f, e, _constant(f, e, k)), item)
        return
    if isinstance(value, StructV):
        parts = list(value.fields.values())
    elif isinstance(value, OptionV):
        parts = [value.present, value.value]
    else:
        assert isinstance(value, VecV | TupleV)
        parts = list(value.items)
    for (name, _), part in zip(children(t), parts):
        inner = member(e, name)
        assert inner is not None
        write(f, inner, part)


def mark(f: Frame, value: Value | None) -> None:
    """Carry the reason of an enclosing ``gw.unsafe`` to the access just emitted."""
    if f.ctx.unsafe is not None:
        op = value.op if value is not None else f.b.region.ops[-1]
        assert op is not None
        op.attrs["unsafe"] = f.ctx.unsafe


def validated(f: Frame, n: Num) -> Num:
    """A value of an enum that came from memory is one of its members, or the kernel faults."""
    if n.type.form != "enum":
        return n
    cls = n.type.cls
    values = sorted({int(m) for m in cls})
    t = n.type.ir
    if values == list(range(values[0], values[-1] + 1)):
        ok = f.b.binary("le", n.ir, f.b.const(values[-1], t))
        if values[0] != t.min:
            ok = f.b.binary("and", f.b.binary("ge", n.ir, f.b.const(values[0], t)), ok)
    else:
        tests = [f.b.binary("eq", n.ir, f.b.const(k, t)) for k in values]
        ok = tests[0]
        for test in tests[1:]:
            ok = f.b.binary("or", ok, test)
    f.b.emit("assert", (ok,), message=f"a value read from memory is no member of {cls.__name__}")
    return n


def no_member(f: Frame, t: Ty, name: str, node: ast.AST) -> None:
    """Raise the error for an attribute that a value does not have."""
    import difflib

    names = [n for n, _ in children(t)] if not isinstance(t, ScalarTy | FixedTy) else []
    close = difflib.get_close_matches(name, names, 1)
    hint = f"did you mean {close[0]}?" if close else f"it has {', '.join(names)}" if names else None
    f.fail(KernelAttributeError, node, f"{t} has no attribute '{name}'", hint)
