"""Documented error bounds of the math functions, in units in the last place, per target and type.

The tests measure against exact values and fail where a bound is exceeded. Functions not in ``ULP`` are exact:
correctly rounded, or a choice among their arguments.
"""

from __future__ import annotations

TARGETS = ("check", "cpu", "ptx", "wgsl")

ULP: dict[str, tuple[float, float]] = {  # function: (f32, f64)
    "rsqrt": (2, 2),
    "cbrt": (2, 2),
    "exp": (2, 2),
    "exp2": (2, 2),
    "exp10": (2, 2),
    "expm1": (2, 2),
    "log": (2, 2),
    "log2": (2, 2),
    "log10": (2, 2),
    "log1p": (2, 2),
    "pow": (2, 2),
    "hypot": (2, 2),
    "logaddexp": (4, 4),
    "sigmoid": (3, 3),
    "sin": (2, 2),
    "cos": (2, 2),
    "tan": (2, 2),
    "sinpi": (2, 2),
    "cospi": (2, 2),
    "asin": (2, 2),
    "acos": (2, 2),
    "atan": (2, 2),
    "atan2": (2, 2),
    "sinh": (3, 3),
    "cosh": (3, 3),
    "tanh": (3, 3),
    "asinh": (3, 3),
    "acosh": (3, 3),
    "atanh": (3, 3),
    "degrees": (1, 1),
    "radians": (1, 1),
    "erf": (2, 2),
    "erfc": (4, 4),
    "lgamma": (4, 4),
    "gamma": (4, 4),
    "lerp": (2, 2),
    "smoothstep": (4, 4),
}


def bounds(fn: str) -> dict[str, dict[str, float]]:
    """{target: {type name: ulp}} of one function. f16 and bf16 are computed in f32 and rounded once more."""
    if fn not in ULP:
        return {}
    f32, f64 = ULP[fn]
    return {t: {"f16": 0.51, "bf16": 0.51, "f32": f32, "f64": f64} for t in TARGETS}
