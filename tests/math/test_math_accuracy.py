"""Every documented bound, measured. GRIDWISE_NIGHTLY=1 takes sixteen times the samples."""

from __future__ import annotations

import os
from collections.abc import Callable

import mpmath
import numpy as np
import pytest
from gpu_rewrites import cancel, contract
from math_kernels import errors32, exact, floor_of, run, sample, ulp_of, widened, wrong_zeros

from gridwise.ir import Kernel
from gridwise.ir.types import BF16, F16, F32, F64, Scalar
from gridwise.lang.math import BY_FN
from gridwise.lang.math.accuracy import ULP

MORE = 16 if os.environ.get("GRIDWISE_NIGHTLY") else 1
REWRITES: dict[str, Callable[[Kernel], None]] = {"plain": lambda k: None, "contracted": contract, "cancelled": cancel}


@pytest.mark.parametrize("rewrite", REWRITES)
@pytest.mark.parametrize("fn", ULP)
def test_f32_bound(fn: str, rewrite: str) -> None:
    columns = sample(fn, F32, (1 << 16) * MORE, seed=1)
    got = run(fn, *columns, scalar=F32, after=REWRITES[rewrite])
    want = BY_FN[fn].reference(*widened(columns))
    error = errors32(got, want, floor_of(fn, columns))
    # Compilers that cancel sums lose a correction here and there: the bound for them is one ulp more.
    bound = ULP[fn][0] + (1 if rewrite == "cancelled" else 0)
    worst = int(np.argmax(error))
    arguments = [c[worst] for c in columns]
    assert error[worst] <= bound, f"{fn}{arguments} gave {got[worst]}, not {want[worst]}: {error[worst]:.2f} ulp"
    bad = wrong_zeros(got, want)
    assert not bad.any(), f"{fn} gives a zero of the wrong sign at {[c[bad][0] for c in columns]}"


def _true(fn: str, arguments: list[float], reference: float) -> mpmath.mpf | None:
    """The exact value where it is a finite number and mpmath defines it; else None: the reference decides."""
    if not np.isfinite(arguments).all() or not np.isfinite(reference):
        return None
    with mpmath.workdps(40 + int(np.log10(max(map(abs, arguments)) + 1))):
        try:
            value = exact(fn, *arguments)
        except (OverflowError, ValueError, ZeroDivisionError):  # a pole, or mpmath's own limits
            return None
        return mpmath.re(value) if mpmath.im(value) == 0 and value != 0 else None


@pytest.mark.parametrize("rewrite", ("plain", "contracted"))
@pytest.mark.parametrize("fn", ULP)
def test_f64_bound(fn: str, rewrite: str) -> None:
    columns = sample(fn, F64, 64 * MORE, seed=2)
    if len(columns) == 2:  # a part of the edge pairs, all of the random ones
        keep = np.random.default_rng(3).permutation(len(columns[0]))[: 400 * MORE]
        columns = [c[keep] for c in columns]
    got = run(fn, *columns, scalar=F64, after=REWRITES[rewrite])
    want = BY_FN[fn].reference(*columns)
    floor = np.broadcast_to(floor_of(fn, columns), got.shape)
    last = float(np.finfo(np.float64).max)
    for row in range(len(got)):
        arguments = [float(c[row]) for c in columns]
        true = _true(fn, arguments, float(want[row]))
        if true is None:
            same = got[row] == want[row] or (np.isnan(got[row]) and np.isnan(want[row]))
            # The reference itself may round to 0 or infinity just where the library does not.
            close = abs(float(np.clip(got[row], -last, last)) - float(np.clip(want[row], -last, last)))
            assert same or close <= ulp_of(float(np.clip(want[row], -last, last)), F64), (fn, arguments, got[row])
            continue
        unit = ulp_of(max(abs(float(true)), float(floor[row])), F64)
        error = float(abs(mpmath.mpf(float(got[row])) - true) / unit) if np.isfinite(got[row]) else np.inf
        assert error <= ULP[fn][1], f"{fn}{arguments} gave {got[row]}, not {float(true)}: {error:.2f} ulp"


@pytest.mark.parametrize("scalar", (F16, BF16), ids=str)
@pytest.mark.parametrize("fn", [f for f in ULP if BY_FN[f].signature == "T->T"])
def test_16_bit_exhaustive(fn: str, scalar: Scalar) -> None:
    """All 65,536 values: f32 accuracy and one rounding leave at most the neighbour, and seldom."""
    x = np.arange(1 << 16, dtype=np.uint16).view(scalar.dtype)
    got = run(fn, x, scalar=scalar)
    want = BY_FN[fn].reference(x)
    with np.errstate(all="ignore"):
        a, b = got.astype(np.float64), want.astype(np.float64)
        different = ~((a == b) | (np.isnan(a) & np.isnan(b)))
    steps = np.abs(got.view(np.int16).astype(int) - want.view(np.int16).astype(int))
    if fn == "lgamma":
        different &= widened([x])[0] > 0
    assert (steps[different] <= 1).all(), [(x[i], got[i], want[i]) for i in np.flatnonzero(different & (steps > 1))[:5]]
    assert different.mean() < 0.001
