"""Every case of the conformance table on every device. ``make conformance`` writes the table."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from pathlib import Path

import pytest
from cases import CASES, Case

import gridwise as gw

for file in sorted([*Path(__file__).parent.glob("rules_*.py"), *Path(__file__).parent.glob("traps_*.py")]):
    importlib.import_module(file.stem)


def label(device: gw.Device) -> str:
    """A column of the table: the device's name, with its hardware where one name stands for many."""
    if device.kind in ("cpu", "check"):
        return device.name
    return f"{device.name.split(':')[0]}: {device.description.split(',')[0].split('(')[0].strip()}"


@pytest.mark.parametrize("case", CASES, ids=str)
def test_case(case: Case, device: gw.Device, record_property: Callable[[str, object], None]) -> None:
    record_property("case", case.name)
    record_property("rule", case.rule)
    record_property("device", label(device))
    record_property("description", device.description)
    try:
        case.run(device)
    except gw.UnsupportedError as e:
        lacking = [c for c in case.needs if c not in device.caps]
        assert lacking, f"refused although {device.name} has all that it needs: {e}"
        assert e.loc is not None, f"a refusal that names no line: {e}"
        record_property("state", "refused")
        record_property("why", str(e).splitlines()[0])
        return
    record_property("state", "passed")
