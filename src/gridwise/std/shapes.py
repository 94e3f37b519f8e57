"""What the host side of the standard library asks of arrays: ours, NumPy's and others'."""

from __future__ import annotations

from typing import Any

import gridwise as gw


def flat(array: Any, name: str) -> Any:
    """A one-dimensional view of an array: of any strides if it has one axis, contiguous otherwise."""
    if array.ndim == 1:
        return array
    flags = getattr(array, "flags", None)
    contiguous = flags.c_contiguous if flags is not None else array.contiguous
    if not contiguous:
        raise gw.LaunchValueError(f"{name} has {array.ndim} axes and is not contiguous: copy it first")
    return array.reshape(-1)
