"""The CUDA device under test: the GPU where there is one, else the simulated driver.

A simulated and a real driver cannot share a process, since what the garbage collector frees would reach the wrong
one. On a machine with a GPU the tests that are about the simulated driver's answers are therefore not collected;
those of what kernels compute run on the GPU.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from cuda_simulator import simulated

from gridwise.devices import cuda as devices

REAL = bool(devices.find())
collect_ignore = ["test_cuda_device.py", "test_cuda_native.py"] if REAL else []


def pytest_report_header(config: pytest.Config) -> str:
    return "cuda: the GPU (tests of the simulated driver are for machines without one)" if REAL else "cuda: simulated"


@pytest.fixture(scope="module")
def cuda() -> Iterator[Any]:
    """``cuda:0``; on the simulated driver its kernels run on this CPU."""
    if REAL:
        from gridwise.devices import registry

        yield registry.device("cuda")
        return
    with simulated():
        yield devices.open("cuda")
