"""Compiling for a target without a device of it: for ``inspect`` where the device is elsewhere, and for
``portable_to``, which judges by what every device of a kind has rather than by the one at hand.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from gridwise.ir.core import Kernel as Lowered
from gridwise.ir.types import I32
from gridwise.lang.errors import KernelError
from gridwise.lang.records import dataclass
from gridwise.lang.target import Cap

from .bind import Bound
from .grid import XYZ
from .specialise import Analysed

if TYPE_CHECKING:
    from .kernel import Kernel


@dataclass(frozen=True)
class Target:
    """What every device of a kind can do, and how its text is made: stage names to texts."""

    target: str
    devices: str
    caps: frozenset[Cap]
    threads: int  # a block
    emit: Callable[[Lowered], dict[str, str]]


@dataclass(frozen=True)
class Verdict:
    """Whether a kernel runs on every device of a target; if not, ``reason`` is the report that says why."""

    target: str
    devices: str
    ok: bool
    reason: str = ""

    def __bool__(self) -> bool:
        return self.ok


def _cpu() -> Target:
    from gridwise.targets.cpu.capabilities import CAPS, MAX_THREADS_PER_BLOCK, host
    from gridwise.targets.cpu.emit import emit

    return Target("cpu", "every CPU", CAPS, MAX_THREADS_PER_BLOCK, lambda k: {"llvm": emit(k, host()).text})


def _ptx() -> Target:
    from gridwise.targets.ptx.capabilities import OLDEST, capabilities
    from gridwise.targets.ptx.compile import compile
    from gridwise.targets.ptx.emit import emit

    def stages(kernel: Lowered) -> dict[str, str]:
        emitted = emit(kernel, OLDEST)
        optimised, ptx = compile(emitted.llvm, OLDEST)
        return {"llvm": emitted.llvm, "llvm-optimised": optimised, "ptx": ptx}

    devices = f"NVIDIA GPUs of compute capability {OLDEST[0]}.{OLDEST[1]} or later"
    return Target("ptx", devices, capabilities(OLDEST), 1024, stages)


def _wgsl() -> Target:
    from gridwise.targets.wgsl.capabilities import THREADS, caps, check
    from gridwise.targets.wgsl.emit import emit

    portable = caps(frozenset())

    def stages(kernel: Lowered) -> dict[str, str]:
        check(kernel, portable)
        return {"wgsl": emit(kernel).text}

    return Target("wgsl", "every WebGPU device", portable, THREADS, stages)


TARGETS: dict[str, Callable[[], Target]] = {"cpu": _cpu, "ptx": _ptx, "wgsl": _wgsl}


def lowered(kernel: Kernel, target: Target, block: XYZ, bounds: list[Bound]) -> tuple[Analysed, Lowered]:
    """The kernel analysed, and as ``target``'s emitter takes it, for the capabilities that all its devices have."""
    from gridwise.passes.pipeline import lower

    analysed = Analysed.of(kernel.launcher.frontend(block, I32, target.caps, bounds))
    return analysed, lower(analysed.kernel, target.target)


def portable_to(kernel: Kernel, bounds: list[Bound]) -> dict[str, Verdict]:
    """A verdict for each target, by its portable limits."""
    verdicts = {}
    threads = kernel.block[0] * kernel.block[1] * kernel.block[2]
    for name, make in TARGETS.items():
        target = make()
        reason = ""
        if threads > target.threads:
            reason = f"{kernel.name}: a block of {threads} threads, and {target.devices} run at most {target.threads}"
        else:
            try:
                target.emit(lowered(kernel, target, kernel.block, bounds)[1])
            except KernelError as e:
                reason = str(e)
        verdicts[name] = Verdict(name, target.devices, not reason, reason)
    return verdicts
