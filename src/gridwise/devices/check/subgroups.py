"""Subgroup operations: consecutive threads of a block, ``size`` at a time; the last subgroup may be short.

Lane values arrive block-major. They are padded to whole subgroups, so that every operation is a loop over the
lanes of a subgroup with all subgroups side by side.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gridwise.ir.types import Scalar

from .arithmetic import function
from .conversion import constant

Array = np.ndarray[Any, Any]


class Subgroups:
    """The division of a batch of ``blocks`` blocks of ``threads`` threads into subgroups."""

    def __init__(self, blocks: int, threads: int, size: int):
        self.blocks, self.threads, self.size = blocks, threads, size
        self.each = -(-threads // size)  # subgroups a block
        self.rank = np.arange(blocks * threads) % threads % size
        self.extent = self.rows(np.ones(blocks * threads, np.bool_), False)

    def rows(self, lanes: Array, fill: Any) -> Array:
        """(subgroups, size): the lanes of each subgroup, padded."""
        padded = np.full((self.blocks, self.each * self.size), fill, lanes.dtype)
        padded[:, : self.threads] = lanes.reshape(self.blocks, self.threads)
        return padded.reshape(self.blocks * self.each, self.size)

    def lanes(self, rows: Array) -> Array:
        """The inverse of ``rows``."""
        return np.ascontiguousarray(rows.reshape(self.blocks, -1)[:, : self.threads]).reshape(-1)

    # -- operations ------------------------------------------------------------------------------------------
    def divergent(self, active: Array) -> Array:
        """Lanes of subgroups of which some threads are active and some are not."""
        rows = self.rows(active, False)
        some: Array = rows.any(axis=1) & (rows != self.extent).any(axis=1)
        return self.lanes(np.repeat(some[:, None], self.size, axis=1))

    def shuffle(self, fn: str, value: Array, source: Array, active: Array) -> Array:
        """Each lane's value from another lane; its own where that lane is outside the subgroup or not active."""
        rows = self.rows(value, value.dtype.type(0))
        offset = self.rows(source.astype(np.int64), 0)
        own = np.arange(self.size)[None, :]
        lane = {
            "shuffle": offset,
            "broadcast": offset,
            "shuffle_xor": own ^ offset,
            "shuffle_up": own - offset,
            "shuffle_down": own + offset,
        }[fn]
        inside = (lane >= 0) & (lane < self.size)
        inside = inside & np.take_along_axis(self.rows(active, False), np.where(inside, lane, 0), axis=1)
        lane = np.where(inside, lane, own)
        return self.lanes(np.take_along_axis(rows, lane, axis=1))

    def ballot(self, pred: Array, active: Array) -> Array:
        """The active lanes whose predicate holds, lane 0 in the lowest bit (64-bit, to be narrowed)."""
        bits = self.rows(pred & active, False).astype(np.uint64) << np.arange(self.size, dtype=np.uint64)
        return self.lanes(np.repeat(np.bitwise_or.reduce(bits, axis=1)[:, None], self.size, axis=1))

    def vote(self, fn: str, pred: Array, active: Array) -> Array:
        if fn == "any":
            result = np.asarray(self.rows(pred & active, False).any(axis=1))
        else:
            result = np.asarray(self.rows(pred | ~active, True).all(axis=1))
        return self.lanes(np.repeat(result[:, None], self.size, axis=1))

    def reduce(self, fn: str, value: Array, active: Array, type: Scalar) -> Array:
        """All active lanes combined, in lane order."""
        f = function(fn, type)
        rows, on = self.rows(value, value.dtype.type(0)), self.rows(active, False)
        total = np.full(rows.shape[0], identity(fn, type), rows.dtype)
        for lane in range(self.size):
            total = np.where(on[:, lane], f(total, rows[:, lane]), total)
        return self.lanes(np.repeat(total[:, None], self.size, axis=1))

    def scan(self, value: Array, active: Array, type: Scalar, inclusive: bool) -> Array:
        """Running sums over the active lanes, in lane order."""
        f = function("add", type)
        rows, on = self.rows(value, value.dtype.type(0)), self.rows(active, False)
        total = np.full(rows.shape[0], identity("add", type), rows.dtype)
        out = np.zeros_like(rows)  # nothing before: +0
        begun = np.zeros(rows.shape[0], np.bool_)
        for lane in range(self.size):
            after = np.where(on[:, lane], f(total, rows[:, lane]), total)
            out[:, lane] = after if inclusive else np.where(begun, total, out[:, lane])
            total, begun = after, begun | on[:, lane]
        return self.lanes(out)


def identity(fn: str, type: Scalar) -> Any:
    """The value that changes nothing."""
    if type.is_float:
        return constant({"add": -0.0, "mul": 1.0, "min": float("inf"), "max": float("-inf")}[fn], type)[0]
    if type.kind == "bool":
        return fn in ("and", "min")
    low, high = type.min, type.max
    ones = high if type.kind == "uint" else -1
    return type.dtype.type({"add": 0, "mul": 1, "min": high, "max": low, "and": ones, "or": 0, "xor": 0}[fn])
