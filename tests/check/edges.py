"""Values at the edges of each type."""

from __future__ import annotations

import math

import exact
import numpy as np

from gridwise.ir.types import Scalar


def integers(t: Scalar) -> list[int]:
    edges = {0, 1, 2, 3, 7, 10, t.bits - 1, t.bits, t.bits + 1, t.max, t.max - 1, t.max // 2, t.max // 2 + 1, t.min}
    edges |= {t.wrap(0x5555_5555_5555_5555), t.wrap(0x9E37_79B9_7F4A_7C15)}
    if t.signed:
        edges |= {-1, -2, -3, -7, -10, t.min + 1, -t.bits}
    return sorted(edges)


def floats(t: Scalar) -> list[float]:
    precision, low, high = exact.FORMATS[t]
    tiny, smallest, eps = 2.0 ** (low - precision + 1), 2.0**low, 2.0 ** (1 - precision)
    largest = (2.0 - eps) * 2.0**high
    half = [0.0, 1.0, 1.5, 2.0, 3.0, 7.0, 0.5, 1.0 + eps, 1.0 - eps / 2, tiny, smallest, smallest - tiny, largest]
    half += [math.inf, exact.round_to(exact.Fraction(1, 3), t), exact.round_to(exact.Fraction(1, 10), t), 100.0]
    half += [largest / 2, 2.0**precision, 2.0**precision - 1]
    return [s * x for x in half for s in (1.0, -1.0)] + [math.nan]


def column(values: list, t: Scalar) -> np.ndarray:
    if t.is_int:
        return np.array(values, dtype=t.dtype)
    return np.array(values, np.float64).astype(t.dtype)  # exact: each value is one of the type
