"""Memory of a block and a thread, the barrier, atomics, subgroup choices, capabilities."""

from __future__ import annotations

import ast
from typing import Any

import numpy as np

from gridwise.ir.types import ArrayType, Scalar
from gridwise.lang import subgroup as lang_subgroup
from gridwise.lang.atomic import ORDERS, SCOPES
from gridwise.lang.errors import KernelSyntaxError, KernelTypeError, KernelValueError
from gridwise.lang.operation import Operation
from gridwise.lang.target import Cap

from . import builtin, calls, convert, library, memory
from .scopes import Frame
from .types import NotAType, ScalarTy, memory_type, resolve
from .values import ArrayV, Const, ElementV, Num, Static, Val, describe


def array(f: Frame, node: ast.Call, space: str) -> Val:
    """``gw.shared(shape, T)`` and ``gw.local(shape, T)``: the shape is a constant."""
    args = calls.positional(f, node)
    named = calls.keywords(f, node)
    shape_arg = args[0] if args else named.get("shape")
    elem_arg = args[1] if len(args) > 1 else named.get("elem")
    if shape_arg is None or elem_arg is None or len(args) + len(named) != 2:
        f.fail(KernelTypeError, node, f"{space} takes a shape and a type", f"write gw.{space}((256,), f32)")
    shape = _shape(f, shape_arg, space)
    try:
        elem = resolve(convert.python_value(elem_arg.value), f.ctx.index_ir, f.bindings)
        layout = memory_type(elem, f.ctx.index_ir)
    except NotAType as e:
        f.fail(KernelTypeError, elem_arg.node, str(e))
    if space == "shared" and f.ctx.loop_depth:
        f.fail(
            KernelSyntaxError,
            node,
            "shared memory is declared once, and this is in a loop",
            "declare it before the loop",
        )
    f.at(node)
    count = f.ctx.array_count(space)
    t = ArrayType(layout, len(shape), space, "disjoint", f.ctx.index_ir, shape)  # type: ignore[arg-type]
    made = ArrayV(f"{space}{count}", f.b.array(f"{space}{count}", t), elem, space)
    if space == "local" and f.ctx.loop_depth:
        _clear(f, made, shape, layout)
    return made


def _shape(f: Frame, arg: calls.Arg, space: str) -> tuple[int, ...]:
    value = convert.python_value(arg.value)
    if value is NotImplemented:
        f.fail(
            KernelValueError,
            arg.node,
            f"the shape of a {space} array is known at compile time",
            "write a literal, a captured constant or a Const parameter",
        )
    shape = tuple(value) if isinstance(value, tuple) else (value,)
    least = 0 if space == "shared" else 1
    for k, n in enumerate(shape):
        whole = isinstance(n, int | np.integer) and not isinstance(n, bool)
        if not whole or not (least if k == 0 else 1) <= int(n) <= 2**30:
            shown = n if whole else describe(n)
            f.fail(
                KernelValueError,
                arg.node,
                f"{shown} is not an extent of a {space} array",
                f"write gw.{space}((256,), f32)",
            )
    if not shape:
        f.fail(KernelValueError, arg.node, f"a {space} array needs at least one axis", f"write gw.{space}((1,), f32)")
    return tuple(int(n) for n in shape)


def _clear(f: Frame, a: ArrayV, shape: tuple[int, ...], layout: Any) -> None:
    """A local array declared in a loop is new, and zero, on every turn."""
    b, t = f.b, f.ctx.index_ir

    def axis(k: int, indices: list[Any]) -> None:
        if k == len(shape):
            _zero(f, ElementV(a, tuple(indices), (), a.elem))
            return
        loop = b.for_(b.const(0, t), b.const(shape[k], t), b.const(1, t), "k")
        with f.ctx.into(loop.regions[0]):
            axis(k + 1, [*indices, loop.regions[0].args[0]])

    axis(0, [])


def _zero(f: Frame, e: ElementV) -> None:
    zeros = [
        Num(t, f.b.const(False if t.ir.kind == "bool" else 0.0 if t.ir.is_float else 0, t.ir)) for t in e.elem.leaves
    ]
    from .values import rebuild

    memory.write(f, e, rebuild(e.elem, zeros))


def barrier(f: Frame, node: ast.Call) -> Val:
    builtin.positional(f, node, "barrier", 0)
    f.at(node)
    f.b.emit("barrier")
    return Static(None)


def has(f: Frame, node: ast.Call) -> Val:
    """``target.has(Cap.X)``: a constant."""
    (a,) = builtin.positional(f, node, "has", 1)
    cap = convert.python_value(a.value)
    if not isinstance(cap, Cap):
        f.fail(KernelTypeError, a.node, "target.has takes a capability", "write target.has(Cap.SUBGROUP)")
    return Const(cap in f.ctx.caps)


def choice(f: Frame, c: lang_subgroup.Choice, node: ast.Call) -> Val:
    """``subgroup.reduce(x, "max")``: the constant string picks the operation."""
    args = calls.positional(f, node)
    named = calls.keywords(f, node)
    op_arg = args[1] if len(args) == 2 else named.get("op")
    if not args or len(args) > 2 or set(named) - {"op"}:
        f.fail(KernelTypeError, node, f"subgroup.{c.name} takes a value and the name of an operation")
    name = convert.python_value(op_arg.value) if op_arg else c.default
    if not isinstance(name, str):
        f.fail(KernelTypeError, node, f"subgroup.{c.name}: the operation is a constant string", f'write "{c.default}"')
    try:
        op = c.choose(name)
    except ValueError as e:
        f.fail(KernelValueError, node, str(e))
    bare = ast.copy_location(ast.Call(node.func, node.args[:1], []), node)
    return library.operation(f, op, args[:1], bare)


def atomic(f: Frame, op: Operation, args: list[calls.Arg], node: ast.Call) -> Val:
    """``atomic.add(array, index, value, order=, scope=)``: the element's old value."""
    wanted = 4 if op.fn == "compare_exchange" else 3
    options = {"order": "relaxed", "scope": "device"}
    allowed: dict[str, tuple[str, ...]] = {"order": ORDERS, "scope": SCOPES}
    for key, arg in calls.keywords(f, node).items():
        value = convert.python_value(arg.value)
        if key not in allowed:
            f.fail(
                KernelTypeError, arg.node, f"atomic.{op.name} has no parameter '{key}'", "it takes order= and scope="
            )
        if value not in allowed[key]:
            f.fail(KernelValueError, arg.node, f"{key} is one of {', '.join(allowed[key])}")
        options[key] = value
    if len(args) != wanted:
        f.fail(
            KernelTypeError,
            node,
            f"atomic.{op.name} takes {wanted} arguments, and {len(args)} are given",
            f"write atomic.{op.name}(array, index, " + ("expected, desired)" if wanted == 4 else "value)"),
        )
    place, index = args[0].value, args[1].value
    if isinstance(place, ElementV):
        f.fail(
            KernelTypeError,
            args[0].node,
            "atomic operations take an array and an index",
            f"write atomic.{op.name}(array, i, value)",
        )
    if not isinstance(place, ArrayV):
        f.fail(
            KernelTypeError,
            args[0].node,
            f"atomic.{op.name} takes an array, and this is {convert.name_of(place)}",
            "pass an AtomicSlice or a shared array, then the index",
        )
    if place.kind not in ("atomic", "shared"):
        f.fail(
            KernelTypeError,
            args[0].node,
            f"{place.name} is not an AtomicSlice",
            f"annotate it as AtomicSlice[{place.elem}]"
            if place.kind != "local"
            else "a local array belongs to one thread: use + directly",
        )
    if not isinstance(place.elem, ScalarTy) or place.elem.ir.kind == "bool":
        f.fail(KernelTypeError, args[0].node, f"atomic operations work on numbers, and {place.name} holds {place.elem}")
    t: Scalar = place.elem.ir
    if op.types == "int" and not t.is_int:
        f.fail(
            KernelTypeError, args[0].node, f"atomic.{op.name} works on integers, and {place.name} holds {place.elem}"
        )
    if t.bits < 32:
        f.fail(
            KernelTypeError,
            args[0].node,
            f"atomic operations work on 32 and 64-bit numbers, and {place.name} holds {place.elem}",
            "use a wider element type",
        )
    sub = ast.copy_location(ast.Subscript(args[0].node, args[1].node, ast.Load()), node)  # type: ignore[arg-type]
    index = convert.settle(f, index, args[1].node)
    f.at(node)
    indices = memory.operands(f, place, index, sub)
    values = []
    for a in args[2:]:
        v = convert.coerce(f, a.value, place.elem, a.node, f"{place.name} holds")
        assert isinstance(v, Num)
        values.append(v.ir)
    f.at(node)
    old = f.b.atomic(op.fn, place.ir, indices, values, options["order"], options["scope"])
    memory.mark(f, old)
    return Num(place.elem, old)
