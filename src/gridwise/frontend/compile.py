"""``compile_kernel``: one specialisation of a Python function, as IR."""

from __future__ import annotations

import ast
import types
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from gridwise.ir import types as ir
from gridwise.ir.builder import Builder
from gridwise.ir.core import Kernel, Param, Region, Value
from gridwise.ir.types import Access
from gridwise.ir.verify import verify
from gridwise.lang.errors import KernelError, KernelSyntaxError, KernelTypeError
from gridwise.lang.records import dataclass
from gridwise.lang.target import Cap

from . import convert, expressions, generics, operators, statements
from .calls import shape_of
from .dependencies import Dependencies
from .scopes import Context, Frame, assigned, has_struct
from .signature import (
    ArgSpec,
    ArraySpec,
    ConstSpec,
    ParamSpec,
    ScalarSpec,
    annotation_loc,
    function_loc,
    leaf_paths,
    signature,
)
from .source import find
from .types import I64, NotAType, ScalarTy, Ty, memory_type, plain, resolve
from .values import ArrayV, Const, Num, Val, rebuild

_ACCESS: dict[str, Access] = {"slice": "read", "disjoint": "disjoint", "atomic": "atomic"}


@dataclass
class Compiled:
    """A specialisation: its IR, what it depends on, and how far one thread's ``thread.run`` reaches.

    The launch keeps threads * longest_run within ``ir.types.extent_limit(kernel.index)``.
    """

    kernel: Kernel
    dependencies: Dependencies
    longest_run: int = 1


def compile_kernel(
    fn: types.FunctionType,
    *,
    name: str,
    args: Mapping[str, ArgSpec],
    block: tuple[int, int, int],
    domain: int = 1,
    index: ir.Scalar = ir.I32,
    caps: frozenset[Cap] = frozenset(Cap),
    requires: Callable[..., Any] | Sequence[Callable[..., Any]] | None = None,
    unchecked: bool = False,
    fastmath: frozenset[str] = frozenset(),
) -> Compiled:
    """Lower ``fn`` for these argument types. Raises a KernelError that names the author's line."""
    spec = signature(fn)
    file, node = find(fn)
    if not isinstance(node, ast.FunctionDef):
        raise KernelSyntaxError("a kernel is a function, not a lambda", file.loc(node), "write def")
    body = Region()
    loc = function_loc(fn)
    builder = Builder(body, index, loc)
    ctx = Context(name, builder, body, block, domain, caps, Dependencies(), open=[body])
    ctx.deps.function(fn)
    frame = Frame(ctx, file, node, fn)
    ctx.inlining.append(node)
    frame.bindings = _bindings(fn, spec.params, args, index)
    params: list[Param] = []
    changed = assigned(node.body)
    try:
        for p in spec.params:
            _parameter(frame, fn, p, args[p.name], params, p.name in changed)
        for relation in requires if isinstance(requires, list | tuple) else (requires,):
            _assume(frame, relation, spec.names)
        statements_, tails, _ = shape_of(node)
        frame.kernel_tails = tails
        statements.block(frame, statements_)
    except RecursionError:
        raise KernelSyntaxError(
            "an expression or a block is nested too deeply", builder.loc or loc, "split it into functions"
        ) from None
    _drop_unread(body)
    kernel = Kernel(name, params, body, block, domain, index, loc, unchecked=unchecked, fastmath=fastmath)
    return Compiled(verify(kernel), ctx.deps, ctx.longest_run)


# -- parameters ------------------------------------------------------------------------------------


def _bindings(
    fn: types.FunctionType, params: tuple[ParamSpec, ...], args: Mapping[str, ArgSpec], index: ir.Scalar
) -> dict[Any, Ty]:
    """What each type variable of a generic kernel stands for in this specialisation."""
    out: dict[Any, Ty] = {}
    for p in params:
        var = p.elem
        if not isinstance(var, TypeVar):
            continue
        arg = args[p.name]
        given = arg.elem if isinstance(arg, ArraySpec) else arg.type if isinstance(arg, ScalarSpec) else None
        if given is None:
            continue
        if isinstance(given, ir.Struct):
            raise KernelTypeError(
                f"the parameter '{p.name}': the element type of a generic array of structs is not known",
                annotation_loc(fn, p.name),
                "annotate it with the struct itself",
            )
        t: Ty = plain(given) if isinstance(given, ir.Scalar) else resolve(given, index)
        if out.setdefault(var, t) != t:
            raise KernelTypeError(
                f"{var.__name__} is {out[var]} by an earlier argument, and {t} by '{p.name}'",
                annotation_loc(fn, p.name),
            )
        why = generics.unfit(var, t)
        if why:
            raise KernelTypeError(f"the parameter '{p.name}': {why}", annotation_loc(fn, p.name))
    return out


def _parameter(
    f: Frame, fn: types.FunctionType, p: ParamSpec, arg: ArgSpec, params: list[Param], changed: bool
) -> None:
    """Declare the machine arguments of one parameter, and bind its name."""
    loc = annotation_loc(fn, p.name)
    try:
        if isinstance(arg, ConstSpec):
            value = _constant(f, p, arg)
        elif isinstance(arg, ArraySpec):
            value = _array(f, p, arg, params)
        else:
            given = arg.type if isinstance(p.elem, TypeVar) else p.elem
            t = resolve(given, f.ctx.index_ir, f.bindings)
            scalars = []
            for path, leaf in leaf_paths(p.name, t):
                v = Value(leaf.ir, None, path)
                params.append(Param(path, v))
                scalars.append(Num(leaf, v))
            value = rebuild(t, scalars)
    except NotAType as e:
        raise KernelTypeError(f"the parameter '{p.name}': {e}", loc) from None
    f.ctx.b.loc = loc
    if not isinstance(value, ArrayV) and (changed or has_struct(value.type)):
        generics._value(f, f, p.name, value, value, f.node, True)
    else:
        generics._alias(f, p.name, value, f.node)


def _array(f: Frame, p: ParamSpec, arg: ArraySpec, params: list[Param]) -> ArrayV:
    elem = resolve(p.elem, f.ctx.index_ir, f.bindings)
    t = ir.ArrayType(
        memory_type(elem, f.ctx.index_ir),
        p.rank,
        "global",
        _ACCESS[p.kind],
        f.ctx.index_ir,
        None,
        arg.strided,
    )
    v = Value(t, None, p.name)
    params.append(Param(p.name, v))
    return ArrayV(p.name, v, elem, p.kind)


def _constant(f: Frame, p: ParamSpec, arg: ConstSpec) -> Val:
    value = expressions.lift(f, arg.value, p.name, f.node)
    if isinstance(value, Const) and value.weak and p.elem not in (int, float, bool, str):
        t = resolve(p.elem, f.ctx.index_ir, f.bindings)
        if isinstance(t, ScalarTy):
            fitted = convert.fits(f, value.value, convert.base(t), f.node)
            assert fitted.const is not None
            return Const(fitted.const, t)
    return value


def _assume(f: Frame, requires: Callable[..., Any] | None, names: tuple[str, ...]) -> None:
    """The launch has checked ``requires``: tell the analyses, one fact for each part of a conjunction.

    What cannot be said in the language stays a check of the launch alone.
    """
    if not isinstance(requires, types.FunctionType):
        return
    try:
        file, node = find(requires)
    except KernelError:
        return
    if not isinstance(node, ast.Lambda):
        returns = [s for s in node.body if isinstance(s, ast.Return) and s.value is not None]
        if len(returns) != 1 or node.body[-1] is not returns[0]:
            return
        test = returns[0].value
        assert test is not None
    else:
        test = node.body
    g = Frame(f.ctx, file, node, requires)
    for a in node.args.args:
        if a.arg not in names or f.flow is None:
            return
        local, state = f.locals[a.arg], f.flow[a.arg]
        value = state.value or f.read(a.arg, f.node)
        if isinstance(value, Num) and value.type.ir.is_int and not value.type.is_index:
            value = convert.cast(f, Num(convert.base(value.type), value.ir), I64)
        generics._alias(g, a.arg, value, node)
        del local
    parts = list(test.values) if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And) else [test]
    for part in parts:
        trial = Region()
        try:
            with f.ctx.into(trial):
                fact = operators.truth(g, expressions.expr(g, part), part)
        except KernelError:
            continue
        if isinstance(fact, Num) and all(op.code != "set" for op in trial.ops):
            f.b.region.ops += trial.ops
            f.b.emit("assume", (fact.ir,))


def _drop_unread(body: Region) -> None:
    """Remove variable slots that nothing reads, with their writes."""
    read = {op.operands[0] for op in body.walk() if op.code == "get"}

    def clean(region: Region) -> None:
        region.ops = [
            op
            for op in region.ops
            if not (op.code == "set" and op.operands[0] not in read)
            and not (op.code == "var" and op.result not in read)
        ]
        for op in region.ops:
            for inner in op.regions:
                clean(inner)

    clean(body)
