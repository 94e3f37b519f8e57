"""Running totals: ``scan`` with any associative function, ``cumsum``.

Three launches: each block reduces its part, one block scans the results of the blocks, and each block scans its
part from there on. A thread owns a run of neighbouring elements; the runs of a block are scanned in shared memory.
Where blocks may wait for earlier ones, one launch does it all: see lookback.py for CUDA, cores.py for CPUs.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, Protocol, TypeVar

import numpy as np

import gridwise as gw
from gridwise import Const, DisjointSlice, Slice, barrier, thread

from . import cores, lookback
from .arrays import Like, device_of, empty_like

BLOCK = 256
RUN = 8  # neighbouring elements a thread
PART = BLOCK * RUN


class Element(Protocol):
    """What can be scanned."""

    def __add__(self, other: Any, /) -> Any: ...


T = TypeVar("T", bound=Element)


def _add(x, y):
    return x + y


@cache
def _kernels(combine: Callable[[Any, Any], Any]) -> tuple[Any, Any]:
    """The kernels for one function: the totals of the parts, and the scan of each part from where it starts."""

    def read_run(a, start, identity, mine):
        """Fill ``mine`` with a thread's run; its elements combined."""
        if start + RUN <= len(a):  # a whole run: read in pieces of 16 bytes
            for k in gw.static(range(RUN)):
                mine[k] = a[start + k]
        else:
            for k in gw.static(range(RUN)):
                mine[k] = a[start + k] if start + k < len(a) else identity
        total = identity
        for k in gw.static(range(RUN)):
            total = combine(total, mine[k])
        return total

    @gw.kernel(domain=1, block=BLOCK)
    def part_totals(a: Slice[T], totals: DisjointSlice[T], identity: T) -> None:
        t = thread.local_index()
        start = thread.global_index() * RUN
        mine = gw.local((RUN,), T)
        total = read_run(a, start, identity, mine)
        part = gw.shared((BLOCK,), T)
        part[t] = total
        barrier()
        step = 1
        while step < BLOCK:  # neighbours first: the function need not be commutative
            if t % (2 * step) == 0:
                part[t] = combine(part[t], part[t + step])
            barrier()
            step *= 2
        block = thread.block_index()
        if t == 0 and block < len(totals):
            totals[block] = part[0]

    @gw.kernel(domain=1, block=BLOCK)
    def scan_parts(a: Slice[T], before: Slice[T], out: DisjointSlice[T], identity: T, exclusive: Const[bool]) -> None:
        t = thread.local_index()
        start = thread.global_index() * RUN
        mine = gw.local((RUN,), T)
        total = read_run(a, start, identity, mine)
        sums = gw.shared((2, BLOCK), T)
        sums[0, t] = total
        barrier()
        side = 0
        step = 1
        while step < BLOCK:
            if t >= step:
                sums[1 - side, t] = combine(sums[side, t - step], sums[side, t])
            else:
                sums[1 - side, t] = sums[side, t]
            barrier()
            side = 1 - side
            step *= 2
        running = identity
        block = thread.block_index()
        if block < len(before):
            running = before[block]
        if t > 0:
            running = combine(running, sums[side, t - 1])
        for k in gw.static(range(RUN)):
            value = mine[k]
            if exclusive:
                mine[k] = running
                running = combine(running, value)
            else:
                running = combine(running, value)
                mine[k] = running
        if start + RUN <= len(out):
            for i in thread.run(RUN):
                out[i] = mine[int(i) - start]
        else:
            for i in thread.run(RUN):
                if i in out:
                    out[i] = mine[int(i) - start]

    return part_totals, scan_parts


def scan(
    combine: Callable[[Any, Any], Any], identity: Any, a: Like, out: Like | None = None, exclusive: bool = False
) -> Any:
    """Element i of the result combines elements 0 to i of ``a``; to i - 1 if ``exclusive`` (the first is ``identity``).

    Args:
        combine:  a plain function of two elements, associative; it is compiled into the kernels.
        identity: what ``combine`` leaves alone.
        a:        a one-dimensional array on a device or in NumPy.
        out:      where the result goes: same type and length, not overlapping ``a``. A new array if not given.
    """
    if len(a.shape) != 1:
        raise ValueError(f"scan takes an array of one axis, not {len(a.shape)}")
    result = empty_like(a, a.shape[0]) if out is None else out
    if lanes := cores.takes(a):
        cores.scan(combine, identity, a, result, exclusive, lanes, combine is _add)
        return result
    parts = -(-a.shape[0] // PART)
    one_pass = np.dtype(a.dtype).name in lookback.HALVES and a.shape[0] <= lookback.MOST
    if parts > 1 and one_pass and device_of(a).kind == "cuda":
        lookback.scan(combine, identity, a, result, exclusive)
        return result
    totals_of, scan_parts = _kernels(combine)
    if parts > 1:
        totals = empty_like(a, parts)
        totals_of(a, totals, identity, grid=parts)
        before = scan(combine, identity, totals, exclusive=True)
    else:
        before = empty_like(a, 0)
    if parts:
        scan_parts(a, before, result, identity, exclusive, grid=parts)
    return result


def cumsum(a: Like, out: Like | None = None, exclusive: bool = False) -> Any:
    """Running sums, in the array's own type: integers wrap. See ``scan``."""
    return scan(_add, np.dtype(a.dtype).type(0), a, out, exclusive)
