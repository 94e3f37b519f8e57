"""Runs one math function over arrays on a device, through the same expansion as real kernels; exact references."""

from __future__ import annotations

from collections.abc import Sequence

import mpmath
import numpy as np

from gridwise.devices.check import CheckDevice
from gridwise.ir import Builder, Kernel, Param, Region, Value, verify
from gridwise.ir.types import BOOL, F32, F64, I32, ArrayType, Scalar
from gridwise.lang.errors import Loc
from gridwise.lang.math import BY_FN
from gridwise.passes.expand_math import expand_math

LOC = Loc("kernel.py", 1)


def kernel_of(code: str, fn: str, types: Sequence[Scalar], result: Scalar) -> Kernel:
    """out[i] = fn(x0[i], x1[i], ...)."""
    body = Region()
    b = Builder(body, I32, LOC)
    names = [f"x{n}" for n in range(len(types))]
    params = [Param(n, Value(ArrayType(t, 1, access="read"), None, n)) for n, t in zip(names, types)]
    params.append(Param("out", Value(ArrayType(result, 1, access="disjoint"), None, "out")))
    out = params[-1].value
    i = b.identity("global_idx", 0)
    with b.into(b.if_(b.binary("lt", i, b.dim(out, 0))).regions[0]):
        args = [b.load(p.value, [i], check="proved") for p in params[:-1]]
        value = b.math(fn, args, result) if code == "math" else b.value(code, args, result, check="proved")
        b.store(out, [i], value, check="proved")
    return verify(Kernel(fn or code, params, body, (256, 1, 1), 1, I32, LOC))


def run(fn: str, *columns: np.ndarray, scalar: Scalar, code: str = "math") -> np.ndarray:
    """The expanded function on the check device. ``ldexp`` takes its second column as i32."""
    types = [I32 if fn == "ldexp" and n == 1 else scalar for n in range(len(columns))]
    result = BOOL if code == "math" and BY_FN[fn].signature.endswith("B") else scalar
    kernel = kernel_of(code, fn, types, result)
    expand_math(kernel)
    verify(kernel)
    device = CheckDevice(sanitize=False)
    n = len(columns[0])
    given = [device.array(np.ascontiguousarray(c, t.dtype), t) for c, t in zip(columns, types)]
    out = device.zeros(n, result)
    blocks = (-(-n // 256), 1, 1)
    device.launch(device.load(kernel), blocks, [*(a.arg for a in given), out.arg], device.default_stream)
    return out.numpy()


def exact(fn: str, *args: float) -> mpmath.mpf:
    """The true value, to 60 digits; for f64, where NumPy is not accurate enough to judge."""
    a = [mpmath.mpf(float(v)) for v in args]
    special = {
        "exp2": lambda x: mpmath.mpf(2) ** x,
        "exp10": lambda x: mpmath.mpf(10) ** x,
        "log2": lambda x: mpmath.log(x) / mpmath.log(2),
        "rsqrt": lambda x: 1 / mpmath.sqrt(x),
        "cbrt": lambda x: mpmath.sign(x) * mpmath.cbrt(abs(x)),
        "pow": lambda x, y: mpmath.mpf(x) ** y,
        "lgamma": lambda x: mpmath.log(abs(mpmath.gamma(x))) if abs(x) < 20 else mpmath.re(mpmath.loggamma(x)),
        "logaddexp": lambda x, y: max(x, y) + mpmath.log1p(mpmath.exp(min(x, y) - max(x, y))),
        "sigmoid": lambda x: 1 / (1 + mpmath.exp(-x)),
    }
    names = {"asin": "asin", "log1p": "log1p"}
    return special[fn](*a) if fn in special else getattr(mpmath, names.get(fn, fn))(*a)


def ulp_of(value: float, scalar: Scalar) -> float:
    """The spacing of the type's floats at a value (the subnormal spacing near 0)."""
    mantissa, lowest = {F32: (23, -149), F64: (52, -1074)}[scalar]
    if value == 0:
        return 2.0**lowest
    return 2.0 ** max(np.frexp(value)[1] - 1 - mantissa, lowest)


def errors32(got: np.ndarray, want: np.ndarray) -> np.ndarray:
    """Errors in ulps of f32 results against float64 values; equal infinities and NaNs count 0, else inf."""
    want = np.asarray(want, np.float64)
    with np.errstate(all="ignore"):
        narrow = want.astype(np.float32)
        _, exponent = np.frexp(want)
        unit = np.ldexp(1.0, np.maximum(exponent - 24, -149))
        error = np.abs(got.astype(np.float64) - want) / unit
    odd = ~np.isfinite(got) | ~np.isfinite(narrow)
    same = (np.isnan(got) & np.isnan(narrow)) | (got == narrow)
    # One side overflowed: the error against the value beyond the last float.
    last = float(np.finfo(np.float32).max)
    edge = np.abs(np.clip(got.astype(np.float64), -last, last) - np.clip(want, -last, last)) / 2.0**104
    edge = np.where(np.isnan(edge), np.inf, edge)
    return np.where(odd, np.where(same, 0.0, edge), error)


SPECIALS = (0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0, 0.5, -0.5, 2.0, -2.0, 3.0, -3.0, 1.5, -1.5, 2.5, -2.5)


def edges(scalar: Scalar) -> np.ndarray:
    """Values where functions change their ways, and their neighbours."""
    info = np.finfo(scalar.dtype)
    values = [*SPECIALS, float(info.max), -float(info.max), float(info.tiny), -float(info.tiny)]
    values += [float(info.smallest_subnormal), -float(info.smallest_subnormal), 2.0**-20, 10.0, 100.0, 1e-5]
    values += [k * np.pi / 4 for k in range(-8, 9)] + [np.e, 88.7, 709.78, -87.3, -103.9, -745.1, 2.0**11, 2.0**20, 1e22]
    values += [float(k) for k in range(-10, 40)] + [k + 0.5 for k in range(-10, 10)]
    base = np.array(values, scalar.dtype)
    with np.errstate(all="ignore"):
        up = np.nextafter(base, np.array(np.inf, scalar.dtype))
        down = np.nextafter(base, np.array(-np.inf, scalar.dtype))
    return np.concatenate([base, up, down])


def random_bits(scalar: Scalar, count: int, seed: int) -> np.ndarray:
    """Uniform bit patterns: every exponent alike, NaNs and infinities included."""
    rng = np.random.default_rng(seed)
    return rng.integers(0, 256, count * scalar.size, np.uint8).view(scalar.dtype)


def random_near(scalar: Scalar, count: int, low: float, high: float, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).uniform(low, high, count).astype(scalar.dtype)
