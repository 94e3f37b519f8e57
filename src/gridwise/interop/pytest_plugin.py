"""``pytest --gridwise-sanitize``: every launch goes to the check device, and what it finds fails the test.

    --gridwise-sanitize         watch for races, uninitialised reads, divergent barriers and accesses out of bounds
    --gridwise-seed N           of the shuffled order of threads (0)
    --gridwise-subgroup N       threads a subgroup (32); 0 draws a size for each launch
    --gridwise-coverage         also write the lines of kernels that ran, for ``coverage combine``

Accesses out of bounds raise ``DeviceIndexError`` by themselves, as on every device; a test may expect that.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from gridwise.devices.check import Session

SESSION: pytest.StashKey[Session] = pytest.StashKey()
STACK: pytest.StashKey[ExitStack] = pytest.StashKey()


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("gridwise", "kernels of gridwise")
    group.addoption("--gridwise-sanitize", action="store_true", help="run kernels on the check device, watched")
    group.addoption("--gridwise-seed", type=int, default=0, metavar="N", help="seed of the shuffled thread order")
    group.addoption("--gridwise-subgroup", type=int, default=32, metavar="N", help="threads a subgroup; 0: at random")
    group.addoption("--gridwise-coverage", action="store_true", help="write line coverage of kernels for coverage.py")


def pytest_configure(config: pytest.Config) -> None:
    if not (config.getoption("--gridwise-sanitize") or config.getoption("--gridwise-coverage")):
        return
    from gridwise.devices.check import sanitize

    stack = config.stash[STACK] = ExitStack()
    config.stash[SESSION] = stack.enter_context(
        sanitize(
            seed=config.getoption("--gridwise-seed"),
            subgroup_size=config.getoption("--gridwise-subgroup") or None,
            coverage=config.getoption("--gridwise-coverage"),
        )
    )


def pytest_unconfigure(config: pytest.Config) -> None:
    stack = config.stash.get(STACK, None)
    if stack is not None:
        stack.close()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, Any, Any]:
    session = item.config.stash.get(SESSION, None)
    if session is None:
        return (yield)
    session.device.findings.clear()
    result = yield
    found = session.silent()
    if found:
        pytest.fail("\n\n".join(f.report() for f in found), pytrace=False)
    return result


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    session = config.stash.get(SESSION, None)
    if session is None:
        return
    device = session.device
    terminalreporter.write_line(f"gridwise: {device.launches} launches on the check device, seed of thread order "
                                f"{config.getoption('--gridwise-seed')}")
    if device.lines is not None:
        from gridwise.devices.check.coverage import write

        path = write(device.lines)
        lines = sum(map(len, device.lines.values()))
        terminalreporter.write_line(f"gridwise: {lines} lines of kernels ran, written to {path.name}")
