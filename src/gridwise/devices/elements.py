"""What a user may give as ``dtype``, turned into the IR's element types."""

from __future__ import annotations

from typing import Any, NewType

import numpy as np

from gridwise.ir.types import SCALARS, Field, Scalar, Struct, from_dtype
from gridwise.lang.errors import LaunchTypeError
from gridwise.lang.structs import is_enum, is_struct
from gridwise.lang.types import VectorOf

Element = Scalar | Struct


def _from_structured(dtype: np.dtype) -> Struct | None:
    """A NumPy structured dtype as a layout; None if a member has no IR type."""
    fields: list[Field] = []
    assert dtype.names is not None and dtype.fields is not None
    for name in dtype.names:
        member, offset = dtype.fields[name][:2]
        count = 0
        if member.subdtype is not None:
            member, shape = member.subdtype
            count = int(np.prod(shape))
        t = from_numpy(member)
        if t is None:
            return None
        fields.append(Field(name, t, offset, count))
    return Struct("struct", tuple(fields), dtype.itemsize, dtype.alignment)


_numpy: dict[np.dtype, Element | None] = {}


def from_numpy(dtype: np.dtype) -> Element | None:
    """The element type that a NumPy dtype stands for, or None."""
    try:
        return _numpy[dtype]
    except KeyError:
        found = _from_structured(dtype) if dtype.names else from_dtype(dtype)
        _numpy[dtype] = found
        return found


def element(dtype: Any) -> Element:
    """The element type for a scalar, struct, enum, vector or ``NewType`` of the language, or a NumPy dtype.

    Raises LaunchTypeError for anything else.
    """
    if isinstance(dtype, Scalar | Struct):
        return dtype
    if isinstance(dtype, type) and dtype.__module__.split(".")[0] == "gridwise":
        known = SCALARS.get(dtype.__name__.rstrip("_"))
        if known is not None:
            return known
    if is_struct(dtype) or is_enum(dtype) or isinstance(dtype, VectorOf | NewType):
        from gridwise.frontend import memory_type

        return memory_type(dtype)
    try:
        found = from_numpy(np.dtype(dtype))
    except TypeError:
        found = None
    if found is None:
        shown = getattr(dtype, "__name__", str(dtype))
        raise LaunchTypeError(f"{shown} is not an element type\n  help: use f32, i32, ... or a numpy dtype of those")
    return found


def same_layout(a: Element, b: Element) -> bool:
    """Whether two element types are the same scalars at the same places; struct names do not count."""
    if isinstance(a, Scalar) or isinstance(b, Scalar):
        return a == b
    return (
        a.size == b.size
        and len(a.fields) == len(b.fields)
        and all(
            x.name == y.name and x.offset == y.offset and x.count == y.count and same_layout(x.type, y.type)
            for x, y in zip(a.fields, b.fields, strict=True)
        )
    )
