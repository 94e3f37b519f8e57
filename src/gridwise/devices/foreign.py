"""Arrays of other libraries as ours, and ours as theirs, without a copy.

What has ``__dlpack__`` (NumPy, torch, JAX, CuPy) or ``__cuda_array_interface__`` (CuPy, numba) is taken where it
lies: memory of the host as a NumPy array, memory of a CUDA device as an ``Array`` of that device.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gridwise.ir.types import Scalar, from_dtype

from . import array as arrays
from . import dlpack
from .memory import Buffer

if TYPE_CHECKING:
    from .array import Array
    from .base import Device


class ForeignBuffer(Buffer):
    """Memory that belongs to another library, which is told when the last of our arrays over it goes."""

    __slots__ = ()

    def release(self, device: Device) -> None:
        self.freed = True
        self._finish()
        self.owner = self.handle = None

    def _finish(self) -> None:
        """Wait for work of ours on streams that the other library does not know.

        The default stream is ordered with the legacy default stream, on which such libraries free and reuse.
        """
        for stream in {self.writer, *self.readers}:
            if stream is not None and stream is not stream.device.default_stream:
                stream.record().synchronize()

    def __del__(self) -> None:
        if not self.freed:
            self._finish()


def is_foreign(value: Any) -> bool:
    """Whether ``value`` offers its memory by one of the protocols understood here."""
    return hasattr(value, "__dlpack__") or hasattr(value, "__cuda_array_interface__")


def _on_cuda(
    ordinal: int,
    address: int,
    shape: tuple[int, ...],
    strides: tuple[int, ...],
    elem: Scalar,
    writable: bool,
    owner: Any,
) -> Array:
    from .registry import device

    found = device(f"cuda:{ordinal}")
    low, high = arrays.span(shape, strides)
    start = address + low * elem.size
    buffer = ForeignBuffer(start, (high - low) * elem.size, start, owner)
    buffer.writer = found.default_stream
    return arrays.Array(found, buffer, elem, shape, strides, address - start, writable)


def _interface(value: Any) -> Array:
    """An array by ``__cuda_array_interface__``, version 2 or 3."""
    from .registry import device

    spec = value.__cuda_array_interface__
    elem = from_dtype(np.dtype(spec["typestr"]))
    if elem is None or spec.get("mask") is not None:
        raise TypeError(f"arrays of {spec['typestr']}, or with a mask, cannot be taken")
    shape = tuple(int(n) for n in spec["shape"])
    strides = spec.get("strides")
    if strides is None:
        steps = arrays.contiguous_strides(shape)
    elif any(s % elem.size for s in strides):
        raise TypeError(f"strides of {strides} bytes are no multiples of the {elem.size}-byte elements")
    else:
        steps = tuple(int(s) // elem.size for s in strides)
    address, readonly = spec["data"]
    ordinal = getattr(getattr(value, "device", None), "id", 0)
    found = device(f"cuda:{ordinal}")
    stream = spec.get("stream")
    if stream is not None:  # the array is ready there: our default stream waits for it
        found.default_stream.wait(found.external_stream(int(stream)).record())  # type: ignore[attr-defined]
    return _on_cuda(ordinal, int(address), shape, steps, elem, not readonly, value)


def _immutable(value: Any, taken: dlpack.Taken) -> dlpack.Taken:
    """JAX arrays never change, which their capsules do not say."""
    if type(value).__module__.partition(".")[0] in ("jax", "jaxlib"):
        taken.writable = False
    return taken


def _take(value: Any) -> dlpack.Taken | Array:
    """Another library's array: what DLPack says of it if it is in host memory, else an ``Array``."""
    if not hasattr(value, "__dlpack__"):
        return _interface(value)
    kind, ordinal = value.__dlpack_device__()
    if kind in (dlpack.CPU, dlpack.CUDA_HOST):
        return _immutable(value, dlpack.take(value, None))
    if kind == dlpack.CUDA_MANAGED:
        raise BufferError("managed memory is not supported: its pages move under a running kernel, at a great cost")
    if kind != dlpack.CUDA:
        raise BufferError(f"memory of DLPack device type {int(kind)} cannot be used here without a copy")
    from .registry import device

    found = device(f"cuda:{int(ordinal)}")
    t = _immutable(value, dlpack.take(value, int(found.default_stream.handle)))  # type: ignore[attr-defined]
    return _on_cuda(int(ordinal), t.address, t.shape, t.strides, t.elem, t.writable, t.holder)


def adopt(value: Any) -> Array | np.ndarray:
    """Another library's array, in place: a NumPy array if it is in host memory, else an ``Array``.

    Raises BufferError or TypeError with the reason if it cannot be shared.
    """
    taken = _take(value)
    return dlpack.host_view(taken) if isinstance(taken, dlpack.Taken) else taken


def from_dlpack(value: Any) -> Array:
    """Another library's array as an ``Array`` over the same memory: of the CPU device, or of its CUDA device.

    ``value`` has ``__dlpack__`` or ``__cuda_array_interface__``. Raises BufferError or TypeError with the reason if
    it cannot be shared.
    """
    taken = _take(value)
    if not isinstance(taken, dlpack.Taken):
        return taken
    from .registry import device

    memory, first = dlpack.host_bytes(taken)
    buffer = ForeignBuffer(memory, memory.nbytes, taken.address - first, taken.holder)
    return arrays.Array(device("cpu"), buffer, taken.elem, taken.shape, taken.strides, first, taken.writable)


def kind_of(array: Array) -> tuple[int, int]:
    """The DLPack device of an array. Raises BufferError for a device whose memory cannot be shared."""
    if array.device.kind == "cpu":
        return dlpack.CPU, 0
    if array.device.kind == "cuda":
        return dlpack.CUDA, int(array.device.name.split(":")[1])
    raise BufferError(f"memory of {array.device.name} cannot be shared with other libraries; copy it with .numpy()")


def offer(array: Array, stream: int | None, version: tuple[int, int] | None) -> Any:
    """A DLPack capsule of an array of the CPU or a CUDA device, ready on the consumer's ``stream``."""
    device = kind_of(array)
    if array.buffer.freed:
        raise BufferError("this array was freed")
    if not isinstance(array.elem, Scalar):
        raise BufferError("arrays of structs cannot be shared by DLPack")
    writer = array.buffer.writer
    if writer is not None and stream != -1:  # -1: the consumer asks for no ordering
        if array.device.kind == "cuda":
            # None and 1 are the legacy default stream, with which ours is ordered.
            theirs = array.device.default_stream
            if stream not in (None, 0, 1):
                theirs = array.device.external_stream(stream)  # type: ignore[attr-defined]
            if writer is not theirs:
                theirs.wait(writer.record())
        else:
            writer.synchronize()
    address = array.buffer.address + array.offset
    return dlpack.give(array, address, array.shape, array.strides, array.elem, device, array.writable, version)


def interface(array: Array) -> dict[str, Any]:
    """``__cuda_array_interface__`` of an array of a CUDA device."""
    writer = array.buffer.writer or array.device.default_stream
    size = array.elem.size
    return {
        "version": 3,
        "shape": array.shape,
        "typestr": array.dtype.str,
        "data": (array.buffer.address + array.offset, not array.writable),
        "strides": None if array.contiguous else tuple(s * size for s in array.strides),
        "stream": int(writer.handle) or 1,  # type: ignore[attr-defined]
    }
