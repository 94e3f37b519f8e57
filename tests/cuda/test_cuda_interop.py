"""Arrays of CUDA devices and other libraries' CUDA arrays: DLPack and ``__cuda_array_interface__``, both ways."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import gridwise as gw
from gridwise import DisjointSlice, Slice, f32, thread
from gridwise.devices import dlpack, registry


@gw.kernel
def double(x: Slice[f32], y: DisjointSlice[f32]):
    i = thread.index_1d()
    if i in y:
        y[i] = 2.0 * x[i]


@pytest.fixture
def device(cuda: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """The CUDA device, as ``gw.device("cuda:0")`` finds it."""
    monkeypatch.setitem(registry._devices, "cuda:0", cuda)
    yield cuda
    gc.collect()


class Exchange:
    """Another library's array: what it passes on, and the stream that it was asked for."""

    def __init__(self, array: Any):
        self.array, self.streams = array, []

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.array.__dlpack_device__()

    def __dlpack__(self, *, stream: Any = None, **rest: Any) -> Any:
        self.streams.append(stream)
        return self.array.__dlpack__(stream=stream, **rest)


class Interface:
    """Another library's array by ``__cuda_array_interface__`` alone."""

    def __init__(self, array: Any, **changed: Any):
        self.array = array
        self.__cuda_array_interface__ = {**array.__cuda_array_interface__, **changed}


@pytest.mark.parametrize("key", [np.s_[:], np.s_[::-1, 1:], np.s_[1]])
@pytest.mark.parametrize("wrap", [Exchange, Interface])
def test_the_same_memory(device: Any, wrap: Any, key: Any) -> None:
    array = device.array(np.arange(12, dtype=np.float32).reshape(3, 4))
    view = gw.from_dlpack(wrap(array[key]))
    assert view.device is device and view.shape == array[key].shape and view.strides == array[key].strides
    assert np.array_equal(view.numpy(), array[key].numpy())
    view.fill(5)
    assert np.array_equal(array[key].numpy(), view.numpy())


@pytest.mark.parametrize("wrap", [Exchange, Interface])
def test_kernels_take_them_as_they_are(device: Any, wrap: Any) -> None:
    x, y = device.array(np.arange(100, dtype=np.float32)), device.zeros(100, f32)
    double(wrap(x), wrap(y))
    assert np.array_equal(y.numpy(), 2 * np.arange(100))
    double.prepare(device)(x, wrap(y))
    with pytest.raises(gw.LaunchTypeError, match="argument 'y' is a NumPy array on the host"):
        double(wrap(x), np.zeros(100, np.float32))


def test_a_tensor_is_asked_for_on_the_default_stream(device: Any) -> None:
    taken = Exchange(device.zeros(4, f32))
    gw.from_dlpack(taken)
    assert taken.streams == [int(device.default_stream.handle)]


def test_a_consumers_stream_waits_for_the_writer(device: Any) -> None:
    stream = device.stream()
    x, y = device.full(1000, 1.0, f32), device.zeros(1000, f32)
    double(x, y, stream=stream)
    assert y.__cuda_array_interface__["stream"] == int(stream.handle)
    other = device.stream()
    capsule = y.__dlpack__(stream=int(other.handle), max_version=(1, 1))
    assert len(dlpack._given) == 1
    del capsule
    assert not dlpack._given


def test_read_only(device: Any) -> None:
    array = device.zeros(4, f32).readonly()
    assert array.__cuda_array_interface__["data"][1] is True
    for wrap in (Exchange, Interface):
        with pytest.raises(gw.LaunchValueError, match="argument 'y' is a read-only view"):
            double(device.zeros(4, f32), wrap(array))


def test_lifetime(device: Any) -> None:
    array = device.zeros(4, f32)
    watch = weakref.ref(array.buffer)
    view = gw.from_dlpack(Interface(array))
    del array
    gc.collect()
    assert watch() is not None
    view.free()
    gc.collect()
    assert watch() is None


def test_what_is_refused(device: Any) -> None:
    array = device.zeros((4, 4), f32)
    with pytest.raises(TypeError, match="with a mask"):
        gw.from_dlpack(Interface(array, mask=array))
    with pytest.raises(TypeError, match="no multiples"):
        gw.from_dlpack(Interface(array, strides=(18, 4)))
    with pytest.raises(TypeError, match="c16"):
        gw.from_dlpack(Interface(array, typestr="<c16"))
