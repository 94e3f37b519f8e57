"""Where the largest elements are: ``argmax``, ``argmin``, ``topk``.

A NaN counts as the largest (for argmin, too, it wins), as in NumPy; among equals the first wins.
"""

from __future__ import annotations

import builtins
from functools import cache
from typing import Any, TypeVar

import numpy as np

import gridwise as gw
from gridwise import DisjointSlice, Slice, barrier, i32, thread

from .arrays import Like, empty_like, scalar_of
from .shapes import flat

T = TypeVar("T")
BLOCK = 256
MOST_BLOCKS = 1024
MOST_K = BLOCK // 2
NOWHERE = -1  # the place of an element that is not there


def larger(a: T, i: i32, b: T, j: i32) -> gw.bool_:
    """Whether element ``b`` at ``j`` comes before ``a`` at ``i`` in descending order."""
    if i < 0 or j < 0:
        return i < 0 and j >= 0
    a_nan, b_nan = a != a, b != b
    if a_nan or b_nan:
        return b_nan and (not a_nan or j < i)
    return b > a or (b == a and j < i)


def smaller(a: T, i: i32, b: T, j: i32) -> gw.bool_:
    """The same in ascending order; a NaN still comes first."""
    if i < 0 or j < 0:
        return i < 0 and j >= 0
    a_nan, b_nan = a != a, b != b
    if a_nan or b_nan:
        return b_nan and (not a_nan or j < i)
    return b < a or (b == a and j < i)


def _reduce_block(better: Any, value: T, place: i32, best: DisjointSlice[T], where: DisjointSlice[i32]) -> None:
    """The winner among the elements of a block's threads, written at the block's position."""
    v, w = gw.shared((BLOCK,), T), gw.shared((BLOCK,), i32)
    t, b = thread.local_index(), thread.block_index()
    v[t] = value
    w[t] = place
    barrier()
    step = BLOCK // 2
    while step > 0:
        if t < step and better(v[t], w[t], v[t + step], w[t + step]):
            v[t] = v[t + step]
            w[t] = w[t + step]
        barrier()
        step //= 2
    if t == 0 and b in best and b in where:
        best[b] = v[0]
        where[b] = w[0]


@cache
def _of_elements(better: Any) -> Any:
    @gw.kernel(block=BLOCK)
    def best_of_elements(values: Slice[T], best: DisjointSlice[T], where: DisjointSlice[i32]) -> None:
        value, place = values[0], i32(NOWHERE)
        for k in range(thread.global_index(), len(values), thread.grid_dim() * BLOCK):
            if better(value, place, values[k], i32(k)):
                value, place = values[k], i32(k)
        _reduce_block(better, value, place, best, where)

    return best_of_elements


@cache
def _of_winners(better: Any) -> Any:
    @gw.kernel(block=BLOCK)
    def best_of_winners(
        values: Slice[T], places: Slice[i32], best: DisjointSlice[T], where: DisjointSlice[i32]
    ) -> None:
        value, place = values[0], i32(NOWHERE)
        for k in range(thread.global_index(), len(values), thread.grid_dim() * BLOCK):
            if better(value, place, values[k], places[k]):
                value, place = values[k], places[k]
        _reduce_block(better, value, place, best, where)

    return best_of_winners


def _argbest(better: Any, a: Like) -> int:
    line = flat(a, "the array")
    n = line.shape[0]
    if n == 0:
        raise ValueError("the argmax or argmin of an empty array")
    _countable(n)
    blocks = builtins.max(1, builtins.min(MOST_BLOCKS, -(-n // (8 * BLOCK))))
    values, places = empty_like(line, blocks), _places(line, blocks)
    _of_elements(better)(line, values, places, grid=blocks)
    if blocks > 1:
        last, at = empty_like(line, 1), _places(line, 1)
        _of_winners(better)(values, places, last, at, grid=1)
        places = at
    return int(scalar_of(places))


def _countable(n: int) -> None:
    if n >= 1 << 31:
        raise gw.LaunchValueError(f"{n} elements: positions are i32, so at most 2**31 - 1")


def _places(a: Like, n: int) -> Any:
    """An uninitialised i32 array where ``a`` is."""
    return np.empty(n, np.int32) if isinstance(a, np.ndarray) else a.device.empty(n, i32)


def argmax(a: Like) -> int:
    """The position of the largest element in C order; waits for it. Raises ValueError for an empty array."""
    return _argbest(larger, a)


def argmin(a: Like) -> int:
    """The position of the smallest element in C order; waits for it. Raises ValueError for an empty array."""
    return _argbest(smaller, a)


# -- the k largest ----------------------------------------------------------------------------------


def _keep_largest(value: T, place: i32, out: DisjointSlice[T], where: DisjointSlice[i32], k: gw.Const[int]) -> None:
    """Sort the elements of a block in descending order (a bitonic network); its first k are written."""
    v, w = gw.shared((BLOCK,), T), gw.shared((BLOCK,), i32)
    t, b = thread.local_index(), thread.block_index()
    v[t] = value
    w[t] = place
    barrier()
    length = 2
    while length <= BLOCK:
        distance = length // 2
        while distance > 0:
            partner = t ^ distance
            if partner > t:
                descending = t & length == 0
                if larger(v[t], w[t], v[partner], w[partner]) == descending:
                    v[t], v[partner] = v[partner], v[t]
                    w[t], w[partner] = w[partner], w[t]
            barrier()
            distance //= 2
        length *= 2
    at = b * k + t
    if t < k and at in out and at in where:
        out[at] = v[t]
        where[at] = w[t]


@gw.kernel(block=BLOCK)
def _largest_of_elements(values: Slice[T], out: DisjointSlice[T], where: DisjointSlice[i32], k: gw.Const[int]) -> None:
    i = thread.index_1d()
    inside = i in values
    _keep_largest(values[i] if inside else values[0], i32(i) if inside else NOWHERE, out, where, k)


@gw.kernel(block=BLOCK)
def _largest_of_kept(
    values: Slice[T], places: Slice[i32], out: DisjointSlice[T], where: DisjointSlice[i32], k: gw.Const[int]
) -> None:
    i = thread.index_1d()
    inside = i in values and i in places
    _keep_largest(values[i] if inside else values[0], places[i] if inside else NOWHERE, out, where, k)


def topk(a: Like, k: int) -> tuple[Any, Any]:
    """The k largest elements, largest first, and their positions (i32), as arrays where ``a`` is.

    k is at most 128 and at most the size of ``a``, an array of one axis or contiguous. For more, sort.
    """
    line = flat(a, "the array")
    n = line.shape[0]
    _countable(n)
    if not 1 <= k <= builtins.min(n, MOST_K):
        raise gw.LaunchValueError(f"the {k} largest of {n}: k is from 1 to {builtins.min(n, MOST_K)}; for more, sort")
    values, places = line, None
    while places is None or values.shape[0] > k:
        blocks = -(-values.shape[0] // BLOCK)
        out, where = empty_like(line, blocks * k), _places(line, blocks * k)
        if places is None:
            _largest_of_elements(values, out, where, k, grid=blocks)
        else:
            _largest_of_kept(values, places, out, where, k, grid=blocks)
        values, places = out, where
    return values, places
