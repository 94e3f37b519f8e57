"""Checks hoisted out of loops: the way without checks is taken exactly where every index is in range."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

import gridwise as gw
from gridwise import Const, DisjointSlice, Slice, f32, i32, thread
from gridwise.analysis import bounds
from gridwise.analysis.bounds import settle_bounds
from gridwise.devices.check import CheckDevice
from gridwise.ir import Kernel, Op
from gridwise.ir.types import I32, U32
from gridwise.lang.errors import DeviceIndexError
from gridwise.lang.target import Cap
from gridwise.launch.bind import positional
from gridwise.launch.prove import prove
from gridwise.passes import hoist_checks
from gridwise.passes.cse import cse
from gridwise.passes.pipeline import lower
from gridwise.passes.simplify import simplify

EDGE = 1 << 31
LENGTH = 100


@gw.kernel
def walk(start: Slice[i32], stop: Slice[i32], offset: Slice[i32], a: Slice[i32], y: DisjointSlice[i32],
         STEP: Const[i32], SLOPE: Const[i32]):
    i = thread.index_1d()
    if i in y and i < len(start) and i < len(stop) and i < len(offset):
        y[i] = -1
        r = offset[i]
        total = 0
        for k in range(start[i], stop[i], STEP):
            total += a[SLOPE * k + r]
        y[i] = total


@gw.kernel
def sparse(offsets: Slice[i32], columns: Slice[i32], values: Slice[f32], x: Slice[f32], y: DisjointSlice[f32]):
    i = thread.index_1d()
    if i in y and i + 1 < len(offsets):
        total = f32(0)
        for k in range(offsets[i], offsets[i + 1]):
            total += values[k] * x[columns[k]]
        y[i] = total


@gw.kernel
def window(a: Slice[f32], y: DisjointSlice[f32], n: i32, first: i32):
    i = thread.index_1d()
    if i in y:
        total = f32(0)
        for k in range(n):
            total += a[2 * k + first + i]
        y[i] = total


@gw.kernel
def with_barrier(a: Slice[f32], y: DisjointSlice[f32], n: i32):
    i = thread.index_1d()
    total = f32(0)
    for k in range(n):
        total += a[k + thread.local_index()]
        gw.barrier()
    if i in y:
        y[i] = total


@gw.kernel
def by_doubling(a: Slice[f32], y: DisjointSlice[f32], n: i32):
    i = thread.index_1d()
    if i in y:
        at = 1
        total = f32(0)
        for k in range(n):
            total += a[at + k]
            at *= 2
        y[i] = total


@gw.kernel
def rows(a: Slice[f32, 2], first: Slice[i32], y: DisjointSlice[f32], n: i32):
    i = thread.index_1d()
    if i in y and i < len(first):
        at = first[i]
        for j in range(n):
            for k in range(8):
                y[i] += a[at + j, at - k]


def compiled(kernel: Any, args: tuple[Any, ...], named: dict[str, Any]) -> tuple[Kernel, list[Any]]:
    """Analysed for arguments on a device, and the machine arguments."""
    launcher = kernel.launcher
    found = launcher.bind(positional(kernel.name, launcher.specs, args, named))
    k: Kernel = launcher.frontend(kernel.block, I32, frozenset(Cap), found).kernel
    simplify(k)
    cse(k)
    settle_bounds(k)
    return k, [a for b in found for a in b.args]


def ways(kernel: Kernel) -> Op:
    """The branch with the loop without checks and the loop with them."""
    (branch,) = (op for op in kernel.walk() if op.code == "if" and all(
        any(o.code == "for" for o in r.ops) for r in op.regions))
    return branch


def cases(step: int, slope: int, count: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """(start, stop, offset, and the sum over ``arange(LENGTH)`` or -1 if an index leaves the range), a thread each.

    Half of them are near the ends of what is in range, half near those of 32 bits.
    """
    random = np.random.default_rng(seed)
    rows = []
    while len(rows) < count:
        turns = int(random.integers(0, 8))
        start = int(random.choice([0, 3, -5, EDGE - 1, -EDGE, 1 << 30]) + random.integers(-9, 9))
        stop = start + turns * step + int(random.integers(-1, 2))
        if not (-EDGE <= start < EDGE and -EDGE <= stop < EDGE) or len(range(start, stop, step)) > 9:
            continue
        near = int(random.choice([0, LENGTH - 1, LENGTH // 2, EDGE, -EDGE])) + int(random.integers(-3, 4))
        offset = (near - slope * start + EDGE) % (2 * EDGE) - EDGE
        first = (slope * start + offset + EDGE) % (2 * EDGE) - EDGE
        at = [first + slope * (k - start) for k in range(start, stop, step)]  # what wraps around to be in range is out
        rows.append((start, stop, offset, sum(at) if all(0 <= x < LENGTH for x in at) else -1))
    table = np.array(rows, np.int64)
    return tuple(table[:, n].astype(np.int32) for n in range(4))  # type: ignore[return-value]


def without_checks(step: int, slope: int, seed: int) -> tuple[np.ndarray, np.ndarray, CheckDevice]:
    """What threads give that can take only the way without checks, and what all should give."""
    device = CheckDevice(collect=True)
    start, stop, offset, want = cases(step, slope, 2000, seed)
    given = [device.array(x) for x in (start, stop, offset, np.arange(LENGTH, dtype=np.int32), np.zeros_like(want))]
    kernel, args = compiled(walk, tuple(given), {"STEP": step, "SLOPE": slope})
    lowered = lower(kernel, "wgsl", trust_launch=False)
    ways(lowered).regions[1].ops.clear()
    device.launch(device.load(lowered), (-(-want.size // 256), 1, 1), args, device.default_stream)
    return given[-1].numpy(), want, device


STRIDES = [(s, c) for s in (1, -1, 3, -7, 1 << 30, -(1 << 29)) for c in (1, -1, 2, -3, 0, 1 << 16, 1 << 30, -(1 << 31))]


@pytest.mark.parametrize("step,slope", STRIDES)
def test_without_checks_exactly_where_in_range(step: int, slope: int) -> None:
    got, want, device = without_checks(step, slope, 1)
    device.synchronize()  # no access was out of range
    assert not device.findings
    # A thread that left its loop out has the sum 0, and an empty loop's is 0 anyway.
    assert np.array_equal(got, np.maximum(want, 0))
    assert (want > 0).any() and (want < 0).any()


def test_without_the_distance_faults_slip_through(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hoist_checks._Before, "distance", lambda self: self.b.const(0, U32))
    with pytest.raises(DeviceIndexError):
        without_checks(1, 1, 1)


def test_on_cpus_only_loops_that_threads_share() -> None:
    given = [np.zeros(4, np.int32)] * 4
    kernel, _ = compiled(walk, (*given, np.zeros(4, np.int32)), {"STEP": 1, "SLOPE": 1})
    assert sum(op.code == "for" for op in lower(kernel, "cpu").walk()) == 1
    assert sum(op.code == "for" for op in lower(kernel, "ptx").walk()) == 2
    kernel, _ = compiled(window, (np.zeros(4, np.float32), np.zeros(4, np.float32), 3, 4), {})
    assert sum(op.code == "for" for op in lower(kernel, "cpu").walk()) == 2


@pytest.mark.parametrize("device", ["cpu", "check"])
def test_window(device: str) -> None:
    on = gw.device(device)
    a, y = np.arange(300, dtype=np.float32), on.zeros(200, f32)
    window(on.array(a), y, 40, 20)
    on.synchronize()
    assert np.array_equal(y.numpy(), [a[i + 20 : i + 100 : 2].sum() for i in range(200)])
    window(on.array(a), y, 51, 20)
    with pytest.raises(DeviceIndexError, match=r"index 300 is out of range for a of length 300 \(thread 180\)"):
        on.synchronize()


@pytest.mark.parametrize("step,slope", [(1, 1), (-1, 2), (3, -1), (1 << 30, 1)])
def test_same_results_and_fault(step: int, slope: int) -> None:
    start, stop, offset, want = cases(step, slope, 500, 2)
    results = []
    for device in (gw.device("cpu"), CheckDevice()):
        y = device.zeros(want.size, i32)
        given = [device.array(x) for x in (start, stop, offset, np.arange(LENGTH, dtype=np.int32))]
        walk(*given, y, STEP=step, SLOPE=slope)
        with pytest.raises(DeviceIndexError) as e:
            device.synchronize()
        results.append((y.numpy().tobytes(), str(e.value)))
    assert results[0] == results[1]


def counts(kernel: Any) -> Counter[str]:
    verdict = prove(kernel, {"STEP": 1, "SLOPE": 2} if kernel is walk else None)
    assert verdict.error is None
    return Counter(verdict.counts())


def test_what_is_hoisted(monkeypatch: pytest.MonkeyPatch) -> None:
    assert counts(sparse) == {"proved": 3, "hoisted": 2, "inplace": 1}
    assert counts(walk)["hoisted"] == 1
    assert counts(with_barrier)["hoisted"] == 0  # the branch before the loop would differ between threads
    assert counts(by_doubling)["hoisted"] == 0
    assert counts(rows)["hoisted"] == 1  # of the inner loop
    monkeypatch.setattr(bounds, "hoistable", lambda kernel: {})
    assert counts(sparse) == {"proved": 3, "inplace": 3}


def test_report_says_where() -> None:
    (values,) = (c for c in prove(sparse).checks if c.text.startswith("values"))
    assert values.loc is not None
    assert (values.how, values.detail) == ("hoisted", f"before the loop at line {values.loc.line - 1}")


def test_sparse_product_everywhere() -> None:
    random = np.random.default_rng(3)
    offsets = np.sort(random.integers(0, 300, 41)).astype(np.int32)
    columns, values = random.integers(0, 50, 300).astype(np.int32), random.random(300, np.float32)
    x = random.random(50, np.float32)
    want = [np.dot(values[a:b], x[columns[a:b]]) for a, b in pairwise(offsets)]
    for device in (gw.device("cpu"), CheckDevice()):
        y = device.zeros(40, f32)
        sparse(*(device.array(v) for v in (offsets, columns, values, x)), y)
        device.synchronize()
        assert np.allclose(y.numpy(), want, rtol=1e-5)
