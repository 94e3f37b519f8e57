"""Sorting in place by a bitonic network whose short passes run in shared memory.

All comparisons order upwards (the first pass of a stage mirrors the second half), so keys beyond the end count as
greater than all others and are never touched: any length will do. On a CPU keys of u32, i32, f32 and u64 are
sorted by their digits (``radix_cores.py``).
"""

from __future__ import annotations

from typing import Any, Protocol, TypeVar

import gridwise as gw
from gridwise import DisjointSlice, barrier, i32, thread

from .arrays import Like, on_cores
from .radix_cores import CODES, sort_on_cores

BLOCK = 256
CHUNK = 2 * BLOCK  # keys of a block in shared memory


class Ordered(Protocol):
    """Keys that can be compared."""

    def __lt__(self, other: Any, /) -> bool: ...


Key = TypeVar("Key", bound=Ordered)


@gw.kernel(domain=1, block=BLOCK)
def _sort_chunks(keys: DisjointSlice[Key]) -> None:
    """Sort each chunk by itself: every stage up to its length."""
    t, base = thread.local_index(), thread.block_index() * CHUNK
    part = gw.shared((CHUNK,), Key)
    for e in gw.static(range(2)):
        at = base + t + BLOCK * e
        if at < len(keys):
            part[t + BLOCK * e] = keys[at]
    barrier()
    size = 2
    while size <= CHUNK:
        flip = size - 1
        while flip > 0:
            for e in gw.static(range(2)):
                i = t + BLOCK * e
                partner = i ^ flip
                if partner > i and base + partner < len(keys) and part[partner] < part[i]:
                    part[i], part[partner] = part[partner], part[i]
            barrier()
            # The first pass mirrors (flip has all bits set); later ones have a single bit.
            flip = size // 4 if flip == size - 1 else flip // 2
        size *= 2
    for e in gw.static(range(2)):
        at = base + t + BLOCK * e
        if at < len(keys):
            keys[at] = part[t + BLOCK * e]


@gw.kernel(domain=1, block=BLOCK)
def _far_pass(keys: DisjointSlice[Key], flip: i32) -> None:
    """One pass whose pairs lie in different chunks."""
    i = int(thread.index_1d())
    partner = i ^ flip
    if partner > i and partner < len(keys):
        a = keys[i]
        b = keys[partner]
        if b < a:
            keys[i] = b
            keys[partner] = a


@gw.kernel(domain=1, block=BLOCK)
def _near_passes(keys: DisjointSlice[Key]) -> None:
    """The passes of a stage whose pairs lie within a chunk."""
    t, base = thread.local_index(), thread.block_index() * CHUNK
    part = gw.shared((CHUNK,), Key)
    for e in gw.static(range(2)):
        at = base + t + BLOCK * e
        if at < len(keys):
            part[t + BLOCK * e] = keys[at]
    barrier()
    distance = BLOCK
    while distance > 0:
        for e in gw.static(range(2)):
            i = t + BLOCK * e
            partner = i ^ distance
            if partner > i and base + partner < len(keys) and part[partner] < part[i]:
                part[i], part[partner] = part[partner], part[i]
        barrier()
        distance //= 2
    for e in gw.static(range(2)):
        at = base + t + BLOCK * e
        if at < len(keys):
            keys[at] = part[t + BLOCK * e]


def sort(keys: Like) -> None:
    """Sort a one-dimensional array upwards, in place; queued, nothing waits.

    Not stable, which shows only where equal keys differ (-0.0 and 0.0). NaN has no order: keys must not hold one.
    """
    if len(keys.shape) != 1:
        raise ValueError(f"sort takes an array of one axis, not {len(keys.shape)}")
    n = keys.shape[0]
    if n < 2:
        return
    mine = on_cores(keys)
    if mine is not None and mine.dtype.name in CODES:
        sort_on_cores(mine, None)
        return
    chunks = -(-n // CHUNK)
    _sort_chunks(keys, grid=chunks)
    size = 2 * CHUNK
    while size < 2 * n:
        _far_pass(keys, size - 1, grid=-(-n // BLOCK))
        distance = size // 4
        while distance > BLOCK:
            _far_pass(keys, distance, grid=-(-n // BLOCK))
            distance //= 2
        _near_passes(keys, grid=chunks)
        size *= 2
