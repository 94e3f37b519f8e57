"""Rule 11: floats."""

from __future__ import annotations

import math as python

import numpy as np
from cases import case, each_type, run, values
from edges import column, floats
from exact import add, div, mul
from rules_numbers import FLOATS, F, ir, normal, pairs, same

import gridwise as gw
from gridwise import (
    DisjointSlice,
    Slice,
    f16,
    f32,
    math,
    thread,
    u32,
)
from gridwise.ir.types import F32

# -- rule 11 ---------------------------------------------------------------------------------------------------


@gw.kernel(block=64)
def float_arithmetic(a: Slice[F], b: Slice[F], o: DisjointSlice[F, 2]):
    i = int(thread.index_1d())
    if i < len(a) and i < len(b) and i < o.shape[0]:
        o[i, 0] = a[i] + b[i]
        o[i, 1] = a[i] - b[i]
        o[i, 2] = a[i] * b[i]
        o[i, 3] = a[i] / b[i]


@each_type("11", FLOATS)
def arithmetic_rounds_correctly(device, t):
    a, b, x, y = pairs(normal(device, t), ir(t))
    out = run(device, float_arithmetic, a, b, np.zeros((len(a), 4), a.dtype), grid=-(-len(a) // 64))[2]
    for row, p, q in zip(out, x, y, strict=True):
        want = [add(p, q, ir(t)), add(p, -q, ir(t)), mul(p, q, ir(t)), div(p, q, ir(t))]
        for n, (got, wanted) in enumerate(zip(row, want, strict=True)):
            assert same(got, wanted) or (device.target == "wgsl" and _loose(got, wanted, n, t)), (p, q, n, got)


def _loose(got: float, want: float, n: int, t: type) -> bool:
    """What WebGPU allows beyond IEEE: subnormal results flushed, division within 2.5 ulp."""
    tiny = 2.0 ** (-14 if t is f16 else -126)
    if python.isfinite(want) and abs(want) <= tiny:
        return abs(float(got)) <= tiny
    return n == 3 and python.isfinite(want) and abs(float(got) - want) <= 2.5 * 2.0**-23 * abs(want)


@gw.kernel(block=1)
def not_reordered(o: DisjointSlice[f32], a: f32, b: f32):
    if thread.global_index() == 0:
        o[0] = (a + b) - a
        o[1] = a + (b - a)
        o[2] = (a + b) + -b


@case("11")
def sums_are_not_reordered(device):
    a, b = 1e8, 1.0
    assert values(device, not_reordered, 3, np.float32, a, b) == [0.0, 0.0, 1e8]


@gw.kernel(block=64)
def special(x: Slice[f32], o: DisjointSlice[u32]):
    i = thread.index_1d()
    if i in x and i in o:
        v = x[i]
        o[i] = u32(math.isnan(v)) | u32(math.isinf(v)) << 1 | u32(math.isfinite(v)) << 2 | u32(v == v) << 3


@case("11")
def nan_and_infinity_are_seen(device):
    x = column(floats(F32), F32)
    out = run(device, special, x, np.zeros(len(x), np.uint32))[1]
    for v, bits in zip(x.tolist(), out.tolist(), strict=True):
        assert bits == python.isnan(v) | python.isinf(v) << 1 | python.isfinite(v) << 2 | (v == v) << 3


@gw.kernel(block=64)
def functions(x: Slice[f32], o: DisjointSlice[f32, 2]):
    i = int(thread.index_1d())
    if i < len(x) and i < o.shape[0]:
        v = x[i]
        o[i, 0] = math.sqrt(v)
        o[i, 1] = math.exp(v)
        o[i, 2] = math.log(v)
        o[i, 3] = math.sin(v)
        o[i, 4] = math.cos(v)
        o[i, 5] = math.tanh(v)
        o[i, 6] = math.floor(v)
        o[i, 7] = math.pow(v, 1.5)


@case("11")
def functions_are_within_their_bounds(device):
    x = np.concatenate([np.linspace(0.01, 30, 500), np.geomspace(1e-20, 80, 200)]).astype(np.float32)
    out = run(device, functions, x, np.zeros((len(x), 8), np.float32), grid=-(-len(x) // 64))[1]
    names = ("sqrt", "exp", "log", "sin", "cos", "tanh", "floor", "pow")
    wide = x.astype(np.float64)
    true = (np.sqrt, np.exp, np.log, np.sin, np.cos, np.tanh, np.floor, lambda v: v**1.5)
    for n, (name, f) in enumerate(zip(names, true, strict=True)):
        want = f(wide)
        ulp = np.spacing(np.abs(want).astype(np.float32)).astype(np.float64)
        bound = math.OPS[name].ulp.get(device.target, math.OPS[name].ulp.get("cpu", {})).get("f32", 0.5)
        error = np.max(np.abs(out[:, n].astype(np.float64) - want) / ulp)
        assert error <= max(bound, 0.5) + 0.01, (name, error, bound)


