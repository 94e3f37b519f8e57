"""Who touched what: the memory beside a kernel's memory that finds data races, in whatever order threads ran.

Two accesses to an element race if at least one is a plain write, or one is plain and one atomic; different threads
make them; and no barrier orders them: the threads are of different blocks, or of one block between the same two
barriers. Two atomics of different blocks race if one of them has only the scope of its block.
One record an access is an integer:

    bits  0-9    the thread's place in its block
    bits 10-31   its block, modulo 2**22
    bits 32-49   barriers that its block had passed, modulo 2**18
    bits 50-61   which access of the kernel
    bit  62      one: the record is not empty

An element keeps its last writer, and two readers (and two atomic users), chosen so that they conflict with a later
write if any reader since would: two of different blocks if there are such, else two different threads of the
block's current interval. So the verdict is exact for each pair of kinds, and does not depend on order.

The records of an element lie side by side; machine code goes through them, a lane at a time (``recorder.py``): most
of the check device's time would be spent here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .recorder import (
    BLOCK_BITS,
    BLOCK_SHIFT,
    EPOCH_BITS,
    EPOCH_SHIFT,
    LOCAL,
    SITE_BITS,
    SITE_SHIFT,
    VALID,
    Layout,
    recorder,
)

Array = np.ndarray[Any, Any]
SITES = 1 << SITE_BITS
NONE = np.zeros((0, 2), np.int64)


def pack(block: Array, local: Array) -> Array:
    """Records of threads, without epoch and access."""
    return np.asarray(VALID | (block & ((1 << BLOCK_BITS) - 1)) << BLOCK_SHIFT | local)


def epochs(passed: Array) -> Array:
    """The part of a record that tells barriers passed."""
    return np.asarray((passed & ((1 << EPOCH_BITS) - 1)) << EPOCH_SHIFT)


def tag(number: int) -> int:
    """The part of a record that tells which access of the kernel."""
    return min(number, SITES - 1) << SITE_SHIFT


def sites(records: Array) -> Array:
    """Which access of the kernel made each record."""
    return np.asarray(records >> SITE_SHIFT & (SITES - 1))


def thread(record: int) -> tuple[int, int]:
    """(block, modulo 2**22, and place in the block)."""
    return record >> BLOCK_SHIFT & ((1 << BLOCK_BITS) - 1), record & LOCAL


class Shadow:
    """The records of one array of ``size`` elements; only those that its kernel's kinds of access can need."""

    def __init__(self, size: int, kinds: set[str]):
        groups = {
            "writer": "write" in kinds,
            "readers": "read" in kinds,
            "atomics": bool(kinds & {"atomic", "scoped"}),
            "scopeds": "scoped" in kinds,  # the atomics among them of block scope
        }
        self.layout = Layout(tuple(group for group, there in groups.items() if there))
        self.records = np.zeros((size, self.layout.width), np.int64)
        self.address = _address(self.records)
        self.code: dict[str, tuple[Callable[..., int], int]] = {}  # for each kind of access; how often it compares

    def record(
        self, kind: str, at: Array, who: Array, lanes: Array | None = None, tag: int = 0, scale: int = 1,
        first: int = 0,
    ) -> Array:
        """An operation by several lanes, which is remembered; what it conflicts with.

        Its access ``k`` is to the element ``at[k] * scale + first`` by ``who[lanes[k]] | tag``, or without lanes by
        ``who[k] | tag``. All arrays are contiguous int64. The result has a row for each conflict: ``k``, and the
        earlier record.
        """
        if kind not in self.code:
            own = "atomic" if kind == "scoped" and "scopeds" not in self.layout.groups else kind
            self.code[kind] = recorder(self.layout, own), len(self.layout.checks(own))
        code, checks = self.code[kind]
        found = np.empty((at.size * checks, 2), np.int64)
        count = code(
            _address(at), None if lanes is None else _address(lanes), _address(who), tag, scale, first, at.size,
            self.address, _address(found),
        )
        return found[:count] if count else NONE


def _address(a: Array) -> int:
    """As ``a.ctypes.data``, in a third of the time."""
    address: int = a.__array_interface__["data"][0]
    return address
