"""Floats of 8 and 16 bits by integer operations: exact on any machine, and vectorisable.

Formats: IEEE binary16 (f16), bfloat16 (bf16), and the OCP 8-bit floats e4m3fn (no infinity, one NaN) and e5m2.
The conversions follow the rounding constructions of F. Giesen ("float->half variants"): adding a magic number
lets the adder round subnormals, and adding half a unit minus one plus the last bit rounds to nearest even.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gridwise.ir.types import BOOL, F32, F64, I64, U8, U16, U32, U64, Scalar

if TYPE_CHECKING:
    from .arith import Arith

# mantissa bits, exponent bias, has infinities
FORMATS = {"f16": (10, 15, True), "bf16": (7, 127, True), "f8e4m3": (3, 7, False), "f8e5m2": (2, 15, True)}


def bits(value: float, t: Scalar) -> int:
    """The pattern of ``value`` rounded to ``t``."""
    with np.errstate(over="ignore"):
        array = np.asarray(value, np.float64).astype(t.dtype)
    return int(array.view(np.uint8 if t.bits == 8 else np.uint16))


class _Words:
    """Shorthand for u32 operations on lanes."""

    def __init__(self, arith: Arith, lanes: int):
        self.a, self.lanes = arith, lanes

    def n(self, value: int) -> str:
        return self.a.const(value, U32, self.lanes)

    def op(self, code: str, x: str, y: str) -> str:
        return self.a.binary(code, U32, x, y, self.lanes)

    def lt(self, x: str, y: str) -> str:
        return self.a.compare("lt", U32, x, y, self.lanes)

    def pick(self, cond: str, x: str, y: str) -> str:
        return self.a.select(cond, x, y, U32, self.lanes)

    def of(self, x: str) -> str:
        return self.a.bitcast(F32, U32, x, self.lanes)

    def float(self, x: str) -> str:
        return self.a.bitcast(U32, F32, x, self.lanes)


def _word(t: Scalar) -> Scalar:
    return U8 if t.bits == 8 else U16


def widen(arith: Arith, t: Scalar, a: str, lanes: int) -> str:
    """The f32 equal to a small float held as its bits."""
    w = _Words(arith, lanes)
    mantissa, bias, infinite = FORMATS[t.name]
    x = arith.cast(_word(t), U32, a, lanes)
    if t.name == "bf16":
        return w.float(w.op("shl", x, w.n(16)))
    top = 1 << (t.bits - 1)
    sign = w.op("shl", w.op("and", x, w.n(top)), w.n(32 - t.bits))
    magnitude = w.op("and", x, w.n(top - 1))
    # As an f32 pattern the magnitude is too small by 2**(127 - bias), subnormals included.
    scaled = w.float(w.op("shl", magnitude, w.n(23 - mantissa)))
    ty = arith.type(F32, lanes)
    value = w.of(arith.fn.value(f"fmul {ty} {scaled}, {arith.const(2.0 ** (127 - bias), F32, lanes)}"))
    if infinite:
        special = arith.compare("ge", U32, magnitude, w.n((top - 1) >> mantissa << mantissa), lanes)
        value = w.pick(special, w.op("or", value, w.n(0x7F80_0000)), value)
    else:
        special = arith.compare("eq", U32, magnitude, w.n(top - 1), lanes)
        value = w.pick(special, w.n(0x7FC0_0000), value)
    return w.float(w.op("or", value, sign))


def narrow(arith: Arith, t: Scalar, a: str, lanes: int) -> str:
    """An f32 rounded to nearest even, as the bits of a small float. Overflow gives inf (NaN in e4m3)."""
    w = _Words(arith, lanes)
    mantissa, bias, infinite = FORMATS[t.name]
    drop = 23 - mantissa
    x = w.of(a)
    size = w.op("and", x, w.n(0x7FFF_FFFF))
    half = w.op("add", size, w.n((1 << (drop - 1)) - 1))
    even = w.op("and", w.op("shr", size, w.n(drop)), w.n(1))
    rounded = w.op("add", half, even)
    if t.name == "bf16":
        result = w.op("shr", rounded, w.n(16))
        result = w.pick(w.lt(w.n(0x7F80_0000), size), w.n(0x7FC0), result)
    else:
        normal = w.op("shr", w.op("sub", rounded, w.n((127 - bias) << 23)), w.n(drop))
        magic = (127 - bias + drop + 1) << 23
        ty = arith.type(F32, lanes)
        total = arith.fn.value(f"fadd {ty} {w.float(size)}, {w.float(w.n(magic))}")
        subnormal = w.op("sub", w.of(total), w.n(magic))
        result = w.pick(w.lt(size, w.n((128 - bias) << 23)), subnormal, normal)
        top = (1 << (t.bits - 1)) - 1
        inf = top >> mantissa << mantissa
        if infinite:
            result = w.pick(w.lt(size, w.n((127 + bias + 1) << 23)), result, w.n(inf))
            result = w.pick(w.lt(w.n(0x7F80_0000), size), w.n(inf | 1 << (mantissa - 1)), result)
        else:
            # e4m3fn: 448 is the largest; what rounds beyond it is NaN, as ml_dtypes has it.
            fits = w.lt(size, w.n((127 + bias + 2) << 23))
            result = w.pick(fits, arith.binary("min", U32, result, w.n(top), lanes), w.n(top))
    sign = w.op("shl", w.op("shr", x, w.n(31)), w.n(t.bits - 1))
    return arith.cast(U32, _word(t), w.op("or", result, sign), lanes)


def round_to_odd(arith: Arith, a: str, lanes: int) -> str:
    """f64 to f32 so that a later rounding to a smaller float is as if from the f64: inexact results are odd."""
    w = _Words(arith, lanes)
    near = arith.cast(F64, F32, a, lanes)
    back = arith.cast(F32, F64, near, lanes)
    inexact = arith.compare("ne", F64, back, a, lanes)
    ty = arith.type(F64, lanes)
    inexact = arith.binary("and", BOOL, inexact, arith.fn.value(f"fcmp ord {ty} {a}, {a}"), lanes)
    larger = arith.compare(
        "gt", F64, arith.unary("abs", F64, back, lanes), arith.unary("abs", F64, a, lanes), lanes
    )
    x = w.of(near)
    toward_zero = w.pick(larger, w.op("sub", x, w.n(1)), x)
    return w.float(w.pick(inexact, w.op("or", toward_zero, w.n(1)), x))


def sticky(arith: Arith, t: Scalar, a: str, lanes: int) -> str:
    """A 64-bit integer changed, where it is too long for an f64, to one that f64 holds exactly.

    The bits dropped are gathered into the lowest kept one, far below what any small float keeps.
    """

    def n(value: int) -> str:
        return arith.const(value, t, lanes)

    size = arith.unary("abs", t, a, lanes) if t == I64 else a
    long = arith.compare("ge", U64, size, arith.const(1 << 53, U64, lanes), lanes)
    low = arith.binary("and", t, a, n(0xFFF), lanes)
    some = arith.compare("ne", t, low, n(0), lanes)
    kept = arith.binary("sub", t, a, low, lanes)
    marked = arith.binary("or", t, kept, n(0x1000), lanes)
    return arith.select(long, arith.select(some, marked, kept, t, lanes), a, t, lanes)

