"""The CUDA device under test: the GPU where the environment expects one, else the simulated driver."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import pytest
from cuda_simulator import simulated

REAL = any(name.split(":")[0] == "cuda" for name in os.environ.get("GRIDWISE_EXPECT", "").split(","))


@pytest.fixture(scope="module")
def cuda() -> Iterator[Any]:
    """``cuda:0``; on the simulated driver its kernels run on this CPU."""
    from gridwise.devices import cuda as devices
    from gridwise.devices import registry

    if REAL:
        yield registry.device("cuda")
        return
    with simulated():
        yield devices.open("cuda")
