"""Reductions of the segments of an array: rows of a ragged matrix, buckets, the CSR format.

Segment ``s`` is ``values[offsets[s] : offsets[s + 1]]``. Short segments take a thread each, long ones a block each.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable
from functools import cache
from typing import Any, TypeVar

import numpy as np

import gridwise as gw
from gridwise import DisjointSlice, Slice, barrier, i32, thread

from .arrays import Like

T = TypeVar("T")
BLOCK = 128
SHORT = 32  # elements a segment, on average, below which a thread takes a whole segment


@cache
def _by_threads(combine: Callable[[Any, Any], Any]) -> Any:
    @gw.kernel(block=BLOCK, requires=lambda offsets, out: len(offsets) > len(out))
    def reduce_short(values: Slice[T], offsets: Slice[i32], out: DisjointSlice[T], identity: T) -> None:
        s = thread.index_1d()
        if s in out:
            total = identity
            for k in range(offsets[s], offsets[s + 1]):
                total = combine(total, values[k])
            out[s] = total

    return reduce_short


@cache
def _by_blocks(combine: Callable[[Any, Any], Any]) -> Any:
    @gw.kernel(block=BLOCK, requires=lambda offsets, out: len(offsets) > len(out))
    def reduce_long(values: Slice[T], offsets: Slice[i32], out: DisjointSlice[T], identity: T) -> None:
        s, t = thread.block_index(), thread.local_index()
        part = gw.shared((BLOCK,), T)
        total = identity
        if s in out:
            for k in range(offsets[s] + i32(t), offsets[s + 1], BLOCK):
                total = combine(total, values[k])
        part[t] = total
        barrier()
        step = BLOCK // 2
        while step > 0:
            if t < step:
                part[t] = combine(part[t], part[t + step])
            barrier()
            step //= 2
        if t == 0 and s in out:
            out[s] = part[0]

    return reduce_long


def reduce(combine: Callable[[Any, Any], Any], identity: Any, values: Like, offsets: Like, out: Like) -> None:
    """``out[s]`` = all of segment ``s`` combined by an associative and commutative function; ``identity`` if empty.

    Args:
        combine:  a plain function of two elements; it is compiled into the kernel.
        identity: what ``combine`` leaves alone.
        values:   one axis.
        offsets:  i32, one more than there are segments, ascending; an offset past the end is a DeviceIndexError.
        out:      one element a segment, of the type of ``values``.
    """
    segments = out.shape[0]
    if offsets.shape[0] != segments + 1:
        raise gw.LaunchValueError(f"{segments} segments have {segments + 1} offsets, not {offsets.shape[0]}")
    if not segments:
        return
    if values.shape[0] < SHORT * segments:
        _by_threads(combine)(values, offsets, out, identity, grid=-(-segments // BLOCK))
    else:
        _by_blocks(combine)(values, offsets, out, identity, grid=segments)


def _add(x: Any, y: Any) -> Any:
    return x + y


def _min(x: Any, y: Any) -> Any:
    return builtins.min(x, y)


def _max(x: Any, y: Any) -> Any:
    return builtins.max(x, y)


def _extreme(dtype: Any, name: str) -> Any:
    kind = np.dtype(dtype)
    if kind.kind == "f":
        return kind.type(np.inf if name == "min" else -np.inf)
    return getattr(np.iinfo(kind), "max" if name == "min" else "min")


def sum(values: Like, offsets: Like, out: Like) -> None:
    """The sum of every segment; 0 for an empty one. Integers wrap."""
    reduce(_add, np.dtype(values.dtype).type(0), values, offsets, out)


def min(values: Like, offsets: Like, out: Like) -> None:
    """The smallest of every segment; infinity (the type's largest integer) for an empty one."""
    reduce(_min, _extreme(values.dtype, "min"), values, offsets, out)


def max(values: Like, offsets: Like, out: Like) -> None:
    """The largest of every segment; -infinity (the type's smallest integer) for an empty one."""
    reduce(_max, _extreme(values.dtype, "max"), values, offsets, out)
