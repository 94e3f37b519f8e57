"""Every labelled program: the faulty version is stopped, the repaired one is accepted."""

from __future__ import annotations

import pytest
from catalogue import DIVERGENCE, FAULT, RACE, Program, load
from harness import judge, run

from gridwise.lang.errors import (
    DeviceFault,
    DivergenceError,
    KernelValueError,
    RaceError,
)

PROGRAMS = list(load())
REFUSAL = {RACE: RaceError, DIVERGENCE: DivergenceError}


def record(request: pytest.FixtureRequest, program: Program, bad: bool, verdict: str, ms: float) -> None:
    request.node.user_properties.append(("safety", {
        "name": program.name, "bad": bad, "verdict": verdict, "ms": ms, "why": program.refused}))


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.name)
def test_faulty(program: Program, request: pytest.FixtureRequest) -> None:
    verdict = judge(program, bad=True)
    if program.fault == FAULT and verdict.error is None:
        # What data decides is not refused; it must not run on silently either: the check stays, and it fails.
        assert verdict.unsettled
        with pytest.raises(DeviceFault):
            run(program, bad=True)
        record(request, program, True, "faults", verdict.ms)
        return
    record(request, program, True, verdict.word, verdict.ms)
    assert isinstance(verdict.error, REFUSAL.get(program.fault, KernelValueError)), verdict.error
    assert len(str(verdict.error).splitlines()) <= 6
    if isinstance(verdict.error, RaceError):
        assert "thread" in verdict.error.message and verdict.error.loc is not None


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.name)
def test_repaired(program: Program, request: pytest.FixtureRequest) -> None:
    verdict = judge(program, bad=False)
    record(request, program, False, verdict.word, verdict.ms)
    if program.refused:
        assert isinstance(verdict.error, RaceError), "it is proved now: take its label `refused` off"
        return
    assert verdict.error is None, verdict.error
    if program.fault == FAULT:
        run(program, bad=False)


def test_there_are_enough_and_few_are_refused() -> None:
    assert len(PROGRAMS) >= 200
    assert sum(bool(p.refused) for p in PROGRAMS) <= 0.05 * len(PROGRAMS)
    assert len({p.kind for p in PROGRAMS}) >= 200
