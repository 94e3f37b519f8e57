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
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]

LOCAL_BITS, BLOCK_BITS, EPOCH_BITS, SITE_BITS = 10, 22, 18, 12
BLOCK_SHIFT = LOCAL_BITS
EPOCH_SHIFT = BLOCK_SHIFT + BLOCK_BITS
SITE_SHIFT = EPOCH_SHIFT + EPOCH_BITS
LOCAL = np.int64((1 << LOCAL_BITS) - 1)
BLOCK = np.int64(((1 << BLOCK_BITS) - 1) << BLOCK_SHIFT)
EPOCH = np.int64(((1 << EPOCH_BITS) - 1) << EPOCH_SHIFT)
THREAD = LOCAL | BLOCK
SITES = 1 << SITE_BITS
VALID = np.int64(1 << 62)

Conflict = tuple[Array, Array]  # which of the accesses conflict, and the records that they conflict with


def pack(block: Array, local: Array) -> Array:
    """Records of threads, without epoch and access."""
    return np.asarray(VALID | (block & ((1 << BLOCK_BITS) - 1)) << BLOCK_SHIFT | local)


def epochs(passed: Array) -> Array:
    """The part of a record that tells barriers passed."""
    return np.asarray((passed & ((1 << EPOCH_BITS) - 1)) << EPOCH_SHIFT)


def site(record: int) -> int:
    return record >> SITE_SHIFT & (SITES - 1)


def conflicts(old: Array, me: Array) -> Array:
    """Where an old record (0 if none) is of another thread that nothing orders with me."""
    d = old ^ me
    bad: Array = (old != 0) & ((d & THREAD) != 0)
    if np.count_nonzero(bad):  # mostly each thread meets only itself
        bad &= ((d & BLOCK) != 0) | ((d & EPOCH) == 0)
    return bad


class Pair:
    """Two records an element, of accesses that do not conflict among themselves."""

    def __init__(self, size: int):
        self.first, self.second = np.zeros(size, np.int64), np.zeros(size, np.int64)

    def check(self, at: Array, me: Array, apart: bool = False) -> Iterator[Conflict]:
        """The accesses that conflict with a record; ``apart``: only those of another block do."""
        for slot in (self.first, self.second):
            old = slot[at]
            bad = (old != 0) & (((old ^ me) & BLOCK) != 0) if apart else conflicts(old, me)
            if np.count_nonzero(bad):
                yield bad, old

    def add(self, at: Array, me: Array) -> None:
        """Record accesses; several lanes may name one element."""
        first = self.first[at]
        d = first ^ me
        stale = (first == 0) | (((d & BLOCK) == 0) & ((d & EPOCH) != 0))
        if np.count_nonzero(stale):
            # A second record of that earlier interval may stay: it conflicts with nothing that the first does not.
            self.first[at[stale]] = me[stale]
            first = self.first[at]
            d = first ^ me
        other = (d & THREAD) != 0
        if not np.count_nonzero(other):
            return
        at, me, first = at[other], me[other], first[other]
        apart = ((first ^ me) & BLOCK) != 0
        second = self.second[at]
        settled = (second != 0) & (((second ^ first) & BLOCK) != 0)  # two different blocks: nothing tells more
        near = ~apart & ~settled
        if np.count_nonzero(near):
            self.second[at[near]] = me[near]
        far = apart & ~settled
        if np.count_nonzero(far):
            self.second[at[far]] = me[far]


class Shadow:
    """The records of one array; only those that its kernel's kinds of access can need."""

    def __init__(self, size: int, kinds: set[str]):
        self.writer = np.zeros(size, np.int64) if "write" in kinds else None
        self.readers = Pair(size) if "read" in kinds else None
        self.atomics = Pair(size) if kinds & {"atomic", "scoped"} and kinds != {"atomic"} else None
        self.scopeds = Pair(size) if "scoped" in kinds else None  # the atomics among them of block scope

    def record(self, kind: str, at: Array, me: Array) -> Iterator[Conflict]:
        """An operation by several lanes: yields what it conflicts with, then remembers it."""
        if kind == "scoped" and self.scopeds is None:
            kind = "atomic"
        records: Iterator[Conflict] = getattr(self, kind)(at, me)
        return records

    def read(self, at: Array, me: Array) -> Iterator[Conflict]:
        assert self.readers is not None
        yield from self._against_writer(at, me)
        if self.atomics is not None:
            yield from self.atomics.check(at, me)
        self.readers.add(at, me)

    def atomic(self, at: Array, me: Array) -> Iterator[Conflict]:
        if self.atomics is None:  # nothing but atomics touches this array
            return
        yield from self._against_writer(at, me)
        if self.readers is not None:
            yield from self.readers.check(at, me)
        if self.scopeds is not None:
            yield from self.scopeds.check(at, me, apart=True)
        self.atomics.add(at, me)

    def scoped(self, at: Array, me: Array) -> Iterator[Conflict]:
        """An atomic operation of block scope."""
        assert self.atomics is not None and self.scopeds is not None
        yield from self.atomic(at, me)
        self.scopeds.add(at, me)
        yield from self.atomics.check(at, me, apart=True)  # after adding: lanes of this very operation count

    def write(self, at: Array, me: Array) -> Iterator[Conflict]:
        assert self.writer is not None
        yield from self._against_writer(at, me)
        for pair in (self.readers, self.atomics):
            if pair is not None:
                yield from pair.check(at, me)
        self.writer[at] = me
        last = self.writer[at]
        lost = last != me  # another lane of this very operation wrote the same element
        if np.count_nonzero(lost):
            yield lost, last

    def _against_writer(self, at: Array, me: Array) -> Iterator[Conflict]:
        if self.writer is not None:
            old = self.writer[at]
            bad = conflicts(old, me)
            if np.count_nonzero(bad):
                yield bad, old
