"""Rules 1 to 4 and 6: integers, division, literals, signs, edges."""

from __future__ import annotations

import itertools
import math as python
import struct
from typing import TypeVar

import numpy as np
from cases import case, each_type, refused, run, values
from edges import column, floats, integers
from exact import Fraction as Exact
from exact import div, integer, maximum, minimum, mul, round_to, to_int

import gridwise as gw
from gridwise import (
    DisjointSlice,
    Slice,
    bf16,
    f16,
    f32,
    f64,
    i8,
    i16,
    i32,
    i64,
    math,
    thread,
    u8,
    u16,
    u32,
    u64,
)
from gridwise.ir.types import F32, F64, I32, I64, SCALARS, Scalar

INTS = (i8, i16, i32, i64, u8, u16, u32, u64)
SIGNED = (i8, i16, i32, i64)
FLOATS = (f16, bf16, f32, f64)
N = TypeVar("N", i8, i16, i32, i64, u8, u16, u32, u64)
S = TypeVar("S", i8, i16, i32, i64)
F = TypeVar("F", f16, bf16, f32, f64)


def ir(t: type) -> Scalar:
    return SCALARS[t.__name__]


def pairs(edge: list, t: Scalar) -> tuple[np.ndarray, np.ndarray, list, list]:
    a, b = (list(c) for c in zip(*itertools.product(edge, edge), strict=True))
    return column(a, t), column(b, t), a, b


def same(got: object, want: object) -> bool:
    got, want = float(got), float(want)  # type: ignore[arg-type]
    if python.isnan(got) or python.isnan(want):
        return python.isnan(got) and python.isnan(want)
    return got == want and python.copysign(1, got) == python.copysign(1, want)


def normal(device: gw.Device, t: type) -> list[float]:
    """Edge values of a float type, without subnormal ones where a driver may flush them to zero (WebGPU)."""
    tiny = 2.0 ** (-14 if t is f16 else -126)
    flushes = device.target == "wgsl" and t is not f64
    return [v for v in floats(ir(t)) if not (flushes and 0 < abs(v) < tiny)]


# -- rule 1 ----------------------------------------------------------------------------------------------------


@gw.kernel(block=64)
def arithmetic(a: Slice[N], b: Slice[N], o: DisjointSlice[N, 2]):
    i = int(thread.index_1d())
    if i < len(a) and i < len(b) and i < o.shape[0]:
        o[i, 0] = a[i] + b[i]
        o[i, 1] = a[i] - b[i]
        o[i, 2] = a[i] * b[i]
        o[i, 3] = -a[i]
        o[i, 4] = a[i] & b[i]
        o[i, 5] = a[i] | b[i]
        o[i, 6] = a[i] ^ b[i]
        o[i, 7] = ~a[i]


@each_type("1", INTS)
def integers_wrap(device, t):
    a, b, x, y = pairs(integers(ir(t)), ir(t))
    out = run(device, arithmetic, a, b, np.zeros((len(a), 8), a.dtype), grid=-(-len(a) // 64))[2]
    for row, p, q in zip(out.tolist(), x, y, strict=True):
        want = [integer(c, p, q, ir(t)) for c in ("add", "sub", "mul", "neg", "and", "or", "xor", "not")]
        assert row == want, (p, q)


@gw.kernel(block=64)
def compares(a: Slice[N], b: Slice[N], o: DisjointSlice[u32]):
    i = thread.index_1d()
    if i in a and i in b and i in o:
        x, y = a[i], b[i]
        bits = u32(x < y) | u32(x <= y) << 1 | u32(x > y) << 2 | u32(x >= y) << 3 | u32(x == y) << 4
        o[i] = bits | u32(x != y) << 5


@each_type("1", INTS)
def comparisons(device, t):
    a, b, x, y = pairs(integers(ir(t)), ir(t))
    out = run(device, compares, a, b, np.zeros(len(a), np.uint32))[2]
    for bits, p, q in zip(out.tolist(), x, y, strict=True):
        assert bits == (p < q) | (p <= q) << 1 | (p > q) << 2 | (p >= q) << 3 | (p == q) << 4 | (p != q) << 5


@gw.kernel(block=1)
def powers(o: DisjointSlice[i32], a: i32):
    if thread.global_index() == 0:
        o[0] = a**2
        o[1] = a**3
        o[2] = a**0
        o[3] = pow(a, 5)


@case("1")
def integer_powers_wrap(device):
    for a in (3, -7, 46341, 2**31 - 1, -(2**31)):
        assert values(device, powers, 4, np.int32, a) == [I32.wrap(a**n) for n in (2, 3, 0, 5)]


# -- rule 2 ----------------------------------------------------------------------------------------------------


@gw.kernel(block=64)
def quotients(a: Slice[N], b: Slice[N], q: DisjointSlice[N], r: DisjointSlice[N]):
    i = thread.index_1d()
    if i in a and i in b and i in q and i in r:
        q[i] = a[i] // b[i]
        r[i] = a[i] % b[i]


@each_type("2", INTS)
def integer_division_floors(device, t):
    kept = [(x, y) for x, y in itertools.product(integers(ir(t)), repeat=2) if y]
    a, b = (column([p[n] for p in kept], ir(t)) for n in (0, 1))
    q, r = run(device, quotients, a, b, np.zeros_like(a), np.zeros_like(a))[2:]
    for (x, y), floor, rest in zip(kept, q.tolist(), r.tolist(), strict=True):
        assert (floor, rest) == (ir(t).wrap(x // y), x % y), (x, y)


@gw.kernel(block=64)
def true_division(a: Slice[i32], b: Slice[i32], o: DisjointSlice[f32]):
    i = thread.index_1d()
    if i in a and i in b and i in o:
        o[i] = a[i] / b[i]


@case("2")
def true_division_of_i32_is_f32(device):
    a, b, x, y = pairs([v for v in integers(I32) if v], I32)
    out = run(device, true_division, a, b, np.zeros(len(a), np.float32))[2]
    for got, p, q in zip(out, x, y, strict=True):
        want = div(round_to(Exact(p), F32), round_to(Exact(q), F32), F32)
        assert same(got, want), (p, q)


@gw.kernel(block=64)
def wide_division(a: Slice[i64], b: Slice[i64], o: DisjointSlice[f64]):
    i = thread.index_1d()
    if i in a and i in b and i in o:
        o[i] = a[i] / b[i]


@case("2", needs=(gw.Cap.F64,))
def true_division_of_i64_is_f64(device):
    a, b, x, y = pairs([v for v in integers(I64) if v], I64)
    out = run(device, wide_division, a, b, np.zeros(len(a)))[2]
    for got, p, q in zip(out, x, y, strict=True):
        assert same(got, div(round_to(Exact(p), F64), round_to(Exact(q), F64), F64)), (p, q)


@gw.kernel(block=64)
def float_quotients(a: Slice[F], b: Slice[F], q: DisjointSlice[F], r: DisjointSlice[F]):
    i = thread.index_1d()
    if i in a and i in b and i in q and i in r:
        q[i] = a[i] // b[i]
        r[i] = a[i] % b[i]


@case("2")
def float_division_floors_as_pythons(device):
    numbers = [7.5, -7.5, 2.0, -2.0, 0.1, -0.1, 1.0, -1.0, 0.0, -0.0, 3.25, 1e6, -1e6, 5e-5]
    a, b, x, y = pairs([float(np.float32(v)) for v in numbers], F32)
    q, r = run(device, float_quotients, a, b, np.zeros_like(a), np.zeros_like(a))[2:]
    for p, d, floor, rest in zip(x, y, q, r, strict=True):
        if d == 0:
            assert same(floor, div(p, d, F32)) and python.isnan(rest)
        else:
            exact = Exact(p) / Exact(d)
            assert floor == round_to(Exact(python.floor(exact)), F32), (p, d)
            assert rest == round_to(Exact(p) - Exact(d) * python.floor(exact), F32), (p, d)


@gw.kernel(block=1)
def folded(o: DisjointSlice[i32], n: i32):
    if thread.global_index() == 0:
        o[0] = -7 // 2
        o[1] = -7 % 2
        o[2] = i32(-7) // i32(2)
        o[3] = n // 2
        o[4] = n % 2
        o[5] = n % -2
        d, m = divmod(n, 4)
        o[6] = d
        o[7] = m


@case("2")
def constants_divide_by_the_same_rule(device):
    assert values(device, folded, 8, np.int32, -7) == [-4, 1, -4, -4, 1, -1, -2, 1]


# -- rule 3 ----------------------------------------------------------------------------------------------------


@gw.kernel(block=64)
def weak(x: Slice[f32], h: Slice[f16], o: DisjointSlice[f32], p: DisjointSlice[f16]):
    i = thread.index_1d()
    if i in x and i in h and i in o and i in p:
        o[i] = x[i] * 0.1
        p[i] = h[i] * 0.1


@case("3")
def float_literals_take_the_other_type(device):
    x = np.array([1, 3, 7, 1e10, 1e-10], np.float32)
    h = np.array([1, 3, 7, 100, 0.5], np.float16)
    o, p = run(device, weak, x, h, np.zeros_like(x), np.zeros_like(h))[2:]
    assert o.tolist() == [mul(float(v), float(np.float32(0.1)), F32) for v in x]
    assert p.tolist() == [mul(float(v), float(np.float16(0.1)), ir(f16)) for v in h]


@gw.kernel(block=1)
def weak_integers(o: DisjointSlice[i32], a: i32, b: u8):
    if thread.global_index() == 0:
        o[0] = a + 1
        o[1] = i32(b + 1)
        o[2] = i32(b << 1)


@case("3")
def integer_literals_take_the_other_type(device):
    assert values(device, weak_integers, 3, np.int32, 2**31 - 1, 255) == [-(2**31), 0, 254]


@gw.kernel(block=1)
def too_wide(o: DisjointSlice[i32]):
    o[thread.index_1d()] = 2**31  # HERE


@gw.kernel(block=1)
def negative_for_unsigned(o: DisjointSlice[u32]):
    i = thread.index_1d()
    o[i] = o[i] & -1  # HERE


@case("3")
def a_literal_that_does_not_fit_is_refused(device):
    refused(device, gw.KernelValueError, "2147483648", too_wide, np.zeros(1, np.int32))
    refused(device, gw.KernelValueError, "-1", negative_for_unsigned, np.zeros(1, np.uint32))


# -- rule 4 ----------------------------------------------------------------------------------------------------


@gw.kernel(block=1)
def mixes(o: DisjointSlice[i32], a: i32, b: u32):
    o[thread.index_1d()] = a + b  # HERE


@gw.kernel(block=1)
def compares_mixed(o: DisjointSlice[i32], a: i64, b: u64):
    if a < b:  # HERE
        o[thread.index_1d()] = 1


@gw.kernel(block=1)
def narrows(o: DisjointSlice[i32], a: i64):
    o[thread.index_1d()] = a  # HERE


@case("4")
def mixed_signs_and_narrowing_are_refused(device):
    one = np.zeros(1, np.int32)
    refused(device, gw.KernelTypeError, "i32", mixes, one, 1, 2)
    refused(device, gw.KernelTypeError, "i64", compares_mixed, one, 1, 2)
    refused(device, gw.KernelTypeError, "i32(", narrows, one, 1)


@gw.kernel(block=1)
def widens(o: DisjointSlice[i32], a: i8, b: i16, c: u8, d: u16):
    if thread.global_index() == 0:
        o[0] = a
        o[1] = a + b
        o[2] = i32(c + d)
        o[3] = a * o[1]


@case("4")
def widening_keeps_the_value(device):
    assert values(device, widens, 4, np.int32, -100, -30000, 200, 60000) == [-100, -30100, 60200, 3010000]


# -- rule 6 ----------------------------------------------------------------------------------------------------


@gw.kernel(block=64)
def shifts(a: Slice[N], b: Slice[N], left: DisjointSlice[N], right: DisjointSlice[N]):
    i = thread.index_1d()
    if i in a and i in b and i in left and i in right:
        left[i] = a[i] << b[i]
        right[i] = a[i] >> b[i]


@each_type("6", INTS)
def shifts_at_and_past_the_width(device, t):
    a, b, x, y = pairs(integers(ir(t)), ir(t))
    left, right = run(device, shifts, a, b, np.zeros_like(a), np.zeros_like(a))[2:]
    for p, q, lo, hi in zip(x, y, left.tolist(), right.tolist(), strict=True):
        assert (lo, hi) == (integer("shl", p, q, ir(t)), integer("shr", p, q, ir(t))), (p, q)


@gw.kernel(block=64)
def extremes(a: Slice[N], b: Slice[N], low: DisjointSlice[N], high: DisjointSlice[N], size: DisjointSlice[N]):
    i = thread.index_1d()
    if i in a and i in b and i in low and i in high and i in size:
        low[i] = min(a[i], b[i])
        high[i] = max(a[i], b[i])
        size[i] = abs(a[i])


@each_type("6", INTS)
def integer_extremes(device, t):
    a, b, x, y = pairs(integers(ir(t)), ir(t))
    low, high, size = run(device, extremes, a, b, *[np.zeros_like(a)] * 3)[2:]
    assert low.tolist() == [min(p, q) for p, q in zip(x, y, strict=True)]
    assert high.tolist() == [max(p, q) for p, q in zip(x, y, strict=True)]
    assert size.tolist() == [integer("abs", p, 0, ir(t)) for p in x]


@gw.kernel(block=64)
def float_extremes(a: Slice[F], b: Slice[F], o: DisjointSlice[F, 2]):
    i = int(thread.index_1d())
    if i < len(a) and i < len(b) and i < o.shape[0]:
        o[i, 0] = min(a[i], b[i])
        o[i, 1] = max(a[i], b[i])
        o[i, 2] = math.fmin(a[i], b[i])
        o[i, 3] = math.fmax(a[i], b[i])
        o[i, 4] = abs(a[i])
        o[i, 5] = -a[i]


@each_type("6", FLOATS)
def float_extremes_with_nan_and_zeros(device, t):
    a, b, x, y = pairs([v for v in normal(device, t) if abs(v) < 4 or not python.isfinite(v)], ir(t))
    out = run(device, float_extremes, a, b, np.zeros((len(a), 6), a.dtype), grid=-(-len(a) // 64))[2]
    for row, p, q in zip(out, x, y, strict=True):
        least = q if python.isnan(p) else p if python.isnan(q) else minimum(p, q)
        most = q if python.isnan(p) else p if python.isnan(q) else maximum(p, q)
        want = [minimum(p, q), maximum(p, q), least, most, abs(p), -p]
        for n, (got, wanted) in enumerate(zip(row, want, strict=True)):
            # fmin and fmax of two zeros may give either.
            assert same(got, wanted) or (n in (2, 3) and p == q == 0 and got == 0), (p, q, n)


@gw.kernel(block=64)
def to_integers(
    x: Slice[f32], a: DisjointSlice[i32], b: DisjointSlice[u32], c: DisjointSlice[i8], d: DisjointSlice[u8]
):
    i = thread.index_1d()
    if i in x and i in a and i in b and i in c and i in d:
        a[i] = i32(x[i])
        b[i] = u32(x[i])
        c[i] = i8(x[i])
        d[i] = u8(x[i])


@case("6")
def floats_become_integers_saturating(device):
    edge = [0.99, -0.99, 127.5, 128.0, -128.9, 255.9, 256.0, 2147483520.0, 2147483648.0, -2147483648.0, -2147483904.0]
    x = column([*floats(F32), *edge, 4294967040.0, 4294967296.0], F32)
    got = run(device, to_integers, x, *(np.zeros(len(x), d) for d in (np.int32, np.uint32, np.int8, np.uint8)))[1:]
    for out, t in zip(got, (i32, u32, i8, u8), strict=True):
        assert out.tolist() == [to_int(float(v), ir(t)) for v in x]


@gw.kernel(block=64)
def to_wide_integers(x: Slice[f32], a: DisjointSlice[i64], b: DisjointSlice[u64]):
    i = thread.index_1d()
    if i in x and i in a and i in b:
        a[i] = i64(x[i])
        b[i] = u64(x[i])


@case("6", needs=(gw.Cap.I64,))
def floats_become_wide_integers_saturating(device):
    x = column([*floats(F32), 2.0**62, 2.0**63, -(2.0**63), -(2.0**64), 2.0**64], F32)
    got = run(device, to_wide_integers, x, np.zeros(len(x), np.int64), np.zeros(len(x), np.uint64))[1:]
    for out, t in zip(got, (i64, u64), strict=True):
        assert out.tolist() == [to_int(float(v), ir(t)) for v in x]


@gw.kernel(block=64)
def to_floats(
    a: Slice[i32], b: Slice[u32], o: DisjointSlice[f32, 2], h: DisjointSlice[f16, 2], k: DisjointSlice[bf16, 2]
):
    i = int(thread.index_1d())
    if i < len(a) and i < len(b) and i < o.shape[0] and i < h.shape[0] and i < k.shape[0]:
        o[i, 0] = f32(a[i])
        o[i, 1] = f32(b[i])
        h[i, 0] = f16(a[i])
        h[i, 1] = f16(b[i])
        k[i, 0] = bf16(a[i])
        k[i, 1] = bf16(b[i])


@case("6")
def integers_become_floats_rounded_once(device):
    around = [(1 << n) + d for n in (8, 9, 11, 12, 24, 25, 30) for d in (-1, 0, 1)] + [33685505, 16842753, 65519, 65520]
    a = np.array([*integers(I32), *around, *(-v for v in around)], np.int32)
    b = a.view(np.uint32)
    shape = (len(a), 2)
    args = [np.zeros(shape, ir(t).dtype) for t in (f32, f16, bf16)]
    got = run(device, to_floats, a, b, *args, grid=-(-len(a) // 64))[2:]
    for out, t in zip(got, (f32, f16, bf16), strict=True):
        for row, v, w in zip(out, a.tolist(), b.tolist(), strict=True):
            assert same(row[0], round_to(Exact(v), ir(t))) and same(row[1], round_to(Exact(w), ir(t))), (t, v)


@gw.kernel(block=64)
def reinterprets(a: Slice[f32], o: DisjointSlice[u32], back: DisjointSlice[f32]):
    i = thread.index_1d()
    if i in a and i in o and i in back:
        o[i] = gw.bitcast(a[i], u32)
        back[i] = gw.bitcast(o[i], f32)


@case("6")
def bitcast_keeps_the_bits(device):
    x = column([v for v in floats(F32) if v == v], F32)
    _, o, back = run(device, reinterprets, x, np.zeros(len(x), np.uint32), np.zeros_like(x))
    assert o.tolist() == [struct.unpack("I", struct.pack("f", v))[0] for v in x.tolist()]
    assert all(map(same, back, x))
