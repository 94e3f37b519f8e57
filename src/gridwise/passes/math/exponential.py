"""exp and its kin: x = n * ln 2 + r with |r| <= ln 2 / 2, a polynomial in r, and 2**n put into the exponent."""

from __future__ import annotations

from .constants import LN2, LOG2_10, LOG2_E, LOG10_2, parts, rounded
from .expr import E, poly, pow2, scale


def _reduce(x: E, per_step: float, high: float, low: float) -> tuple[E, E]:
    """n = rint(x * per_step) as an integer, and r = x - n / per_step; n * high is exact."""
    n = (x * per_step).rint()
    return n.to(x.fmt.sint), (x - n * high) - n * low


def _natural(x: E) -> tuple[E, E]:
    """n and e**r - 1 for x = n ln 2 + r (Cody and Waite, 1980)."""
    f = x.fmt
    high, low = parts(LN2, f, f.short)
    n, r = _reduce(x, rounded(LOG2_E, f), high, low)
    return n, r + r * r * poly("EXP", r)


def exp_parts(high: E, low: E) -> tuple[E, E]:
    """n and p with e**(high + low) = p * 2**n; ``low`` is a correction."""
    f = high.fmt
    step_high, step_low = parts(LN2, f, f.short)
    n = ((high + low) * rounded(LOG2_E, f)).rint()
    r = ((high - n * step_high) - n * step_low) + low
    return n.to(f.sint), (r + r * r * poly("EXP", r)) + 1


def _clipped(x: E) -> E:
    """Beyond these bounds exp is 0 or infinite anyway."""
    return x.clip(x.fmt.pick(-104, -746), x.fmt.pick(90, 711))


def exp(x: E) -> E:
    n, tail = _natural(_clipped(x))
    return scale(tail + 1, n)


def exp_half(x: E) -> E:
    """e**x / 2, which does not overflow before cosh does."""
    n, tail = _natural(_clipped(x))
    return scale(tail + 1, n - 1)


def exp2(x: E) -> E:
    """r = x - rint(x) is exact, so integers give exact powers."""
    f = x.fmt
    x = x.clip(f.pick(-151, -1076), f.pick(129, 1025))
    n = x.rint()
    r = x - n
    return scale(r * poly("EXP2", r) + 1, n.to(f.sint))


def exp10(x: E) -> E:
    f = x.fmt
    x = x.clip(f.pick(-46, -325), f.pick(39, 309))
    high, low = parts(LOG10_2, f, f.short)
    n, r = _reduce(x, rounded(LOG2_10, f), high, low)
    return scale(r * poly("EXP10", r) + 1, n)


def expm1_half(x: E) -> E:
    """(e**x - 1) / 2, which does not overflow before sinh does.

    With s = 2**(n - 2) and q = e**r - 1 it is 2 (s q + (s - 1/4)), where s - 1/4 is exact wherever it matters.
    """
    f = x.fmt
    x = x.clip(f.pick(-20, -40), f.pick(89.6, 710.7))  # n <= bias + 2
    n, q = _natural(x)
    s = pow2(n - 2, x)  # a quarter of 2**n, so that it is always a normal number
    return (s * q + (s - 0.25)) * 2


def expm1(x: E) -> E:
    return (expm1_half(x) * 2).replace(abs(x) < 2.0 ** -(x.fmt.mantissa + 2), x)


def sigmoid(x: E) -> E:
    """1 / (1 + exp(-x)); for negative x as exp(x) / (1 + exp(x)), so that the tail keeps its precision."""
    t = exp(-abs(x))
    return t.replace(x > 0, 1) / (t + 1)
