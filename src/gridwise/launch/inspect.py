"""The stages of a compilation as text, for a device or, where the device is not here, for its target."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, NoReturn

from gridwise.devices import registry
from gridwise.devices.base import Device
from gridwise.ir.printer import to_text
from gridwise.lang.errors import DeviceUnavailableError

from .bind import Bound
from .offline import TARGETS, lowered
from .report import bad_value

if TYPE_CHECKING:
    from .kernel import Kernel

# The target to compile for where the device is not here.
OFFLINE = {"cuda": "ptx", "ptx": "ptx", "wgsl": "wgsl"} | dict.fromkeys(registry.WEBGPU, "wgsl")
# Which device has a stage, when none is named.
HOME = {"llvm": "cpu", "asm": "cpu", "ptx": "cuda", "sass": "cuda", "wgsl": "webgpu"}


def stage_text(
    kernel: Kernel,
    where: Device | str,
    stage: str,
    args: tuple[Any, ...] | None,
    choices: Mapping[str, Any] | None,
) -> str:
    """See ``Kernel.inspect``."""
    if stage == "python":
        return inspect.getsource(kernel.fn)
    launcher = kernel.launcher
    bounds = launcher.example(args, choices, default=True)
    assert bounds is not None
    try:
        device = registry.device(where) if isinstance(where, str) else where
    except DeviceUnavailableError:
        target = OFFLINE.get(where.split(":")[0]) if isinstance(where, str) else None
        if target is None:
            raise
        return _offline(kernel, target, stage, bounds)
    loaded = launcher.specialise(device, kernel.block, (1, 1, 1), bounds)
    if stage == "ir":
        return to_text(loaded.kernel)
    if stage == "simt":
        return to_text(loaded.fast.kernel)
    made = loaded.fast.stages.get(stage)
    if made is None:
        _no_stage(device.name, stage, loaded.fast.stages)
    return str(made() if callable(made) else made)


def _no_stage(where: str, stage: str, stages: Iterable[str]) -> NoReturn:
    known = ", ".join(dict.fromkeys(["python", "ir", "simt", *stages]))
    bad_value(f"{where} has no stage {stage!r}", f"its stages are {known}")


def _offline(kernel: Kernel, name: str, stage: str, bounds: list[Bound]) -> str:
    """The stages that need no device."""
    target = TARGETS[name]()
    analysed, ready = lowered(kernel, target, kernel.block, bounds)
    if stage == "ir":
        return to_text(analysed.kernel)
    if stage == "simt":
        return to_text(ready)
    stages = target.emit(ready)
    if stage not in stages:
        _no_stage(f"{name} without a device", stage, stages)
    return stages[stage]
