"""``pytest --gridwise-sanitize`` and ``with sanitize()``: a whole program on the check device."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import gridwise as gw
from gridwise import DisjointSlice, Slice, barrier, f32, i32, thread
from gridwise.devices.check import sanitize

pytest_plugins = ["pytester"]

PROGRAM = """
import numpy as np
import pytest
import gridwise as gw
from gridwise import DisjointSlice, Slice, barrier, f32, i32, thread

@gw.kernel(domain=1, block=64)
def rotate(c: DisjointSlice[i32], ordered: i32):
    t = thread.local_index()
    s = gw.shared((64,), i32)
    with gw.unsafe("the tests look at it"):
        s[t] = i32(t)
        if ordered == 1:
            barrier()
        c[thread.global_index()] = s[(t + 1) % 64]

@gw.kernel(domain=1, block=64)
def double(a: Slice[f32], c: DisjointSlice[f32]):
    i = thread.index_1d()
    if i in c:
        c[i] = a[i] + a[i]

def test_good():
    c = np.zeros(128, np.int32)
    rotate(c, 1)
    assert c.tolist() == [(t + 1) % 64 for t in range(64)] * 2

def test_racy():
    rotate(np.zeros(128, np.int32), 0)

def test_empty():
    device = gw.device("cpu")
    double(device.empty(10, f32), device.zeros(10, f32))

def test_fault():
    with pytest.raises(IndexError):
        double(np.zeros(5, np.float32), np.zeros(10, np.float32))
"""


def test_plugin(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(test_program=PROGRAM)
    plain = pytester.runpytest_subprocess("-k", "good or fault")
    plain.assert_outcomes(passed=2)
    plain.stdout.no_fnmatch_line("*check device*")
    watched = pytester.runpytest_subprocess(
        "--gridwise-sanitize", "--gridwise-seed=3", "--gridwise-coverage"
    )
    watched.assert_outcomes(passed=2, failed=2)
    watched.stdout.fnmatch_lines([
        "rotate: race on s[[]*[]]: written by thread * here, read by thread * at line 14",
        "*s[[]t[]] = i32(t)",
        "double: a[[]*[]] is read by thread * but was never written",
        "gridwise: * launches on the check device, seed of thread order 3",
        "gridwise: * lines of kernels ran, written to .coverage.gridwise.*",
    ])  # fmt: skip


@gw.kernel(domain=1, block=32)
def twice(a: Slice[f32], c: DisjointSlice[f32]):
    i = thread.index_1d()
    if i in c:
        c[i] = a[i] + a[i]


def test_session_takes_every_device() -> None:
    with sanitize(seed=1, coverage=True, leaks=True) as session:
        device = gw.device("cpu")
        assert device is session.device
        kept = device.empty(40, f32)
        c = device.zeros(40, f32)
        twice(kept, c)
        out = np.zeros(8, np.float32)
        twice(np.ones(8, np.float32), out)
        assert out.tolist() == [2.0] * 8
        del c
    assert gw.device("cpu") is not session.device
    kinds = sorted(f.kind for f in session.findings)
    assert kinds[0] == "leak" and kinds[-1] == "uninitialised"
    report = session.report()
    assert "a[" in report and report.splitlines()[-1].startswith("sanitize: ")
    assert session.device.lines is not None
    (lines,) = session.device.lines.values()
    start = Path(__file__).read_text().splitlines().index("def twice(a: Slice[f32], c: DisjointSlice[f32]):") + 1
    assert Path(next(iter(session.device.lines))) == Path(__file__) and lines == {start + 1, start + 2, start + 3}


@gw.kernel(domain=1, block=64)
def rotate(c: DisjointSlice[i32]):
    s = gw.shared((64,), i32)
    t = thread.local_index()
    s[t] = i32(t)
    barrier()
    i = thread.index_1d()
    if i in c:
        c[i] = s[(t + 1) % 64]


def test_nothing_found() -> None:
    with sanitize() as session:
        c = np.zeros(100, np.int32)
        rotate(c)
    assert c.tolist() == [(t % 64 + 1) % 64 for t in range(100)]
    assert session.report() == "sanitize: nothing found"
