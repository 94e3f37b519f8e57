"""DLPack both ways, with NumPy on the other side; what cannot be shared is refused with the reason."""

import gc
import weakref

import numpy as np
import pytest

import gridwise as gw
from gridwise import DisjointSlice, Slice, f32, thread
from gridwise.devices import dlpack

DTYPES = ["bool", *(f"{kind}{bits}" for kind in ("int", "uint") for bits in (8, 16, 32, 64))]
DTYPES += ["float16", "float32", "float64"]


@gw.kernel
def double(x: Slice[f32], y: DisjointSlice[f32]):
    i = thread.index_1d()
    if i in y:
        y[i] = 2.0 * x[i]


class Foreign:
    """Another library's array: nothing but the protocol."""

    def __init__(self, array, old=False, device=(1, 0)):
        self.array, self.old, self.device = array, old, device

    def __dlpack_device__(self):
        return self.device

    def __dlpack__(self, *, stream=None, **new):
        if self.old and new:
            raise TypeError("unexpected keyword argument 'max_version'")
        return self.array.__dlpack__(**new)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("key", [np.s_[:], np.s_[::-1, 1:], np.s_[1], np.s_[2:2]])
def test_give(dtype, key):
    host = (np.arange(12).reshape(3, 4) % 5).astype(dtype)
    array = gw.device("cpu").array(host)
    view = np.from_dlpack(array[key])
    assert view.dtype == host.dtype and np.array_equal(view, host[key])
    if view.size:
        view[...] = 1  # the same memory
        assert np.array_equal(array[key].numpy(), np.ones_like(view))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("key", [np.s_[:], np.s_[::-1, 1:], np.s_[1], np.s_[2:2]])
def test_take(dtype, key):
    host = (np.arange(12).reshape(3, 4) % 5).astype(dtype)
    array = gw.from_dlpack(host[key])
    assert array.dtype == host.dtype and np.array_equal(array.numpy(), host[key])
    if array.size:
        array.fill(1)
        assert np.all(host[key] == 1)


@pytest.mark.parametrize("old", [False, True])
def test_kernels_take_foreign_arrays_in_place(old):
    x, y = np.arange(9, dtype=np.float32), np.zeros(9, np.float32)
    double(Foreign(x, old), Foreign(y, old))
    assert np.array_equal(y, 2 * x)


def test_read_only_is_kept():
    x = np.arange(4, dtype=np.float32)
    x.flags.writeable = False
    assert not gw.from_dlpack(x).writable
    with pytest.raises(gw.LaunchValueError, match="argument 'y' is a read-only array"):
        double(np.zeros(4, np.float32), Foreign(x))
    array = gw.device("cpu").zeros(4, f32).readonly()
    assert not np.from_dlpack(array).flags.writeable
    with pytest.raises(BufferError, match="read-only"):
        array.__dlpack__()


def test_memory_lives_as_long_as_either_side():
    cpu = gw.device("cpu")
    before = set(dlpack._given)  # what another library holds on to, from an earlier test
    array = cpu.full(1000, 7.0, f32)
    view = np.from_dlpack(array)
    watch = weakref.ref(array.buffer)
    del array
    gc.collect()
    assert watch() is not None and np.all(view == 7)
    del view
    gc.collect()
    assert watch() is None and set(dlpack._given) <= before

    host = np.ones(5, np.float32)
    watch = weakref.ref(host)
    array = gw.from_dlpack(host)
    part = array[2:]
    del host, array
    gc.collect()
    assert watch() is not None and part.numpy().tolist() == [1.0] * 3
    del part
    gc.collect()
    assert watch() is None


def test_a_capsule_that_nobody_takes_is_freed():
    array = gw.device("cpu").zeros(3, f32)
    before = set(dlpack._given)
    capsules = [array.__dlpack__(), array.__dlpack__(max_version=(1, 0))]
    assert len(set(dlpack._given) - before) == 2
    del capsules
    assert set(dlpack._given) <= before


def test_free_gives_a_foreign_array_back():
    host = np.ones(5, np.float32)
    watch = weakref.ref(host)
    array = gw.from_dlpack(host)
    del host
    array.free()
    gc.collect()
    assert watch() is None
    with pytest.raises(gw.DeviceError, match="freed"):
        array.numpy()


def test_what_cannot_be_shared():
    array = gw.device("check").zeros(3, f32)
    with pytest.raises(BufferError, match=r"memory of check cannot be shared"):
        np.from_dlpack(array)
    with pytest.raises(BufferError, match="copy"):
        gw.device("cpu").zeros(3, f32).__dlpack__(copy=True)
    with pytest.raises(gw.LaunchTypeError, match="argument 'x', a Foreign, cannot be shared: managed memory"):
        double(Foreign(None, device=(13, 0)), np.zeros(3, np.float32))
    with pytest.raises(gw.LaunchTypeError, match="DLPack device type 8"):
        double(Foreign(None, device=(8, 0)), np.zeros(3, np.float32))
    with pytest.raises(gw.LaunchTypeError, match=r"element type .* is not one of gridwise's"):
        double(Foreign(np.zeros(3, np.complex64)), np.zeros(3, np.float32))
    with pytest.raises(gw.LaunchTypeError, match="argument 'x' has dtype float64"):
        double(Foreign(np.zeros(3)), np.zeros(3, np.float32))
    assert not hasattr(array, "__cuda_array_interface__")
