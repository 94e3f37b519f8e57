"""The stages of a compilation as text, for a device or, where the device is not here, for its target."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from gridwise.devices import registry
from gridwise.devices.base import Device
from gridwise.ir.printer import to_text

from .report import bad_value

if TYPE_CHECKING:
    from .kernel import Kernel

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
    device = registry.device(where) if isinstance(where, str) else where
    loaded = launcher.specialise(device, kernel.block, (1, 1, 1), bounds)
    if stage == "ir":
        return to_text(loaded.kernel)
    if stage == "simt":
        return to_text(loaded.fast.kernel)
    made = loaded.fast.stages.get(stage)
    if made is None:
        known = ", ".join(["python", "ir", "simt", *loaded.fast.stages])
        bad_value(f"{device.name} has no stage {stage!r}", f"its stages are {known}")
    return str(made() if callable(made) else made)


