"""Python's builtins in kernels."""

from __future__ import annotations

import ast
import math
from typing import Any

from gridwise.lang.errors import KernelSyntaxError, KernelTypeError, KernelValueError
from gridwise.lang.operation import Operation
from gridwise.lang.records import replace

from . import calls, convert, expressions, library, memory, operators
from .scopes import Frame
from .source import text
from .types import BOOL, F32, F64, I32, I64, NotAType, ScalarTy, resolve
from .values import (
    ArrayV,
    Const,
    FixedV,
    IterV,
    Num,
    RangeV,
    Static,
    TupleV,
    Val,
    VecV,
    WitnessV,
)


def positional(f: Frame, node: ast.Call, name: str, least: int, most: int | None = None) -> list[calls.Arg]:
    """The positional arguments of a call that takes no keywords."""
    if node.keywords:
        key = node.keywords[0].arg or "**"
        f.fail(KernelTypeError, node.keywords[0].value, f"{name} has no parameter '{key}' in a kernel")
    args = calls.positional(f, node)
    most = least if most is None else most
    if not least <= len(args) <= most:
        wanted = calls._count(least) if least == most else f"{least} to {most} arguments"
        f.fail(KernelTypeError, node, f"{name} takes {wanted}, and {len(args)} are given")
    return [calls.Arg(convert.settle(f, a.value, a.node), a.node) for a in args]


def int_(f: Frame, node: ast.Call) -> Val:
    """``int(x)``: a signed integer of the same value, as Python's: a witness gives its index, a u32 an i64."""
    (a,) = positional(f, node, "int", 1)
    if isinstance(a.value, Static) and isinstance(a.value.obj, str):
        f.fail(KernelTypeError, a.node, "int of a string", "write the number")
    n = convert.number(f, a.value, a.node)
    if isinstance(n, Const) and n.weak:
        if isinstance(n.value, float) and not math.isfinite(n.value):
            f.fail(KernelValueError, node, f"int({n.value}) has no value")
        return Const(int(n.value))
    p = convert.as_num(f, n, a.node)
    t = convert.base(p.type)
    f.at(node)
    if t.ir.kind == "uint":
        if t.ir.bits == 64:
            f.fail(KernelTypeError, node, "int of a u64 has no type that holds it", f"write i64({text(a.node)})")
        return convert.cast(f, p, I64 if t.ir.bits == 32 else I32)
    if t.ir.is_int:
        return Num(t, p.ir, p.const)
    return convert.cast(f, p, I64 if t == F64 else I32)


def float_(f: Frame, node: ast.Call) -> Val:
    """``float(x)``: f32, or f64 from a 64-bit number, as ``/`` gives."""
    (a,) = positional(f, node, "float", 1)
    if isinstance(a.value, Static) and isinstance(a.value.obj, str):
        try:
            return Const(float(a.value.obj))
        except ValueError:
            f.fail(KernelValueError, a.node, f"{a.value.obj!r} is not a number")
    n = convert.number(f, a.value, a.node)
    if isinstance(n, Const) and n.weak:
        try:
            return Const(float(n.value))
        except OverflowError:
            f.fail(KernelValueError, node, "the number does not fit a float")
    p = convert.as_num(f, n, a.node)
    if p.type.ir.is_float:
        return p
    f.at(node)
    return convert.cast(f, p, F64 if p.type.ir.bits == 64 and not p.type.is_index else F32)


def bool_(f: Frame, node: ast.Call) -> Val:
    (a,) = positional(f, node, "bool", 1)
    return operators.truth(f, a.value, a.node)


def abs_(f: Frame, node: ast.Call) -> Val:
    (a,) = positional(f, node, "abs", 1)
    f.at(node)
    if isinstance(a.value, VecV):
        lanes = [operators.absolute(f, item, a.node) for item in a.value.items]
        return VecV(a.value.type, tuple(lanes))  # type: ignore[arg-type]
    return operators.absolute(f, a.value, a.node)


def extreme(f: Frame, node: ast.Call, op: str) -> Val:
    """``min`` and ``max`` of several values, or of one tuple."""
    args = positional(f, node, op, 1, 64)
    if len(args) == 1:
        group = args[0].value
        if not isinstance(group, TupleV | VecV | FixedV):
            hint = "write a for loop that keeps the smallest" if isinstance(group, ArrayV) else f"write {op}(a, b)"
            f.fail(KernelTypeError, node, f"{op} of {convert.name_of(group)}", hint)
        args = [calls.Arg(v, args[0].node) for v in group.items]
        if not args:
            f.fail(KernelValueError, node, f"{op} of an empty tuple")
    return operators.extreme(f, op, [a.value for a in args], [a.node for a in args], node)


def round_(f: Frame, node: ast.Call) -> Val:
    """``round(x)``: the nearest integer, half to even."""
    if len(node.args) == 2:
        f.fail(KernelSyntaxError, node, "round(x, n) is not supported in a kernel", "write round(x * 10**n) / 10**n")
    (a,) = positional(f, node, "round", 1)
    n = convert.number(f, a.value, a.node)
    if isinstance(n, Const) and n.weak:
        if isinstance(n.value, float) and not math.isfinite(n.value):
            f.fail(KernelValueError, node, f"round({n.value}) has no value")
        return Const(round(n.value))
    p = convert.as_num(f, n, a.node)
    f.at(node)
    if not p.type.ir.is_float:
        return Num(convert.base(p.type), p.ir, p.const)
    nearest = Num(p.type, f.b.math("rint", [p.ir]))
    return convert.cast(f, nearest, I64 if p.type == F64 else I32)


def to_integer(f: Frame, op: Operation, node: ast.Call) -> Val:
    """Python's ``math.floor``, ``ceil`` and ``trunc``, which give integers."""
    (a,) = positional(f, node, op.name, 1)
    n = convert.number(f, a.value, a.node)
    if isinstance(n, Const) and n.weak:
        if not math.isfinite(n.value):
            f.fail(KernelValueError, node, f"{op.name}({n.value}) has no value")
        return Const(int(getattr(math, op.name)(n.value)))
    p = convert.as_num(f, n, a.node)
    if p.type.ir.is_int:
        return p
    value = library.operation(f, op, [calls.Arg(p, a.node)], node)
    assert isinstance(value, Num)
    return convert.cast(f, value, I64 if value.type == F64 else I32)


def divmod_(f: Frame, node: ast.Call) -> Val:
    a, b = positional(f, node, "divmod", 2)
    return TupleV(tuple(operators.binary(f, op, a.value, b.value, node, a.node, b.node) for op in ("floordiv", "mod")))


def pow_(f: Frame, node: ast.Call) -> Val:
    a, b = positional(f, node, "pow", 2)
    return operators.binary(f, "pow", a.value, b.value, node, a.node, b.node)


def len_(f: Frame, node: ast.Call) -> Val:
    (a,) = positional(f, node, "len", 1)
    if isinstance(a.value, ArrayV):
        f.at(node)
        return memory.dims(f, a.value)[0]
    if isinstance(a.value, TupleV | VecV | FixedV | IterV):
        return Const(len(a.value.items))
    f.fail(KernelTypeError, node, f"{convert.name_of(a.value)} has no length")


def range_(f: Frame, node: ast.Call) -> Val:
    args = positional(f, node, "range", 1, 3)
    for a in args:
        if not isinstance(a.value, Num | Const | WitnessV):
            f.fail(
                KernelTypeError,
                a.node,
                f"range takes integers, and this is {convert.name_of(a.value)}",
                convert.hint_for(a.value, a.node),
            )
        t = convert.number(f, a.value, a.node).type
        if not (isinstance(t, ScalarTy) and t.ir.is_int):
            f.fail(
                KernelTypeError,
                a.node,
                f"range takes integers, and this is {convert.name_of(a.value)}",
                memory.fix_float(a.node),
            )
    values = [a.value for a in args]
    if len(values) == 1:
        values.insert(0, Const(0))
    if len(values) == 2:
        values.append(Const(1))
    return RangeV(values[0], values[1], values[2], loc=f.loc(node))


def reversed_(f: Frame, node: ast.Call) -> Val:
    (a,) = positional(f, node, "reversed", 1)
    if isinstance(a.value, TupleV | IterV):
        return IterV(a.value.items[::-1])
    if (
        isinstance(a.value, RangeV)
        and isinstance(a.value.step, Const)
        and a.value.step.value == 1
        and a.value.wrap is None
    ):
        r = a.value
        last = operators.binary(f, "sub", r.stop, Const(1), node, node, node)
        before = operators.binary(f, "sub", r.start, Const(1), node, node, node)
        if isinstance(last.type, ScalarTy) and last.type.ir.kind == "uint":
            f.fail(
                KernelTypeError,
                node,
                "a range of unsigned numbers cannot count down to 0",
                "loop upward, and use n - 1 - k",
            )
        return replace(r, start=last, stop=before, step=Const(-1))
    f.fail(KernelTypeError, node, f"reversed of {convert.name_of(a.value)}", "write range(stop - 1, start - 1, -1)")


def _items(f: Frame, a: calls.Arg, name: str) -> tuple[Val, ...]:
    if isinstance(a.value, TupleV | IterV | VecV | FixedV):
        return a.value.items
    if isinstance(a.value, RangeV):
        return _static_range(f, a.value, a.node)
    hint = "loop over range(len(a)) and read a[k]" if isinstance(a.value, ArrayV) else None
    f.fail(KernelTypeError, a.node, f"{name} of {convert.name_of(a.value)}", hint)


def _static_range(f: Frame, r: RangeV, node: ast.AST) -> tuple[Val, ...]:
    bounds = []
    for v in (r.start, r.stop, r.step):
        known = v.value if isinstance(v, Const) else v.const if isinstance(v, Num) else None
        if not isinstance(known, int):
            f.fail(
                KernelTypeError,
                node,
                "this range is not known at compile time",
                "loop over it with for k in range(...)",
            )
        bounds.append(known)
    if bounds[2] == 0:
        f.fail(KernelValueError, node, "the step of a range must not be zero", "write 1 or -1")
    numbers = range(*bounds)
    if numbers[4096:]:
        f.fail(KernelValueError, node, "more than 4096 copies of the loop's body", "loop over range(...)")
    return tuple(Const(k) for k in numbers)


def enumerate_(f: Frame, node: ast.Call) -> Val:
    (a,) = positional(f, node, "enumerate", 1)
    return IterV(tuple(TupleV((Const(k), v)) for k, v in enumerate(_items(f, a, "enumerate"))))


def zip_(f: Frame, node: ast.Call) -> Val:
    strict = False
    for k in node.keywords:
        strict = convert.python_value(expressions.expr(f, k.value)) is True
        if k.arg != "strict":
            f.fail(KernelTypeError, k.value, f"zip has no parameter '{k.arg}'")
    bare = ast.copy_location(ast.Call(node.func, node.args, []), node)
    args = positional(f, bare, "zip", 1, 16)
    if strict and len({len(_items(f, a, "zip")) for a in args}) > 1:
        f.fail(KernelValueError, node, "zip of groups of different lengths")
    return IterV(tuple(TupleV(row) for row in zip(*(_items(f, a, "zip") for a in args))))


def tuple_(f: Frame, node: ast.Call) -> Val:
    (a,) = positional(f, node, "tuple", 1)
    if isinstance(a.value, WitnessV):
        return TupleV(a.value.axes)
    return TupleV(_items(f, a, "tuple"))


def static(f: Frame, node: ast.Call) -> Val:
    """``gw.static(range(4))``: one copy of the loop's body for each item."""
    (a,) = positional(f, node, "static", 1)
    return IterV(_items(f, a, "static"))


def unroll(f: Frame, node: ast.Call) -> Val:
    """``gw.unroll(range(n), 4)``: a hint; without a number, as far as possible."""
    args = positional(f, node, "unroll", 1, 2)
    r = args[0].value
    if not isinstance(r, RangeV):
        f.fail(KernelTypeError, args[0].node, f"unroll takes a range, and this is {convert.name_of(r)}")
    factor = convert.python_value(args[1].value) if len(args) == 2 else 0
    if not isinstance(factor, int) or factor < 0:
        f.fail(KernelTypeError, args[1].node, "the factor of unroll is a constant, 0 for fully")
    return replace(r, unroll=factor)


def bitcast(f: Frame, node: ast.Call) -> Val:
    """``gw.bitcast(x, u32)``: the same bits as another type of that width."""
    a, b = positional(f, node, "bitcast", 2)
    try:
        t = resolve(convert.python_value(b.value), f.ctx.index_ir, f.bindings)
    except NotAType as e:
        f.fail(KernelTypeError, b.node, str(e))
    p = convert.as_num(f, convert.number(f, a.value, a.node), a.node)
    if (
        not isinstance(t, ScalarTy)
        or t.ir.bits != p.type.ir.bits
        or BOOL in (t, p.type)
        or t.is_index
        or p.type.is_index
    ):
        f.fail(
            KernelTypeError,
            node,
            f"bitcast from {p.type} to {t}: both must be numbers of one width",
            f"convert first: u32({text(a.node)})",
        )
    f.at(node)
    return Num(t, f.b.bitcast(p.ir, t.ir))


# -- print -----------------------------------------------------------------------------------------


def print_(f: Frame, node: ast.Call) -> Val:
    """``print(f"...", x, sep=", ")``: one line a call."""
    sep = " "
    for k in node.keywords:
        value = convert.python_value(expressions.expr(f, k.value))
        if k.arg == "sep" and isinstance(value, str):
            sep = value
        elif k.arg != "flush":
            f.fail(
                KernelSyntaxError,
                k.value,
                f"print(..., {k.arg}=) is not supported in a kernel",
                "leave it out: one line a call",
            )
    parts: list[Any] = []
    operands: list[Num] = []
    for n, arg in enumerate(node.args):
        if n:
            parts.append(sep)
        if isinstance(arg, ast.JoinedStr):
            _joined(f, arg, parts, operands)
        else:
            _shown(f, expressions.expr(f, arg), arg, "", parts, operands)
    merged: list[Any] = []
    for part in parts:
        if isinstance(part, str) and merged and isinstance(merged[-1], str):
            merged[-1] += part
        elif part != "":
            merged.append(part)
    f.at(node)
    f.b.emit("print", [n.ir for n in operands], parts=tuple(merged))
    return Static(None)


def _joined(f: Frame, node: ast.JoinedStr, parts: list[Any], operands: list[Num]) -> None:
    for piece in node.values:
        if isinstance(piece, ast.Constant):
            parts.append(str(piece.value))
            continue
        assert isinstance(piece, ast.FormattedValue)
        spec = ""
        if piece.format_spec is not None:
            if not (
                isinstance(piece.format_spec, ast.JoinedStr)
                and all(isinstance(v, ast.Constant) for v in piece.format_spec.values)
            ):
                f.fail(
                    KernelSyntaxError,
                    piece,
                    "a computed format is not supported in a kernel",
                    "write the format as it is",
                )
            spec = "".join(str(v.value) for v in piece.format_spec.values if isinstance(v, ast.Constant))
        if piece.conversion not in (-1, ord("s"), ord("r")):
            f.fail(KernelSyntaxError, piece, "!a is not supported in a kernel", "leave it out")
        _shown(f, expressions.expr(f, piece.value), piece.value, spec, parts, operands)


def _shown(f: Frame, v: Val, node: ast.expr, spec: str, parts: list[Any], operands: list[Num]) -> None:
    """Append a value to a line, as Python would show it."""
    v = convert.settle(f, v, node)
    if isinstance(v, Static) and isinstance(v.obj, str | type(None)):
        parts.append(format(v.obj, spec) if isinstance(v.obj, str) else str(v.obj))
        return
    if isinstance(v, TupleV | WitnessV | VecV | FixedV):
        items: tuple[Val, ...] = v.axes if isinstance(v, WitnessV) else v.items
        if isinstance(v, WitnessV) and len(items) == 1:
            _shown(f, items[0], node, spec, parts, operands)
            return
        parts.append("(")
        for k, item in enumerate(items):
            if k:
                parts.append(", ")
            _shown(f, item, node, spec, parts, operands)
        parts.append(",)" if isinstance(v, TupleV) and len(items) == 1 else ")")
        return
    if isinstance(v, Const) and v.weak:
        try:
            parts.append(format(v.value, spec))
        except ValueError as e:
            f.fail(KernelValueError, node, f"the format {spec!r}: {e}")
        return
    n = convert.as_num(f, convert.number(f, v, node, "something that can be printed"), node)
    try:
        format(n.type.ir.dtype.type(0).item(), spec)
    except ValueError as e:
        f.fail(KernelValueError, node, f"the format {spec!r} does not fit {n.type}: {e}")
    parts.append((len(operands), spec))
    operands.append(n)
