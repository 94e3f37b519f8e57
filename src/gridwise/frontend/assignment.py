"""Assignment: names, places in arrays, fields, unpacking, annotations."""

from __future__ import annotations

import ast
from typing import Any

from gridwise.lang.errors import KernelSyntaxError, KernelTypeError, KernelValueError

from . import attributes, convert, expressions, memory, operators, subscripts
from .refuse import refuse
from .scopes import Frame, Local, has_struct
from .source import text
from .types import I32, FixedTy, NotAType, ScalarTy, StaticTy, Ty, WitnessTy, resolve
from .values import (
    ArrayV,
    Const,
    ElementV,
    FixedV,
    IterV,
    MethodV,
    Num,
    RangeV,
    Static,
    StructV,
    TupleV,
    Val,
    VecV,
    WitnessV,
)


def assignment(f: Frame, node: ast.Assign) -> None:
    value = convert.settle(f, expressions.expr(f, node.value), node.value)
    for target in node.targets:
        assign(f, target, value, node.value)


def assign(f: Frame, target: ast.expr, value: Val, source: ast.expr) -> None:
    """``target = value``; ``source`` is the value's node, for fix-its."""
    if isinstance(target, ast.Name):
        assign_name(f, target.id, value, source, target)
    elif isinstance(target, ast.Tuple):
        _unpack(f, target, value, source)
    elif isinstance(target, ast.Subscript):
        place = _place(f, target)
        _store(f, place, value, source, target)
    elif isinstance(target, ast.Attribute):
        attributes.assign(f, target, value, source)
    elif isinstance(target, ast.List):
        f.fail(
            KernelSyntaxError,
            target,
            "unpacking into a list is not supported in a kernel",
            f"write a tuple: {', '.join(text(e) for e in target.elts)} = ...",
        )
    else:
        refuse(f, target)


def assign_name(f: Frame, name: str, value: Val, source: ast.AST, target: ast.AST) -> None:
    """Bind a local name; its first binding fixes its type (rule 5)."""
    local = f.locals.get(name)
    f.at(target)
    if has_struct(value.type):
        _assign_struct(f, name, value, source, target)
        return
    if local is not None:
        value = _rebind(f, local, value, source)
        f.bind(name, value, target)
        return
    if name in f.declared:
        f.bind(name, convert.coerce(f, value, f.declared[name], source, f"'{name}' is declared"), target)
        return
    number = isinstance(source, ast.Constant | ast.UnaryOp)
    literal = text(source) if number and isinstance(value, Const) and value.weak else ""
    value = convert.settle(f, value, source)
    if isinstance(value, ArrayV) and value.ir.op is not None and value.ir.op.attrs.get("name") == value.name:
        value.ir.op.attrs["name"] = value.ir.name = name  # a shared or local array takes the author's name
        value = ArrayV(name, value.ir, value.elem, value.kind)
    if isinstance(value, RangeV | IterV | MethodV):
        f.fail(KernelTypeError, source, f"{value.type} cannot be held by a name", "write it where it is used")
    if isinstance(value, Static) and isinstance(value.obj, str):
        f.fail(KernelTypeError, source, "a string cannot be held in a kernel", "print it directly, or use an enum")
    f.bind(name, convert.definite(f, value, source), target, literal)


def _assign_struct(f: Frame, name: str, value: Val, source: ast.AST, target: ast.AST) -> None:
    """Bind a struct. In Python two names of one object see each other's changes: such changes are refused."""
    value = convert.settle(f, value, source)
    local = f.locals.get(name)
    if local is not None:
        value = _rebind(f, local, value, source)
    elif name in f.declared:
        value = convert.coerce(f, value, f.declared[name], source, f"'{name}' is declared")
    f.bind(name, convert.definite(f, value, source), target)
    if not isinstance(source, ast.Name | ast.Attribute | ast.Subscript):
        return
    local = f.locals[name]
    owner = f.locals.get(source.id) if isinstance(source, ast.Name) else None
    local.shared_with = text(source)
    if owner is not None:
        owner.shared_with = owner.shared_with or name
    if f.ctx.loop_depth and (local.changed or (owner is not None and owner.changed)):
        attributes.refuse_shared(f, local if local.changed else owner or local, source)


def _rebind(f: Frame, local: Local, value: Val, source: ast.AST) -> Val:
    value = convert.settle(f, value, source)
    if isinstance(local.type, StaticTy):
        if not isinstance(value.type, StaticTy):
            f.fail(
                KernelTypeError,
                source,
                f"'{local.name}' is {local.type} and cannot become {convert.name_of(value)}",
                "use another name",
            )
        local.type = value.type
        return value
    t = convert.default_type(value)
    whole = isinstance(value, Const | Num) and convert.is_weak(value) and t == I32  # such a literal fits a float too
    if (
        local.literal
        and not whole
        and isinstance(t, ScalarTy)
        and isinstance(local.type, ScalarTy)
        and not convert.widens(t, local.type)
    ):
        f.fail(
            KernelTypeError,
            source,
            f"'{local.name}' holds {local.type}, and this is {t}",
            f"write {local.name} = {t}({local.literal}) on line {local.first.line}",
        )
    counts = isinstance(t, WitnessTy) and t.rank == 1 and isinstance(local.type, ScalarTy)
    if type(t) is not type(local.type) and not isinstance(value, Const) and not counts:
        what = f"'{local.name}' holds {local.type}, and this is {convert.name_of(value)}"
        f.fail(KernelTypeError, source, what, "use another name")
    return convert.coerce(f, value, local.type, source, f"'{local.name}' holds")


def _unpack(f: Frame, target: ast.Tuple, value: Val, source: ast.expr) -> None:
    for e in target.elts:
        if isinstance(e, ast.Starred):
            refuse(f, e)
    if isinstance(value, TupleV | VecV | FixedV):
        items: tuple[Val, ...] = value.items
    elif isinstance(value, WitnessV):
        items = value.axes
    else:
        f.fail(KernelTypeError, source, f"{convert.name_of(value)} cannot be unpacked", "unpack a tuple: x, y = (a, b)")
    if len(items) != len(target.elts):
        f.fail(KernelValueError, source, f"{len(items)} values for {len(target.elts)} names", "name every value")
    parts = source.elts if isinstance(source, ast.Tuple) and len(source.elts) == len(items) else [source] * len(items)
    for e, item, part in zip(target.elts, items, parts):
        assign(f, e, item, part)


def _place(f: Frame, target: ast.Subscript) -> Any:
    """The place that ``target[...]`` names, its index evaluated once: an ElementV, or a pair for a local group."""
    base = expressions.expr(f, target.value)
    subscripts.refuse_slice(f, target)
    if isinstance(base, ArrayV):
        index = expressions.expr(f, target.slice)
        f.at(target)
        return memory.store(f, base, index, target)
    if isinstance(base, ElementV) and isinstance(base.elem, FixedTy):
        memory.check_writable(f, base.array, target)
        return subscripts.fixed_place(f, base, target)
    base = convert.settle(f, base, target.value)
    if isinstance(base, VecV):
        f.fail(
            KernelTypeError,
            target,
            "the lanes of a vector cannot be assigned: vectors do not change",
            f"make a new one: {text(target.value)} = vec{base.type.lanes}(...)",
        )
    if isinstance(base, FixedV):
        index_v = convert.number(f, expressions.expr(f, target.slice), target.slice, "an integer index")
        return (base, index_v)
    if isinstance(base, TupleV | WitnessV):
        f.fail(
            KernelTypeError,
            target,
            f"an item of {base.type} cannot be assigned: tuples do not change",
            "make a new tuple, or use gw.local((n,), f32)",
        )
    f.fail(KernelTypeError, target, f"{convert.name_of(base)} cannot be written to")


def _store(f: Frame, place: Any, value: Val, source: ast.AST, target: ast.Subscript) -> None:
    if isinstance(place, ElementV):
        value = convert.coerce(f, value, place.elem, source, f"{text(target)} holds")
        f.at(target)
        memory.write(f, place, value)
        return
    group, n = place
    elem: Ty = group.type.elem
    new = convert.coerce(f, value, elem, source, f"{text(target)} holds")
    known = n.value if isinstance(n, Const) else n.const
    items = list(group.items)
    f.at(target)
    if isinstance(known, int):
        if not -len(items) <= known < len(items):
            f.fail(KernelValueError, target, f"index {known} is out of range for {group.type} of length {len(items)}")
        items[known] = new
    else:
        items = subscripts.replace(f, items, n, new, target)
    assign_group(f, target.value, FixedV(group.type, tuple(items)), source)


def assign_group(f: Frame, place: ast.expr, value: Val, source: ast.AST) -> None:
    """Write a changed vector or fixed array back to the name or field that holds it."""
    if isinstance(place, ast.Name) and place.id in f.local_names:
        local = f.locals.get(place.id)
        if local is None or not isinstance(value, StructV):
            f.fail(
                KernelTypeError,
                place,
                f"'{place.id}' cannot be changed item by item: {value.type} does not change",
                "change it through the struct that holds it, or make a new one",
            )
        attributes.changing(f, local, place)
        f.bind(place.id, value, place)
    elif isinstance(place, ast.Attribute):
        attributes.assign(f, place, value, source)
    else:
        f.fail(KernelTypeError, place, "this value has no name to write it back to", "give it a name first")


def augmented(f: Frame, node: ast.AugAssign) -> None:
    op = operators.BINARY.get(type(node.op))
    if op is None:
        f.fail(KernelSyntaxError, node, "the @= operator is not supported in a kernel")
    target = node.target
    if isinstance(target, ast.Subscript):
        place = _place(f, target)
        old = memory.read(f, place) if isinstance(place, ElementV) else subscripts.item(f, place, target)
        value = operators.binary(f, op, old, expressions.expr(f, node.value), node, target, node.value)
        _store(f, place, value, node, target)
        return
    if isinstance(target, ast.Attribute):
        base = expressions.expr(f, target.value)  # once: it may hold a call
        if isinstance(base, ElementV):
            place = attributes.member_place(f, base, target)
            old = memory.read(f, place)
            value = operators.binary(f, op, old, expressions.expr(f, node.value), node, target, node.value)
            attributes.write(f, place, value, node, target)
            return
    old = expressions.expr(f, _loaded(target))
    value = operators.binary(f, op, old, expressions.expr(f, node.value), node, target, node.value)
    assign(f, target, convert.settle(f, value, node), node)  # type: ignore[arg-type]


def _loaded(target: ast.expr) -> ast.expr:
    """The same place, read."""
    if isinstance(target, ast.Name):
        return ast.copy_location(ast.Name(target.id, ast.Load()), target)
    assert isinstance(target, ast.Attribute)
    return ast.copy_location(ast.Attribute(target.value, target.attr, ast.Load()), target)


def annotated(f: Frame, node: ast.AnnAssign) -> None:
    t = annotation(f, node.annotation)
    if not isinstance(node.target, ast.Name):
        f.fail(KernelSyntaxError, node, "only a name can be annotated in a kernel", "leave the annotation out")
    name = node.target.id
    local = f.locals.get(name)
    declared = f.declared.get(name) or (local.type if local else None)
    if declared is not None and declared != t:
        f.fail(KernelTypeError, node.annotation, f"'{name}' already holds {declared}", "use another name")
    f.declared[name] = t
    if node.value is not None:
        assign_name(f, name, expressions.expr(f, node.value), node.value, node.target)


def annotation(f: Frame, node: ast.expr) -> Ty:
    """The type written in an annotation inside a kernel."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        try:
            inner = ast.parse(node.value, mode="eval").body
        except SyntaxError:
            f.fail(KernelTypeError, node, f"{node.value!r} is not a type")
        for n in ast.walk(inner):
            ast.copy_location(n, node)
        node = inner
    v = expressions.expr(f, node)
    obj = convert.python_value(v)
    try:
        return resolve(obj, f.ctx.index_ir, f.bindings)
    except NotAType as e:
        f.fail(KernelTypeError, node, str(e))
