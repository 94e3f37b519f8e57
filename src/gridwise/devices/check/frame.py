"""What is alive while a batch of blocks runs: lane values, the active mask, identities, and the launch's records.

A value is an array of one element a lane, or of one element for all lanes where it is uniform over the batch;
NumPy's broadcasting joins the two. Lanes are block-major: lane ``b * threads + t`` is thread ``t`` of the batch's
``b``-th block.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from gridwise.ir.core import Kernel, Site
from gridwise.lang.errors import DeviceFault

from ..faults import fault
from .subgroups import Subgroups

if TYPE_CHECKING:
    from .watch import Watch

Array = np.ndarray[Any, Any]


class Nothing:
    """The mask of no lane at all."""


NOTHING: Final = Nothing()
Mask = Array | None | Nothing  # None: every lane


def union(a: Mask, b: Mask) -> Mask:
    """Lanes in either mask."""
    if a is None or b is None:
        return None
    if isinstance(a, Nothing):
        return b
    if isinstance(b, Nothing):
        return a
    both: Array = a | b
    return None if np.count_nonzero(both) == both.size else both


@dataclass
class Record:
    """The fault to raise so far: of the smallest thread that faulted, its first."""

    thread: int
    xyz: tuple[int, int, int]
    site: Site
    index: int | None
    length: int | None


@dataclass
class Launch:
    """One launch: what its batches share."""

    kernel: Kernel
    grid: tuple[int, int, int]
    arguments: list[Any]  # one a parameter: a Space, or an array of one element
    shared_bytes: int = 0
    subgroup_size: int = 32
    watch: Watch | None = None
    lines: dict[str, set[int]] | None = None  # coverage: file to lines that ran
    random: np.random.Generator | None = None  # shuffles the order of threads
    first: Record | None = None
    printed: list[tuple[int, int, str]] = field(default_factory=list)  # thread, order, line

    def linear(self, xyz: tuple[Array, Array, Array]) -> Array:
        width = self.grid[0] * self.kernel.block[0]
        height = self.grid[1] * self.kernel.block[1]
        return np.asarray(xyz[0] + width * (xyz[1] + height * xyz[2]))

    def fault(self) -> DeviceFault | None:
        if self.first is None:
            return None
        r = self.first
        return fault(self.kernel, r.site, r.xyz, r.index, r.length)

    def flush(self) -> None:
        """Write what the kernel printed, in the order of threads, each thread's lines in program order."""
        if self.printed:
            self.printed.sort(key=lambda p: p[:2])
            sys.stdout.write("".join(line + "\n" for _, _, line in self.printed))
            self.printed.clear()


class Loop:
    """Lanes that left the current iteration, and the loop."""

    __slots__ = ("broken", "continued")

    def __init__(self) -> None:
        self.broken: Mask = NOTHING
        self.continued: Mask = NOTHING


class Frame:
    """A batch of blocks in lockstep."""

    def __init__(self, launch: Launch, blocks: Array, size: int):
        self.launch = launch
        self.blocks = blocks  # linear block ids
        self.threads = int(np.prod(launch.kernel.block))
        self.n = len(blocks) * self.threads
        self.v: list[Any] = [None] * size
        self.mask: Mask = None
        self.loops: list[Loop] = []
        self.left: dict[int, Mask] = {}
        self.epoch = np.zeros(1, np.int64)  # barriers passed, a lane
        self.names: Array | None = None  # the watch's records of the threads, and with the epoch until the next barrier
        self.records: Array | None = None
        self._identity: dict[tuple[str, int], Array] = {}
        self._linear: Array | None = None
        self._lanes: tuple[Mask, Array] | None = None
        self._subgroups: Subgroups | None = None
        self._owner: Array | None = None

    # -- lanes ---------------------------------------------------------------------------------------------
    def all(self, value: Array) -> Array:
        """One element a lane."""
        return np.broadcast_to(value, (self.n, *value.shape[1:])) if value.shape[0] == 1 else value

    def active(self) -> Array:
        """The mask as an array."""
        if self.mask is None:
            return np.ones(self.n, np.bool_)
        assert not isinstance(self.mask, Nothing)
        return self.mask

    def lanes(self) -> Array:
        """The numbers of the active lanes; accesses under one mask share the work."""
        if self._lanes is None or self._lanes[0] is not self.mask:
            self._lanes = (self.mask, np.flatnonzero(self.active()))
        return self._lanes[1]

    def owner(self) -> Array:
        """The position in the batch of each lane's block."""
        if self._owner is None:
            self._owner = np.repeat(np.arange(len(self.blocks)), self.threads)
        return self._owner

    def subgroups(self) -> Subgroups:
        if self._subgroups is None:
            self._subgroups = Subgroups(len(self.blocks), self.threads, self.launch.subgroup_size)
        return self._subgroups

    # -- identities ----------------------------------------------------------------------------------------
    def identity(self, code: str, axis: int) -> Array:
        """thread_idx, block_idx or global_idx along an axis, in int64."""
        key = (code, axis)
        if key not in self._identity:
            self._identity[key] = self._compute(code, axis)
        return self._identity[key]

    def _compute(self, code: str, axis: int) -> Array:
        block, grid = self.launch.kernel.block, self.launch.grid
        if code == "thread_idx":
            if block[axis] == 1:
                return np.zeros(1, np.int64)
            t = np.arange(self.threads)
            return np.tile(t // int(np.prod(block[:axis])) % block[axis], len(self.blocks))
        if code == "block_idx":
            at = self.blocks // int(np.prod(grid[:axis])) % grid[axis]
            return at[:1] if len(at) == 1 or grid[axis] == 1 else np.repeat(at, self.threads)
        return self.identity("block_idx", axis) * block[axis] + self.identity("thread_idx", axis)

    def linear(self) -> Array:
        """The linear global thread id of each lane."""
        if self._linear is None:
            x, y, z = (self.all(self.identity("global_idx", axis)) for axis in range(3))
            self._linear = self.launch.linear((x, y, z))
        return self._linear

    def thread(self, lane: int) -> tuple[int, int, int]:
        """The global (x, y, z) of a lane."""
        x, y, z = (int(self.all(self.identity("global_idx", axis))[lane]) for axis in range(3))
        return x, y, z

    # -- records -------------------------------------------------------------------------------------------
    def fault(self, bad: Array, site: Site, index: Array | None = None, length: Array | int | None = None) -> None:
        """Record a fault of the lanes ``bad``: the launch keeps the first of the smallest thread."""
        lanes = np.flatnonzero(self.all(bad))
        ids = self.linear()[lanes]
        lane = int(lanes[np.argmin(ids)])
        thread = int(self.linear()[lane])
        at = None if index is None else int(self.all(index)[lane])
        of = length if length is None or isinstance(length, int) else int(self.all(length)[lane])
        if self.launch.first is None or thread < self.launch.first.thread:
            self.launch.first = Record(thread, self.thread(lane), site, at, of)
        if self.launch.watch is not None:
            self.launch.watch.fault(self.thread(lane), site, at, of)


class Elements(Frame):
    """The elements of every lane's tile as lanes of their own, for a scalar function inside a tile kernel.

    ``outer``: values of the tile kernel, one a lane, that the function refers to.
    """

    def __init__(self, tiles: Frame, each: int, outer: list[int]):
        super().__init__(tiles.launch, tiles.blocks, 0)
        self.tiles, self.each = tiles, each
        self.threads, self.n = tiles.threads * each, tiles.n * each
        self.v = list(tiles.v)
        for n in outer:
            if tiles.v[n] is not None and tiles.v[n].shape[0] > 1:
                self.v[n] = np.repeat(tiles.v[n], each)
        self.mask = None if tiles.mask is None else np.repeat(tiles.active(), each)

    def linear(self) -> Array:
        return np.repeat(self.tiles.linear(), self.each)

    def identity(self, code: str, axis: int) -> Array:
        value = self.tiles.identity(code, axis)
        return value if value.shape[0] == 1 else np.repeat(value, self.each)
