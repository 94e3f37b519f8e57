"""Arrays, witnesses, shared and local memory, atomics, subgroups, print, assert, gw.unsafe."""

import numpy as np
import pytest
from lowering import compiled, refused, run

import gridwise as gw
from gridwise import (
    AtomicSlice,
    DisjointSlice,
    Slice,
    atomic,
    barrier,
    f32,
    i32,
    i64,
    subgroup,
    thread,
    u32,
)
from gridwise.ir import to_text

# -- two and three axes ----------------------------------------------------------------------------


@gw.kernel(domain=2, block=(8, 4))
def transpose(a: Slice[f32, 2], o: DisjointSlice[f32, 2], n: DisjointSlice[i32, 2]):
    i = thread.index_2d()
    row, col = i
    if i in o and (row, col) in n:
        o[i] = a[col, row] + f32(len(a)) * 0.0
        n[row, col] = i32(a.shape[1] * 1000 + row * 10 + col) + a.ndim


def test_two_axes_are_row_and_column():
    a = np.arange(15, dtype=np.float32).reshape(3, 5)
    o, n = np.zeros((5, 3), np.float32), np.zeros((5, 3), np.int32)
    run(transpose, a, o, n)
    assert np.array_equal(o, a.T)
    assert n.tolist() == [[5002 + r * 10 + c for c in range(3)] for r in range(5)]


@gw.kernel(domain=3, block=(4, 2, 2))
def three_axes(o: DisjointSlice[i32, 3]):
    i = thread.index_3d()
    if i in o:
        plane, row, col = i
        o[i] = i32(plane * 100 + row * 10 + col)


def test_three_axes():
    o = np.zeros((2, 3, 5), np.int32)
    run(three_axes, o)
    assert o.tolist() == [[[p * 100 + r * 10 + c for c in range(5)] for r in range(3)] for p in range(2)]


def one_index_of_two(o: DisjointSlice[f32, 2]):
    o[3] = 1.0  # HERE


def witness_of_one_axis(o: DisjointSlice[f32, 2]):
    i = thread.index_1d()
    if i in o:  # HERE
        pass


def witness_too_wide(o: DisjointSlice[f32, 2]):
    i = thread.index_2d()  # HERE
    o[i] = 1.0


def not_distinct(o: DisjointSlice[f32]):
    i = thread.index_1d()  # HERE
    o[i] = 1.0


def float_index(o: DisjointSlice[f32], x: f32):
    o[x] = 1.0  # HERE


def writes_a_slice(o: Slice[f32]):
    o[thread.index_1d()] = 1.0  # HERE


def reads_an_atomic(o: AtomicSlice[u32], c: DisjointSlice[u32]):
    c[thread.index_1d()] = o[0]  # HERE


def array_as_number(a: Slice[f32], c: DisjointSlice[f32]):
    c[thread.index_1d()] = a + 1.0  # HERE


def length_attribute(a: Slice[f32], c: DisjointSlice[f32]):
    c[thread.index_1d()] = f32(a.length)  # HERE


def loops_over_an_array(a: Slice[f32], c: DisjointSlice[f32]):
    for x in a:  # HERE
        c[thread.index_1d()] = x


def slices(a: Slice[f32], c: DisjointSlice[f32]):
    c[thread.index_1d()] = a[1:3]  # HERE


def test_a_witness_has_an_axis_for_each_of_the_launch():
    refused(not_distinct, gw.KernelTypeError, "thread.index_2d()", "thread.global_index(0)", domain=2)


@pytest.mark.parametrize(
    ("fn", "error", "phrase"),
    [
        (one_index_of_two, gw.KernelTypeError, "write o[i, j]"),
        (witness_of_one_axis, gw.KernelTypeError, "thread.index_2d()"),
        (witness_too_wide, gw.KernelTypeError, "domain=2"),
        (float_index, gw.KernelTypeError, "write i32(x)"),
        (writes_a_slice, gw.KernelTypeError, "annotate it as DisjointSlice[f32]"),
        (reads_an_atomic, gw.KernelTypeError, "only atomic.*"),
        (array_as_number, gw.KernelTypeError, "a[i]"),
        (length_attribute, gw.KernelAttributeError, "len(a)"),
        (loops_over_an_array, gw.KernelTypeError, "range(len(a))"),
        (slices, gw.KernelSyntaxError, "range(start, stop)"),
    ],
)
def test_mistakes_with_arrays(fn, error, phrase):
    refused(fn, error, phrase)


# -- other witnesses -------------------------------------------------------------------------------


@gw.kernel(block=32)
def runs(c: DisjointSlice[i32]):
    for i in thread.run(4):
        if i in c:
            c[i] = i32(i) * 3


@gw.kernel(block=32)
def grid_stride(c: DisjointSlice[i32]):
    for i in thread.grid_stride(c):
        c[i] += i32(i)


def test_runs_and_grid_strides():
    c = np.zeros(1001, np.int32)
    run(runs, c, grid=8)
    assert np.array_equal(c, np.arange(1001) * 3)
    run(grid_stride, c, grid=3)
    assert np.array_equal(c, np.arange(1001) * 4)


def test_a_long_run_is_told_to_the_launch():
    assert compiled(runs.fn).longest_run == 4 and compiled(grid_stride.fn).longest_run == 1


@gw.kernel(domain=2, block=(4, 2))
def identities(o: DisjointSlice[i32, 2]):
    row, col = thread.index_2d()
    if (row, col) in o:
        o[row, col] = i32(
            thread.local_index(0)
            + 10 * thread.local_index(1)
            + 100 * thread.block_index(0)
            + 1000 * thread.block_index(1)
            + 10000 * thread.local_linear()
            + 100000 * (thread.global_index(1) - row)
            + thread.block_dim(1)
            - thread.grid_dim(1)
        )


def test_identities():
    o = np.zeros((4, 8), np.int32)
    run(identities, o)
    wanted = [
        [c % 4 + 10 * (r % 2) + 100 * (c // 4) + 1000 * (r // 2) + 10000 * (c % 4 + 4 * (r % 2)) for c in range(8)]
        for r in range(4)
    ]
    assert o.tolist() == wanted


# -- shared and local memory -----------------------------------------------------------------------


WIDTH = 16


@gw.struct
class Cell:
    sum: i32
    count: i32


@gw.kernel(block=64)
def tree(a: Slice[i32], o: DisjointSlice[i32]):
    tile = gw.shared((2 * WIDTH * 2,), i32)
    cells = gw.shared((64,), Cell)
    t = thread.local_index()
    i = thread.index_1d()
    tile[t] = a[i] if i in a else 0
    cells[t] = Cell(tile[t], 1)
    barrier()
    step = 32
    while step > 0:
        if t < step:
            tile[t] += tile[t + step]
            cells[t].sum += cells[t + step].sum
            cells[t].count += cells[t + step].count
        barrier()
        step //= 2
    if t == 0:
        o[thread.block_index()] = tile[0] + cells[0].sum * 0 + cells[0].count - 64


def test_a_tree_reduction_in_shared_memory():
    a, o = np.arange(500, dtype=np.int32), np.zeros(8, np.int32)
    run(tree, a, o, grid=8)
    assert o.sum() == a.sum()


@gw.kernel(block=32)
def locals_(o: DisjointSlice[i32], k: i32):
    i = thread.index_1d()
    table = gw.local((2, 3), i32)
    for r in range(2):
        for c in range(3):
            table[r, c] = r * 10 + c
    total = 0
    for _ in range(2):
        fresh = gw.local(2, i32)
        fresh[k] += 1
        total += fresh[0] + 10 * fresh[1]
    if i in o:
        o[i] = table[1, k] + total * 100 + i32(len(table))


def test_a_local_array_is_zero_each_time_it_is_made():
    o = np.zeros(2, np.int32)
    run(locals_, o, 1)
    assert o.tolist() == [11 + 2000 + 2] * 2


def shape_not_constant(o: DisjointSlice[f32], n: i32):
    t = gw.shared((n,), f32)  # HERE
    o[thread.index_1d()] = t[0]


def shared_in_a_loop(o: DisjointSlice[f32]):
    for _ in range(3):
        t = gw.shared((8,), f32)  # HERE
        o[thread.index_1d()] = t[0]


def constant_index_out_of_range(o: DisjointSlice[f32]):
    t = gw.local((8,), f32)
    o[thread.index_1d()] = t[8]  # HERE


def python_type(o: DisjointSlice[f32]):
    t = gw.local((8,), float)  # HERE
    o[thread.index_1d()] = t[0]


@pytest.mark.parametrize(
    ("fn", "error", "phrase"),
    [
        (shape_not_constant, gw.KernelValueError, "compile time"),
        (shared_in_a_loop, gw.KernelSyntaxError, "before the loop"),
        (constant_index_out_of_range, gw.KernelValueError, "index 8 is out of range for t of length 8"),
        (python_type, gw.KernelTypeError, "f32"),
    ],
)
def test_mistakes_with_memory(fn, error, phrase):
    refused(fn, error, phrase)


# -- atomics, subgroups ----------------------------------------------------------------------------


@gw.kernel(block=64)
def atomics(a: Slice[i32], h: AtomicSlice[u32], m: AtomicSlice[i32], f: AtomicSlice[f32]):
    bins = gw.shared((4,), u32)
    i = thread.index_1d()
    t = thread.local_index()
    if i in a:
        atomic.add(bins, a[i] % 4, 1, scope="block")
        atomic.max(m, 0, a[i])
        atomic.min(m, 1, a[i], order="acq_rel")
        atomic.add(f, 0, 0.5)
        atomic.or_(h, 4, u32(1) << u32(a[i] & 31))
    barrier()
    if t < 4:
        atomic.add(h, t, bins[t])


def test_atomics():
    a = np.arange(-100, 200, dtype=np.int32)
    h, m, f = np.zeros(5, np.uint32), np.zeros(2, np.int32), np.zeros(1, np.float32)
    run(atomics, a, h, m, f, grid=5)
    assert h.tolist() == [75, 75, 75, 75, 2**32 - 1] and m.tolist() == [199, -100] and f[0] == 150


def atomic_on_disjoint(o: DisjointSlice[u32]):
    atomic.add(o, 0, 1)  # HERE


def atomic_float_or(o: AtomicSlice[f32]):
    atomic.or_(o, 0, 1.0)  # HERE


def atomic_order(o: AtomicSlice[u32]):
    atomic.add(o, 0, 1, order="sequential")  # HERE


def atomic_arguments(o: AtomicSlice[u32]):
    atomic.compare_exchange(o, 0, 1)  # HERE


@pytest.mark.parametrize(
    ("fn", "error", "phrase"),
    [
        (atomic_on_disjoint, gw.KernelTypeError, "annotate it as AtomicSlice[u32]"),
        (atomic_float_or, gw.KernelTypeError, "integers"),
        (atomic_order, gw.KernelValueError, "acq_rel"),
        (atomic_arguments, gw.KernelTypeError, "expected, desired"),
    ],
)
def test_mistakes_with_atomics(fn, error, phrase):
    refused(fn, error, phrase)


@gw.kernel(block=64)
def subgroups(a: Slice[i32], o: DisjointSlice[i32], n: DisjointSlice[i32]):
    i = thread.index_1d()
    x = a[i]
    top = subgroup.reduce(x, "max")
    all_ = subgroup.all(x > -1)
    below = subgroup.scan(x, "exclusive_add")
    up = subgroup.shuffle_xor(x, 1)
    size = subgroup.size()
    if i in o and i in n:
        o[i] = top + (1000 if all_ else 0) + i32(size * 0)
        n[i] = up if below >= 0 else -1


def test_subgroups():
    a, o, n = np.arange(64, dtype=np.int32), np.zeros(64, np.int32), np.zeros(64, np.int32)
    run(subgroups, a, o, n, grid=1)
    assert (o >= 1000).all() and o[63] == 1063
    assert n.tolist() == [k ^ 1 for k in range(64)]


# -- print, assert, unsafe -------------------------------------------------------------------------


@gw.kernel(block=1)
def prints(a: Slice[f32], n: i32):
    i = thread.index_1d()
    print(f"i={i} a={a[0]:.2f} {n:>4d}|", n > 2, (n, 1.5), "done", sep=";")


def test_print(capfd):
    run(prints, np.array([0.125], np.float32), 7, grid=1)
    assert capfd.readouterr().out == "i=0 a=0.12    7|;True;(7, 1.5);done\n"


@gw.kernel(block=32)
def asserts(a: Slice[i32], o: DisjointSlice[i32]):
    i = thread.index_1d()
    if i in o:
        assert a[i] >= 0, "negative"
        assert a[i] != 5
        o[i] = a[i]


def test_a_failed_assert_is_a_fault_and_the_thread_goes_on():
    o = np.zeros(3, np.int32)
    with pytest.raises(gw.DeviceAssertionError, match="negative"):
        run(asserts, np.array([1, -2, 3], np.int32), o)
    assert o.tolist() == [1, -2, 3]
    with pytest.raises(gw.DeviceAssertionError, match=r"a\[i\] != 5"):
        run(asserts, np.array([1, 5, 3], np.int32), o)


def unsafe_reason(o: DisjointSlice[f32], k: i32):
    with gw.unsafe("k is another number in every thread"):
        o[k] = 1.0
    if k in o:
        pass


def test_unsafe_marks_its_accesses():
    stores = [op for op in compiled(unsafe_reason).kernel.walk() if op.code == "store"]
    assert [op.attrs["unsafe"] for op in stores] == ["k is another number in every thread"]
    assert stores[0].attrs["check"] == "inplace"  # the index is checked as ever


def unsafe_without_reason(o: DisjointSlice[f32]):
    with gw.unsafe():  # HERE
        o[0] = 1.0


def other_with(o: DisjointSlice[f32]):
    with open("f") as _f:  # HERE
        o[0] = 1.0


def test_with_is_only_for_unsafe():
    refused(unsafe_without_reason, gw.KernelSyntaxError, "needs the reason")
    refused(other_with, gw.KernelSyntaxError, "gw.unsafe")


# -- requires, strides, the index type -------------------------------------------------------------


def required(a: Slice[f32], o: DisjointSlice[f32], m: u32, k: i32):
    o[thread.index_1d()] = a[0]


def test_requires_becomes_facts():
    requires = lambda a, o, m, k: len(a) >= m * k and len(o) > 0 and max([m, k]) > 0  # noqa: E731
    text = to_text(compiled(required, requires=requires).kernel)
    assert text.count("assume") == 2  # what the language cannot say is the launch's alone
    assert "mul" in text and "cast %m : i64" in text


@gw.kernel(block=32)
def strided(a: Slice[i64], o: DisjointSlice[i64]):
    i = thread.index_1d()
    if i in o:
        o[i] = a[-1] * 100 + a[i]


def test_strided_views():
    base = np.arange(20)
    o = np.zeros(5, np.int64)
    run(strided, np.ascontiguousarray(base[1::4]), o)
    assert o.tolist() == [1700 + k for k in base[1::4].tolist()]


def unrolls(o: DisjointSlice[f32]):
    total = f32(0)
    for k in gw.unroll(range(8), 4):
        total += f32(k)
    for k in gw.static(range(3)):
        total += (1.0, 2.0, 3.0)[k]
    o[thread.index_1d()] = total + f32(gw.bitcast(total, u32))


def test_hints():
    kernel = compiled(unrolls).kernel
    loops = [op for op in kernel.walk() if op.code == "for"]
    assert [op.attrs["unroll"] for op in loops] == [4]
    assert any(op.code == "bitcast" for op in kernel.walk())


def math_functions(o: DisjointSlice[f32], a: Slice[f32], n: i32):
    import_free = gw.math.sin(a[0]) + np.sqrt(a[1]) + f32(int(a[2])) + abs(a[3]) + round(a[0]) * 0.0  # HERE
    o[thread.index_1d()] = import_free


def test_round_gives_an_integer_as_in_python():
    refused(math_functions, gw.KernelTypeError, "i32 * the float")


@gw.kernel(block=1)
def mathematics(o: DisjointSlice[f32], a: f32, n: i32):
    if thread.global_index() == 0:
        o[0] = gw.math.sqrt(a)
        o[1] = np.sqrt(a)
        o[2] = f32(round(a))
        o[3] = f32(int(-a))
        o[4] = gw.math.floor(-a)
        o[5] = gw.math.clamp(a, 0, 1)
        o[6] = gw.math.fma(a, 2.0, 1.0)
        o[7] = f32(gw.math.popcount(n))
        o[8] = np.minimum(a, 1.0) + np.abs(-a)


def test_mathematics():
    o = np.zeros(9, np.float32)
    run(mathematics, o, 2.5, 7, grid=1)
    root = float(np.sqrt(np.float32(2.5)))
    assert o.tolist() == [root, root, 2.0, -2.0, -3.0, 1.0, 6.0, 3.0, 3.5]


def integer_root(o: DisjointSlice[f32], n: i32):
    o[thread.index_1d()] = gw.math.sqrt(n)  # HERE


def test_math_takes_floats():
    refused(integer_root, gw.KernelTypeError, "write f32(n)")


@gw.kernel(block=32)
def augmented_once(cells: DisjointSlice[Cell], n: AtomicSlice[u32]):
    i = thread.index_1d()
    if i in cells:
        with gw.unsafe("every thread draws another number"):
            cells[atomic.add(n, 0, 1)].sum += 5
            cells[atomic.add(n, 0, 1) % 4].count += 1


def test_a_place_is_evaluated_once():
    cells, n = np.zeros(1, Cell.dtype()), np.zeros(1, np.uint32)
    with pytest.raises(gw.DeviceIndexError, match="index 1 is out of range"):
        run(augmented_once, cells, n)
    assert n[0] == 2 and cells["sum"][0] == 5
