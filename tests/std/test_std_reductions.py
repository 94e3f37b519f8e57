"""Reductions, scans and transposition of the standard library, on every device and on NumPy arrays."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import gridwise as gw
from gridwise import std
from gridwise.std import cores, products, transposition

SIZES = [1, 3, 1023, 1024, 5003]
DTYPES = [np.float32, np.int32, np.uint8, np.int64]


def numbers(n: Any, dtype: Any, seed: int = 0) -> np.ndarray:
    """Small whole numbers: sums of floats are exact in any order."""
    return np.random.default_rng(seed).integers(0, 50, n).astype(dtype)


@pytest.mark.parametrize("dtype", DTYPES)
def test_sum_min_max(device: gw.Device, dtype: Any) -> None:
    for n in SIZES:
        a = numbers(n, dtype, n)
        on_device = device.array(a)
        assert std.sum(on_device) == a.sum(dtype=dtype)
        assert std.min(on_device) == a.min() and std.max(on_device) == a.max()
        assert std.sum(on_device).dtype == dtype


def test_the_result_can_stay_on_the_device(device: gw.Device) -> None:
    a = numbers((50, 60), np.float32)
    out = device.zeros(1, gw.f32)
    assert std.sum(device.array(a), out) is None
    assert out.numpy()[0] == a.sum()


def test_nan_and_empty(device: gw.Device) -> None:
    a = numbers(3000, np.float32)
    a[1234] = np.nan
    assert np.isnan(std.min(device.array(a))) and np.isnan(std.max(device.array(a)))
    assert std.sum(device.zeros(0, gw.f32)) == 0
    with pytest.raises(ValueError, match="empty array"):
        std.max(device.zeros(0, gw.i32))


def test_any_function(device: gw.Device) -> None:
    a = np.random.default_rng(1).integers(0, 2**32, 5000, dtype=np.uint32)
    assert std.reduce(lambda x, y: x ^ y, 0, device.array(a)) == np.bitwise_xor.reduce(a)


def later(x, y):
    """Associative, and not commutative: the last that is not 0."""
    return y if y != 0 else x


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("exclusive", [False, True])
def test_cumsum(device: gw.Device, dtype: Any, exclusive: bool) -> None:
    for n in (0, 1, 7, 2048, 2049, 10001):
        a = numbers(n, dtype, n)
        want = np.cumsum(a, dtype=dtype) - (a if exclusive else dtype(0))
        np.testing.assert_array_equal(std.cumsum(device.array(a), exclusive=exclusive).numpy(), want.astype(dtype))


def test_a_scan_keeps_the_order(device: gw.Device) -> None:
    a = np.where(np.random.default_rng(2).random(7000) < 0.01, numbers(7000, np.int32) + 1, 0).astype(np.int32)
    want, last = np.empty_like(a), 0
    for i, x in enumerate(a):
        last = x or last
        want[i] = last
    np.testing.assert_array_equal(std.scan(later, 0, device.array(a)).numpy(), want)


LONG = cores.SHORT + 3 * cores.PART + 77  # several parts on a CPU, the last of them short


@pytest.mark.parametrize("dtype", [np.int32, np.uint64, np.float64])
def test_many_parts_on_several_cores(dtype: Any) -> None:
    a = numbers(LONG, dtype)
    assert std.sum(a) == a.sum() and std.max(a) == a.max()
    for exclusive in (False, True):
        want = np.cumsum(a, dtype=dtype) - (a if exclusive else dtype(0))
        np.testing.assert_array_equal(std.cumsum(a, exclusive=exclusive), want)
    outside = np.full(LONG + 64, 7, dtype)  # nothing beyond the result is written
    std.cumsum(a, outside[:LONG])
    assert (outside[LONG:] == 7).all()


def test_many_parts_keep_the_order() -> None:
    a = np.where(np.random.default_rng(3).random(LONG) < 1e-4, numbers(LONG, np.int32) + 1, 0).astype(np.int32)
    last = np.maximum.accumulate(np.where(a != 0, np.arange(LONG), -1))
    np.testing.assert_array_equal(std.scan(later, 0, a), np.where(last < 0, 0, a[last]))


def test_floats_have_the_same_bits_on_every_run() -> None:
    a = np.random.default_rng(4).normal(size=LONG).astype(np.float32)
    first, total = std.cumsum(a), std.sum(a)
    for _ in range(20):
        np.testing.assert_array_equal(std.cumsum(a), first)
        assert std.sum(a) == total
    assert abs(total - a.sum(dtype=np.float64)) < 0.1


@pytest.mark.parametrize("shape", [(1, 1), (32, 32), (33, 65), (5, 100), (64, 96)])
def test_transpose(device: gw.Device, shape: tuple[int, int]) -> None:
    for dtype in DTYPES:
        a = numbers(shape, dtype)
        np.testing.assert_array_equal(std.transpose(device.array(a)).numpy(), a.T)
    view = device.array(numbers((80, 70), np.float32))[3::2, 1:50]
    np.testing.assert_array_equal(std.transpose(view).numpy(), view.numpy().T)
    with pytest.raises(ValueError, match="has shape"):
        std.transpose(device.zeros((3, 4), gw.f32), device.zeros((3, 4), gw.f32))


def test_numpy_arrays() -> None:
    a = numbers(5000, np.float64)
    assert std.sum(a) == a.sum()
    np.testing.assert_array_equal(std.cumsum(a), np.cumsum(a))
    np.testing.assert_array_equal(std.transpose(a.reshape(50, 100)), a.reshape(50, 100).T)


def test_tuning_of_the_library() -> None:
    rng = np.random.default_rng(5)
    a, b = (rng.normal(size=(150, 150)).astype(np.float32) for _ in range(2))
    before = std.matmul(a, b), std.transpose(a)
    with warnings.catch_warnings(), gw.tuning():
        warnings.simplefilter("error")  # every configuration computes the same bits
        during = std.matmul(a, b), std.transpose(a)
    for x, y in zip(before, during):
        np.testing.assert_array_equal(x, y)
    trials = products.matmul_lanes.choice(a, b, before[0]).trials
    assert len(trials) == len(products.matmul_lanes.configs) and all(t.seconds for t in trials)
    assert transposition.transpose_tiles.choice(a, before[1]).trials
