"""The frontend's types: what the author's program is made of before it is taken apart into machine scalars.

Every type of a run-time value knows its ``leaves``, the scalars that hold it; tuples, structs, vectors and options
are only groupings of leaves.
"""

from __future__ import annotations

import dataclasses
import enum
import typing
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, TypeVar

from gridwise.ir import types as ir
from gridwise.lang import types as lang
from gridwise.lang.records import dataclass, field
from gridwise.lang.structs import ArrayOf, is_enum, is_struct
from gridwise.lang.thread import ThreadIndex


class Ty:
    """A type. ``leaves(index)`` are the scalar types that hold a value of it."""

    @property
    def leaves(self) -> tuple[ScalarTy, ...]:
        raise NotImplementedError


@dataclass(frozen=True)
class ScalarTy(Ty):
    """One machine scalar. ``form`` is plain, index, nominal (NewType) or enum; ``cls`` the author's object for it."""

    name: str
    ir: ir.Scalar
    form: str
    cls: Any

    @property
    def leaves(self) -> tuple[ScalarTy, ...]:
        return (self,)

    def __str__(self) -> str:
        return self.name

    @property
    def is_index(self) -> bool:
        return self.form == "index"


@dataclass(frozen=True)
class TupleTy(Ty):
    """A tuple; ``cls`` is the NamedTuple class, or None."""

    items: tuple[Ty, ...]
    cls: type | None = None

    @property
    def leaves(self) -> tuple[ScalarTy, ...]:
        return tuple(leaf for t in self.items for leaf in t.leaves)

    def __str__(self) -> str:
        if self.cls is not None:
            return self.cls.__name__
        return "(" + ", ".join(map(str, self.items)) + ("," if len(self.items) == 1 else "") + ")"


@dataclass(frozen=True)
class VecTy(Ty):
    """``vec2[T]`` to ``vec4[T]``."""

    elem: ScalarTy
    lanes: int

    @property
    def leaves(self) -> tuple[ScalarTy, ...]:
        return (self.elem,) * self.lanes

    def __str__(self) -> str:
        return f"vec{self.lanes}[{self.elem}]"


@dataclass(frozen=True)
class FixedTy(Ty):
    """A fixed array held in scalars: a struct's ``Array[T, n]`` field."""

    elem: Ty
    count: int

    @property
    def leaves(self) -> tuple[ScalarTy, ...]:
        return self.elem.leaves * self.count

    def __str__(self) -> str:
        return f"Array[{self.elem}, {self.count}]"


@dataclass(frozen=True)
class StructTy(Ty):
    """A ``@gw.struct`` class and the types of its fields, in order."""

    cls: type
    fields: tuple[tuple[str, Ty], ...]

    @property
    def leaves(self) -> tuple[ScalarTy, ...]:
        return tuple(leaf for _, t in self.fields for leaf in t.leaves)

    def field(self, name: str) -> Ty | None:
        return next((t for n, t in self.fields if n == name), None)

    def __str__(self) -> str:
        return self.cls.__name__


@dataclass(frozen=True)
class OptionTy(Ty):
    """``Option[T]``, held as a bool and a T."""

    elem: Ty

    @property
    def leaves(self) -> tuple[ScalarTy, ...]:
        return (BOOL, *self.elem.leaves)

    def __str__(self) -> str:
        return f"Option[{self.elem}]"


@dataclass(frozen=True)
class WitnessTy(Ty):
    """A ThreadIndex of ``rank`` axes, held as ``rank`` indices."""

    rank: int
    index: ScalarTy

    @property
    def leaves(self) -> tuple[ScalarTy, ...]:
        return (self.index,) * self.rank

    def __str__(self) -> str:
        return "ThreadIndex" if self.rank == 1 else f"ThreadIndex of {self.rank} axes"


@dataclass(frozen=True)
class StaticTy(Ty):
    """The type of a compile-time object (function, type, array): a name bound to one cannot be rebound to another."""

    what: str
    identity: int
    held: Any = field(default=None, compare=False)  # the value itself (values.Val)

    @property
    def leaves(self) -> tuple[ScalarTy, ...]:
        return ()

    def __str__(self) -> str:
        return self.what


PLAIN: dict[str, ScalarTy] = {
    name: ScalarTy(name, ir.SCALARS[name], "plain", cls) for name, cls in lang.SCALARS.items()
}
BOOL, I32, U32, I64, F32, F64 = (PLAIN[n] for n in ("bool", "i32", "u32", "i64", "f32", "f64"))


@lru_cache(maxsize=2)
def index_type(width: ir.Scalar) -> ScalarTy:
    return ScalarTy("index", width, "index", lang.index)


def plain(t: ir.Scalar) -> ScalarTy:
    return PLAIN[t.name]


class NotAType(Exception):
    """An annotation that is no type of the language; the text says what to write."""


def resolve(annotation: Any, index: ir.Scalar, bindings: dict[Any, Ty] | None = None) -> Ty:
    """The type that an annotation object stands for. ``bindings`` maps type variables. Raises NotAType."""
    if isinstance(annotation, Ty):
        return annotation
    if isinstance(annotation, TypeVar):
        if bindings and annotation in bindings:
            return bindings[annotation]
        raise NotAType(f"the type variable {annotation.__name__} is not bound by any argument here")
    if annotation is lang.index:
        return index_type(index)
    if isinstance(annotation, lang.ScalarType):
        return PLAIN[annotation.name]
    builtin = {int: "i32 (or index, i64)", float: "f32 (or f64)", bool: "bool_"}
    if isinstance(annotation, type) and annotation in builtin:
        raise NotAType(f"'{annotation.__name__}' does not say how wide: write {builtin[annotation]}")
    if isinstance(annotation, typing.NewType):
        base = resolve(annotation.__supertype__, index, bindings)
        if not isinstance(base, ScalarTy):
            raise NotAType(f"{annotation.__name__} is a NewType over {base}, which is not a scalar type")
        return ScalarTy(annotation.__name__, base.ir, "nominal", annotation)
    if is_enum(annotation):
        return enum_type(annotation)
    if is_struct(annotation):
        return struct_type(annotation, index)
    if isinstance(annotation, lang.VectorOf):
        elem = resolve(annotation.elem, index, bindings)
        if not isinstance(elem, ScalarTy):
            raise NotAType(f"the element of a vec{annotation.lanes} is a scalar type, not {elem}")
        return VecTy(elem, annotation.lanes)
    if isinstance(annotation, lang.OptionOf):
        return OptionTy(resolve(annotation.elem, index, bindings))
    if isinstance(annotation, ArrayOf):
        return FixedTy(resolve(annotation.elem, index, bindings), annotation.count)
    if annotation is ThreadIndex:
        return WitnessTy(1, index_type(index))
    if isinstance(annotation, type) and issubclass(annotation, tuple) and hasattr(annotation, "_fields"):
        hints = typing.get_type_hints(annotation)
        return TupleTy(tuple(resolve(hints[n], index, bindings) for n in annotation._fields), annotation)
    if typing.get_origin(annotation) is tuple:
        return TupleTy(tuple(resolve(t, index, bindings) for t in typing.get_args(annotation)))
    from_numpy = _numpy_name(annotation)
    if from_numpy:
        raise NotAType(f"a NumPy dtype is not a type of the language: write {from_numpy}")
    raise NotAType(f"{_show(annotation)} is not a type of the language: write f32, i32, Slice[f32], a struct, ...")


def _show(obj: Any) -> str:
    return getattr(obj, "__name__", None) or repr(obj)[:60]


def _numpy_name(annotation: Any) -> str | None:
    import numpy as np

    if isinstance(annotation, type) and issubclass(annotation, np.generic):
        scalar = ir.from_dtype(annotation)
        return PLAIN[scalar.name].cls.__name__ if scalar else None
    return None


def enum_type(cls: type[enum.IntEnum]) -> ScalarTy:
    repr_ = getattr(cls, "__gridwise_enum__", lang.i32)
    return ScalarTy(cls.__name__, ir.SCALARS[repr_.name], "enum", cls)


def struct_type(cls: type, index: ir.Scalar) -> StructTy:
    """The type of a ``@gw.struct`` class; NotAType names the field that has no type of the language."""
    hints = typing.get_type_hints(cls, localns={cls.__name__: cls})
    fields = []
    for f in dataclasses.fields(cls):
        if hints[f.name] is cls:
            raise NotAType(f"{cls.__name__}.{f.name}: a struct cannot contain itself")
        try:
            fields.append((f.name, resolve(hints[f.name], index)))
        except NotAType as e:
            raise NotAType(f"{cls.__name__}.{f.name}: {e}") from None
    return StructTy(cls, tuple(fields))


def memory_type(t: Ty | Any, index: ir.Scalar = ir.I32) -> ir.Scalar | ir.Struct:
    """How a type lies in memory: a scalar, or a C layout equal to ``numpy.dtype(align=True)``."""
    t = resolve(t, index)
    if isinstance(t, ScalarTy):
        return t.ir
    members: list[tuple[str, ir.Scalar | ir.Struct, int]] = []
    if isinstance(t, VecTy):
        members = [("xyzw"[k], t.elem.ir, 0) for k in range(t.lanes)]
    elif isinstance(t, OptionTy):
        members = [("present", ir.BOOL, 0), ("value", memory_type(t.elem, index), 0)]
    elif isinstance(t, TupleTy):
        names: Sequence[str] = t.cls._fields if t.cls else [f"f{k}" for k in range(len(t.items))]  # type: ignore[attr-defined]
        members = [(n, memory_type(item, index), 0) for n, item in zip(names, t.items)]
    elif isinstance(t, StructTy):
        for name, ft in t.fields:
            if isinstance(ft, FixedTy):
                members.append((name, memory_type(ft.elem, index), ft.count))
            else:
                members.append((name, memory_type(ft, index), 0))
    else:
        raise NotAType(f"{t} cannot be stored in an array")
    return ir.layout(str(t), members)


def default_scalar(value: bool | int | float) -> ScalarTy:
    """The type that a literal takes when nothing else decides: i32, f32 or bool."""
    return BOOL if isinstance(value, bool) else I32 if isinstance(value, int) else F32
