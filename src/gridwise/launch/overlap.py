"""Whether two arguments share memory, by the addresses of their elements."""

from __future__ import annotations

import numpy as np

from gridwise.devices.array import span
from gridwise.devices.memory import ArrayArg


class _Fake:
    """An array header over memory that is never touched: lets NumPy solve the overlap of strided views."""

    def __init__(self, address: int, arg: ArrayArg, size: int):
        self.__array_interface__ = {
            "version": 3,
            "shape": arg.shape,
            "strides": tuple(s * size for s in arg.strides),
            "typestr": f"|V{size}",
            "data": (address, True),
        }


_WORK = 10_000  # steps of NumPy's solver before an undecided pair counts as overlapping
_BASE = 1 << 40  # where a buffer without an address is imagined to lie


def _place(arg: ArrayArg, size: int) -> tuple[int, int, int]:
    """Address of element 0, and the byte range touched."""
    low, high = span(arg.shape, arg.strides)
    base = (arg.buffer.address or _BASE) + arg.offset
    return base, base + low * size, base + high * size


def overlaps(a: ArrayArg, a_size: int, b: ArrayArg, b_size: int) -> bool:
    """Whether any byte belongs to both. ``a_size`` and ``b_size`` are element sizes in bytes."""
    if a.buffer is not b.buffer and not (a.buffer.address and b.buffer.address):
        return False
    base_a, low_a, high_a = _place(a, a_size)
    base_b, low_b, high_b = _place(b, b_size)
    if high_a <= low_b or high_b <= low_a or low_a == high_a or low_b == high_b:
        return False
    dense_a = high_a - low_a == a_size * _count(a)
    dense_b = high_b - low_b == b_size * _count(b)
    if dense_a and dense_b:
        return True
    try:
        x, y = np.asarray(_Fake(base_a, a, a_size)), np.asarray(_Fake(base_b, b, b_size))
        return bool(np.shares_memory(x, y, max_work=_WORK))  # type: ignore[arg-type]
    except np.exceptions.TooHardError:
        return True


def _count(arg: ArrayArg) -> int:
    n = 1
    for extent in arg.shape:
        n *= extent
    return n


def folds(arg: ArrayArg) -> bool:
    """Whether a strided view may reach one element by two indices (a broadcast axis, a sliding window).

    Exact for views made by slicing, transposing and broadcasting: each axis must step over all that the
    axes with smaller strides reach.
    """
    reach = 0
    for stride, extent in sorted((abs(s), n) for s, n in zip(arg.strides, arg.shape, strict=True)):
        if extent == 0:
            return False
        if extent > 1:
            if stride <= reach:
                return True
            reach += stride * (extent - 1)
    return False
