"""argmax, argmin, topk, and reductions of segments, beside NumPy."""

import itertools

import numpy as np
import pytest

import gridwise as gw
from gridwise.std import search, segmented

SIZES = [1, 2, 255, 257, 3000]


def data(n, dtype, seed=0):
    rng = np.random.default_rng(seed)
    if np.dtype(dtype).kind == "f":
        return rng.standard_normal(n).astype(dtype)
    return rng.integers(0, 200, n).astype(dtype)  # with equals


@pytest.mark.parametrize("dtype", [np.float32, np.int32, np.uint32])
@pytest.mark.parametrize("n", SIZES)
def test_argmax_and_argmin(device, n, dtype):
    a = data(n, dtype)
    on_device = device.array(a)
    assert search.argmax(on_device) == np.argmax(a)
    assert search.argmin(on_device) == np.argmin(a)


def test_a_nan_wins_and_the_first_of_equals(device):
    a = np.array([1, 7, 7, -3, -3], np.float32)
    assert (search.argmax(device.array(a)), search.argmin(device.array(a))) == (1, 3)
    if device.target == "wgsl":
        return  # NaN is not promised there
    a[3] = np.nan
    assert (search.argmax(device.array(a)), search.argmin(device.array(a))) == (3, 3)


@pytest.mark.parametrize(("n", "k"), [(1, 1), (200, 7), (257, 128), (2000, 1), (2000, 100)])
@pytest.mark.parametrize("dtype", [np.float32, np.int32])
def test_topk(device, n, k, dtype):
    a = data(n, dtype, seed=n)
    values, places = search.topk(device.array(a), k)
    order = np.argsort(-a.astype(np.float64), kind="stable")[:k]
    assert np.array_equal(places.numpy(), order)
    assert np.array_equal(values.numpy(), a[order])


def test_search_in_numpy_arrays_and_mistakes():
    a = data(1000, np.float32)
    assert search.argmax(a.reshape(10, 100)) == np.argmax(a)
    with pytest.raises(ValueError, match="empty"):
        search.argmax(np.zeros(0, np.float32))
    with pytest.raises(gw.LaunchValueError, match="for more, sort"):
        search.topk(a, 500)


@pytest.mark.parametrize("longest", [5, 400])
@pytest.mark.parametrize("dtype", [np.float32, np.int32])
def test_segments(device, longest, dtype):
    rng = np.random.default_rng(longest)
    lengths = rng.integers(0, longest, 40)
    lengths[3] = 0
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    values = np.rint(data(int(offsets[-1]), np.float32, 1) * 100).astype(dtype)
    v, o, out = device.array(values), device.array(offsets), device.zeros(40, gw.f32 if dtype == np.float32 else gw.i32)
    parts = [values[a:b] for a, b in itertools.pairwise(offsets)]
    segmented.sum(v, o, out)
    assert out.numpy().tolist() == [p.sum() for p in parts]
    empty = -np.inf if dtype == np.float32 else np.iinfo(np.int32).min
    segmented.max(v, o, out)
    assert out.numpy().tolist() == [p.max() if len(p) else empty for p in parts]
    segmented.reduce(lambda x, y: min(x, y), 7, v, o, out)
    assert out.numpy().tolist() == [min([7, *p.tolist()]) for p in parts]


def test_segments_that_do_not_fit():
    out = np.zeros(3, np.float32)
    with pytest.raises(gw.LaunchValueError, match="4 offsets"):
        segmented.sum(np.zeros(9, np.float32), np.array([0, 3, 9], np.int32), out)
    with pytest.raises(gw.DeviceIndexError):
        segmented.sum(np.zeros(9, np.float32), np.array([0, 3, 6, 99], np.int32), out)
