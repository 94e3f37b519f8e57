"""Rule 8: control flow means what it means in Python, checked against Python itself."""

from enum import IntEnum

import numpy as np
import pytest
from lowering import compiled, run

import gridwise as gw
from gridwise import DisjointSlice, Slice, f32, i32, i64, thread, u32
from gridwise.ir import to_text

INPUTS = np.array([-9, -2, -1, 0, 1, 2, 3, 5, 8, 13, 100], np.int32)


def same_as_python(device_function, inputs=INPUTS):
    """Every thread calls the function on its element; Python calls the same function on the same numbers."""

    @gw.kernel(block=32)
    def apply(a: Slice[i32], o: DisjointSlice[i32]):
        i = thread.index_1d()
        if i in o:
            o[i] = device_function(a[i])

    out = np.zeros(len(inputs), np.int32)
    run(apply, inputs, out)
    wanted = [int(device_function(int(x))) for x in inputs.tolist()]
    assert out.tolist() == [(w + 2**31) % 2**32 - 2**31 for w in wanted]


def while_else(x: i32) -> i32:
    n = 0
    while n < x:
        n += 3
        if n == 9:
            break
    else:
        n = -n
    return n


def for_else(x: i32) -> i32:
    total = 0
    for k in range(10):
        if k == x:
            break
        total += k
    else:
        total += 1000
    return total


def nested_breaks(x: i32) -> i32:
    n = 0
    for a in range(5):
        for b in range(5):
            if b > a:
                break
            if (a + b) % 2:
                continue
            n += a * 10 + b
        else:
            n += 100
        if n > x * 20:
            break
    return n


def continue_in_while(x: i32) -> i32:
    k = n = 0
    while k < 10:
        k += 1
        if k % 3 == 0:
            if x > 2:
                continue
            else:
                n += 1
        n += k
    return n


def return_in_loops(x: i32) -> i32:
    for a in range(4):
        k = 0
        while True:
            if a * k == x:
                return a * 100 + k
            k += 1
            if k > 5:
                break
    return -1


def loop_variable_after(x: i32) -> i32:
    for k in range(7):
        if k == x:
            break
    first = k
    for k in range(3):  # noqa: B007
        pass
    return first * 10 + k


def loop_variable_changed(x: i32) -> i32:
    n = 0
    for k in range(6):
        k = k * x
        n += k
    return n


def bounds_are_read_once(x: i32) -> i32:
    n = 5
    total = 0
    for k in range(n):
        n = x
        total += n + k
    return total


def counting_down(x: i32) -> i32:
    n = 0
    for k in range(x, -3, -2):
        n = n * 3 + k
    for k in reversed(range(x)):
        n = n - k
    return n


def step_from_data(x: i32) -> i32:
    n = 0
    for k in range(0, 20, abs(x) + 1):
        n += k
    return n


def early_returns(x: i32) -> i32:
    if x < 0:
        return -1
    if x == 0:
        return 0
    y = x * 2
    if y > 10:
        if y > 100:
            return 3
        y += 1
    else:
        return y
    return y * 2


def literal_returns(x: i32) -> i32:
    if x > 2:
        return 1
    return 0


def conditional_expressions(x: i32) -> i32:
    a = 1 if x > 0 else -1 if x < 0 else 0
    b = x if x > 3 else 3
    return a * 10 + b


def chained(x: i32) -> i32:
    return (1 if -1 <= x < 3 else 0) + (10 if 0 < x != 3 < 100 else 0) + (100 if x == x == 2 else 0)


def values_of_and_or(x: i32) -> i32:
    return (x and 7) + (x or 5) * 10


def short_circuit(x: i32) -> i32:
    if (x != 0 and 100 // x > 10) or x == 100:
        return 1
    return 0


def truth_of_numbers(x: i32) -> i32:
    n = 0
    if x:
        n += 1
    if not x:
        n += 2
    while x - 5 and n < 9:
        n += 3
    return n


def matches(x: i32) -> i32:
    match x:
        case 0:
            return 10
        case 1 | 2 | 3:
            return 20
        case -1:
            return 30
        case n if n > 50:
            return n
        case _:
            return 40


def matches_tuples(x: i32) -> i32:
    match (x % 2, x > 2):
        case (0, True):
            r = 1
        case (0, False):
            r = 2
        case (one, big) if not big:
            r = 3 + one
        case _:
            r = 9
    return r


def augmented(x: i32) -> i32:
    x += 3
    x *= 2
    x -= 1
    x //= 3
    x %= 5
    x <<= 2
    x |= 1
    x ^= 6
    x &= 31
    x >>= 1
    return x


def swaps(x: i32) -> i32:
    a, b, c = x, x + 1, 3
    a, b = b, a
    (a, b), c = (c, a), b
    return a * 100 + b * 10 + c


def walrus(x: i32) -> i32:
    n = 0
    while (y := x - n) > 3:
        n += y // 2
    return n * 100 + y


def nested_functions(x: i32) -> i32:
    def add(a: i32) -> i32:
        return a + base

    base = 10
    first = add(x)
    base = 20
    square = lambda v: v * v  # noqa: E731
    return first * 1000 + add(x) + square(add(1)) % 7


def defaults_and_keywords(x: i32) -> i32:
    def f(a: i32, b: i32 = 2, *, c: i32 = 3) -> i32:
        return a * 100 + b * 10 + c

    return f(x) + f(x, 5) + f(a=1, c=x) + f(x, b=x, c=x)


def bare_return(x: i32) -> i32:
    def noop(v: i32) -> None:
        if v > 3:
            return
        return None

    noop(x)
    return x


def unrolled(x: i32) -> i32:
    n = 0
    for k, w in enumerate((3, 1, 4, 1, 5)):
        if w == 1:
            continue
        if k > x:
            break
        n += w * k
    else:
        n += 50
    for p, q in zip((1, 2), (x, 3), strict=False):
        n += p * q
    return n


FUNCTIONS = [
    while_else,
    for_else,
    nested_breaks,
    continue_in_while,
    return_in_loops,
    loop_variable_after,
    loop_variable_changed,
    bounds_are_read_once,
    counting_down,
    step_from_data,
    early_returns,
    literal_returns,
    conditional_expressions,
    chained,
    values_of_and_or,
    short_circuit,
    truth_of_numbers,
    matches,
    matches_tuples,
    augmented,
    swaps,
    walrus,
    nested_functions,
    defaults_and_keywords,
    bare_return,
]


@pytest.mark.parametrize("fn", FUNCTIONS, ids=[f.__name__ for f in FUNCTIONS])
def test_control_flow_is_pythons(fn):
    same_as_python(fn)


def test_loops_over_tuples():
    same_as_python(unrolled)


# -- order of evaluation ---------------------------------------------------------------------------


@gw.kernel(block=1)
def order(o: DisjointSlice[i32], a: DisjointSlice[i32]):
    if thread.global_index() == 0:
        o[0], o[1] = a[0], a[1]
        a[0], a[1] = a[1], a[0]
        x = y = a[0]
        x += 1
        o[2] = x * 10 + y
        k = 0
        a[k], k = 7, 2
        o[3] = a[0] * 10 + k


def test_order_of_evaluation():
    o, a = np.zeros(4, np.int32), np.array([1, 2], np.int32)
    run(order, o, a, grid=1)
    assert o.tolist() == [1, 2, 32, 72] and a.tolist() == [7, 1]


@gw.kernel(block=1)
def guarded(o: DisjointSlice[i32], a: Slice[i32], k: i32):
    if thread.global_index() == 0:
        ok = k >= 0 and k < len(a) and a[k] > 0
        o[0] = a[k] if ok else -1


@pytest.mark.parametrize(("k", "wanted"), [(1, 5), (7, -1), (-3, -1), (0, -1)])
def test_the_second_side_is_not_evaluated(k, wanted):
    o = np.zeros(1, np.int32)
    run(guarded, o, np.array([-4, 5, 6], np.int32), k, grid=1)  # a fault would raise
    assert o[0] == wanted


# -- enums and constants fold ----------------------------------------------------------------------


class Order(IntEnum):
    ASCENDING = 0
    DESCENDING = 1


@gw.enum(u32)
class Mode(IntEnum):
    ADD = 3
    SUB = 7


@gw.kernel(block=32)
def by_enum(a: Slice[i32], o: DisjointSlice[i32], mode: Mode, order: gw.Const[Order]):
    i = thread.index_1d()
    if i in o:
        match mode:
            case Mode.ADD:
                r = a[i] + 1
            case Mode.SUB:
                r = a[i] - 1
            case _:
                r = 0
        if order == Order.DESCENDING:
            r = -r
        o[i] = r if mode != Mode.SUB or mode.value == 7 else 99


@pytest.mark.parametrize(("mode", "order", "wanted"), [(Mode.ADD, 0, 6), (Mode.SUB, 0, 4), (Mode.SUB, 1, -4)])
def test_enums(mode, order, wanted):
    o = np.zeros(1, np.int32)
    run(by_enum, np.array([5], np.int32), o, mode, Order(order))
    assert o[0] == wanted


def folds(o: DisjointSlice[f32], width: gw.Const[i32]):
    if width > 8:
        o[thread.index_1d()] = 1.0
    else:
        o[thread.index_1d()] = 2.0


def test_constants_choose_the_branch():
    text = to_text(compiled(folds, width=4).kernel)
    assert "if" not in text and "value=2.0" in text and "value=1.0" not in text


def targets(o: DisjointSlice[f32], a: Slice[f32]):
    i = thread.index_1d()
    if gw.target.has(gw.Cap.SUBGROUP):
        x = gw.subgroup.reduce(a[i], "max")
    else:
        x = a[i]
    if i in o:
        o[i] = x


def wrong_on_the_other_target(o: DisjointSlice[f32], a: Slice[f32]):
    i = thread.index_1d()
    if gw.target.has(gw.Cap.SUBGROUP):
        x = a[i]
    else:
        x = a.nothing  # HERE
    o[i] = x


def test_target_conditions_fold_and_both_branches_are_checked():
    from lowering import refused

    with_subgroups = to_text(compiled(targets).kernel)
    without = to_text(compiled(targets, caps=frozenset()).kernel)
    assert "reduce_max" in with_subgroups and "subgroup" not in without
    refused(wrong_on_the_other_target, gw.KernelAttributeError, "'nothing'")
    refused(wrong_on_the_other_target, gw.KernelAttributeError, "'nothing'", caps=frozenset())


def test_early_returns_need_no_jump():
    def guard(o: DisjointSlice[i32], n: i32):
        i = thread.index_1d()
        if i not in o:
            return
        if n < 0:
            return
        o[i] = early_returns(n)

    assert not any(op.code in ("return", "leave", "scope") for op in compiled(guard).kernel.walk())


@gw.kernel(block=32)
def sums(a: Slice[i64], o: DisjointSlice[i64]):
    i = thread.index_1d()
    if i in o:
        total = i64(0)
        for k in range(int(i) + 1):
            total += a[k]
        o[i] = total


def test_a_running_sum():
    a, o = np.arange(20), np.zeros(20, np.int64)
    run(sums, a, o)
    assert o.tolist() == np.cumsum(a).tolist()


@gw.kernel(block=1)
def zero_step(o: DisjointSlice[i32], s: i32):
    if thread.global_index() == 0:
        for k in range(0, 10, s):
            o[0] += k


def test_a_zero_step_is_a_fault():
    o = np.zeros(1, np.int32)
    run(zero_step, o, 5, grid=1)
    assert o[0] == 5
    with pytest.raises(gw.DeviceAssertionError, match="step"):
        run(zero_step, o, 0, grid=1)
