"""DLPack: arrays of other libraries without a copy, both ways.

Structures and numbers are those of DLPack 1.1 (dlpack.h). Both capsules are spoken: ``dltensor_versioned``, which
carries a read-only flag, where the other side asks for version 1 or offers it, else the older ``dltensor``.
"""

from __future__ import annotations

import ctypes
import itertools
from ctypes import POINTER, Structure, c_int32, c_int64, c_uint8, c_uint16, c_uint32, c_uint64, c_void_p
from typing import Any

import numpy as np

from gridwise.ir.types import BF16, BOOL, F8E4M3, F8E5M2, SCALARS, Scalar
from gridwise.lang.records import dataclass

CPU, CUDA, CUDA_HOST, CUDA_MANAGED = 1, 2, 3, 13
VERSION = (1, 1)
READ_ONLY = 1
_KINDS = {"int": 0, "uint": 1, "float": 2}
_CODES = {BF16: 4, BOOL: 6, F8E4M3: 10, F8E5M2: 12}  # of types that are not _KINDS[kind]


class _Device(Structure):
    _fields_ = [("type", c_int32), ("id", c_int32)]


class _DataType(Structure):
    _fields_ = [("code", c_uint8), ("bits", c_uint8), ("lanes", c_uint16)]


class _Tensor(Structure):
    _fields_ = [
        ("data", c_void_p),
        ("device", _Device),
        ("ndim", c_int32),
        ("dtype", _DataType),
        ("shape", POINTER(c_int64)),
        ("strides", POINTER(c_int64)),
        ("byte_offset", c_uint64),
    ]


class _Managed(Structure):
    _fields_ = [("tensor", _Tensor), ("context", c_void_p), ("deleter", c_void_p)]


class _Versioned(Structure):
    _fields_ = [
        ("major", c_uint32),
        ("minor", c_uint32),
        ("context", c_void_p),
        ("deleter", c_void_p),
        ("flags", c_uint64),
        ("tensor", _Tensor),
    ]


_DELETER = ctypes.CFUNCTYPE(None, c_void_p)
_OLD, _NEW = b"dltensor", b"dltensor_versioned"
_OLD_USED, _NEW_USED = b"used_dltensor", b"used_dltensor_versioned"

_api = ctypes.pythonapi
_new = _api.PyCapsule_New
_new.restype, _new.argtypes = ctypes.py_object, (c_void_p, ctypes.c_char_p, c_void_p)
_valid = ctypes.PYFUNCTYPE(ctypes.c_int, c_void_p, ctypes.c_char_p)(("PyCapsule_IsValid", _api))
_pointer = ctypes.PYFUNCTYPE(c_void_p, c_void_p, ctypes.c_char_p)(("PyCapsule_GetPointer", _api))
_rename = ctypes.PYFUNCTYPE(ctypes.c_int, c_void_p, ctypes.c_char_p)(("PyCapsule_SetName", _api))


def _code(t: Scalar) -> tuple[int, int]:
    """Type code and bits of an element type."""
    return _CODES.get(t, _KINDS.get(t.kind, 0)), 8 * t.size


_TYPES = {_code(t): t for t in SCALARS.values()}


# -- giving ------------------------------------------------------------------------------------------------

_serial = itertools.count(1)
_given: dict[int, Any] = {}  # what each structure that is out keeps alive: the structure, its shape, the array


def _done(address: int | None) -> None:
    """Called by the library that took a tensor, when it is done with it."""
    if address is not None:
        _given.pop(address, None)


_delete = _DELETER(_done)


def _collect(capsule: int) -> None:
    """A capsule that nobody took goes away: so does its tensor."""
    for name in (_NEW, _OLD):
        if _valid(capsule, name):
            _given.pop(_pointer(capsule, name), None)


_unused = ctypes.PYFUNCTYPE(None, c_void_p)(_collect)


def give(
    owner: Any,
    address: int,
    shape: tuple[int, ...],
    strides: tuple[int, ...],
    elem: Scalar,
    device: tuple[int, int],
    writable: bool,
    version: tuple[int, int] | None,
) -> Any:
    """A capsule for the memory of ``owner``, which lives until the other side lets go. Strides in elements.

    Raises BufferError for a read-only array that the other side could only take as writable.
    """
    new = version is not None and version[0] >= 1
    if not new and not writable:
        raise BufferError("this array is read-only, which the DLPack version asked for cannot say")
    axes = c_int64 * len(shape)
    extents, steps = axes(*shape), axes(*strides)
    managed = _Versioned() if new else _Managed()
    tensor = managed.tensor
    tensor.data, tensor.ndim = address, len(shape)
    tensor.device.type, tensor.device.id = device
    tensor.dtype.code, tensor.dtype.bits = _code(elem)
    tensor.dtype.lanes = 1
    tensor.shape = ctypes.cast(extents, POINTER(c_int64))
    tensor.strides = ctypes.cast(steps, POINTER(c_int64))
    managed.deleter = ctypes.cast(_delete, c_void_p)
    if isinstance(managed, _Versioned):
        managed.major, managed.minor = VERSION
        managed.flags = 0 if writable else READ_ONLY
    place = ctypes.addressof(managed)
    _given[place] = (managed, extents, steps, owner)
    return _new(place, _NEW if new else _OLD, ctypes.cast(_unused, c_void_p))


# -- taking ------------------------------------------------------------------------------------------------


class Holder:
    """Keeps another library's tensor alive; lets go when it is collected."""

    __slots__ = ("address", "deleter")

    def __init__(self, address: int, deleter: int | None):
        self.address, self.deleter = address, deleter

    def __del__(self) -> None:
        if self.deleter:
            _DELETER(self.deleter)(self.address)
            self.deleter = None


@dataclass
class Taken:
    """Another library's tensor: where it is, and what keeps it alive. Strides in elements."""

    address: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    elem: Scalar
    device: tuple[int, int]
    writable: bool
    holder: Holder


def take(source: Any, stream: int | None) -> Taken:
    """Take a tensor from an object with ``__dlpack__``; ``stream`` is the CUDA stream that it must be ready on.

    Raises BufferError if the other side will not share it, TypeError for an element type that is none of ours.
    """
    asked: dict[str, Any] = {} if stream is None else {"stream": stream}
    try:
        capsule = source.__dlpack__(max_version=VERSION, **asked)
    except TypeError:  # written before version 1
        capsule = source.__dlpack__(**asked)
    at = id(capsule)
    if _valid(at, _NEW):
        address = _pointer(at, _NEW)
        managed: Any = _Versioned.from_address(address)
        if managed.major > VERSION[0]:
            raise BufferError(f"DLPack {managed.major}.{managed.minor} is newer than what is understood here")
        writable = not managed.flags & READ_ONLY
        _rename(at, _NEW_USED)
    elif _valid(at, _OLD):
        address = _pointer(at, _OLD)
        managed, writable = _Managed.from_address(address), True
        _rename(at, _OLD_USED)
    else:
        raise BufferError(f"{type(source).__name__}.__dlpack__ gave no capsule that could be taken")
    holder = Holder(address, managed.deleter)
    tensor = managed.tensor
    elem = _TYPES.get((tensor.dtype.code, tensor.dtype.bits)) if tensor.dtype.lanes == 1 else None
    if elem is None:
        raise TypeError(f"element type (code {tensor.dtype.code}, {tensor.dtype.bits} bits) is not one of gridwise's")
    shape = tuple(tensor.shape[n] for n in range(tensor.ndim))
    if tensor.strides:
        strides = tuple(tensor.strides[n] for n in range(tensor.ndim))
    else:
        from .array import contiguous_strides

        strides = contiguous_strides(shape)
    device = (int(tensor.device.type), int(tensor.device.id))
    return Taken((tensor.data or 0) + tensor.byte_offset, shape, strides, elem, device, writable, holder)


def host_bytes(taken: Taken) -> tuple[np.ndarray, int]:
    """The bytes that a tensor in host memory spans, in place, and where among them its element 0 begins."""
    from .array import span

    low, high = span(taken.shape, taken.strides)
    size = taken.elem.size
    block = (ctypes.c_char * max((high - low) * size, 1)).from_address(taken.address + low * size)
    block.holder = taken.holder  # type: ignore[attr-defined]  # the block is the array's base: both live as long
    return np.frombuffer(memoryview(block), np.uint8)[: (high - low) * size], -low * size


def host_view(taken: Taken) -> np.ndarray:
    """A tensor in host memory as a NumPy array, in place."""
    memory, first = host_bytes(taken)
    size = taken.elem.size
    elements = memory.view(taken.elem.dtype)[first // size :]
    strides = tuple(s * size for s in taken.strides)
    return np.lib.stride_tricks.as_strided(elements, taken.shape, strides, writeable=taken.writable)
