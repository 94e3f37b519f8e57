"""The same card through Vulkan."""

from __future__ import annotations

import importlib.util

import gridwise as gw

from .common import RECORD, bandwidth, row


def run(cuda: gw.Device) -> None:
    if importlib.util.find_spec("wgpu") is None:
        row("vulkan", "not run", "wgpu is not installed")
        return
    vulkan = gw.device("vulkan")
    row("vulkan", "found", vulkan.description)
    _, add = bandwidth(vulkan, "vulkan")
    copy = RECORD.get("copy, cuda", {}).get("gbps")
    if copy:
        row("vecadd vulkan / cuda copy", f"{add / copy:.3f}", "", ratio=add / copy)
