"""Stable sorting by digits, least significant first: keys of u32, i32, f32 or u64, alone or with values.

Each pass takes four bits. Blocks count the digits of their keys; one scan over all counts, digit by digit, gives
where each block's keys of each digit begin; then each block ranks its keys and moves them there. Floats are ordered
by their bits: -0.0 before 0.0, NaN last. On a CPU it is done another way (``radix_cores.py``), to the same result.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, TypeVar

import numpy as np

import gridwise as gw
from gridwise import Const, DisjointSlice, Slice, atomic, barrier, i32, thread, u32, u64

from .arrays import Like, empty_like, on_cores
from .radix_cores import order_f32, sort_on_cores
from .scans import cumsum

K = TypeVar("K")
V = TypeVar("V")
BLOCK = 128  # the counters of a block take 8 of the 16 KiB that every device has
RUN = 16  # neighbouring keys a thread
PART = BLOCK * RUN
BITS = 4
DIGITS = 1 << BITS
STRIP = DIGITS  # neighbouring counters that a thread scans: DIGITS * BLOCK of them, for BLOCK threads
STRIPS = BLOCK // STRIP  # of a row


def _digit_u32(key, shift):
    return i32(key >> shift & 15)


def _digit_i32(key, shift):
    return i32((gw.bitcast(key, u32) ^ 0x80000000) >> shift & 15)


def _digit_f32(key, shift):
    return i32(order_f32(key) >> shift & 15)


def _digit_u64(key, shift):
    return i32(key >> u64(shift) & 15)


DIGIT: dict[str, Callable[[Any, Any], Any]] = {
    "uint32": _digit_u32, "int32": _digit_i32, "float32": _digit_f32, "uint64": _digit_u64,
}  # fmt: skip


@cache
def _kernels(digit: Callable[[Any, Any], Any]) -> tuple[Any, Any]:
    """The kernels for one type of keys: the digits of each block, and the move."""

    @gw.kernel(domain=1, block=BLOCK)
    def count_digits(keys: Slice[K], counts: DisjointSlice[u32, 2], shift: u32) -> None:
        t, block = thread.local_index(), thread.block_index()
        hits = gw.shared((DIGITS,), u32)
        for e in gw.static(range(RUN)):
            i = block * PART + t + BLOCK * e
            if i < len(keys):
                atomic.add(hits, digit(keys[i], shift), 1, scope="block")
        barrier()
        if t < DIGITS and t < counts.shape[0] and block < counts.shape[1]:
            counts[t, block] = hits[t]

    @gw.kernel(domain=1, block=BLOCK)
    def move(
        keys: Slice[K], values: Slice[V], begins: Slice[u32, 2], shift: u32, out: DisjointSlice[K],
        out_values: DisjointSlice[V], pairs: Const[bool],
    ) -> None:  # fmt: skip
        t, block = thread.local_index(), thread.block_index()
        start = thread.global_index() * RUN
        mine = gw.local((RUN,), K)
        for e in gw.static(range(RUN)):
            if start + e < len(keys):
                mine[e] = keys[start + e]
        # How many keys of each digit each thread has; then how many come before them in the block.
        counts = gw.shared((DIGITS, BLOCK), u32)
        for e in gw.static(range(RUN)):
            if start + e < len(keys):
                counts[digit(mine[e], shift), t] += 1
        barrier()
        row, col = t // STRIPS, t % STRIPS * STRIP
        total = u32(0)
        for k in gw.static(range(STRIP)):
            total += counts[row, col + k]
        sums = gw.shared((2, BLOCK), u32)
        sums[0, t] = total
        barrier()
        side = 0
        step = 1
        while step < BLOCK:
            before = sums[side, t - step] if t >= step else u32(0)
            sums[1 - side, t] = sums[side, t] + before
            barrier()
            side = 1 - side
            step *= 2
        running = sums[side, t] - total
        for k in gw.static(range(STRIP)):
            here = counts[row, col + k]
            counts[row, col + k] = running
            running += here
        barrier()
        # Where a digit's keys begin in the block is the first counter of its row.
        first = gw.shared((DIGITS,), u32)
        if t < DIGITS:
            first[t] = counts[t, 0]
        barrier()
        for e in gw.static(range(RUN)):
            if start + e < len(keys):
                d = digit(mine[e], shift)
                rank = counts[d, t]
                counts[d, t] = rank + 1
                at = i32(begins[d, block] + rank - first[d])
                with gw.unsafe("ranks: the scan of the counts gives every key a place of its own"):
                    out[at] = mine[e]
                    if pairs:
                        out_values[at] = values[start + e]

    return count_digits, move


def radix_sort(keys: Like, values: Like | None = None) -> None:
    """Sort a one-dimensional array upwards, in place and stably; queued, nothing waits.

    Args:
        keys:   of u32, i32, f32 or u64, on a device or in NumPy.
        values: an array of the same length that is put in the same order, in place.
    """
    name = np.dtype(keys.dtype).name
    if name not in DIGIT:
        raise TypeError(f"radix_sort takes keys of {', '.join(DIGIT)}, not {name}")
    if len(keys.shape) != 1 or (values is not None and tuple(values.shape) != tuple(keys.shape)):
        raise ValueError("radix_sort takes keys of one axis, and values of the same length")
    n = keys.shape[0]
    if n < 2:
        return
    mine, with_them = on_cores(keys), on_cores(values) if values is not None else None
    if mine is not None and (values is None) == (with_them is None):
        sort_on_cores(mine, with_them)
        return
    count_digits, move = _kernels(DIGIT[name])
    blocks = -(-n // PART)
    counts: Any
    if isinstance(keys, np.ndarray):
        counts = np.empty((DIGITS, blocks), np.uint32)
    else:
        counts = keys.device.empty((DIGITS, blocks), u32)
    pairs = values is not None
    source = (keys, values if values is not None else keys)
    target = (empty_like(keys, n), empty_like(source[1], n if pairs else 1))
    spare = target[1] if not pairs else None  # what stands in for values where there are none
    for shift in range(0, np.dtype(keys.dtype).itemsize * 8, BITS):  # an even number of passes: ends in `keys`
        count_digits(source[0], counts, shift, grid=blocks)
        begins = cumsum(counts.reshape(-1), exclusive=True).reshape(DIGITS, blocks)
        out_values = target[1] if spare is None else spare
        move(source[0], source[1], begins, shift, target[0], out_values, pairs, grid=blocks)
        source, target = target, source
        if spare is not None:
            source, target = (source[0], source[0]), (target[0], spare)
