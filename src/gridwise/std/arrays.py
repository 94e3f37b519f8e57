"""What the library's functions take: arrays on a device, and NumPy arrays, alike."""

from __future__ import annotations

from typing import Any

import numpy as np

from gridwise.devices import recording
from gridwise.devices.array import Array
from gridwise.devices.base import Device
from gridwise.devices.cpu import CpuDevice
from gridwise.devices.registry import host_device
from gridwise.ir.types import Scalar

Like = Array | np.ndarray


def empty_like(a: Like, *shape: int) -> Any:
    """An uninitialised array of the same element type, where ``a`` is."""
    return np.empty(shape, a.dtype) if isinstance(a, np.ndarray) else a.device.empty(shape, a.elem)


def device_of(a: Like) -> Device:
    """Where a launch on ``a`` runs."""
    return host_device() if isinstance(a, np.ndarray) else a.device


def on_cores(a: Like) -> np.ndarray | None:
    """``a`` in place as NumPy's, if it has one axis and launches on it run on the CPU at once; else None."""
    host = host_device()
    if not isinstance(host, CpuDevice) or recording.active.value or len(a.shape) != 1 or a.shape[0] >= 1 << 30:
        return None
    if isinstance(a, np.ndarray):
        return a
    if a.device is not host or not isinstance(a.elem, Scalar) or a.trait.strided or not a.writable:
        return None
    return np.asarray(a.buffer.handle[a.offset : a.offset + a.nbytes].view(a.dtype))


def scalar_of(a: Like) -> Any:
    """The only element, as a NumPy scalar; waits for it."""
    host = a if isinstance(a, np.ndarray) else a.numpy()
    return host.reshape(-1)[0]
