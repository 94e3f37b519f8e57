"""Subscripts: elements of arrays, items of tuples, vectors and fixed arrays, types."""

from __future__ import annotations

import ast

import numpy as np

from gridwise.lang.errors import KernelSyntaxError, KernelTypeError, KernelValueError

from . import convert, expressions, memory
from .scopes import Frame
from .source import text
from .types import FixedTy, ScalarTy
from .values import ArrayV, Const, ElementV, FixedV, Num, Static, TupleV, Val, VecV, WitnessV, leaves, rebuild


def subscript(f: Frame, node: ast.Subscript) -> Val:
    base = expressions.expr(f, node.value)
    if isinstance(base, ArrayV):
        refuse_slice(f, node)
        index = expressions.expr(f, node.slice)
        f.at(node)
        return memory.subscript(f, base, index, node)
    if isinstance(base, Static):
        return _static_item(f, base, node)
    refuse_slice(f, node)
    if isinstance(base, ElementV) and isinstance(base.elem, FixedTy):
        place = fixed_place(f, base, node)
        return memory.read(f, place) if isinstance(place.elem, ScalarTy) else place
    base = convert.settle(f, base, node.value)
    if isinstance(base, TupleV | VecV | FixedV | WitnessV):
        items: tuple[Val, ...] = base.axes if isinstance(base, WitnessV) else base.items
        index = expressions.expr(f, node.slice)
        n = convert.number(f, index, node.slice, "an integer index")
        known = n.value if isinstance(n, Const) else n.const
        if isinstance(known, int) and not isinstance(known, bool):
            if not -len(items) <= known < len(items):
                f.fail(KernelValueError, node, f"index {known} is out of range for {base.type} of length {len(items)}")
            return items[known]
        if isinstance(n, Const) or not n.type.ir.is_int:
            f.fail(KernelTypeError, node.slice, f"an index is an integer, and this is {convert.name_of(n)}")
        return pick(f, items, n, node)
    hint = convert.hint_for(base, node.value) or "only arrays, tuples and vectors have elements"
    f.fail(KernelTypeError, node, f"{convert.name_of(base)} cannot be indexed", hint)


def refuse_slice(f: Frame, node: ast.Subscript) -> None:
    parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
    for part in parts:
        if isinstance(part, ast.Slice):
            f.fail(
                KernelSyntaxError,
                node,
                "slicing is not supported in a kernel, which handles one element at a time",
                "loop over the elements: for k in range(start, stop): ...",
            )
        if isinstance(part, ast.Constant) and part.value is Ellipsis:
            f.fail(KernelSyntaxError, node, "... as an index is not supported in a kernel", "write every index")


def fixed_place(f: Frame, base: ElementV, node: ast.Subscript) -> ElementV:
    """The place of ``element.field[k]`` for a fixed array field."""
    t = base.elem
    assert isinstance(t, FixedTy)
    n = convert.number(f, expressions.expr(f, node.slice), node.slice, "an integer index")
    if isinstance(n, Const):
        k = n.value
        if not isinstance(k, int) or not -t.count <= k < t.count:
            f.fail(KernelValueError, node, f"index {k} is out of range for {text(node.value)} of length {t.count}")
        value = f.b.const(k % t.count, base.array.layout.index)
    else:
        value = memory.to_index(f, n, base.array, 0, node.slice)
    return memory.fixed_item(f, base, value)


def pick(f: Frame, items: tuple[Val, ...], n: Num, node: ast.AST) -> Val:
    """``items[n]`` for an index known only at run time: all items of one type, in scalars."""
    out = expressions.unify(f, list(items), node)
    values = [leaves(convert.coerce(f, item, out, node, "the first item is")) for item in items]
    index = convert.cast(f, n, f.ctx.index) if n.type.ir.bits <= 32 else n
    count = f.b.const(len(items), index.type.ir)
    zero = f.b.const(0, index.type.ir)
    inside = f.b.binary("and", f.b.binary("ge", index.ir, zero), f.b.binary("lt", index.ir, count))
    f.b.emit("assert", (inside,), message=f"index out of range for a group of {len(items)}")
    picked = []
    for k, t in enumerate(out.leaves):
        value = f.b.const(0, t.ir) if t.ir.kind != "float" else f.b.const(0.0, t.ir)
        for position, item in enumerate(values):
            here = f.b.binary("eq", index.ir, f.b.const(position, index.type.ir))
            value = f.b.select(here, item[k].ir, value)
        picked.append(Num(t, value))
    return rebuild(out, picked)


def item(f: Frame, place: tuple[FixedV | VecV, Num | Const], node: ast.AST) -> Val:
    """The item of a local group that ``statements._place`` found."""
    group, n = place
    known = n.value if isinstance(n, Const) else n.const
    if isinstance(known, int):
        if not -len(group.items) <= known < len(group.items):
            f.fail(
                KernelValueError, node, f"index {known} is out of range for {group.type} of length {len(group.items)}"
            )
        return group.items[known]
    assert isinstance(n, Num)
    return pick(f, group.items, n, node)


def replace(f: Frame, items: list[Val], n: Num | Const, new: Val, node: ast.AST) -> list[Val]:
    """The items with the one at run-time index ``n`` replaced; out of range is a fault and changes nothing."""
    if isinstance(n, Const) or not n.type.ir.is_int:
        f.fail(KernelTypeError, node, f"an index is an integer, and this is {convert.name_of(n)}")
    t = n.type.ir
    inside = f.b.binary("lt", n.ir, f.b.const(len(items), t))
    if t.signed:
        inside = f.b.binary("and", f.b.binary("ge", n.ir, f.b.const(0, t)), inside)
    f.b.emit("assert", (inside,), message=f"index out of range for a group of {len(items)}")
    out: list[Val] = []
    for k, old in enumerate(items):
        here = f.b.binary("eq", n.ir, f.b.const(k, t))
        picked = [Num(a.type, f.b.select(here, b.ir, a.ir)) for a, b in zip(leaves(old), leaves(new))]
        out.append(rebuild(old.type, picked))
    return out


def _static_item(f: Frame, base: Static, node: ast.Subscript) -> Val:
    """A subscripted compile-time object: a type such as ``vec3[f32]``, or a captured container (refused)."""
    if isinstance(base.obj, list | dict | set | np.ndarray | str | bytes):
        f.fail(
            KernelTypeError,
            node,
            f"{convert.name_of(base)} cannot be read in a kernel",
            convert.hint_for(base, node.value) or "captured globals are numbers, enums and tuples of them",
        )
    index = expressions.expr(f, node.slice)
    value = convert.python_value(index)
    if value is NotImplemented or not (
        hasattr(base.obj, "__class_getitem__") or hasattr(type(base.obj), "__getitem__")
    ):
        f.fail(KernelTypeError, node, f"{convert.name_of(base)} cannot be indexed")
    try:
        return Static(base.obj[value])
    except Exception as e:
        f.fail(KernelTypeError, node, f"{text(node)}: {e}")
