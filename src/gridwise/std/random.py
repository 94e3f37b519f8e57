"""Counter-based random numbers: Philox 4x32-10, the same bits on every device.

The number at position ``i`` of a stream depends on the seed and ``i`` alone, so that an array is filled by any number
of threads in any order, and a kernel can draw its own numbers with :func:`philox` and no state.

Source: J. Salmon, M. Moraes, R. Dror, D. Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC 2011.
"""

from __future__ import annotations

from typing import Any

import gridwise as gw
from gridwise import Cap, DisjointSlice, f32, i32, thread, u32, u64

from .shapes import flat

M0, M1 = 0xD2511F53, 0xCD9E8D57  # multipliers of the paper
W0, W1 = 0x9E3779B9, 0xBB67AE85  # key increments: the golden ratio and sqrt(3) - 1
BLOCK = 256


def multiply_high(a: u32, b: u32) -> u32:
    """The upper half of the 64-bit product."""
    if gw.target.has(Cap.I64):
        return u32((u64(a) * u64(b)) >> 32)
    low = (a & 0xFFFF) * (b & 0xFFFF)
    left = (a >> 16) * (b & 0xFFFF) + (low >> 16)
    right = (a & 0xFFFF) * (b >> 16) + (left & 0xFFFF)
    return (a >> 16) * (b >> 16) + (left >> 16) + (right >> 16)


def philox(c0: u32, c1: u32, c2: u32, c3: u32, k0: u32, k1: u32) -> tuple[u32, u32, u32, u32]:
    """Four random words from a 128-bit counter and a 64-bit key (ten rounds)."""
    for _ in gw.static(range(10)):
        high0, low0 = multiply_high(M0, c0), c0 * M0
        high1, low1 = multiply_high(M1, c2), c2 * M1
        c0, c1, c2, c3 = high1 ^ c1 ^ k0, low1, high0 ^ c3 ^ k1, low0
        k0 += W0
        k1 += W1
    return c0, c1, c2, c3


def to_unit(bits: u32) -> f32:
    """A float in [0, 1): the upper 24 bits, so that every value is exact and equally likely."""
    return f32(bits >> 8) * (1.0 / 16777216.0)


def to_normal(a: u32, b: u32) -> tuple[f32, f32]:
    """Two independent standard normal floats (Box and Muller, 1958)."""
    radius = gw.math.sqrt(-2.0 * gw.math.log((f32(a >> 8) + 1.0) * (1.0 / 16777216.0)))
    angle = to_unit(b) * gw.math.tau
    return radius * gw.math.cos(angle), radius * gw.math.sin(angle)


@gw.kernel(block=BLOCK)
def fill_bits(out: DisjointSlice[u32], low: u32, high: u32, stream: u32) -> None:
    """Position 4 t + k holds word k of counter t."""
    t = int(thread.index_1d())
    words = philox(u32(t), 0, stream, 0, low, high)
    for k in gw.static(range(4)):
        if 4 * t + k < len(out):
            out[4 * t + k] = words[k]


@gw.kernel(block=BLOCK)
def fill_uniform(out: DisjointSlice[f32], low: u32, high: u32, stream: u32, start: f32, width: f32) -> None:
    t = int(thread.index_1d())
    words = philox(u32(t), 0, stream, 0, low, high)
    for k in gw.static(range(4)):
        if 4 * t + k < len(out):
            out[4 * t + k] = start + width * to_unit(words[k])


@gw.kernel(block=BLOCK)
def fill_normal(out: DisjointSlice[f32], low: u32, high: u32, stream: u32, mean: f32, deviation: f32) -> None:
    t = int(thread.index_1d())
    a, b, c, d = philox(u32(t), 0, stream, 0, low, high)
    numbers = to_normal(a, b) + to_normal(c, d)
    for k in gw.static(range(4)):
        if 4 * t + k < len(out):
            out[4 * t + k] = mean + deviation * numbers[k]


@gw.kernel(block=BLOCK)
def fill_integers(out: DisjointSlice[i32], low: u32, high: u32, stream: u32, start: i32, width: u32) -> None:
    """Lemire's multiplication: the bias of a value is below width / 2**32."""
    t = int(thread.index_1d())
    words = philox(u32(t), 0, stream, 0, low, high)
    for k in gw.static(range(4)):
        if 4 * t + k < len(out):
            out[4 * t + k] = start + i32(multiply_high(words[k], width))


def _launch(kernel: Any, out: Any, seed: int, stream: int, *args: Any) -> None:
    if not 0 <= seed < 1 << 64:
        raise gw.LaunchValueError(f"a seed is from 0 to 2**64 - 1, not {seed}")
    if not 0 <= stream < 1 << 32:
        raise gw.LaunchValueError(f"a stream is from 0 to 2**32 - 1, not {stream}")
    line = flat(out, "out")
    groups = -(-line.shape[0] // 4)
    if groups:
        kernel(line, seed & 0xFFFF_FFFF, seed >> 32, stream, *args, grid=-(-groups // BLOCK))


def bits(out: Any, seed: int = 0, stream: int = 0) -> None:
    """Fill a contiguous u32 array with random words. ``stream`` picks one of 2**32 independent sequences of a seed."""
    _launch(fill_bits, out, seed, stream)


def uniform(out: Any, seed: int = 0, stream: int = 0, low: float = 0.0, high: float = 1.0) -> None:
    """Fill a contiguous f32 array with numbers from ``low`` up to, not including, ``high`` (before rounding)."""
    _launch(fill_uniform, out, seed, stream, low, high - low)


def normal(out: Any, seed: int = 0, stream: int = 0, mean: float = 0.0, deviation: float = 1.0) -> None:
    """Fill a contiguous f32 array with normal numbers."""
    _launch(fill_normal, out, seed, stream, mean, deviation)


def integers(out: Any, low: int, high: int, seed: int = 0, stream: int = 0) -> None:
    """Fill a contiguous i32 array with integers from ``low`` to ``high - 1``."""
    if not -(2**31) <= low < high <= 2**31:
        raise gw.LaunchValueError(f"integers from {low} to {high - 1}: the range is empty or does not fit i32")
    if high - low == 1 << 32:
        raise gw.LaunchValueError("all of i32: fill a u32 array with bits() and view it")
    _launch(fill_integers, out, seed, stream, low, high - low)
