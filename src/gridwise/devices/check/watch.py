"""The sanitizer of one launch: told of every access by the interpreter, it asks the shadows and writes findings."""

from __future__ import annotations

from math import gcd, prod
from typing import TYPE_CHECKING, Any

import numpy as np

from gridwise.ir.core import Op, Site, Value
from gridwise.ir.types import ArrayType
from gridwise.lang.errors import Loc

from ..faults import describe
from . import shadow
from .findings import FAULTS, Finding, Findings, Thread
from .memory import Space
from .shadow import Shadow

if TYPE_CHECKING:
    from .access import Access
    from .frame import Frame, Launch
    from .interpret import Program

Array = np.ndarray[Any, Any]
VERBS = {
    "read": "read",
    "write": "written",
    "atomic": "updated atomically",
    "scoped": "updated atomically in the scope of its block",
}


class Watch:
    """Watches one launch of ``program``."""

    def __init__(self, program: Program, launch: Launch, findings: Findings):
        self.program, self.launch, self.findings = program, launch, findings
        self.accesses = program.access.accesses
        self.touched: dict[Value, list[Access]] = {}
        for a in self.accesses:
            self.touched.setdefault(a.op.operands[0], []).append(a)
        self.buffers = []
        for p, argument in zip(program.kernel.params, launch.arguments, strict=True):
            if isinstance(argument, Space):
                self.open(argument, p.value)
                if argument.buffer is not None and argument.buffer.written is not None:
                    argument.written = argument.buffer.written
                    self.buffers.append(argument.buffer)

    def open(self, space: Space, array: Value) -> None:
        """Give an array its shadow, if two threads could conflict on it."""
        accesses = self.touched.get(array, [])
        kinds = {a.kind for a in accesses}
        if space.type.space == "shared" and "scoped" in kinds:
            kinds.add("atomic")  # all threads that can reach it are of one block
            kinds.discard("scoped")
        if not kinds - {"read"} or kinds == {"atomic"}:
            return
        unit = 0
        for a in accesses:
            size = a.member.type.size
            unit = gcd(unit, size, (space.offset + a.member.offset) % size)
        space.unit = unit
        space.shadow = Shadow(space.data.size // unit + 1, kinds)

    def close(self) -> None:
        """After the launch."""
        for buffer in self.buffers:
            buffer.settle()

    # -- accesses ------------------------------------------------------------------------------------------------
    def access(
        self, f: Frame, a: Access, space: Space, at: Array, lanes: Array | None, indices: list[Array], shift: int = 0
    ) -> None:
        """The active lanes touch the elements at ``at``. ``shift``: elements past the index, for vectors."""
        count = f.n if lanes is None else lanes.size
        if count == 0:
            return
        if space.written is not None:
            self._initialised(f, a, space, at, lanes, indices, shift)
        if space.shadow is None:
            return
        if at.shape[0] == 1 and count > 1:
            # One element for all: the first and the last lane stand for the rest, since lanes are in the order
            # of blocks and so the two are of different blocks if any two are.
            ends = np.array([0, count - 1])
            lanes = ends if lanes is None else lanes[ends]
            at = np.repeat(at, 2)
        scale, start = a.member.type.size // space.unit, (space.offset + a.member.offset) % a.member.type.size
        tag = shadow.tag(a.number)
        found = space.shadow.record(a.kind, at, self.records(f), lanes, tag, scale, start // space.unit)
        if found.size:  # tell of one conflict with each access
            others, each = np.unique(shadow.sites(found[:, 1]), return_index=True)
            for other, (k, record) in zip(others.tolist(), found[each].tolist(), strict=True):
                self._race(f, a, self.accesses[other], k, record, lanes, indices, shift)

    def records(self, f: Frame) -> Array:
        """Each lane's record, made again after a barrier."""
        if f.records is None:
            if f.names is None:
                local = np.tile(np.arange(f.threads, dtype=np.int64), len(f.blocks))
                f.names = shadow.pack(np.repeat(f.blocks.astype(np.int64), f.threads), local)
            f.records = f.names | shadow.epochs(f.epoch)
        return f.records

    def _initialised(
        self, f: Frame, a: Access, space: Space, at: Array, lanes: Array | None, indices: list[Array], shift: int
    ) -> None:
        size = a.member.type.size
        start = (space.offset + a.member.offset) % size
        assert space.written is not None
        usable = (space.written.size - start) // size * size
        written = space.written[start : start + usable].view(f"u{size}")
        whole = np.iinfo(written.dtype).max
        if a.kind != "write":
            missing = written[at] != whole
            if missing.any():
                key = (self.program, "uninitialised", a.op)
                if not self.findings.seen(key):
                    lane = _lane(lanes, missing)
                    element = self._element(f, a, lane, indices, shift)
                    thread = f.thread(lane)
                    message = f"{self._kernel()}: {_shown(element, a)} is read by thread {self._show(thread)} "
                    message += "but was never written"
                    self._add(key, "uninitialised", message, a.op.loc, None, (thread,), element)
        if a.kind != "read":
            written[at] = whole

    def _race(
        self, f: Frame, a: Access, other: Access, k: int, record: int, lanes: Array | None, indices: list[Array],
        shift: int,
    ) -> None:
        """The ``k``-th lane of an access conflicts with the earlier ``record`` of another."""
        key = (self.program, "race", a.array, frozenset((id(a.op), id(other.op))))
        if self.findings.seen(key):
            return
        lane = k if lanes is None else int(lanes[k])
        element = self._element(f, a, lane, indices, shift)
        sides = [(a, f.thread(lane)), (other, self._thread(record))]
        sides.sort(key=lambda side: (_line(side[0].op.loc), side[0].number))
        (one, mine), (two, theirs) = sides
        where = "here too" if two.op.loc == one.op.loc else f"at line {_line(two.op.loc)}"
        message = (
            f"{self._kernel()}: race on {_shown(element, a)}: {VERBS[one.kind]} by thread {self._show(mine)} here, "
            f"{VERBS[two.kind]} by thread {self._show(theirs)} {where}"
        )
        self._add(key, "race", message, one.op.loc, two.op.loc, (mine, theirs), element)

    def fault(self, thread: Thread, site: Site, index: int | None, length: int | None) -> None:
        """A fault, which the device raises too."""
        key = (self.program, site)
        if self.findings.seen(key):
            return
        message = f"{self._kernel()}: {describe(site, index, length)} (thread {self._show(thread)})"
        element = None if index is None else (site.detail, (index,))
        self._add(key, FAULTS[site.kind], message, site.loc, None, (thread,), element)

    # -- cooperation and facts -----------------------------------------------------------------------------------
    def barrier(self, f: Frame, op: Op) -> None:
        """A barrier that some threads of a block reach and some do not. Threads that have returned do not."""
        f.records = None
        if f.mask is None:
            return
        rows = f.active().reshape(len(f.blocks), f.threads)
        broken = rows.any(axis=1) & ~rows.all(axis=1)
        if not broken.any():
            return
        key = (self.program, "divergence", op)
        if self.findings.seen(key):
            return
        row = int(np.argmax(broken))
        there, missing = int(np.argmax(rows[row])), int(np.argmin(rows[row]))
        base = row * f.threads
        threads = (f.thread(base + there), f.thread(base + missing))
        message = f"{self._kernel()}: divergent barrier: {int(rows[row].sum())} of {f.threads} threads of a block "
        message += f"arrive, thread {self._show(threads[0])} among them, thread {self._show(threads[1])} does not"
        self._add(key, "divergence", message, op.loc, None, threads, None)

    def subgroup(self, f: Frame, op: Op) -> None:
        """A subgroup operation that some threads of a subgroup reach and some do not."""
        if f.mask is None:
            return
        active = f.active()
        broken = f.subgroups().divergent(active)
        if not broken.any():
            return
        key = (self.program, "divergence", op)
        if self.findings.seen(key):
            return
        threads = (f.thread(int(np.argmax(broken & active))), f.thread(int(np.argmax(broken & ~active))))
        message = f"{self._kernel()}: divergent subgroup operation {op.attrs['fn']}: thread {self._show(threads[0])} "
        message += f"arrives, thread {self._show(threads[1])} of its subgroup does not"
        self._add(key, "divergence", message, op.loc, None, threads, None)

    def assumption(self, f: Frame, op: Op, bad: Array) -> None:
        """A fact that proofs rely on does not hold."""
        key = (self.program, "assumption", op)
        if not self.findings.seen(key):
            thread = f.thread(int(np.argmax(f.all(bad))))
            message = f"{self._kernel()}: a condition that this kernel relies on is false (thread {self._show(thread)})"
            self._add(key, "assumption", message, op.loc, None, (thread,), None)

    # -- words ---------------------------------------------------------------------------------------------------
    def _add(
        self,
        key: Any,
        kind: Any,
        message: str,
        loc: Loc | None,
        other: Loc | None,
        threads: tuple[Thread, ...],
        element: tuple[str, tuple[int, ...]] | None,
    ) -> None:
        self.findings.add(key, Finding(kind, message, loc, other, threads, element, self._kernel()))

    def _kernel(self) -> str:
        return self.program.kernel.name

    def _show(self, thread: Thread) -> str:
        domain = self.program.kernel.domain
        return str(thread[0]) if domain == 1 else str(thread[:domain])

    def _element(
        self, f: Frame, a: Access, lane: int, indices: list[Array], shift: int
    ) -> tuple[str, tuple[int, ...]]:
        at = [int(f.all(i)[lane]) for i in indices]
        at[-1] += shift
        return a.array, tuple(at)

    def _thread(self, record: int) -> Thread:
        """The global (x, y, z) of a record's thread; blocks past 2**22 are counted modulo."""
        block, grid = self.program.kernel.block, self.launch.grid
        b, local = shadow.thread(record)
        x, y, z = (
            b // prod(grid[:n]) % grid[n] * block[n] + local // prod(block[:n]) % block[n] for n in range(3)
        )
        return x, y, z


def _shown(element: tuple[str, tuple[int, ...]], a: Access) -> str:
    name, at = element
    t = a.op.operands[0].type
    assert isinstance(t, ArrayType)
    own, rest = at[: t.rank], list(at[t.rank :])
    text = f"{name}[{', '.join(map(str, own))}]"
    for f in a.op.attrs.get("field", ()):
        text += f".{f.name}" + (f"[{rest.pop(0)}]" if f.count and rest else "")
    return text


def _lane(lanes: Array | None, bad: Array) -> int:
    k = int(np.argmax(bad))
    return k if lanes is None else int(lanes[k])


def _line(loc: Loc | None) -> int:
    return loc.line if loc is not None else 0
