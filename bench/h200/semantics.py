"""Every operation of the IR on every type, against the reference device, on the GPU itself."""

from __future__ import annotations

import gridwise as gw

from .common import pytest_section


def run(cuda: gw.Device) -> None:
    pytest_section("semantics", ["tests/cuda"], 400)
