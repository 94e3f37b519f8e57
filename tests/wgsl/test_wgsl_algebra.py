"""Float arithmetic that drivers like to simplify: the value must be what the program says (rule 11 allows FMA only)."""

from __future__ import annotations

import numpy as np
import pytest
from wgsl_kernels import Make, Sketch, agree, table

from gridwise.devices.webgpu import WebGpuDevice
from gridwise.ir import Builder, Value
from gridwise.ir.types import F32, F64, I32, Scalar
from gridwise.lang.target import Cap
from gridwise.passes.pipeline import lower
from gridwise.targets.wgsl import emit

RNG = np.random.default_rng(13)


def k(b: Builder, t: Scalar, x: float) -> Value:
    return b.const(x, t)


def patterns(t: Scalar) -> dict[str, Make]:
    def op(code: str, b: Builder, *v: Value) -> Value:
        return b.value(code, v, t)

    return {
        "(a + b) - a": lambda b, v: op("sub", b, op("add", b, v[0], v[1]), v[0]),
        "a - (a + b)": lambda b, v: op("sub", b, v[0], op("add", b, v[0], v[1])),
        "(a - b) + b": lambda b, v: op("add", b, op("sub", b, v[0], v[1]), v[1]),
        "(a + b) + b": lambda b, v: op("add", b, op("add", b, v[0], v[1]), v[1]),
        "(a - b) - a": lambda b, v: op("sub", b, op("sub", b, v[0], v[1]), v[0]),
        "(a - b) + (b + b)": lambda b, v: op("add", b, op("sub", b, v[0], v[1]), op("add", b, v[1], v[1])),
        "(a if c else a) - (a - b)": lambda b, v: op(
            "sub",
            b,
            b.select(b.binary("lt", v[0], v[1]), v[0], b.select(b.binary("gt", v[0], v[1]), v[0], v[0])),
            op("sub", b, v[0], v[1]),
        ),
        "a + (-a)": lambda b, v: op("add", b, v[0], op("neg", b, v[0])),
        "a - a": lambda b, v: op("sub", b, v[0], v[0]),
        "a / a": lambda b, v: op("div", b, v[0], v[0]),
        "a + 0": lambda b, v: op("add", b, v[0], k(b, t, 0.0)),
        "0 - a": lambda b, v: op("sub", b, k(b, t, 0.0), v[0]),
        "a - 0": lambda b, v: op("sub", b, v[0], k(b, t, 0.0)),
        "a * 0": lambda b, v: op("mul", b, v[0], k(b, t, 0.0)),
        "0 / a": lambda b, v: op("div", b, k(b, t, 0.0), v[0]),
        "(a + 1) + 1e10": lambda b, v: op("add", b, op("add", b, v[0], k(b, t, 1.0)), k(b, t, 1e10)),
        "(a + 1e10) - 1e10": lambda b, v: op("sub", b, op("add", b, v[0], k(b, t, 1e10)), k(b, t, 1e10)),
        "(a * 3) * 1/3": lambda b, v: op("mul", b, op("mul", b, v[0], k(b, t, 3.0)), k(b, t, 1 / 3)),
        "a * (1 / b)": lambda b, v: op("mul", b, v[0], op("div", b, k(b, t, 1.0), v[1])),
        "1 / (1 / a)": lambda b, v: op("div", b, k(b, t, 1.0), op("div", b, k(b, t, 1.0), v[0])),
        "sqrt(a) * sqrt(a)": lambda b, v: op("mul", b, b.math("sqrt", [v[0]]), b.math("sqrt", [v[0]])),
        "sqrt(a * a)": lambda b, v: b.math("sqrt", [op("mul", b, v[0], v[0])]),
        "1 / sqrt(a)": lambda b, v: op("div", b, k(b, t, 1.0), b.math("sqrt", [v[0]])),
        "(a * b) / b": lambda b, v: op("div", b, op("mul", b, v[0], v[1]), v[1]),
        "(a - b * hi) - b * lo": lambda b, v: op(
            "sub",
            b,
            op("sub", b, v[0], op("mul", b, v[1], k(b, t, 1.6777216e7))),
            op("mul", b, v[1], k(b, t, 0.1)),
        ),
        "1 + 1/3 of constants": lambda b, v: op("add", b, op("div", b, k(b, t, 1.0), k(b, t, 3.0)), v[0]),
    }


@pytest.mark.parametrize("t", [F32, F64], ids=str)
def test_no_algebra(gpu: WebGpuDevice, t: Scalar) -> None:
    if t == F64 and Cap.F64 not in gpu.caps:
        pytest.skip("no 64-bit floats on this driver")
    a, b = RNG.standard_normal((2, 500)) * 10.0 ** RNG.integers(-6, 6, (2, 500))
    edges = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, 3.0])
    a[:49], b[:49] = np.repeat(edges, 7), np.tile(edges, 7)
    table(gpu, (t, t), t, patterns(t), [a.astype(t.dtype), b.astype(t.dtype)])


def test_comparisons_are_not_rearranged(gpu: WebGpuDevice) -> None:
    one, big = 1.0, 1e8
    makes: dict[str, Make] = {
        "a + b < a": lambda b, v: b.cast(b.binary("lt", b.binary("add", v[0], v[1]), v[0]), I32),
        "a + 1 < 1e8": lambda b, v: b.cast(
            b.binary("lt", b.binary("add", v[0], b.const(one, F32)), b.const(big, F32)), I32
        ),
        "a - b == 0": lambda b, v: b.cast(b.binary("eq", b.binary("sub", v[0], v[1]), b.const(0.0, F32)), I32),
    }
    a = np.array([1e8, 1e8 - 8, 99999990.0, np.inf, 5.0, -1e8] * 10, np.float32)
    b = np.array([-1.0, 1e-30, -3.0, np.inf, 5.0, 0.5] * 10, np.float32)
    table(gpu, (F32, F32), I32, makes, [a, b])


def test_compensated_sum_through_variables(gpu: WebGpuDevice) -> None:
    """Kahan's sum in a loop: the compensation is algebraically zero."""
    s = Sketch()
    a, out = s.array("a", F32, "read", rank=2), s.array("out", F32)
    b = s.b
    total, lost, trial = (b.var(name, F32) for name in ("total", "lost", "trial"))
    i = b.identity("global_idx", 0)
    with b.into(b.if_(b.binary("lt", i, b.dim(out, 0))).regions[0]):
        for v in (total, lost):
            b.set(v, b.const(0.0, F32))
        loop = b.for_(b.const(0, I32), b.dim(a, 1), b.const(1, I32))
        with b.into(loop.regions[0]):
            y = b.binary("sub", b.load(a, [i, loop.regions[0].args[0]], check="proved"), b.get(lost))
            b.set(trial, b.binary("add", b.get(total), y))
            b.set(lost, b.binary("sub", b.binary("sub", b.get(trial), b.get(total)), y))
            b.set(total, b.get(trial))
        b.store(out, [i], b.get(total), check="proved")
    values = np.where(RNG.random((32, 300)) < 0.5, 1e6, 1e-3) * RNG.random((32, 300))
    got = agree(gpu, s.kernel(), 1, [values.astype(np.float32), np.zeros(32, np.float32)])
    exact = values.astype(np.float32).astype(np.float64).sum(1)
    assert np.abs(got[1] - exact).max() <= np.spacing(np.float32(exact.max()))


def test_products_stay_free_to_contract() -> None:
    """Only the fragile patterns are hidden: a dot product's inner loop is bare."""
    s = Sketch()
    a, c, out = s.array("a", F32, "read", 2), s.array("c", F32, "read"), s.array("out", F32)
    b = s.b
    total = b.var("total", F32)
    i = b.identity("global_idx", 0)
    with b.into(b.if_(b.binary("lt", i, b.dim(out, 0))).regions[0]):
        b.set(total, b.const(0.0, F32))
        loop = b.for_(b.const(0, I32), b.dim(a, 1), b.const(1, I32))
        with b.into(loop.regions[0]):
            n = loop.regions[0].args[0]
            product = b.binary("mul", b.load(a, [i, n], check="proved"), b.load(c, [n], check="proved"))
            b.set(total, b.binary("add", b.get(total), product))
        b.store(out, [i], b.get(total), check="proved")
    assert "gw_exact" not in emit(lower(s.kernel(), "wgsl")).text
