"""Functions that are exact: the expanded IR equals the reference bit for bit, on every float type."""

from __future__ import annotations

import importlib.util
import math
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from math_kernels import edges, random_bits, random_near, run

from gridwise.ir.types import BF16, F16, F32, F64, I8, I32, U32, Scalar
from gridwise.lang import math as gm
from gridwise.lang.math import BY_FN, NATIVE, OPS

TYPES = (F16, BF16, F32, F64)
UNARY = "sqrt floor ceil trunc rint round_away fract sign isnan isinf isfinite signbit".split()
BINARY = "fmod remainder copysign nextafter fmin fmax step".split()


def same_bits(got: np.ndarray, want: np.ndarray) -> np.ndarray:
    """Equal, a NaN equal to any NaN and zeros equal only with their sign."""
    if got.dtype == np.bool_:
        return got == want
    with np.errstate(all="ignore"):
        nan = np.isnan(got.astype(np.float64)) & np.isnan(want.astype(np.float64))
    unsigned = f"u{got.dtype.itemsize}"
    return nan | (got.view(unsigned) == want.view(unsigned))


def values(scalar: Scalar, count: int, seed: int) -> np.ndarray:
    if scalar in (F16, BF16):
        near = np.array([0.0, -0.0, 0.5, -0.5, 1.5, 2.5, -2.5, 3.0, np.inf, -np.inf, np.nan], scalar.dtype)
    else:
        near = edges(scalar)
    return np.concatenate([near, random_bits(scalar, count, seed), random_near(scalar, count, -20, 20, seed)])


def check(fn: str, columns: list[np.ndarray], scalar: Scalar, code: str = "math", reference: object = None) -> None:
    got = run(fn, *columns, scalar=scalar, code=code)
    with np.errstate(all="ignore"):
        want = np.asarray(reference(*columns) if callable(reference) else BY_FN[fn].reference(*columns))
    ok = same_bits(got, want.astype(got.dtype))
    at = np.flatnonzero(~ok)
    assert ok.all(), [(fn or code, [c[i] for c in columns], got[i], want[i]) for i in at[:4]]


@pytest.mark.parametrize("scalar", TYPES, ids=str)
@pytest.mark.parametrize("fn", UNARY)
def test_unary(fn: str, scalar: Scalar) -> None:
    check(fn, [values(scalar, 20000, 1)], scalar)


@pytest.mark.parametrize("scalar", TYPES, ids=str)
@pytest.mark.parametrize("fn", BINARY)
def test_binary(fn: str, scalar: Scalar) -> None:
    x, y = values(scalar, 4000, 1), values(scalar, 4000, 2)
    e = x[:200]
    rng = np.random.default_rng(3)
    columns = [np.concatenate([x, np.repeat(e, len(e))]), np.concatenate([rng.permutation(y), np.tile(e, len(e))])]
    check(fn, columns, scalar)


@pytest.mark.parametrize("scalar", TYPES, ids=str)
def test_ldexp(scalar: Scalar) -> None:
    x = values(scalar, 20000, 1)
    n = np.random.default_rng(2).integers(-2200, 2200, len(x)).astype(np.int32)
    n[::3] //= 16
    n[:4] = -(2**31), 2**31 - 1, 0, 1
    check("ldexp", [x, n], scalar)


def python_floordiv(a: float, b: float) -> float:
    if b == 0:
        with np.errstate(all="ignore"):
            return float(np.float64(a) / np.float64(b))
    return a // b


def python_mod(a: float, b: float) -> float:
    return math.nan if b == 0 else a % b


@pytest.mark.parametrize("code,reference", [("floordiv", python_floordiv), ("mod", python_mod)])
def test_python_division_f64(code: str, reference: object) -> None:
    """// and % on doubles are CPython's own."""
    rng = np.random.default_rng(4)
    e = edges(F64)[:40]
    x = np.concatenate([np.repeat(e, len(e)), random_near(F64, 3000, -100, 100, 1), random_bits(F64, 2000, 2)])
    rest = rng.permutation(random_bits(F64, 2000, 5))
    y = np.concatenate([np.tile(e, len(e)), random_near(F64, 3000, -7, 7, 3), rest])
    check("", [x, y], F64, code, np.vectorize(reference, otypes=[np.float64]))


def test_python_mod_f32() -> None:
    """On f32 the exact remainder, then one rounding where the divisor is added."""
    x, y = random_near(F32, 5000, -1000, 1000, 1), random_near(F32, 5000, -9, 9, 2)
    got = run("", x, y, scalar=F32, code="mod")
    for a, b, g in zip(x, y, got):
        want = Fraction(float(a)) % Fraction(float(b))
        assert g == np.float32(float(want)) or abs(float(g) - float(want)) <= np.spacing(abs(np.float32(b)))


@pytest.mark.parametrize("scalar", (I8, I32, U32), ids=str)
def test_integer_helpers(scalar: Scalar) -> None:
    x = np.random.default_rng(1).integers(scalar.min, scalar.max, 500, endpoint=True).astype(scalar.dtype)
    y, z = np.roll(x, 1), np.roll(x, 2)
    check("sign", [x], scalar)
    check("clamp", [x, np.minimum(y, z), np.maximum(y, z)], scalar)


def test_every_function_is_covered() -> None:
    """A function that is neither native nor expanded would reach a target unexpanded."""
    from gridwise.passes.expand_math import ANGLES, CHOICES, FUNCTIONS

    assert set(BY_FN) == set(NATIVE) | set(FUNCTIONS) | set(CHOICES) | set(ANGLES)


def test_graphics_helpers() -> None:
    t = np.linspace(-1, 2, 301).astype(np.float32)
    a, b = np.full_like(t, -3), np.full_like(t, 5)
    lerp = run("lerp", a, b, t, scalar=F32)
    assert lerp[t == 0] == -3 and lerp[t == 1] == 5
    np.testing.assert_allclose(lerp, OPS["lerp"](a, b, t), rtol=0, atol=1e-6)
    smooth = run("smoothstep", np.zeros_like(t), np.ones_like(t), t, scalar=F32)
    np.testing.assert_allclose(smooth, OPS["smoothstep"](0 * a, 0 * a + 1, t), rtol=0, atol=3e-7)
    assert (smooth[t <= 0] == 0).all() and (smooth[t >= 1] == 1).all()


def exact_fma(a: float, b: float, c: float) -> float:
    return float(Fraction(a) * Fraction(b) + Fraction(c))


def test_reference_fma_is_exact() -> None:
    """The reference of fma is compared with rational arithmetic, cancellations and subnormals included."""
    rng = np.random.default_rng(7)
    a, b = rng.normal(size=3000), rng.normal(size=3000) * 2.0 ** rng.integers(-40, 40, 3000)
    c = np.where(rng.random(3000) < 0.5, -a * b, rng.normal(size=3000) * 2.0 ** rng.integers(-60, 60, 3000))
    a[:50] *= 2.0**-1000
    b[:50] *= 2.0**-60
    c[:50] *= 2.0**-1040
    got = gm.fma(a, b, c)
    want = np.array([exact_fma(*map(float, row)) for row in zip(a, b, c)])
    assert (got == want).all()
    a32, b32, c32 = (v.astype(np.float32) for v in (a[50:], b[50:], c[50:]))
    got32 = gm.fma(a32, b32, c32)
    for x, y, z, g in zip(a32, b32, c32, got32):
        true = Fraction(float(x)) * Fraction(float(y)) + Fraction(float(z))
        below, above = np.nextafter(g, np.float32(-np.inf)), np.nextafter(g, np.float32(np.inf))
        distance = abs(Fraction(float(g)) - true)
        assert distance <= abs(Fraction(float(below)) - true) and distance <= abs(Fraction(float(above)) - true)


def test_reference_bits() -> None:
    assert [int(gm.clz(np.uint8(v))) for v in (0, 1, 128)] == [8, 7, 0]
    assert [int(gm.ctz(np.int64(v))) for v in (0, 1, -(2**63))] == [64, 0, 63]
    assert int(gm.popcount(np.int16(-1))) == 16


def test_the_guide_has_the_current_table() -> None:
    """docs/guide/math.md is what tools/math_table.py writes."""
    root = Path(__file__).parent.parent.parent
    spec = importlib.util.spec_from_file_location("math_table", root / "tools/math_table.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    page = module.PAGE.read_text()
    assert module.render(page) == page, "run: python tools/math_table.py"
