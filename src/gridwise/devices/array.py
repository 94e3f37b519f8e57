"""Arrays in device memory: shape, strides, views, and copies to and from the host."""

from __future__ import annotations

import math
import struct
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from gridwise.ir.types import I32, Scalar, Struct, extent_limit
from gridwise.lang.errors import DeviceError

from . import foreign, order
from .elements import Element, element
from .memory import ArrayArg, Buffer
from .recording import Copy, Fill, host_access, perform

if TYPE_CHECKING:
    from .base import Device, Stream

ALIGNMENT = 16  # bytes: what vector access needs
_EXTENT = extent_limit(I32)


def contiguous_strides(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Strides in elements of a C-contiguous array."""
    strides, step = [], 1
    for extent in reversed(shape):
        strides.append(step)
        step *= max(extent, 1)
    return tuple(reversed(strides))


def is_contiguous(shape: tuple[int, ...], strides: tuple[int, ...]) -> bool:
    """C-contiguous; extents of 0 and 1 make their strides irrelevant."""
    if 0 in shape:
        return True
    step = 1
    for extent, stride in zip(reversed(shape), reversed(strides)):
        if extent != 1:
            if stride != step:
                return False
            step *= extent
    return True


def span(shape: tuple[int, ...], strides: tuple[int, ...]) -> tuple[int, int]:
    """Lowest and one past the highest element offset that the array touches, relative to element 0."""
    low = high = 0
    for extent, stride in zip(shape, strides):
        if extent == 0:
            return 0, 0
        reach = (extent - 1) * stride
        if reach < 0:
            low += reach
        else:
            high += reach
    return low, high + 1


class Trait:
    """What a kernel is specialised on, of an array. Interned: two that are equal are one object.

    elem: element type; rank; strided: not C-contiguous; wide: needs 64-bit indices; aligned: starts at a multiple
    of ``ALIGNMENT`` bytes.
    """

    __slots__ = ("aligned", "elem", "rank", "strided", "wide")
    _made: ClassVar[dict[tuple[Element, int, bool, bool, bool], Trait]] = {}

    def __init__(self, elem: Element, rank: int, strided: bool, wide: bool, aligned: bool):
        self.elem, self.rank, self.strided, self.wide, self.aligned = elem, rank, strided, wide, aligned

    @classmethod
    def of(cls, elem: Element, rank: int, strided: bool = False, wide: bool = False, aligned: bool = True) -> Trait:
        key = (elem, rank, strided, wide, aligned)
        return cls._made.get(key) or cls._made.setdefault(key, cls(*key))

    def __repr__(self) -> str:
        marks = [n for n in ("strided", "wide", "aligned") if getattr(self, n)]
        return f"<trait {self.rank}-d {self.elem} {' '.join(marks)}>"


def describe(arg: ArrayArg, elem: Element, contiguous: bool) -> tuple[Trait, int, int]:
    """What a kernel is specialised on, and the byte range that the argument touches.

    Buffers without an address get a range of their own.
    """
    buffer, shape = arg.buffer, arg.shape
    low, high = (0, math.prod(shape)) if contiguous else span(shape, arg.strides)
    wide = high - low > I32.max or any(n > _EXTENT for n in shape)  # (a stride may be 0)
    start = buffer.address + arg.offset
    trait = Trait.of(elem, len(shape), not contiguous, wide, start % ALIGNMENT == 0)
    base = start if buffer.address else (id(buffer) << 64) + start
    return trait, base + low * elem.size, base + high * elem.size


class Array:
    """Elements of one type in the memory of one device.

    Attributes:
        device:   where it lives.
        elem:     element type of the IR; ``dtype`` is its NumPy dtype.
        shape:    extents; ``strides`` in elements (as torch, not bytes as NumPy).
        writable: False for a read-only view.

    Slicing, ``reshape`` and ``transpose`` give views of the same memory. Copies are queued in order with the
    kernels that touch the array; reading to the host waits. Made by ``device.array``, ``zeros``, ``empty``
    and ``full``, never directly.
    """

    __slots__ = (
        "__weakref__",
        "arg",
        "buffer",
        "device",
        "elem",
        "high",
        "low",
        "offset",
        "raw",
        "shape",
        "strides",
        "trait",
        "writable",
    )

    def __init__(
        self,
        device: Device,
        buffer: Buffer,
        elem: Scalar | Struct,
        shape: tuple[int, ...],
        strides: tuple[int, ...] | None = None,
        offset: int = 0,
        writable: bool = True,
    ):
        self.device, self.buffer, self.elem = device, buffer, elem
        self.shape, self.offset, self.writable = shape, offset, writable
        self.strides = strides if strides is not None else contiguous_strides(shape)
        contiguous = strides is None or is_contiguous(shape, strides)
        # What a launch needs, worked out once: the bound argument, and what it is specialised on.
        self.arg = ArrayArg(buffer, offset, shape, self.strides)
        self.trait, self.low, self.high = describe(self.arg, elem, contiguous)
        # The same for launchers in machine code: address, byte range, extents and strides as 64-bit words.
        self.raw: bytes | None = None
        if buffer.address:
            words = (buffer.address + offset, self.low, self.high, *shape, *self.strides)
            self.raw = struct.pack(f"<3Q{2 * len(shape)}q", *words)

    # -- properties ----------------------------------------------------------------------------------------
    @property
    def dtype(self) -> np.dtype:
        return self.elem.dtype

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        """Number of elements."""
        return math.prod(self.shape)

    @property
    def nbytes(self) -> int:
        """Bytes of the elements (not of the memory between them, if strided)."""
        return self.size * self.elem.size

    @property
    def contiguous(self) -> bool:
        return not self.trait.strided

    @property
    def freed(self) -> bool:
        return self.buffer.freed

    @property
    def T(self) -> Array:
        return self.transpose()

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of an array of rank 0")
        return self.shape[0]

    def __repr__(self) -> str:
        shape = "x".join(map(str, self.shape)) or "scalar"
        state = ", freed" if self.freed else ""
        return f"Array({shape} {self.elem} on {self.device.name}{state})"

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        if copy is False:
            raise ValueError("an array on a device cannot be viewed by NumPy without a copy; use .numpy()")
        out = self.numpy()
        return out if dtype is None else out.astype(dtype, copy=False)

    # -- other libraries ---------------------------------------------------------------------------------------
    def __dlpack_device__(self) -> tuple[int, int]:
        return foreign.kind_of(self)

    def __dlpack__(
        self,
        *,
        stream: int | None = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> Any:
        """A DLPack capsule of this memory, for ``numpy.from_dlpack``, ``torch.from_dlpack`` and the like; no copy.

        Raises BufferError for arrays on WebGPU and the reference device, and for a copy or another device.
        """
        if copy or (dl_device is not None and tuple(dl_device) != foreign.kind_of(self)):
            raise BufferError("a copy, or an array on another device, is asked for: use .copy() or .numpy()")
        return foreign.offer(self, stream, max_version)

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        if self.device.kind != "cuda":
            raise AttributeError("only arrays of CUDA devices have __cuda_array_interface__")
        return foreign.interface(self)

    # -- views -----------------------------------------------------------------------------------------------
    def _view(
        self, shape: tuple[int, ...], strides: tuple[int, ...], offset: int, writable: bool | None = None
    ) -> Array:
        return Array(
            self.device,
            self.buffer,
            self.elem,
            shape,
            strides,
            offset,
            self.writable if writable is None else writable,
        )

    def __getitem__(self, key: Any) -> Array:
        """A view by integers, slices, ``...`` and ``None``, as in NumPy; no copy."""
        keys = list(key) if isinstance(key, tuple) else [key]
        at = next((n for n, k in enumerate(keys) if k is Ellipsis), None)
        if at is not None:
            missing = self.ndim - sum(k is not None and k is not Ellipsis for k in keys)
            keys[at : at + 1] = [slice(None)] * missing
        shape: list[int] = []
        strides: list[int] = []
        offset, axis = self.offset, 0
        for k in keys:
            if k is None:
                shape.append(1)
                strides.append(0)
                continue
            if axis >= self.ndim:
                raise IndexError(f"too many indices for an array of rank {self.ndim}")
            extent, stride = self.shape[axis], self.strides[axis]
            if isinstance(k, slice):
                start, stop, step = k.indices(extent)
                shape.append(len(range(start, stop, step)))
                strides.append(stride * step)
                offset += start * stride * self.elem.size if shape[-1] else 0
            elif isinstance(k, int | np.integer) and not isinstance(k, bool):
                if not -extent <= k < extent:
                    raise IndexError(f"index {k} is out of range for axis {axis} of length {extent}")
                offset += (int(k) % extent) * stride * self.elem.size
            else:
                raise IndexError(f"an array on a device is indexed by integers and slices, not {type(k).__name__}")
            axis += 1
        shape += self.shape[axis:]
        strides += self.strides[axis:]
        return self._view(tuple(shape), tuple(strides), offset)

    def reshape(self, *shape: Any) -> Array:
        """A view of another shape; one extent may be -1. Raises ValueError if it would need a copy."""
        wanted = tuple(int(n) for n in (shape[0] if len(shape) == 1 and not isinstance(shape[0], int) else shape))
        if -1 in wanted:
            rest = math.prod(n for n in wanted if n != -1)
            if wanted.count(-1) > 1 or rest == 0 or self.size % rest:
                raise ValueError(f"cannot reshape {self.shape} to {wanted}")
            wanted = tuple(self.size // rest if n == -1 else n for n in wanted)
        if math.prod(wanted) != self.size or any(n < 0 for n in wanted):
            raise ValueError(f"cannot reshape {self.shape} to {wanted}: {self.size} elements")
        if not self.contiguous:
            raise ValueError("cannot reshape a strided view without a copy")
        return self._view(wanted, contiguous_strides(wanted), self.offset)

    def transpose(self, *axes: int) -> Array:
        """A view with axes permuted; reversed if none are given."""
        order_ = axes or tuple(reversed(range(self.ndim)))
        if sorted(order_) != list(range(self.ndim)):
            raise ValueError(f"axes {axes} are not a permutation of {self.ndim} axes")
        return self._view(tuple(self.shape[a] for a in order_), tuple(self.strides[a] for a in order_), self.offset)

    def readonly(self) -> Array:
        """A view that no kernel may write through."""
        return self._view(self.shape, self.strides, self.offset, writable=False)

    # -- copies ------------------------------------------------------------------------------------------------
    def _alive(self) -> None:
        if self.buffer.freed:
            raise DeviceError(f"this array on {self.device.name} was freed")

    def _spanned(self) -> tuple[int, int, int]:
        """Byte range of the memory touched, and element 0's place in it in elements."""
        low, high = span(self.shape, self.strides)
        return self.offset + low * self.elem.size, high - low, -low

    def _strided(self, flat: np.ndarray, first: int) -> np.ndarray:
        return np.lib.stride_tricks.as_strided(
            flat[first:], self.shape, tuple(s * self.elem.size for s in self.strides)
        )

    def numpy(self, stream: Stream | None = None) -> np.ndarray:
        """A copy on the host, C-contiguous; waits for the work that writes it and raises its faults."""
        out = np.empty(self.shape, self.dtype)
        self.copy_to(out, stream)
        return out

    def copy_to(self, out: np.ndarray, stream: Stream | None = None, blocking: bool = True) -> None:
        """Copy to a NumPy array of the same shape and dtype.

        With ``blocking=False`` both sides must be C-contiguous, and ``out`` holds the data only after
        ``stream.synchronize()``.
        """
        self._alive()
        self._matches(out.shape, out.dtype)
        if not out.flags.writeable:
            raise ValueError("the host array is read-only")
        stream = stream or self.buffer.writer or self.device.default_stream
        host_access(stream)
        order.reads(self.buffer, stream)
        if self.contiguous and out.flags.c_contiguous:
            self.device.read(self.buffer, self.offset, out, stream, blocking)
            return
        if not blocking:
            raise ValueError("a non-blocking copy needs C-contiguous arrays on both sides")
        if self.size == 0:
            stream.synchronize()
            return
        start, count, first = self._spanned()
        flat = np.empty(count, self.dtype)
        self.device.read(self.buffer, start, flat, stream)
        out[...] = self._strided(flat, first)

    def copy_from(self, source: np.ndarray | Array, stream: Stream | None = None, blocking: bool = True) -> None:
        """Copy in from a NumPy array, or from an array on any device, of the same shape and dtype.

        With ``blocking=False`` both sides must be C-contiguous, and a host array must stay unchanged until
        ``stream.synchronize()``.
        """
        self._alive()
        if not self.writable:
            raise ValueError("this view is read-only")
        if not isinstance(source, Array):
            source = np.asarray(source)
        self._matches(source.shape, source.dtype)
        stream = stream or self.device.default_stream
        if isinstance(source, Array):
            source._alive()
            if source.device is self.device and self.contiguous and source.contiguous:
                order.reads(source.buffer, stream)
                order.writes(self.buffer, stream)
                perform(Copy(source.buffer, source.offset, self.buffer, self.offset, self.nbytes), stream)
                if blocking and stream.recorder is None:
                    stream.synchronize()
                return
            if self.contiguous and source.contiguous and self._peer(source, stream, blocking):
                return
            source = source.numpy()
        host_access(stream)
        order.writes(self.buffer, stream)
        if self.contiguous and source.flags.c_contiguous:
            self.device.write(self.buffer, self.offset, source, stream, blocking)
            return
        if not blocking:
            raise ValueError("a non-blocking copy needs C-contiguous arrays on both sides")
        if self.contiguous:
            self.device.write(self.buffer, self.offset, np.ascontiguousarray(source), stream)
        elif self.size:
            start, count, first = self._spanned()
            flat = np.empty(count, self.dtype)
            self.device.read(self.buffer, start, flat, stream)
            self._strided(flat, first)[...] = source
            self.device.write(self.buffer, start, flat, stream)

    def _peer(self, source: Array, stream: Stream, blocking: bool) -> bool:
        """Copy from another device's memory straight into this one's, where the two can."""
        if not self.device.peers or source.device.kind != self.device.kind or source.device is self.device:
            return False
        host_access(stream)
        order.reads(source.buffer, stream)
        order.writes(self.buffer, stream)
        self.device.copy_peer(
            source.buffer, source.offset, source.device, self.buffer, self.offset, self.nbytes, stream
        )
        if blocking:
            stream.synchronize()
        return True

    def _matches(self, shape: tuple[int, ...], dtype: np.dtype) -> None:
        if tuple(shape) != self.shape:
            raise ValueError(f"shapes differ: {tuple(shape)} on one side, {self.shape} on the other")
        if dtype != self.dtype:
            raise TypeError(f"dtypes differ: {dtype} on one side, {self.dtype} on the other")

    def copy(self, stream: Stream | None = None) -> Array:
        """A new contiguous array with the same content on the same device."""
        out = self.device.empty(self.shape, self.elem)
        out.copy_from(self, stream, blocking=False) if self.contiguous else out.copy_from(self.numpy(stream), stream)
        return out

    def fill(self, value: Any, stream: Stream | None = None) -> None:
        """Set every element; queued."""
        self._alive()
        if not self.writable:
            raise ValueError("this view is read-only")
        one = np.array(value, self.dtype)
        if one.shape:
            raise ValueError("fill takes one element")
        data = one.tobytes()
        stream = stream or self.device.default_stream
        if self.contiguous and len(set(data)) == 1:
            order.writes(self.buffer, stream)
            perform(Fill(self.buffer, self.offset, self.nbytes, data[0]), stream)
        elif self.size:
            self.copy_from(np.full(self.shape, one), stream)

    def free(self) -> None:
        """Give the memory back after the work queued on it; every view of it becomes unusable. Idempotent."""
        if not self.buffer.freed:
            order.idle(self.buffer, self.device.default_stream)
            self.buffer.release(self.device)


def make(device: Device, shape: Any, dtype: Any) -> Array:
    """Uninitialised memory for ``shape`` (an int or a tuple) elements of ``dtype``."""
    elem = element(dtype)
    dims = (int(shape),) if isinstance(shape, int | np.integer) else tuple(int(n) for n in shape)
    if any(n < 0 for n in dims):
        raise ValueError(f"negative extent in shape {dims}")
    return Array(device, device.allocate(max(1, elem.size * math.prod(dims))), elem, dims)


def from_host(device: Device, source: Any, dtype: Any, stream: Stream | None, blocking: bool) -> Array:
    """A copy of a NumPy array, a nested sequence, or an array on any device."""
    if isinstance(source, Array):
        out = make(device, source.shape, source.elem if dtype is None else dtype)
        out.copy_from(source, stream, blocking or source.device is not device)
        return out
    host = np.asarray(source)
    if dtype is not None:
        host = host.astype(element(dtype).dtype, copy=False)
    if not host.flags.c_contiguous:
        host, blocking = host.copy(order="C"), True
    out = make(device, host.shape, host.dtype)
    if host.size:
        out.copy_from(host, stream, blocking)
    return out
