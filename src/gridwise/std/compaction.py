"""Keeping some elements of an array, in order."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, TypeVar

import numpy as np

import gridwise as gw
from gridwise import DisjointSlice, Slice, i32, thread

from .arrays import Like, empty_like, scalar_of
from .scans import cumsum

T = TypeVar("T")
BLOCK = 256


@cache
def _kernels(keep: Callable[[Any], Any]) -> tuple[Any, Any]:
    """The kernels for one predicate: marks, and the move to the places that the running counts give."""

    @gw.kernel(domain=1, block=BLOCK)
    def mark(a: Slice[T], marks: DisjointSlice[i32]) -> None:
        i = thread.index_1d()
        if i in marks and i in a:
            marks[i] = i32(1) if keep(a[i]) else i32(0)

    @gw.kernel(domain=1, block=BLOCK)
    def move(a: Slice[T], until: Slice[i32], out: DisjointSlice[T]) -> None:
        i = int(thread.index_1d())
        if i < len(a) and i < len(until):
            at = until[i] - 1
            before = until[i - 1] if i > 0 else i32(0)
            if at >= before:
                with gw.unsafe("running counts of marks: each marked element has a count of its own"):
                    out[at] = a[i]

    return mark, move


def compact(keep: Callable[[Any], Any], a: Like) -> Any:
    """The elements for which ``keep`` holds, in their order: a new array where ``a`` is. Waits for their number.

    Args:
        keep: a plain function of one element that gives a bool; it is compiled into the kernels.
        a:    a one-dimensional array on a device or in NumPy.
    """
    if len(a.shape) != 1:
        raise ValueError(f"compact takes an array of one axis, not {len(a.shape)}")
    n = a.shape[0]
    if n == 0:
        return empty_like(a, 0)
    marks = np.empty(n, np.int32) if isinstance(a, np.ndarray) else a.device.empty(n, i32)
    mark, move = _kernels(keep)
    blocks = -(-n // BLOCK)
    mark(a, marks, grid=blocks)
    until = cumsum(marks)
    out = empty_like(a, int(scalar_of(until[n - 1 :])))
    if out.shape[0]:
        move(a, until, out, grid=blocks)
    return out
