"""Arithmetic, comparison and logic on values: rules 1 to 6 of the language."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable
from typing import Any, cast

from gridwise.ir.types import STORAGE_ONLY
from gridwise.lang.errors import KernelTypeError, KernelValueError

from . import convert, folding, powers
from .scopes import Frame
from .source import text
from .types import BOOL, F32, F64, I64, PLAIN, ScalarTy, VecTy, default_scalar
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
PYTHON: dict[str, Callable[[Any, Any], Any]] = {
    "add": operator.add, "sub": operator.sub, "mul": operator.mul, "div": operator.truediv,
    "floordiv": operator.floordiv, "mod": operator.mod, "pow": operator.pow, "shl": operator.lshift,
    "shr": operator.rshift, "and": operator.and_, "or": operator.or_, "xor": operator.xor, "eq": operator.eq,
    "ne": operator.ne, "lt": operator.lt, "le": operator.le, "gt": operator.gt, "ge": operator.ge, "min": min,
    "max": max,
}  # fmt: skip
COMPARISON = frozenset(COMPARE.values())
U64 = PLAIN["u64"]
BITS_LIMIT = 4096  # a constant wider than this is a mistake, and would only slow the compiler down


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
        return folding.fold(f, op, x, y, node, left, right)
    if op in ("shl", "shr"):
        return powers.shift(f, op, x, y, node, left, right)
    if op == "pow":
        return powers.power(f, x, y, node, left, right)
    p, q = common(f, x, y, op, left, right)
    t = p.type
    if op == "div" and t.ir.is_int:
        wide = F64 if t.ir.bits == 64 and not t.is_index else F32
        p, q = convert.cast(f, p, wide), convert.cast(f, q, wide)
        t = wide
    f.at(node)
    if op in COMPARISON:
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
        return _literal(f, x, q, op, left, right), stripped(f, q)
    if isinstance(y, Const) and y.ty is None:
        p = convert.as_num(f, x, left)
        return stripped(f, p), _literal(f, y, p, op, right, left)
    if isinstance(x, Num) and x.choice is not None and not (isinstance(y, Num) and y.choice is not None):
        q = stripped(f, convert.as_num(f, y, right))
        return convert.chosen(f, x, q.type, left), q
    if isinstance(y, Num) and y.choice is not None and not (isinstance(x, Num) and x.choice is not None):
        p = stripped(f, convert.as_num(f, x, left))
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
    p, q = stripped(f, p), stripped(f, q)
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


def stripped(f: Frame, n: Num) -> Num:
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
    if op in COMPARISON:
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
    n = stripped(f, n)
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
    p = stripped(f, convert.as_num(f, n, node))
    if p.type == BOOL:
        f.fail(KernelTypeError, node, "abs of a bool", f"write i32({text(node)})")
    if p.type.ir.kind == "uint":
        return p
    return Num(p.type, f.b.unary("abs", p.ir))


def extreme(f: Frame, op: str, items: list[Val], nodes: list[ast.AST], node: ast.AST) -> Val:
    """``min`` or ``max`` of two or more."""
    best, at = items[0], nodes[0]
    for item, n in zip(items[1:], nodes[1:]):
        best = binary(f, op, best, item, node, at, n)
    return best
