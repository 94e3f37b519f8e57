"""pow: exp2(y * log2|x|) with the logarithm and the product held as pairs of floats."""

from __future__ import annotations

from .constants import LN2, LOG2_3_HALVES, parts, rounded
from .expr import E, Format, poly, scale


def log2_pair(x: E) -> tuple[E, E]:
    """log2 of a positive finite x as high + low, high cut to half the precision; relative error below 2**-33 (f32).

    The arrangement of fdlibm's e_pow.c (Sun Microsystems, 2004): x = 2**e * m with m near 1 or 3/2,
    s = (m - c) / (m + c) as a pair, log(m / c) = 2/3 (3 s + s**3 + s**5 P(s*s)).
    """
    f = x.fmt
    small = x < float(2.0 ** (1 - f.bias))
    up = f.mantissa + 2
    bits = (x * 2.0**up).where(small, x).sbits()
    fraction = bits & ((1 << f.mantissa) - 1)
    one = f.bias << f.mantissa
    top = fraction >= round((3**0.5 - 1) * 2**f.mantissa)  # m above sqrt(3): halve it
    middle = (fraction >= round((1.5**0.5 - 1) * 2**f.mantissa)) & ~top  # near 3/2
    m = (fraction | fraction.const(one - (1 << f.mantissa)).where(top, one)).as_(f.type)
    e = ((bits >> f.mantissa) - f.bias + fraction.const(1).where(top, 0)).to(f.type)
    e = e + x.const(float(-up)).where(small, 0.0)
    c = x.const(1.5).where(middle, 1.0)
    c_high, c_low = parts(LOG2_3_HALVES, f, f.mantissa + 1 - f.half)
    offset = x.const(c_high).where(middle, 0.0)

    u = m - c
    v = 1.0 / (m + c)
    s = u * v
    s_high = s.high()
    t_high = (m + c).high()
    t_low = m - (t_high - c)
    s_low = v * ((u - s_high * t_high) - s_high * t_low)
    z = s * s
    r = z * z * poly("POWLOG", z) + s_low * (s_high + s)
    z = s_high * s_high
    t_high = (z + 3.0 + r).high()
    t_low = r - ((t_high - 3.0) - z)
    u, v = s_high * t_high, s_low * t_high + t_low * s
    p_high = (u + v).high()
    p_low = v - (p_high - u)
    k_high, k_low = parts(2 / (3 * LN2), f, f.mantissa + 1 - f.half)
    head = p_high * k_high
    tail = p_high * k_low + p_low * rounded(2 / (3 * LN2), f) + x.const(c_low).where(middle, 0.0)
    high = ((head + tail) + offset + e).high()
    return high, tail - (((high - e) - offset) - head)


def exp2_parts(high: E, low: E) -> tuple[E, E]:
    """n and p with 2**(high + low) = p * 2**n; the sum may be far out of range."""
    f: Format = high.fmt
    total = high + low
    limit = 2.0 * f.bias - 4
    inside = abs(total) < limit
    total = total.where(inside, high.const(limit).replace(total < 0, -limit))
    n = total.rint()
    r = ((high - n) + low).where(inside, 0.0)
    return n.to(f.sint), r * poly("EXP2", r) + 1


def product(y: E, high: E, low: E) -> tuple[E, E]:
    """y * (high + low) as a pair; ``high`` has half the precision."""
    y_high = y.high()
    return y_high * high, (y - y_high) * high + y * low


def pow(x: E, y: E) -> E:
    """x**y with every edge of IEEE 754-2019, 9.2.1."""
    f = x.fmt
    a = abs(x)
    high, low = log2_pair(a.replace(~(a.finite() & a.ne(0)), 1.0))
    limit = f.pick(2.0**33, 2.0**64)  # beyond it only |x| = 1 gives a finite result other than 0
    n, p = exp2_parts(*product(y.clip(-limit, limit), high, low))
    result = scale(p, n)

    whole = y.rint().eq(y) | y.isinf()
    half = y * 0.5
    odd = whole & half.rint().ne(half) & y.finite()
    # 0 and infinity: to a positive power themselves, to a negative one each other.
    flip = a.eq(0).ne(y < 0)
    result = result.replace(a.eq(0) | a.isinf(), result.infinite().replace(flip, 0.0))
    result = (-result).where((x.negative()) & odd, result)
    result = result.replace((x < 0) & a.finite() & ~whole, result.nan())
    result = result.replace(x.isnan(), x).replace(y.isnan(), y)
    return result.replace(y.eq(0) | x.eq(1), 1.0)
