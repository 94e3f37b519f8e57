"""What the sanitizer found, and how it is told."""

from __future__ import annotations

import weakref
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from gridwise.lang.errors import Loc, SanitizerError, report

if TYPE_CHECKING:
    from .device import CheckBuffer

Kind = Literal[
    "race", "uninitialised", "divergence", "assumption", "leak", "out-of-bounds", "zero-division", "assertion"
]
FAULTS: dict[str, Kind] = {"index": "out-of-bounds", "zero_division": "zero-division", "assertion": "assertion"}
RAISED = frozenset(FAULTS.values())  # findings that every device raises as faults
Thread = tuple[int, int, int]

HINTS = {
    "race": "order the two accesses by a barrier in one block, give each thread its own element, or use atomics",
    "uninitialised": "fill the array first: device.zeros(...), device.array(...), or a kernel that writes it",
    "divergence": "move it to where every thread of the block passes",
}


@dataclass
class Finding:
    """One thing wrong, at its first occurrence.

    kind      race, uninitialised, divergence, assumption, leak; or a fault: out-of-bounds, zero-division, assertion.
    message   the sentence.
    loc       the access; ``other_loc`` the other side of a race.
    threads   global (x, y, z) of the threads involved, in the order of the locations.
    element   (array's name, indices) where one element is concerned.
    count     occurrences: launches' operations, not threads.
    """

    kind: Kind
    message: str
    loc: Loc | None = None
    other_loc: Loc | None = None
    threads: tuple[Thread, ...] = ()
    element: tuple[str, tuple[int, ...]] | None = None
    kernel: str = ""
    count: int = 1
    key: Any = field(default=None, repr=False)

    def report(self) -> str:
        """At most six lines, in the form of every report of this package."""
        text = report(self.message, self.loc)
        if self.other_loc is not None and self.other_loc != self.loc:
            source = self.other_loc.source().strip()
            text += f"\n  and {self.other_loc}" + (f"   {source}" if source else "")
        hint = HINTS.get(self.kind)
        return text + (f"\n  help: {hint}" if hint else "")

    def __str__(self) -> str:
        return self.report()


def error(findings: list[Finding]) -> SanitizerError:
    """The exception for some findings: the report of the first, and how many more there are."""
    more = f"\n  and {len(findings) - 1} more" if len(findings) > 1 else ""
    return SanitizerError(findings[0].report() + more, findings)


class Findings(list[Finding]):
    """All findings of a device, each place once; and the memory it has given out."""

    def __init__(self, findings: Iterable[Finding] = ()):
        super().__init__(findings)
        self.known: dict[Any, Finding] = {}
        self.alive: weakref.WeakSet[CheckBuffer] = weakref.WeakSet()

    def seen(self, key: Any) -> bool:
        """Whether that place was reported before; counts the occurrence."""
        found = self.known.get(key)
        if found is not None:
            found.count += 1
        return found is not None

    def add(self, key: Any, finding: Finding) -> None:
        finding.key = key
        self.known[key] = finding
        self.append(finding)

    def clear(self) -> None:
        super().clear()
        self.known.clear()

    # -- leaks -------------------------------------------------------------------------------------------------
    def allocated(self, buffer: CheckBuffer) -> None:
        self.alive.add(buffer)

    def leaks(self, device: str) -> list[Finding]:
        places: dict[Loc | None, list[CheckBuffer]] = {}
        for buffer in self.alive:
            if not buffer.freed:
                places.setdefault(buffer.made_at, []).append(buffer)
        found = []
        for loc, buffers in sorted(places.items(), key=lambda p: str(p[0])):
            total = sum(b.nbytes for b in buffers)
            arrays = "1 array is" if len(buffers) == 1 else f"{len(buffers)} arrays are"
            message = f"{arrays} still alive on {device}: {total} bytes, allocated here"
            found.append(Finding("leak", message, loc, count=len(buffers)))
        return found
