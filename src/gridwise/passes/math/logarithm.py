"""Logarithms: x = 2**e * (1 + f) with 1 + f near 1, and log(1 + f) by a polynomial."""

from __future__ import annotations

from .constants import LN2, LOG2_E, LOG10_2, LOG10_E, parts, rounded
from .exponential import exp
from .expr import E, poly


def _split(x: E) -> tuple[E, E]:
    """e as a float and f, for positive finite x; subnormals are scaled up first."""
    f = x.fmt
    small = x < float(2.0 ** (1 - f.bias))
    up = f.mantissa + 2
    return _fields((x * 2.0**up).where(small, x), x.const(float(-up)).where(small, 0.0))


def _start(f_bits: int) -> int:
    """The bits of the least 1 + f: 2/3 for f32, sqrt(1/2) for f64 (whose polynomial wants a narrower range)."""
    return 0x3F2AAAAB if f_bits == 32 else 0x3FE6A09E667F3BCD


def _fields(x: E, bias: E) -> tuple[E, E]:
    f = x.fmt
    bits = x.sbits()
    exponent = (bits - _start(f.bits)) >> f.mantissa
    m = (bits - (exponent << f.mantissa)).as_(f.type)
    return exponent.to(f.type) + bias, m - 1


def _tail(f: E) -> E:
    """log(1 + f) - f.

    f32: a polynomial. f64: by s = f / (2 + f), log(1 + f) = 2 atanh(s), arranged as in fdlibm's e_log.c (Sun
    Microsystems, 1993): f - (h - s (h + R(s*s))), h = f*f/2.
    """
    square = f * f
    if f.fmt.bits == 32:
        return square * (f * poly("LOG", f) - 0.5)
    s = f / (f + 2)
    z = s * s
    half = square * 0.5
    return s * (half + z * poly("ATANH", z)) - half


def _edges(x: E, result: E, zero: E | None = None) -> E:
    """inf and NaN give themselves, 0 gives -inf, and what is below 0 gives NaN. ``zero`` takes x's place."""
    x = zero if zero is not None else x
    result = result.replace(x.magnitude() >= x.fmt.infinity, x)
    result = result.replace(x < 0, result.nan())
    return result.replace(x.eq(0), -result.infinite())


def log(x: E) -> E:
    f = x.fmt
    high, low = parts(LN2, f, f.short)
    e, m = _split(x)
    return _edges(x, e * high + (m + (_tail(m) + e * low)))


def log2(x: E) -> E:
    """f log2(e) is f + f (log2(e) - 1): the first term is exact, and so is e + f wherever it is small."""
    f = x.fmt
    e, m = _split(x)
    return _edges(x, (e + m) + (m * rounded(LOG2_E - 1, f) + _tail(m) * rounded(LOG2_E, f)))


def log10(x: E) -> E:
    """f log10(e) by halves, whose leading product is exact."""
    f = x.fmt
    high, low = parts(LOG10_2, f, f.short)
    head, rest = parts(LOG10_E, f, f.mantissa + 1 - f.half)
    e, m = _split(x)
    first = m.high()
    small = (m - first) * rounded(LOG10_E, f) + first * rest + _tail(m) * rounded(LOG10_E, f)
    return _edges(x, e * high + (first * head + (small + e * low)))


def log1p(x: E) -> E:
    """The exponent comes from 1 + x, but f = x s + (s - 1) with s = 2**-e, so that no bit of a small x is lost.

    x is scaled by 1/4 and s by 4, since s alone could be subnormal.
    """
    f = x.fmt
    high, low = parts(LN2, f, f.short)
    exponent = ((x + 1).sbits() - _start(f.bits)) >> f.mantissa
    s4 = ((f.bias + 2 - exponent) << f.mantissa).as_(f.type)
    m = (x * 0.25 * s4 + (s4 * 0.25 - 1)).replace(exponent.eq(0), x)
    e = exponent.to(f.type)
    result = _edges(x, e * high + (m + (_tail(m) + e * low)), x + 1)
    return result.replace(x.eq(0), x)


def logaddexp(x: E, y: E) -> E:
    """max + log1p(exp(min - max)); two equal infinities give themselves."""
    swap = x < y
    high, low = y.where(swap, x), x.where(swap, y)
    gap = (low - high).replace(low.eq(high), 0.0)
    return high + log1p(exp(gap))


