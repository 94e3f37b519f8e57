"""``@gw.struct`` and ``@gw.enum``: a program's own types.

A struct is a class of annotated fields. It becomes a dataclass, so it is ordinary Python on the host; its memory
layout is C's, equal to ``numpy.dtype(align=True)``, on every target. Fixed arrays are fields of type ``Array[f32, 4]``.
"""

from __future__ import annotations

import dataclasses
import enum as _enum
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from .types import ScalarType

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
    made = dataclasses.dataclass(cls)
    made.__gridwise_struct__ = True  # type: ignore[attr-defined]
    return made


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
