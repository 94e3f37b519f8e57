"""Attributes: of modules and types, arrays, structs, vectors, named tuples, options."""

from __future__ import annotations

import ast
import types
from typing import Any, NoReturn

from gridwise.lang.errors import KernelAttributeError, KernelTypeError
from gridwise.lang.structs import _copy as struct_copy

from . import assignment, calls, convert, expressions, memory
from .scopes import Frame, Local, has_struct
from .source import text, unwrap
from .types import FixedTy, ScalarTy, StructTy
from .values import (
    ArrayV,
    Const,
    ElementV,
    MethodV,
    Num,
    OptionV,
    Static,
    StructV,
    TupleV,
    Val,
    VecV,
    WitnessV,
)


def attribute(f: Frame, node: ast.Attribute) -> Val:
    """``value.attr``."""
    base = expressions.expr(f, node.value)
    f.at(node)
    if isinstance(base, Static):
        return _static(f, base.obj, node)
    if isinstance(base, ArrayV):
        return _array(f, base, node)
    if isinstance(base, ElementV):
        inner = memory.member(base, node.attr) if not isinstance(base.elem, FixedTy) else None
        if (inner is not None and isinstance(base.elem, StructTy)) or (inner is not None and not _is_option(base)):
            return memory.read(f, inner) if isinstance(inner.elem, ScalarTy) else inner
        base = convert.settle(f, base, node.value)
    if isinstance(base, StructV):
        return _struct(f, base, node)
    if isinstance(base, VecV):
        return _vector(f, base, node)
    if isinstance(base, TupleV) and base.cls is not None:
        names: tuple[str, ...] = base.cls._fields  # type: ignore[attr-defined]
        if node.attr in names:
            return base.items[names.index(node.attr)]
        _none(f, str(base.type), node, names)
    if isinstance(base, OptionV):
        if node.attr in ("is_some", "present"):
            return base.present
        if node.attr == "is_none":
            return Num(base.present.type, f.b.unary("not", base.present.ir))
        if node.attr == "value":
            f.b.emit("assert", (base.present.ir,), message=f"{text(node.value)} holds no value")
            return base.value
        if node.attr in ("unwrap", "unwrap_or"):
            return MethodV(base, node.attr, node.attr, node.value)
        _none(f, str(base.type), node, ("is_some", "is_none", "value", "unwrap_or"))
    if isinstance(base, Num | Const):
        return _scalar(f, base, node)
    if isinstance(base, WitnessV):
        _none(f, "a ThreadIndex", node, (), "unpack it, row, col = i, or take the number with int(i)")
    _none(f, convert.name_of(base), node, ())


def _is_option(e: ElementV) -> bool:
    return type(e.elem).__name__ == "OptionTy"


def _none(f: Frame, owner: str, node: ast.Attribute, names: Any, hint: str | None = None) -> NoReturn:
    import difflib

    close = difflib.get_close_matches(node.attr, list(names), 1)
    if hint is None and names:
        shown = list(names)[:6]
        hint = f"did you mean {close[0]}?" if close else f"it has {', '.join(shown)}"
    f.fail(KernelAttributeError, node, f"{owner} has no attribute '{node.attr}'", hint)


def _static(f: Frame, obj: Any, node: ast.Attribute) -> Val:
    missing = object()
    if isinstance(obj, str | list | dict | set):
        f.fail(
            KernelTypeError,
            node,
            f"{convert.name_of(Static(obj))} cannot be used in a kernel",
            convert.hint_for(Static(obj), node.value),
        )
    try:
        value = getattr(obj, node.attr, missing)
    except Exception as e:
        f.fail(KernelAttributeError, node, f"{text(node)}: {e}")
    if value is missing:
        names = [n for n in dir(obj) if not n.startswith("_")]
        _none(f, convert.name_of(Static(obj)), node, names)
    f.ctx.deps.attribute(obj, node.attr, value)
    return expressions.lift(f, value, text(node), node)


def _array(f: Frame, a: ArrayV, node: ast.Attribute) -> Val:
    if node.attr == "shape":
        return TupleV(tuple(memory.dims(f, a)))
    if node.attr == "size":
        total: Num | Const | None = None
        for d in memory.dims(f, a):
            if total is None:
                total = d
            else:
                p, q = convert.as_num(f, total, node), convert.as_num(f, d, node)
                total = Num(p.type, f.b.binary("mul", p.ir, q.ir))
        assert total is not None
        return total
    if node.attr == "ndim":
        return Const(a.layout.rank)
    if node.attr == "dtype":
        return Static(a.elem.cls if isinstance(a.elem, ScalarTy | StructTy) else a.elem)
    hint = "write len(a) for its length" if node.attr in ("length", "len") else None
    _none(f, f"the array {a.name}", node, ("shape", "size", "ndim", "dtype"), hint)


def _struct(f: Frame, s: StructV, node: ast.Attribute) -> Val:
    if node.attr in s.fields:
        return s.fields[node.attr]
    return class_member(f, s, s.type.cls, node)


def class_member(f: Frame, receiver: Val, cls: type, node: ast.Attribute) -> Val:
    """A method, property or class constant of a struct."""
    for owner in cls.__mro__:
        if owner is object:
            continue
        if node.attr not in owner.__dict__:
            continue
        member = owner.__dict__[node.attr]
        if member is struct_copy:
            return MethodV(receiver, "copy", "copy", node.value)
        if isinstance(member, property):
            fn = unwrap(member.fget)
            if fn is None:
                break
            return calls.inline(f, fn, None, [calls.Arg(receiver, node.value)], {}, node)
        if isinstance(member, types.FunctionType):
            return MethodV(receiver, node.attr, member, node.value)
        if isinstance(member, classmethod):
            return MethodV(Static(cls), node.attr, unwrap(member), node.value)
        if isinstance(member, staticmethod):
            return Static(unwrap(member))
        if not node.attr.startswith("__"):
            return expressions.lift(f, member, node.attr, node)
    fields = list(receiver.fields) if isinstance(receiver, StructV) else []
    methods = [n for n, m in cls.__dict__.items() if callable(m) and not n.startswith("_")]
    _none(f, cls.__name__, node, fields + methods)


def _vector(f: Frame, v: VecV, node: ast.Attribute) -> Val:
    lanes = "xyzw"[: v.type.lanes]
    if node.attr and all(c in lanes for c in node.attr):
        picked = tuple(v.items[lanes.index(c)] for c in node.attr)
        if len(picked) == 1:
            return picked[0]
        if len(picked) <= 4:
            from .types import VecTy

            return VecV(VecTy(v.type.elem, len(picked)), picked)
    if node.attr in ("dot", "length", "cross", "normalized", "sum"):
        return MethodV(v, node.attr, node.attr, node.value)
    _none(f, str(v.type), node, tuple(lanes), None)


def _scalar(f: Frame, n: Num | Const, node: ast.Attribute) -> Val:
    t = n.type
    if isinstance(t, ScalarTy) and t.form == "enum":
        if node.attr == "value":
            from .types import plain

            return (
                Num(plain(t.ir), convert.as_num(f, n, node).ir) if isinstance(n, Num) else Const(n.value, plain(t.ir))
            )
        if node.attr == "name":
            f.fail(KernelTypeError, node, "a string cannot be held in a kernel", "use the enum member itself")
        member = t.cls.__dict__.get(node.attr)
        if isinstance(member, types.FunctionType):
            return MethodV(n, node.attr, member, node.value)
    if node.attr in ("astype", "item", "shape", "dtype"):
        hint = {"astype": "call the type: f32(x)", "item": "leave it out: this is the number already"}.get(node.attr)
        _none(f, f"{convert.name_of(n)}, a number,", node, (), hint)
    _none(f, f"{t}, a number,", node, (), None)


def member_place(f: Frame, base: ElementV, target: ast.Attribute) -> ElementV:
    """The place of ``element.attr`` that is about to be written."""
    memory.check_writable(f, base.array, target)
    place = memory.member(base, target.attr)
    if place is None:
        fixed = isinstance(base.elem, FixedTy)
        _none(f, str(base.elem), target, [] if fixed else [n for n, _ in memory.children(base.elem)])
    return place


def write(f: Frame, place: ElementV, value: Val, source: ast.AST, target: ast.AST) -> None:
    """Store a value that becomes the place's type implicitly."""
    new = convert.coerce(f, value, place.elem, source, f"{text(target)} holds")
    f.at(target)
    memory.write(f, place, new)


def changing(f: Frame, local: Local, node: ast.AST) -> None:
    """A field of the struct that a name holds is about to change: refused if Python would change something else too."""
    if has_struct(local.type):
        local.changed = True
        if local.shared_with:
            refuse_shared(f, local, node)


def refuse_shared(f: Frame, local: Local, node: ast.AST) -> NoReturn:
    other = local.shared_with
    element = other.endswith("]")
    f.fail(
        KernelTypeError,
        node,
        f"changing {local.name} would also change {other}, which is the same object in Python",
        f"write {other}.field = ..., or copy first: {local.name} = {other}.copy()"
        if element
        else f"copy first: {local.name} = {other}.copy()",
    )


# -- assignment ------------------------------------------------------------------------------------


def assign(f: Frame, target: ast.Attribute, value: Val, source: ast.AST) -> None:
    """``place.attr = value``: a field of an array's element, or of a struct that a name holds."""
    base = expressions.expr(f, target.value)
    f.at(target)
    if isinstance(base, ElementV):
        write(f, member_place(f, base, target), value, source, target)
        return
    if isinstance(base, StructV):
        ft = base.type.field(target.attr)
        if ft is None:
            _none(f, str(base.type), target, list(base.fields))
        assert ft is not None
        new = convert.coerce(f, value, ft, source, f"{text(target)} holds")
        changed: Val = StructV(base.type, {**base.fields, target.attr: new})
    elif isinstance(base, VecV):
        f.fail(
            KernelTypeError,
            target,
            "the lanes of a vector cannot be assigned: vectors do not change",
            f"make a new one: {text(target.value)} = vec{base.type.lanes}(...)",
        )
    else:
        f.fail(
            KernelTypeError,
            target,
            f"{convert.name_of(base)} has no fields to assign",
            "tuples do not change: make a new one"
            if isinstance(base, TupleV)
            else "only structs have fields to assign",
        )
    assignment.assign_group(f, target.value, changed, source)
