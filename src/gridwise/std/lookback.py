"""Running totals in one pass over the data, for GPUs whose blocks make progress side by side.

A block draws the next tile, scans it in registers and shuffles, publishes the tile's total, and waits for what comes
before it (Merrill and Garland, "Single-pass Parallel Prefix Scan with Decoupled Look-back", NVIDIA 2016). Tiles are
drawn in order, so whoever is waited for has started. Unlike there, what is combined with what is fixed: a tile
combines the totals before it in its group of GROUP tiles with all that came before the group, which the group's last
tile publishes. Floats therefore have the same bits on every run.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, Protocol, TypeVar

import numpy as np

import gridwise as gw
from gridwise import (
    AtomicSlice,
    Const,
    DisjointSlice,
    Slice,
    atomic,
    barrier,
    f32,
    f64,
    i32,
    i64,
    subgroup,
    thread,
    u32,
    u64,
)

BLOCK = 256
WARP = 32  # lanes of a subgroup: these kernels run on CUDA alone
WARPS = BLOCK // WARP
ROWS = 4  # of a warp's part; a lane owns QUAD neighbouring elements of each
QUAD = 4
TILE = BLOCK * ROWS * QUAD
GROUP = BLOCK  # tiles: a thread for each of those that may come before
MOST = 1 << 30  # elements: positions are i32


class Element(Protocol):
    """What can be scanned."""

    def __add__(self, other: Any, /) -> Any: ...


T = TypeVar("T", bound=Element)

# How an element travels in the low halves of 64-bit words; the high half says that it is there.
HALVES: dict[str, Any] = {"int32": i32, "uint32": u32, "float32": f32, "int64": i64, "uint64": u64, "float64": f64}


@cache
def travel(name: str) -> tuple[int, Callable[[Any, Any], Any], Callable[[Any, Any], Any]]:
    """Words an element takes, the half that goes into one, and the element from its halves."""
    elem = HALVES[name]
    if np.dtype(name).itemsize == 4:
        return 1, lambda x, k: u64(gw.bitcast(x, u32)), lambda low, high: gw.bitcast(u32(low & 0xFFFFFFFF), elem)

    def half(x, k):
        return gw.bitcast(x, u64) >> u64(32 * k) & 0xFFFFFFFF

    return 2, half, lambda low, high: gw.bitcast(low & 0xFFFFFFFF | high << 32, elem)


@cache
def kernel(combine: Callable[[Any, Any], Any], name: str) -> Any:
    """The kernel for one function and one element type."""
    words, half, whole_of = travel(name)

    def publish(state, at, value):
        for k in gw.static(range(words)):
            atomic.exchange(state, at * words + k, u64(1) << 32 | half(value, k))

    def arrived(state, at):
        """The word at ``at``, once it is there."""
        word = atomic.add(state, at, 0)
        while word >> 32 == 0:
            word = atomic.add(state, at, 0)
        return word

    def wait_for(state, at):
        low = arrived(state, at * words)
        return whole_of(low, arrived(state, at * words + 1) if words > 1 else low)

    @gw.kernel(domain=1, block=BLOCK)
    def scan_tiles(
        a: Slice[T], out: DisjointSlice[T], state: AtomicSlice[u64], identity: T, groups: i32, exclusive: Const[bool],
    ) -> None:  # fmt: skip
        """``state``: totals up to the end of each group, totals of the tiles, and the ticket; zero at the start."""
        t = thread.local_index()
        lane, warp = t % WARP, t // WARP
        drawn = gw.shared((1,), i32)
        sums = gw.shared((WARPS,), T)
        earlier = gw.shared((WARPS,), T)
        first = gw.shared((1,), T)
        if t == 0:
            drawn[0] = i32(u32(atomic.add(state, len(state) - 1, 1) & 0x7FFFFFFF))
        barrier()
        tile = drawn[0]
        base = tile * TILE
        start = base + warp * (WARP * ROWS * QUAD) + lane * QUAD
        inside = 0 <= base <= len(a) - TILE and base <= len(out) - TILE
        mine = gw.local((ROWS, QUAD), T)
        if inside:
            for r in gw.static(range(ROWS)):
                for k in gw.static(range(QUAD)):
                    mine[r, k] = a[start + r * (WARP * QUAD) + k]
        else:
            for r in gw.static(range(ROWS)):
                for k in gw.static(range(QUAD)):
                    i = start + r * (WARP * QUAD) + k
                    mine[r, k] = a[i] if 0 <= i < len(a) else identity

        # Totals up to each element within its row, and what comes before the lane in its row and the rows before.
        carry = identity
        lead = gw.local((ROWS,), T)
        for r in gw.static(range(ROWS)):
            for k in gw.static(range(1, QUAD)):
                mine[r, k] = combine(mine[r, k - 1], mine[r, k])
            total = mine[r, QUAD - 1]
            for s in gw.static(range(5)):
                below = subgroup.shuffle_up(total, 1 << s)
                if lane >= 1 << s:
                    total = combine(below, total)
            below = subgroup.shuffle_up(total, 1)
            lead[r] = combine(carry, below) if lane > 0 else carry
            carry = combine(carry, subgroup.shuffle(total, WARP - 1))
        if lane == 0:
            sums[warp] = carry
        barrier()
        before, total = identity, identity
        for w in gw.static(range(WARPS)):
            if w == warp:
                before = total
            total = combine(total, sums[w])

        # Publish the tile's total; wait for those before it in its group, and for all before the group.
        group, place = tile // GROUP, tile % GROUP
        if t == 0:
            publish(state, groups + tile, total)
        seen = identity
        if t < place:
            seen = wait_for(state, groups + group * GROUP + t)
        if t == GROUP - 1:
            first[0] = wait_for(state, group - 1) if group > 0 else identity
        for s in gw.static(range(5)):  # neighbours first: the function need not be commutative
            seen = combine(seen, subgroup.shuffle_down(seen, 1 << s))
        if lane == 0:
            earlier[warp] = seen
        barrier()
        running = first[0]
        for w in gw.static(range(WARPS)):
            running = combine(running, earlier[w])
        if t == 0 and place == GROUP - 1:
            publish(state, group, combine(running, total))

        running = combine(running, before)
        for r in gw.static(range(ROWS)):
            lead[r] = combine(running, lead[r])
            last = lead[r]
            for k in gw.static(range(QUAD)):
                here = combine(lead[r], mine[r, k])
                mine[r, k] = last if exclusive else here
                last = here
        with gw.unsafe("a block writes the tile that it drew, and no two draw the same"):
            if inside:
                for r in gw.static(range(ROWS)):
                    for k in gw.static(range(QUAD)):
                        out[start + r * (WARP * QUAD) + k] = mine[r, k]
            else:
                for r in gw.static(range(ROWS)):
                    for k in gw.static(range(QUAD)):
                        i = start + r * (WARP * QUAD) + k
                        if 0 <= i < len(out):
                            out[i] = mine[r, k]

    return scan_tiles


def scan(combine: Callable[[Any, Any], Any], identity: Any, a: Any, out: Any, exclusive: bool) -> None:
    """Queue the scan of the device array ``a`` into ``out``: at least one element, at most MOST."""
    name = np.dtype(a.dtype).name
    tiles = -(-a.shape[0] // TILE)
    groups = -(-tiles // GROUP)
    words = (groups + tiles) * travel(name)[0]
    kernel(combine, name)(a, out, a.device.zeros(words + 1, u64), identity, groups, exclusive, grid=tiles)
