"""Statements: assignment, control flow and its effect on which names are bound."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

from gridwise.ir.core import Op, Region
from gridwise.lang.errors import KernelSyntaxError, KernelTypeError, KernelValueError
from gridwise.lang.target import has as target_has
from gridwise.lang.unsafe import unsafe as unsafe_block

from . import assignment, calls, convert, expressions, patterns
from .refuse import refuse
from .scopes import Flow, Frame, Loop, assigned, merge
from .source import text
from .types import BOOL, ScalarTy, StaticTy
from .values import (
    ArrayV,
    Const,
    ElementV,
    FixedV,
    IterV,
    Num,
    RangeV,
    Static,
    TupleV,
    Val,
    VecV,
)


def block(f: Frame, body: list[ast.stmt]) -> None:
    """Lower statements until one leaves: what follows it can never run."""
    for stmt in body:
        if f.flow is None:
            return
        handler = _HANDLERS.get(type(stmt))
        if handler is None:
            refuse(f, stmt)
        f.at(stmt)
        handler(f, stmt)


# -- branches --------------------------------------------------------------------------------------


def _if(f: Frame, node: ast.If) -> None:
    test = expressions.condition(f, node.test)
    if isinstance(test, Const):
        taken, dropped = (node.body, node.orelse) if test.value else (node.orelse, node.body)
        if asks_target(node.test):
            check_only(f, lambda: block(f, dropped))
        block(f, taken)
        return
    f.at(node.test)
    branch = f.b.if_(test.ir)
    f.flow = branches(
        f, [(branch.regions[0], lambda: block(f, node.body)), (branch.regions[1], lambda: block(f, node.orelse))]
    )
    then, orelse = branch.regions
    if not then.ops and orelse.ops:  # an early return: say it the other way round
        at = f.b.region.ops.index(branch)
        source = test.ir.op
        if source is not None and source.code == "not":
            branch.operands[0] = source.operands[0]
        else:
            inverse = Op("not", (test.ir,), {}, None, test.ir.type, branch.loc)
            f.b.region.ops.insert(at, inverse)
            assert inverse.result is not None
            branch.operands[0] = inverse.result
        branch.regions.reverse()


def branches(f: Frame, arms: list[tuple[Region, Callable[[], None]]]) -> Flow | None:
    """Build each arm from the same state; the state where they meet."""
    before = f.flow
    ends: list[Flow | None] = []
    for region, build in arms:
        assert before is not None
        f.flow = dict(before)
        with f.ctx.into(region):
            build()
        ends.append(f.flow)
    return merge(ends)


def asks_target(test: ast.expr) -> bool:
    for n in ast.walk(test):
        if isinstance(n, ast.Call) and isinstance(n.func, ast.Attribute | ast.Name):
            name = n.func.attr if isinstance(n.func, ast.Attribute) else n.func.id
            if name == target_has.__name__:
                return True
    return False


def check_only(f: Frame, build: Callable[[], object]) -> None:
    """Type-check the branch that this target does not take; its code is thrown away."""
    before, locals_ = f.flow, dict(f.locals)
    loops = [(len(loop.breaks), len(loop.continues)) for loop in f.loops]
    result = calls.snapshot(f)
    assert before is not None
    f.flow = dict(before)
    with f.ctx.into(Region()):
        build()
    f.flow = before
    f.locals = locals_
    calls.restore(f, result)
    for loop, (breaks, continues) in zip(f.loops, loops):
        del loop.breaks[breaks:], loop.continues[continues:]


# -- loops -----------------------------------------------------------------------------------------


def _while(f: Frame, node: ast.While) -> None:
    f.forget(assigned(node.body) | assigned([ast.Expr(node.test)]))
    op = f.b.while_()
    cond, body, orelse = op.regions
    before = f.flow
    with f.ctx.into(cond):
        test = expressions.condition(f, node.test)
        forever = isinstance(test, Const) and bool(test.value)
        never = isinstance(test, Const) and not test.value
        value = convert.constant(f, bool(test.value), BOOL) if isinstance(test, Const) else test
        f.b.emit("yield", (value.ir,))
    tested = f.flow
    if never:
        f.b.region.ops.remove(op)
        f.flow = before
        block(f, node.orelse)
        return
    loop = Loop()
    f.loops.append(loop)
    assert tested is not None
    f.flow = dict(tested)
    f.ctx.loop_depth += 1
    with f.ctx.into(body):
        block(f, node.body)
    f.ctx.loop_depth -= 1
    f.loops.pop()
    f.flow = None if forever else tested
    _orelse(f, orelse, node.orelse, loop)


def _orelse(f: Frame, region: Region, body: list[ast.stmt], loop: Loop) -> None:
    """The else of a loop runs when no break left it."""
    if body and f.flow is not None:
        with f.ctx.into(region):
            block(f, body)
    f.flow = merge([f.flow, *loop.breaks])


def _for(f: Frame, node: ast.For) -> None:
    over = convert.settle(f, expressions.expr(f, node.iter), node.iter)
    if isinstance(over, RangeV):
        _for_range(f, node, over)
    elif isinstance(over, IterV | TupleV | VecV | FixedV):
        _for_each(f, node, over.items)
    elif isinstance(over, ArrayV):
        f.fail(
            KernelTypeError,
            node.iter,
            "a loop over an array is not supported",
            f"loop over its indices: for k in range(len({text(node.iter)})): ... {text(node.iter)}[k]",
        )
    else:
        f.fail(
            KernelTypeError,
            node.iter,
            f"a loop goes over range(...), and this is {convert.name_of(over)}",
            f"write range({text(node.iter)})" if isinstance(over, Num | Const) else None,
        )


def _for_range(f: Frame, node: ast.For, r: RangeV) -> None:
    start, stop, step = (convert.number(f, v, node.iter, "an integer") for v in (r.start, r.stop, r.step))
    if isinstance(step, Const) and step.value == 0:
        f.fail(KernelValueError, node.iter, "the step of a range must not be zero", "write 1 or -1")
    for n in (start, stop, step):
        if not (isinstance(n.type, ScalarTy) and n.type.ir.is_int):
            f.fail(
                KernelTypeError,
                node.iter,
                f"range takes integers, and this is {convert.name_of(n)}",
                "convert it: i32(...)",
            )
    t = expressions.unify(f, [start, stop, step], node.iter)
    runs = all(isinstance(n, Const) for n in (start, stop, step)) and bool(
        range(int(start.value), int(stop.value), int(step.value))  # type: ignore[union-attr]
    )
    bounds = [convert.coerce(f, n, t, node.iter, "the range counts in") for n in (start, stop, step)]
    a, b, s = (n.ir for n in bounds if isinstance(n, Num))
    f.at(node)
    if not isinstance(step, Const) and not r.nonzero:
        b, s = _nonzero_step(f, a, b, s)
    f.forget(assigned(node.body) | assigned([ast.Assign([node.target], ast.Constant(0))]))
    name = node.target.id if isinstance(node.target, ast.Name) else "i"
    op = f.b.for_(a, b, s, name, r.unroll)
    body, orelse = op.regions
    before = f.flow
    loop = Loop()
    f.loops.append(loop)
    assert before is not None and isinstance(t, ScalarTy)
    f.flow = dict(before)
    f.ctx.loop_depth += 1
    with f.ctx.into(body):
        i = Num(t, body.args[0])
        assignment.assign(f, node.target, r.wrap(i) if r.wrap else i, node.iter)
        block(f, node.body)
    f.ctx.loop_depth -= 1
    f.loops.pop()
    ends = [f.flow, *loop.continues]
    if not runs:
        ends.append(before)
    f.flow = merge(ends)
    _orelse(f, orelse, node.orelse, loop)


def _nonzero_step(f: Frame, start: Any, stop: Any, step: Any) -> tuple[Any, Any]:
    """A step known only at run time: zero is a fault, and such a loop does not run."""
    zero, one = f.b.const(0, step.type), f.b.const(1, step.type)
    good = f.b.binary("ne", step, zero)
    f.b.emit("assert", (good,), message="the step of a range must not be zero")
    return f.b.select(good, stop, start), f.b.select(good, step, one)


def _for_each(f: Frame, node: ast.For, items: tuple[Val, ...]) -> None:
    """A loop over a group of known length: one copy of the body for each item."""
    if len(items) > 4096:
        f.fail(KernelValueError, node.iter, f"{len(items)} copies of the loop's body", "loop over range(...)")
    jumps = _has_jump(node.body)
    breaks = f.ctx.new_scope()
    loop = Loop((breaks, 0))
    outer = f.b.scope(breaks) if jumps else None
    f.loops.append(loop)
    with f.ctx.into(outer.regions[0] if outer else f.b.region):
        for item in items:
            if f.flow is None:
                break
            f.ctx.copies += 1
            if f.ctx.copies > calls.MOST_COPIES:
                f.fail(
                    KernelValueError,
                    node.iter,
                    f"more than {calls.MOST_COPIES} copies of loop bodies",
                    "loop over range(...)",
                )
            inner = None
            if jumps:
                loop.ids = (breaks, f.ctx.new_scope())
                inner = f.b.scope(loop.ids[1])
            with f.ctx.into(inner.regions[0] if inner else f.b.region):
                assignment.assign(f, node.target, item, node.iter)
                block(f, node.body)
            f.flow = merge([f.flow, *loop.continues])
            loop.continues.clear()
        f.loops.pop()
        if f.flow is not None:
            block(f, node.orelse)
    f.flow = merge([f.flow, *loop.breaks])


def _has_jump(body: list[ast.stmt]) -> bool:
    """Whether a break or continue of this very loop occurs."""
    for stmt in body:
        if isinstance(stmt, ast.Break | ast.Continue):
            return True
        inner: list[list[ast.stmt]] = []
        if isinstance(stmt, ast.For | ast.While):
            inner = [stmt.orelse]
        elif isinstance(stmt, ast.If):
            inner = [stmt.body, stmt.orelse]
        elif isinstance(stmt, ast.With):
            inner = [stmt.body]
        elif isinstance(stmt, ast.Match):
            inner = [case.body for case in stmt.cases]
        if any(map(_has_jump, inner)):
            return True
    return False


def _break(f: Frame, node: ast.Break) -> None:
    _jump(f, 0)


def _continue(f: Frame, node: ast.Continue) -> None:
    _jump(f, 1)


def _jump(f: Frame, which: int) -> None:
    loop = f.loops[-1]
    assert f.flow is not None
    (loop.continues if which else loop.breaks).append(f.flow)
    if loop.ids is None:
        f.b.emit("continue" if which else "break")
    else:
        f.b.emit("leave", (), id=loop.ids[which])
    f.flow = None


# -- the rest --------------------------------------------------------------------------------------


def _return(f: Frame, node: ast.Return) -> None:
    calls.leave(f, node)


def _expr(f: Frame, node: ast.Expr) -> None:
    if isinstance(node.value, ast.Constant):
        return  # a docstring, or ...
    value = expressions.expr(f, node.value)
    if isinstance(value, ElementV):
        convert.settle(f, value, node)


def _pass(f: Frame, node: ast.Pass) -> None:
    pass


def _assert(f: Frame, node: ast.Assert) -> None:
    message = ""
    if node.msg is not None:
        if isinstance(node.msg, ast.Constant) and isinstance(node.msg.value, str):
            message = node.msg.value
        else:
            v = expressions.expr(f, node.msg)
            obj = convert.python_value(v)
            if not isinstance(obj, str):
                f.fail(
                    KernelSyntaxError,
                    node.msg,
                    "the message of an assert is a plain string in a kernel",
                    'write "...", and print the values before it',
                )
            message = obj
    test = expressions.condition(f, node.test)
    f.at(node)
    if isinstance(test, Const):
        test = convert.constant(f, bool(test.value), BOOL)
    f.b.emit("assert", (test.ir,), message=message or text(node.test, 80))


def _with(f: Frame, node: ast.With) -> None:
    """``with gw.unsafe("reason"):`` is the only one."""
    item = node.items[0]
    call = item.context_expr
    fn = expressions.expr(f, call.func) if isinstance(call, ast.Call) else None
    if not (isinstance(fn, Static) and fn.obj is unsafe_block) or len(node.items) > 1:
        f.fail(
            KernelSyntaxError,
            node,
            "this with is not supported in a kernel",
            'the only one is with gw.unsafe("why this is sound"):',
        )
    assert isinstance(call, ast.Call)
    reason = (
        convert.python_value(expressions.expr(f, call.args[0])) if len(call.args) == 1 and not call.keywords else None
    )
    if not isinstance(reason, str) or not reason.strip():
        f.fail(
            KernelSyntaxError, call, "gw.unsafe needs the reason why the code inside is sound", 'write gw.unsafe("why")'
        )
    if item.optional_vars is not None:
        f.fail(KernelSyntaxError, item.optional_vars, "gw.unsafe gives no value", "leave out the as")
    outer, f.ctx.unsafe = f.ctx.unsafe, reason
    try:
        block(f, node.body)
    finally:
        f.ctx.unsafe = outer


def _function(f: Frame, node: ast.FunctionDef) -> None:
    if node.decorator_list:
        f.fail(
            KernelSyntaxError, node.decorator_list[0], "a decorator inside a kernel is not supported", "leave it out"
        )
    value = calls.closure(f, node)
    old = f.locals.get(node.name)
    if old is not None and isinstance(old.type, StaticTy):
        old.type = value.type
    elif old is not None:
        f.fail(KernelTypeError, node, f"'{node.name}' is already bound on line {old.first.line}", "use another name")
    f.bind(node.name, value, node)


_HANDLERS: dict[type[ast.stmt], Callable[[Frame, Any], None]] = {
    ast.Assign: lambda f, n: assignment.assignment(f, n),
    ast.AugAssign: lambda f, n: assignment.augmented(f, n),
    ast.AnnAssign: lambda f, n: assignment.annotated(f, n),
    ast.If: _if,
    ast.While: _while,
    ast.For: _for,
    ast.Break: _break,
    ast.Continue: _continue,
    ast.Return: _return,
    ast.Expr: _expr,
    ast.Pass: _pass,
    ast.Assert: _assert,
    ast.With: _with,
    ast.Match: lambda f, n: patterns.match(f, n),
    ast.FunctionDef: _function,
}
