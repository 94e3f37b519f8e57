"""Random programs mean the same on every device as on the check device, bit for bit.

GRIDWISE_FUZZ is the number of programs (300; CI takes 2,000, nightly 20,000), GRIDWISE_SEED where they start.
A failure prints the smallest program found that still fails, with the thread's arguments and both results.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from cooperate import CooperativeWriter
from elementwise import ElementwiseWriter
from execute import Failure, compare, compare_cooperative, compare_elementwise, one, shrink, source_of
from generate import FLOATS, PORTABLE, Writer

import gridwise as gw
from gridwise.devices import registry
from gridwise.devices.check import CheckDevice
from gridwise.ir import Builder, Kernel, Op
from gridwise.ir.rewrite import KEEP, rewrite
from gridwise.lang.target import Cap
from gridwise.passes import pipeline

COUNT = int(os.environ.get("GRIDWISE_FUZZ", "2000" if os.environ.get("CI") else "300"))
SEED = int(os.environ.get("GRIDWISE_SEED", "0"))
BATCH = 20  # programs a kernel
GROUP = 10  # elementwise and cooperative kernels a test; one of each for ten programs


@pytest.fixture(scope="module")
def oracle() -> CheckDevice:
    return CheckDevice(sanitize=False)


@pytest.fixture(scope="module")
def devices() -> list[gw.Device]:
    """Every device present but the check device."""
    names = [n for n in registry.names() if n.split(":")[0] in ("cpu", "vulkan", "cuda")]
    return [gw.device(n) for n in names]


def reports(failures: list[Failure]) -> str:
    return "\n\n".join(f.report() for f in failures)


def floats_of(devices: list[gw.Device]) -> tuple[str, ...]:
    """The float types that all of them have."""
    everywhere = all(c in d.caps for d in devices for c in (Cap.F64, Cap.F16))
    return FLOATS if everywhere else PORTABLE


@pytest.mark.parametrize("start", range(SEED, SEED + COUNT, BATCH))
def test_programs_agree(start: int, devices: list[gw.Device], oracle: CheckDevice) -> None:
    seeds = range(start, min(start + BATCH, SEED + COUNT))
    programs = [Writer(seed, floats=floats_of(devices)).program() for seed in seeds]
    failures = compare(programs, devices, oracle, start)
    assert not failures, reports(failures)


@pytest.mark.parametrize("start", range(SEED, SEED + max(1, COUNT // 10), GROUP))
def test_elementwise_kernels_agree(start: int, devices: list[gw.Device], oracle: CheckDevice) -> None:
    for seed in range(start, min(start + GROUP, SEED + max(1, COUNT // 10))):
        case = ElementwiseWriter(seed, floats=floats_of(devices)).elementwise()
        failures = compare_elementwise(case, devices, oracle)
        assert not failures, reports(failures)


UNPROVED: list[Failure] = []


@pytest.mark.parametrize("start", range(SEED, SEED + max(1, COUNT // 10), GROUP))
def test_cooperative_kernels_agree(start: int, devices: list[gw.Device], oracle: CheckDevice) -> None:
    for seed in range(start, min(start + GROUP, SEED + max(1, COUNT // 10))):
        failures = compare_cooperative(CooperativeWriter(seed).cooperative(), devices, oracle)
        unproved = [f for f in failures if f.what.startswith("unproved")]
        UNPROVED.extend(unproved)
        wrong = [f for f in failures if f not in unproved]
        assert not wrong, reports(wrong)


def test_few_safe_kernels_are_refused() -> None:
    """All of these kernels are free of races; those that the prover cannot see through are counted."""
    assert len(UNPROVED) <= max(2, COUNT // 10 // 10), reports(UNPROVED[:3])


@pytest.fixture
def broken_shift(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A compiler for the CPU that shifts to the right by one bit too few."""
    honest = pipeline.lower

    def visit(op: Op, b: Builder) -> object:
        if op.code != "shr" or op.result is None:
            return KEEP
        x, n = op.operands
        one_less = b.binary("sub", n, b.const(1, n.type))  # type: ignore[arg-type]
        return b.select(b.binary("eq", n, b.const(0, n.type)), x, b.binary("shr", x, one_less))  # type: ignore[arg-type]

    def lower(kernel: Kernel, target: str, **options: bool) -> Kernel:
        lowered = honest(kernel, target, **options)
        if target == "cpu":
            rewrite(lowered, visit)
        return lowered

    monkeypatch.setattr(pipeline, "lower", lower)
    yield


@pytest.mark.usefixtures("broken_shift")
def test_a_wrong_operation_is_found_and_shrunk(oracle: CheckDevice) -> None:
    programs = [Writer(seed).program() for seed in range(BATCH)]
    failures = compare(programs, [gw.device("cpu")], oracle, 0)
    assert failures, "a compiler with a wrong shift passed"
    for failure in failures:
        source = failure.program.source()
        assert ">>" in source or "spread" in source, source
        assert "check gives" in failure.what and len(source) < 400, failure.report()


def test_shrinking_keeps_what_fails() -> None:
    """With a stand-in for a failure (the program has a power), what is left is hardly more than a power."""
    program = next(p for s in range(100) if "**" in (p := Writer(s).program()).source() and p.size() > 500)
    small, _ = shrink(program, lambda p: "wrong" if "**" in p.source() else None, attempts=2000)
    assert "**" in small.source() and small.size() < 250, small.source()


def test_programs_come_from_their_seed_alone(oracle: CheckDevice) -> None:
    again = [source_of([Writer(7).program()]) for _ in range(2)]
    assert again[0] == again[1]
    assert one(Writer(7).program(), oracle, oracle, 7) is None
