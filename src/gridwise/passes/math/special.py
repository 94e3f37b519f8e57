"""erf, erfc, gamma, lgamma."""

from __future__ import annotations

from fractions import Fraction

from .constants import HALF_LOG_2PI, LOG2_E, PI, SQRT_PI, parts, rounded
from .exponential import exp_parts
from .expr import E, poly, scale
from .logarithm import log, log1p
from .power import exp2_parts, log2_pair, product
from .trigonometric import keep_zero, sinpi


def _erf_near(x: E) -> E:
    f = x.fmt
    value = x + x * poly("ERF", x * x)
    # Where the second term could be subnormal, and be flushed to zero, one product.
    return value.replace(abs(x) < 2.0 ** (4 - f.bias), x * rounded(2 / SQRT_PI, f))


def _erfc_far(a: E) -> E:
    """erfc for a >= 0: exp(-a*a) / (1 + 2a) times a polynomial in (a - k) / (a + k).

    The form is N. Juffa's (2018), after M. M. Shepherd and J. G. Laframboise, "Chebyshev approximation of
    (1 + 2x) exp(x**2) erfc x", Math. Comp. 36 (1981). a*a is taken as an exact square and a rest.
    """
    f = a.fmt
    a = a.clip(0, f.pick(11, 29))
    k = f.pick(2, 4)
    g = poly("ERFC" if f.bits == 32 else "ERFC64", (a - k) / (a + k))
    h = a.high()
    n, p = exp_parts(-(h * h), -((a - h) * (a + h)))
    return scale(p * (g / (a * 2.0 + 1)), n)


def erf(x: E) -> E:
    a = abs(x)
    value = _erf_near(a).where(a < 1, 1 - _erfc_far(a)).copysign(x)
    return keep_zero(x, value.replace(x.isnan(), x))


def erfc(x: E) -> E:
    a = abs(x)
    far = _erfc_far(a)
    value = (2 - far).where(x < 0, far)
    value = value.replace(a < 0.25, 1 - _erf_near(x))
    return value.replace(x.isnan(), x)


def _shifted(a: E) -> tuple[E, E, E, E]:
    """For 0 < a < 8: k, t in [-1/2, 1/2] with a = 2 + t + k, and the product that gamma(2 + t) must be multiplied by
    (k > 0) and divided by (k < 0): gamma(a) = gamma(2 + t) * up / down."""
    k = a.rint() - 2.0
    t = a - a.rint()
    up = a.const(1.0)
    for i in range(1, 7):
        up = up * (a - float(i)).where(k >= float(i), 1.0)
    down = a.replace(k >= 0, 1.0) * (a + 1).where(k < -1, 1.0)
    return k, t, up, down


def _stirling(a: E) -> E:
    """log(gamma(a)) - ((a - 1/2) log a - a + log(2 pi) / 2), for a >= 8."""
    r = 1.0 / a
    return r * poly("STIRLING", r * r)


def _gamma_parts(a: E) -> tuple[E, E]:
    """gamma(a) = p * 2**n for a > 0, without overflow."""
    f = a.fmt
    near = a < 8
    _, t, up, down = _shifted(a.where(near, 2.0))
    small = poly("GAMMA", t) * up / down
    # Stirling: 2**((a - 1/2) log2 a - a log2 e) * sqrt(2 pi) e**(correction)
    b = a.replace(near, 8.0).clip(8.0, f.pick(128, 1024))
    high, low = product(b - 0.5, *log2_pair(b))
    e_high, e_low = parts(LOG2_E, f, f.mantissa + 1 - f.half)
    b_high = b.high()
    head, tail = b_high * e_high, b_high * e_low + (b - b_high) * rounded(LOG2_E, f)
    rest = (low - tail) + (_stirling(b) * rounded(LOG2_E, f) + rounded(HALF_LOG_2PI * LOG2_E, f))
    cut = (high - head).high()  # both heads are cut, so that their difference is nearly exact
    rest = rest + ((high - cut) - head)
    n, p = exp2_parts(cut, rest)
    return n.replace(near, 0), p.replace(near, small)


def gamma(x: E) -> E:
    """For negative x by reflection, gamma(-a) = -pi / (a sin(pi a) gamma(a))."""
    f = x.fmt
    a = abs(x)
    n, p = _gamma_parts(a)
    positive = scale(p, n)
    mirrored = scale(-(rounded(PI, f) / (a * p * sinpi(a))), -n)
    value = mirrored.where(x < 0, positive)
    whole = a.floor().eq(a)
    value = value.replace((x < 0) & whole, x.nan())
    value = value.replace(a < 2.0 ** -(f.mantissa + 2), 1.0 / x)
    value = value.replace(x > f.pick(36, 172), x.infinite())
    return value.replace(x.isnan(), x)


def _lgamma_positive(a: E) -> E:
    """Below 8: log of the product and t * L(t), which is exact in form at the zero a = 2; around a = 1,
    t L(t) - log1p(t). Above: Stirling."""
    f = a.fmt
    near = a < 8
    k, t, up, down = _shifted(a.where(near, 2.0))
    middle = t * poly("LGAMMA", t) + log(up / down).replace(k.eq(-1), -log1p(t))
    b = a.replace(near, 8.0)
    far = (b - 0.5) * (log(b) - 1) + (_stirling(b) + rounded(HALF_LOG_2PI - Fraction(1, 2), f))
    return middle.where(near, far)


def lgamma(x: E) -> E:
    """For negative x by reflection: log(pi / (a |sin(pi a)|)) - lgamma(a)."""
    f = x.fmt
    a = abs(x)
    positive = _lgamma_positive(a)
    mirrored = log(rounded(PI, f) / (a * abs(sinpi(a)))) - positive
    value = mirrored.where(x < 0, positive)
    pole = (x < 0) & a.floor().eq(a) | x.eq(0) | x.isinf()
    tiny = a < 2.0 ** -(f.mantissa + 2)
    value = value.replace(tiny, -log(a))
    return value.replace(pole, x.infinite()).replace(x.isnan(), x)
