"""The WebGPU device that these tests run on.

By default the best one present. GRIDWISE_WEBGPU names another, for example ``vulkan:swiftshader``. With the
``wgpu`` package installed a missing driver fails the tests; without the package they are skipped.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from gridwise.devices.webgpu import WebGpuDevice
from gridwise.devices.webgpu import open as open_webgpu

# The random programs of the check device's tests are run here too.
sys.path.append(str(Path(__file__).parents[1] / "check"))


@pytest.fixture(scope="session")
def gpu() -> WebGpuDevice:
    pytest.importorskip("wgpu")
    return open_webgpu(os.environ.get("GRIDWISE_WEBGPU", "webgpu"))
