"""The CUDA device under test: the GPU where there is one, else the simulated driver.

A simulated and a real driver cannot share a process: what the garbage collector frees would reach the wrong one.
On a machine with a GPU the tests of the simulated driver therefore run in a process of their own.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import pytest
from cuda_simulator import simulated

from gridwise.devices import cuda as devices

REAL = bool(devices.find()) and not os.environ.get("GRIDWISE_SIMULATE_CUDA")
collect_ignore = ["test_cuda_device.py", "test_cuda_native.py"] if REAL else ["test_cuda_simulated.py"]


@pytest.fixture(scope="module")
def cuda() -> Iterator[Any]:
    """``cuda:0``; on the simulated driver its kernels run on this CPU."""
    if REAL:
        from gridwise.devices import registry

        yield registry.device("cuda")
        return
    with simulated():
        yield devices.open("cuda")
