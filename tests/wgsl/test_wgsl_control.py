"""Control flow in WGSL: the random programs of the check device's own tests, and loops at the ends of a type."""

from __future__ import annotations

import os

import numpy as np
import pytest
from hypothesis import given, settings
from test_check_control import THREADS, built, programs
from wgsl_kernels import Sketch, agree

from gridwise.devices.webgpu import WebGpuDevice
from gridwise.devices.webgpu import open as open_webgpu
from gridwise.ir.types import I8, I16, I32, I64, U8, U32, U64, Scalar


@settings(max_examples=25, deadline=None)
@given(programs(3, False, 0))
def test_control_flow(program: list) -> None:
    pytest.importorskip("wgpu")
    agree(open_webgpu_once(), built(program), THREADS // 8, [np.zeros(3 * THREADS, np.int32)])


_opened: list[WebGpuDevice] = []


def open_webgpu_once() -> WebGpuDevice:
    """The device, for tests whose arguments hypothesis makes."""
    if not _opened:
        _opened.append(open_webgpu(os.environ.get("GRIDWISE_WEBGPU", "webgpu")))
    return _opened[0]


@pytest.mark.parametrize("t", [I8, I16, I32, I64, U8, U32, U64], ids=str)
def test_for_trip_counts_are_exact_at_the_ends_of_the_type(gpu: WebGpuDevice, t: Scalar) -> None:
    """Every start, stop and step of the edges with few enough turns: the index never has to pass the last value."""
    edges = sorted({t.min, t.min + 1, t.min + 5, 0, 1, t.max // 2, t.max - 3, t.max - 1, t.max})
    steps = [1, 2, 7, t.max] + ([-1, -3, -t.max, t.min] if t.signed else [])
    rows = [(a, z, d) for a in edges for z in edges for d in steps if (z - a) // d < 300]
    s = Sketch()
    given_ = [s.array(n, t, "read") for n in ("start", "stop", "step")]
    out = s.array("out", I64, rank=2)
    b = s.b
    i = b.identity("global_idx", 0)
    total, last = b.var("total", I32), b.var("last", t)
    with b.into(b.if_(b.binary("lt", i, b.dim(out, 0))).regions[0]):
        b.set(total, b.const(0, I32))
        b.set(last, b.const(0, t))
        loop = b.for_(*(b.load(a, [i], check="proved") for a in given_))
        with b.into(loop.regions[0]):
            b.set(total, b.binary("add", b.get(total), b.const(1, I32)))
            b.set(last, loop.regions[0].args[0])
        b.store(out, [i, b.const(0, I32)], b.cast(b.get(total), I64), check="proved")
        b.store(out, [i, b.const(1, I32)], b.cast(b.get(last), I64), check="proved")
    columns = [np.array([r[n] for r in rows], t.dtype) for n in range(3)]
    got = agree(gpu, s.kernel(), -(-len(rows) // 64), [*columns, np.zeros((len(rows), 2), np.int64)])
    assert got[-1][:, 0].tolist() == [len(range(*row)) for row in rows]


@pytest.mark.parametrize("step", [1, 3, -1, -2])
def test_constant_steps_stop_where_python_does(gpu: WebGpuDevice, step: int) -> None:
    s = Sketch()
    bounds, out = s.array("bounds", I32, "read", rank=2), s.array("out", I32)
    b = s.b
    i = b.identity("global_idx", 0)
    total = b.var("total", I32)
    with b.into(b.if_(b.binary("lt", i, b.dim(out, 0))).regions[0]):
        b.set(total, b.const(0, I32))
        ends = [b.load(bounds, [i, b.const(n, I32)], check="proved") for n in range(2)]
        loop = b.for_(*ends, b.const(step, I32))
        with b.into(loop.regions[0]):
            b.set(total, b.binary("add", b.get(total), loop.regions[0].args[0]))
        b.store(out, [i], b.get(total), check="proved")
    most = 2**31 - 1
    rows = [(0, 10), (10, 0), (-5, 5), (most - 4, most), (-most, -most - 1), (-most + 3, -most - 1), (7, 7)]
    got = agree(gpu, s.kernel(), 1, [np.array(rows, np.int32), np.zeros(len(rows), np.int32)])
    assert got[-1].tolist() == [I32.wrap(sum(range(a, z, step))) for a, z in rows]
