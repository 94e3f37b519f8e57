"""Compiles a labelled program and asks the prover, step by step, so that tests can look at each step."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import numpy as np
from catalogue import Program

from gridwise.analysis.bounds import Check, settle_bounds
from gridwise.analysis.disjoint import ALL_RULES, LIMIT_MS, check_disjoint
from gridwise.analysis.uniformity import check_uniformity
from gridwise.devices.check import CheckDevice
from gridwise.ir import Kernel
from gridwise.ir.types import I32
from gridwise.lang.errors import GridwiseError
from gridwise.lang.target import Cap
from gridwise.launch.bind import positional
from gridwise.launch.grid import grid_size
from gridwise.passes.cse import cse
from gridwise.passes.simplify import simplify


@dataclass
class Verdict:
    """What the compiler says of one version. ``error`` is None if it is accepted; ``ms`` is the time of all proofs."""

    error: GridwiseError | None
    checks: list[Check]
    ms: float

    @property
    def word(self) -> str:
        return "accepted" if self.error is None else type(self.error).__name__

    @property
    def unsettled(self) -> list[Check]:
        """The accesses and divisions that are checked at launch or by the kernel."""
        return [c for c in self.checks if c.how in ("launch", "hoisted", "inplace")]


def compiled(program: Program, bad: bool) -> Kernel:
    """The typed IR of one version, specialised to its arguments, before any proof."""
    launcher = program.kernel.launcher
    given = tuple(program.args())
    bounds = launcher.bind(positional(program.kernel.name, launcher.specs, given, {"BAD": bad}))
    kernel: Kernel = launcher.frontend(program.kernel.block, I32, frozenset(Cap), bounds).kernel
    simplify(kernel)
    cse(kernel)
    return kernel


def judge(program: Program, bad: bool, rules: frozenset[str] = ALL_RULES, limit_ms: int = LIMIT_MS) -> Verdict:
    """Compile and prove one version."""
    start = time.perf_counter()
    checks: list[Check] = []
    try:
        kernel = compiled(program, bad)
        start = time.perf_counter()
        uniform = check_uniformity(kernel)
        check_disjoint(kernel, uniform, rules=rules, limit_ms=limit_ms)
        checks = settle_bounds(kernel, uniform)
    except GridwiseError as e:
        return Verdict(e, checks, (time.perf_counter() - start) * 1e3)
    return Verdict(None, checks, (time.perf_counter() - start) * 1e3)


def run(program: Program, bad: bool) -> CheckDevice:
    """Run one version on the check device, as accepted; faults are raised."""
    launcher = program.kernel.launcher
    device = CheckDevice()
    given = [device.array(a) if isinstance(a, np.ndarray) else a for a in program.args()]
    bounds = launcher.bind(positional(program.kernel.name, launcher.specs, tuple(given), {"BAD": bad}))
    kernel = launcher.frontend(program.kernel.block, I32, frozenset(Cap), bounds).kernel
    settle_bounds(kernel)
    blocks: Any = grid_size(program.kernel.name, program.grid, program.kernel.domain)
    device.launch(device.load(kernel), blocks, [a for b in bounds for a in b.args], device.default_stream)
    device.default_stream.synchronize()
    return device
