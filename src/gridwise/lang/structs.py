"""``@gw.struct`` and ``@gw.enum``: a program's own types.

A struct is a class of annotated fields. It becomes a dataclass, so it is ordinary Python on the host; its memory
layout is C's, equal to ``numpy.dtype(align=True)``, on every target. Fixed arrays are fields of type ``Array[f32, 4]``.
"""

from __future__ import annotations

import dataclasses
import enum as _enum
import typing
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import numpy as np

from .types import OptionOf, ScalarType, VectorOf, i32

C = TypeVar("C", bound=type)
E = TypeVar("E", bound=type[_enum.IntEnum])
T = TypeVar("T")


@dataclasses.dataclass(frozen=True)
class ArrayOf:
    """The annotation ``Array[f32, 4]``: a fixed array inside a struct."""

    elem: Any
    count: int

    def __repr__(self) -> str:
        return f"Array[{getattr(self.elem, '__name__', self.elem)}, {self.count}]"


if TYPE_CHECKING:
    from typing import dataclass_transform

    class Array(Generic[T]):
        def __getitem__(self, k: Any) -> Any: ...
        def __setitem__(self, k: Any, value: Any) -> None: ...

else:

    def dataclass_transform():
        return lambda f: f

    class Array:
        """``Array[T, n]``: a fixed array field of a struct."""

        def __class_getitem__(cls, params: Any) -> ArrayOf:
            elem, count = params
            if not isinstance(count, int) or count < 1:
                raise TypeError(f"the length of an Array is a positive number, not {count!r}")
            return ArrayOf(elem, count)


@dataclass_transform()
def struct(cls: C) -> C:
    """Make a class of annotated fields a struct of the language.

    Fields are scalars, enums, vectors, other structs and ``Array[T, n]``. Methods and class methods may be called
    in kernels. On the host the class is a dataclass; ``cls.dtype()`` is its NumPy dtype.
    """
    made: Any = dataclasses.dataclass(cls)
    made.__gridwise_struct__ = True
    if "copy" not in cls.__dict__:
        made.copy = _copy
    made.dtype = classmethod(_dtype)
    return made  # type: ignore[no-any-return]


def dtype_of(t: Any) -> np.dtype[Any]:
    """The NumPy dtype of a type of the language in memory: C layout, ``align=True``."""
    if isinstance(t, ScalarType):
        return t.dtype
    if is_struct(t):
        hints = typing.get_type_hints(t, localns={t.__name__: t})
        return np.dtype([(f.name, dtype_of(hints[f.name])) for f in dataclasses.fields(t)], align=True)
    if is_enum(t):
        return dtype_of(getattr(t, "__gridwise_enum__", i32))
    if isinstance(t, typing.NewType):
        return dtype_of(t.__supertype__)
    if isinstance(t, ArrayOf):
        return np.dtype((dtype_of(t.elem), (t.count,)))
    if isinstance(t, VectorOf):
        return np.dtype([(lane, dtype_of(t.elem)) for lane in "xyzw"[: t.lanes]], align=True)
    if isinstance(t, OptionOf):
        return np.dtype([("present", np.bool_), ("value", dtype_of(t.elem))], align=True)
    raise TypeError(f"{t!r} cannot be stored in an array")


def _dtype(cls: type) -> np.dtype[Any]:
    """The NumPy dtype of the struct: C layout, equal to ``numpy.dtype(..., align=True)``, on every target."""
    return dtype_of(cls)


def _copy(self: Any) -> Any:
    """A struct of the same values that shares nothing with this one."""
    fresh = {}
    for f in dataclasses.fields(self):
        value = getattr(self, f.name)
        fresh[f.name] = value.copy() if is_struct(type(value)) or hasattr(value, "__array_interface__") else value
    return type(self)(**fresh)


def is_struct(obj: Any) -> bool:
    """Whether ``obj`` is a class made by ``@gw.struct``."""
    return isinstance(obj, type) and bool(obj.__dict__.get("__gridwise_struct__"))


def enum(repr: ScalarType) -> Callable[[E], E]:
    """``@gw.enum(u32)`` on an ``enum.IntEnum``: its values are held as that integer type."""

    def mark(cls: E) -> E:
        if not (isinstance(cls, type) and issubclass(cls, _enum.IntEnum)):
            raise TypeError("@gw.enum(...) decorates an enum.IntEnum class")
        for member in cls:
            if not repr.min <= int(member) <= repr.max:
                raise TypeError(f"{cls.__name__}.{member.name} = {int(member)} does not fit {repr.name}")
        cls.__gridwise_enum__ = repr  # type: ignore[attr-defined]
        return cls

    return mark


def is_enum(obj: Any) -> bool:
    """Whether ``obj`` is an IntEnum class (its integer type is i32 unless ``@gw.enum`` says another)."""
    return isinstance(obj, type) and issubclass(obj, _enum.IntEnum)
