"""What a kernel may call that is not the author's own: builtins, ``thread``, memory, atomics, math, constructors."""

from __future__ import annotations

import ast
import builtins
import dataclasses
import types
import typing
from collections.abc import Callable
from typing import Any, NoReturn, TypeVar

import numpy as np

from gridwise.lang import hints as lang_hints
from gridwise.lang import math as lang_math
from gridwise.lang import memory as lang_memory
from gridwise.lang import options as lang_options
from gridwise.lang import target as lang_target
from gridwise.lang import thread as lang_thread
from gridwise.lang.errors import KernelSyntaxError, KernelTypeError
from gridwise.lang.operation import Operation
from gridwise.lang.structs import is_enum, is_struct
from gridwise.lang.subgroup import Choice
from gridwise.lang.types import ScalarType, VectorOf

from . import builtin, calls, constructors, convert, cooperation, expressions, identity, operators
from .scopes import Frame
from .source import text
from .types import BOOL, F32, F64, I32, U32, ScalarTy
from .values import Const, MethodV, Num, OptionV, Static, StructV, Val, VecV

Handler = Callable[[Frame, ast.Call], Val]

HANDLERS: dict[Any, Handler] = {
    builtins.int: builtin.int_,
    builtins.float: builtin.float_,
    builtins.bool: builtin.bool_,
    builtins.abs: builtin.abs_,
    builtins.min: lambda f, n: builtin.extreme(f, n, "min"),
    builtins.max: lambda f, n: builtin.extreme(f, n, "max"),
    builtins.round: builtin.round_,
    builtins.divmod: builtin.divmod_,
    builtins.pow: builtin.pow_,
    builtins.len: builtin.len_,
    builtins.range: builtin.range_,
    builtins.reversed: builtin.reversed_,
    builtins.enumerate: builtin.enumerate_,
    builtins.zip: builtin.zip_,
    builtins.print: builtin.print_,
    builtins.tuple: builtin.tuple_,
    lang_hints.unroll: builtin.unroll,
    lang_hints.static: builtin.static,
    lang_hints.bitcast: builtin.bitcast,
    lang_thread.index_1d: lambda f, n: identity.index(f, n, 1),
    lang_thread.index_2d: lambda f, n: identity.index(f, n, 2),
    lang_thread.index_3d: lambda f, n: identity.index(f, n, 3),
    lang_thread.run: identity.run,
    lang_thread.grid_stride: identity.grid_stride,
    lang_thread.local_index: lambda f, n: identity.axis(f, n, "thread_idx"),
    lang_thread.block_index: lambda f, n: identity.axis(f, n, "block_idx"),
    lang_thread.global_index: lambda f, n: identity.axis(f, n, "global_idx"),
    lang_thread.block_dim: identity.block_dim,
    lang_thread.grid_dim: lambda f, n: identity.axis(f, n, "grid_dim"),
    lang_thread.local_linear: identity.local_linear,
    lang_thread.warp_index: identity.warp_index,
    lang_memory.shared: lambda f, n: cooperation.array(f, n, "shared"),
    lang_memory.local: lambda f, n: cooperation.array(f, n, "local"),
    lang_memory.barrier: cooperation.barrier,
    lang_target.has: cooperation.has,
    lang_options.some: constructors.some,
    lang_options.none: constructors.none,
    dataclasses.replace: constructors.replace,
    typing.cast: lambda f, n: builtin.positional(f, n, "cast", 2)[1].value,
}

REFUSED: dict[str, str] = {
    "sum": "write a for loop: total = f32(0); for k in range(n): total += a[k]",
    "sorted": "use the sort of the standard library on the host",
    "map": "write a for loop",
    "filter": "write a for loop with an if",
    "any": "write a for loop, or a or b",
    "all": "write a for loop, or a and b",
    "list": "use a tuple, or gw.local((n,), f32)",
    "dict": "use a @gw.struct",
    "set": "use a tuple: x in (1, 2, 3)",
    "str": 'print(f"...") prints values; strings cannot be held in a kernel',
    "isinstance": "types are known when the kernel is compiled: write a function for each, or use a type variable",
    "type": "types are known when the kernel is compiled: write a function for each, or use a type variable",
    "input": "pass the value as a parameter",
    "open": "read the file on the host and pass an array",
    "iter": "loop over range(...)",
    "next": "loop over range(...)",
    "getattr": "write the attribute: value.name",
    "hasattr": "types are known when the kernel is compiled",
    "super": "call the method by its class",
    "sleep": "a kernel cannot wait",
}


def handler(obj: Any) -> Handler | None:
    """The lowering of a function of the language or a builtin, or None."""
    try:
        found = HANDLERS.get(obj)
    except TypeError:  # not hashable
        return None
    if found is not None:
        return found
    if isinstance(obj, Choice):
        return lambda f, n: cooperation.choice(f, obj, n)
    return foreign(obj)


def foreign(obj: Any) -> Handler | None:
    """A function of Python's math or of NumPy that the language has too."""
    if isinstance(obj, np.ufunc):
        name = {"absolute": "abs", "minimum": "min", "maximum": "max", "arcsin": "asin", "arccos": "acos",
                "arctan": "atan", "arctan2": "atan2", "arcsinh": "asinh", "arccosh": "acosh", "arctanh": "atanh",
                "power": "pow"}.get(obj.__name__, obj.__name__)  # fmt: skip
        direct: dict[str, Handler] = {
            "abs": builtin.abs_,
            "min": lambda f, n: builtin.extreme(f, n, "min"),
            "max": lambda f, n: builtin.extreme(f, n, "max"),
        }
        if name in direct:
            return direct[name]
    elif isinstance(obj, types.BuiltinFunctionType) and obj.__module__ == "math":
        name = {"fabs": "abs"}.get(obj.__name__, obj.__name__)
        if name in ("floor", "ceil", "trunc"):  # Python's give integers
            return lambda f, n: builtin.to_integer(f, lang_math.OPS[name], n)
    else:
        return None
    op = lang_math.OPS.get(name)
    if op is None:
        return None
    return lambda f, n: operation(f, op, calls.positional(f, n), n)


def unknown(f: Frame, obj: Any, node: ast.Call) -> NoReturn:
    """The error for calling something that cannot run on a device."""
    name = getattr(obj, "__name__", None) or text(node.func)
    if type(obj).__name__ == "Kernel" and hasattr(obj, "fn"):
        f.fail(
            KernelSyntaxError,
            node,
            f"a kernel cannot call a kernel, and {name} is one",
            "move the work into a plain function that both call",
        )
    if obj is None or isinstance(obj, str | list | dict | set | np.ndarray):
        f.fail(KernelTypeError, node.func, f"{convert.name_of(Static(obj))} cannot be called")
    hint = REFUSED.get(name) or "write it in Python with the types of the language, or do it on the host"
    module = getattr(obj, "__module__", None)
    if module in ("math", "numpy") or isinstance(obj, np.ufunc):
        import difflib

        close = difflib.get_close_matches(name, list(lang_math.OPS), 1)
        hint = f"gridwise.math has {close[0]}" if close else hint
    f.fail(KernelSyntaxError, node, f"{name}() is not supported in a kernel", hint)


# -- declared operations ---------------------------------------------------------------------------


def operation(f: Frame, op: Operation, args: list[calls.Arg], node: ast.Call) -> Val:
    """Lower a call of a declared operation by its signature."""
    if op.code == "atomic":
        return cooperation.atomic(f, op, args, node)
    if node.keywords:
        f.fail(KernelTypeError, node.keywords[0].value, f"{op.name} has no parameter '{node.keywords[0].arg}'")
    letters, result = op.signature.split("->")
    if len(args) != len(letters):
        f.fail(KernelTypeError, node, f"{op.name} takes {calls._count(len(letters))}, and {len(args)} are given")
    values = [convert.settle(f, a.value, a.node) for a in args]
    if any(isinstance(v, VecV) for v in values) and op.code != "subgroup":
        return _lanes(f, op, values, args, node)
    numbers = [
        convert.number(f, v, a.node) if c in "TIUX" else operators.truth(f, v, a.node)
        for c, v, a in zip(letters, values, args)
    ]
    if op.code == "math" and numbers and all(isinstance(n, Const) and n.weak for n in numbers):
        folded = _folded(op, [n for n in numbers if isinstance(n, Const)])
        if folded is not None:
            return folded
    shared = _shared_type(f, op, letters, numbers, args, node)
    ir: list[Num] = []
    for c, n, a in zip(letters, numbers, args):
        if c == "T":
            assert shared is not None
            m = convert.coerce(f, n, shared, a.node, f"{op.name} works in")
        elif c == "B":
            m = n if isinstance(n, Num) else convert.constant(f, bool(n.value), BOOL)
        else:
            want = {"I": I32, "U": U32, "X": f.ctx.index}[c]
            m = n if isinstance(n, Num) else convert.fits(f, n.value, want, a.node)
            assert isinstance(m, Num)
            if not m.type.ir.is_int:
                f.fail(KernelTypeError, a.node, f"{op.name} takes an integer here, and this is {m.type}")
            m = convert.cast(f, m, want)
        assert isinstance(m, Num)
        ir.append(m)
    f.at(node)
    out: ScalarTy = {"T": shared or I32, "B": BOOL, "U": U32, "X": f.ctx.index, "I": I32}[result]
    operands = [m.ir for m in ir]
    if op.name == "clamp":
        return Num(out, f.b.binary("min", f.b.binary("max", operands[0], operands[1]), operands[2]))
    attrs = {"fn": op.fn} if op.code in ("math", "subgroup") else {}
    return Num(out, f.b.value(op.code, operands, out.ir, **attrs))


def _shared_type(
    f: Frame, op: Operation, letters: str, numbers: list[Num | Const], args: list[calls.Arg], node: ast.AST
) -> ScalarTy | None:
    """The common type of the T arguments, checked against the kinds that the operation allows."""
    group = [(n, a.node) for c, n, a in zip(letters, numbers, args) if c == "T"]
    if not group:
        return None
    t = expressions.unify(f, [n for n, _ in group], node)
    assert isinstance(t, ScalarTy)
    t = operators.computable(f, convert.base(t))
    weak = all(isinstance(n, Const) and n.weak for n, _ in group)
    if op.types == "float" and not t.ir.is_float:
        if weak and t != BOOL:
            return F32
        where = next(w for n, w in group if not (isinstance(n, Const) and n.weak)) if not weak else group[0][1]
        wide = F64 if t.ir.bits == 64 and not t.is_index else F32
        f.fail(KernelTypeError, where, f"{op.name} takes a float, and this is {t}", f"write {wide}({text(where)})")
    if op.types == "int" and not t.ir.is_int:
        f.fail(
            KernelTypeError,
            group[0][1],
            f"{op.name} takes an integer, and this is {t}",
            f"write i32({text(group[0][1])})",
        )
    if op.types == "number" and t == BOOL:
        f.fail(KernelTypeError, group[0][1], f"{op.name} takes a number, and this is a bool")
    return t


def _folded(op: Operation, numbers: list[Const]) -> Const | None:
    """A math function of literals, computed exactly as on the host (a literal is a double until it meets a type)."""
    try:
        with np.errstate(all="ignore"):
            value = op.reference(*(np.float64(n.value) for n in numbers))
    except (TypeError, ValueError, OverflowError):
        return None
    if isinstance(value, bool | np.bool_):
        return Const(bool(value))
    return Const(float(value)) if isinstance(value, float | np.floating) else None


def _lanes(f: Frame, op: Operation, values: list[Val], args: list[calls.Arg], node: ast.Call) -> Val:
    """A function of vectors works lane by lane."""
    widths = {v.type.lanes for v in values if isinstance(v, VecV)}
    if len(widths) > 1:
        f.fail(KernelTypeError, node, f"{op.name}: vectors of different numbers of lanes")
    lanes = widths.pop()
    out = []
    for k in range(lanes):
        row = [calls.Arg(v.items[k] if isinstance(v, VecV) else v, a.node) for v, a in zip(values, args)]
        n = operation(f, op, row, node)
        assert isinstance(n, Num)
        out.append(n)
    from .types import VecTy

    return VecV(VecTy(out[0].type, lanes), tuple(out))


# -- constructors and methods ----------------------------------------------------------------------


def construct(f: Frame, obj: Any, node: ast.Call) -> Val | None:
    """A call of a type: a cast, or a value of a struct, vector, tuple or enum. None if ``obj`` is no type of ours."""
    if isinstance(obj, TypeVar):
        t = f.bindings.get(obj)
        if t is None:
            f.fail(KernelTypeError, node.func, f"the type variable {obj.__name__} is not bound here")
        return constructors.of_type(f, t, node)
    if isinstance(obj, ScalarType):
        return constructors.cast(f, obj, node)
    if isinstance(obj, typing.NewType):
        return constructors.nominal(f, obj, node)
    if is_enum(obj):
        return constructors.enum_member(f, obj, node)
    if is_struct(obj):
        return constructors.struct(f, obj, node)
    if isinstance(obj, VectorOf) or type(obj).__name__ == "_Family":
        return constructors.vector(f, obj, node)
    if isinstance(obj, type) and issubclass(obj, tuple) and hasattr(obj, "_fields"):
        return constructors.named_tuple(f, obj, node)
    if isinstance(obj, type) and issubclass(obj, np.generic):
        f.fail(KernelTypeError, node.func, f"numpy.{obj.__name__} is not a type of the language", "use f32, i32, ...")
    return None


def method(f: Frame, m: MethodV, node: ast.Call) -> Val:
    """A call of ``receiver.name(...)``."""
    if isinstance(m.func, types.FunctionType):
        receiver = calls.Arg(m.receiver, m.place or node.func)
        return calls.inline(f, m.func, None, [receiver, *calls.positional(f, node)], calls.keywords(f, node), node)
    args = calls.positional(f, node)
    f.at(node)
    if isinstance(m.receiver, StructV):  # .copy()
        return m.receiver
    if isinstance(m.receiver, OptionV):
        if m.name == "unwrap":
            f.b.emit("assert", (m.receiver.present.ir,), message="the option holds no value")
            return m.receiver.value
        if len(args) != 1:
            f.fail(KernelTypeError, node, "unwrap_or takes the value to use when there is none")
        other = convert.coerce(f, args[0].value, m.receiver.type.elem, args[0].node, "the option holds")
        return constructors.choose(f, m.receiver.present, m.receiver.value, other)
    if isinstance(m.receiver, VecV):
        return constructors.vector_method(f, m.receiver, m.name, args, node)
    raise AssertionError(m.name)
