"""Conformance runs on every device that this machine has, a second driver of one kind included; see ``table.py``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from table import Results

import gridwise as gw
from gridwise.devices import registry


def _devices() -> list[str]:
    """Every device but further ones of the same hardware (cuda:1, ...)."""
    return [n for n in registry.names() if not n.startswith("cuda:") or n == "cuda:0"]


@pytest.fixture(params=_devices())
def device(request: pytest.FixtureRequest) -> gw.Device:
    """Each device present, in turn."""
    return gw.device(request.param)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--conformance-page", type=Path, help="write the conformance table to this page")


_reports: list[tuple[bool, dict[str, Any]]] = []  # of cases: whether the test passed, and what it recorded


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    given = dict(report.user_properties)
    if report.when == "call" and "case" in given:
        _reports.append((report.passed, given))


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    if not _reports:
        return
    results = Results()
    for passed, given in _reports:
        state = given["state"] if passed else "failed"
        where = given["device"], given["description"]
        results.add(given["case"], given["rule"], *where, state, given.get("why", ""))
    terminalreporter.section("conformance")
    for line in results.table():
        terminalreporter.write_line(line)
    page: Path | None = config.getoption("--conformance-page")
    if page is not None and results.failed:
        terminalreporter.write_line(f"{page} is not written: cases failed")
    elif page is not None:
        results.write(page)
        terminalreporter.write_line(f"written to {page}")
