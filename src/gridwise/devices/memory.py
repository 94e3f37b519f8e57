"""Memory of a device, and an array argument as a launch sees it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gridwise.lang.records import dataclass

if TYPE_CHECKING:
    from .base import Device, Stream


class Buffer:
    """Device memory: ``handle`` is the device's own object, ``address`` a raw pointer where it has one.

    The device subclass frees it when the last reference goes, after the work of ``writer`` and ``readers``.
    """

    __slots__ = ("__weakref__", "address", "freed", "handle", "nbytes", "owner", "readers", "writer")

    def __init__(self, handle: Any, nbytes: int, address: int = 0, owner: Any = None):
        self.handle, self.nbytes, self.address, self.owner = handle, nbytes, address, owner
        self.freed = False
        self.writer: Stream | None = None  # the stream of the last write, and of the reads since: see order.py
        self.readers: tuple[Stream, ...] = ()

    def release(self, device: Device) -> None:
        """Give the memory back to its device; work queued on the default stream still has it."""
        device.free(self)
        self.freed = True


@dataclass
class ArrayArg:
    """An array argument, bound: element 0 lies ``offset`` bytes into ``buffer``; strides in elements."""

    buffer: Buffer
    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
