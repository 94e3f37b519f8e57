"""The meaning of every scalar operation, on NumPy arrays: one lane an element.

``function(code, type)`` gives a callable of arrays of ``type.dtype``; the result keeps that dtype (bool for
comparisons). f16 and bf16 are computed in f32 and rounded after each operation, f32 in f32, f64 in f64.
Callers silence NumPy's warnings with ``np.errstate(all="ignore")``: nothing here is undefined.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np

from gridwise.ir.types import F64, Scalar

from .conversion import from_wide, to_wide

Array = np.ndarray[Any, Any]
Function = Callable[..., Array]


def unsigned_view(x: Array) -> Array:
    """The bits of ``x`` as unsigned integers of its width."""
    return x.view(np.dtype(f"u{x.dtype.itemsize}"))


# -- integers ------------------------------------------------------------------------------------------------
def _int_floordiv(a: Array, b: Array) -> Array:
    zero = b == 0
    q: Array = np.floor_divide(a, np.where(zero, b.dtype.type(1), b))
    return np.where(zero, b.dtype.type(0), q)


def _int_mod(a: Array, b: Array) -> Array:
    zero = b == 0
    r: Array = np.remainder(a, np.where(zero, b.dtype.type(1), b))
    return np.where(zero, b.dtype.type(0), r)


def _shl(a: Array, b: Array) -> Array:
    bits = a.dtype.itemsize * 8
    count = unsigned_view(b)
    over = count >= bits
    shifted: Array = np.left_shift(unsigned_view(a), np.where(over, count.dtype.type(0), count))
    return np.where(over, shifted.dtype.type(0), shifted).view(a.dtype)


def _shr(a: Array, b: Array) -> Array:
    bits = a.dtype.itemsize * 8
    count = unsigned_view(b)
    over = count >= bits
    if a.dtype.kind == "i":
        most = np.where(over, count.dtype.type(bits - 1), count)
        return np.asarray(np.right_shift(a, most.astype(a.dtype)))
    shifted: Array = np.right_shift(a, np.where(over, count.dtype.type(0), count))
    return np.where(over, a.dtype.type(0), shifted)


_ONES = np.array([bin(n).count("1") for n in range(256)], np.uint8)


def _popcount(a: Array) -> Array:
    flat = np.ascontiguousarray(a).reshape(-1)
    counts = _ONES[flat.view(np.uint8)].reshape(flat.size, a.dtype.itemsize).sum(axis=1, dtype=np.int64)
    return np.asarray(counts.astype(a.dtype).reshape(a.shape))


def _clz(a: Array) -> Array:
    x = unsigned_view(a).copy()
    bits, step = a.dtype.itemsize * 8, 1
    while step < bits:  # smear the highest one bit downwards
        x |= x >> x.dtype.type(step)
        step *= 2
    zeros: Array = x.dtype.type(bits) - _popcount(x)
    return zeros.astype(a.dtype)


def _ctz(a: Array) -> Array:
    x = unsigned_view(a)
    below = ~x & (x - x.dtype.type(1))  # ones exactly under the lowest one bit; all ones for 0
    return _popcount(below).astype(a.dtype)


# -- floats --------------------------------------------------------------------------------------------------
def _float_min(a: Array, b: Array) -> Array:
    return np.where(a == b, np.where(np.signbit(a), a, b), np.minimum(a, b))


def _float_max(a: Array, b: Array) -> Array:
    return np.where(a == b, np.where(np.signbit(a), b, a), np.maximum(a, b))


def _float_neg(a: Array) -> Array:
    bits = unsigned_view(a)
    return np.asarray(bits ^ bits.dtype.type(1 << (a.dtype.itemsize * 8 - 1))).view(a.dtype)


def _float_abs(a: Array) -> Array:
    bits = unsigned_view(a)
    return np.asarray(bits & bits.dtype.type((1 << (a.dtype.itemsize * 8 - 1)) - 1)).view(a.dtype)


def _round_to_odd_sum(a: Array, b: Array) -> Array:
    """a + b in f64, and where that is inexact the neighbour whose last bit is one (sticky rounding)."""
    s: Array = a + b
    t = s - a
    error: Array = (a - (s - t)) + (b - t)
    even = (np.ascontiguousarray(s).view(np.uint64) & np.uint64(1)) == 0
    step = np.isfinite(s) & (error != 0) & even
    return np.where(step, np.nextafter(s, np.where(error > 0, np.inf, -np.inf)), s)


def _fma_f64_exact(a: float, b: float, c: float) -> float:
    """One rounding, by exact rationals: for operands near the ends of the range."""
    exact = Fraction(a) * Fraction(b) + Fraction(c)
    if exact == 0:
        return a * b + c  # the sign of an exact zero follows IEEE's own rules
    try:
        return float(exact)
    except OverflowError:
        return float("inf") if exact > 0 else float("-inf")


def _fma_f64(a: Array, b: Array, c: Array) -> Array:
    """Correctly rounded a * b + c in f64 (Boldo and Melquiond, "Emulation of FMA", IEEE TC 57(4), 2008)."""
    a, b, c = np.broadcast_arrays(a, b, c)
    split = 134217729.0  # 2**27 + 1: Veltkamp's constant
    ah = a * split - (a * split - a)
    bh = b * split - (b * split - b)
    al, bl = a - ah, b - bh
    uh = a * b
    ul = al * bl - (((uh - ah * bh) - al * bh) - ah * bl)
    th = c + ul
    t = th - c
    tl = (c - (th - t)) + (ul - t)
    vh = uh + th
    t = vh - uh
    vl = (uh - (vh - t)) + (th - t)
    result = np.array(vh + _round_to_odd_sum(tl, vl))
    # Outside this box a partial product may overflow or lose bits below the smallest subnormal.
    inside = (np.abs(uh) < 1e290) & (np.abs(uh) > 1e-250) & (np.abs(c) < 1e290) & ((np.abs(c) > 1e-250) | (c == 0))
    inside &= (np.abs(a) < 1e290) & (np.abs(b) < 1e290)
    finite = np.isfinite(a) & np.isfinite(b) & np.isfinite(c)
    plain = ~finite
    result[plain] = (a * b + c)[plain]
    for n in np.flatnonzero(finite & ~inside):
        result.flat[n] = _fma_f64_exact(float(a.flat[n]), float(b.flat[n]), float(c.flat[n]))
    return result


def _fma(type: Scalar) -> Function:
    if type == F64:
        return _fma_f64

    def fma(a: Array, b: Array, c: Array) -> Array:
        # The product of two 24-bit significands is exact in f64; the sum is rounded to odd, so that the
        # second rounding, to the type itself, is the only one that counts.
        x, y, z = (v.astype(np.float64) for v in (a, b, c))
        return from_wide(_round_to_odd_sum(x * y, z), type)

    return fma


def _float_floordiv(a: Array, b: Array) -> Array:
    """NumPy follows Python here, zero and infinite divisors included; f32 by way of f64, so that it is exact."""
    if a.dtype == np.float64:
        return np.asarray(np.floor_divide(a, b))
    return np.floor_divide(a.astype(np.float64), b.astype(np.float64)).astype(np.float32)


def _narrow(f: Function, type: Scalar) -> Function:
    """``f`` computed in f32 and rounded to a 16-bit (or 8-bit) float."""

    def rounded(*args: Array) -> Array:
        return from_wide(f(*(to_wide(a) for a in args)), type)

    return rounded


_INT: dict[str, Function] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "floordiv": _int_floordiv,
    "mod": _int_mod,
    "neg": np.negative,
    "abs": np.abs,
    "min": np.minimum,
    "max": np.maximum,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
    "not": np.invert,
    "shl": _shl,
    "shr": _shr,
    "popcount": _popcount,
    "clz": _clz,
    "ctz": _ctz,
}

_BOOL: dict[str, Function] = {
    "and": np.logical_and,
    "or": np.logical_or,
    "xor": np.logical_xor,
    "not": np.logical_not,
    "min": np.logical_and,
    "max": np.logical_or,
}

_FLOAT: dict[str, Function] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "div": np.divide,
    "floordiv": _float_floordiv,
    "mod": np.remainder,
    "min": _float_min,
    "max": _float_max,
}

_COMPARE: dict[str, Function] = {
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
}

CODES = frozenset(_INT) | frozenset(_FLOAT) | frozenset(_COMPARE) | {"fma"}


@cache
def function(code: str, type: Scalar) -> Function:
    """What ``code`` does to operands of ``type``; KeyError if that pair has no meaning."""
    if code in _COMPARE:
        f = _COMPARE[code]
        if type.is_float and type.bits < 32:
            return lambda a, b: np.asarray(f(to_wide(a), to_wide(b)), np.bool_)
        return f
    if type.kind == "bool":
        return _BOOL[code]
    if type.is_int:
        return _INT[code]
    if code == "neg":
        return _float_neg
    if code == "abs":
        return _float_abs
    if code == "fma":
        return _fma(type)
    return _narrow(_FLOAT[code], type) if type.bits < 32 else _FLOAT[code]
