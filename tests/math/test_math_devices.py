"""The documented bounds on each device present: what its compiler made of the arithmetic."""

from __future__ import annotations

import numpy as np
import pytest
from math_kernels import errors32, floor_of, run, run_on, sample, widened

from gridwise.devices.base import Device
from gridwise.ir.types import F32, F64, Scalar
from gridwise.lang.math import BY_FN
from gridwise.lang.math.accuracy import ULP, bounds
from gridwise.lang.target import Cap

EXACT = sorted(set(BY_FN) - set(ULP) - set("lerp smoothstep ldexp clamp".split()))


def whole_blocks(columns: list[np.ndarray]) -> list[np.ndarray]:
    """Padded with the first row to a multiple of 1024."""
    missing = -len(columns[0]) % 1024
    return [np.concatenate([c, np.repeat(c[:1], missing)]) for c in columns]


def normal(columns: list[np.ndarray], device: Device) -> list[np.ndarray]:
    """On WGSL subnormals may be flushed to zero, and NaN and infinity need not be kept: leave them out there."""
    if device.target != "wgsl":
        return columns
    tiny = np.finfo(columns[0].dtype).tiny
    if not device.numerics.subnormals:  # type: ignore[attr-defined]
        tiny *= 2.0**40  # nor may steps on the way be subnormal
    keep = np.ones(len(columns[0]), bool)
    for c in columns:
        keep &= np.isfinite(c) & ((c == 0) | (np.abs(c) >= tiny))
    return [c[keep] for c in columns]


def types_of(device: Device) -> list[Scalar]:
    return [F32, F64] if Cap.F64 in device.caps else [F32]


@pytest.mark.parametrize("fn", ULP)
def test_bound_on_device(fn: str, device: Device) -> None:
    columns = whole_blocks(normal(sample(fn, F32, 1 << 16, seed=11), device))
    got = run_on(device, fn, *columns, scalar=F32)
    want = BY_FN[fn].reference(*widened(columns))
    error = errors32(got, want, floor_of(fn, columns))
    if device.target == "wgsl":  # results that may be flushed, or that overflow
        limits = np.finfo(np.float32)
        free = (np.abs(want) < limits.tiny) | (np.abs(want) > limits.max) | np.isnan(want)
        error = np.where(free, 0, error)
    worst = int(np.argmax(error))
    bound = bounds(fn)[device.target]["f32"]
    assert error[worst] <= bound, f"{fn}{[c[worst] for c in columns]} gave {got[worst]}, not {want[worst]}"


@pytest.mark.parametrize("fn", ULP)
def test_f64_bound_on_device(fn: str, device: Device) -> None:
    """Against the check device, whose own error is measured elsewhere: together they stay within twice the bound."""
    if F64 not in types_of(device):
        pytest.skip("the device has no 64-bit floats")
    columns = whole_blocks(normal(sample(fn, F64, 1 << 12, seed=12), device))
    got = run_on(device, fn, *columns, scalar=F64)
    want = run(fn, *columns, scalar=F64)
    with np.errstate(all="ignore"):
        unit = np.spacing(np.maximum(np.abs(want), floor_of(fn, columns)))
        error = np.abs(got - want) / unit
    same = (got == want) | (np.isnan(got) & np.isnan(want))
    if device.target == "wgsl":
        same |= (np.abs(want) < np.finfo(np.float64).tiny) | ~np.isfinite(want)
    error = np.where(same, 0, np.where(np.isnan(error), np.inf, error))
    worst = int(np.argmax(error))
    bound = 2 * bounds(fn)[device.target]["f64"]
    assert error[worst] <= bound, (fn, [c[worst] for c in columns], got[worst], want[worst])


@pytest.mark.parametrize("fn", EXACT)
def test_exact_on_device(fn: str, device: Device) -> None:
    for scalar in types_of(device):
        columns = whole_blocks(normal(sample(fn, scalar, 1 << 12, seed=13), device))
        if BY_FN[fn].signature.startswith("T->"):
            columns = columns[:1]
        got = run_on(device, fn, *columns, scalar=scalar)
        with np.errstate(all="ignore"):
            want = np.asarray(BY_FN[fn].reference(*columns))
            same = (got == want) | (np.isnan(got.astype(float)) & np.isnan(want.astype(float)))
        if device.target == "wgsl":
            same |= np.abs(want.astype(float)) < np.finfo(scalar.dtype).tiny
        at = np.flatnonzero(~same)
        assert same.all(), [(fn, [c[i] for c in columns], got[i], want[i]) for i in at[:4]]


@pytest.mark.parametrize("code", ("mod", "floordiv"))
def test_python_division_on_device(code: str, device: Device) -> None:
    columns = whole_blocks(normal(sample("fmod", F32, 1 << 12, seed=14), device))
    got = run_on(device, "", *columns, scalar=F32, code=code)
    want = run("", *columns, scalar=F32, code=code)
    same = (got == want) | (np.isnan(got) & np.isnan(want))
    if device.target == "wgsl":
        same |= (np.abs(want) < np.finfo(np.float32).tiny) | ~np.isfinite(want)
    at = np.flatnonzero(~same)
    assert same.all(), [([c[i] for c in columns], got[i], want[i]) for i in at[:4]]
