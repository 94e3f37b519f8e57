"""Runs one math function over arrays on a device, through the same expansion as real kernels; exact references."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import mpmath
import numpy as np

from gridwise.devices.base import Device
from gridwise.devices.check import CheckDevice
from gridwise.ir import Builder, Kernel, Param, Region, Value, verify
from gridwise.ir.types import BOOL, F32, F64, I32, ArrayType, Scalar
from gridwise.lang.errors import Loc
from gridwise.lang.math import BY_FN
from gridwise.passes.expand_math import expand_math
from gridwise.passes.pipeline import lower

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


def math_kernel(fn: str, count: int, scalar: Scalar, code: str = "math") -> Kernel:
    """The kernel of one function of ``count`` arguments. ``ldexp`` takes its second as i32."""
    types = [I32 if fn == "ldexp" and n == 1 else scalar for n in range(count)]
    result = BOOL if code == "math" and BY_FN[fn].signature.endswith("B") else scalar
    return kernel_of(code, fn, types, result)


def launch(device: Device, kernel: Kernel, columns: Sequence[np.ndarray]) -> np.ndarray:
    """Run a lowered kernel over whole columns."""
    types = [p.type.elem for p in kernel.params if isinstance(p.type, ArrayType)]
    assert all(isinstance(t, Scalar) for t in types)
    given = [device.array(np.ascontiguousarray(c, t.dtype), t) for c, t in zip(columns, types[:-1])]
    out = device.zeros(len(columns[0]), types[-1])
    blocks = (-(-len(columns[0]) // 256), 1, 1)  # counted before the kernel was coarsened
    device.launch(device.load(kernel), blocks, [*(a.arg for a in given), out.arg], device.default_stream)
    return out.numpy()


def run(
    fn: str,
    *columns: np.ndarray,
    scalar: Scalar,
    code: str = "math",
    after: Callable[[Kernel], None] = lambda kernel: None,
) -> np.ndarray:
    """The expanded function on the check device, the IR changed by ``after``."""
    kernel = math_kernel(fn, len(columns), scalar, code)
    expand_math(kernel)
    after(kernel)
    return launch(CheckDevice(sanitize=False), verify(kernel), columns)


def run_on(device: Device, fn: str, *columns: np.ndarray, scalar: Scalar, code: str = "math") -> np.ndarray:
    """The function on any device, through the whole pipeline. The columns must fill whole blocks of 1024."""
    kernel = lower(math_kernel(fn, len(columns), scalar, code), device.target)
    return launch(device, kernel, columns)


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


def errors32(got: np.ndarray, want: np.ndarray, floor: np.ndarray | float = 0.0) -> np.ndarray:
    """Errors of f32 results against float64 values, in ulps at the larger of the value and ``floor``.

    Equal infinities and two NaNs count 0; where only one side overflowed, the distance to the last float.
    """
    want = np.asarray(want, np.float64)
    last = float(np.finfo(np.float32).max)
    with np.errstate(all="ignore"):
        narrow = want.astype(np.float32)
        _, exponent = np.frexp(np.clip(np.maximum(np.abs(want), floor), 0, last))
        error = np.abs(np.clip(got.astype(np.float64), -last, last) - np.clip(want, -last, last))
        error = error / np.ldexp(1.0, np.maximum(exponent - 24, -149))
        same = (np.isnan(got) & np.isnan(narrow)) | (got == narrow) & np.isinf(got)
        return np.where(same, 0.0, np.where(np.isnan(error), np.inf, error))


def wrong_zeros(got: np.ndarray, want: np.ndarray) -> np.ndarray:
    """Where a zero has the other sign than the reference's."""
    return (got == 0) & (want == 0) & (np.signbit(got) != np.signbit(want))


RANGES: dict[str, tuple[tuple[float, float], tuple[float, float]]] = {  # where results are finite: f32, f64
    "exp": ((-105, 89), (-750, 710)),
    "exp2": ((-152, 129), (-1080, 1025)),
    "exp10": ((-47, 39), (-326, 309)),
    "expm1": ((-20, 89), (-40, 710)),
    "sinh": ((-90, 90), (-712, 712)),
    "cosh": ((-90, 90), (-712, 712)),
    "sigmoid": ((-105, 20), (-745, 40)),
    "sin": ((-4000, 4000), (-4e6, 4e6)),
    "cos": ((-4000, 4000), (-4e6, 4e6)),
    "tan": ((-4000, 4000), (-4e6, 4e6)),
    "asin": ((-1, 1), (-1, 1)),
    "acos": ((-1, 1), (-1, 1)),
    "atanh": ((-1, 1), (-1, 1)),
    "acosh": ((1, 4), (1, 4)),
    "log1p": ((-1, 2), (-1, 2)),
    "log": ((0.3, 3), (0.3, 3)),
    "log2": ((0.3, 3), (0.3, 3)),
    "log10": ((0.3, 3), (0.3, 3)),
    "tanh": ((-10, 10), (-20, 20)),
    "erfc": ((-4, 10.1), (-6, 27.3)),
    "gamma": ((-40, 35.1), (-180, 171.7)),
    "lgamma": ((-40, 60), (-40, 200)),
}


def sample(fn: str, scalar: Scalar, count: int, seed: int) -> list[np.ndarray]:
    """Argument columns for one function: every edge (all pairs of them), random bits, and its interesting range."""
    low, high = RANGES.get(fn, ((-10, 10), (-10, 10)))[scalar == F64]
    if BY_FN[fn].signature == "T->T":
        near = random_near(scalar, count, -0.6, 0.6, seed + 1)
        return [np.concatenate([edges(scalar), random_bits(scalar, count, seed),
                                random_near(scalar, count, low, high, seed + 2), near])]
    e = edges(scalar)
    first = [np.repeat(e, len(e)), random_bits(scalar, count, seed), random_near(scalar, count, -10, 10, seed + 1)]
    second = [np.tile(e, len(e)), random_bits(scalar, count, seed + 2), random_near(scalar, count, -10, 10, seed + 3)]
    first += [random_near(scalar, count, 0, 10, seed + 4), random_near(scalar, count, 0.9, 1.1, seed + 5)]
    second += [random_near(scalar, count, -100, 100, seed + 6), random_near(scalar, count, -900, 900, seed + 7)]
    return [np.concatenate(first), np.concatenate(second)]


def floor_of(fn: str, columns: list[np.ndarray]) -> np.ndarray | float:
    """Where an ulp is not taken at the result alone: see ``lang.math.accuracy``."""
    if fn not in ("logaddexp", "lgamma"):
        return 0.0
    wide = widened(columns)
    if fn == "logaddexp":
        return np.max(np.abs(wide), axis=0)
    return np.where(wide[0] < 0, np.maximum(BY_FN[fn].reference(-wide[0]), 1.0), 0.0)


def widened(columns: Sequence[np.ndarray]) -> list[np.ndarray]:
    """As float64; signalling NaNs among random bits would warn."""
    with np.errstate(invalid="ignore"):
        return [c.astype(np.float64) for c in columns]


SPECIALS = (0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0, 0.5, -0.5, 2.0, -2.0, 3.0, -3.0, 1.5, -1.5, 2.5, -2.5)


def edges(scalar: Scalar) -> np.ndarray:
    """Values where functions change their ways, and their neighbours."""
    info = np.finfo(scalar.dtype)
    values = [*SPECIALS, float(info.max), -float(info.max), float(info.tiny), -float(info.tiny)]
    values += [float(info.smallest_subnormal), -float(info.smallest_subnormal), 2.0**-20, 10.0, 100.0, 1e-5]
    values += [np.e, 88.7, 709.78, -87.3, -103.9, -745.1, 2.0**11, 2.0**20, 1e22]
    values += [k * np.pi / 4 for k in range(-8, 9)]
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
