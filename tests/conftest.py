"""The ``device`` fixture: a test that takes it runs on every device of this machine.

GRIDWISE_EXPECT names the devices, and the libraries to work with, that must be there (``cpu,check,vulkan,torch``):
one that is missing fails the run before any test, so that nothing is ever skipped in silence.
"""

from __future__ import annotations

import importlib.util
import os

os.environ.setdefault("GRIDWISE_CACHE", "0")  # every test compiles what it runs; the tests of the cache turn it on

import pytest

import gridwise as gw
from gridwise.devices import registry

LIBRARIES = ("torch", "jax")
KINDS = ("check", "cpu", "vulkan", "cuda")


def _present() -> list[str]:
    found = registry.names()
    return [k for k in KINDS if any(n == k or n.startswith(f"{k}:") for n in found)]


PRESENT = _present()


def pytest_sessionstart(session: pytest.Session) -> None:
    expected = [n.strip() for n in os.environ.get("GRIDWISE_EXPECT", "").split(",") if n.strip()]
    missing = [n for n in expected if n not in PRESENT and not (n in LIBRARIES and importlib.util.find_spec(n))]
    if missing:
        why = []
        for name in missing:
            if name in LIBRARIES:
                why.append(f"{name} is not installed")
                continue
            try:
                gw.device(name)
            except gw.GridwiseError as e:
                why.append(str(e))
        raise pytest.UsageError("GRIDWISE_EXPECT names devices that are missing: " + "; ".join(why or missing))


def pytest_report_header(config: pytest.Config) -> str:
    libraries = [n for n in LIBRARIES if importlib.util.find_spec(n)]
    absent = [k for k in KINDS if k not in PRESENT] + [n for n in LIBRARIES if n not in libraries]
    found = f"devices: {', '.join(PRESENT)}" + (f"; libraries: {', '.join(libraries)}" if libraries else "")
    return found + (f" (not here: {', '.join(absent)})" if absent else "")


@pytest.fixture(params=PRESENT)
def device(request: pytest.FixtureRequest) -> gw.Device:
    """Each device present, in turn."""
    return gw.device(request.param)
