"""Shifts and powers, whose two sides need not be of one type."""

from __future__ import annotations

import ast

from gridwise.lang.errors import KernelTypeError, KernelValueError

from . import convert, operators
from .scopes import Frame
from .source import text
from .values import Const, Num


def shift(f: Frame, op: str, x: Num | Const, y: Num | Const, node: ast.AST, left: ast.AST, right: ast.AST) -> Num:
    """The left side gives the type. A count of that width or more, or a negative one, shifts everything out."""
    if isinstance(x, Const) and x.ty is None:
        y = convert.as_num(f, y, right)
        p = convert.fits(f, x.value, convert.base(y.type), left)
    else:
        p = operators.stripped(f, convert.as_num(f, x, left))
    if not p.type.ir.is_int:
        f.fail(KernelTypeError, node, f"{operators.SYMBOL[op]} works on integers, and this is {p.type}")
    t = p.type.ir
    if isinstance(y, Const):
        if isinstance(y.value, bool) or not isinstance(y.value, int):
            f.fail(KernelTypeError, right, f"a shift count is an integer, and this is {convert.name_of(y)}")
        if y.value < 0:
            f.fail(KernelValueError, right, f"shift by {y.value}", "shift the other way")
        count = f.b.const(min(y.value, t.bits), t)
        return Num(p.type, f.b.binary(op, p.ir, count))
    q = operators.stripped(f, y)
    c = q.type.ir
    if not c.is_int:
        f.fail(
            KernelTypeError, right, f"a shift count is an integer, and this is {q.type}", f"write i32({text(right)})"
        )
    value = q.ir
    f.at(node)
    if c.bits > t.bits:  # narrowing a large count must not make it small
        bits = f.b.const(t.bits, c)
        outside = f.b.binary("ge", value, bits)
        if c.signed:
            outside = f.b.binary("or", outside, f.b.binary("lt", value, f.b.const(0, c)))
        value = f.b.select(outside, bits, value)
    return Num(p.type, f.b.binary(op, p.ir, f.b.cast(value, t)))


def negative_power(f: Frame, node: ast.AST, left: ast.AST) -> None:
    f.fail(KernelValueError, node, "an integer to a negative power is a fraction", f"write f32({text(left)}) ** ...")


def power(f: Frame, x: Num | Const, y: Num | Const, node: ast.AST, left: ast.AST, right: ast.AST) -> Num:
    if isinstance(x, Const) and x.ty is None and isinstance(y, Num):  # 2 ** n
        x = convert.fits(f, x.value, convert.base(y.type), left)
    p = operators.stripped(f, convert.as_num(f, x, left))
    t = p.type
    f.at(node)
    if (
        isinstance(y, Const)
        and isinstance(y.value, int)
        and not isinstance(y.value, bool)
        and (t.ir.is_int or abs(y.value) <= 4)
    ):
        if t.ir.is_int and y.value < 0:
            negative_power(f, node, left)
        if t.ir.is_int or y.value >= 0:
            return _repeated(f, p, y.value)
    if t.ir.is_float:
        p, q = operators.common(f, p, y, "pow", left, right)
        f.at(node)
        return Num(p.type, f.b.math("pow", [p.ir, q.ir]))
    if not t.ir.is_int:
        f.fail(KernelTypeError, node, f"** works on numbers, and this is {t}")
    q = operators.stripped(f, convert.as_num(f, y, right))
    if not q.type.ir.is_int:
        f.fail(
            KernelTypeError,
            node,
            f"{t} ** {q.type}: integers do not become floats unasked",
            f"write {q.type}({text(left)})",
        )
    if q.type.ir.signed:
        f.fail(
            KernelTypeError,
            right,
            f"{t} ** {q.type}: a negative power of an integer is a fraction",
            f"write u32({text(right)}) if it is never negative, or f32({text(left)})",
        )
    return _squaring(f, p, q)


def _repeated(f: Frame, p: Num, n: int) -> Num:
    """p ** n by squaring, n known."""
    result = None
    square = p.ir
    while n:
        if n & 1:
            result = square if result is None else f.b.binary("mul", result, square)
        n >>= 1
        if n:
            square = f.b.binary("mul", square, square)
    return Num(p.type, result) if result is not None else convert.constant(f, 1, p.type)


def _squaring(f: Frame, p: Num, q: Num) -> Num:
    """p ** q by squaring, q unsigned and known only at run time; wraps as * does."""
    t, c = p.type.ir, q.type.ir
    result, square, left = f.b.var("power", t), f.b.var("square", t), f.b.var("exponent", c)
    f.b.set(result, f.b.const(1, t))
    f.b.set(square, p.ir)
    f.b.set(left, q.ir)
    loop = f.b.while_()
    cond, body, _ = loop.regions
    with f.ctx.into(cond):
        f.b.emit("yield", (f.b.binary("ne", f.b.get(left), f.b.const(0, c)),))
    with f.ctx.into(body):
        odd = f.b.binary("ne", f.b.binary("and", f.b.get(left), f.b.const(1, c)), f.b.const(0, c))
        now = f.b.get(result)
        f.b.set(result, f.b.select(odd, f.b.binary("mul", now, f.b.get(square)), now))
        f.b.set(square, f.b.binary("mul", f.b.get(square), f.b.get(square)))
        f.b.set(left, f.b.binary("shr", f.b.get(left), f.b.const(1, c)))
    return Num(p.type, f.b.get(result))
