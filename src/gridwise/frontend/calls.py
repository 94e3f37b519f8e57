"""Calls: every function of the author's is inlined, with Python's rules for arguments; recursion is refused."""

from __future__ import annotations

import ast
import inspect
import types
from typing import Any

from gridwise.ir.core import Op, Region
from gridwise.ir.types import VarType
from gridwise.lang.errors import KernelSyntaxError, KernelTypeError, KernelValueError
from gridwise.lang.operation import Operation
from gridwise.lang.records import dataclass, field

from . import convert, expressions, generics, library, operators, statements
from .refuse import refuse
from .scopes import Flow, Frame, Local, State, merge, parameters
from .signature import hints_of
from .source import SourceFile, find, unwrap
from .structure import structured, tail_returns
from .types import F32, I32, ScalarTy, StaticTy, Ty
from .values import Const, FuncV, MethodV, Num, Static, StructV, Val

RETURN = "<result>"
MOST_COPIES = 20_000  # of inlined bodies and unrolled turns: beyond it a kernel is a mistake, and compiles for minutes
_NODES: dict[int, tuple[ast.AST, list[ast.stmt], set[int], int]] = {}


@dataclass
class Result:
    """How an inlined function gives its value back."""

    scope: int  # of `leave`; 0 if every return is in tail position
    single: bool
    tails: set[int]
    annotation: Ty | None
    region: Region | None = None  # where the body began, if no return leaves from inside it
    flows: list[Flow] = field(default_factory=list)
    weak: list[tuple[Op, Const, ast.AST]] = field(default_factory=list)
    returned: bool = False
    nothing: bool = False


@dataclass(frozen=True)
class Arg:
    """An argument of a call and its node, for reports."""

    value: Val
    node: ast.AST


def shape_of(node: ast.FunctionDef) -> tuple[list[ast.stmt], set[int], int]:
    """The body with early returns made structured, the returns in tail position, and how many returns there are."""
    known = _NODES.get(id(node))
    if known is None or known[0] is not node:
        body = structured(node.body)
        returns = [n for stmt in body for n in _walk(stmt) if isinstance(n, ast.Return)]
        known = _NODES[id(node)] = (node, body, tail_returns(body), len({id(r) for r in returns}))
    return known[1], known[2], known[3]


def _walk(node: ast.AST) -> list[ast.AST]:
    """The nodes of one function: those of functions inside it are their own."""
    if isinstance(node, ast.FunctionDef | ast.Lambda | ast.ClassDef | ast.AsyncFunctionDef):
        return []
    return [node, *(n for child in ast.iter_child_nodes(node) for n in _walk(child))]


# -- which function --------------------------------------------------------------------------------


def call(f: Frame, node: ast.Call) -> Val:
    """The value of a call."""
    callee = expressions.expr(f, node.func)
    if isinstance(callee, Static):
        return call_static(f, callee.obj, node)
    if isinstance(callee, FuncV):
        return inline(f, None, callee, positional(f, node), keywords(f, node), node)
    if isinstance(callee, MethodV):
        return library.method(f, callee, node)
    f.fail(
        KernelTypeError,
        node.func,
        f"{convert.name_of(callee)} cannot be called",
        "only functions and types can be called",
    )


def call_static(f: Frame, obj: Any, node: ast.Call) -> Val:
    handler = library.handler(obj)
    if handler is not None:
        return handler(f, node)
    if isinstance(obj, Operation):
        return library.operation(f, obj, positional(f, node), node)
    made = library.construct(f, obj, node)
    if made is not None:
        return made
    if isinstance(obj, types.MethodType):
        fn = unwrap(obj.__func__)
        if fn is not None:
            owner = Arg(expressions.lift(f, obj.__self__, "self", node), node.func)
            return inline(f, fn, None, [owner, *positional(f, node)], keywords(f, node), node)
    fn = unwrap(obj)
    if fn is not None:
        return inline(f, fn, None, positional(f, node), keywords(f, node), node)
    library.unknown(f, obj, node)


def positional(f: Frame, node: ast.Call) -> list[Arg]:
    for a in node.args:
        if isinstance(a, ast.Starred):
            refuse(f, a)
    return [Arg(expressions.expr(f, a), a) for a in node.args]


def keywords(f: Frame, node: ast.Call) -> dict[str, Arg]:
    for k in node.keywords:
        if k.arg is None:
            f.fail(KernelSyntaxError, k.value, "** in a call is not supported in a kernel", "write the arguments")
    return {k.arg: Arg(expressions.expr(f, k.value), k.value) for k in node.keywords if k.arg is not None}


def closure(f: Frame, node: ast.FunctionDef | ast.Lambda) -> FuncV:
    """A nested function or lambda: its defaults are evaluated now, its free names when it runs."""
    args = [*node.args.posonlyargs, *node.args.args]
    defaults = {
        a.arg: expressions.expr(f, d) for a, d in zip(args[len(args) - len(node.args.defaults) :], node.args.defaults)
    }
    defaults |= {a.arg: expressions.expr(f, d) for a, d in zip(node.args.kwonlyargs, node.args.kw_defaults) if d}
    return FuncV(node, f, defaults)


# -- inlining --------------------------------------------------------------------------------------


def inline(
    f: Frame,
    fn: types.FunctionType | None,
    nested: FuncV | None,
    args: list[Arg],
    named: dict[str, Arg],
    node: ast.AST,
) -> Val:
    """The value of calling a Python function (``fn``) or one defined inside the kernel (``nested``) here."""
    file: SourceFile
    if fn is not None:
        file, callee = find(fn, f.loc(node))
        f.ctx.deps.function(fn)
        hints = hints_of(fn)
        defaults = {
            name: Arg(expressions.lift(f, p.default, name, node), node)
            for name, p in inspect.signature(fn, follow_wrapped=False).parameters.items()
            if p.default is not p.empty and name not in named
        }
    else:
        assert nested is not None
        file, callee = nested.frame.file, nested.node
        hints = {}
        defaults = {name: Arg(v, node) for name, v in nested.defaults.items()}
    name = getattr(callee, "name", "<lambda>")
    if any(callee is c for c in f.ctx.inlining):
        f.fail(
            KernelSyntaxError,
            node,
            f"{name} calls itself: recursion is not supported in a kernel",
            "write a loop, with gw.local((n,), T) as the stack if it needs one",
        )
    if len(f.ctx.inlining) > 64:
        f.fail(KernelSyntaxError, node, "calls are nested more than 64 deep")
    f.ctx.copies += 1
    if f.ctx.copies > MOST_COPIES:
        f.fail(
            KernelSyntaxError,
            node,
            f"the kernel is too large: more than {MOST_COPIES} calls are inlined",
            "loop with for k in range(...) instead of over a tuple, or call less",
        )
    if _is_generator(callee):
        f.fail(
            KernelSyntaxError,
            node,
            f"{name} is a generator, which is not supported in a kernel",
            "write the loop where its values are used",
        )
    g = Frame(f.ctx, file, callee, fn, f.loc(node), nested.frame if nested else None)
    if nested is not None:
        g.bindings = dict(nested.frame.bindings)
        hints = {a.arg: a.annotation for a in parameters(callee) if a.annotation is not None}
        hints = {n: _nested_hint(nested.frame, a) for n, a in hints.items()}
        if isinstance(callee, ast.FunctionDef) and callee.returns is not None:
            hints["return"] = _nested_hint(nested.frame, callee.returns)
    bound = _match_arguments(f, callee, name, args, named, defaults, node)
    f.ctx.inlining.append(callee)
    try:
        generics.bind_parameters(f, g, callee, name, hints, bound, node)
        if isinstance(callee, ast.Lambda):
            value = expressions.expr(g, callee.body)
            f.ctx.b.loc = f.loc(node)
            return convert.settle(g, value, callee.body)
        return _body(f, g, callee, name, hints, node)
    finally:
        f.ctx.inlining.pop()


def _nested_hint(f: Frame, node: ast.expr) -> Any:
    v = expressions.expr(f, node)
    obj = convert.python_value(v)
    return obj if obj is not NotImplemented else inspect.Parameter.empty


def _is_generator(node: ast.AST) -> bool:
    body = node.body if isinstance(node, ast.FunctionDef) else []
    return any(isinstance(n, ast.Yield | ast.YieldFrom) for s in body for n in _walk(s))


def _match_arguments(
    f: Frame,
    callee: ast.FunctionDef | ast.Lambda,
    name: str,
    args: list[Arg],
    named: dict[str, Arg],
    defaults: dict[str, Arg],
    node: ast.AST,
) -> dict[str, Arg]:
    """Python's rules: positional, then keyword, then default."""
    a = callee.args
    if a.vararg or a.kwarg:
        star = f"*{a.vararg.arg}" if a.vararg else f"**{a.kwarg.arg}"  # type: ignore[union-attr]
        f.fail(
            KernelSyntaxError, node, f"{name} takes {star}, which is not supported in a kernel", "name every parameter"
        )
    order = [p.arg for p in [*a.posonlyargs, *a.args]]
    only_position = {p.arg for p in a.posonlyargs}
    allowed = order + [p.arg for p in a.kwonlyargs]
    if len(args) > len(order):
        f.fail(KernelTypeError, node, f"{name} takes {_count(len(order))}, and {len(args)} are given")
    bound = dict(zip(order, args))
    for key, arg in named.items():
        if key not in allowed or key in only_position:
            import difflib

            close = difflib.get_close_matches(key, allowed, 1)
            f.fail(
                KernelTypeError,
                arg.node,
                f"{name} has no parameter '{key}'",
                f"did you mean {close[0]}?" if close else None,
            )
        if key in bound:
            f.fail(KernelTypeError, arg.node, f"{name} is given '{key}' twice")
        bound[key] = arg
    missing = [p for p in allowed if p not in bound and p not in defaults]
    if missing:
        f.fail(
            KernelTypeError, node, f"{name} is missing the argument '{missing[0]}'", f"it takes {', '.join(allowed)}"
        )
    return {p: bound.get(p) or defaults[p] for p in allowed}


def _count(n: int) -> str:
    return "no arguments" if n == 0 else "1 argument" if n == 1 else f"{n} arguments"


def _body(f: Frame, g: Frame, callee: ast.FunctionDef, name: str, hints: dict[str, Any], node: ast.AST) -> Val:
    body, tails, returns = shape_of(callee)
    nested_tails = len(tails) < returns
    annotated = generics.return_type(f, g, hints.get("return"), callee)
    g.result = r = Result(f.ctx.new_scope() if nested_tails else 0, returns == 1, tails, annotated)
    if not r.scope:
        r.region = f.ctx.open[-1]
    if r.scope:
        op = f.b.scope(r.scope)
        with f.ctx.into(op.regions[0]):
            statements.block(g, body)
    else:
        statements.block(g, body)
    fell = g.flow
    ends = [*r.flows, *([fell] if fell is not None else [])]
    if not ends:
        f.fail(KernelValueError, node, f"{name} never returns: every path through it loops forever")
    if r.returned and fell is not None:
        where = callee.body[-1]
        g.fail(
            KernelTypeError,
            where,
            f"{name} returns a value on some paths, and ends here without one",
            "return a value on every path",
        )
    f.ctx.b.loc = f.loc(node)
    if not r.returned:
        if annotated is not None:
            g.fail(KernelTypeError, callee.body[-1], f"{name} is declared to return {annotated}, and returns nothing")
        return Static(None)
    g.flow = merge(ends)
    return g.read(RETURN, callee)


def leave(f: Frame, node: ast.Return) -> None:
    """Lower a ``return``."""
    r: Result | None = f.result
    if r is None:
        if node.value is not None and not (isinstance(node.value, ast.Constant) and node.value.value is None):
            f.fail(KernelTypeError, node, "a kernel returns nothing", "write the result to a DisjointSlice parameter")
        if id(node) not in f.kernel_tails:
            f.b.emit("return")
        f.flow = None
        return
    value: Val = Static(None) if node.value is None else convert.settle(f, expressions.expr(f, node.value), node.value)
    source = node.value or node
    nothing = isinstance(value, Static) and value.obj is None
    if (r.returned and nothing) or (r.nothing and not nothing):
        f.fail(
            KernelTypeError,
            node,
            f"{f.name} returns a value on some paths and none on others",
            "return a value on every path",
        )
    r.nothing, r.returned = nothing, not nothing
    assert f.flow is not None
    if not nothing:
        f.at(node)
        _give(f, r, value, source)
    r.flows.append(f.flow)
    if id(node) not in r.tails:
        f.b.emit("leave", (), id=r.scope)
    f.flow = None


def _give(f: Frame, r: Result, value: Val, source: ast.AST) -> None:
    """Hold the returned value. With several returns its type is that of the first which is not a bare literal."""
    assert f.flow is not None
    if r.annotation is not None:
        value = convert.coerce(f, value, r.annotation, source, f"{f.name} returns")
    if r.single:
        here = f.ctx.open[-1] is r.region  # nothing was branched around: the value itself is the result
        if here or isinstance(value, Const | Static):
            f.locals[RETURN] = Local(RETURN, StaticTy("the result", id(value), value), [], f.loc(source))
            f.flow[RETURN] = State(value, f.ctx.open[-1])
        else:
            f.bind(RETURN, convert.definite(f, value, source), source)
        return
    local = f.locals.get(RETURN)
    if isinstance(value, Const) and value.weak:
        if local is None or r.weak:
            _weak(f, r, value, source)
            return
        value = convert.coerce(f, value, local.type, source, f"{f.name} returns")
    elif local is None:
        value = convert.definite(f, value, source)
    elif r.weak:
        _decide(f, r, convert.default_type(value))
        value = convert.coerce(f, value, local.type, source, f"{f.name} returns")
    else:
        value = convert.coerce(f, value, local.type, source, f"another return gives {local.type}; {f.name} returns")
    f.bind(RETURN, value, source)


def _weak(f: Frame, r: Result, value: Const, source: ast.AST) -> None:
    """A literal among several returns: its type is decided by the others, so the constant may be rewritten."""
    number = convert.definite(f, value, source)
    assert isinstance(number, Num) and number.ir.op is not None and f.flow is not None
    r.weak.append((number.ir.op, value, source))
    local = f.locals.get(RETURN)
    if local is not None and local.type != number.type:
        assert isinstance(local.type, ScalarTy)
        wider = F32 if {local.type, number.type} == {F32, I32} else local.type
        _decide(f, r, wider, keep=True)
    if local is None:
        f.bind(RETURN, number, source)
    else:
        f.b.set(local.slots[0], number.ir)
    f.flow[RETURN] = State(None, None)


def _decide(f: Frame, r: Result, t: Ty, keep: bool = False) -> None:
    """Give the literals returned so far the type ``t``."""
    local = f.locals[RETURN]
    for op, value, source in r.weak:
        if not isinstance(t, ScalarTy):
            f.fail(
                KernelTypeError, source, f"{f.name} returns {t} on another path, and this is {convert.name_of(value)}"
            )
        with f.ctx.into(Region()):
            fitted = convert.coerce(f, value, t, source, f"{f.name} returns")
        assert isinstance(fitted, Num) and op.result is not None
        op.attrs["value"], op.result.type = fitted.const, t.ir
    assert isinstance(t, ScalarTy)
    local.type = t
    local.slots[0].type = VarType(t.ir)
    if not keep:
        r.weak.clear()


def snapshot(f: Frame) -> Any:
    """The state of a function's result, to undo a branch that is only type-checked."""
    r = f.result
    return None if r is None else (len(r.flows), r.returned, r.nothing, len(r.weak))


def restore(f: Frame, state: Any) -> None:
    r = f.result
    if r is not None:
        del r.flows[state[0] :], r.weak[state[3] :]
        r.returned, r.nothing = state[1], state[2]


# -- structs as receivers --------------------------------------------------------------------------


def struct_operator(f: Frame, op: str, a: Val, b: Val, node: ast.AST, left: ast.AST) -> Val:
    """``a op b`` where a struct takes part: its dunder method, or field-wise ``==`` as of a dataclass."""
    name = operators.DUNDER.get(op, "")
    for receiver, other, method in ((a, b, name), (b, a, name.replace("__", "__r", 1))):
        own = receiver.type.cls.__dict__.get(method) if isinstance(receiver, StructV) else None
        if isinstance(own, types.FunctionType) and own.__code__.co_filename != "<string>":  # not the dataclass's own
            return call_method(f, receiver, method, [Arg(other, node)], node, left)
    if op == "ne":
        return operators.invert(f, struct_operator(f, "eq", a, b, node, left), node)
    if op == "eq" and isinstance(a, StructV) and isinstance(b, StructV) and a.type == b.type:
        return operators.equality(f, op, list(a.fields.values()), list(b.fields.values()), node, left, node)
    f.fail(
        KernelTypeError,
        node,
        f"{operators.SYMBOL[op]} has no meaning for {convert.name_of(a)} and {convert.name_of(b)}",
        f"give {a.type if isinstance(a, StructV) else b.type} the method {name}" if name else None,
    )


def call_method(f: Frame, receiver: Val, name: str, args: list[Arg], node: ast.AST, place: ast.AST) -> Val:
    """Call a method of a struct on a value."""
    assert isinstance(receiver, StructV)
    fn = unwrap(receiver.type.cls.__dict__.get(name))
    if fn is None:
        f.fail(KernelTypeError, node, f"{receiver.type} has no method {name}", f"define {name} in {receiver.type}")
    return inline(f, fn, None, [Arg(receiver, place), *args], {}, node)
