"""Counting: how often each value, or each range of values, occurs.

Each block counts in shared memory and adds its counts to the result once; where the bins do not fit there, every
element is counted in the result at once. Counts are u32, and the same on every run.
"""

from __future__ import annotations

import builtins
from typing import Any, Protocol, TypeVar

import numpy as np

import gridwise as gw
from gridwise import AtomicSlice, Const, Slice, atomic, barrier, f32, i32, thread, u32

from .arrays import Like

BLOCK = 256
MOST_BLOCKS = 1024
MOST_SHARED_BINS = 3072  # 12 of the 16 KiB that every device has


class Number(Protocol):
    """What can be counted."""

    def __lt__(self, other: Any, /) -> bool: ...


T = TypeVar("T", bound=Number)


@gw.kernel(domain=1, block=BLOCK)
def _count(a: Slice[T], out: AtomicSlice[u32], bins: i32, SHARED: Const[int]) -> None:
    """Element k of ``out`` grows by the number of k in ``a``. ``SHARED`` 0: no counters in shared memory."""
    if SHARED > 0:
        hits = gw.shared((max(1, SHARED),), u32)
        for i in range(thread.global_index(), len(a), thread.grid_dim() * BLOCK):
            k = i32(a[i])
            if 0 <= k < bins:
                atomic.add(hits, k, 1, scope="block")
        barrier()
        for slot in range(thread.local_index(), SHARED, BLOCK):
            if slot < len(out):
                atomic.add(out, slot, hits[slot])
    else:
        for i in range(thread.global_index(), len(a), thread.grid_dim() * BLOCK):
            k = i32(a[i])
            if 0 <= k < bins:
                atomic.add(out, k, 1)


@gw.kernel(domain=1, block=BLOCK)
def _count_ranges(a: Slice[f32], out: AtomicSlice[u32], low: f32, high: f32, SHARED: Const[int]) -> None:
    """Element k of ``out`` grows by the number of elements in the k-th of equal ranges from ``low`` to ``high``."""
    hits = gw.shared((max(1, SHARED),), u32)
    width = (high - low) / f32(len(out))
    for i in range(thread.global_index(), len(a), thread.grid_dim() * BLOCK):
        x = a[i]
        if low <= x <= high:
            k = min(i32((x - low) / width), i32(len(out)) - 1)
            if SHARED > 0:
                atomic.add(hits, k, 1, scope="block")
            else:
                atomic.add(out, k, 1)
    barrier()
    for slot in range(thread.local_index(), SHARED, BLOCK):
        if slot < len(out):
            atomic.add(out, slot, hits[slot])


def _blocks(a: Like) -> int:
    return builtins.max(1, builtins.min(MOST_BLOCKS, -(-a.size // (8 * BLOCK))))


def _counters(a: Like, bins: int, out: Like | None) -> Any:
    if bins < 1:
        raise ValueError(f"at least one bin is needed, not {bins}")
    if out is not None:
        return out
    return np.zeros(bins, np.uint32) if isinstance(a, np.ndarray) else a.device.zeros(bins, u32)


def bincount(a: Like, bins: int, out: Like | None = None) -> Any:
    """How often each of 0 to ``bins`` - 1 occurs in an array of integers; other values are not counted.

    Args:
        a:    an array of an integer type of at most 32 bits, on a device or in NumPy, of any shape if contiguous.
        bins: the length of the result.
        out:  u32 counters to add to; new ones if not given.
    """
    counts = _counters(a, bins, out)
    _count(a.reshape(-1), counts, bins, bins if bins <= MOST_SHARED_BINS else 0, grid=_blocks(a))
    return counts


def histogram(a: Like, bins: int, low: float, high: float, out: Like | None = None) -> Any:
    """How many elements of an f32 array lie in each of ``bins`` equal ranges from ``low`` to ``high``.

    The last range includes ``high``. An element is in range floor((x - low) / ((high - low) / bins)), computed in
    f32: next to an edge that may differ from NumPy's, which computes in f64. NaN is not counted.
    """
    if not low < high:
        raise ValueError(f"low must be below high, and {low} is not below {high}")
    counts = _counters(a, bins, out)
    shared = bins if bins <= MOST_SHARED_BINS else 0
    _count_ranges(a.reshape(-1), counts, low, high, shared, grid=_blocks(a))
    return counts
