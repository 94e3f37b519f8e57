"""Rules 1 to 6 of the language: each trap gives the right value, on the check device."""

import math

import numpy as np
import pytest
from lowering import compiled, refused, run

import gridwise as gw
from gridwise import (
    DisjointSlice,
    Slice,
    f16,
    f32,
    f64,
    i8,
    i16,
    i32,
    i64,
    index,
    thread,
    u8,
    u16,
    u32,
    u64,
)
from gridwise.ir import to_text


def outputs(kernel, count, dtype, *args):
    """Launch one thread's worth of results into an array of ``count``."""
    out = np.zeros(count, dtype)
    run(kernel, out, *args, grid=1)
    return out.tolist()


# -- rule 1: width and wrap ------------------------------------------------------------------------


@gw.kernel(block=1)
def wraps(o: DisjointSlice[i64], a: i32, b: u8, c: i64, d: u64):
    if thread.global_index() == 0:
        o[0] = a + 1
        a += i32(1)
        o[1] = a
        o[2] = i64(a > 0)
        o[3] = i64(b << 1)
        o[4] = i64(a**2)
        o[5] = c * c
        o[6] = i64(d >= d + 1)
        o[7] = -i64(i8(b))
        o[8] = i64(abs(i32(-(2**31))))
        o[9] = c**2
        o[10] = i64(-(a - a - 2147483647 - 1))


def test_integers_wrap():
    big = 2**53 + 1
    got = outputs(wraps, 11, np.int64, 2**31 - 1, 255, big, 2**64 - 1)
    low = -(2**31)
    square = np.array([big], np.int64)
    assert got[:4] == [low, low, 0, 254]
    assert got[4] == 0  # (-2**31) ** 2 modulo 2**32
    assert got[5] == int((square * square)[0]) == got[9]
    assert got[6] == 1
    assert got[7] == 1  # u8 255 is i8 -1
    assert got[8] == low and got[10] == low


@gw.kernel(block=1)
def keeps_width(o: DisjointSlice[i32], a: i32):
    i = thread.index_1d()
    if i in o:
        a += i32(1)
        o[i] = a


def test_addition_does_not_widen():
    text = to_text(compiled(keeps_width).kernel)
    assert "i64" not in text


# -- rule 2: floor division, modulo, true division -------------------------------------------------


@gw.kernel(block=64)
def divide(a: Slice[i32], b: Slice[i32], q: DisjointSlice[i32], r: DisjointSlice[i32], t: DisjointSlice[f32]):
    i = thread.index_1d()
    if i in q and i in r and i in t:
        q[i] = a[i] // b[i]
        r[i] = a[i] % b[i]
        t[i] = a[i] / b[i]


def test_division_follows_python():
    pairs = [(x, y) for x in range(-7, 8) for y in (-3, -2, -1, 1, 2, 3)] + [(-(2**31), 3), (2**31 - 1, -2)]
    a, b = (np.array(c, np.int32) for c in zip(*pairs, strict=True))
    q, r, t = np.zeros_like(a), np.zeros_like(a), np.zeros(len(a), np.float32)
    run(divide, a, b, q, r, t)
    for x, y, quotient, rest, true in zip(a.tolist(), b.tolist(), q.tolist(), r.tolist(), t.tolist(), strict=True):
        assert (quotient, rest) == (x // y, x % y)
        assert true == np.float32(np.float32(x) / np.float32(y))


@gw.kernel(block=1)
def division_by_constants(o: DisjointSlice[i64], f: DisjointSlice[f64], n: i64):
    if thread.global_index() == 0:
        o[0] = -7 // 2
        o[1] = -7 % 2
        o[2] = n // 2
        o[3] = n % -2
        d, m = divmod(n, 4)
        o[4] = d
        o[5] = m
        f[0] = n / 2
        f[1] = -7 / 2
        f[2] = 2**-1
        f[3] = f64(-7.5) // 2.0
        f[4] = f64(-7.5) % 2.0
        o[6] = i64(i32(-7) // i32(2))
        o[7] = i64(i32(-7) % i32(2))


def test_constants_fold_by_the_same_rule():
    o, f = np.zeros(8, np.int64), np.zeros(5)
    run(division_by_constants, o, f, -7, grid=1)
    assert o.tolist() == [-4, 1, -4, -1, -2, 1, -4, 1]
    assert f.tolist() == [-3.5, -3.5, 0.5, -4.0, 0.5]


@gw.kernel
def divides_by_zero(o: DisjointSlice[i32]):
    i = thread.index_1d()
    if i in o:
        o[i] = o[i] // 0  # HERE


def test_division_by_a_constant_zero_is_a_fault():
    with pytest.raises(gw.DeviceZeroDivisionError):
        run(divides_by_zero, np.zeros(4, np.int32))


# -- rule 3: weak literals -------------------------------------------------------------------------


def weak(o: DisjointSlice[f32], h: DisjointSlice[f16], x: Slice[f32]):
    i = thread.index_1d()
    if i in o and i in h:
        o[i] = x[i] * 0.5 + 2 - 1.5 * 3
        h[i] = h[i] * 0.1


def test_literals_are_weak():
    text = to_text(compiled(weak).kernel)
    assert "f64" not in text
    assert "mul" in text and ": f16" in text
    assert f"value={float(np.float16(0.1))}" in text


def literal_too_wide(o: DisjointSlice[u8]):
    i = thread.index_1d()
    if i in o:
        o[i] = 300  # HERE


def literal_too_wide_in_arithmetic(o: DisjointSlice[i32]):
    i = thread.index_1d()
    if i in o:
        o[i] = o[i] + 2**31  # HERE


def literal_negative(o: DisjointSlice[u32]):
    i = thread.index_1d()
    if i in o:
        o[i] = o[i] & -1  # HERE


def literal_name(o: DisjointSlice[i32]):
    x = 2**31  # HERE
    o[thread.index_1d()] = x


def literal_cast(o: DisjointSlice[u8]):
    i = thread.index_1d()
    if i in o:
        o[i] = u8(256)  # HERE


def literal_float_too_large(o: DisjointSlice[f32]):
    i = thread.index_1d()
    if i in o:
        o[i] = o[i] * 1e40  # HERE


@pytest.mark.parametrize(
    "fn",
    [
        literal_too_wide,
        literal_too_wide_in_arithmetic,
        literal_negative,
        literal_name,
        literal_cast,
        literal_float_too_large,
    ],
)
def test_a_literal_must_fit(fn):
    refused(fn, gw.KernelValueError, "does not fit")


# -- rule 4: signs and widths ----------------------------------------------------------------------


def signs(o: DisjointSlice[i32], a: i32, b: u32):
    i = thread.index_1d()
    if i in o:
        o[i] = a + b  # HERE


def signs_compared(o: DisjointSlice[i32], a: i64, b: u64):
    i = thread.index_1d()
    if i in o and a < b:  # HERE
        o[i] = 1


def signs_with_index(o: DisjointSlice[i32], b: u32):
    i = thread.index_1d()
    if i in o and i < b:  # HERE
        o[i] = 1


@pytest.mark.parametrize(
    ("fn", "fix"), [(signs, "write i32(b)"), (signs_compared, "write i64(b)"), (signs_with_index, "write index(b)")]
)
def test_mixed_signs_are_refused_with_the_cast(fn, fix):
    refused(fn, gw.KernelTypeError, "mixes signed and unsigned", fix)


def narrows(o: DisjointSlice[i32], a: i64):
    i = thread.index_1d()
    if i in o:
        o[i] = a  # HERE


def narrows_float(o: DisjointSlice[f32], a: f64):
    i = thread.index_1d()
    if i in o:
        o[i] = a * 2  # HERE


def float_into_integer(o: DisjointSlice[i32], a: f32):
    i = thread.index_1d()
    if i in o:
        o[i] = a  # HERE


def augmented_narrowing(o: DisjointSlice[i32], a: i64):
    i = thread.index_1d()
    if i in o:
        o[i] += a  # HERE


def index_into_i32(o: DisjointSlice[i32]):
    i = thread.index_1d()
    if i in o:
        o[i] = i  # HERE


@pytest.mark.parametrize(
    ("fn", "fix"),
    [
        (narrows, "write i32(a)"),
        (narrows_float, "write f32(a * 2)"),
        (float_into_integer, "write i32(a)"),
        (augmented_narrowing, "write i32("),
        (index_into_i32, "write i32(i)"),
    ],
)
def test_narrowing_is_never_implicit(fn, fix):
    refused(fn, gw.KernelTypeError, fix)


@gw.kernel(block=1)
def widens(o: DisjointSlice[i64], f: DisjointSlice[f64], a: i8, b: i16, c: u8, d: u16, x: f32, h: f16):
    if thread.global_index() == 0:
        o[0] = a
        o[1] = a + b
        o[2] = i64(c + d)
        f[0] = x
        f[1] = h * x
        o[3] = thread.global_index() + a


def test_widening_within_a_kind_is_implicit():
    o, f = np.zeros(4, np.int64), np.zeros(2)
    run(widens, o, f, -5, 300, 200, 60000, 1.5, 0.5, grid=1)
    assert o.tolist() == [-5, 295, 60200, -5] and f.tolist() == [1.5, 0.75]


def int_and_float(o: DisjointSlice[f32], n: i32):
    i = thread.index_1d()
    if i in o:
        o[i] = o[i] * n  # HERE


def int_and_float_literal(o: DisjointSlice[f32], n: i32):
    i = thread.index_1d()
    if i in o:
        o[i] = n * 0.5  # HERE


def bool_and_number(o: DisjointSlice[i32]):
    i = thread.index_1d()
    if i in o:
        o[i] = o[i] + (o[i] > 3)  # HERE


@pytest.mark.parametrize(
    ("fn", "fix"),
    [
        (int_and_float, "write f32(n)"),
        (int_and_float_literal, "write f32(n)"),
        (bool_and_number, "write i32(o[i] > 3)"),
    ],
)
def test_kinds_do_not_mix(fn, fix):
    refused(fn, gw.KernelTypeError, fix)


# -- rule 5: names ---------------------------------------------------------------------------------


def rebound(o: DisjointSlice[f32], a: f32):
    x = 1
    x = a  # HERE
    o[thread.index_1d()] = f32(x)


def accumulator(o: DisjointSlice[f32], a: Slice[f32]):
    acc = 0
    for k in range(len(a)):
        acc += a[k]  # HERE
    o[thread.index_1d()] = acc


def truncating(o: DisjointSlice[f32], a: i32):
    x = a
    x = 1.5  # HERE
    o[thread.index_1d()] = f32(x)


def after_a_branch(o: DisjointSlice[i32], c: i32):
    if c > 0:
        x = 1
    else:
        x = 2.5  # HERE
    o[thread.index_1d()] = i32(x)


@pytest.mark.parametrize(
    ("fn", "phrases"),
    [
        (rebound, ("'x' holds i32, and this is f32", "write x = f32(1) on line")),
        (accumulator, ("start it as acc = f32(0) on line",)),
        (truncating, ("'x' holds i32",)),
        (after_a_branch, ("'x' holds i32", "f32(1)")),
    ],
)
def test_a_name_keeps_its_type(fn, phrases):
    refused(fn, gw.KernelTypeError, *phrases)


def unbound(o: DisjointSlice[i32], c: i32):
    i = thread.index_1d()
    if c > 0:
        x = 1
    o[i] = x  # HERE


def unbound_after_loop(o: DisjointSlice[i32], n: i32):
    for k in range(n):
        last = k
    o[thread.index_1d()] = last  # HERE


def unbound_loop_variable(o: DisjointSlice[i32], n: i32):
    for k in range(n):  # noqa: B007
        pass
    o[thread.index_1d()] = k  # HERE


def unbound_before(o: DisjointSlice[i32]):
    o[thread.index_1d()] = x  # HERE  # noqa: F821
    x = 1  # noqa: F841


def unbound_after_break(o: DisjointSlice[i32], n: i32):
    while True:
        if n > 3:
            break
        x = n
        n += 1
    o[thread.index_1d()] = x  # HERE


@pytest.mark.parametrize(
    "fn", [unbound, unbound_after_loop, unbound_loop_variable, unbound_before, unbound_after_break]
)
def test_a_name_must_be_bound_on_every_path(fn):
    refused(fn, gw.KernelNameError, "is not bound")


@gw.kernel(block=1)
def bound_on_every_path(o: DisjointSlice[i32], n: i32):
    if n > 0:
        x = 1
    elif n == 0:
        x = 2
    else:
        return
    for _ in range(3):
        y = x * 2
    while True:
        z = y
        if z > 0:
            break
    for k in range(4):
        if k == n:
            w = 10
            break
    else:
        w = 20
    if thread.global_index() == 0:
        o[0] = x
        o[1] = y
        o[2] = z
        o[3] = w
        o[4] = k


@pytest.mark.parametrize(
    ("n", "wanted"), [(0, [2, 4, 4, 10, 0]), (2, [1, 2, 2, 10, 2]), (9, [1, 2, 2, 20, 3]), (-1, [0] * 5)]
)
def test_names_that_every_path_binds(n, wanted):
    assert outputs(bound_on_every_path, 5, np.int32, n) == wanted


# -- rule 6: shifts, conversions, extremes ---------------------------------------------------------


@gw.kernel(block=1)
def shifts(o: DisjointSlice[i64], a: i32, b: u32, n: i32, m: u64):
    if thread.global_index() == 0:
        o[0] = i64(a << n)
        o[1] = i64(a >> n)
        o[2] = i64(b >> n)
        o[3] = i64(b << m)
        o[4] = i64(a >> 1)
        o[5] = i64(a << 32)
        o[6] = i64(1 << n)
        o[7] = i64(u8(255) << 1)


@pytest.mark.parametrize(
    ("n", "m", "wanted"),
    [
        (32, 2**32, [0, -1, 0, 0, -4, 0, 0, 254]),
        (31, 1, [-(2**31), -1, 1, 2**32 - 14, -4, 0, -(2**31), 254]),
        (-1, 31, [0, -1, 0, 2**31, -4, 0, 0, 254]),
    ],
)
def test_shifts_past_the_width(n, m, wanted):
    b = 2**32 - 7
    assert outputs(shifts, 8, np.int64, -7, b, n, m) == wanted


@gw.kernel(block=64)
def saturates(x: Slice[f32], a: DisjointSlice[i32], b: DisjointSlice[u8], c: DisjointSlice[i8]):
    i = thread.index_1d()
    if i in a and i in b and i in c:
        a[i] = i32(x[i])
        b[i] = u8(x[i])
        c[i] = i8(x[i])


def test_float_to_integer_saturates_and_nan_gives_zero():
    x = np.array([np.nan, np.inf, -np.inf, 3e9, -3e9, 1.9, -1.9, 200, -200], np.float32)
    a, b, c = np.zeros(9, np.int32), np.zeros(9, np.uint8), np.zeros(9, np.int8)
    run(saturates, x, a, b, c)
    assert a.tolist() == [0, 2**31 - 1, -(2**31), 2**31 - 1, -(2**31), 1, -1, 200, -200]
    assert b.tolist() == [0, 255, 0, 255, 0, 1, 0, 200, 0]
    assert c.tolist() == [0, 127, -128, 127, -128, 1, -1, 127, -128]


@gw.kernel(block=64)
def extremes(x: Slice[f32], y: Slice[f32], a: DisjointSlice[f32], b: DisjointSlice[f32], c: DisjointSlice[f32]):
    i = thread.index_1d()
    if i in a and i in b and i in c:
        a[i] = min(x[i], y[i])
        b[i] = max(x[i], y[i])
        c[i] = gw.math.fmin(x[i], y[i])


def test_min_and_max_propagate_nan_in_either_order():
    x = np.array([np.nan, 1, -0.0, 0.0, 2], np.float32)
    y = np.array([1, np.nan, 0.0, -0.0, 3], np.float32)
    a, b, c = (np.zeros(5, np.float32) for _ in range(3))
    run(extremes, x, y, a, b, c)
    assert np.isnan(a[:2]).all() and np.isnan(b[:2]).all()
    assert c[:2].tolist() == [1, 1]
    assert np.signbit(a[2:4]).all() and not np.signbit(b[2:4]).any()
    assert (a[4], b[4]) == (2, 3)


# -- powers ----------------------------------------------------------------------------------------


@gw.kernel(block=1)
def powers(o: DisjointSlice[i64], f: DisjointSlice[f32], a: i32, n: u32, x: f32):
    if thread.global_index() == 0:
        o[0] = a**3
        o[1] = a**n
        o[2] = i64(2**n)
        o[3] = int(pow(3, 1))
        o[4] = a**0
        f[0] = x**2
        f[1] = x**-1
        f[2] = x**0.5


def test_powers():
    o, f = np.zeros(5, np.int64), np.zeros(3, np.float32)
    run(powers, o, f, -3, 5, 4.0, grid=1)
    assert o.tolist() == [-27, -243, 32, 3, 1]
    assert f.tolist() == [16.0, 0.25, 2.0]


def negative_power(o: DisjointSlice[i32], a: i32):
    o[thread.index_1d()] = a**-1  # HERE


def signed_power(o: DisjointSlice[i32], a: i32, n: i32):
    o[thread.index_1d()] = a**n  # HERE


def test_integer_powers_that_would_be_fractions():
    refused(negative_power, gw.KernelValueError, "fraction", "f32(a)")
    refused(signed_power, gw.KernelTypeError, "u32(n)")


# -- rule 10: indices ------------------------------------------------------------------------------


@gw.kernel(block=1)
def wide_index(o: DisjointSlice[i32], a: Slice[i32], k: i64, m: u64):
    if thread.global_index() == 0:
        o[0] = a[k]
        o[1] = a[m]


@pytest.mark.parametrize("bad", [2**32, 2**32 + 1, -(2**32), 2**31])
def test_a_wide_index_faults_and_never_wraps(bad):
    out, a = np.full(2, 9, np.int32), np.arange(5, dtype=np.int32)
    with pytest.raises(gw.DeviceIndexError):
        run(wide_index, out, a, bad, 3, grid=1)
    assert out.tolist() == [0, 3]
    with pytest.raises(gw.DeviceIndexError):
        run(wide_index, out, a, 2, bad % 2**64, grid=1)
    assert out.tolist() == [2, 0]


@gw.kernel(block=1)
def unsigned_index(o: DisjointSlice[i32], a: Slice[i32], k: u32, m: u8):
    if thread.global_index() == 0:
        o[0] = a[k]
        o[1] = a[m]
        o[2] = a[-1]
        o[3] = i32(k in a)
        o[4] = i32(-1 in a)
        o[5] = i32(index(k) < len(a))


def test_an_unsigned_index():
    a = np.arange(200, dtype=np.int32)
    assert outputs(unsigned_index, 6, np.int32, a, 7, 199) == [7, 199, 199, 1, 0, 1]
    out = np.zeros(6, np.int32)
    with pytest.raises(gw.DeviceIndexError):
        run(unsigned_index, out, a, 2**32 - 1, 0, grid=1)
    assert out.tolist() == [0, 0, 199, 0, 0, 0]


def test_the_index_type_follows_the_specialisation():
    from gridwise.ir import types as ir

    text = to_text(compiled(wide_index, index=ir.I64).kernel)
    assert "select" not in text and "index=i64" in text


# -- constants -------------------------------------------------------------------------------------

SCALE = 3
RATE = 0.1
FLAGS = (1, 2.5, True)


@gw.kernel(block=1)
def captured(o: DisjointSlice[f64], n: i64):
    if thread.global_index() == 0:
        o[0] = SCALE * RATE
        o[1] = f64(n * SCALE)
        o[2] = FLAGS[1]
        o[3] = 1.0 if FLAGS[2] else 0.0
        o[4] = math.pi + np.e
        o[5] = math.sqrt(2.0)
        o[6] = math.inf


def test_captured_constants_are_exact_until_they_meet_a_type():
    got = outputs(captured, 7, np.float64, 5)
    assert got == [3 * 0.1, 15.0, 2.5, 1.0, math.pi + math.e, math.sqrt(2.0), math.inf]


@gw.kernel(block=64)
def bools(a: Slice[gw.bool_], b: Slice[gw.bool_], o: DisjointSlice[gw.bool_], n: DisjointSlice[u16]):
    i = thread.index_1d()
    if i in o and i in n:
        o[i] = (a[i] and not b[i]) or a[i] == b[i]
        n[i] = u16(a[i]) + u16(a[i] ^ b[i]) + u16(a[i] & b[i])


def test_bool_arrays():
    a, b = np.array([0, 0, 1, 1], bool), np.array([0, 1, 0, 1], bool)
    o, n = np.zeros(4, bool), np.zeros(4, np.uint16)
    run(bools, a, b, o, n)
    assert o.tolist() == [True, False, True, True] and n.tolist() == [0, 1, 2, 2]


@gw.kernel(block=1)
def weak_choices(o: DisjointSlice[f64], x: f64, y: f32, n: i32):
    if thread.global_index() == 0:
        o[0] = x * (0.1 if n > 0 else 0.2 if n < 0 else 0.3)
        o[1] = y * (1 if n > 0 else -1)
        o[2] = 0.1 if n > 0 else 0.2
        sign = 1 if n > 0 else -1
        o[3] = f64(sign * n)
        o[4] = f64(0.1 if n > 0 else 0.2) * 10


def test_a_choice_between_literals_is_as_weak_as_they_are():
    assert outputs(weak_choices, 5, np.float64, 1.0, 2.0, 5) == [0.1, 2.0, 0.1, 5.0, 1.0]
    assert outputs(weak_choices, 5, np.float64, 1.0, 2.0, -5) == [0.2, -2.0, 0.2, 5.0, 2.0]
    assert outputs(weak_choices, 5, np.float64, 1.0, 2.0, 0)[0] == 0.3


@gw.kernel(block=1)
def literals_for_floats(o: DisjointSlice[f32], n: i32):
    if thread.global_index() == 0:
        x = 1.5
        if n > 0:
            x = 2
        total = 0.0
        for w in (1.0, 2, 3.5):
            total += w * x
        o[0] = total


def test_a_whole_literal_fits_a_float_name():
    assert outputs(literals_for_floats, 1, np.float32, 1) == [13.0]
    assert outputs(literals_for_floats, 1, np.float32, 0) == [9.75]


@gw.kernel(block=1)
def folded_extremes(o: DisjointSlice[f32]):
    if thread.global_index() == 0:
        o[0] = min(0.0, -0.0)
        o[1] = max(f32(-0.0), f32(0.0))
        o[2] = max(math.nan, 1.0)
        o[3] = min(1.0, f32(math.nan))
        o[4] = f32(-7.5) // f32(2.0)
        o[5] = f32(1.0) / f32(0.0)


def test_constants_have_the_extremes_of_run_time():
    got = np.array(outputs(folded_extremes, 6, np.float32), np.float32)
    assert np.signbit(got[0]) and not np.signbit(got[1])
    assert np.isnan(got[2:4]).all() and got[4:].tolist() == [-4.0, np.inf]
