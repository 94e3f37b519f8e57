"""Expressions: each node gives a value, in Python's order of evaluation."""

from __future__ import annotations

import ast
import builtins
import enum
from collections.abc import Callable
from typing import Any

import numpy as np

from gridwise.ir import ops
from gridwise.ir import types as ir
from gridwise.ir.core import Region
from gridwise.ir.types import from_dtype
from gridwise.lang.errors import KernelNameError, KernelSyntaxError, KernelTypeError
from gridwise.lang.structs import is_struct
from gridwise.lang.vectors import Vector

from . import assignment, attributes, calls, convert, memory, operators, statements, subscripts
from .refuse import refuse
from .scopes import Frame, merge
from .source import text
from .types import (
    BOOL,
    F32,
    I32,
    I64,
    NotAType,
    ScalarTy,
    TupleTy,
    Ty,
    VecTy,
    enum_type,
    plain,
    struct_type,
)
from .values import (
    ArrayV,
    Const,
    FixedV,
    Num,
    RangeV,
    Static,
    StructV,
    TupleV,
    Val,
    VecV,
    WitnessV,
    leaves,
    rebuild,
)


def expr(f: Frame, node: ast.expr) -> Val:
    """The value of an expression; its operations are appended to the current region."""
    handler = _HANDLERS.get(type(node))
    if handler is None:
        refuse(f, node)
    f.at(node)
    return handler(f, node)


# -- constants and names ---------------------------------------------------------------------------


def _constant(f: Frame, node: ast.Constant) -> Val:
    v = node.value
    if isinstance(v, bool | int | float):
        return Const(v)
    if v is None or isinstance(v, str):
        return Static(v)
    what = "..." if v is Ellipsis else f"a {type(v).__name__} literal"
    f.fail(
        KernelSyntaxError,
        node,
        f"{what} is not supported in a kernel",
        "hold the two parts in a vec2[f32] or a struct" if isinstance(v, complex) else "write numbers",
    )


def _name(f: Frame, node: ast.Name) -> Val:
    return lookup(f, node.id, node)


def lookup(f: Frame, name: str, node: ast.AST) -> Val:
    """A name by Python's rules: local, enclosing functions, the closure, globals, builtins."""
    frame: Frame | None = f
    while frame is not None:
        if name in frame.local_names:
            if frame is f:
                return frame.read(name, node)
            return _outer(f, frame, name, node)
        last, frame = frame, frame.parent
    fn = last.fn
    deps = f.ctx.deps
    if fn is not None:
        if name in fn.__code__.co_freevars and fn.__closure__ is not None:
            cell = fn.__closure__[fn.__code__.co_freevars.index(name)]
            try:
                value = cell.cell_contents
            except ValueError:
                f.fail(KernelNameError, node, f"'{name}' has no value yet in the enclosing function")
            deps.cell(cell, value)
            return lift(f, value, name, node)
        if name in fn.__globals__:
            deps.name(fn.__globals__, name, fn.__globals__[name])
            return lift(f, fn.__globals__[name], name, node)
        if hasattr(builtins, name):
            deps.missing(fn.__globals__, name)
            return lift(f, getattr(builtins, name), name, node)
    import difflib

    known = sorted(f.local_names | set(f.fn.__globals__ if f.fn else ()) | {"range", "len", "min", "max", "abs", "int"})
    close = difflib.get_close_matches(name, [k for k in known if not k.startswith("_")], 1)
    f.fail(
        KernelNameError,
        node,
        f"'{name}' is not defined",
        f"did you mean {close[0]}?"
        if close
        else "define or import it at the top of the file, or pass it as a parameter",
    )


def _outer(f: Frame, owner: Frame, name: str, node: ast.AST) -> Val:
    """A name of an enclosing function, blamed on the place that reads it."""
    if owner.flow is None:
        f.fail(KernelNameError, node, f"'{name}' has no value here")
    state = owner.flow.get(name)
    if state is None or state.maybe:
        f.fail(KernelNameError, node, f"'{name}' is not bound on every path that leads here", f"bind {name} first")
    return owner.read(name, node)


def lift(f: Frame, obj: Any, name: str, node: ast.AST) -> Val:
    """A captured Python object as a value: numbers, enums and tuples of them are constants (rule 9)."""
    if isinstance(obj, enum.IntEnum):
        return Const(int(obj), enum_type(type(obj)))
    if isinstance(obj, bool | int | float) and type(obj) in (bool, int, float):
        return Const(obj)
    if isinstance(obj, np.generic):
        scalar = from_dtype(obj.dtype)
        if scalar is not None:
            return Const(obj.item(), plain(scalar))
    if isinstance(obj, tuple):
        cls = type(obj) if type(obj) is not tuple and hasattr(type(obj), "_fields") else None
        return TupleV(tuple(lift(f, item, name, node) for item in obj), cls)
    if is_struct(type(obj)):
        try:
            t = struct_type(type(obj), f.ctx.index_ir)
        except NotAType as e:
            f.fail(KernelTypeError, node, str(e))
        fields = {
            n: convert.coerce(f, lift(f, getattr(obj, n), name, node), ft, node, f"{name}.{n} holds")
            for n, ft in t.fields
        }
        return StructV(t, fields)
    if isinstance(obj, Vector):
        elem = plain(ir.SCALARS[obj.type.elem.name])
        items = tuple(convert.constant(f, item.item(), elem) for item in obj.items)
        return VecV(VecTy(elem, len(items)), items)
    return Static(obj)


# -- operators -------------------------------------------------------------------------------------


def _binop(f: Frame, node: ast.BinOp) -> Val:
    op = operators.BINARY.get(type(node.op))
    if op is None:
        f.fail(
            KernelSyntaxError, node, "the @ operator is not supported in a kernel", "write the loop, or a tile kernel"
        )
    a = expr(f, node.left)
    b = expr(f, node.right)
    return operators.binary(f, op, a, b, node, node.left, node.right)


def _unaryop(f: Frame, node: ast.UnaryOp) -> Val:
    return operators.unary(f, type(node.op), expr(f, node.operand), node)


def _boolop(f: Frame, node: ast.BoolOp) -> Val:
    is_and = isinstance(node.op, ast.And)

    def rest(k: int) -> Val:
        v = expr(f, node.values[k])
        if k == len(node.values) - 1:
            return v
        return short_circuit(f, is_and, v, lambda: rest(k + 1), node.values[k], node)

    return rest(0)


def condition(f: Frame, node: ast.expr) -> Num | Const:
    """An expression of which only the truth matters: the sides of ``and`` and ``or`` may be of different types."""
    if isinstance(node, ast.BoolOp):
        is_and = isinstance(node.op, ast.And)

        def rest(k: int) -> Val:
            t = condition(f, node.values[k])
            if k == len(node.values) - 1:
                return t
            return short_circuit(f, is_and, t, lambda: rest(k + 1), node.values[k], node)

        result = rest(0)
        assert isinstance(result, Num | Const)
        return result
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        t = condition(f, node.operand)
        f.at(node)
        return operators.invert(f, t, node.operand)
    return operators.truth(f, expr(f, node), node)


def short_circuit(f: Frame, is_and: bool, v: Val, then: Callable[[], Val], left: ast.AST, node: ast.AST) -> Val:
    """``v and then()``: the second side is computed only when it is needed, unless it has no effect."""
    v = convert.settle(f, v, left)
    if isinstance(v, WitnessV):
        v = convert.number(f, v, left)
    t = operators.truth(f, v, left)
    if isinstance(t, Const):
        return then() if bool(t.value) == is_and else v
    before = f.flow
    region = Region()
    assert before is not None
    f.flow = dict(before)
    with f.ctx.into(region):
        w = convert.settle(f, then(), node)
        if isinstance(w, WitnessV):
            w = convert.number(f, w, node)
        logical = v.type == BOOL and w.type == BOOL
        if logical and isinstance(w, Const):
            w = convert.constant(f, w.value, BOOL)
    after, f.flow = f.flow, before
    f.at(node)
    if logical and all(_pure(op.code) for op in region.ops) and not _binds(region):
        assert isinstance(w, Num)
        f.b.region.ops += region.ops
        return Num(BOOL, f.b.binary("and" if is_and else "or", t.ir, w.ir))
    out = unify(f, [v, w], node)
    first = convert.coerce(f, v, out, left, "this is")
    slots = [f.b.var("choice", leaf.ir) for leaf in out.leaves]
    for slot, leaf in zip(slots, leaves(first)):
        f.b.set(slot, leaf.ir)
    branch = f.b.if_(t.ir)
    branch.regions[0 if is_and else 1] = region
    with f.ctx.into(region):
        for slot, leaf in zip(slots, leaves(convert.coerce(f, w, out, node, "this is"))):
            f.b.set(slot, leaf.ir)
    f.flow = merge([before, after])
    return rebuild(out, [Num(t_, f.b.get(slot)) for t_, slot in zip(out.leaves, slots)])


def _pure(code: str) -> bool:
    return code == "get" or ops.TABLE[code].pure


def _binds(region: Region) -> bool:
    return any(op.code == "set" for op in region.ops)


def unify(f: Frame, items: list[Val], node: ast.AST) -> Ty:
    """The one type that all of these become implicitly."""
    result: Ty | None = None
    weak: list[Num | Const] = []
    for v in items:
        if isinstance(v, Num | Const) and convert.is_weak(v):
            weak.append(v)
            continue
        t = v.type
        if isinstance(v, WitnessV) and len(v.axes) == 1:
            t = v.axes[0].type
        if isinstance(v, TupleV):
            t = TupleTy(tuple(convert.default_type(item) for item in v.items), v.cls)
        if result is None or result == t:
            result = t
        elif isinstance(result, ScalarTy) and isinstance(t, ScalarTy):
            if convert.widens(result, t):
                result = t
            elif not convert.widens(t, result):
                a, b = convert.base(result), convert.base(t)
                if a == b:
                    result = a
                elif {a.name, b.name} == {"index", "i64"}:
                    result = I64
                else:
                    f.fail(
                        KernelTypeError, node, f"one side is {result} and the other {t}", f"convert one: {result}(...)"
                    )
        else:
            f.fail(KernelTypeError, node, f"one side is {result} and the other {t}", "give both sides one type")
    if result is None:
        defaults = {v.type for v in weak}
        result = F32 if defaults == {I32, F32} else weak[0].type
    return result


def _ifexp(f: Frame, node: ast.IfExp) -> Val:
    cond = condition(f, node.test)
    if isinstance(cond, Const):
        taken, dropped = (node.body, node.orelse) if cond.value else (node.orelse, node.body)
        if statements.asks_target(node.test):
            statements.check_only(f, lambda: expr(f, dropped))
        return expr(f, taken)
    before = f.flow
    sides: list[tuple[Region, Val, Any]] = []
    for side in (node.body, node.orelse):
        region = Region()
        assert before is not None
        f.flow = dict(before)
        with f.ctx.into(region):
            sides.append((region, convert.settle(f, expr(f, side), side), side))
    f.flow = before
    out = unify(f, [v for _, v, _ in sides], node)
    results = []
    for region, v, side in sides:
        with f.ctx.into(region):
            results.append(convert.coerce(f, v, out, side, "the other side is"))
    f.at(node)
    if not out.leaves and results[0].type != results[1].type:
        f.fail(KernelTypeError, node, "the choice between two compile-time objects must be known at compile time")
    if all(_pure(op.code) for region, _, _ in sides for op in region.ops) and not any(_binds(r) for r, _, _ in sides):
        for region, _, _ in sides:
            f.b.region.ops += region.ops
        picked = [
            Num(t, f.b.select(cond.ir, a.ir, b.ir))
            for t, a, b in zip(out.leaves, leaves(results[0]), leaves(results[1]))
        ]
        if isinstance(out, ScalarTy) and all(convert.is_weak(v) for _, v, _ in sides):
            return Num(out, picked[0].ir, None, (cond.ir, sides[0][1], sides[1][1]))
        return rebuild(out, picked) if out.leaves else results[0]
    slots = [f.b.var("choice", leaf.ir) for leaf in out.leaves]
    branch = f.b.if_(cond.ir)
    for k, ((region, _, _), value) in enumerate(zip(sides, results)):
        branch.regions[k] = region
        with f.ctx.into(region):
            for slot, leaf in zip(slots, leaves(value)):
                f.b.set(slot, leaf.ir)
    return rebuild(out, [Num(t, f.b.get(slot)) for t, slot in zip(out.leaves, slots)])


# -- comparison ------------------------------------------------------------------------------------


def _compare(f: Frame, node: ast.Compare) -> Val:
    nodes = [node.left, *node.comparators]

    def link(k: int, left: Val) -> Val:
        right = expr(f, nodes[k + 1])
        test = _one(f, node.ops[k], left, right, node, nodes[k], nodes[k + 1])
        if k == len(node.ops) - 1:
            return test
        return short_circuit(f, True, test, lambda: link(k + 1, right), nodes[k], node)

    return link(0, expr(f, node.left))


def _one(f: Frame, op: ast.cmpop, a: Val, b: Val, node: ast.Compare, left: ast.expr, right: ast.expr) -> Val:
    f.at(node)
    if isinstance(op, ast.In | ast.NotIn):
        found = _contains(f, a, b, node, left, right)
        return operators.invert(f, found, node) if isinstance(op, ast.NotIn) else found
    if isinstance(op, ast.Is | ast.IsNot):
        if isinstance(a, Static) and isinstance(b, Static):
            return Const((a.obj is b.obj) == isinstance(op, ast.Is))
        if isinstance(b, Static) and b.obj is None:
            f.fail(
                KernelSyntaxError,
                node,
                "is None is not supported in a kernel: a value here is never None",
                f"use an Option: {text(left)}.is_some",
            )
        f.fail(
            KernelSyntaxError,
            node,
            "is compares Python objects, and values on a device have no identity",
            f"write {text(left)} {'==' if isinstance(op, ast.Is) else '!='} {text(right)}",
        )
    return operators.binary(f, operators.COMPARE[type(op)], a, b, node, left, right)


def _contains(f: Frame, a: Val, b: Val, node: ast.AST, left: ast.expr, right: ast.expr) -> Num | Const:
    b = convert.settle(f, b, right)
    if isinstance(b, ArrayV):
        return _in_array(f, a, b, node, left)
    if isinstance(b, TupleV | FixedV | VecV):
        found: Num | Const = Const(False)
        for item in b.items:
            same = operators.binary(f, "eq", a, item, node, left, right)
            assert isinstance(same, Num | Const)
            if isinstance(found, Const) and isinstance(same, Const):
                found = Const(bool(found.value) or bool(same.value))
            elif isinstance(found, Const):
                found = found if found.value else same
            elif isinstance(same, Const):
                found = same if same.value else found
            else:
                found = Num(BOOL, f.b.binary("or", found.ir, same.ir))
        return found
    if isinstance(b, RangeV) and b.wrap is None and isinstance(b.step, Const) and b.step.value == 1:
        low = operators.binary(f, "ge", a, b.start, node, left, right)
        high = operators.binary(f, "lt", a, b.stop, node, left, right)
        both = operators.binary(f, "and", low, high, node, left, right)
        assert isinstance(both, Num | Const)
        return both
    f.fail(
        KernelTypeError,
        right,
        f"'in' asks whether an array has an index, or a tuple an item; this is {convert.name_of(b)}",
    )


def _in_array(f: Frame, a: Val, array: ArrayV, node: ast.AST, left: ast.expr) -> Num:
    """Whether the array has an element of that index. A witness is never negative."""
    rank = array.layout.rank
    a = convert.settle(f, a, left)
    parts: list[Val] = list(a.axes if isinstance(a, WitnessV) else a.items if isinstance(a, TupleV) else (a,))
    if len(parts) != rank:
        get = f"thread.index_{rank}d()" if rank <= 3 else f"{rank} indices"
        f.fail(
            KernelTypeError,
            node,
            f"{array.name} has {memory.axes(rank)}, and this index has {len(parts)}",
            f"take the index from {get}",
        )
    result = None
    for part, extent in zip(parts, memory.dims(f, array)):
        n = convert.number(f, part, left, "an integer index")
        if not (isinstance(n.type, ScalarTy) and n.type.ir.is_int):
            f.fail(
                KernelTypeError,
                left,
                f"an index is an integer, and this is {convert.name_of(n)}",
                memory.fix_float(left),
            )
        n = convert.as_num(f, n, left)
        if n.type.ir.kind == "uint":  # the length is never negative: compare as u64
            wide = operators.U64
            tests = [
                f.b.binary("lt", convert.cast(f, n, wide).ir, convert.cast(f, convert.as_num(f, extent, node), wide).ir)
            ]
        else:
            p, q = operators.common(f, n, extent, "lt", left, left)
            tests = [f.b.binary("lt", p.ir, q.ir)]
            if not isinstance(a, WitnessV):
                tests.insert(0, f.b.binary("ge", p.ir, f.b.const(0, p.type.ir)))
        for test in tests:
            result = test if result is None else f.b.binary("and", result, test)
    assert result is not None
    return Num(BOOL, result)


# -- access and groups -----------------------------------------------------------------------------


def _tuple(f: Frame, node: ast.Tuple) -> Val:
    for e in node.elts:
        if isinstance(e, ast.Starred):
            refuse(f, e)
    return TupleV(tuple(convert.settle(f, expr(f, e), e) for e in node.elts))


def _lambda(f: Frame, node: ast.Lambda) -> Val:
    return calls.closure(f, node)


def _named(f: Frame, node: ast.NamedExpr) -> Val:
    value = expr(f, node.value)
    assignment.assign_name(f, node.target.id, value, node.value, node.target)
    return f.read(node.target.id, node)


_HANDLERS: dict[type[ast.expr], Callable[[Frame, Any], Val]] = {
    ast.Constant: _constant,
    ast.Name: _name,
    ast.BinOp: _binop,
    ast.UnaryOp: _unaryop,
    ast.BoolOp: _boolop,
    ast.IfExp: _ifexp,
    ast.Compare: _compare,
    ast.Call: lambda f, n: calls.call(f, n),
    ast.Attribute: lambda f, n: attributes.attribute(f, n),
    ast.Subscript: lambda f, n: subscripts.subscript(f, n),
    ast.Tuple: _tuple,
    ast.Lambda: _lambda,
    ast.NamedExpr: _named,
}
