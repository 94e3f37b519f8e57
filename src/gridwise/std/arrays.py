"""What the library's functions take: arrays on a device, and NumPy arrays, alike."""

from __future__ import annotations

from typing import Any

import numpy as np

from gridwise.devices.array import Array
from gridwise.devices.base import Device
from gridwise.devices.registry import host_device

Like = Array | np.ndarray


def empty_like(a: Like, *shape: int) -> Any:
    """An uninitialised array of the same element type, where ``a`` is."""
    return np.empty(shape, a.dtype) if isinstance(a, np.ndarray) else a.device.empty(shape, a.elem)


def device_of(a: Like) -> Device:
    """Where a launch on ``a`` runs."""
    return host_device() if isinstance(a, np.ndarray) else a.device


def scalar_of(a: Like) -> Any:
    """The only element, as a NumPy scalar; waits for it."""
    host = a if isinstance(a, np.ndarray) else a.numpy()
    return host.reshape(-1)[0]
