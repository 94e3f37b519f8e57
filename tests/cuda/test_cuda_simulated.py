"""On a machine with a GPU: the tests that simulate a driver, in a process that leaves the real one alone."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path


def test_the_simulated_driver_too() -> None:
    env = {**os.environ, "GRIDWISE_SIMULATE_CUDA": "1"}
    env.pop("GRIDWISE_EXPECT", None)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", str(Path(__file__).parent)],
        capture_output=True, text=True, timeout=600, env=env,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
