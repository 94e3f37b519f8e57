"""bincount, histogram, compact, sort and matmul, beside NumPy."""

from __future__ import annotations

import numpy as np
import pytest

import gridwise as gw
from gridwise.std.compaction import compact
from gridwise.std.histograms import MOST_SHARED_BINS, bincount, histogram
from gridwise.std.products import LINE, matmul, matmul_lanes
from gridwise.std.radix import radix_sort
from gridwise.std.sorting import sort


@pytest.mark.parametrize("dtype", [np.uint8, np.int32, np.uint32])
@pytest.mark.parametrize("bins", [1, 100, MOST_SHARED_BINS + 1])
def test_bincount(device: gw.Device, dtype: type, bins: int) -> None:
    high = min(bins + 50, np.iinfo(dtype).max)
    a = np.random.default_rng(1).integers(0, high, 30_001).astype(dtype)
    if dtype is np.int32:
        a[:100] = -5
    want = np.bincount(a[(a >= 0) & (a < bins)].astype(np.int64), minlength=bins)
    counts = bincount(device.array(a), bins)
    assert np.array_equal(counts.numpy(), want)
    bincount(device.array(a[:1000]), bins, counts)  # adds
    more = a[:1000]
    want = want + np.bincount(more[(more >= 0) & (more < bins)].astype(np.int64), minlength=bins)
    assert np.array_equal(counts.numpy(), want)


def test_histogram(device: gw.Device) -> None:
    a = (np.random.default_rng(2).integers(-40, 300, 20_000) / 8).astype(np.float32)  # exact edges
    a[:10] = np.nan
    want, _ = np.histogram(a[10:], 32, (0.0, 32.0))
    assert np.array_equal(histogram(device.array(a), 32, 0.0, 32.0).numpy(), want)
    with pytest.raises(ValueError, match="below high"):
        histogram(a, 4, 1.0, 1.0)


def _small(x):
    return x < 10


@pytest.mark.parametrize("n", [0, 1, 255, 256, 10_000])
def test_compact(device: gw.Device, n: int) -> None:
    a = np.random.default_rng(3).integers(0, 20, n).astype(np.int32)
    kept = compact(_small, device.array(a))
    assert np.array_equal(kept.numpy(), a[a < 10])
    none = compact(_small, device.array(a + 100))
    assert none.shape == (0,)


@pytest.mark.parametrize("dtype", [np.float32, np.int32, np.uint32])
@pytest.mark.parametrize("n", [1, 2, 3, 511, 512, 513, 1025, 5000, 20_000])
def test_sort(device: gw.Device, n: int, dtype: type) -> None:
    rng = np.random.default_rng(n)
    a = (rng.normal(size=n) * 1000 if dtype is np.float32 else rng.integers(0, 1000, n)).astype(dtype)
    keys = device.array(a)
    sort(keys)
    assert np.array_equal(keys.numpy(), np.sort(a))


@pytest.mark.parametrize("m,k,n", [(1, 1, 1), (64, 16, 64), (65, 17, 63), (5, 100, 130), (3, 0, 4), (128, 128, 128)])
def test_matmul(device: gw.Device, m: int, k: int, n: int) -> None:
    rng = np.random.default_rng(m + k + n)
    a, b = rng.normal(size=(m, k)).astype(np.float32), rng.normal(size=(k, n)).astype(np.float32)
    c = matmul(device.array(a), device.array(b))
    np.testing.assert_allclose(c.numpy(), a.astype(np.float64) @ b.astype(np.float64), rtol=1e-5, atol=1e-5 * max(k, 1))


@pytest.mark.parametrize("gangs,rows,vectors,panels", [(16, 12, 2, 16), (4, 6, 1, 8), (16, 6, 1, 32)])
@pytest.mark.parametrize("m,k,n", [(257, 300, 513), (192, 256, 512), (7, 515, 40)])
def test_matmul_by_lanes(m: int, k: int, n: int, gangs: int, rows: int, vectors: int, panels: int) -> None:
    """The kernel for CPUs, as it is for different numbers of vector registers."""
    rng = np.random.default_rng(m + k + n)
    a, b = rng.normal(size=(m, k)).astype(np.float32), rng.normal(size=(k, n)).astype(np.float32)
    c = np.full((m, n), np.nan, np.float32)
    grid = (-(-n // (LINE * vectors * panels)), -(-m // (rows * gangs)))
    with gw.default_device("cpu"):
        matmul_lanes.kernel(a, b, c, rows, vectors, panels, gangs, grid=grid, block=(LINE, gangs))
    np.testing.assert_allclose(c, a.astype(np.float64) @ b.astype(np.float64), rtol=1e-5, atol=1e-5 * k)


def test_matmul_of_unfitting_shapes() -> None:
    with pytest.raises(ValueError, match=r"\(2, 3\) and \(2, 3\) have no product"):
        matmul(np.zeros((2, 3), np.float32), np.zeros((2, 3), np.float32))


@pytest.mark.parametrize("dtype", [np.uint32, np.int32, np.float32, np.uint64])
@pytest.mark.parametrize("n", [1, 2, 100, 2048, 2049, 9000])
def test_radix_sort_with_values(device: gw.Device, n: int, dtype: type) -> None:
    rng = np.random.default_rng(n)
    if dtype is np.float32:
        a = (np.rint(rng.normal(size=n) * 50) / 4).astype(np.float32)  # equal keys: the order must be stable
    else:
        a = rng.integers(0, 2**31, n).astype(dtype) * dtype(1 if dtype is np.int32 else 2)
        a[::3] = a[0]
    keys, values = device.array(a), device.array(np.arange(n, dtype=np.int32))
    radix_sort(keys, values)
    order = np.argsort(a, kind="stable")
    assert np.array_equal(keys.numpy(), a[order])
    if dtype is not np.float32:  # -0.0 and 0.0 are different digits
        assert np.array_equal(values.numpy(), order)
    alone = device.array(a[::-1].copy())
    radix_sort(alone)
    assert np.array_equal(alone.numpy(), a[order])


def test_radix_sort_puts_every_nan_last(device: gw.Device) -> None:
    """With its bits, whatever its sign."""
    words = np.array([0x7FC00000, 0xFFC00001, 0xFF800000, 0x7F800000, 0x80000000, 0, 0xFFFFFFFF, 0x3F800000], np.uint32)
    keys = device.array(words.view(np.float32))
    radix_sort(keys)
    bits = keys.numpy().view(np.uint32)
    assert bits[:5].tolist() == [0xFF800000, 0x80000000, 0, 0x3F800000, 0x7F800000]
    assert np.isnan(bits[5:].view(np.float32)).all()
    if device.kind != "vulkan":  # a driver may change the bits of a NaN
        assert sorted(bits[5:].tolist()) == [0x7FC00000, 0xFFC00001, 0xFFFFFFFF]


@pytest.mark.parametrize("dtype", [np.uint32, np.int32, np.float32, np.uint64])
@pytest.mark.parametrize("kind", ["spread", "few", "one bucket", "special", "strided", "ordered"])
def test_sorts_of_a_cpu(dtype: type, kind: str) -> None:
    """NumPy arrays in place: by buckets, and digit by digit where one bucket would hold too much."""
    n = 150_000
    rng = np.random.default_rng(7)
    a = (rng.standard_normal(n) * 1e6).astype(dtype) if dtype is np.float32 else rng.integers(
        np.iinfo(dtype).min, np.iinfo(dtype).max, n, dtype)
    if kind == "few":
        a = a[rng.integers(0, 5, n)]
    elif kind == "one bucket":  # all but two keys lie together
        a = (rng.integers(0, 60_000, n)).astype(dtype)
        a[[5, n // 2]] = dtype(3e38) if dtype is np.float32 else np.iinfo(dtype).max
        a[:: n // 4096] = a[5]
    elif kind == "special" and dtype is np.float32:
        a[::7], a[1::9], a[2::11], a[3::13] = np.inf, -np.inf, np.nan, -0.0
    elif kind == "ordered":
        a = np.sort(a)[::-1].copy()
    with gw.default_device("cpu"):
        for order in (sort, radix_sort):
            keys = np.repeat(a, 2)[::2] if kind == "strided" else a.copy()
            order(keys)
            np.testing.assert_array_equal(keys, np.sort(a))
        keys, values = a.copy(), np.arange(n, dtype=np.int64)
        radix_sort(keys, values)
    np.testing.assert_array_equal(keys, np.sort(a))
    np.testing.assert_array_equal(a[values], keys)
    same = keys[1:] == keys[:-1]
    assert (np.diff(values)[same & (keys[1:] != 0)] > 0).all()  # stable (-0.0 comes before 0.0)
