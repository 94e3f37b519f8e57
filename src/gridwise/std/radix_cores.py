"""Radix sort for the few cores of a CPU, where a thread of a kernel is a thread of the machine.

Keys are first spread over buckets, in order, by where they lie between two bounds taken from a sample; then each
bucket, which fits in a core's cache, is sorted by one thread, digit by digit. If one bucket holds too many keys,
all cores sort digit by digit instead. Both moves of keys are stable, so the whole is.

Keys that go to many places in turn are gathered a cache line at a time, and each line is written at once: written
one by one, every key would wait for the line that it changes a part of.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import cache
from typing import Any, TypeVar

import numpy as np

import gridwise as gw
from gridwise import Const, DisjointSlice, Slice, f32, i32, math, thread, u32, u64
from gridwise.devices.cpu import CpuDevice
from gridwise.devices.registry import host_device

K = TypeVar("K")
V = TypeVar("V")

DIGIT = 8  # bits, where all cores sort digit by digit
WIDE = 12  # bits at most of a digit within a bucket
DIGITS = 1 << WIDE
BATCH = 128  # keys whose buckets are found, several at a time, before any of them is counted or moved
BUCKET = 1 << 13  # keys of a bucket, on average
MOST_BUCKETS = 512  # a cache line for each stays in the first-level cache
SAMPLE = 4096
LOWEST = 0x007FFFFF  # what -inf is by bits; below it are the NaNs with a sign, which go round to the top
KEPT = 1 << 27  # bytes of scratch memory that a thread keeps for its next sort: new pages cost as much as a pass


# ---- keys as unsigned integers in the same order, and back; and any word in the type of the keys ------------------
def _same(x):
    return x


def _order_i32(key):
    return gw.bitcast(key, u32) ^ 0x80000000


def _key_i32(word):
    return gw.bitcast(word ^ 0x80000000, i32)


def order_f32(key):
    """By bits, with every NaN above all numbers."""
    bits = gw.bitcast(key, u32)
    return (~bits if bits >> 31 != 0 else bits | 0x80000000) - LOWEST


def _key_f32(word):
    bits = word + LOWEST
    return gw.bitcast(bits ^ 0x80000000 if bits >> 31 != 0 else ~bits, f32)


def _word(x):
    return gw.bitcast(x, u32)


def _as_i32(word):
    return gw.bitcast(word, i32)


def _as_f32(word):
    return gw.bitcast(word, f32)


def _place_whole(key, low, scale):
    return math.fma(f32(key), scale, -low)  # rounded alike in both kernels that ask


def _place_f32(key, low, scale):
    return math.fma(key, scale, -low)


# type of the keys: word of a key and key of a word, in order; word in a key's place, and out of it
CODES: dict[str, tuple[Callable[[Any], Any], ...]] = {
    "uint32": (_same, _same, _same, _same),
    "uint64": (_same, _same, _same, _same),
    "int32": (_order_i32, _key_i32, _as_i32, _word),
    "float32": (order_f32, _key_f32, _as_f32, _word),
}


@cache
def _kernels(name: str) -> tuple[Any, Any, Any]:
    """For one type of keys: the counts of each part, the move into buckets, the sort of each bucket."""
    order, key_of, put, get = CODES[name]
    place = _place_f32 if name == "float32" else _place_whole
    line = 64 // np.dtype(name).itemsize
    word, bits = (u64, 64) if name == "uint64" else (u32, 32)

    def bucket(key, low, scale, shift, BINS, SPREAD):
        """By place between bounds, or a digit."""
        if SPREAD:
            at = place(key, low, scale)
            most = f32(BINS - 1)
            at = at if at < most else most  # a NaN is beyond all bounds
            at = at if at > 0.0 else f32(0)
            # A float in [2**23, 2**24) has its whole part in its low bits.
            return i32(gw.bitcast(at + 8388608.0, u32) & u32(BINS - 1))
        return i32(order(key) >> word(shift) & word(BINS - 1))

    def batch(keys, start, size, low, scale, shift, BINS, SPREAD, where):
        """Fill ``where`` with the buckets of the keys from ``start`` on."""
        if size == BATCH and start <= len(keys) - BATCH:
            for j in range(BATCH):
                where[j] = bucket(keys[start + j], low, scale, shift, BINS, SPREAD)
        else:
            for e in range(size):
                where[e & (BATCH - 1)] = bucket(keys[start + e], low, scale, shift, BINS, SPREAD)

    @gw.kernel(domain=1, block=1)
    def count_keys(
        keys: Slice[K], counts: DisjointSlice[u32, 2], part: i32, low: f32, scale: f32, shift: i32,
        BINS: Const[int], SPREAD: Const[bool],
    ) -> None:  # fmt: skip
        block = thread.block_index()
        hits = gw.shared((BINS,), u32)
        where = gw.shared((BATCH,), i32)
        last = min(block * part + part, len(keys))
        for start in range(max(0, block * part), last, BATCH):
            size = min(BATCH, last - start)
            batch(keys, start, size, low, scale, shift, BINS, SPREAD, where)
            for j in range(size):
                hits[where[j & (BATCH - 1)] & (BINS - 1)] += 1
        if block < counts.shape[0] and counts.shape[1] >= BINS:
            for b in range(BINS):
                counts[block, b] = hits[b]

    @gw.kernel(domain=1, block=1)
    def move_keys(
        keys: Slice[K], values: Slice[V], counts: Slice[u32, 2], out: DisjointSlice[K], out_values: DisjointSlice[V],
        part: i32, low: f32, scale: f32, shift: i32, skew: i32,
        BINS: Const[int], SPREAD: Const[bool], PAIRS: Const[bool],
    ) -> None:  # fmt: skip
        """``skew``: elements of ``out`` before the first one at the start of a line, less than a line."""
        block = thread.block_index()
        firsts = gw.shared((BINS,), i32)
        nexts = gw.shared((BINS,), i32)
        lines = gw.shared((BINS, line), K)
        where = gw.shared((BATCH,), i32)
        running = i32(0)
        if counts.shape[1] >= BINS:
            for b in range(BINS):
                for p in range(counts.shape[0]):
                    if p == block:
                        firsts[b] = running
                        nexts[b] = running
                    running += i32(counts[p, b])
        with gw.unsafe("the counts give every key a place of its own"):
            end = min(block * part + part, len(keys))
            for from_ in range(max(0, block * part), end, BATCH):
                size = min(BATCH, end - from_)
                batch(keys, from_, size, low, scale, shift, BINS, SPREAD, where)
                for j in range(size):
                    key = keys[from_ + j]
                    b = where[j & (BATCH - 1)] & (BINS - 1)
                    at = nexts[b]
                    nexts[b] = at + 1
                    column = (at - skew) & (line - 1)
                    lines[b, column] = key
                    if PAIRS:
                        out_values[at] = values[from_ + j]
                    if column == line - 1:
                        start = at - (line - 1)
                        if start >= firsts[b] and 0 <= start <= len(out) - line:
                            for k in gw.static(range(line)):
                                out[start + k] = lines[b, k]
                        else:
                            for i in range(firsts[b], at + 1):
                                out[i] = lines[b, (i - skew) & (line - 1)]
            for b in range(BINS):
                last = nexts[b]
                for i in range(max(firsts[b], last - ((last - skew) & (line - 1))), last):
                    out[i] = lines[b, (i - skew) & (line - 1)]

    def begins(counters, digits, begin):
        """Counts of digits to the places where each digit begins."""
        running = begin
        for d in range(digits):
            here = counters[d & (DIGITS - 1)]
            counters[d & (DIGITS - 1)] = running
            running += here

    def sort_digit(source, values, out, out_values, begin, end, shift, mask, nexts, PAIRS):
        """Move the words of a bucket to where their digits belong."""
        for i in range(begin, end):
            item = source[i]
            d = i32(get(item) >> word(shift & (bits - 1))) & mask
            at = nexts[d]
            nexts[d] = at + 1
            out[at] = item
            if PAIRS:
                out_values[at] = values[i]

    @gw.kernel(domain=1, block=1)
    def sort_buckets(
        keys: DisjointSlice[K], values: DisjointSlice[V], spare: DisjointSlice[K], spare_values: DisjointSlice[V],
        counts: Slice[u32, 2], PAIRS: Const[bool],
    ) -> None:  # fmt: skip
        """Each block sorts one bucket, from ``spare`` to ``keys``."""
        block = thread.block_index()
        begin = i32(0)
        size = i32(0)
        for p in range(counts.shape[0]):
            for b in range(counts.shape[1]):
                here = i32(counts[p, b])
                begin += here if b < block else 0
                size += here if b == block else 0
        end = min(begin + size, len(keys), len(spare))
        begin = max(begin, i32(0))
        low, high = gw.shared((DIGITS,), i32), gw.shared((DIGITS,), i32)
        with gw.unsafe("a bucket is one block's own, in both arrays"):
            least, most = ~word(0), word(0)
            for i in range(begin, end):
                value = order(spare[i])
                least = min(least, value)
                most = max(most, value)
            for i in range(begin, end):  # small words, where the keys are to end
                keys[i] = put(order(spare[i]) - least)
                if PAIRS:
                    values[i] = spare_values[i]
            # Two digits at a time: there and back.
            width = bits - i32(math.clz(most - least)) if most > least else 0
            turns = (width + (2 * WIDE - 1)) // (2 * WIDE)
            digit = (width + (2 * turns - 1)) // (2 * turns) if turns > 0 else 0
            mask = i32((u32(1) << u32(digit)) - 1) & (DIGITS - 1)
            for turn in range(turns):
                shift = 2 * turn * digit
                for d in range(mask + 1):
                    low[d & (DIGITS - 1)] = 0
                    high[d & (DIGITS - 1)] = 0
                for i in range(begin, end):
                    rest = get(keys[i]) >> word(shift & (bits - 1))
                    low[i32(rest) & mask] += 1
                    high[i32(rest >> word(digit & (bits - 1))) & mask] += 1
                begins(low, mask + 1, begin)
                begins(high, mask + 1, begin)
                sort_digit(keys, values, spare, spare_values, begin, end, shift, mask, low, PAIRS)
                sort_digit(spare, spare_values, keys, values, begin, end, shift + digit, mask, high, PAIRS)
            for i in range(begin, end):
                keys[i] = key_of(get(keys[i]) + least)

    return count_keys, move_keys, sort_buckets


class _Scratch(threading.local):
    memory = np.empty(0, np.uint8)


_scratch = _Scratch()


def _spare(keys: np.ndarray) -> np.ndarray:
    """Memory for as many keys, from the start of a cache line on."""
    need = keys.nbytes + 64
    memory = _scratch.memory if _scratch.memory.size >= need else np.empty(need, np.uint8)
    if memory.size <= KEPT:
        _scratch.memory = memory
    start = -memory.ctypes.data % 64
    return memory[start : start + keys.nbytes].view(keys.dtype)


def _skew(a: np.ndarray) -> int:
    """Elements before the first one that begins a cache line."""
    return int(-a.ctypes.data % 64 // a.itemsize)


def _bounds(keys: np.ndarray, bins: int) -> tuple[float, float] | None:
    """What spreads a sample of the keys over the bins: a key's place is key * scale - low. None: nothing does."""
    sample = keys[:: max(1, keys.size // SAMPLE)].astype(np.float64)
    sample = sample[np.isfinite(sample)]
    if sample.size == 0:
        return None
    least, most = float(sample.min()), float(sample.max())
    with np.errstate(all="ignore"):
        scale = np.float32(bins / (most - least)) if most > least else np.float32(0)
        low = np.float32(least * float(scale))
    return (float(low), float(scale)) if 0 < scale < np.inf and np.isfinite(low) else None


def sort_on_cores(keys: np.ndarray, values: np.ndarray | None) -> None:
    """Sort ``keys`` in place, and ``values`` with them; 2 or more, less than 2**30 of them."""
    device = host_device()
    assert isinstance(device, CpuDevice)
    n, workers = keys.size, device.workers
    count_keys, move_keys, sort_buckets = _kernels(keys.dtype.name)
    pairs = values is not None
    data = values if values is not None else np.zeros(1, np.uint32)  # what stands for values where there are none
    spare, spare_data = _spare(keys), np.empty(n if pairs else 1, data.dtype)
    bins = 16
    while bins < MOST_BUCKETS and bins * BUCKET < n:
        bins *= 2
    parts = workers if n > BUCKET else 1
    part = -(-n // parts)
    bounds = _bounds(keys, bins)
    if bounds is not None:
        low, scale = bounds
        counts = np.empty((parts, bins), np.uint32)
        count_keys(keys, counts, part, low, scale, 0, bins, True, grid=parts)
        if counts.sum(axis=0).max() <= max(n // (2 * workers), 4 * BUCKET):
            move_keys(keys, data, counts, spare, spare_data, part, low, scale, 0, _skew(spare), bins, True, pairs,
                      grid=parts)
            sort_buckets(keys, data, spare, spare_data, counts, pairs, grid=bins)
            return
    here, there = (keys, data), (spare, spare_data)
    counts = np.empty((parts, 1 << DIGIT), np.uint32)
    for shift in range(0, keys.itemsize * 8, DIGIT):
        count_keys(here[0], counts, part, 0.0, 0.0, shift, 1 << DIGIT, False, grid=parts)
        if counts.sum(axis=0).max() < n:  # else all keys have the same digit
            move_keys(*here, counts, *there, part, 0.0, 0.0, shift, _skew(there[0]), 1 << DIGIT, False, pairs,
                      grid=parts)
            here, there = there, here
    if here[0] is not keys:
        keys[...] = spare
        data[...] = spare_data
