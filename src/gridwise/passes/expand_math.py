"""Replaces every math function that targets do not have by arithmetic (``passes/math``).

Also float ``//`` and ``%``, which no target has exactly. What is left for targets is ``lang.math.NATIVE``.
"""

from __future__ import annotations

from collections.abc import Callable

from gridwise.ir import Builder, Kernel, Op, Value
from gridwise.ir.rewrite import KEEP, rewrite
from gridwise.ir.types import BF16, F16, F32, Scalar
from gridwise.lang.math import NATIVE

from .math import exponential, inverse, logarithm, power, rounding, special, trigonometric
from .math.expr import E

Function = Callable[..., E]

FUNCTIONS: dict[str, Function] = {
    name: getattr(module, name)
    for module, names in {
        exponential: "exp exp2 exp10 expm1 sigmoid",
        logarithm: "log log2 log10 log1p logaddexp",
        power: "pow",
        trigonometric: "sinpi cospi",
        inverse: "asin acos atan atan2 sinh cosh tanh asinh acosh atanh rsqrt cbrt hypot degrees radians",
        special: "erf erfc gamma lgamma",
        rounding: "fmod remainder ldexp round_away fract lerp smoothstep",
    }.items()
    for name in names.split()
}
CHOICES: dict[str, Function] = {name: getattr(rounding, name) for name in "nextafter sign signbit clamp step".split()}
ANGLES = {"sin": trigonometric.sin_of, "cos": trigonometric.cos_of, "tan": trigonometric.tan_of}
PYTHON = {"mod": rounding.python_mod, "floordiv": rounding.python_floordiv}


def expand_math(kernel: Kernel) -> None:
    """Rewrite in place."""
    angles: dict[tuple[int, Value], trigonometric.Angle] = {}  # sin and cos of one value share its reduction

    def reduced(x: E) -> trigonometric.Angle:
        key = (id(x.b.region), x.v)
        if key not in angles:
            angles[key] = trigonometric.reduce(x)
        return angles[key]

    def visit(op: Op, builder: Builder) -> object:
        if op.result is None or not isinstance(op.result.type, Scalar):
            return KEEP
        args = [E(builder, v) for v in op.operands]
        if op.code in PYTHON and args[0].type.is_float:
            return _through_f32(PYTHON[op.code], args).v
        if op.code != "math" or op.attrs["fn"] in NATIVE:
            return KEEP
        fn = op.attrs["fn"]
        if fn in CHOICES:
            return CHOICES[fn](*args).v
        if fn in ANGLES:
            return _through_f32(lambda x: ANGLES[fn](x, reduced(x)), args).v
        return _through_f32(FUNCTIONS[fn], args).v

    rewrite(kernel, visit)


def _through_f32(fn: Function, args: list[E]) -> E:
    """16-bit floats are computed in f32 and rounded once."""
    narrow = args[0].type
    if narrow not in (F16, BF16):
        return fn(*args)
    return fn(*(a.to(F32) if a.type == narrow else a for a in args)).to(narrow)
