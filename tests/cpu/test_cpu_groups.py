"""Accesses made together, and gangs of few lanes, on the CPU device beside NumPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import gridwise as gw
from gridwise import DisjointSlice, Slice, barrier, f32, i32, thread
from gridwise.devices.registry import default_device
from gridwise.targets.cpu import groups


@pytest.fixture(autouse=True)
def on_cpu() -> Any:
    with default_device("cpu"):
        yield


def rotation(S: int, some: bool) -> Any:
    """Each thread turns its ``S`` neighbours by one; every third thread does nothing if ``some``."""

    @gw.kernel(domain=1, block=64)
    def rotate(a: Slice[f32], out: DisjointSlice[f32]) -> None:
        g = thread.global_index()
        mine = gw.local((S,), f32)
        if S * g + S <= len(a) and S * g + S <= len(out) and (not some or g % 3 != 0):
            for k in gw.static(range(S)):
                mine[k] = a[S * g + k]
            for k in gw.static(range(S)):
                out[S * g + k] = mine[(k + 1) % S] * f32(k + 1)

    return rotate


@pytest.mark.parametrize("some", [False, True])
@pytest.mark.parametrize("S", [2, 3, 4, 5, 7, 8, 16])
def test_neighbours_of_a_thread(S: int, some: bool) -> None:
    kernel = rotation(S, some)
    for threads in (1, 16, 17, 1003):
        a = np.random.default_rng(threads).random(S * threads, np.float32)
        out = np.zeros_like(a)
        kernel(a, out, grid=-(-threads // 64))
        right = np.roll(a.reshape(-1, S), -1, axis=1) * np.arange(1, S + 1, dtype=np.float32)
        if some:
            right[::3] = 0
        assert np.array_equal(out.reshape(-1, S), right)


def test_neighbours_are_not_gathered() -> None:
    text = rotation(4, False).inspect("cpu", "llvm")
    assert "shufflevector" in text and "masked.gather" not in text and "masked.scatter" not in text


def test_a_store_between_two_loads_is_seen() -> None:
    @gw.kernel(domain=1, block=64)
    def shift(a: DisjointSlice[f32], out: DisjointSlice[f32]) -> None:
        g = thread.global_index()
        if 2 * g + 2 <= len(a) and 2 * g + 2 <= len(out):
            first = a[2 * g]
            a[2 * g + 1] = first + 1.0
            second = a[2 * g + 1]
            out[2 * g + 1] = first
            out[2 * g] = second

    a, out = np.arange(128, dtype=np.float32), np.zeros(128, np.float32)
    shift(a, out, grid=1)
    assert np.array_equal(out[::2], np.arange(0, 128, 2) + 1) and np.array_equal(out[1::2], np.arange(0, 128, 2))
    assert np.array_equal(a[1::2], out[::2])


@pytest.mark.parametrize("block", [1, 2, 4, 8, 12])
def test_few_threads_a_block(block: int) -> None:
    """Sums of neighbouring blocks, with shared memory, a loop and a jump."""

    @gw.kernel(domain=1, block=block)
    def neighbours(a: Slice[i32], out: DisjointSlice[i32]) -> None:
        t, g = thread.local_index(), thread.global_index()
        part = gw.shared((block,), i32)
        hits = gw.shared((4,), i32)
        if g < len(a):
            part[t] = a[g]
        gw.atomic.add(hits, t % 4, i32(t), scope="block")
        barrier()
        total = hits[0] + hits[1] + hits[2] + hits[3]
        for k in range(block):
            if part[k] < 0:
                continue
            total += part[k]
        if g < len(out):
            out[g] = total

    a = np.random.default_rng(block).integers(-50, 100, 10 * block, np.int32)
    out = np.zeros_like(a)
    neighbours(a, out, grid=10)
    rows = a.reshape(10, block)
    right = np.where(rows < 0, 0, rows).sum(axis=1) + block * (block - 1) // 2
    assert np.array_equal(out.reshape(10, block), np.repeat(right[:, None], block, axis=1))


@pytest.mark.parametrize("skew", [0, 1])
@pytest.mark.parametrize("large", [False, True])
def test_whole_lines_by_one_thread(large: bool, skew: int) -> None:
    """Lines past the cache, and where they may not be."""
    count = (groups.LARGE // 4 if large else 4096) + 16

    @gw.kernel(domain=1, block=1)
    def lines(a: Slice[f32], out: DisjointSlice[f32], first: i32) -> None:
        block = thread.block_index()
        for line in range(64):
            at = first + (block * 64 + line) * 16
            if at >= 0 and at <= len(a) - 16 and at <= len(out) - 16:
                with gw.unsafe("a block has 64 lines of its own"):
                    for k in gw.static(range(16)):
                        out[at + k] = a[at + k] * 2.0

    call: Callable[..., None] = lines
    a, out = np.arange(count, dtype=np.float32), np.zeros(count, np.float32)
    call(a, out, skew, grid=-(-count // 1024))
    whole = (count - skew) // 16 * 16
    right = np.zeros(count, np.float32)
    right[skew : skew + whole] = 2 * a[skew : skew + whole]
    assert np.array_equal(out, right)
    assert "!nontemporal" in lines.inspect("cpu", "llvm")


def test_no_access_before_a_jump_that_prevents_it() -> None:
    """All lanes return together where the second of two neighbours would be past the end."""

    @gw.kernel(domain=1, block=64)
    def both(a: Slice[f32], out: DisjointSlice[f32]) -> None:
        g = thread.global_index()
        if 2 * g < len(a) and 2 * g < len(out):
            first = a[2 * g]
            out[2 * g] = first
            if len(a) % 2 != 0 or len(out) % 2 != 0:
                return
            with gw.unsafe("a thread has two neighbours of its own"):
                out[2 * g + 1] = a[2 * g + 1]

    assert "%piece" not in both.inspect("cpu", "llvm")  # a part of what would be read together
    assert "%piece" in rotation(2, False).inspect("cpu", "llvm")
    a, out = np.arange(127, dtype=np.float32), np.zeros(128, np.float32)
    both(a, out, grid=1)
    assert np.array_equal(out[::2], a[::2]) and not out[1::2].any()
    a = np.arange(128, dtype=np.float32)
    both(a, out, grid=1)
    assert np.array_equal(out, a)
