"""Conversions: what is implicit (rules 3 to 5), and the fix-it for what is not."""

from __future__ import annotations

import ast
import math
from typing import Any

import numpy as np

from gridwise.ir.types import Scalar
from gridwise.lang.errors import KernelTypeError, KernelValueError
from gridwise.lang.types import convert as lang_convert
from gridwise.lang.types import rounded_once

from .memory import read_element
from .scopes import Frame
from .source import text
from .types import (
    BOOL,
    FixedTy,
    OptionTy,
    ScalarTy,
    StructTy,
    TupleTy,
    Ty,
    VecTy,
    WitnessTy,
    default_scalar,
    plain,
)
from .values import (
    Const,
    ElementV,
    FixedV,
    Num,
    OptionV,
    Static,
    StructV,
    TupleV,
    Val,
    VecV,
    WitnessV,
    describe,
)


def constant(f: Frame, value: bool | int | float, ty: ScalarTy) -> Num:
    """A run-time constant of a type that it is known to fit."""
    if ty.ir.is_float:
        with np.errstate(over="ignore"):
            value = float(ty.ir.dtype.type(value))
    elif ty.ir.kind == "bool":
        value = bool(value)
    else:
        value = int(value)
    return Num(ty, f.b.const(value, ty.ir), value)


def fits(f: Frame, value: bool | int | float, ty: ScalarTy, node: ast.AST, goal: str = "") -> Num:
    """A weak literal as a value of ``ty`` (rule 3); an error if it does not fit."""
    t = ty.ir
    wanted = f"{goal} {ty}" if goal else f"{ty} is wanted here"
    if isinstance(value, bool) != (t.kind == "bool"):
        if t.kind == "bool":
            f.fail(
                KernelTypeError,
                node,
                f"{short(value)} is a number, and {wanted}",
                "write True or False, or a comparison",
            )
        f.fail(KernelTypeError, node, f"{value} is a bool, and {wanted}", f"write {ty}({text(node)})")
    if t.is_int:
        if isinstance(value, float):
            f.fail(
                KernelTypeError,
                node,
                f"{value} is a float, and {wanted}",
                f"write {int(value)}"
                if math.isfinite(value) and value == int(value)
                else f"convert the other side: f32(...), or write {ty}({text(node)})",
            )
        if not t.min <= value <= t.max:
            wider = next((n for n in ("i64", "u64") if plain_fits(value, n)), None)
            f.fail(
                KernelValueError,
                node,
                f"{short(value)} does not fit {ty}, which holds {t.min} to {t.max}",
                f"write {wider}({text(node)}) and widen the rest" if wider else "no integer type is that wide",
            )
    elif t.is_float:
        try:
            with np.errstate(over="ignore"):
                rounded = float(t.dtype.type(value))
        except OverflowError:
            rounded = math.inf
        if math.isinf(rounded) and not (isinstance(value, float) and math.isinf(value)):
            f.fail(
                KernelValueError, node, f"{short(value)} does not fit {ty}", "use f64, or math.inf if you mean infinity"
            )
    return constant(f, value, ty)


def plain_fits(value: int, name: str) -> bool:
    from .types import PLAIN

    return PLAIN[name].ir.min <= value <= PLAIN[name].ir.max


def short(value: bool | int | float) -> str:
    if isinstance(value, int) and value.bit_length() > 128:
        return f"an integer of {value.bit_length()} bits"
    return str(value)


def definite(f: Frame, v: Val, node: ast.AST) -> Val:
    """``v`` with every weak constant given its default type, and every pending element read."""
    if isinstance(v, Const):
        if v.ty is not None:
            return constant(f, v.value, v.ty)
        return fits(f, v.value, default_scalar(v.value), node)
    if isinstance(v, ElementV):
        return read_element(f, v, node)
    if isinstance(v, Num) and v.choice is not None:
        return Num(v.type, v.ir)  # held from here on: no longer weak
    if isinstance(v, TupleV):
        return TupleV(tuple(definite(f, item, node) for item in v.items), v.cls)
    if isinstance(v, OptionV):
        return v
    return v


def chosen(f: Frame, v: Num, ty: ScalarTy, node: ast.AST, goal: str = "") -> Num:
    """A choice between two literals as a value of ``ty``: each must fit."""
    assert v.choice is not None
    condition, a, b = v.choice
    if v.type == ty:
        return Num(ty, v.ir)
    x, y = (
        chosen(f, side, ty, node, goal) if isinstance(side, Num) else fits(f, side.value, ty, node, goal)
        for side in (a, b)
        if isinstance(side, Num | Const)
    )
    return Num(ty, f.b.select(condition, x.ir, y.ir))


def is_weak(v: Val) -> bool:
    """Whether a value is a literal, or a choice between literals."""
    return v.weak if isinstance(v, Const) else isinstance(v, Num) and v.choice is not None


def default_type(v: Val) -> Ty:
    """The type that a value has once it is held: weak constants take their default."""
    return v.type


def number(f: Frame, v: Val, node: ast.AST, what: str = "a number") -> Num | Const:
    """``v`` as a scalar (a one-dimensional witness counts as its index); an error if it is none."""
    v = settle(f, v, node)
    if isinstance(v, Num | Const):
        return v
    if isinstance(v, WitnessV):
        if len(v.axes) == 1:
            return v.axes[0]
        f.fail(
            KernelTypeError,
            node,
            f"an index of {len(v.axes)} axes is not a number",
            f"unpack it: {', '.join(['plane', 'row', 'col'][-len(v.axes) :])} = {text(node)}",
        )
    f.fail(KernelTypeError, node, f"{what} is wanted here, not {name_of(v)}", hint_for(v, node))


def settle(f: Frame, v: Val, node: ast.AST) -> Val:
    """Read a pending element."""
    return read_element(f, v, node) if isinstance(v, ElementV) else v


def name_of(v: Val) -> str:
    """What a value is, for messages."""
    if isinstance(v, Static):
        return describe(v.obj)
    if isinstance(v, Const) and v.weak:
        return f"the {'bool' if isinstance(v.value, bool) else type(v.value).__name__} {short(v.value)}"
    return str(v.type)


def hint_for(v: Val, node: ast.AST) -> str | None:
    from .values import ArrayV

    if isinstance(v, ArrayV):
        index = ", ".join("ijkl"[: v.layout.rank])
        return f"take an element, {text(node)}[{index}], or its length, len({text(node)})"
    if isinstance(v, Static):
        if isinstance(v.obj, np.ndarray):
            return "an array cannot be captured: pass it as a parameter, Slice[f32]"
        if callable(v.obj):
            return f"call it: {text(node)}(...)"
        if isinstance(v.obj, str):
            return "use a member of an IntEnum, or print it directly"
        if type(v.obj).__name__ == "module":
            return f"use something of it: {text(node)}.name"
        if isinstance(v.obj, list | dict | set):
            return "only numbers, bools, enums and tuples of them can be captured; pass data as a Slice"
    if isinstance(v, OptionV):
        return f"test it first: if {text(node)}.is_some: ... {text(node)}.value"
    return None


def as_num(f: Frame, v: Num | Const, node: ast.AST) -> Num:
    got = definite(f, v, node)
    assert isinstance(got, Num)
    return got


def base(ty: ScalarTy) -> ScalarTy:
    """The plain type under a nominal type or an enum; index stays."""
    return plain(ty.ir) if ty.form in ("nominal", "enum") else ty


def widens(a: ScalarTy, b: ScalarTy) -> bool:
    """Whether every value of ``a`` may become a ``b`` unasked (rule 4)."""
    if a == b:
        return True
    if b.form in ("nominal", "enum"):
        return False
    if a.form in ("nominal", "enum"):
        return widens(base(a), b)
    if b.is_index:
        return a.ir.kind == "int" and a.ir.bits <= 32
    if a.is_index:
        return b.name == "i64"
    x, y = a.ir, b.ir
    if x.kind != y.kind or x.kind == "bool":
        return False
    return x.bits < y.bits and not (x.bits == 8 and x.is_float and y.bits < 16)


def cast(f: Frame, v: Num, ty: ScalarTy) -> Num:
    """An explicit or already permitted conversion."""
    if v.type.ir == ty.ir:
        return Num(ty, v.ir, v.const)
    const = None if v.const is None else _fold(v.const, ty.ir)
    return Num(ty, f.b.cast(v.ir, ty.ir), const)


def _fold(value: bool | int | float, t: Scalar) -> bool | int | float:
    result: bool | int | float
    if t.kind == "bool":
        return bool(value)
    if t.is_float:
        with np.errstate(over="ignore"):
            return float(t.dtype.type(rounded_once(value, t.name)))
    if isinstance(value, float):
        if math.isnan(value):
            return 0
        return t.max if value >= t.max else t.min if value <= t.min else int(value)
    result = t.wrap(int(value))
    return result


def coerce(f: Frame, v: Val, ty: Ty, node: ast.AST, goal: str) -> Val:
    """``v`` as a ``ty`` where that is implicit. ``goal`` starts the message: "c holds", "x is"."""
    v = settle(f, v, node)
    if isinstance(ty, ScalarTy):
        if isinstance(v, WitnessV) and len(v.axes) == 1:
            v = v.axes[0]
        if isinstance(v, Const):
            if v.ty is None:
                if ty.form in ("nominal", "enum"):
                    f.fail(
                        KernelTypeError,
                        node,
                        f"{goal} {ty}, and {short(v.value)} is a plain number",
                        f"write {ty}({text(node)})" if ty.form == "nominal" else f"write one of {members(ty)}",
                    )
                return fits(f, v.value, ty, node, goal)
            v = constant(f, v.value, v.ty)
        if isinstance(v, Num):
            if v.choice is not None and ty.form not in ("nominal", "enum"):
                return chosen(f, v, ty, node, goal)
            if widens(v.type, ty):
                return cast(f, v, ty)
            f.fail(KernelTypeError, node, f"{goal} {ty}, and this is {v.type}", narrowing(v.type, ty, node))
        f.fail(KernelTypeError, node, f"{goal} {ty}, and this is {name_of(v)}", hint_for(v, node))
    if isinstance(ty, TupleTy) and isinstance(v, TupleV) and len(v.items) == len(ty.items):
        parts = tuple(coerce(f, item, t, node, goal) for item, t in zip(v.items, ty.items))
        return TupleV(parts, ty.cls)
    if isinstance(ty, VecTy) and isinstance(v, VecV) and v.type.lanes == ty.lanes:
        lanes = tuple(coerce(f, item, ty.elem, node, goal) for item in v.items)
        return VecV(ty, lanes)  # type: ignore[arg-type]
    if isinstance(ty, FixedTy):
        items_: tuple[Val, ...] | None = None
        if (isinstance(v, FixedV) and v.type.count == ty.count) or (isinstance(v, TupleV) and len(v.items) == ty.count):
            items_ = v.items
        if items_ is not None:
            return FixedV(ty, tuple(coerce(f, item, ty.elem, node, goal) for item in items_))
    if isinstance(ty, StructTy) and isinstance(v, StructV) and v.type.cls is ty.cls:
        return v
    if isinstance(ty, OptionTy) and isinstance(v, OptionV):
        return OptionV(ty, v.present, coerce(f, v.value, ty.elem, node, goal))
    if isinstance(ty, WitnessTy) and isinstance(v, WitnessV) and v.type == ty:
        return v
    if isinstance(ty, WitnessTy):
        f.fail(
            KernelTypeError,
            node,
            f"{goal} {ty}, which no other thread holds, and this is {name_of(v)}",
            "get one from thread.index_1d()",
        )
    v = definite(f, v, node)
    if v.type == ty:
        return v
    hint = hint_for(v, node)
    if isinstance(ty, OptionTy):
        hint = f"write gw.some({text(node)})"
    f.fail(KernelTypeError, node, f"{goal} {ty}, and this is {name_of(v)}", hint)


def members(ty: ScalarTy) -> str:
    names = [f"{ty.name}.{m.name}" for m in ty.cls]
    return ", ".join(names[:4]) + (", …" if len(names) > 4 else "")


def narrowing(a: ScalarTy, b: ScalarTy, node: ast.AST) -> str:
    """The fix-it for a conversion that must be written."""
    shown = text(node)
    if b.form == "nominal":
        return f"write {b}({shown})"
    if b.form == "enum":
        return f"write one of {members(b)}"
    if b == BOOL:
        return f"write {shown} != 0"
    name = "bool_" if b.name == "bool" else b.name
    if a.ir.is_float and b.ir.is_int:
        return f"write {name}({shown}), which cuts toward zero"
    if a.ir.bits > b.ir.bits:
        return (
            f"write {name}({shown}), which keeps the low {b.ir.bits} bits"
            if b.ir.is_int
            else f"write {name}({shown}), which rounds"
        )
    return f"write {name}({shown})"


def python_value(v: Val) -> Any:
    """The Python object that a compile-time value stands for; ``NotImplemented`` if it is not one."""
    if isinstance(v, Const):
        if v.ty is None:
            return v.value
        if v.ty.form == "enum":
            return v.ty.cls(v.value)
        return lang_convert(v.value, plain(v.ty.ir).cls)
    if isinstance(v, Num) and v.const is not None:
        return v.const
    if isinstance(v, Static):
        return v.obj
    if isinstance(v, TupleV):
        items = tuple(python_value(item) for item in v.items)
        return NotImplemented if any(i is NotImplemented for i in items) else items
    return NotImplemented
