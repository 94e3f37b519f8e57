"""The conformance tests, with this GPU among the devices."""

from __future__ import annotations

import gridwise as gw

from .common import pytest_section


def run(cuda: gw.Device) -> None:
    pytest_section("conformance", ["tests/conformance"], 450)
