"""Calls of types: casts, and values of structs, vectors, tuples, enums and options."""

from __future__ import annotations

import ast
import dataclasses
from typing import Any

from gridwise.lang.errors import KernelSyntaxError, KernelTypeError, KernelValueError
from gridwise.lang.types import ScalarType, VectorOf

from . import builtin, calls, convert, expressions, library, operators
from .scopes import Frame
from .source import text
from .types import (
    BOOL,
    NotAType,
    OptionTy,
    ScalarTy,
    StructTy,
    TupleTy,
    Ty,
    VecTy,
    enum_type,
    resolve,
    struct_type,
)
from .values import (
    Const,
    Num,
    OptionV,
    StructV,
    TupleV,
    Val,
    VecV,
    leaves,
    rebuild,
)


def of_type(f: Frame, t: Ty, node: ast.Call) -> Val:
    """A call of a type variable: of the type it stands for."""
    if isinstance(t, ScalarTy):
        if t.form == "nominal":
            return nominal(f, t.cls, node)
        return enum_member(f, t.cls, node) if t.form == "enum" else cast(f, t.cls, node)
    if isinstance(t, StructTy):
        return struct(f, t.cls, node)
    if isinstance(t, VecTy):
        return vector(f, VectorOf(t.elem.cls, t.lanes), node)
    f.fail(KernelTypeError, node, f"{t} cannot be called")


def cast(f: Frame, cls: ScalarType, node: ast.Call) -> Val:
    """``f32(x)``: integers wrap, a float saturates, NaN gives 0; a literal must fit."""
    t = resolve(cls, f.ctx.index_ir)
    assert isinstance(t, ScalarTy)
    args = builtin.positional(f, node, str(t), 0, 1)
    n = convert.number(f, args[0].value, args[0].node) if args else Const(0)
    where = args[0].node if args else node
    if isinstance(n, Const):
        return _constant(f, n, t, where)
    f.at(node)
    if n.choice is not None and t.ir.is_float:
        return convert.chosen(f, n, t, where)
    n = Num(convert.base(n.type), n.ir, n.const)
    if t.ir.kind == "bool" and n.type.ir.is_int:
        return Num(BOOL, f.b.binary("ne", n.ir, f.b.const(0, n.type.ir)))
    if (
        t.is_index
        and n.type.ir.is_int
        and (n.type.ir.bits > t.ir.bits or (n.type.ir.kind == "uint" and n.type.ir.bits == t.ir.bits))
    ):
        return _to_index(f, n, t)
    return convert.cast(f, n, t)


def _constant(f: Frame, n: Const, t: ScalarTy, node: ast.AST) -> Const:
    value = n.value
    if t.ir.kind == "bool":
        return Const(bool(value), t)
    if t.ir.is_int and n.weak and isinstance(value, int) and not isinstance(value, bool):
        with_checks = convert.fits(f, value, t, node)
        assert isinstance(with_checks.const, int)
        return Const(with_checks.const, t)
    try:
        return Const(convert._fold(value, t.ir), t)
    except OverflowError:
        f.fail(KernelValueError, node, f"{convert.short(value)} does not fit {t}")


def _to_index(f: Frame, n: Num, t: ScalarTy) -> Num:
    """An index never wraps (rule 10): what does not fit becomes the largest, which no array has."""
    source = n.type.ir
    high = f.b.const(t.ir.max, source)
    value = f.b.binary("min", n.ir, high)
    if source.signed:
        value = f.b.binary("max", value, f.b.const(t.ir.min, source))
    return Num(t, f.b.cast(value, t.ir))


def nominal(f: Frame, cls: Any, node: ast.Call) -> Val:
    """``Stage(x)``: x as a value of the nominal type."""
    try:
        t = resolve(cls, f.ctx.index_ir)
    except NotAType as e:
        f.fail(KernelTypeError, node, str(e))
    assert isinstance(t, ScalarTy)
    (a,) = builtin.positional(f, node, str(t), 1)
    base = convert.base(t)
    n = convert.number(f, a.value, a.node)
    if isinstance(n, Const) and n.weak:
        fitted = convert.fits(f, n.value, base, a.node)
        assert fitted.const is not None
        return Const(fitted.const, t)
    if isinstance(n.type, ScalarTy) and n.type.form in ("nominal", "enum") and n.type != t:
        f.fail(
            KernelTypeError,
            a.node,
            f"{t} of a {n.type}: these are different types",
            f"write {t}({base}({text(a.node)}))",
        )
    v = convert.coerce(f, n, base, a.node, f"{t} holds")
    assert isinstance(v, Num)
    return Num(t, v.ir, v.const)


def enum_member(f: Frame, cls: Any, node: ast.Call) -> Val:
    """``Order(x)``: a fault unless x is one of the members."""
    from .memory import validated

    t = enum_type(cls)
    (a,) = builtin.positional(f, node, cls.__name__, 1)
    n = convert.number(f, a.value, a.node)
    if isinstance(n, Const):
        if n.value not in {int(m) for m in cls}:
            f.fail(
                KernelValueError,
                a.node,
                f"{n.value} is no member of {cls.__name__}",
                f"write one of {convert.members(t)}",
            )
        return Const(int(n.value), t)
    if n.type == t:
        return n
    v = convert.coerce(f, n, convert.base(t), a.node, f"{cls.__name__} is held as")
    assert isinstance(v, Num)
    f.at(node)
    return validated(f, Num(t, v.ir))


# -- groups ----------------------------------------------------------------------------------------


def struct(f: Frame, cls: type, node: ast.Call) -> Val:
    """``Particle(x, y, mass=1.0)``: fields in order or by name; the class's defaults fill in."""
    for special in ("__init__", "__new__", "__post_init__"):
        own = cls.__dict__.get(special)
        if own is not None and getattr(own, "__code__", None) is not None and own.__code__.co_filename != "<string>":
            f.fail(
                KernelSyntaxError,
                node,
                f"{cls.__name__} has its own {special}, which is not supported in a kernel",
                "write a class method that makes one: Particle.at(...)",
            )
    try:
        t = struct_type(cls, f.ctx.index_ir)
    except NotAType as e:
        f.fail(KernelTypeError, node, str(e))
    names = [n for n, _ in t.fields]
    args = calls.positional(f, node)
    if len(args) > len(names):
        f.fail(KernelTypeError, node, f"{cls.__name__} has {len(names)} fields, and {len(args)} values are given")
    given = dict(zip(names, args))
    for key, arg in calls.keywords(f, node).items():
        if key not in names:
            import difflib

            close = difflib.get_close_matches(key, names, 1)
            f.fail(
                KernelTypeError,
                arg.node,
                f"{cls.__name__} has no field '{key}'",
                f"did you mean {close[0]}?" if close else f"it has {', '.join(names)}",
            )
        if key in given:
            f.fail(KernelTypeError, arg.node, f"{cls.__name__} is given '{key}' twice")
        given[key] = arg
    defaults = {fd.name: fd.default for fd in dataclasses.fields(cls) if fd.default is not dataclasses.MISSING}
    fields: dict[str, Val] = {}
    for name, ft in t.fields:
        if name in given:
            fields[name] = convert.coerce(f, given[name].value, ft, given[name].node, f"{cls.__name__}.{name} holds")
        elif name in defaults:
            value = expressions.lift(f, defaults[name], name, node)
            fields[name] = convert.coerce(f, value, ft, node, f"{cls.__name__}.{name} holds")
        else:
            f.fail(KernelTypeError, node, f"{cls.__name__} is missing the field '{name}'", f"it has {', '.join(names)}")
    return StructV(t, fields)


def replace(f: Frame, node: ast.Call) -> Val:
    """``dataclasses.replace(s, x=1.0)``: a copy with some fields changed."""
    args = calls.positional(f, node)
    s = convert.settle(f, args[0].value, args[0].node) if len(args) == 1 else None
    if not isinstance(s, StructV):
        f.fail(KernelTypeError, node, "replace takes one struct, and fields by name")
    fields = dict(s.fields)
    for key, arg in calls.keywords(f, node).items():
        ft = s.type.field(key)
        if ft is None:
            f.fail(KernelTypeError, arg.node, f"{s.type} has no field '{key}'", f"it has {', '.join(fields)}")
        fields[key] = convert.coerce(f, arg.value, ft, arg.node, f"{s.type}.{key} holds")
    return StructV(s.type, fields)


def named_tuple(f: Frame, cls: Any, node: ast.Call) -> Val:
    try:
        t = resolve(cls, f.ctx.index_ir, f.bindings)
    except NotAType as e:
        f.fail(KernelTypeError, node, f"{cls.__name__}: {e}")
    assert isinstance(t, TupleTy)
    names = list(cls._fields)
    args = calls.positional(f, node)
    given = dict(zip(names, args)) | calls.keywords(f, node)
    unknown = [k for k in given if k not in names]
    defaults = {k: calls.Arg(expressions.lift(f, v, k, node), node) for k, v in cls._field_defaults.items()}
    missing = [n for n in names if n not in given and n not in defaults]
    if len(args) > len(names) or unknown or missing:
        wrong = (
            f"no field '{unknown[0]}'" if unknown else f"no value for '{missing[0]}'" if missing else "too many values"
        )
        f.fail(KernelTypeError, node, f"{cls.__name__}: {wrong}", f"it has {', '.join(names)}")
    items = []
    for n, ft in zip(names, t.items):
        arg = given.get(n) or defaults[n]
        items.append(convert.coerce(f, arg.value, ft, arg.node, f"{cls.__name__}.{n} holds"))
    return TupleV(tuple(items), cls)


def vector(f: Frame, cls: Any, node: ast.Call) -> Val:
    """``vec3[f32](x, y, z)``, ``vec3(x, y, z)`` of their common type, ``vec3[f32](s)`` with every lane s."""
    lanes: int = cls.lanes
    args = builtin.positional(f, node, f"vec{lanes}", 1, lanes)
    parts: list[calls.Arg] = []
    for a in args:
        if isinstance(a.value, VecV):
            parts += [calls.Arg(item, a.node) for item in a.value.items]
        else:
            parts.append(calls.Arg(convert.number(f, a.value, a.node), a.node))
    if len(parts) == 1:
        parts *= lanes
    if len(parts) != lanes:
        f.fail(
            KernelTypeError, node, f"vec{lanes} takes {lanes} values, or one for every lane, and {len(parts)} are given"
        )
    wanted = getattr(cls, "elem", None)
    if wanted is not None:
        try:
            t = resolve(wanted, f.ctx.index_ir, f.bindings)
        except NotAType as e:
            f.fail(KernelTypeError, node.func, str(e))
    else:
        t = expressions.unify(f, [p.value for p in parts], node)
    if not isinstance(t, ScalarTy):
        f.fail(KernelTypeError, node, f"the element of a vec{lanes} is a scalar type, not {t}")
    items = tuple(convert.coerce(f, p.value, t, p.node, f"a lane of vec{lanes}[{t}] holds") for p in parts)
    return VecV(VecTy(t, lanes), items)  # type: ignore[arg-type]


def vector_method(f: Frame, v: VecV, name: str, args: list[calls.Arg], node: ast.Call) -> Val:
    """dot, cross, length, normalized, sum."""
    from gridwise.lang import math as lang_math

    def total(x: VecV) -> Val:
        acc: Val = x.items[0]
        for item in x.items[1:]:
            acc = operators.binary(f, "add", acc, item, node, node, node)
        return acc

    other = convert.settle(f, args[0].value, args[0].node) if args else v
    if name in ("dot", "cross"):
        if len(args) != 1 or not isinstance(other, VecV) or other.type.lanes != v.type.lanes:
            f.fail(KernelTypeError, node, f"{name} takes another {v.type}")
    elif args:
        f.fail(KernelTypeError, node, f"{name} takes no arguments")
    if name == "sum":
        return total(v)
    if name == "cross":
        if v.type.lanes != 3:
            f.fail(KernelTypeError, node, f"cross is for vec3, and this is {v.type}")
        assert isinstance(other, VecV)
        a, b = v.items, other.items

        def minor(i: int, j: int) -> Val:
            left = operators.binary(f, "mul", a[i], b[j], node, node, node)
            right = operators.binary(f, "mul", a[j], b[i], node, node, node)
            return operators.binary(f, "sub", left, right, node, node, node)

        items = [minor(1, 2), minor(2, 0), minor(0, 1)]
        return VecV(v.type, tuple(items))  # type: ignore[arg-type]
    product = operators.binary(f, "mul", v, other, node, node, node)
    assert isinstance(product, VecV)
    dot = total(product)
    if name == "dot":
        return dot
    length = library.operation(
        f, lang_math.OPS["sqrt"], [calls.Arg(dot, node)], ast.copy_location(ast.Call(node.func, [], []), node)
    )
    return length if name == "length" else operators.binary(f, "div", v, length, node, node, node)


# -- options ---------------------------------------------------------------------------------------


def some(f: Frame, node: ast.Call) -> Val:
    (a,) = builtin.positional(f, node, "some", 1)
    v = convert.definite(f, a.value, a.node)
    if not v.type.leaves:
        f.fail(KernelTypeError, a.node, f"{convert.name_of(v)} cannot be held by an Option")
    return OptionV(OptionTy(v.type), convert.constant(f, True, BOOL), v)


def none(f: Frame, node: ast.Call) -> Val:
    (a,) = builtin.positional(f, node, "none", 1)
    try:
        t = resolve(convert.python_value(a.value), f.ctx.index_ir, f.bindings)
    except NotAType as e:
        f.fail(KernelTypeError, a.node, str(e))
    zeros = [convert.constant(f, False if s.ir.kind == "bool" else 0, s) for s in t.leaves]
    return OptionV(OptionTy(t), convert.constant(f, False, BOOL), rebuild(t, zeros))


def choose(f: Frame, test: Num, a: Val, b: Val) -> Val:
    """``a if test else b`` for two values already computed."""
    picked = [Num(x.type, f.b.select(test.ir, x.ir, y.ir)) for x, y in zip(leaves(a), leaves(b))]
    return rebuild(a.type, picked)
