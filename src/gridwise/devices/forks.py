"""A GPU driver does not survive ``os.fork()``: in the child its devices say so, where it would hang or crash."""

from __future__ import annotations

import os
import weakref
from typing import Any, NoReturn

from gridwise.lang.errors import DeviceUnavailableError

from .base import Device

METHODS = ("allocate", "write", "read", "copy", "fill", "load", "launch", "stream", "synchronize")

_guarded: weakref.WeakSet[Device] = weakref.WeakSet()
_lost: set[str] = set()  # kinds whose driver was running when this process was forked


def guard(device: Device) -> None:
    """Note a device whose driver was started in this process."""
    _guarded.add(device)


def check(name: str, kind: str) -> None:
    """Refuse to open a device whose driver the parent process had started."""
    if lost(kind):
        _refuse(name)


def lost(kind: str) -> bool:
    """Whether this process can no longer use that kind of device."""
    return kind in _lost


def _refuse(name: str) -> NoReturn:
    raise DeviceUnavailableError(
        f"{name} was opened before this process was forked, and a GPU's driver does not survive that\n"
        "  help: use multiprocessing's 'spawn' start method, or open the device only in the child processes"
    )


def _in_child() -> None:
    for device in _guarded:
        _lost.add(device.kind)

        def refuse(*_: Any, name: str = device.name, **__: Any) -> NoReturn:
            _refuse(name)

        for method in METHODS:
            setattr(device, method, refuse)


if hasattr(os, "register_at_fork"):  # not on Windows, which cannot fork
    os.register_at_fork(after_in_child=_in_child)
