"""``gridwise.math``: the functions of Python's ``math`` and NumPy's ufuncs that make sense for one value.

Each is declared here once. Inside a kernel a call becomes the IR operation named by ``code``; outside, calling
it runs the reference on NumPy values. On devices the functions are this project's own arithmetic
(``passes/math``), the same on every target, with the bounds in ``ulp``; ``docs/guide/math.md`` lists them.

Float functions take and return one float type: f16, bf16, f32 or f64. ``floor`` and its kin return a float, as
NumPy's do; ``int()`` or ``i32()`` makes an integer of it.
"""

from __future__ import annotations

import math as _constants
from collections.abc import Callable
from typing import Any

from ..operation import Operation
from . import reference as _reference
from .accuracy import bounds as _bounds

OPS: dict[str, Operation] = {}  # by the name written in a program
BY_FN: dict[str, Operation] = {}  # by the `fn` attribute of the IR's `math` operation

e, pi, tau, inf, nan = _constants.e, _constants.pi, _constants.tau, _constants.inf, _constants.nan


def _declare(
    name: str,
    signature: str,
    doc: str,
    *,
    code: str = "math",
    types: str = "float",
    fn: str | None = None,
    reference: Callable[..., Any] | None = None,
) -> Operation:
    fn = (fn or name) if code == "math" else ""
    meaning = reference or getattr(_reference, fn or name)
    operation = Operation(name, code, signature, types, meaning, fn, doc, _bounds(fn or name))
    OPS[name] = operation
    if code == "math":
        BY_FN.setdefault(fn, operation)
    return operation


# ---- roots, powers, exponentials, logarithms -----------------------------------------------------
sqrt = _declare("sqrt", "T->T", "The square root, correctly rounded; NaN below zero.")
rsqrt = _declare("rsqrt", "T->T", "1 / sqrt(x); inf at 0.")
cbrt = _declare("cbrt", "T->T", "The cube root, of negative numbers too.")
exp = _declare("exp", "T->T", "e**x.")
exp2 = _declare("exp2", "T->T", "2**x.")
exp10 = _declare("exp10", "T->T", "10**x.")
expm1 = _declare("expm1", "T->T", "e**x - 1, accurate near 0.")
log = _declare("log", "T->T", "The natural logarithm; -inf at 0, NaN below.")
log2 = _declare("log2", "T->T", "The logarithm to base 2; exact at powers of two.")
log10 = _declare("log10", "T->T", "The logarithm to base 10.")
log1p = _declare("log1p", "T->T", "log(1 + x), accurate near 0.")
pow = _declare("pow", "TT->T", "x**y by IEEE's rules: pow(x, 0) and pow(1, y) are 1; a negative x needs an integral y.")
hypot = _declare("hypot", "TT->T", "sqrt(x*x + y*y) without overflow; inf if either is infinite.")
logaddexp = _declare("logaddexp", "TT->T", "log(exp(x) + exp(y)) without overflow.")
sigmoid = _declare("sigmoid", "T->T", "1 / (1 + exp(-x)).")

# ---- trigonometry and hyperbolics ----------------------------------------------------------------
sin = _declare("sin", "T->T", "The sine of an angle in radians; accurate for every finite x.")
cos = _declare("cos", "T->T", "The cosine of an angle in radians; accurate for every finite x.")
tan = _declare("tan", "T->T", "The tangent of an angle in radians; accurate for every finite x.")
sinpi = _declare("sinpi", "T->T", "sin(pi * x); exact zeros at integers.")
cospi = _declare("cospi", "T->T", "cos(pi * x); exact zeros halfway between integers.")
asin = _declare("asin", "T->T", "The arc sine, in [-pi/2, pi/2]; NaN outside [-1, 1].")
acos = _declare("acos", "T->T", "The arc cosine, in [0, pi]; NaN outside [-1, 1].")
atan = _declare("atan", "T->T", "The arc tangent, in [-pi/2, pi/2].")
atan2 = _declare("atan2", "TT->T", "atan2(y, x): the angle of the point (x, y), in [-pi, pi].")
sinh = _declare("sinh", "T->T", "The hyperbolic sine.")
cosh = _declare("cosh", "T->T", "The hyperbolic cosine.")
tanh = _declare("tanh", "T->T", "The hyperbolic tangent.")
asinh = _declare("asinh", "T->T", "The inverse hyperbolic sine.")
acosh = _declare("acosh", "T->T", "The inverse hyperbolic cosine; NaN below 1.")
atanh = _declare("atanh", "T->T", "The inverse hyperbolic tangent; infinite at -1 and 1, NaN outside.")
degrees = _declare("degrees", "T->T", "Radians to degrees.")
radians = _declare("radians", "T->T", "Degrees to radians.")

# ---- special functions ---------------------------------------------------------------------------
erf = _declare("erf", "T->T", "The error function.")
erfc = _declare("erfc", "T->T", "1 - erf(x), accurate in its tail.")
lgamma = _declare("lgamma", "T->T", "log(abs(gamma(x))); inf at 0 and the negative integers.")
gamma = _declare("gamma", "T->T", "The gamma function; infinite at 0 (its sign), NaN at the negative integers.")

# ---- rounding and remainders ---------------------------------------------------------------------
floor = _declare("floor", "T->T", "The greatest integral value not above x, as a float.")
ceil = _declare("ceil", "T->T", "The least integral value not below x, as a float.")
trunc = _declare("trunc", "T->T", "x without its fraction, as a float.")
rint = _declare("rint", "T->T", "The nearest integral value, halves to even, as a float.")
round = _declare("round", "T->T", "The same as rint: halves to even, as Python's and NumPy's.", fn="rint")
round_away = _declare("round_away", "T->T", "The nearest integral value, halves away from zero (C's round).")
fract = _declare("fract", "T->T", "x - floor(x).")
fmod = _declare("fmod", "TT->T", "The remainder of x / y cut to an integer; the sign of x. Exact.")
remainder = _declare("remainder", "TT->T", "IEEE remainder: x minus the nearest integer multiple of y. Exact.")

# ---- sign, bits and order ------------------------------------------------------------------------
copysign = _declare("copysign", "TT->T", "The magnitude of x with the sign of y.")
ldexp = _declare("ldexp", "TI->T", "x * 2**n with one rounding; n is an i32.")
nextafter = _declare("nextafter", "TT->T", "The next representable value after x in the direction of y.")
sign = _declare("sign", "T->T", "-1, 0 or 1; a zero or NaN is returned as it is.", types="number")
fabs = _declare("fabs", "T->T", "The absolute value.", code="abs", reference=_reference.absolute)
fmin = _declare("fmin", "TT->T", "The smaller; a NaN is ignored if the other is a number. -0.0 is below 0.0.")
fmax = _declare("fmax", "TT->T", "The larger; a NaN is ignored if the other is a number. 0.0 is above -0.0.")
isnan = _declare("isnan", "T->B", "Whether x is not a number.")
isinf = _declare("isinf", "T->B", "Whether x is infinite.")
isfinite = _declare("isfinite", "T->B", "Whether x is neither infinite nor NaN.")
signbit = _declare("signbit", "T->B", "Whether the sign bit is set (true for -0.0).")
fma = _declare("fma", "TTT->T", "x * y + z with one rounding.", code="fma")

# ---- graphics helpers ----------------------------------------------------------------------------
clamp = _declare("clamp", "TTT->T", "min(max(x, low), high).", types="number")
lerp = _declare("lerp", "TTT->T", "(1 - t) * a + t * b: a at 0, b at 1.")
step = _declare("step", "TT->T", "step(edge, x): 0 below the edge, else 1.")
smoothstep = _declare("smoothstep", "TTT->T", "smoothstep(low, high, x): 0 to 1 by a cubic with flat ends.")

# ---- integers ------------------------------------------------------------------------------------
popcount = _declare("popcount", "T->T", "The number of one bits.", code="popcount", types="int")
clz = _declare("clz", "T->T", "Leading zero bits; the width for 0.", code="clz", types="int")
ctz = _declare("ctz", "T->T", "Trailing zero bits; the width for 0.", code="ctz", types="int")

NATIVE = frozenset("sqrt floor ceil trunc rint copysign isnan isinf isfinite fmin fmax".split())
"""The ``fn`` values that targets emit themselves; ``passes/math`` replaces every other by arithmetic."""

__all__ = [*OPS, "e", "inf", "nan", "pi", "tau"]
