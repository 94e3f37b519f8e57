"""The programs of tests/safety, forced past the prover: the sanitizer finds each fault, and none in the twins."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gridwise.devices.check import CheckDevice
from gridwise.ir.types import I32
from gridwise.lang.errors import KernelValueError
from gridwise.lang.target import Cap
from gridwise.launch.bind import positional
from gridwise.launch.grid import grid_size

SAFETY = Path(__file__).parents[1] / "safety"
sys.path.insert(0, str(SAFETY))
from catalogue import Program, load  # noqa: E402


def findings(program: Program, bad: bool, seed: int = 0) -> set[str]:
    """Kinds of what the sanitizer says of one version, run without any proof."""
    kernel = program.kernel
    launcher = kernel.launcher
    device = CheckDevice(collect=True, seed=seed)
    given = [device.array(a) if isinstance(a, np.ndarray) else a for a in program.args()]
    bounds = launcher.bind(positional(kernel.name, launcher.specs, tuple(given), {"BAD": bad}))
    compiled = launcher.frontend(kernel.block, I32, frozenset(Cap), bounds)
    grid: Any = program.grid
    blocks = launcher.grid(bounds, kernel.block) if grid is None else grid_size(kernel.name, grid, kernel.domain)
    device.launch(device.load(compiled.kernel), blocks, [a for b in bounds for a in b.args], device.default_stream)
    return {f.kind for f in device.findings}


PROGRAMS = {p.name: p for p in load()}
sys.path.remove(str(SAFETY))
EXPECTED = {
    "race": {"race"},
    "divergence": {"divergence"},
    "fault": {"out-of-bounds", "zero-division", "assertion"},
}


@pytest.mark.parametrize("name", sorted(PROGRAMS))
def test_fault_is_found(name: str) -> None:
    program = PROGRAMS[name]
    try:
        found = findings(program, bad=True)
    except KernelValueError:  # a constant index out of range: refused before there is anything to prove
        assert program.fault == "fault"
        return
    assert found & EXPECTED[program.fault]


@pytest.mark.parametrize("name", sorted(PROGRAMS))
def test_repaired_twin_is_clean(name: str) -> None:
    assert findings(PROGRAMS[name], bad=False) == set()
