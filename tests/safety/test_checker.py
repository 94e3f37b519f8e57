"""Every labelled program, forced past the prover: the check device finds each fault, and none in the twins."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pytest
from catalogue import Program, load

from gridwise.devices.check import CheckDevice
from gridwise.ir.types import I32
from gridwise.lang.errors import KernelValueError
from gridwise.lang.target import Cap
from gridwise.launch.bind import positional
from gridwise.launch.grid import grid_size

PROGRAMS = list(load())
EXPECTED = {
    "race": {"race"},
    "divergence": {"divergence"},
    "fault": {"out-of-bounds", "zero-division", "assertion"},
}


def findings(program: Program, bad: bool, seed: int = 0) -> tuple[set[str], float]:
    """Kinds of what the check device says of one version, run without any proof; microseconds a thread."""
    kernel = program.kernel
    launcher = kernel.launcher
    device = CheckDevice(collect=True, seed=seed)
    given = [device.array(a) if isinstance(a, np.ndarray) else a for a in program.args()]
    bounds = launcher.bind(positional(kernel.name, launcher.specs, tuple(given), {"BAD": bad}))
    compiled = launcher.frontend(kernel.block, I32, frozenset(Cap), bounds)
    grid: Any = program.grid
    blocks = launcher.grid(bounds, kernel.block) if grid is None else grid_size(kernel.name, grid, kernel.domain)
    module = device.load(compiled.kernel)
    start = time.perf_counter()
    device.launch(module, blocks, [a for b in bounds for a in b.args], device.default_stream)
    took = time.perf_counter() - start
    return {f.kind for f in device.findings}, took * 1e6 / int(np.prod([*blocks, *compiled.kernel.block]))


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.name)
def test_fault_is_found(program: Program, request: pytest.FixtureRequest) -> None:
    try:
        found, _ = findings(program, bad=True)
    except KernelValueError:  # a constant index out of range: refused before there is anything to prove
        assert program.fault == "fault"
        return
    assert found & EXPECTED[program.fault]
    request.node.user_properties.append(("checker", program.name))


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.name)
def test_repaired_twin_is_clean(program: Program, request: pytest.FixtureRequest) -> None:
    found, cost = findings(program, bad=False)
    assert found == set()
    request.node.user_properties.append(("cost", (program.name, cost)))
