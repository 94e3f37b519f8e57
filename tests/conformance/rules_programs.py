"""Rules 5, 7 to 10 and 12: names, faults, control flow, captured globals, indices, nothing to do."""

from __future__ import annotations

import numpy as np
import pytest
from cases import case, faults, refused, run, values

import gridwise as gw
from gridwise import DisjointSlice, Slice, f32, i32, i64, thread, u32

# -- rule 5 ----------------------------------------------------------------------------------------------------


@gw.kernel(block=1)
def changes_type(o: DisjointSlice[f32]):
    total = 0
    total = 1.5  # HERE
    o[thread.index_1d()] = total


@gw.kernel(block=1)
def bound_on_one_path(o: DisjointSlice[f32], n: i32):
    if n > 0:
        y = 1.0
    o[thread.index_1d()] = y  # HERE


@gw.kernel(block=1)
def bound_in_a_loop(o: DisjointSlice[f32], n: i32):
    for _ in range(n):
        y = 1.0
    o[thread.index_1d()] = y  # HERE


@case("5")
def a_name_keeps_its_type_and_is_bound(device):
    one = np.zeros(1, np.float32)
    refused(device, gw.KernelTypeError, "'total' holds i32", changes_type, one)
    refused(device, gw.KernelNameError, "'y'", bound_on_one_path, one, 1)
    refused(device, gw.KernelNameError, "'y'", bound_in_a_loop, one, 1)


@gw.kernel(block=1)
def bound_on_every_path(o: DisjointSlice[i32], n: i32):
    if thread.global_index() == 0:
        if n > 5:
            y = 1
        elif n > 2:
            y = 2
        else:
            return
        o[0] = y


@case("5")
def a_name_bound_on_every_path_that_goes_on(device):
    assert [values(device, bound_on_every_path, 1, np.int32, n) for n in (9, 4, 1)] == [[1], [2], [0]]


# -- rule 7 ----------------------------------------------------------------------------------------------------


@gw.kernel(block=32)
def gather(a: Slice[i32], at: Slice[i32], o: DisjointSlice[i32]):
    i = thread.index_1d()
    if i in at and i in o:
        o[i] = a[at[i]] + 1  # HERE


@case("7")
def an_index_out_of_range(device):
    a, at = np.arange(10, 20, dtype=np.int32), np.arange(100, dtype=np.int32) % 10
    at[[40, 70, 99]] = -1, 10, 2**31 - 1
    phrase = "gather: index -1 is out of range for a of length 10 (thread 40)"
    out = faults(device, gw.DeviceIndexError, phrase, gather, a, at, np.zeros(100, np.int32))[2]
    want = [11 + n % 10 for n in range(100)]
    want[40] = want[70] = want[99] = 1  # the read gave 0, and every thread went on
    assert out.tolist() == want
    run(device, gather, a, at % 10, np.zeros(100, np.int32))


@gw.kernel(block=32)
def shifted(o: DisjointSlice[i32], by: i32):
    o[thread.global_index() + by] = 7  # HERE


@case("7")
def a_write_out_of_range_does_not_happen(device):
    whole = device.zeros(96, i32)
    for by, thread_, index in ((5, 27, 32), (-3, 0, -3)):
        shifted(whole[32:64], by)
        message = rf"index {index} is out of range for o of length 32 \(thread {thread_}\)"
        with pytest.raises(gw.DeviceIndexError, match=message):
            device.synchronize()
    assert whole.numpy().tolist() == [0] * 32 + [7] * 32 + [0] * 32


@gw.kernel(block=32)
def ratio(a: Slice[i32], b: Slice[i32], o: DisjointSlice[i32], r: DisjointSlice[i32]):
    i = thread.index_1d()
    if i in a and i in b and i in o and i in r:
        o[i] = a[i] // b[i]  # HERE
        r[i] = a[i] % b[i]


@case("7")
def division_by_zero(device):
    a, b = np.full(64, 9, np.int32), np.full(64, 2, np.int32)
    b[[33, 50]] = 0
    out = faults(device, gw.DeviceZeroDivisionError, "(thread 33)", ratio, a, b, a * 0, a * 0)
    assert out[2].tolist() == [0 if n in (33, 50) else 4 for n in range(64)]
    assert out[3].tolist() == [0 if n in (33, 50) else 1 for n in range(64)]


@gw.kernel(block=32)
def positive(x: Slice[f32], o: DisjointSlice[f32]):
    i = thread.index_1d()
    if i in x and i in o:
        assert x[i] >= 0, "a negative number"  # HERE
        o[i] = x[i] + 1


@case("7")
def a_failed_assert(device):
    x = np.ones(50, np.float32)
    x[[20, 45]] = -1
    phrase = "positive: assertion failed: a negative number (thread 20)"
    out = faults(device, gw.DeviceAssertionError, phrase, positive, x, np.zeros_like(x))[1]
    assert out.tolist() == (x + 1).tolist()


@gw.kernel(block=(8, 4), domain=2)
def two_axes(a: Slice[i32, 2], o: DisjointSlice[i32, 2]):
    row, col = thread.index_2d()
    if row < o.shape[0] and col < o.shape[1]:
        o[row, col] = a[row, col + 1]  # HERE


@case("7")
def a_fault_names_axis_and_thread(device):
    a = np.arange(40, dtype=np.int32).reshape(5, 8)
    phrase = "two_axes: index 8 is out of range for a on axis 1 of length 8 (thread (7, 0))"
    out = faults(device, gw.DeviceIndexError, phrase, two_axes, a, np.zeros_like(a))[1]
    assert out[:, :7].tolist() == a[:, 1:].tolist() and not out[:, 7].any()


# -- rule 8 ----------------------------------------------------------------------------------------------------


@gw.kernel(block=32)
def loops(o: DisjointSlice[i32, 2]):
    i = int(thread.index_1d())
    if i < o.shape[0]:
        total = 0
        for k in range(10):
            if k == i:
                continue
            if k > i + 5:
                break
            total += k
        else:
            total += 1000
        o[i, 0] = total
        n, steps = i, 0
        while n != 1 and n > 0:
            n = n // 2 if n % 2 == 0 else 3 * n + 1
            steps += 1
            if steps > 100:
                break
        else:
            steps += 500
        o[i, 1] = i32(steps)
        count = 0
        for a in range(i, -i, -3):
            for b in range(a, 4):
                if a == b:
                    break
                count += 1
        o[i, 2] = count


def loops_in_python(i: int) -> list[int]:
    total = 0
    for k in range(10):
        if k == i:
            continue
        if k > i + 5:
            break
        total += k
    else:
        total += 1000
    n, steps = i, 0
    while n != 1 and n > 0:
        n = n // 2 if n % 2 == 0 else 3 * n + 1
        steps += 1
        if steps > 100:
            break
    else:
        steps += 500
    count = 0
    for a in range(i, -i, -3):
        for b in range(a, 4):
            if a == b:
                break
            count += 1
    return [total, steps, count]


@case("8")
def loops_with_else_break_continue(device):
    out = run(device, loops, np.zeros((40, 3), np.int32), grid=2)[0]
    assert out.tolist() == [loops_in_python(i) for i in range(40)]


def first_multiple(n: i32, limit: i32) -> i32:
    for k in range(1, limit):
        if k * 7 % 5 == n:
            return k
        if k > 20:
            return -1
    return -2


@gw.kernel(block=32)
def expressions(o: DisjointSlice[i32, 2]):
    row = int(thread.index_1d())
    if row < o.shape[0]:
        i = i32(row)
        o[row, 0] = first_multiple(i % 8, i)
        o[row, 1] = 1 if 3 < i <= 9 < 12 else 2
        o[row, 2] = 10 // i if i != 0 and 10 // i > 2 else -1
        a, (b, c) = i, (i + 1, i + 2)
        a, b = b, a
        o[row, 3] = a * 100 + b * 10 + c
        square = lambda x: x * x  # noqa: E731
        o[row, 4] = square(i) + square(2)
        match i % 4:
            case 0 | 2:
                o[row, 5] = 20
            case 1 if i > 8:
                o[row, 5] = 21
            case _:
                o[row, 5] = 22


@case("8")
def returns_conditions_unpacking_match(device):
    def plain(i: int) -> list[int]:
        found = -2
        for k in range(1, i):
            if k * 7 % 5 == i % 8:
                found = k
                break
            if k > 20:
                found = -1
                break
        last = 20 if i % 2 == 0 else 21 if i % 4 == 1 and i > 8 else 22
        guarded = 10 // i if i != 0 and 10 // i > 2 else -1
        return [found, 1 if 3 < i <= 9 < 12 else 2, guarded, (i + 1) * 100 + i * 10 + i + 2, i * i + 4, last]

    out = run(device, expressions, np.zeros((40, 6), np.int32), grid=2)[0]
    assert out.tolist() == [plain(i) for i in range(40)]


@gw.kernel(block=1)
def catches(o: DisjointSlice[i32]):
    try:  # HERE
        o[0] = 1
    except ValueError:
        o[0] = 2


@gw.kernel(block=1)
def builds_a_list(o: DisjointSlice[i32]):
    x = [1, 2]  # HERE
    o[0] = x[0]


@case("8")
def what_is_not_supported_is_refused_by_name(device):
    refused(device, gw.KernelSyntaxError, "try", catches, np.zeros(1, np.int32))
    refused(device, gw.KernelSyntaxError, "list", builds_a_list, np.zeros(1, np.int32))


# -- rule 9 ----------------------------------------------------------------------------------------------------

GAIN = 3


def gained(x: i32) -> i32:
    return x * GAIN


def doubled(x: i32) -> i32:
    return x * 2


helper = gained


@gw.kernel(block=32)
def captured(o: DisjointSlice[i32]):
    i = thread.index_1d()
    if i in o:
        o[i] = helper(i32(int(i))) + GAIN


@case("9")
def a_changed_global_or_function_is_seen(device):
    global GAIN, helper
    try:
        assert run(device, captured, np.zeros(3, np.int32))[0].tolist() == [3, 6, 9]
        GAIN = 5
        assert run(device, captured, np.zeros(3, np.int32))[0].tolist() == [5, 10, 15]
        helper = doubled
        assert run(device, captured, np.zeros(3, np.int32))[0].tolist() == [5, 7, 9]
    finally:
        GAIN, helper = 3, gained
    assert run(device, captured, np.zeros(3, np.int32))[0].tolist() == [3, 6, 9]


# -- rule 10 ---------------------------------------------------------------------------------------------------


@gw.kernel(block=32)
def far(a: Slice[f32], o: DisjointSlice[f32], step: i32):
    i = thread.index_1d()
    if i in o:
        o[i] = a[int(i) * step]  # HERE


@case("10")
def an_index_that_wraps_is_out_of_range_or_wide(device):
    """2**16 * 2**16 is 2**32: taken modulo that it would be element 0."""
    a = np.arange(8, dtype=np.float32)
    out = run(device, far, a, np.zeros(8, np.float32), 1)[1]
    assert out.tolist() == a.tolist()
    step = 2**30
    got = faults(device, gw.DeviceIndexError, "out of range for a of length 8", far, a, np.zeros(8, np.float32), step)
    assert got[1][0] == 0.0 and got[1][1] == 0.0


@gw.kernel(block=1)
def by_unsigned(a: Slice[f32], o: DisjointSlice[f32], k: u32):
    if thread.global_index() == 0:
        o[0] = a[k]  # HERE


@case("10")
def an_unsigned_index_past_the_signed_range(device):
    a = np.arange(8, dtype=np.float32)
    assert run(device, by_unsigned, a, np.zeros(1, np.float32), 5, grid=1)[1].tolist() == [5.0]
    faults(device, gw.DeviceIndexError, "length 8", by_unsigned, a, np.zeros(1, np.float32), 2**32 - 1, grid=1)


@gw.kernel(block=1)
def by_wide(a: Slice[f32], o: DisjointSlice[f32], k: i64):
    if thread.global_index() == 0:
        o[0] = a[k]  # HERE


@case("10", needs=(gw.Cap.I64,))
def a_64_bit_index_is_not_cut(device):
    a = np.arange(1, 9, dtype=np.float32)
    assert run(device, by_wide, a, np.zeros(1, np.float32), 3, grid=1)[1].tolist() == [4.0]
    got = faults(device, gw.DeviceIndexError, "length 8", by_wide, a, np.zeros(1, np.float32), 2**32, grid=1)
    assert got[1].tolist() == [0.0]


# -- rule 12 ---------------------------------------------------------------------------------------------------


@case("12")
def a_launch_with_nothing_to_do(device):
    assert run(device, captured, np.zeros(0, np.int32))[0].tolist() == []
    assert run(device, captured, np.full(3, 8, np.int32), grid=0)[0].tolist() == [8, 8, 8]
    shape = np.zeros((0, 8), np.int32)
    assert run(device, two_axes, shape, np.zeros((0, 8), np.int32))[1].shape == (0, 8)
