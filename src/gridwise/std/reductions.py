"""Reductions of whole arrays: ``sum``, ``min``, ``max``, and any associative and commutative function.

Two launches: each block reduces what its threads walk over, four neighbouring elements at a time, and one block
reduces the results of the blocks. On a CPU one launch does it: see cores.py. The order of additions depends on the
size of the array and the kind of device alone, so the result is the same bits on every run; it is not the order of a
loop, so floats may differ from NumPy's in the last bits.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable
from functools import cache
from typing import Any, Protocol, TypeVar

import numpy as np

import gridwise as gw
from gridwise import DisjointSlice, Slice, barrier, thread

from . import cores
from .arrays import Like, empty_like, scalar_of

BLOCK = 256
MOST_BLOCKS = 1024  # enough for 2,048 threads on each of 128 multiprocessors; one block can reduce their results


class Element(Protocol):
    """What can be reduced: anything a function of the language takes."""

    def __add__(self, other: Any, /) -> Any: ...


T = TypeVar("T", bound=Element)


def _add(x, y):
    return x + y


def _min(x, y):
    return builtins.min(x, y)


def _max(x, y):
    return builtins.max(x, y)


@cache
def _kernel(combine: Callable[[Any, Any], Any]) -> Any:
    """The kernel that reduces with ``combine``: one result a block."""

    @gw.kernel(domain=1, block=BLOCK)
    def reduce_blocks(a: Slice[T], out: DisjointSlice[T], identity: T) -> None:
        t = thread.local_index()
        me = thread.global_index()
        threads = thread.grid_dim() * BLOCK
        groups = len(a) // 4
        total = identity
        for g in range(me, groups, threads):
            pair = combine(a[4 * g], a[4 * g + 1])
            other = combine(a[4 * g + 2], a[4 * g + 3])
            total = combine(total, combine(pair, other))
        last = 4 * groups + me
        if last < len(a):
            total = combine(total, a[last])
        part = gw.shared((BLOCK,), T)
        part[t] = total
        barrier()
        step = BLOCK // 2
        while step > 0:
            if t < step:
                part[t] = combine(part[t], part[t + step])
            barrier()
            step //= 2
        block = thread.block_index()
        if t == 0 and block < len(out):
            out[block] = part[0]

    return reduce_blocks


def reduce(combine: Callable[[Any, Any], Any], identity: Any, a: Like, out: Like | None = None) -> Any:
    """Combine all elements of ``a`` by an associative and commutative function of the language.

    Args:
        combine:  a plain function of two elements; it is compiled into the kernel.
        identity: what ``combine`` leaves alone; also the result for an empty array.
        a:        an array on a device or in NumPy, of any shape if contiguous.
        out:      one element of the same type on the same device, to stay there; otherwise the result is returned as
                  a NumPy scalar, which waits for it.
    """
    flat = a if len(a.shape) == 1 else a.reshape(-1)
    if lanes := cores.takes(flat):
        result = empty_like(a, 1) if out is None else out
        cores.reduce(combine, identity, flat, result, lanes)
        return scalar_of(result) if out is None else None
    kernel = _kernel(combine)
    blocks = builtins.max(1, builtins.min(MOST_BLOCKS, -(-flat.size // (4 * BLOCK))))
    result = empty_like(a, 1) if out is None else out
    if blocks == 1:
        kernel(flat, result, identity, grid=1)
    else:
        parts = empty_like(a, blocks)
        kernel(flat, parts, identity, grid=blocks)
        kernel(parts, result, identity, grid=1)
    return scalar_of(result) if out is None else None


def sum(a: Like, out: Like | None = None) -> Any:
    """The sum, in the array's own type: integers wrap. 0 for an empty array. See ``reduce`` for ``out``."""
    return reduce(_add, np.dtype(a.dtype).type(0), a, out)


def min(a: Like, out: Like | None = None) -> Any:
    """The smallest element; NaN if there is one. Raises ValueError for an empty array. See ``reduce`` for ``out``."""
    return reduce(_min, _extreme(a, "max"), a, out)


def max(a: Like, out: Like | None = None) -> Any:
    """The largest element; NaN if there is one. Raises ValueError for an empty array. See ``reduce`` for ``out``."""
    return reduce(_max, _extreme(a, "min"), a, out)


def _extreme(a: Like, which: str) -> Any:
    """The value that every element of the array's type is at most, or at least."""
    if a.size == 0:
        raise ValueError("an empty array has no smallest or largest element")
    dtype = np.dtype(a.dtype)
    if dtype.kind in "iu":
        return getattr(np.iinfo(dtype), which)
    return float("inf") if which == "max" else float("-inf")
