"""A kernel compiled with its proofs and one compiled with every check in place give the same results, bit for bit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from catalogue import Program, load

import gridwise as gw
from gridwise.analysis.bounds import settle_bounds
from gridwise.ir import Kernel
from gridwise.ir.types import I32
from gridwise.launch.bind import positional
from gridwise.launch.grid import grid_size
from gridwise.passes.cse import cse
from gridwise.passes.pipeline import lower
from gridwise.passes.simplify import simplify

PROGRAMS = [p for p in load() if p.fault != "divergence"]


def results(program: Program, proofs: bool) -> tuple[list[np.ndarray], int]:
    """What the arrays hold after a run on the CPU, and how many checks were compiled in."""
    device = gw.device("cpu")
    launcher = program.kernel.launcher
    given = [device.array(a) if isinstance(a, np.ndarray) else a for a in program.args()]
    bounds = launcher.bind(positional(program.kernel.name, launcher.specs, tuple(given), {"BAD": False}))
    kernel: Kernel = launcher.frontend(program.kernel.block, I32, device.caps, bounds).kernel
    simplify(kernel)
    cse(kernel)
    if proofs:
        settle_bounds(kernel)
    args = [a for b in bounds for a in b.args]
    lowered = lower(kernel, "cpu", trust_launch=False)
    blocks: Any = grid_size(program.kernel.name, program.grid, program.kernel.domain)
    device.launch(device.load(lowered), blocks, args, device.default_stream)
    device.default_stream.synchronize()
    return [a.numpy() for a in given if hasattr(a, "numpy")], sum(op.code == "fault" for op in lowered.walk())


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.name)
def test_same_results(program: Program) -> None:
    proved, few = results(program, proofs=True)
    checked, many = results(program, proofs=False)
    assert few <= many
    for a, b in zip(proved, checked, strict=True):
        assert a.tobytes() == b.tobytes()
