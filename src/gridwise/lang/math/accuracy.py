"""Documented error bounds of the math functions, in units in the last place, per target and type.

``tests/math`` measures them against exact values, with products fused and not, and fails where one is
exceeded. A function that is not in ``ULP`` is exact: correctly rounded, or a choice among its arguments.

An ulp is the spacing of floats at the true result, except for two functions that cancel: ``logaddexp``, where
it is taken at the larger of the result and the arguments, and ``lgamma`` of a negative argument, where it is
taken at the larger of the result, lgamma(-x) and 1.
"""

from __future__ import annotations

TARGETS = ("check", "cpu", "ptx", "wgsl")

ULP: dict[str, tuple[float, float]] = {  # function: (f32, f64)
    "rsqrt": (1.5, 1.5),
    "cbrt": (1, 1),
    "exp": (1.5, 1.5),
    "exp2": (1.5, 1.5),
    "exp10": (1.5, 1.5),
    "expm1": (2, 2),
    "log": (1, 1),
    "log2": (1.5, 1.5),
    "log10": (1.5, 1.5),
    "log1p": (2, 1.5),
    "pow": (1.5, 1.5),
    "hypot": (1.5, 1.5),
    "logaddexp": (2, 2),
    "sigmoid": (2.5, 2.5),
    "sin": (1.5, 1.5),
    "cos": (1.5, 1.5),
    "tan": (3, 3),
    "sinpi": (1.5, 1.5),
    "cospi": (1.5, 1.5),
    "asin": (1.5, 1.5),
    "acos": (1, 1),
    "atan": (2, 1.5),
    "atan2": (2, 2),
    "sinh": (2, 2),
    "cosh": (2, 2),
    "tanh": (2, 2),
    "asinh": (2.5, 2.5),
    "acosh": (2.5, 2.5),
    "atanh": (2.5, 2.5),
    "degrees": (1, 1),
    "radians": (1, 1),
    "erf": (1.5, 1.5),
    "erfc": (4, 4),
    "lgamma": (6, 6),
    "gamma": (6, 6),
}


def bounds(fn: str) -> dict[str, dict[str, float]]:
    """{target: {type name: ulp}} of one function. f16 and bf16 are computed in f32 and rounded once more."""
    if fn not in ULP:
        return {}
    f32, f64 = ULP[fn]
    return {t: {"f16": 0.51, "bf16": 0.51, "f32": f32, "f64": f64} for t in TARGETS}
