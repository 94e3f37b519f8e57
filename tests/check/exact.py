"""Expected results by exact arithmetic: Python's integers and fractions, one value at a time.

Shares no code with the interpreter under test. A float of any IEEE format is a Python float here (f64 holds them
all); ``round_to`` is the only rounding.
"""

from __future__ import annotations

import math
from fractions import Fraction

from gridwise.ir.types import BF16, F16, F32, F64, Scalar

FORMATS = {F16: (11, -14, 15), BF16: (8, -126, 127), F32: (24, -126, 127), F64: (53, -1022, 1023)}


def wrap(value: int, t: Scalar) -> int:
    value %= 1 << t.bits
    return value - (1 << t.bits) if t.signed and value >= 1 << (t.bits - 1) else value


def round_to(q: Fraction, t: Scalar, zero: float = 0.0) -> float:
    """To nearest, ties to even; ``zero`` is the result for an exact 0."""
    precision, low, high = FORMATS[t]
    if q == 0:
        return zero
    size, sign = abs(q), 1 if q > 0 else -1
    e = size.numerator.bit_length() - size.denominator.bit_length()
    if Fraction(2) ** e > size:
        e -= 1
    ulp = Fraction(2) ** (max(e, low) - precision + 1)
    rounded = round(q / ulp) * ulp
    if abs(rounded) >= Fraction(2) ** (high + 1):
        return math.inf * sign
    return math.copysign(float(rounded), sign)


def is_negative(x: float) -> bool:
    return math.copysign(1.0, x) < 0


def add(a: float, b: float, t: Scalar) -> float:
    if not (math.isfinite(a) and math.isfinite(b)):
        return a + b
    return round_to(Fraction(a) + Fraction(b), t, -0.0 if is_negative(a) and is_negative(b) else 0.0)


def mul(a: float, b: float, t: Scalar) -> float:
    if not (math.isfinite(a) and math.isfinite(b)):
        return a * b
    zero = -0.0 if is_negative(a) != is_negative(b) else 0.0
    return round_to(Fraction(a) * Fraction(b), t, zero)


def div(a: float, b: float, t: Scalar) -> float:
    negative = is_negative(a) != is_negative(b)
    if math.isnan(a) or math.isnan(b) or (a == 0 and b == 0) or (math.isinf(a) and math.isinf(b)):
        return math.nan
    if b == 0 or math.isinf(a):
        return -math.inf if negative else math.inf
    if math.isinf(b):
        return -0.0 if negative else 0.0
    return round_to(Fraction(a) / Fraction(b), t, -0.0 if negative else 0.0)


def fma(a: float, b: float, c: float, t: Scalar) -> float:
    if not all(map(math.isfinite, (a, b, c))):
        return math.nan if (math.isinf(a) and b == 0) or (math.isinf(b) and a == 0) else a * b + c
    product, negative = Fraction(a) * Fraction(b), is_negative(a) != is_negative(b)
    zero = -0.0 if negative and is_negative(c) else 0.0
    return round_to(product + Fraction(c), t, zero)


def floordiv(a: float, b: float, t: Scalar) -> float:
    if b == 0 or math.isnan(a) or math.isnan(b):
        return div(a, b, t)
    if math.isinf(a):
        return math.nan  # as Python: the remainder has no value
    if math.isinf(b):
        return div(a, b, t) if a == 0 or (a < 0) == (b < 0) else -1.0
    exact = Fraction(a) / Fraction(b)
    return round_to(Fraction(math.floor(exact)), t, -0.0 if is_negative(a) != is_negative(b) else 0.0)


def mod(a: float, b: float, t: Scalar) -> float:
    if math.isnan(a) or math.isnan(b) or math.isinf(a) or b == 0:
        return math.nan
    if math.isinf(b):
        return math.copysign(0.0, b) if a == 0 else a if (a < 0) == (b < 0) else b
    r = Fraction(a) - Fraction(b) * math.floor(Fraction(a) / Fraction(b))
    return round_to(r, t, math.copysign(0.0, b))


def minimum(a: float, b: float) -> float:
    if math.isnan(a) or math.isnan(b):
        return math.nan
    if a == b == 0:
        return -0.0 if is_negative(a) or is_negative(b) else 0.0
    return a if a < b else b


def maximum(a: float, b: float) -> float:
    return -minimum(-a, -b)


def integer(code: str, a: int, b: int, t: Scalar) -> int:
    """Any integer operation; division by zero gives the 0 that a fault leaves."""
    count = b % (1 << t.bits)
    if code in ("floordiv", "mod") and b == 0:
        return 0
    value = {
        "add": lambda: a + b,
        "sub": lambda: a - b,
        "mul": lambda: a * b,
        "floordiv": lambda: a // b,
        "mod": lambda: a % b,
        "min": lambda: a if a < b else b,
        "max": lambda: a if a > b else b,
        "and": lambda: a & b,
        "or": lambda: a | b,
        "xor": lambda: a ^ b,
        "shl": lambda: a << count if count < t.bits else 0,
        "shr": lambda: a >> min(count, t.bits),
        "neg": lambda: -a,
        "abs": lambda: -a if a < 0 else a,
        "not": lambda: ~a,
        "popcount": lambda: (a % (1 << t.bits)).bit_count(),
        "clz": lambda: t.bits - (a % (1 << t.bits)).bit_length(),
        "ctz": lambda: next((n for n in range(t.bits) if a >> n & 1), t.bits),
    }[code]()
    return wrap(value, t)


def to_int(x: float, t: Scalar) -> int:
    """Toward zero, saturating; NaN is 0."""
    if math.isnan(x):
        return 0
    if math.isinf(x):
        return t.max if x > 0 else t.min
    return max(t.min, min(t.max, math.trunc(Fraction(x))))
