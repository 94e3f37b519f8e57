"""Random programs as plain Python: NumPy's arithmetic and Python's control flow give the check device's integers.

The plain run shares nothing with the compiler but the names of the language, so it checks the frontend itself.
"""

from __future__ import annotations

import numpy as np
import pytest
from execute import module, source_of
from generate import FLOATS, Writer

import gridwise as gw
from gridwise.devices.check import CheckDevice

THREADS = 12


@pytest.mark.parametrize("seed", range(40))
def test_plain_and_compiled_programs_agree(seed: int) -> None:
    rng = np.random.default_rng(seed)
    small = THREADS // 2
    ints = rng.integers(-(2**31), 2**31, (2, THREADS)).astype(np.int32)
    longs = rng.integers(-(2**63), 2**63 - 1, (2, THREADS))
    ints[:, :small], longs[:, :small] = rng.integers(-5, 6, (2, small)), rng.integers(-5, 6, (2, small))
    floats = rng.standard_normal((2, THREADS)).astype(np.float32)
    plain = [np.zeros((1, THREADS), t) for t in (np.int32, np.int64, np.float32)]
    device = CheckDevice(sanitize=False)
    with module(source_of([Writer(seed, floats=FLOATS).program()])) as made:
        made.run.python(ints, longs, floats, *plain)
        arrays = [device.array(a) for a in (ints, longs, floats, *(np.zeros_like(o) for o in plain))]
        try:
            made.run(*arrays, grid=1)
            device.synchronize()
        except gw.DeviceFault:
            return  # a division by zero, which NumPy lets pass
    for wanted, got in zip(plain[:2], arrays[3:5], strict=True):
        assert np.array_equal(wanted, got.numpy())
