"""asin, acos, atan, atan2, the hyperbolic functions and their inverses, and the roots built on sqrt."""

from __future__ import annotations

from .constants import LN2, PI, parts, rounded
from .exponential import exp, exp_half, expm1_half
from .expr import E, poly, pow2
from .logarithm import log1p
from .trigonometric import keep_zero


def _half_angle(x: E) -> tuple[E, E, E]:
    """(a > 1/2, s, asin(s) - s), a = abs(x), where s is a, or sqrt((1 - a) / 2) above 1/2: then acos(a) = 2 asin(s)."""
    a = abs(x)
    big = a > 0.5
    z = ((1 - a) * 0.5).where(big, a * a)
    s = z.sqrt().where(big, a)
    return big, s, s * (z * poly("ASIN", z))


def _sqrt_error(a: E, s: E) -> E:
    """sqrt((1 - a) / 2) - s for the rounded root s: (z - h*h) / (s + h) - (s - h), h the high half of s."""
    h = s.high()
    z = (1 - a) * 0.5
    return ((z - h * h) / (s + h) - (s - h)).replace(s.eq(0), 0.0)


def asin(x: E) -> E:
    f = x.fmt
    high, low = parts(PI / 2, f, f.mantissa + 1)
    big, s, rest = _half_angle(x)
    rest_big = rest + _sqrt_error(abs(x), s)
    value = (high - (s * 2.0 - (low - rest_big * 2.0))).where(big, s + rest)
    value = value.copysign(x).replace(abs(x) > 1, x.nan())
    return keep_zero(x, value)


def acos(x: E) -> E:
    f = x.fmt
    high, low = parts(PI / 2, f, f.mantissa + 1)
    big, s, rest = _half_angle(x)
    rest_big = rest + _sqrt_error(abs(x), s)
    near = (s + rest_big) * 2.0
    far = (high - (s - (low - rest_big))) * 2.0
    signed, signed_rest = s.copysign(x), rest.copysign(x)
    middle = high - (signed - (low - signed_rest))
    value = far.where(x < 0, near).where(big, middle)
    return value.replace(abs(x) > 1, x.nan()).replace(x.isnan(), x)


def _arc(t: E, high: E, low: E) -> E:
    """high + low + atan(t), abs(t) <= 1/2."""
    z = t * t
    return high + (t + (t * (z * poly("ATAN", z)) + low))


def atan(x: E) -> E:
    """atan(a) = pi/4 + atan((a - 1) / (a + 1)) = pi/2 - atan(1 / a)."""
    f = x.fmt
    a = abs(x)
    middle, large = a > 0.5, a > 2
    t = (a - 1).where(middle, a).replace(large, -1.0) / (a + 1).where(middle, 1.0).replace(large, a)
    q_high, q_low = parts(PI / 4, f, f.mantissa)
    steps = x.const(2.0).where(large, x.const(1.0).where(middle, 0.0))
    return keep_zero(x, _arc(t, steps * q_high, steps * q_low).copysign(x))


def atan2(y: E, x: E) -> E:
    """One division: of the smaller magnitude by the larger, or of their difference by their sum."""
    f = x.fmt
    a, b = abs(x), abs(y)
    swap = b > a
    large, small = b.where(swap, a), a.where(swap, b)
    infinite = large.isinf()
    small = small.replace(infinite, x.const(1.0).where(small.isinf(), 0.0))
    large = large.replace(infinite | large.eq(0), 1.0)
    huge = large > 2.0 ** (f.bias - 3)  # their sum could overflow
    tiny = large < 2.0 ** (2 * f.mantissa - f.bias)  # their difference could be subnormal
    factor = x.const(2.0**-4).where(huge, x.const(2.0 ** (2 * f.mantissa)).where(tiny, 1.0))
    small, large = small * factor, large * factor
    middle = small > large * 0.5
    t = (small - large).where(middle, small) / (small + large).where(middle, large)
    # The angle is steps * pi/4 + atan(t) or steps * pi/4 - atan(t).
    left = x.negative()
    same = swap.eq(left)
    m = x.const(1.0).where(middle, 0.0)
    start = x.const(2.0).where(swap, x.const(4.0).where(left, 0.0))
    steps = start + m.where(same, -m)
    t = t.where(same, -t)
    q_high, q_low = parts(PI / 4, f, f.mantissa - 2)
    value = _arc(t, steps * q_high, steps * q_low).copysign(y)
    return value.replace(x.isnan(), x).replace(y.isnan(), y)


def sinh(x: E) -> E:
    """With h = (e**a - 1) / 2: h + h / (2h + 1); a polynomial below 1."""
    a = abs(x)
    h = expm1_half(a)
    far = h + (h / (h * 2.0 + 1)).replace(a > x.fmt.pick(20, 45), 0.0)
    z = a * a
    value = (a + a * (z * poly("SINH", z))).where(a < 1, far)
    return value.copysign(x).replace(x.isnan(), x)


def cosh(x: E) -> E:
    half = exp_half(abs(x))
    return half + 0.25 / half


def tanh(x: E) -> E:
    """1 - 2 / (e**2a + 1); a polynomial below 0.55."""
    a = abs(x)
    far = 1 - 2.0 / (exp(a * 2.0) + 1)
    z = a * a
    value = (a + a * (z * poly("TANH", z))).where(a < 0.55, far)
    return value.copysign(x).replace(x.isnan(), x)


def _log1p_of(x: E, small: E, large: E) -> E:
    """log1p(small), or log(2 x) for the huge x whose square overflows."""
    return log1p(x.where(large, small)) + x.const(rounded(LN2, x.fmt)).where(large, 0.0)


def asinh(x: E) -> E:
    """log1p(a + a*a / (1 + sqrt(1 + a*a)))."""
    a = abs(x)
    square = a * a
    large = a > x.fmt.pick(2.0**30, 2.0**60)
    value = _log1p_of(a, a + square / ((square + 1).sqrt() + 1), large)
    return value.copysign(x).replace(x.eq(0) | ~x.finite(), x)


def acosh(x: E) -> E:
    """log1p(t + sqrt(2t + t*t)), t = x - 1."""
    t = x - 1
    large = x > x.fmt.pick(2.0**30, 2.0**60)
    value = _log1p_of(x, t + (t * 2.0 + t * t).sqrt(), large)
    return value.replace(x < 1, x.nan()).replace(x.isnan(), x)


def atanh(x: E) -> E:
    """log1p(2a / (1 - a)) / 2."""
    a = abs(x)
    value = log1p(a * 2.0 / (1 - a)) * 0.5
    tiny = a < 2.0 ** -(x.fmt.mantissa // 2 + 2)  # the next term is a**3 / 3
    value = value.replace(a.eq(1), x.infinite()).replace(a > 1, x.nan()).replace(tiny, a)
    return value.copysign(x).replace(x.isnan(), x)


def rsqrt(x: E) -> E:
    """Two roundings: of the root and of the quotient."""
    return (1.0 / x.sqrt()).replace(x.eq(0), x.infinite().copysign(x))


def cbrt(x: E) -> E:
    """x = m * 8**k with m in [1, 8): a polynomial, one Halley step where a double needs it, and a last step from a
    value of half the precision, whose square is exact (the arrangement of FreeBSD's s_cbrt.c, after W. Kahan)."""
    f = x.fmt
    a = abs(x)
    third = (f.mantissa + 2) // 3
    small = a < 2.0 ** (1 - f.bias)
    scaled = (a * 2.0 ** (3 * third)).where(small, a)
    biased = scaled.sbits() >> f.mantissa
    # floor((biased - bias) / 3) by a multiplication: exact for these small numbers.
    offset = -f.bias % 3
    k = (((biased + offset) * 21846) >> 16) - (f.bias + offset) // 3
    m = (scaled.sbits() - ((k * 3) << f.mantissa)).as_(f.type)
    t = poly("CBRT", m)
    if f.bits == 64:
        cube = t * t * t
        t = t * (cube + m * 2.0) / (cube * 2.0 + m)
    t = t.high()
    r = m / (t * t)
    t = t + t * (r - t) / (t * 2.0 + r)
    k = k - k.const(third).where(small, 0)
    value = (t * pow2(k, x)).copysign(x)
    return value.replace(x.eq(0) | ~x.finite(), x)


def hypot(x: E, y: E) -> E:
    """The larger magnitude is scaled to [1, 2) by a power of two."""
    f = x.fmt
    a, b = abs(x), abs(y)
    large, small = a.replace(a < b, b), b.replace(a < b, a)
    exponent = large.sbits() >> f.mantissa
    exponent = exponent.replace(exponent > 2 * f.bias - 1, 2 * f.bias - 1)
    down = ((2 * f.bias - exponent) << f.mantissa).as_(f.type)
    up = (exponent.replace(exponent.eq(0), 1) << f.mantissa).as_(f.type)  # 2**(exponent - bias)
    down = down.replace(exponent.eq(0), 2.0 ** (f.bias - 1))
    u, v = large * down, small * down
    u_high = u.high()
    # u*u with its rounding error, so that the sum is rounded once.
    head = u_high * u_high
    tail = (u - u_high) * (u + u_high) + v * v
    value = (head + tail).sqrt() * up
    value = value.replace(x.isnan(), x).replace(y.isnan(), y)
    return value.replace(x.isinf() | y.isinf(), x.infinite())


def degrees(x: E) -> E:
    return x * rounded(180 / PI, x.fmt)


def radians(x: E) -> E:
    return x * rounded(PI / 180, x.fmt)
