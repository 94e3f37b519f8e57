"""What each function of ``gridwise.math`` means: NumPy code that the check device and plain Python run.

Every reference takes NumPy arrays or scalars of one float dtype (Python numbers are weak, as in NumPy) and
returns the same dtype. 16 and 32-bit floats are computed in float64 and rounded once, so a reference is
within 0.5001 ulp; float64 is NumPy's own, or x87 ``longdouble`` where a formula would lose bits.
"""

from __future__ import annotations

import math as cmath
from collections.abc import Callable
from typing import Any

import numpy as np

Array = Any  # an ndarray or a NumPy scalar

_PI = np.longdouble("3.14159265358979323846264338327950288")


def _dtype(args: tuple[Any, ...]) -> np.dtype:
    """The common float dtype of the arguments; integers count as float64, as in Python's math."""
    dtype = np.result_type(*args)
    return dtype if dtype.kind not in "biu" else np.dtype(np.float64)


def _rounded(fn: Callable[..., Any]) -> Callable[..., Any]:
    """``fn`` on float64, its result rounded to the arguments' dtype."""

    def reference(*args: Any) -> Any:
        dtype = _dtype(args)
        with np.errstate(all="ignore"):
            result = fn(*(np.asarray(a).astype(np.float64) for a in args))
            return np.asarray(result).astype(dtype)[()]

    reference.__name__ = getattr(fn, "__name__", "reference")
    return reference


def _exact(fn: Callable[..., Any]) -> Callable[..., Any]:
    """``fn`` whose float64 result is the answer for every narrower type too (a bool, or a chosen argument)."""

    def reference(*args: Any) -> Any:
        with np.errstate(all="ignore"):
            return fn(*args)

    return reference


def _each(fn: Callable[..., float], domain: float = np.nan) -> Callable[..., Any]:
    """A scalar function of Python's math, element by element; its ValueError becomes ``domain``."""

    def one(*args: float) -> float:
        try:
            return fn(*args)
        except ValueError:
            return domain
        except OverflowError:
            return np.inf

    each = np.frompyfunc(one, 1, 1), np.frompyfunc(one, 2, 1)

    def vectorised(*args: Any) -> Any:
        return np.asarray(each[len(args) - 1](*args), np.float64)

    return _rounded(vectorised)


def _long(fn: Callable[..., Any]) -> Callable[..., Any]:
    """``fn`` evaluated in the widest float that NumPy has."""
    return _rounded(lambda *args: fn(*(a.astype(np.longdouble) for a in args)).astype(np.float64))


# ---- roots, powers, exponentials, logarithms -----------------------------------------------------
sqrt = _rounded(np.sqrt)
rsqrt = _long(lambda x: 1 / np.sqrt(x))
cbrt = _rounded(np.cbrt)
exp = _rounded(np.exp)
exp2 = _rounded(np.exp2)
exp10 = _long(lambda x: np.power(np.longdouble(10), x))
expm1 = _rounded(np.expm1)
log = _rounded(np.log)
log2 = _rounded(np.log2)
log10 = _rounded(np.log10)
log1p = _rounded(np.log1p)
pow = _rounded(np.power)
hypot = _rounded(np.hypot)
logaddexp = _long(np.logaddexp)
sigmoid = _long(lambda x: 1 / (1 + np.exp(-x)))


# ---- trigonometry and hyperbolics ----------------------------------------------------------------
def _half_turns(x: Array) -> tuple[Array, Array]:
    """x = quarter / 2 + r with |r| <= 1/4, exactly: the quadrant (0 to 3) and r, in half turns."""
    folded = np.fmod(x, 2)
    quarter = np.rint(2 * folded)
    return np.where(np.isfinite(x), quarter, 0).astype(np.int64) & 3, folded - quarter / 2


def _sinpi(x: Array) -> Array:
    quadrant, r = _half_turns(x)
    value = np.select([quadrant == 0, quadrant == 1, quadrant == 2],
                      [np.sin(_PI * r), np.cos(_PI * r), -np.sin(_PI * r)], -np.cos(_PI * r))
    return np.where((x == np.rint(x)) & np.isfinite(x), np.copysign(0, x), value)


def _cospi(x: Array) -> Array:
    quadrant, r = _half_turns(x)
    value = np.select([quadrant == 0, quadrant == 1, quadrant == 2],
                      [np.cos(_PI * r), -np.sin(_PI * r), -np.cos(_PI * r)], np.sin(_PI * r))
    return np.where(np.fmod(np.abs(x), 1) == 0.5, 0.0, value)


sin = _rounded(np.sin)
cos = _rounded(np.cos)
tan = _rounded(np.tan)
sinpi = _long(_sinpi)
cospi = _long(_cospi)
asin = _rounded(np.arcsin)
acos = _rounded(np.arccos)
atan = _rounded(np.arctan)
atan2 = _rounded(np.arctan2)
sinh = _rounded(np.sinh)
cosh = _rounded(np.cosh)
tanh = _rounded(np.tanh)
asinh = _rounded(np.arcsinh)
acosh = _rounded(np.arccosh)
atanh = _rounded(np.arctanh)
degrees = _long(lambda x: x * (180 / _PI))
radians = _long(lambda x: x * (_PI / 180))

# ---- special functions ---------------------------------------------------------------------------
erf = _each(cmath.erf)
erfc = _each(cmath.erfc)
lgamma = _each(cmath.lgamma, domain=np.inf)


def _gamma(x: float) -> float:
    if x == 0:
        return cmath.copysign(cmath.inf, x)
    try:
        return cmath.gamma(x)
    except OverflowError:  # near a pole the sign alternates
        return -cmath.inf if x < 0 and cmath.floor(x) % 2 else cmath.inf


gamma = _each(_gamma)

# ---- rounding and remainders ---------------------------------------------------------------------
floor = _rounded(np.floor)
ceil = _rounded(np.ceil)
trunc = _rounded(np.trunc)
rint = _rounded(np.rint)
round_away = _rounded(lambda x: np.copysign(np.trunc(x) + (np.abs(x - np.trunc(x)) >= 0.5) * np.sign(x), x))
fract = _rounded(lambda x: np.where(np.isinf(x), 0.0, x - np.floor(x)))
fmod = _rounded(np.fmod)
remainder = _each(cmath.remainder)


# ---- sign, bits and order ------------------------------------------------------------------------
def copysign(x: Any, y: Any) -> Any:
    dtype = _dtype((x, y))
    return np.asarray(np.copysign(np.asarray(x, dtype), np.asarray(y, dtype))).astype(dtype)[()]


def ldexp(x: Any, n: Any) -> Any:
    """x * 2**n with one rounding: through longdouble, whose exponent range holds every intermediate value."""
    dtype = _dtype((x,))
    with np.errstate(all="ignore"):
        wide = np.ldexp(np.asarray(x).astype(np.longdouble), np.clip(n, -5000, 5000))
        return np.asarray(wide).astype(dtype)[()]


def _ordered(dtype: np.dtype) -> tuple[Any, int]:
    unsigned = np.dtype(f"u{dtype.itemsize}")
    return unsigned, 1 << (8 * dtype.itemsize - 1)


def nextafter(x: Any, y: Any) -> Any:
    """The float after x towards y, on the bits, so that it works for every width."""
    dtype = _dtype((x, y))
    a, b = np.broadcast_arrays(np.asarray(x, dtype), np.asarray(y, dtype))
    unsigned, sign = _ordered(dtype)
    bits = a.copy().view(unsigned)
    with np.errstate(all="ignore"):
        away = (b > a) == (a > 0)
        stepped = np.where(away, bits + unsigned.type(1), bits - unsigned.type(1))
        smallest = (b.copy().view(unsigned) & unsigned.type(sign)) | unsigned.type(1)
        result = np.where(a == 0, smallest, stepped).astype(unsigned).view(dtype)
        result = np.where(a == b, b, result)
        return np.where(np.isnan(a) | np.isnan(b), (a + b).astype(dtype), result).astype(dtype)[()]


def sign(x: Any) -> Any:
    """-1, 0 or 1 of the same type; a float zero or NaN is returned as it is."""
    value = np.asarray(x)
    if value.dtype.kind in "biu":
        return np.sign(value)[()]
    one = np.copysign(np.ones_like(value), value)
    return np.where((value == 0) | np.isnan(value), value, one).astype(value.dtype)[()]


def _bool(fn: Callable[[Any], Any]) -> Callable[..., Any]:
    return lambda x: np.asarray(fn(np.asarray(x).astype(np.float64)), np.bool_)[()]


isnan = _bool(np.isnan)
isinf = _bool(np.isinf)
isfinite = _bool(np.isfinite)
signbit = _bool(np.signbit)


def _pick(x: Any, y: Any, lesser: bool) -> Any:
    dtype = _dtype((x, y))
    a, b = np.asarray(x, dtype), np.asarray(y, dtype)
    with np.errstate(all="ignore"):
        first = (a < b) if lesser else (a > b)
        first |= (a == b) & (np.signbit(a) if lesser else ~np.signbit(a))
        first |= np.isnan(b)
        return np.where(first & ~np.isnan(a), a, b).astype(dtype)[()]


def fmin(x: Any, y: Any) -> Any:
    return _pick(x, y, True)


def fmax(x: Any, y: Any) -> Any:
    return _pick(x, y, False)


def minimum(x: Any, y: Any) -> Any:
    """The IR's ``min``: NaN if either is, -0.0 below 0.0."""
    if np.result_type(x, y).kind in "biu":
        return np.minimum(x, y)
    return np.where(np.isnan(np.asarray(x)), x, np.where(np.isnan(np.asarray(y)), y, fmin(x, y)))[()]


def maximum(x: Any, y: Any) -> Any:
    if np.result_type(x, y).kind in "biu":
        return np.maximum(x, y)
    return np.where(np.isnan(np.asarray(x)), x, np.where(np.isnan(np.asarray(y)), y, fmax(x, y)))[()]


def clamp(x: Any, low: Any, high: Any) -> Any:
    return minimum(maximum(x, low), high)


absolute = _exact(np.abs)


# ---- fused multiply-add ----------------------------------------------------------------------------------------
def _two_sum(a: Array, b: Array) -> tuple[Array, Array]:
    s = a + b
    v = s - a
    return s, (a - (s - v)) + (b - v)


def _to_odd(high: Array, low: Array) -> Array:
    """high + low rounded to odd: the last bit set where anything was cut off, so that one more rounding is exact."""
    bits = high.view(np.int64)
    down = (low < 0) == (high > 0)  # towards zero
    odd = (bits & 1) == 1
    moved = np.where(down & (low != 0) & ~odd, bits - 1, bits)
    return np.where((low != 0) & ~odd & ~down, moved + 1, moved).view(np.float64)


def _fma64(a: float, b: float, c: float) -> float:
    """Exact, one element: the slow way for values near the ends of the range."""
    if not all(map(cmath.isfinite, (a, b, c))) or a == 0 or b == 0:
        return a * b + c
    from fractions import Fraction  # loaded where it is used: it is slow to load, and this slow to run

    exact = Fraction(a) * Fraction(b) + Fraction(c)
    if exact == 0:
        return a * b + c if c == 0 or a * b == -c else 0.0
    try:
        return float(exact)
    except OverflowError:
        return cmath.copysign(cmath.inf, exact)


_fma_each = np.frompyfunc(_fma64, 3, 1)


def _split(a: Array) -> tuple[Array, Array]:
    wide = a * 134217729.0  # 2**27 + 1 (Veltkamp): both halves have at most 26 bits
    high = wide - (wide - a)
    return high, a - high


def fma(x: Any, y: Any, z: Any) -> Any:
    """x * y + z with one rounding (Boldo and Melquiond, "Emulation of FMA", IEEE Trans. Computers 57, 2008)."""
    dtype = _dtype((x, y, z))
    a, b, c = (np.array(v, np.float64) for v in np.broadcast_arrays(*(np.asarray(v, dtype) for v in (x, y, z))))
    with np.errstate(all="ignore"):
        product = a * b
        if dtype != np.float64:  # the product is exact; the sum needs rounding to odd before the last rounding
            total, error = _two_sum(product, c)
            finite = np.isfinite(total)
            odd = _to_odd(np.atleast_1d(total), np.atleast_1d(np.where(finite, error, 0.0)))
            return np.where(finite, odd.reshape(total.shape), total).astype(dtype)[()]
        (ah, al), (bh, bl) = _split(np.atleast_1d(a)), _split(np.atleast_1d(b))
        low = ((ah * bh - product) + ah * bl + al * bh) + al * bl
        th, tl = _two_sum(np.atleast_1d(c), low)
        vh, vl = _two_sum(np.atleast_1d(product), th)
        result = vh + _to_odd(*_two_sum(tl, vl))
        safe = (np.abs(product) > 1e-250) & (np.abs(product) < 1e300) & (np.abs(c) < 1e300)
        safe &= (np.abs(a) < 1e150) & (np.abs(b) < 1e150) & ((c == 0) | (np.abs(c) > 1e-250))
        result = np.where(safe, result.reshape(product.shape), 0.0)
        if not np.all(safe):
            at = ~safe
            result = np.atleast_1d(result)
            a, b, c = (np.atleast_1d(v) for v in (a, b, c))
            mask = np.atleast_1d(at)
            result[mask] = np.asarray(_fma_each(a[mask], b[mask], c[mask]), np.float64)
            result = result.reshape(product.shape)
        return result[()]


# ---- graphics helpers ----------------------------------------------------------------------------
lerp = _rounded(lambda a, b, t: (1 - t) * a + t * b)
step = _rounded(lambda edge, x: np.where(np.isnan(x) | np.isnan(edge), np.nan, x >= edge))


def _smoothstep(low: Array, high: Array, x: Array) -> Array:
    t = np.minimum(np.maximum((x - low) / (high - low), 0), 1)
    return t * t * (3 - 2 * t)


smoothstep = _rounded(_smoothstep)


# ---- integers ------------------------------------------------------------------------------------
def _unsigned(x: Any) -> tuple[np.ndarray, np.dtype, int]:
    value = np.asarray(x)
    if value.dtype.kind not in "iu":
        raise TypeError(f"an integer is needed, not {value.dtype}")
    bits = value.dtype.itemsize * 8
    return value.astype(value.dtype).view(f"u{value.dtype.itemsize}").astype(np.uint64), value.dtype, bits


def popcount(x: Any) -> Any:
    value, dtype, _ = _unsigned(x)
    count = np.zeros(value.shape, np.uint64)
    for shift in range(0, 64, 8):
        count += _BYTE_POPCOUNT[(value >> np.uint64(shift)) & np.uint64(255)]
    return count.astype(dtype)[()]


_BYTE_POPCOUNT = np.array([n.bit_count() for n in range(256)], np.uint64)


def clz(x: Any) -> Any:
    value, dtype, bits = _unsigned(x)
    smeared = value
    for shift in (1, 2, 4, 8, 16, 32):
        smeared = smeared | (smeared >> np.uint64(shift))
    return (bits - popcount(smeared).astype(np.int64)).astype(dtype)[()]


def ctz(x: Any) -> Any:
    value, dtype, bits = _unsigned(x)
    with np.errstate(all="ignore"):
        below = ~value & (value - np.uint64(1))
    return np.minimum(popcount(below).astype(np.int64), bits).astype(dtype)[()]
