"""Arrays as a kernel sees them in a plain-Python run: ``i in c`` asks for an index, structs are of their class.

A struct read from an array is a copy, as in a compiled kernel; assigning a field of ``a[i]`` also writes the array.
"""

from __future__ import annotations

import dataclasses
import typing
from functools import lru_cache
from typing import Any

import numpy as np

from .options import OptionValue
from .structs import ArrayOf, dtype_of, is_enum, is_struct
from .types import OptionOf, VectorOf
from .vectors import Vector


class PlainArray(np.ndarray[Any, Any]):
    """A NumPy array of elements of a language type, ``elem``."""

    elem: Any = None

    @classmethod
    def over(cls, array: np.ndarray[Any, Any], elem: Any) -> PlainArray:
        """A view of ``array`` whose elements are of type ``elem``."""
        view = array.view(cls)
        view.elem = elem
        return view

    def __contains__(self, i: object) -> bool:
        at = i if isinstance(i, tuple) else (i,)
        return len(at) == self.ndim and all(0 <= int(k) < n for k, n in zip(at, self.shape, strict=True))

    def __getitem__(self, i: Any) -> Any:
        element = super().__getitem__(_index(i))
        if isinstance(element, np.ndarray):
            return element
        return read(self.elem, element) if self.elem is not None else element

    def __setitem__(self, i: Any, value: Any) -> None:
        super().__setitem__(_index(i), record(value))


def _index(i: Any) -> Any:
    if isinstance(i, tuple):
        return tuple(int(k) for k in i)
    return int(i) if isinstance(i, np.integer) else i


def zeros(shape: int | tuple[int, ...], elem: Any) -> PlainArray:
    """A new array of ``elem``, every byte zero."""
    return PlainArray.over(np.zeros(shape, dtype_of(elem)), elem)


def read(t: Any, value: Any) -> Any:
    """The Python object for an element that NumPy gave: of the struct, enum, vector or option ``t``."""
    if is_struct(t):
        return _stored(t, value)
    if is_enum(t):
        return t(int(value))
    if isinstance(t, VectorOf):
        return Vector.of(t, tuple(value[lane] for lane in "xyzw"[: t.lanes]))
    if isinstance(t, OptionOf):
        return OptionValue(bool(value["present"]), read(t.elem, value["value"]))
    if isinstance(t, ArrayOf):
        return _Items(t, value)
    return value


def record(value: Any) -> Any:
    """What NumPy stores for a value of the language."""
    if is_struct(type(value)) or isinstance(value, _Stored):
        return tuple(record(getattr(value, f.name)) for f in dataclasses.fields(value))
    if isinstance(value, Vector):
        return value.items
    if isinstance(value, OptionValue):
        return (value.is_some, record(value.held) if value.is_some else 0)
    if isinstance(value, _Items):
        return tuple(record(item) for item in value)
    return value


class _Items(list[Any]):
    """A fixed array of a struct that was read from memory: a copy that also writes there."""

    def __init__(self, t: ArrayOf, place: Any):
        super().__init__(read(t.elem, item) for item in place)
        self.place = place

    def __setitem__(self, k: Any, value: Any) -> None:
        super().__setitem__(k, value)
        self.place[k] = record(value)


class _Stored:
    """Mixed into a struct's class for the values that ``PlainArray`` gives."""

    def __setattr__(self, name: str, value: Any) -> None:
        place = self.__dict__["_place"]
        place[name] = record(value)
        hint = typing.get_type_hints(type(self).__mro__[2], localns={type(self).__name__: type(self)})[name]
        self.__dict__[name] = read(hint, place[name])

    def __eq__(self, other: object) -> bool:
        ours = dataclasses.fields(self)  # type: ignore[arg-type]
        return isinstance(other, type(self).__mro__[2]) and all(
            getattr(self, f.name) == getattr(other, f.name) for f in ours
        )

    __hash__ = None  # type: ignore[assignment]

    def copy(self) -> Any:
        """A struct of the same values that writes nowhere else."""
        cls = type(self).__mro__[2]
        parts = {f.name: getattr(self, f.name) for f in dataclasses.fields(cls)}
        return cls(
            **{
                n: v.copy() if isinstance(v, _Stored) else list(v) if isinstance(v, _Items) else v
                for n, v in parts.items()
            }
        )


@lru_cache(maxsize=256)
def _stored_class(cls: type) -> type:
    return type(cls.__name__, (_Stored, cls), {})


def _stored(cls: type, place: Any) -> Any:
    made: Any = object.__new__(_stored_class(cls))
    hints = typing.get_type_hints(cls, localns={cls.__name__: cls})
    made.__dict__["_place"] = place
    for f in dataclasses.fields(cls):
        value = place[f.name]
        made.__dict__[f.name] = read(hints[f.name], value)
    return made
