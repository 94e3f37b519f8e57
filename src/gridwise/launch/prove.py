"""Compile a kernel for the proofs alone: no device, no launch. ``gridwise check`` is made of this."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from gridwise.analysis.bounds import Check
from gridwise.ir.types import I32
from gridwise.lang.errors import GridwiseError
from gridwise.lang.records import dataclass, field
from gridwise.lang.target import Cap

if TYPE_CHECKING:
    from .kernel import Kernel


@dataclass
class Proved:
    """The verdict on one kernel: ``error`` is why it was refused, ``checks`` how each access was settled."""

    name: str
    seconds: float
    error: GridwiseError | None = None
    checks: list[Check] = field(default_factory=list)

    def counts(self) -> dict[str, int]:
        """How many accesses were proved, left to the launch, hoisted, checked in place, or waived."""
        found = Counter(c.how for c in self.checks)
        return {how: found[how] for how in ("proved", "launch", "hoisted", "inplace", "unsafe") if found[how]}


def prove(kernel: Kernel, choices: Mapping[str, Any] | None = None) -> Proved:
    """Prove a kernel safe for contiguous arrays of its annotated types, 32-bit indices and its own block.

    ``choices`` gives types to type variables and values to ``Const`` parameters, by name.
    """
    from gridwise.passes.pipeline import analyse

    start = time.perf_counter()
    checks: list[Check] = []
    try:
        launcher = kernel.launcher
        bounds = launcher.example(None, choices or {}, default=True)
        assert bounds is not None
        compiled = launcher.frontend(kernel.block, I32, frozenset(Cap), bounds)
        analyse(compiled.kernel, checks)
    except GridwiseError as e:
        return Proved(kernel.name, time.perf_counter() - start, e, checks)
    return Proved(kernel.name, time.perf_counter() - start, None, checks)
