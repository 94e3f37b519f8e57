"""Reductions and scans for the few cores of a CPU, in one launch: a block is one gang of vector lanes.

A block takes a part of the array that a core's own cache holds. It combines the part's elements, waits for what
comes before the part, publishes the two combined, and (for a scan) walks over the part again from there on. Blocks
are begun in order, so whoever is waited for has been begun, and waits for less. A short array is one part. What is
combined with what depends on the array's length and the lanes of the machine, so floats have the same bits on every
run. (Annotations are evaluated here: a kernel is made for each element type, which its parameters name.)
"""

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

import gridwise as gw
from gridwise import AtomicSlice, Const, DisjointSlice, Slice, atomic, subgroup, thread, u64
from gridwise.devices.cpu import CpuDevice

from .arrays import Like, device_of
from .lookback import HALVES, MOST, travel

PART = 1 << 15  # elements: so many that workers take a part at a time, and few enough for the cache
SHORT = 1 << 18  # elements up to which one core is done before another is awake
STEPS = 4  # vectors at a time
_NAMES = {np.dtype(name): name for name in HALVES}  # a dtype's own ``name`` takes microseconds


@cache
def _kernels(combine: Callable[[Any, Any], Any], name: str, LANES: int) -> tuple[Any, Any, Any, Any]:
    """Scan by parts, scan of a short array, and reduce likewise, for one function and one element type."""
    words, half, whole_of = travel(name)
    elem = HALVES[name]
    TILE = LANES * STEPS
    bits = LANES.bit_length() - 1

    def publish(state, part, value):
        for k in gw.static(range(words)):
            atomic.exchange(state, part * words + k, u64(1) << 32 | half(value, k))

    def arrived(state, at):
        word = atomic.add(state, at, 0)
        while word >> 32 == 0:
            word = atomic.add(state, at, 0)
        return word

    def wait_for(state, part):
        low = arrived(state, part * words)
        return whole_of(low, arrived(state, part * words + 1) if words > 1 else low)

    def across(x):
        """All lanes combined, in their order."""
        for s in gw.static(range(bits)):
            x = combine(x, subgroup.shuffle_down(x, 1 << s))
        return subgroup.broadcast(x, 0)

    def total_of(a, first, tiles, identity, sums, lane, COMMUTES):
        """The elements of a part combined; in order unless the function commutes."""
        total = identity
        for k in gw.static(range(STEPS)):
            sums[k] = identity
        for v in range(tiles):
            start = first + v * TILE
            if start + TILE <= len(a):
                for k in gw.static(range(STEPS)):
                    if COMMUTES:
                        sums[k] = combine(sums[k], a[start + k * LANES + lane])
                    else:
                        total = combine(total, across(a[start + k * LANES + lane]))
            else:
                for k in gw.static(range(STEPS)):
                    at = start + k * LANES + lane
                    total = combine(total, across(a[at] if at < len(a) else identity))
        if COMMUTES:
            for k in gw.static(range(STEPS)):
                total = combine(total, across(sums[k]))
        return total

    def scanned(x, running, lane, exclusive):
        """Each lane's running total after what came before, and that of all lanes."""
        for s in gw.static(range(bits)):
            below = subgroup.shuffle_up(x, 1 << s)
            x = combine(below, x) if lane >= 1 << s else x
        after = combine(running, subgroup.broadcast(x, LANES - 1))
        if exclusive:
            below = subgroup.shuffle_up(x, 1)
            x = combine(running, below) if lane > 0 else running
        else:
            x = combine(running, x)
        return x, after

    def walk(a, out, first, tiles, running, identity, lane, exclusive):
        """Scan a part after what came before it."""
        for v in range(tiles):
            start = first + v * TILE
            if start + TILE <= len(a) and start + TILE <= len(out):
                for k in gw.static(range(STEPS)):
                    x, running = scanned(a[start + k * LANES + lane], running, lane, exclusive)
                    out[start + k * LANES + lane] = x
            else:
                for k in gw.static(range(STEPS)):
                    at = start + k * LANES + lane
                    x, running = scanned(a[at] if at < len(a) else identity, running, lane, exclusive)
                    if at in out:
                        out[at] = x

    @gw.kernel(domain=1, block=LANES)
    def scan_parts(
        a: Slice[elem], out: DisjointSlice[elem], state: AtomicSlice[u64], identity: elem,
        exclusive: Const[bool], COMMUTES: Const[bool],
    ) -> None:  # fmt: skip
        """``state``: totals up to the end of each part, zero at the start."""
        lane = thread.local_index()
        part = thread.block_index()
        if part >= MOST // PART:  # never: so that positions do not wrap
            return
        tiles = min(PART // TILE, -(-(len(a) - part * PART) // TILE))
        running = identity
        total = total_of(a, part * PART, tiles, identity, gw.local((STEPS,), elem), lane, COMMUTES)
        if part > 0:
            running = wait_for(state, part - 1)
        if lane == 0:
            publish(state, part, combine(running, total))
        walk(a, out, part * PART, tiles, running, identity, lane, exclusive)

    @gw.kernel(domain=1, block=LANES)
    def scan_short(a: Slice[elem], out: DisjointSlice[elem], identity: elem, exclusive: Const[bool]) -> None:
        if thread.block_index() == 0:
            walk(a, out, 0, -(-len(a) // TILE), identity, identity, thread.local_index(), exclusive)

    @gw.kernel(domain=1, block=LANES)
    def reduce_parts(
        a: Slice[elem], out: DisjointSlice[elem], state: AtomicSlice[u64], identity: elem
    ) -> None:
        lane = thread.local_index()
        part = thread.block_index()
        if part >= MOST // PART:
            return
        tiles = min(PART // TILE, -(-(len(a) - part * PART) // TILE))
        total = total_of(a, part * PART, tiles, identity, gw.local((STEPS,), elem), lane, True)
        if part > 0:
            total = combine(wait_for(state, part - 1), total)
        if part < thread.grid_dim() - 1:
            if lane == 0:
                publish(state, part, total)
        elif lane == 0 and len(out) > 0:
            out[0] = total

    @gw.kernel(domain=1, block=LANES)
    def reduce_short(a: Slice[elem], out: DisjointSlice[elem], identity: elem) -> None:
        lane = thread.local_index()
        total = total_of(a, 0, -(-len(a) // TILE), identity, gw.local((STEPS,), elem), lane, True)
        if thread.global_index() == 0 and len(out) > 0:
            out[0] = total

    return scan_parts, scan_short, reduce_parts, reduce_short


def takes(a: Like) -> int:
    """The lanes of the CPU that works on ``a`` (one axis), or 0 if these kernels do not suit it."""
    device = device_of(a)
    if not isinstance(device, CpuDevice) or a.dtype not in _NAMES or a.shape[0] > MOST:
        return 0
    return device.machine.lanes


def _parts(a: Like) -> tuple[int, Any]:
    """The number of parts, and the memory where they publish totals."""
    parts = -(-a.shape[0] // PART)
    words = 2 * parts if a.dtype.itemsize == 8 else parts
    return parts, np.zeros(words, np.uint64) if isinstance(a, np.ndarray) else a.device.zeros(words, u64)


def scan(
    combine: Callable[[Any, Any], Any], identity: Any, a: Like, out: Any, exclusive: bool, lanes: int, commutes: bool
) -> None:
    """The scan of ``a``, which ``takes`` found to have ``lanes``, into ``out``."""
    scan_parts, scan_short, _, _ = _kernels(combine, _NAMES[a.dtype], lanes)
    if a.shape[0] <= SHORT:
        scan_short(a, out, identity, exclusive, grid=1)
    else:
        parts, state = _parts(a)
        scan_parts(a, out, state, identity, exclusive, commutes, grid=parts)


def reduce(combine: Callable[[Any, Any], Any], identity: Any, a: Like, out: Any, lanes: int) -> None:
    """All elements of ``a``, which ``takes`` found to have ``lanes``, combined into the first of ``out``."""
    _, _, reduce_parts, reduce_short = _kernels(combine, _NAMES[a.dtype], lanes)
    if a.shape[0] <= SHORT:
        reduce_short(a, out, identity, grid=1)
    else:
        parts, state = _parts(a)
        reduce_parts(a, out, state, identity, grid=parts)
