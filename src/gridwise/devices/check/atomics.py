"""Read-modify-write for many lanes at once, as if they came one after the other in lane order.

Lanes are grouped by address. Few addresses with many lanes each are done an address at a time by accumulation;
many addresses with few lanes each are done a rank at a time (the first lane of every address, then the second, ...).
Either way the result is that of the sequence, rounding included.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gridwise.ir.types import Scalar

from .arithmetic import function, unsigned_view

Array = np.ndarray[Any, Any]

_ACCUMULATE: dict[str, np.ufunc] = {
    "add": np.add,
    "min": np.minimum,
    "max": np.maximum,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
}


def _float_extreme(fn: str) -> Callable[[Array, Array], Array]:
    """min or max that orders -0.0 below +0.0 and takes the number where the other operand is a NaN."""

    def extreme(old: Array, value: Array) -> Array:
        return np.where(np.isnan(value), old, np.where(np.isnan(old), value, plain(old, value)))

    def plain(a: Array, b: Array) -> Array:
        same = np.where(np.signbit(a) == (fn == "min"), a, b)
        pick = np.minimum if fn == "min" else np.maximum
        return np.where(a == b, same, pick(a, b))

    return extreme


def combine(fn: str, type: Scalar) -> Callable[[Array, Array], Array]:
    """The new value from the old one and the operand."""
    if fn == "exchange":
        return lambda old, value: value
    if fn in ("min", "max") and type.is_float:
        return _float_extreme(fn)
    return function(fn, type)


def update(typed: Array, at: Array, fn: str, type: Scalar, values: list[Array], needed: bool) -> Array | None:
    """Apply ``fn`` at every position in lane order; the old value of each lane, unless not ``needed``."""
    if at.size == 0:
        return np.zeros(0, typed.dtype)
    if fn == "compare_exchange":
        return _compare_exchange(typed, at, values[0], values[1])
    operand = values[0]
    if fn == "sub" and type.is_int:
        fn, operand = "add", np.negative(operand)
    if not needed and type.is_int and fn in _ACCUMULATE:
        _ACCUMULATE[fn].at(typed, at, operand)
        return None
    f = combine(fn, type)
    order = np.argsort(at, kind="stable")
    sorted_at = at[order]
    first = np.concatenate(([True], sorted_at[1:] != sorted_at[:-1]))
    starts = np.flatnonzero(first)
    old = np.empty(at.size, typed.dtype)
    if starts.size == at.size:  # no two lanes meet
        old = typed[at]
        typed[at] = f(old, operand)
        return old
    lengths = np.diff(np.append(starts, at.size))
    longest = int(lengths.max())
    if starts.size < longest and (fn in ("add", "and", "or", "xor", "exchange") or type.is_int):
        _by_address(typed, sorted_at, starts, lengths, fn, order, operand, old, type)
        return old
    for rank in range(longest):
        lanes = order[starts[lengths > rank] + rank]
        old[lanes] = typed[at[lanes]]
        typed[at[lanes]] = f(old[lanes], operand[lanes])
    return old


def _by_address(
    typed: Array, sorted_at: Array, starts: Array, lengths: Array, fn: str, order: Array, operand: Array, old: Array,
    type: Scalar,
) -> None:
    f = combine(fn, type)
    for start, length in zip(starts.tolist(), lengths.tolist(), strict=True):
        where = sorted_at[start]
        lanes = order[start : start + length]
        chain = np.concatenate((typed[where : where + 1], operand[lanes]))
        if fn == "exchange":
            after = chain
        elif fn in _ACCUMULATE and (type.is_int or type.bits >= 32):
            after = _ACCUMULATE[fn].accumulate(chain, dtype=chain.dtype)
        else:  # narrow floats round after each step
            after = chain.copy()
            for n in range(1, after.size):
                after[n : n + 1] = f(after[n - 1 : n], chain[n : n + 1])
        old[lanes] = after[:-1]
        typed[where] = after[-1]


def _compare_exchange(typed: Array, at: Array, expected: Array, desired: Array) -> Array:
    """Bits are compared, as hardware does: NaN equals itself, -0.0 differs from 0.0."""
    bits = unsigned_view(typed)
    want, new = unsigned_view(np.ascontiguousarray(expected)), unsigned_view(np.ascontiguousarray(desired))
    memory: dict[int, int] = {}
    old = []
    unique = np.unique(at)
    memory = dict(zip(unique.tolist(), bits[unique].tolist(), strict=True))
    for where, e, d in zip(at.tolist(), want.tolist(), new.tolist(), strict=True):
        now = memory[where]
        old.append(now)
        if now == e:
            memory[where] = d
    bits[unique] = np.array([memory[w] for w in unique.tolist()], bits.dtype)
    return np.array(old, bits.dtype).view(typed.dtype)
