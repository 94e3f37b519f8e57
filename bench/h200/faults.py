"""A failed check raises the right exception at the next wait, and the device works on."""

from __future__ import annotations

import subprocess
import sys
import time

import numpy as np

import gridwise as gw
from gridwise import DisjointSlice, Slice, f32, i32, thread

from .common import POISON, SIZE, environment, row, seconds


@gw.kernel(domain=1, block=256)
def gather(values: Slice[f32], where: Slice[i32], out: DisjointSlice[f32]):
    i = thread.index_1d()
    if i in out:
        out[i] = values[where[i]]


@gw.kernel(domain=1, block=128)
def divide(a: Slice[i32], b: Slice[i32], out: DisjointSlice[i32]):
    i = thread.index_1d()
    if i in out:
        out[i] = a[i] // b[i]


def run(cuda: gw.Device) -> None:
    rng = np.random.default_rng()
    n = 1 << SIZE["checked"]
    values = rng.standard_normal(n).astype(np.float32)
    where = rng.integers(0, n, n).astype(np.int32)
    bad = where.copy()
    smallest = n // 2 + 1
    bad[n - 7], bad[smallest], bad[n - 100] = n, -5, 2**31 - 1
    dv, out = cuda.array(values), cuda.full(n, POISON, f32)
    for _ in range(20):  # the smallest thread is reported, every time
        gather(dv, cuda.array(bad), out)
        try:
            cuda.synchronize()
            raise AssertionError("no fault was raised")
        except gw.DeviceIndexError as e:
            assert e.thread == (smallest, 0, 0), e
            assert "index -5 is out of range for values" in str(e), e
            first = str(e)
    got = out.numpy()
    good = (bad >= 0) & (bad < n)
    np.testing.assert_array_equal(got[good], values[bad[good]])
    assert (got[~good] == 0).all()
    wild = cuda.array(rng.integers(-(2**31), 2**31 - 1, n).astype(np.int32))  # nearly every thread faults
    start = time.perf_counter()
    gather(dv, wild, out)
    try:
        cuda.synchronize()
        raise AssertionError("no fault was raised")
    except gw.DeviceIndexError:
        storm = time.perf_counter() - start
    try:
        divide(cuda.array(where), cuda.zeros(n, i32), cuda.zeros(n, i32))
        cuda.synchronize()
        raise AssertionError("no fault was raised")
    except gw.DeviceZeroDivisionError as e:
        assert e.thread == (0, 0, 0), e
    good_where = cuda.array(where)
    for _ in range(1000 if not SIZE["small"] else 3):
        gather(dv, good_where, out)
    cuda.synchronize()
    np.testing.assert_array_equal(out.numpy(), values[where])
    note = f"smallest thread 20 times of 20; 2^{SIZE['checked']} faults in {storm * 1e3:.1f} ms"
    row("fault, then 1,000 launches", "right", note)
    print("\n".join("      " + line for line in first.splitlines()))

    checked = seconds(cuda, lambda: gather(dv, good_where, out))
    row(f"gather 2^{SIZE['checked']}, checked in place", f"{checked * 1e6:.1f} us", seconds=checked)

    done = subprocess.run([sys.executable, "-c", FORK], capture_output=True, text=True, timeout=120, env=environment())
    assert done.returncode == 0 and "refused" in done.stdout, done.stdout + done.stderr
    row("use after fork", "refused", done.stdout.strip().splitlines()[-1])


FORK = """
import os, sys
import gridwise as gw, numpy as np
d = gw.device("cuda"); a = d.array(np.arange(8))
child = os.fork()
if child == 0:
    try:
        d.array(np.arange(8))
    except gw.DeviceUnavailableError as e:
        print("refused: " + str(e).splitlines()[0], flush=True)
        del a
        os._exit(0)
    os._exit(1)
_, status = os.waitpid(child, 0)
assert (a.numpy() == np.arange(8)).all()
sys.exit(os.waitstatus_to_exitcode(status))
"""
