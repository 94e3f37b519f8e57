"""``gridwise.device(name)``: finding devices, one object a device and process."""

from __future__ import annotations

import ctypes
import importlib
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from types import ModuleType

from gridwise.lang.errors import DeviceUnavailableError

from . import forks
from .base import Device, Stream

WEBGPU = ("vulkan", "metal", "dx12", "gl", "webgpu")
MODULES = {"cpu": "cpu", "check": "check", "cuda": "cuda"} | dict.fromkeys(WEBGPU, "webgpu")
VARIABLE = "GRIDWISE_DEVICE"  # what "auto" means in a process, if set

_environment = os.environ.get(VARIABLE) or None  # read once: this is asked at every launch on NumPy arrays
_devices: dict[str, Device] = {}
_lock = threading.RLock()
_override: Device | None = None
_default: ContextVar[str | None] = ContextVar("gridwise_default_device", default=None)
# Not 0 once NumPy arrays may go to a device other than the CPU, somewhere in this process: launchers in machine code
# read it, and then leave the choice to Python.
elsewhere = ctypes.c_int32(_environment not in (None, "cpu"))


def _module(name: str) -> ModuleType:
    kind = name.split(":")[0]
    if kind not in MODULES:
        raise DeviceUnavailableError(
            f"{name!r} is no device\n  help: use one of auto, {', '.join(MODULES)}; cuda:1 for the second NVIDIA GPU"
        )
    return importlib.import_module(f"gridwise.devices.{MODULES[kind]}")


def _open(name: str) -> Device:
    with _lock:
        made = _devices.get(name)
        if made is None:
            forks.check(name, MODULES.get(name.split(":")[0], ""))
            opened: Device = _module(name).open(name)
            if opened.kind in ("cuda", "webgpu"):
                forks.guard(opened)
            # "cuda" and "cuda:0", "webgpu" and "vulkan" are one device: the device's own name decides.
            made = _devices.setdefault(opened.name, opened)
            _devices[name] = made
        return made


def _find(module: str) -> list[str]:
    if forks.lost(module):
        return []
    found: list[str] = importlib.import_module(f"gridwise.devices.{module}").find()
    return found


def chosen() -> str | None:
    """The name that stands for "auto" here: set by ``default_device``, else by the environment; or None."""
    return _default.get() or _environment


def device(name: str = "auto") -> Device:
    """The device called ``cpu``, ``cuda``, ``cuda:1``, ``vulkan``, ``metal``, ``dx12``, ``webgpu``, ``check``.

    ``auto`` is what ``default_device`` or the environment variable GRIDWISE_DEVICE says, else the fastest kind
    present: an NVIDIA GPU through its driver, then a GPU through WebGPU, then the CPU.
    Raises DeviceUnavailableError, which says what is missing.
    """
    if _override is not None:
        return _override
    made = _devices.get(name)
    if made is not None:
        return made
    if name != "auto":
        return _open(name)
    wanted = chosen()
    if wanted is not None and wanted != "auto":
        return device(wanted)
    for module in ("cuda", "webgpu"):
        for found in _find(module):
            opened = _open(found)
            if not opened.software:
                return opened
    return _open("cpu")


def names() -> list[str]:
    """Names of every device on this machine, the CPU first and the reference device last."""
    return [n for module in ("cpu", "cuda", "webgpu", "check") for n in _find(module)]


def all_devices() -> list[Device]:
    """Every device on this machine, opened; the CPU first and the reference device last."""
    return [_open(n) for n in names()]


@contextmanager
def default_device(name: str) -> Iterator[Device]:
    """Within the ``with``, ``device("auto")`` and launches on NumPy arrays use this device.

    NumPy arrays are used in place on the CPU; for another device they are copied in, and back out.
    """
    found = device(name)
    elsewhere.value |= found.kind != "cpu"
    token = _default.set(name)
    try:
        yield found
    finally:
        _default.reset(token)


@contextmanager
def overriding(device: Device) -> Iterator[None]:
    """Within the ``with``, in every thread, ``device(name)`` gives this device whatever the name.

    For tools that run a whole program on the reference device. Launches on NumPy arrays go to it too.
    """
    global _override
    elsewhere.value |= device.kind != "cpu"
    saved, _override = _override, device
    try:
        yield
    finally:
        _override = saved


class _Streams(threading.local):
    def __init__(self) -> None:
        self.by_device: dict[Device, Stream] = {}


_streams = _Streams()


def private_stream(device: Device) -> Stream:
    """This thread's own stream on a device: synchronous launches wait only for, and fault only by, their own work."""
    stream = _streams.by_device.get(device)
    if stream is None:
        stream = _streams.by_device[device] = device.stream()
    return stream


def host_device() -> Device:
    """The device that launches on NumPy arrays use: the CPU, unless a default device is set."""
    name = _default.get() or _environment
    if _override is None and name is None:
        return _devices.get("cpu") or _open("cpu")
    return _override or device(name or "cpu")
