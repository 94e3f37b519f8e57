"""Arithmetic, comparison and logic on values: rules 1 to 6 of the language."""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable
from typing import Any, cast

import numpy as np

from gridwise.ir.types import STORAGE_ONLY
from gridwise.lang.errors import KernelTypeError, KernelValueError
from gridwise.lang.types import convert as lang_convert

from . import convert
from .scopes import Frame
from .source import text
from .types import BOOL, F32, F64, I64, PLAIN, ScalarTy, VecTy, default_scalar, plain
from .values import Const, Num, Static, StructV, TupleV, Val, VecV

BINARY: dict[type[ast.operator], str] = {
    ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.Div: "div", ast.FloorDiv: "floordiv", ast.Mod: "mod",
    ast.Pow: "pow", ast.LShift: "shl", ast.RShift: "shr", ast.BitAnd: "and", ast.BitOr: "or", ast.BitXor: "xor",
}  # fmt: skip
SYMBOL = {
    "add": "+", "sub": "-", "mul": "*", "div": "/", "floordiv": "//", "mod": "%", "pow": "**", "shl": "<<",
    "shr": ">>", "and": "&", "or": "|", "xor": "^", "eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">",
    "ge": ">=", "min": "min", "max": "max",
}  # fmt: skip
DUNDER = {
    "add": "__add__", "sub": "__sub__", "mul": "__mul__", "div": "__truediv__", "floordiv": "__floordiv__",
    "mod": "__mod__", "pow": "__pow__", "shl": "__lshift__", "shr": "__rshift__", "and": "__and__", "or": "__or__",
    "xor": "__xor__", "eq": "__eq__", "lt": "__lt__", "le": "__le__", "gt": "__gt__", "ge": "__ge__",
}  # fmt: skip
COMPARE: dict[type[ast.cmpop], str] = {
    ast.Eq: "eq", ast.NotEq: "ne", ast.Lt: "lt", ast.LtE: "le", ast.Gt: "gt", ast.GtE: "ge",
}  # fmt: skip
_PYTHON: dict[str, Callable[[Any, Any], Any]] = {
    "add": operator.add, "sub": operator.sub, "mul": operator.mul, "div": operator.truediv,
    "floordiv": operator.floordiv, "mod": operator.mod, "pow": operator.pow, "shl": operator.lshift,
    "shr": operator.rshift, "and": operator.and_, "or": operator.or_, "xor": operator.xor, "eq": operator.eq,
    "ne": operator.ne, "lt": operator.lt, "le": operator.le, "gt": operator.gt, "ge": operator.ge, "min": min,
    "max": max,
}  # fmt: skip
_COMPARISON = frozenset(COMPARE.values())
U64 = PLAIN["u64"]
_BITS_LIMIT = 4096  # a constant wider than this is a mistake, and would only slow the compiler down


def binary(f: Frame, op: str, a: Val, b: Val, node: ast.AST, left: ast.AST, right: ast.AST) -> Val:
    """``a op b``; ``left`` and ``right`` are the operands' nodes, for fix-its."""
    a, b = convert.settle(f, a, left), convert.settle(f, b, right)
    f.at(node)
    if isinstance(a, StructV) or isinstance(b, StructV):
        from .calls import struct_operator

        return struct_operator(f, op, a, b, node, left)
    if isinstance(a, VecV) or isinstance(b, VecV):
        return _vector(f, op, a, b, node, left, right)
    if isinstance(a, TupleV) and isinstance(b, TupleV):
        return _tuples(f, op, a, b, node, left, right)
    if op == "mul" and isinstance(a, TupleV) and isinstance(b, Const) and type(b.value) is int:
        if len(a.items) * b.value > 4096:
            f.fail(KernelValueError, node, "a tuple of more than 4096 items", "use gw.local((n,), f32)")
        return TupleV(a.items * b.value)
    if isinstance(a, Static) and isinstance(b, Static) and op in ("eq", "ne"):
        return Const((a.obj == b.obj) == (op == "eq"))
    what = f"a number on each side of {SYMBOL[op]}"
    x, y = convert.number(f, a, left, what), convert.number(f, b, right, what)
    return scalar(f, op, x, y, node, left, right)


def scalar(
    f: Frame, op: str, x: Num | Const, y: Num | Const, node: ast.AST, left: ast.AST, right: ast.AST
) -> Num | Const:
    if isinstance(x, Const) and isinstance(y, Const):
        return _fold(f, op, x, y, node, left, right)
    if op in ("shl", "shr"):
        return _shift(f, op, x, y, node, left, right)
    if op == "pow":
        return _power(f, x, y, node, left, right)
    p, q = common(f, x, y, op, left, right)
    t = p.type
    if op == "div" and t.ir.is_int:
        wide = F64 if t.ir.bits == 64 and not t.is_index else F32
        p, q = convert.cast(f, p, wide), convert.cast(f, q, wide)
        t = wide
    f.at(node)
    if op in _COMPARISON:
        return Num(BOOL, f.b.binary(op, p.ir, q.ir))
    if t == BOOL and op not in ("and", "or", "xor"):
        f.fail(KernelTypeError, node, f"{SYMBOL[op]} on bools", f"convert first: i32({text(left)})")
    if t.ir.is_float and op in ("and", "or", "xor"):
        f.fail(
            KernelTypeError,
            node,
            f"{SYMBOL[op]} works on integers and bools, and this is {t}",
            f"write i32({text(left)}) for its whole part, or gw.bitcast({text(left)}, u32) for its bits",
        )
    return Num(t, f.b.binary(op, p.ir, q.ir))


# -- a common type ---------------------------------------------------------------------------------


def common(f: Frame, x: Num | Const, y: Num | Const, op: str, left: ast.AST, right: ast.AST) -> tuple[Num, Num]:
    """Both operands in the type that the operation works in (rules 3 and 4), or an error with a fix-it."""
    if isinstance(x, Const) and x.ty is None:
        if isinstance(y, Const) and y.ty is None:
            t = F32 if F32 in (default_scalar(x.value), default_scalar(y.value)) else default_scalar(x.value)
            return convert.fits(f, x.value, t, left), convert.fits(f, y.value, t, right)
        q = convert.as_num(f, y, right)
        return _literal(f, x, q, op, left, right), _stripped(f, q)
    if isinstance(y, Const) and y.ty is None:
        p = convert.as_num(f, x, left)
        return _stripped(f, p), _literal(f, y, p, op, right, left)
    if isinstance(x, Num) and x.choice is not None and not (isinstance(y, Num) and y.choice is not None):
        q = _stripped(f, convert.as_num(f, y, right))
        return convert.chosen(f, x, q.type, left), q
    if isinstance(y, Num) and y.choice is not None and not (isinstance(x, Num) and x.choice is not None):
        p = _stripped(f, convert.as_num(f, x, left))
        return p, convert.chosen(f, y, p.type, right)
    p, q = convert.as_num(f, x, left), convert.as_num(f, y, right)
    a, b = p.type, q.type
    if a.form in ("nominal", "enum") and b.form in ("nominal", "enum") and a != b:
        f.fail(
            KernelTypeError,
            left,
            f"{a} {SYMBOL[op]} {b}: these are different types",
            f"say which number you mean: {convert.base(a)}({text(left)})",
        )
    p, q = _stripped(f, p), _stripped(f, q)
    a, b = p.type, q.type
    if a == b:
        return p, q
    if convert.widens(a, b):
        return convert.cast(f, p, b), q
    if convert.widens(b, a):
        return p, convert.cast(f, q, a)
    if {a.name, b.name} == {"index", "i64"}:
        return convert.cast(f, p, I64), convert.cast(f, q, I64)
    _mixed(f, a, b, op, left, right)
    raise AssertionError


def computable(f: Frame, t: ScalarTy) -> ScalarTy:
    """``t``, unless it is one of the types that only lie in memory."""
    if t.ir in STORAGE_ONLY:
        raise KernelTypeError(f"{t} is for storage: it has no arithmetic", f.b.loc, "convert it first: f32(x)")
    return t


def _stripped(f: Frame, n: Num) -> Num:
    t = computable(f, convert.base(n.type))
    return n if t == n.type else Num(t, n.ir, n.const)


def _literal(f: Frame, c: Const, other: Num, op: str, node: ast.AST, other_node: ast.AST) -> Num:
    t = convert.base(other.type)
    if isinstance(c.value, float) and t.ir.is_int:
        f.fail(
            KernelTypeError,
            node,
            f"{t} {SYMBOL[op]} the float {convert.short(c.value)}: integers do not become floats unasked",
            started(f, other_node, F32) or f"write f32({text(other_node)})",
        )
    return convert.fits(f, c.value, t, node)


def _mixed(f: Frame, a: ScalarTy, b: ScalarTy, op: str, left: ast.AST, right: ast.AST) -> None:
    """The error for two types without a common one, with the cast to write."""
    s = SYMBOL[op]
    if a.ir.is_int and b.ir.is_int:
        signed, unsigned = (a, b) if a.ir.signed else (b, a)
        node = right if a.ir.signed else left
        to = signed.name if signed.is_index or signed.ir.bits >= unsigned.ir.bits else f"i{unsigned.ir.bits}"
        f.fail(KernelTypeError, left, f"{a} {s} {b} mixes signed and unsigned", f"write {to}({text(node)})")
    if a.ir.is_float and b.ir.is_float:
        f.fail(
            KernelTypeError,
            left,
            f"{a} {s} {b}: neither holds the other",
            f"write f32({text(left)}) {s} f32({text(right)})",
        )
    if a == BOOL or b == BOOL:
        node, t = (left, b) if a == BOOL else (right, a)
        f.fail(KernelTypeError, left, f"{a} {s} {b}: a bool is not a number", f"write {t}({text(node)})")
    node, t = (left, b) if a.ir.is_int else (right, a)
    f.fail(
        KernelTypeError,
        left,
        f"{a} {s} {b}: integers do not become floats unasked",
        started(f, node, t) or f"write {t}({text(node)})",
    )


def started(f: Frame, node: ast.AST, to: ScalarTy) -> str:
    """The fix-it for a name whose type came from the literal that it started as."""
    local = f.locals.get(node.id) if isinstance(node, ast.Name) else None
    if local is None or not local.literal:
        return ""
    return f"start it as {local.name} = {to}({local.literal}) on line {local.first.line}"


# -- constants -------------------------------------------------------------------------------------


def _fold(f: Frame, op: str, x: Const, y: Const, node: ast.AST, left: ast.AST, right: ast.AST) -> Const:
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
            value = _PYTHON[op](a, b)
        except (TypeError, ZeroDivisionError, OverflowError) as e:
            f.fail(
                KernelTypeError if isinstance(e, TypeError) else KernelValueError, node, f"{a} {SYMBOL[op]} {b}: {e}"
            )
        if isinstance(value, complex):
            f.fail(KernelValueError, node, f"{a} {SYMBOL[op]} {b} is a complex number")
        if isinstance(value, int) and value.bit_length() > _BITS_LIMIT:
            f.fail(KernelValueError, node, f"a constant of {value.bit_length()} bits")
        return Const(value)
    if x.ty is not None and y.ty is not None and x.ty == y.ty and op in _COMPARISON:
        return Const(bool(_PYTHON[op](a, b)))
    # One of them is typed: find the common type as at run time, in a place whose code is thrown away.
    from gridwise.ir.core import Region

    with f.ctx.into(Region()):
        if op in ("shl", "shr", "pow"):
            p = convert.as_num(f, x, left)
            q = convert.as_num(f, y, right) if y.ty is not None else Num(p.type, p.ir, b)
            t = convert.base(p.type if x.ty is not None or op != "shl" else q.type)
        else:
            p, q = common(f, x, y, op, left, right)
            t = p.type
    assert p.const is not None and q.const is not None
    if op in _COMPARISON:
        return Const(bool(_PYTHON[op](p.const, q.const)))
    if op == "div" and t.ir.is_int:
        t = F64 if t.ir.bits == 64 and not t.is_index else F32
    if op == "pow" and t.ir.is_int and q.const < 0:
        _negative_power(f, node, left)
    value = _typed(op, p.const, q.const, t)
    if value is None:
        f.fail(KernelTypeError, node, f"{t} {SYMBOL[op]} {q.type} has no meaning")
    return Const(value, t)


def _typed(op: str, a: Any, b: Any, t: ScalarTy) -> bool | int | float | None:
    if t.ir.is_int:
        if op == "shl":
            return t.ir.wrap(a << b) if b < t.ir.bits else 0
        if op == "shr":
            return int(a >> min(b, t.ir.bits))
        if op == "pow":
            return t.ir.wrap(pow(int(a), int(b), 1 << t.ir.bits))
        return t.ir.wrap(int(_PYTHON[op](int(a), int(b))))
    if t == BOOL:
        return bool(_PYTHON[op](a, b)) if op in ("and", "or", "xor") else None
    if op in ("and", "or", "xor", "shl", "shr"):
        return None
    with np.errstate(all="ignore"):
        x, y = t.ir.dtype.type(a), t.ir.dtype.type(b)
        fn: Callable[[Any, Any], Any] = {
            "floordiv": np.floor_divide,
            "mod": np.mod,
            "min": np.minimum,
            "max": np.maximum,
        }.get(op, _PYTHON.get(op, operator.add))
        return float(lang_convert(float(fn(x, y)), plain(t.ir).cls))


def _bounded(f: Frame, op: str, a: Any, b: Any, node: ast.AST) -> None:
    """Refuse constants that would take the compiler's memory."""
    if op == "shl" and isinstance(b, int) and b > _BITS_LIMIT:
        f.fail(KernelValueError, node, f"a constant shifted by {convert.short(b)} bits")
    if op == "pow" and isinstance(a, int) and isinstance(b, int) and b > 0 and a.bit_length() * b > _BITS_LIMIT:
        f.fail(
            KernelValueError,
            node,
            f"{convert.short(a)} ** {convert.short(b)} is too large a constant",
            "write it as a float: 1e30",
        )


# -- shifts and powers -----------------------------------------------------------------------------


def _shift(f: Frame, op: str, x: Num | Const, y: Num | Const, node: ast.AST, left: ast.AST, right: ast.AST) -> Num:
    """The left side gives the type. A count of that width or more, or a negative one, shifts everything out."""
    if isinstance(x, Const) and x.ty is None:
        y = convert.as_num(f, y, right)
        p = convert.fits(f, x.value, convert.base(y.type), left)
    else:
        p = _stripped(f, convert.as_num(f, x, left))
    if not p.type.ir.is_int:
        f.fail(KernelTypeError, node, f"{SYMBOL[op]} works on integers, and this is {p.type}")
    t = p.type.ir
    if isinstance(y, Const):
        if isinstance(y.value, bool) or not isinstance(y.value, int):
            f.fail(KernelTypeError, right, f"a shift count is an integer, and this is {convert.name_of(y)}")
        if y.value < 0:
            f.fail(KernelValueError, right, f"shift by {y.value}", "shift the other way")
        count = f.b.const(min(y.value, t.bits), t)
        return Num(p.type, f.b.binary(op, p.ir, count))
    q = _stripped(f, y)
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


def _negative_power(f: Frame, node: ast.AST, left: ast.AST) -> None:
    f.fail(KernelValueError, node, "an integer to a negative power is a fraction", f"write f32({text(left)}) ** ...")


def _power(f: Frame, x: Num | Const, y: Num | Const, node: ast.AST, left: ast.AST, right: ast.AST) -> Num:
    if isinstance(x, Const) and x.ty is None and isinstance(y, Num):  # 2 ** n
        x = convert.fits(f, x.value, convert.base(y.type), left)
    p = _stripped(f, convert.as_num(f, x, left))
    t = p.type
    f.at(node)
    if (
        isinstance(y, Const)
        and isinstance(y.value, int)
        and not isinstance(y.value, bool)
        and (t.ir.is_int or abs(y.value) <= 4)
    ):
        if t.ir.is_int and y.value < 0:
            _negative_power(f, node, left)
        if t.ir.is_int or y.value >= 0:
            return _repeated(f, p, y.value)
    if t.ir.is_float:
        p, q = common(f, p, y, "pow", left, right)
        f.at(node)
        return Num(p.type, f.b.math("pow", [p.ir, q.ir]))
    if not t.ir.is_int:
        f.fail(KernelTypeError, node, f"** works on numbers, and this is {t}")
    q = _stripped(f, convert.as_num(f, y, right))
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


# -- groups ----------------------------------------------------------------------------------------


def _vector(f: Frame, op: str, a: Val, b: Val, node: ast.AST, left: ast.AST, right: ast.AST) -> Val:
    """Element by element; a scalar meets every lane."""
    lanes = len((a if isinstance(a, VecV) else cast(VecV, b)).items)
    if isinstance(a, VecV) and isinstance(b, VecV) and a.type.lanes != b.type.lanes:
        f.fail(KernelTypeError, node, f"{a.type} {SYMBOL[op]} {b.type}: different numbers of lanes")
    xs: list[Val] = list(a.items) if isinstance(a, VecV) else [convert.number(f, a, left)] * lanes
    ys: list[Val] = list(b.items) if isinstance(b, VecV) else [convert.number(f, b, right)] * lanes
    out = [scalar(f, op, x, y, node, left, right) for x, y in zip(xs, ys)]  # type: ignore[arg-type]
    nums = tuple(convert.as_num(f, o, node) for o in out)
    if op in ("eq", "ne"):
        return _all_of(f, op, list(nums))
    if op in _COMPARISON:
        f.fail(KernelTypeError, node, "vectors have no order", "compare the lanes: v.x < w.x")
    return VecV(VecTy(nums[0].type, lanes), nums)


def _all_of(f: Frame, op: str, tests: list[Num]) -> Num:
    joined = tests[0].ir
    for t in tests[1:]:
        joined = f.b.binary("and" if op == "eq" else "or", joined, t.ir)
    return Num(BOOL, joined)


def _tuples(f: Frame, op: str, a: TupleV, b: TupleV, node: ast.AST, left: ast.AST, right: ast.AST) -> Val:
    if op == "add":
        return TupleV(a.items + b.items)
    if op in ("eq", "ne"):
        if len(a.items) != len(b.items):
            return Const(op == "ne")
        return equality(f, op, list(a.items), list(b.items), node, left, right)
    f.fail(KernelTypeError, node, f"{SYMBOL[op]} on tuples", "work on the items")


def equality(f: Frame, op: str, xs: list[Val], ys: list[Val], node: ast.AST, left: ast.AST, right: ast.AST) -> Val:
    """All items equal (``eq``), or some different (``ne``)."""
    if not xs:
        return Const(op == "eq")
    tests = [binary(f, op, x, y, node, left, right) for x, y in zip(xs, ys)]
    return _all_of(f, op, [convert.as_num(f, t, node) for t in tests])  # type: ignore[arg-type]


# -- one operand -----------------------------------------------------------------------------------


def truth(f: Frame, v: Val, node: ast.AST) -> Num | Const:
    """The truth value that ``if`` and ``not`` see: Python's, for numbers."""
    v = convert.settle(f, v, node)
    if isinstance(v, Static) and v.obj is None:
        return Const(False)
    if isinstance(v, TupleV):
        return Const(bool(v.items))
    n = convert.number(f, v, node, "a bool or a number")
    if isinstance(n, Const):
        return Const(bool(n.value))
    if n.type == BOOL:
        return n
    f.at(node)
    return Num(BOOL, f.b.cast(n.ir, BOOL.ir) if n.type.ir.is_float else f.b.binary("ne", n.ir, f.b.const(0, n.type.ir)))


def invert(f: Frame, v: Val, node: ast.AST) -> Num | Const:
    """``not v``."""
    t = truth(f, v, node)
    return Const(not t.value) if isinstance(t, Const) else Num(BOOL, f.b.unary("not", t.ir))


def unary(f: Frame, op: type[ast.unaryop], v: Val, node: ast.UnaryOp) -> Val:
    v = convert.settle(f, v, node.operand)
    if op is ast.Not:
        return invert(f, v, node.operand)
    if isinstance(v, StructV):
        from .calls import call_method

        name = {ast.USub: "__neg__", ast.UAdd: "__pos__"}.get(op, "__invert__")
        return call_method(f, v, name, [], node, node.operand)
    if isinstance(v, VecV):
        lanes = [unary(f, op, item, node) for item in v.items]
        return VecV(v.type, tuple(lanes))  # type: ignore[arg-type]
    n = convert.number(f, v, node.operand)
    f.at(node)
    if isinstance(n, Const):
        if n.ty is None:
            if isinstance(n.value, float) and op is ast.Invert:
                f.fail(KernelTypeError, node, "~ works on integers, and this is a float", "write an integer")
            if isinstance(n.value, bool):
                f.fail(
                    KernelTypeError, node, f"{text(node)}: a bool is not a number", f"write not {text(node.operand)}"
                )
            return Const(-n.value if op is ast.USub else n.value if op is ast.UAdd else ~int(n.value))
        n = convert.as_num(f, n, node)
    n = _stripped(f, n)
    if op is ast.Invert:
        if n.type.ir.is_float:
            f.fail(
                KernelTypeError, node, f"~ works on integers, and this is {n.type}", f"write ~i32({text(node.operand)})"
            )
        if n.type == BOOL:
            f.fail(
                KernelTypeError, node, "~ on a bool means something else in Python", f"write not {text(node.operand)}"
            )
        return Num(n.type, f.b.unary("not", n.ir))
    if n.type == BOOL:
        f.fail(KernelTypeError, node, f"{text(node)}: a bool is not a number", f"write i32({text(node.operand)})")
    if op is ast.UAdd:
        return n
    const = None if n.const is None else (-n.const if n.type.ir.is_float else n.type.ir.wrap(int(-n.const)))
    return Num(n.type, f.b.unary("neg", n.ir), const)


def absolute(f: Frame, v: Val, node: ast.AST) -> Val:
    n = convert.number(f, v, node)
    if isinstance(n, Const) and n.ty is None:
        return Const(abs(n.value))
    p = _stripped(f, convert.as_num(f, n, node))
    if p.type == BOOL:
        f.fail(KernelTypeError, node, "abs of a bool", f"write i32({text(node)})")
    if p.type.ir.kind == "uint":
        return p
    return Num(p.type, f.b.unary("abs", p.ir))


def extreme(f: Frame, op: str, items: list[Val], nodes: list[ast.AST], node: ast.AST) -> Val:
    """``min`` or ``max`` of two or more."""
    best, at = items[0], nodes[0]
    for item, n in zip(items[1:], nodes[1:]):
        if (
            isinstance(best, Const)
            and isinstance(item, Const)
            and any(isinstance(c.value, float) and math.isnan(c.value) for c in (best, item))
        ):
            best = Const(math.nan)
            continue
        best = binary(f, op, best, item, node, at, n)
    return best
