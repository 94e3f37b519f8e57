"""``with sanitize() as session: ...``: run a program with every launch on a check device, and collect what it finds.

The command line (``gridwise sanitize FILE``) and the pytest plugin (``--gridwise-sanitize``) are made of this.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from ..registry import overriding
from .device import CheckDevice
from .findings import RAISED, Finding


@dataclass
class Session:
    """The device of a sanitized run; ``findings`` are those of its length."""

    device: CheckDevice
    leaks: list[Finding] = field(default_factory=list)  # filled at the end, if asked for

    @property
    def findings(self) -> list[Finding]:
        """Races, faults, uninitialised reads and the like in the order found, then leaks."""
        return [*self.device.findings, *self.leaks]

    def silent(self) -> list[Finding]:
        """The findings that no device raises as a fault by itself."""
        return [f for f in self.findings if f.kind not in RAISED]

    def report(self) -> str:
        """Every finding, and a last line that counts them."""
        found = self.findings
        if not found:
            return "sanitize: nothing found"
        kinds = Counter(f.kind for f in found)
        total = "1 finding" if len(found) == 1 else f"{len(found)} findings"
        summary = f"sanitize: {total}: " + ", ".join(f"{n} {kind}" for kind, n in sorted(kinds.items()))
        return "\n\n".join([*(f.report() for f in found), summary])


@contextmanager
def sanitize(
    *,
    seed: int = 0,
    subgroup_size: int | None = 32,
    coverage: bool = False,
    leaks: bool = False,
) -> Iterator[Session]:
    """Send every launch inside to a fresh check device that collects its findings.

    Whatever device the program asks for, it gets that one. ``seed``, ``subgroup_size`` and ``coverage`` as for
    ``CheckDevice``. ``leaks``: at the end, arrays that are still alive are findings too.
    """
    device = CheckDevice(True, seed, subgroup_size, collect=True, coverage=coverage)
    session = Session(device)
    with overriding(device):
        try:
            yield session
        finally:
            if leaks:
                session.leaks = device.leaks()
