"""Parameters of inlined functions: annotations, type variables and the protocols that bound them."""

from __future__ import annotations

import ast
import inspect
import typing
from typing import Any, TypeVar

from gridwise.lang.errors import KernelTypeError
from gridwise.lang.slices import NAMES, SliceOf
from gridwise.lang.types import ConstOf

from . import convert
from .scopes import Frame, Local, State, assigned, has_struct
from .source import text
from .types import NotAType, ScalarTy, StaticTy, StructTy, Ty, resolve
from .values import ArrayV, Const, FuncV, Static, StructV, Val

EMPTY = inspect.Parameter.empty
_SCALAR_METHODS = {
    f"__{n}__"
    for n in (
        "add radd sub rsub mul rmul truediv rtruediv floordiv rfloordiv mod rmod pow rpow neg pos abs "
        "eq ne lt le gt ge "
        "bool int float hash"
    ).split()
}
_INTEGER_METHODS = {f"__{n}__" for n in "and rand or ror xor rxor lshift rlshift rshift rrshift invert index".split()}


def bind_parameters(
    f: Frame, g: Frame, callee: ast.AST, name: str, hints: dict[str, Any], bound: dict[str, Any], node: ast.AST
) -> None:
    """Give each parameter its argument; ``f`` is the caller, whose lines are blamed."""
    changed = assigned(callee.body) if isinstance(callee, ast.FunctionDef) else set()
    for param, arg in bound.items():  # type variables first, from the arguments that have a type of their own
        _infer(f, g, hints.get(param, EMPTY), arg.value, arg.node, name, weak=False)
    for param, arg in bound.items():
        _infer(f, g, hints.get(param, EMPTY), arg.value, arg.node, name, weak=True)
    for param, arg in bound.items():
        _bind(f, g, param, hints.get(param, EMPTY), arg.value, arg.node, f"{name}({param})", param in changed)


def _infer(f: Frame, g: Frame, hint: Any, v: Val, node: ast.AST, name: str, weak: bool) -> None:
    """Bind the type variables of an annotation to the argument's types."""
    if isinstance(hint, SliceOf) and isinstance(hint.elem, TypeVar) and isinstance(v, ArrayV):
        _set(f, g, hint.elem, v.elem, node, name)
    elif isinstance(hint, TypeVar):
        v = convert.settle(f, v, node)
        if isinstance(v, ArrayV | FuncV | Static):
            return
        is_weak = isinstance(v, Const) and v.weak
        if is_weak == weak and not (weak and hint in g.bindings):
            t = convert.default_type(v)
            old = g.bindings.get(hint)
            if old is None or not (isinstance(old, ScalarTy) and isinstance(t, ScalarTy) and convert.widens(t, old)):
                _set(f, g, hint, t, node, name)
    elif typing.get_origin(hint) is type and isinstance(v, Static):
        (var,) = typing.get_args(hint)
        if isinstance(var, TypeVar):
            try:
                _set(f, g, var, resolve(v.obj, f.ctx.index_ir, f.bindings), node, name)
            except NotAType as e:
                f.fail(KernelTypeError, node, str(e))


def _set(f: Frame, g: Frame, var: TypeVar, t: Ty, node: ast.AST, name: str) -> None:
    old = g.bindings.get(var)
    if old is not None:
        if old != t:
            f.fail(
                KernelTypeError,
                node,
                f"{name}: {var.__name__} is {old} by an earlier argument, and {t} by this one",
                "give both one type",
            )
        return
    check_bound(f, var, t, node, name)
    g.bindings[var] = t


def check_bound(f: Frame, var: TypeVar, t: Ty, node: ast.AST, name: str) -> None:
    """Refuse a type that a type variable's bound or constraints exclude; the caller's line is blamed."""
    why = unfit(var, t, f)
    if why:
        f.fail(KernelTypeError, node, f"{name}: {why}")


def unfit(var: TypeVar, t: Ty, f: Frame | None = None) -> str:
    """Why a type does not fit a type variable; empty if it does."""
    index = f.ctx.index_ir if f is not None else None
    if var.__constraints__:
        from gridwise.ir.types import I32

        allowed = []
        for c in var.__constraints__:
            try:
                allowed.append(resolve(c, index or I32))
            except NotAType:
                continue
        if t not in allowed:
            return f"{var.__name__} is one of {', '.join(map(str, allowed))}, and this is {t}"
    bound = var.__bound__
    if bound is None or not getattr(bound, "_is_protocol", False):
        if bound is not None and isinstance(t, StructTy) and isinstance(bound, type) and not issubclass(t.cls, bound):
            return f"{var.__name__} is a {bound.__name__}, and this is {t}"
        return ""
    for member in sorted(protocol_members(bound)):
        if not _has(t, member):
            return f"{var.__name__} must be {bound.__name__}, and {t} has no {member}"
    return ""


def protocol_members(protocol: Any) -> set[str]:
    """The names that a Protocol asks for."""
    found: set[str] = set()
    for cls in protocol.__mro__:
        if cls is object or cls.__name__ in ("Protocol", "Generic"):
            continue
        own = set(cls.__dict__) | set(inspect.get_annotations(cls))
        found |= {n for n in own if not _is_machinery(n)}
    return found


def _is_machinery(name: str) -> bool:
    return name.startswith(("_abc_", "_is_")) or name in {
        "__module__", "__dict__", "__weakref__", "__doc__", "__parameters__", "__annotations__", "__init__",
        "__subclasshook__", "__abstractmethods__", "__orig_bases__", "__slots__", "__hash__", "__qualname__",
        "__protocol_attrs__", "__non_callable_proto_members__", "__firstlineno__", "__static_attributes__",
        "__type_params__", "__annotate__", "__annotate_func__", "__annotations_cache__", "__match_args__",
    }  # fmt: skip


def _has(t: Ty, member: str) -> bool:
    if isinstance(t, StructTy):
        return t.field(member) is not None or (member in t.cls.__dict__ and t.cls.__dict__[member] is not None)
    if isinstance(t, ScalarTy):
        if member in _SCALAR_METHODS:
            return t.ir.kind != "bool" or member in ("__eq__", "__ne__", "__bool__")
        return (t.ir.is_int and member in _INTEGER_METHODS) or (member == "__invert__" and t.ir.is_int)
    arithmetic = {f"__{n}__" for n in "add sub mul truediv neg eq ne".split()}
    return member in arithmetic and type(t).__name__ == "VecTy"


def _bind(f: Frame, g: Frame, param: str, hint: Any, v: Val, node: ast.AST, label: str, changed: bool) -> None:
    goal = f"{label} is"
    if isinstance(hint, SliceOf):
        _alias(g, param, _array(f, g, hint, v, node, label), node)
        return
    if isinstance(hint, ConstOf):
        value = convert.python_value(v)
        if value is NotImplemented or isinstance(v, ArrayV):
            f.fail(
                KernelTypeError,
                node,
                f"{label} is Const: it must be known at compile time",
                "pass a literal or a captured constant",
            )
        if isinstance(v, Const) and v.weak and hint.type not in (int, float, bool, str):
            try:
                t = resolve(hint.type, f.ctx.index_ir, g.bindings)
            except NotAType as e:
                f.fail(KernelTypeError, node, str(e))
            assert isinstance(t, ScalarTy)
            v = Const(v.value, t)
        _alias(g, param, v, node)
        return
    if hint is not EMPTY and hint is not None and not _is_callable_hint(hint) and not isinstance(hint, TypeVar):
        try:
            t = resolve(hint, f.ctx.index_ir, g.bindings)
        except NotAType as e:
            f.fail(KernelTypeError, node, f"{label}: {e}")
        _value(f, g, param, convert.coerce(f, v, t, node, goal), v, node, changed)
        return
    if isinstance(hint, TypeVar) and hint in g.bindings:
        _value(f, g, param, convert.coerce(f, v, g.bindings[hint], node, goal), v, node, changed)
        return
    v = convert.settle(f, v, node)
    if changed and isinstance(v, Const):
        v = convert.definite(f, v, node)
    _value(f, g, param, v, v, node, changed)


def _value(f: Frame, g: Frame, param: str, v: Val, original: Val, node: ast.AST, changed: bool) -> None:
    """Bind a run-time value. A struct held by a name of the caller is shared with it, as in Python."""
    if isinstance(original, StructV) and not changed and isinstance(node, ast.Name):
        owner = f.locals.get(node.id)
        if owner is not None and node.id in f.local_names and isinstance(owner.type, StructTy):
            g.locals[param] = Local(param, owner.type, owner.slots, owner.first, "", owner.shared_with)
            assert g.flow is not None
            g.flow[param] = State(None, None)
            return
    struct = has_struct(v.type) and touches(g.node, param)
    if changed or struct:
        v = convert.definite(f, v, node)
        here = f.ctx.b.loc
        assert g.flow is not None
        slots = [f.b.var(param, leaf.ir) for leaf in v.type.leaves]
        g.locals[param] = Local(param, v.type, slots, f.loc(node))
        if struct and isinstance(node, ast.Attribute | ast.Subscript | ast.Name):
            g.locals[param].shared_with = text(node)
        g.bind(param, v, g.node)
        f.ctx.b.loc = here
    else:
        _alias(g, param, v, node)


def touches(node: ast.AST, name: str) -> bool:
    """Whether a function may change the object that a parameter holds: a field assigned, a method or call given it."""
    for n in ast.walk(node):
        if isinstance(n, ast.Attribute | ast.Subscript) and isinstance(n.ctx, ast.Store) and _root(n) == name:
            return True
        if isinstance(n, ast.Call) and any(_root(e) == name for e in [n.func, *n.args]):
            return True
    return False


def _root(node: ast.AST) -> str:
    while isinstance(node, ast.Attribute | ast.Subscript):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""


def _alias(g: Frame, param: str, v: Val, node: ast.AST) -> None:
    """Bind a name that is never rebound straight to its value: no slot is needed."""
    g.locals[param] = Local(param, StaticTy(str(v.type), id(v), v), [], g.loc(g.node))
    assert g.flow is not None
    g.flow[param] = State(v, g.ctx.open[-1])


def _is_callable_hint(hint: Any) -> bool:
    return (
        hint is typing.Any
        or (callable(hint) and getattr(hint, "__name__", "") == "Callable")
        or (typing.get_origin(hint) is not None and typing.get_origin(hint) is not tuple)
    )


def _array(f: Frame, g: Frame, hint: SliceOf, v: Val, node: ast.AST, label: str) -> ArrayV:
    """An array argument in the role that the callee's annotation gives it."""
    if not isinstance(v, ArrayV):
        f.fail(KernelTypeError, node, f"{label} is {hint!r}, and this is {convert.name_of(v)}")
    try:
        elem = resolve(hint.elem, f.ctx.index_ir, g.bindings)
    except NotAType as e:
        f.fail(KernelTypeError, node, f"{label}: {e}")
    if v.elem != elem:
        f.fail(KernelTypeError, node, f"{label} is {hint!r}, and {v.name} holds {v.elem}")
    if v.layout.rank != hint.rank:
        f.fail(KernelTypeError, node, f"{label} is {hint!r}, and {v.name} has {v.layout.rank} axes")
    allowed = {
        "slice": ("slice", "disjoint", "shared", "local"),
        "disjoint": ("disjoint", "shared", "local"),
        "atomic": ("atomic", "shared"),
    }
    if v.kind not in allowed[hint.kind]:
        f.fail(
            KernelTypeError,
            node,
            f"{label} is {hint!r}, and {v.name} is a {NAMES.get(v.kind, v.kind + ' array')}",
            f"annotate it as {NAMES[hint.kind]} in the kernel",
        )
    return ArrayV(v.name, v.ir, v.elem, "slice" if hint.kind == "slice" else v.kind)


def return_type(f: Frame, g: Frame, hint: Any, callee: ast.FunctionDef) -> Ty | None:
    """The declared result, or None where the returns decide."""
    if (
        hint is None
        or hint is type(None)
        or hint is EMPTY
        or isinstance(hint, SliceOf | ConstOf)
        or _is_callable_hint(hint)
    ):
        return None
    if isinstance(hint, TypeVar) and hint not in g.bindings:
        return None
    try:
        return resolve(hint, f.ctx.index_ir, g.bindings)
    except NotAType as e:
        g.fail(KernelTypeError, callee.returns or callee, f"the result of {g.name}: {e}")
