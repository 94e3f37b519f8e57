"""Traps of other systems, by their reports: integers, floats, division."""

from __future__ import annotations

import math as python

import numpy as np
import pytest
from cases import case, refused, run, values

import gridwise as gw
from gridwise import AtomicSlice, Cap, DisjointSlice, Slice, atomic, f16, f32, i32, i64, math, thread, u8, u32, u64
from gridwise.ir import to_text
from gridwise.ir.types import I32

# -- integers --------------------------------------------------------------------------------------------------


@gw.kernel(block=1)
def adds_one(o: DisjointSlice[i32], a: i32):
    if thread.global_index() == 0:
        a += i32(1)
        o[0] = a
        o[1] = i32(a > a - 1)


@case("traps: integers")
def adding_to_an_i32_does_not_widen_it(device):
    """numba#8447: a += i32(1) became i64. Also INT_MAX + 1 > INT_MAX taken for true."""
    assert values(device, adds_one, 2, np.int32, 2**31 - 1) == [-(2**31), 0]


@gw.kernel(block=32)
def indexes_with_literals(a: Slice[f32], o: DisjointSlice[f32]):
    i = thread.index_1d()
    if i in o:
        o[i] = a[int(i) * 2 + 1]


@case("traps: integers")
def literals_do_not_make_indices_64_bits_wide(device):
    """numba-cuda#801."""
    launcher = indexes_with_literals.launcher
    bounds = launcher.example(None)
    text = to_text(launcher.frontend((32, 1, 1), I32, frozenset(Cap), bounds).kernel)
    assert "i64" not in text


@gw.kernel(block=1)
def shifts_u8(o: DisjointSlice[u32], a: u8):
    if thread.global_index() == 0:
        o[0] = u32(a << 1)
        o[1] = u32(a + 1)
        o[2] = u32(a * a)


@case("traps: integers")
def u8_arithmetic_stays_in_8_bits(device):
    assert values(device, shifts_u8, 3, np.uint32, 255) == [254, 0, 1]


@gw.kernel(block=1)
def strides(a: Slice[f32], o: DisjointSlice[f32], row: i32, stride: i32):
    if thread.global_index() == 0:
        o[0] = a[row * stride]  # HERE


@case("traps: integers")
def an_offset_multiplied_in_32_bits(device):
    """triton#6748: row * stride wrapped to an element in range. A read of element 0 would give 5."""
    a = np.full(8, 5, np.float32)
    assert run(device, strides, a, np.zeros(1, np.float32), 1, 7, grid=1)[1].tolist() == [5.0]
    try:
        out = run(device, strides, a, np.ones(1, np.float32), 65536, 65535, grid=1)[1]
    except gw.DeviceIndexError:
        return  # -65536, or 4294901760 where indices have 64 bits
    raise AssertionError(f"read {out}")


@case("traps: integers")
def a_grid_past_the_limit_is_refused(device):
    """triton#1058, warp#1799, #1673: launch extents past 2**31 wrapped silently."""
    a, o = device.zeros(4, f32), device.zeros(4, f32)
    for grid in (2**31, 2**32 + 1, 2**40):
        with pytest.raises(gw.LaunchValueError, match="grid"):
            indexes_with_literals(a, o, grid=grid)


@gw.kernel(block=1)
def compares_wide(o: DisjointSlice[i32], a: i64, b: u64):
    if a < b:  # HERE
        o[thread.index_1d()] = 1


@case("traps: integers")
def i64_against_u64_is_refused(device):
    """Others compare the two as floats."""
    refused(device, gw.KernelTypeError, "u64", compares_wide, np.zeros(1, np.int32), 1, 2)


@gw.kernel(block=1)
def wide_integers(o: DisjointSlice[i32], a: u64, b: i64):
    if thread.global_index() == 0:
        o[0] = i32(a >= a - 1)
        o[1] = i32(a + 1 > a)
        o[2] = i32(a - 1 == a)
        o[3] = i32(b**2 == b * b)
        o[4] = i32(b**2 % 1000)


@case("traps: integers", needs=(Cap.I64,))
def wide_integers_do_not_pass_through_floats(device):
    """numba#10151: u64 >= u64 + literal through float; i32 ** 2 through f64 losing bits above 2**53."""
    b = 2**31 + 12345
    assert values(device, wide_integers, 5, np.int32, 2**63 + 1, b) == [1, 1, 0, 1, b * b % 1000]


@gw.kernel(block=1)
def converts(o: DisjointSlice[f32], a: u8, n: i32):
    if thread.global_index() == 0:
        o[0] = f32(a)
        o[1] = 2**-1
        o[2] = f32(int(pow(n, 1)))
        o[3] = f32(n**2 - n * n)


@case("traps: integers")
def conversions_and_powers(device):
    """u8 200 as -56.0; 2 ** -1 as 2; numba#8218: int(pow(3, 1)) as 2."""
    for n in (3, 7, 46341):
        assert values(device, converts, 4, np.float32, 200, n) == [200.0, 0.5, n, 0.0]


# -- floats ----------------------------------------------------------------------------------------------------


@gw.kernel(block=1)
def halves_f32(o: DisjointSlice[f32], a: f32):
    if thread.global_index() == 0:
        o[0] = a * 0.1
        o[1] = a + 1e-8


@case("traps: floats")
def a_literal_does_not_make_f32_arithmetic_f64(device):
    """numba#5737. In f64 the product of 16777217 / 10 would round differently."""
    for a in (16777216.0, 3.0, 0.7):
        a32 = np.float32(a)
        assert values(device, halves_f32, 2, np.float32, a) == [a32 * np.float32(0.1), a32 + np.float32(1e-8)]


@gw.kernel(block=1)
def nan_extremes(o: DisjointSlice[f32], a: f32, b: f32):
    if thread.global_index() == 0:
        o[0] = min(a, b)
        o[1] = min(b, a)
        o[2] = max(a, b)
        o[3] = max(b, a)


@case("traps: floats")
def nan_in_min_and_max_in_either_order(device):
    """triton#1566."""
    for other in (1.0, -np.inf, np.inf, np.nan):
        assert all(map(python.isnan, values(device, nan_extremes, 4, np.float32, np.nan, other)))


@gw.kernel(block=1)
def times_zero(o: DisjointSlice[f32], a: f32):
    if thread.global_index() == 0:
        o[0] = a * 0.0
        o[1] = a - a
        o[2] = math.inf * a
        o[3] = a / a


@case("traps: floats")
def infinity_and_nan_are_not_folded_away(device):
    """`inf * x` folded to 0 under WGSL."""
    for a in (np.inf, np.nan, -np.inf):
        got = values(device, times_zero, 4, np.float32, a)
        assert python.isnan(got[0]) and python.isnan(got[1]) and python.isnan(got[3])
        assert python.isnan(got[2]) if a != a else got[2] == np.inf * a
    got = values(device, times_zero, 4, np.float32, 2.0)
    assert got == [0.0, 0.0, np.inf, 1.0]
    assert python.isnan(values(device, times_zero, 4, np.float32, 0.0)[2])


@gw.kernel(block=64)
def largest(x: Slice[f32], c: AtomicSlice[f32]):
    i = thread.index_1d()
    if i in x:
        atomic.max(c, 0, x[i])
        atomic.min(c, 1, -x[i])


@case("traps: floats")
def atomic_max_of_negative_floats(device):
    """taichi#7735: gave 0."""
    x = -np.linspace(1.5, 9, 100).astype(np.float32)
    c = run(device, largest, x, np.array([-np.inf, np.inf], np.float32), grid=2)[1]
    assert c.tolist() == [-1.5, 1.5]


@gw.kernel(block=32)
def squares_f16(a: Slice[f16], o: DisjointSlice[f16]):
    i = thread.index_1d()
    if i in a and i in o:
        o[i] = a[i] * a[i]


@case("traps: floats", needs=(Cap.F16,))
def f16_squares_are_not_negative(device):
    """taichi#7457: a product of two positive f16 came out as -0.0."""
    a = np.concatenate([np.geomspace(6e-8, 200, 60), [0.0, -0.0, -1.0]]).astype(np.float16)
    o = run(device, squares_f16, a, np.zeros_like(a))[1]
    assert not np.signbit(o).any()
    assert np.all(np.abs(o.astype(float) - a.astype(float) ** 2) <= np.spacing(o).astype(float))


# -- division --------------------------------------------------------------------------------------------------


@gw.kernel(block=32)
def identity(a: Slice[i32], b: Slice[i32], o: DisjointSlice[i32], c: DisjointSlice[i32]):
    i = thread.index_1d()
    if i in a and i in b and i in o and i in c:
        o[i] = (a[i] // b[i]) * b[i] + a[i] % b[i]
        c[i] = -(-a[i] // b[i])


@case("traps: division")
def quotient_and_remainder_belong_together(device):
    """Warp: (a // 2) * 2 + a % 2 was -9 for -7; triton#619; cdiv of negatives, triton#954."""
    rows = [(a, b) for a in range(-20, 21) for b in (-7, -3, -2, -1, 1, 2, 3, 7)]
    a, b = (np.array(c, np.int32) for c in zip(*rows, strict=True))
    o, c = run(device, identity, a, b, a * 0, a * 0)[2:]
    assert o.tolist() == a.tolist()
    assert c.tolist() == [-(-x // y) for x, y in rows]


@gw.kernel(block=1)
def folds_and_runs(o: DisjointSlice[i32], a: i32, b: i32):
    if thread.global_index() == 0:
        o[0] = i32(-7 // 2 - (a // b))
        o[1] = i32(-7 % 2 - (a % b))
        o[2] = i32(7 // -2 - (-a // -b))
        o[3] = i32(7 % -2 - (-a % -b))
        o[4] = i32(int(-7 / 2) - int(a / b))


@case("traps: division")
def constants_fold_as_the_program_runs(device):
    """triton#10930: constant folding by one rule and run time by another."""
    assert values(device, folds_and_runs, 5, np.int32, -7, 2) == [0, 0, 0, 0, 0]


