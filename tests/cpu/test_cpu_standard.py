"""The standard kernels: whole programs with barriers, shared memory, atomics and guards, against the check device."""

from __future__ import annotations

import numpy as np
import pytest
from both import agree

import standard  # isort: skip

RNG = np.random.default_rng(1)


def floats(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype(np.float32)


@pytest.mark.parametrize("n", [0, 1, 15, 16, 17, 1000, 4099])
def test_vecadd(n: int) -> None:
    agree(standard.vecadd(), -(-n // 256), [floats(n), floats(n), floats(n)], proved=True)


def ints(*shape: int, high: int = 1 << 30) -> np.ndarray:
    return RNG.integers(0, high, shape, np.int32)


ONE = [0, 1, 255, 256, 257, 1000]


@pytest.mark.parametrize("n", ONE)
@pytest.mark.parametrize("proved", [False, True])
def test_reduction(n: int, proved: bool) -> None:
    blocks = -(-n // 256)
    agree(standard.reduction(), blocks, [floats(n), floats(blocks)], proved=proved)


@pytest.mark.parametrize("n", ONE)
def test_bitonic_block(n: int) -> None:
    agree(standard.bitonic_block(), -(-n // 256), [floats(n)], proved=True)


@pytest.mark.parametrize("distance", [1, 2, 8, 16, 64, 512])
def test_bitonic_step(distance: int) -> None:
    agree(standard.bitonic_step(), 4, [floats(1024), distance], proved=True)


@pytest.mark.parametrize("shape", [(32, 32), (1, 1), (45, 70), (128, 96)])
@pytest.mark.parametrize("make", [standard.transpose, standard.transpose_flat])
def test_transpose(make, shape: tuple[int, int]) -> None:
    h, w = shape
    got = agree(make(), (-(-w // 32), -(-h // 32), 1), [floats(h, w), floats(w, h)])
    np.testing.assert_array_equal(got[1], got[0].T)


@pytest.mark.parametrize("n", ONE)
@pytest.mark.parametrize("make", [standard.scan, standard.stencil])
def test_block_by_block(make, n: int) -> None:
    agree(make(), -(-n // 256), [floats(n), floats(n)], proved=True)


@pytest.mark.parametrize("sides", [(16, 16, 16), (1, 1, 1), (33, 20, 50), (64, 48, 32)])
def test_matmul(sides: tuple[int, int, int]) -> None:
    m, n, k = sides
    a, b = floats(m, k), floats(k, n)
    got = agree(standard.matmul(), (-(-n // 16), -(-m // 16), 1), [a, b, floats(m, n)], ulp=1 << 20)
    if k % 16 == 0:  # the kernel leaves the rest of a tile as it was
        np.testing.assert_allclose(got[2], a @ b, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("n", ONE)
def test_histogram(n: int) -> None:
    agree(standard.histogram(), 3, [ints(n), np.zeros(256, np.uint32)])


@pytest.mark.parametrize("n", [0, 5, 512, 1300, 5000])
@pytest.mark.parametrize("make", [standard.grid_stride, standard.grid_stride_while])
def test_grid_stride(make, n: int) -> None:
    agree(make(), 2, [floats(n), floats(n)])


def test_rows_of_threads() -> None:
    agree(standard.run4(), 2, [floats(1999), floats(1999)])
    agree(standard.image(), (3, 2, 1), [floats(20, 40), floats(20, 40)])
    agree(standard.flat_image(), (3, 2, 1), [floats(20 * 40), 40, 20])
    agree(standard.rows_and_columns(), 4, [floats(1000), 37])
    agree(standard.rows_and_columns(), 4, [floats(1000), 0])
    agree(standard.reverse(), 4, [floats(1000), 1000])
    agree(standard.pairs(), 2, [floats(1024)])
    agree(standard.swapped_bits(), 4, [floats(1024)])
