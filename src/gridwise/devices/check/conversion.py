"""``cast`` and ``bitcast`` on NumPy arrays, each with a single rounding.

``ml_dtypes`` converts f64 to bf16 and fp8 by way of f32, which rounds twice; here the first step rounds to odd,
so that the second decides alone.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gridwise.ir.types import F16, F32, F64, Scalar

Array = np.ndarray[Any, Any]


def to_wide(a: Array) -> Array:
    """Narrow floats as f32, exactly; f32 and f64 unchanged."""
    return a if a.dtype.itemsize >= 4 else a.astype(np.float32)


def _f32_to_odd(x: Array) -> Array:
    """f64 to f32, and where that is inexact the neighbour whose last bit is one."""
    near = x.astype(np.float32)
    inexact = (near.astype(np.float64) != x) & ~np.isnan(x)
    even = (near.view(np.uint32) & np.uint32(1)) == 0
    toward = np.where(x > near, np.float32(np.inf), np.float32(-np.inf))
    return np.where(inexact & even, np.nextafter(near, toward), near)


def from_wide(x: Array, to: Scalar) -> Array:
    """f32 or f64 rounded to nearest even in ``to``."""
    if x.dtype == np.float64 and to not in (F16, F32, F64):
        x = _f32_to_odd(x)
    return x.astype(to.dtype)


def _int_to_float(a: Array, to: Scalar) -> Array:
    if to in (F32, F64) or a.dtype.itemsize <= 4 or to == F16:
        # f64 holds any 32-bit integer; integers inside f16's range are exact everywhere.
        return a.astype(to.dtype) if to in (F32, F64) else from_wide(a.astype(np.float64), to)
    # 64 bits to a narrow float: fold the low bits into a sticky one, which leaves 53 significant bits.
    low = a.dtype.type(0x7FF)
    sticky = np.where((a & low) != 0, a.dtype.type(0x800), a.dtype.type(0))
    large = (a >= a.dtype.type(1 << 53)) | (a <= -(1 << 53) if a.dtype.kind == "i" else False)
    exact = np.where(large, (a & ~low) | sticky, a)
    return from_wide(exact.astype(np.float64), to)


def _float_to_int(a: Array, to: Scalar) -> Array:
    x = a.astype(np.float64)
    low = x <= float(to.min)
    high = x >= float(to.max)  # for 64 bits float(max) is max + 1: nothing lies between
    inside = ~(low | high) & ~np.isnan(x)
    result = np.where(inside, np.trunc(x), 0.0).astype(to.dtype)
    limits = np.dtype(to.dtype).type
    return np.where(high, limits(to.max), np.where(low, limits(to.min), result))


def cast(a: Array, of: Scalar, to: Scalar) -> Array:
    """The IR's ``cast``: see its row in ``ir/ops.py``."""
    if of == to:
        return a
    if to.kind == "bool":
        return np.asarray((to_wide(a) if of.is_float else a) != 0, np.bool_)
    if of.kind == "bool":
        return a.astype(to.dtype) if not to.is_float else from_wide(a.astype(np.float32), to)
    if of.is_int and to.is_int:
        return a.astype(to.dtype)
    if of.is_int:
        return _int_to_float(a, to)
    if to.is_int:
        return _float_to_int(a, to)
    return from_wide(a.astype(np.float64) if of == F64 else to_wide(a), to)


def bitcast(a: Array, to: Scalar) -> Array:
    """The same bits as another type of equal width."""
    return np.ascontiguousarray(a).view(to.dtype)


def constant(value: bool | int | float, type: Scalar) -> Array:
    """A Python number as an array of one lane. Integers are in range already; floats round once."""
    if type.is_float:
        # A decimal constant is an f64 to begin with, as a Python float is.
        return cast(np.array([value], np.float64), F64, type)
    return np.array([value], type.dtype)
