"""Arrays on every device: views, copies both ways, fills, and the errors."""

import numpy as np
import pytest

import gridwise as gw
from gridwise import f32, i32
from gridwise.devices.array import is_contiguous, span


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint16", "int32", "uint64", "float16", "float32", "float64"])
@pytest.mark.parametrize("shape", [(), (1,), (17,), (0,), (3, 5), (2, 3, 4)])
def test_round_trip(device, dtype, shape):
    host = (np.arange(np.prod(shape, dtype=int)).reshape(shape) % 7).astype(dtype)
    array = device.array(host)
    assert (array.shape, array.dtype, array.size, array.nbytes) == (shape, host.dtype, host.size, host.nbytes)
    back = array.numpy()
    assert back.dtype == host.dtype and np.array_equal(back, host)


def test_makers(device):
    assert np.array_equal(device.zeros((3, 2), f32).numpy(), np.zeros((3, 2), np.float32))
    assert np.array_equal(device.full(5, -7, i32).numpy(), np.full(5, -7, np.int32))
    assert device.empty(4, np.float32).dtype == np.float32
    assert device.array([1, 2, 3], i32).dtype == np.int32
    assert len(device.empty((6, 2), "u1")) == 6


VIEWS = [
    np.s_[2:],
    np.s_[::-1],
    np.s_[1:9:3],
    np.s_[:, 1],
    np.s_[3],
    np.s_[-2, ::-2],
    np.s_[..., 2:4],
    np.s_[None, 1:3, ..., None],
    np.s_[5:5],
]


@pytest.mark.parametrize("key", VIEWS)
def test_slices_are_numpys(device, key):
    host = np.arange(60, dtype=np.int32).reshape(10, 6)
    view = device.array(host)[key]
    assert np.array_equal(view.numpy(), host[key])
    assert view.contiguous == host[key].flags.c_contiguous


@pytest.mark.parametrize("key", VIEWS)
def test_writing_through_a_view_touches_nothing_else(device, key):
    host = np.arange(60, dtype=np.int32).reshape(10, 6)
    array = device.array(host)
    new = -1 - np.arange(host[key].size, dtype=np.int32).reshape(host[key].shape)
    array[key].copy_from(new)
    host[key] = new
    assert np.array_equal(array.numpy(), host)


def test_reshape_and_transpose(device):
    host = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    array = device.array(host)
    assert np.array_equal(array.reshape(6, -1).numpy(), host.reshape(6, 4))
    assert np.array_equal(array.transpose(1, 0, 2).numpy(), host.transpose(1, 0, 2))
    assert np.array_equal(array.T.numpy(), host.T)
    with pytest.raises(ValueError, match="without a copy"):
        array.T.reshape(-1)
    with pytest.raises(ValueError, match="24 elements"):
        array.reshape(5, 5)


def test_fill(device):
    array = device.zeros(9, f32)
    array.fill(2.5)
    array[1::2].fill(-1)
    assert np.array_equal(array.numpy(), np.where(np.arange(9) % 2, np.float32(-1), np.float32(2.5)))


def test_copies_between_arrays(device):
    a = device.array(np.arange(8, dtype=np.int32))
    b = device.zeros(8, i32)
    b.copy_from(a)
    b[:4].copy_from(a[4:])
    assert b.numpy().tolist() == [4, 5, 6, 7, 4, 5, 6, 7]
    c = b[::2].copy()
    assert c.contiguous and c.numpy().tolist() == [4, 6, 4, 6]


def test_non_blocking_copies(device):
    stream = device.stream()
    host = np.arange(1000, dtype=np.float32)
    array = device.array(host, stream=stream, blocking=False)
    out = np.empty_like(host)
    array.copy_to(out, stream, blocking=False)
    stream.synchronize()
    assert np.array_equal(out, host)


def test_use_on_another_stream_waits_for_the_first(device):
    one, two = device.stream(), device.stream()
    a, b = device.zeros(1 << 16, i32), device.zeros(1 << 16, i32)
    for n in range(10):
        a.copy_from(np.full(1 << 16, n, np.int32), one)
        b.copy_from(a, two, blocking=False)
        assert np.all(b.numpy() == n)


def test_structured(device):
    dtype = np.dtype([("x", "f4"), ("n", "u1"), ("v", "i2", (3,))], align=True)
    host = np.zeros(5, dtype)
    host["x"], host["n"], host["v"] = 1.5, 3, np.arange(3)
    back = device.array(host).numpy()
    assert back.dtype.names == dtype.names and back.dtype.itemsize == dtype.itemsize
    assert all(np.array_equal(back[n], host[n]) for n in dtype.names)


def test_errors(device):
    array = device.zeros(4, f32)
    with pytest.raises(ValueError, match="shapes differ"):
        array.copy_from(np.zeros(5, np.float32))
    with pytest.raises(TypeError, match="dtypes differ: float64"):
        array.copy_from(np.zeros(4))
    with pytest.raises(ValueError, match="read-only"):
        array.readonly().copy_from(np.zeros(4, np.float32))
    with pytest.raises(IndexError, match="index 4 is out of range"):
        array[4]
    with pytest.raises(gw.LaunchTypeError, match="not an element type"):
        device.empty(3, "U5")
    view = array[1:]
    array.free()
    array.free()
    assert view.freed and "freed" in repr(view)
    with pytest.raises(gw.DeviceError, match="freed"):
        view.numpy()


@pytest.mark.parametrize(
    ("shape", "strides", "wanted"),
    [
        ((4,), (1,), (0, 4)),
        ((4,), (-1,), (-3, 1)),
        ((2, 3), (10, -2), (-4, 11)),
        ((0, 3), (3, 1), (0, 0)),
        ((), (), (0, 1)),
    ],
)
def test_span(shape, strides, wanted):
    assert span(shape, strides) == wanted


def test_contiguity_ignores_axes_of_one():
    assert is_contiguous((1, 5), (77, 1))
    assert not is_contiguous((2, 5), (6, 1))
    assert is_contiguous((0, 5), (9, 9))
