"""How machine code starts a module on a device, where the device has such a way (``Device.entry``)."""

from __future__ import annotations

from gridwise.lang.records import dataclass


@dataclass(frozen=True)
class Entry:
    """A function with the signature of ``cuLaunchKernel``, and the numbers to give it.

    address   of the function; it returns 0 for success.
    function  its first argument; ``stream``: the stream's handle; ``shared``: bytes of shared memory.
    extra     the machine arguments after the kernel's own, packed, each aligned to its size.
    """

    address: int
    function: int
    stream: int
    shared: int
    extra: tuple[bytes, ...]
