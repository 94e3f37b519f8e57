"""Constants to more precision than a float holds, and how they are cut into floats."""

from __future__ import annotations

from fractions import Fraction
from functools import cache

from .expr import Format

LN2 = Fraction("0.693147180559945309417232121458176568075500134360255254120680009")
LOG2_E = Fraction("1.442695040888963407359924681001892137426645954152985934135449407")
LOG10_2 = Fraction("0.301029995663981195213738894724493026768189881462108541310427461")
LOG10_E = Fraction("0.434294481903251827651128918916605082294397005803666566114453783")
LOG2_10 = Fraction("3.321928094887362347870319429489390175864831393024580612054756396")
LOG2_3_HALVES = Fraction("0.584962500721156181453738943947816508759814407692481060455752655")
PI = Fraction("3.141592653589793238462643383279502884197169399375105820974944592307816406286208998628034825342117068")
SQRT_PI = Fraction("1.772453850905516027298167483341145182797549456122387128213807790")
HALF_LOG_2PI = Fraction("0.918938533204672741780329736405617639861397473637783412817151540")


def parts(value: Fraction, f: Format, *widths: int) -> list[float]:
    """``value`` as a sum of floats: one of each width in bits (cut, not rounded), and what is left rounded to ``f``."""
    out = []
    for width in widths:
        power = width - 1 - _exponent(value)
        cut = Fraction(int(value * Fraction(2) ** power)) / Fraction(2) ** power
        out.append(float(cut))
        value -= cut
    return [*out, rounded(value, f)]


def cut_at(value: Fraction, f: Format, *places: int) -> list[float]:
    """As ``parts``, but each float is cut at a bit of absolute weight 2**-place."""
    out = []
    for place in places:
        cut = Fraction(int(value * 2**place), 2**place)
        out.append(float(cut))
        value -= cut
    return [*out, rounded(value, f)]


def rounded(value: Fraction, f: Format) -> float:
    """The nearest float of the format (normal range)."""
    if f.bits == 64 or value == 0:
        return float(value)
    power = 23 - _exponent(value)
    return float(Fraction(round(value * Fraction(2) ** power)) / Fraction(2) ** power)


def _exponent(value: Fraction) -> int:
    """floor(log2(abs(value)))."""
    v, e = abs(value), 0
    while v >= 2:
        v, e = v / 2, e + 1
    while v < 1:
        v, e = v * 2, e - 1
    return e


@cache
def two_over_pi(word: int, count: int) -> tuple[int, ...]:
    """The first ``count`` words of the binary fraction of 2/pi, ``word`` bits each.

    pi by Machin's formula, 16 atan(1/5) - 4 atan(1/239), in integers.
    """
    precision = word * count + 64

    def arctan_inverse(n: int) -> int:
        term = (1 << precision) // n
        total, k, sign = term, 1, 1
        while term:
            term //= n * n
            k, sign = k + 2, -sign
            total += sign * (term // k)
        return total

    pi = 16 * arctan_inverse(5) - 4 * arctan_inverse(239)
    fraction = (2 << (2 * precision)) // pi >> (precision - word * count)
    return tuple(fraction >> (word * (count - 1 - i)) & ((1 << word) - 1) for i in range(count))
