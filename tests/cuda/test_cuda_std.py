"""The kernels of the standard library that only CUDA runs, against NumPy: on the GPU, or a few on the simulated one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from conftest import REAL
from gridwise import std
from gridwise.std import lookback

# A simulated block is 256 threads of this machine: one size there, all of them on a GPU.
TILE = lookback.TILE
SIZES = [0, 1, 3, TILE - 1, TILE, TILE + 1, 5 * TILE + 7, lookback.GROUP * TILE, 3 * lookback.GROUP * TILE + 5]
SIZES = SIZES if REAL else [2 * TILE + 5]


def numbers(n: int, dtype: type) -> np.ndarray:
    rng = np.random.default_rng(n)
    return rng.integers(-9, 10, n).astype(dtype) if np.dtype(dtype).kind != "u" else rng.integers(0, 2**32, n, dtype)


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("dtype", [np.int32, np.float32, np.uint64])
@pytest.mark.parametrize("exclusive", [False, True])
def test_scan_in_one_pass(cuda: Any, n: int, dtype: type, exclusive: bool) -> None:
    a = numbers(n, dtype)
    want = np.cumsum(a, dtype=dtype)  # whole numbers: exact in f32 too
    got = std.cumsum(cuda.array(a), exclusive=exclusive).numpy()
    np.testing.assert_array_equal(got, want - a if exclusive else want)


def test_scan_keeps_the_order(cuda: Any) -> None:
    """Associative and not commutative: the later of two numbers, unless it is 0."""

    def later(x, y):
        return y if y != 0 else x

    a = np.zeros(SIZES[-1], np.int32)
    a[:: TILE // 3] = np.arange(1, len(a[:: TILE // 3]) + 1)
    got = std.scan(later, np.int32(0), cuda.array(a)).numpy()
    np.testing.assert_array_equal(got, np.maximum.accumulate(a))


def test_scan_of_floats_has_the_same_bits_every_time(cuda: Any) -> None:
    a = cuda.array(np.random.default_rng(1).standard_normal(SIZES[-1]).astype(np.float32))
    first = std.cumsum(a).numpy()
    for _ in range(20 if REAL else 1):
        np.testing.assert_array_equal(std.cumsum(a).numpy(), first)


@pytest.mark.parametrize("shape", [(64, 64), (65, 130), (1, 1), (0, 5)] if REAL else [(65, 70)])
def test_transpose_of_large_tiles(cuda: Any, shape: tuple[int, int]) -> None:
    a = numbers(shape[0] * shape[1], np.float32).reshape(shape)
    np.testing.assert_array_equal(std.transpose(cuda.array(a)).numpy(), a.T)
