"""Operators on constants: computed at compile time, by the rule that holds at run time."""

from __future__ import annotations

import ast
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from gridwise.ir.core import Region
from gridwise.lang.errors import KernelTypeError, KernelValueError
from gridwise.lang.types import convert as lang_convert

from . import convert, operators, powers
from .scopes import Frame
from .types import BOOL, F32, F64, ScalarTy, plain
from .values import Const, Num


def fold(f: Frame, op: str, x: Const, y: Const, node: ast.AST, left: ast.AST, right: ast.AST) -> Const:
    """Both known at compile time: weak constants are exact Python numbers, typed ones obey their type."""
    a, b = x.value, y.value
    floats = any(isinstance(c.type, ScalarTy) and c.type.ir.is_float and c.ty is not None for c in (x, y))
    if isinstance(b, int) and op in ("floordiv", "mod", "div") and b == 0 and not floats:
        f.fail(KernelValueError, node, "division by zero")
    if op in ("shl", "shr") and isinstance(b, int) and b < 0:
        f.fail(KernelValueError, node, f"shift by {b}", "shift the other way")
    if x.ty is None and y.ty is None:
        _bounded(f, op, a, b, node)
        try:
            value = extreme(op, a, b) if op in ("min", "max") else operators.PYTHON[op](a, b)
        except (TypeError, ZeroDivisionError, OverflowError) as e:
            f.fail(
                KernelTypeError if isinstance(e, TypeError) else KernelValueError,
                node,
                f"{a} {operators.SYMBOL[op]} {b}: {e}",
            )
        if isinstance(value, complex):
            f.fail(KernelValueError, node, f"{a} {operators.SYMBOL[op]} {b} is a complex number")
        if isinstance(value, int) and value.bit_length() > operators.BITS_LIMIT:
            f.fail(KernelValueError, node, f"a constant of {value.bit_length()} bits")
        return Const(value)
    if x.ty is not None and y.ty is not None and x.ty == y.ty and op in operators.COMPARISON:
        return Const(bool(operators.PYTHON[op](a, b)))
    # One of them is typed: find the common type as at run time, in a place whose code is thrown away.
    with f.ctx.into(Region()):
        if op in ("shl", "shr", "pow"):
            p = convert.as_num(f, x, left)
            q = convert.as_num(f, y, right) if y.ty is not None else Num(p.type, p.ir, b)
            t = convert.base(p.type if x.ty is not None or op != "shl" else q.type)
        else:
            p, q = operators.common(f, x, y, op, left, right)
            t = p.type
    assert p.const is not None and q.const is not None
    if op in operators.COMPARISON:
        return Const(bool(operators.PYTHON[op](p.const, q.const)))
    if op == "div" and t.ir.is_int:
        t = F64 if t.ir.bits == 64 and not t.is_index else F32
    if op == "pow" and t.ir.is_int and q.const < 0:
        powers.negative_power(f, node, left)
    value = _typed(op, p.const, q.const, t)
    if value is None:
        f.fail(KernelTypeError, node, f"{t} {operators.SYMBOL[op]} {q.type} has no meaning")
    return Const(value, t)


def _typed(op: str, a: Any, b: Any, t: ScalarTy) -> bool | int | float | None:
    if t.ir.is_int:
        if op == "shl":
            return t.ir.wrap(a << b) if b < t.ir.bits else 0
        if op == "shr":
            return int(a >> min(b, t.ir.bits))
        if op == "pow":
            return t.ir.wrap(pow(int(a), int(b), 1 << t.ir.bits))
        return t.ir.wrap(int(operators.PYTHON[op](int(a), int(b))))
    if t == BOOL:
        return bool(operators.PYTHON[op](a, b)) if op in ("and", "or", "xor") else None
    if op in ("and", "or", "xor", "shl", "shr"):
        return None
    with np.errstate(all="ignore"):
        x, y = t.ir.dtype.type(a), t.ir.dtype.type(b)
        fns: dict[str, Callable[[Any, Any], Any]] = {"floordiv": np.floor_divide, "mod": np.mod}
        if op in ("min", "max"):
            return float(extreme(op, float(x), float(y)))
        fn = fns.get(op, operators.PYTHON[op])
        return float(lang_convert(float(fn(x, y)), plain(t.ir).cls))


def extreme(op: str, a: Any, b: Any) -> Any:
    """``min`` or ``max`` by rule 6: NaN if either is, and -0.0 below 0.0."""
    if a != a or b != b:
        return math.nan
    if a == b == 0 and isinstance(a, float) and isinstance(b, float):
        return math.copysign(0.0, operators.PYTHON[op](math.copysign(1, a), math.copysign(1, b)))
    return operators.PYTHON[op](a, b)


def _bounded(f: Frame, op: str, a: Any, b: Any, node: ast.AST) -> None:
    """Refuse constants that would take the compiler's memory."""
    if op == "shl" and isinstance(b, int) and b > operators.BITS_LIMIT:
        f.fail(KernelValueError, node, f"a constant shifted by {convert.short(b)} bits")
    if (
        op == "pow"
        and isinstance(a, int)
        and isinstance(b, int)
        and b > 0
        and a.bit_length() * b > operators.BITS_LIMIT
    ):
        f.fail(
            KernelValueError,
            node,
            f"{convert.short(a)} ** {convert.short(b)} is too large a constant",
            "write it as a float: 1e30",
        )
