"""Bandwidth of the device's own copy, and of vecadd."""

from __future__ import annotations

import gridwise as gw

from .common import bandwidth, example, modules_of, row


def run(cuda: gw.Device) -> None:
    bandwidth(cuda, "cuda")
    module = next(iter(modules_of(example("vecadd").vecadd, cuda)), None)
    if module is not None:
        info = module.info
        row("vecadd as compiled", f"{info['registers']} registers", f"{info['blocks_per_multiprocessor']} blocks an SM")
