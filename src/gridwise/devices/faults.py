"""How a failed check travels from a kernel to a Python exception (rule 7 of the language).

Every launch of a kernel that has fault sites gets a fault buffer of ``WORDS`` u32 words:

    word 0          the smallest linear global thread id that faulted (EMPTY if none)
    word 1          a lock, for targets that can spin
    words 2 to 7    the device's own
    from HEADER     SLOTS records of RECORD words:
                    thread, site, index low, index high, length low, length high, grid-x, grid-y

A thread records only its first fault: it lowers word 0 with an atomic minimum and, if it was the smaller,
fills record ``thread % SLOTS``. The host takes the record whose thread is word 0; ids above 2^32-2 saturate.
All words start as EMPTY except the lock, which starts 0.
"""

from __future__ import annotations

import numpy as np

from gridwise.ir.core import Kernel, Site
from gridwise.lang.errors import (
    DeviceAssertionError,
    DeviceFault,
    DeviceIndexError,
    DeviceZeroDivisionError,
)

EMPTY = 0xFFFF_FFFF
HEADER = 8
RECORD = 8
SLOTS = 32
WORDS = HEADER + SLOTS * RECORD


_FRESH = np.full(WORDS, EMPTY, np.uint32)
_FRESH[1] = 0


def fresh() -> np.ndarray:
    """The words of a fault buffer before a launch."""
    return _FRESH.copy()


def describe(site: Site, index: int | None, length: int | None) -> str:
    """The sentence about one fault, without kernel and thread."""
    if site.kind == "index":
        axis = f" on axis {site.axis}" if site.axis else ""
        if index is None:
            return f"index out of range for {site.detail}{axis}"
        return f"index {index} is out of range for {site.detail}{axis} of length {length}"
    if site.kind == "zero_division":
        return "integer division or modulo by zero"
    return f"assertion failed: {site.detail}" if site.detail else "assertion failed"


def fault(
    kernel: Kernel, site: Site, thread: tuple[int, int, int], index: int | None = None, length: int | None = None
) -> DeviceFault:
    """The exception for one fault."""
    kinds = {"index": DeviceIndexError, "zero_division": DeviceZeroDivisionError, "assertion": DeviceAssertionError}
    detail = describe(site, index, length)
    shown = thread[0] if kernel.domain == 1 else thread[: kernel.domain]
    message = f"{kernel.name}: {detail} (thread {shown})"
    return kinds[site.kind](message, kernel=kernel.name, loc=site.loc, thread=thread, detail=detail)


def decode(words: np.ndarray, kernel: Kernel, grid: tuple[int, int, int]) -> DeviceFault | None:
    """The exception that a fault buffer holds after a launch of ``grid`` blocks, or None."""
    thread = int(words[0])
    if thread == EMPTY:
        return None
    width = grid[0] * kernel.block[0]
    height = grid[1] * kernel.block[1]
    xyz = (thread % width, thread // width % height, thread // (width * height))
    record = words[HEADER + thread % SLOTS * RECORD :][:RECORD]
    if int(record[0]) != thread:  # a faster thread's record was overwritten: the place is lost, the fact is not
        site = kernel.sites[int(record[1])] if int(record[1]) < len(kernel.sites) else kernel.sites[0]
        return fault(kernel, site, xyz)
    index, length = record[2:6].view(np.int64)
    return fault(kernel, kernel.sites[int(record[1])], xyz, int(index), int(length))
