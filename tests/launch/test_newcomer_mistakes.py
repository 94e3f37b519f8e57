"""Twenty and more mistakes of a newcomer: each the right exception, at most six lines, naming the user's line."""

import inspect
import re

import numpy as np
import pytest

import gridwise as gw
from gridwise import DisjointSlice, Slice, f32, i32, thread, u32


@gw.kernel(domain=1, block=256)
def vecadd(a: Slice[f32], b: Slice[f32], c: DisjointSlice[f32]):
    i = thread.index_1d()
    if i in c:
        c[i] = a[i] + b[i]


@gw.kernel(requires=lambda a, c: len(a) >= 2 * len(c))
def halve(a: Slice[f32], c: DisjointSlice[f32]):
    i = thread.index_1d()
    if i in c:
        c[i] = a[2 * int(i)]


@gw.kernel
def scale(alpha: f32, n: u32, x: DisjointSlice[f32]):
    i = thread.index_1d()
    if i in x and int(i) < int(n):
        x[i] = alpha * x[i]


def three(n=8):
    return [np.zeros(n, np.float32) for _ in range(3)]


# -- mistakes in calling a kernel ------------------------------------------------------------------------------


def wrong_dtype():
    a, b, c = three()
    vecadd(a, b.astype(np.float64), c)  # HERE


def wrong_rank():
    a, b, c = three()
    vecadd(a, b.reshape(2, 4), c)  # HERE


def a_list():
    a, _, c = three()
    vecadd(a, [1.0] * 8, c)  # HERE


def too_few_arguments():
    a, b, _ = three()
    vecadd(a, b)  # HERE


def unknown_argument():
    a, b, c = three()
    vecadd(a, b, out=c)  # HERE


def wrong_length():
    a, _, c = three()
    halve(a, c)  # HERE


def read_only_output():
    a, b, c = three()
    c.flags.writeable = False
    vecadd(a, b, c)  # HERE


def overlapping_arguments():
    a, b, _ = three()
    vecadd(a[:7], b[:7], a[1:])  # HERE


def broadcast_output():
    a, b, _ = three()
    vecadd(a, b, np.lib.stride_tricks.as_strided(np.zeros(1, np.float32), (8,), (0,)))  # HERE


def block_too_large():
    vecadd.prepare("cpu", block=1 << 20)  # HERE


def block_of_two_axes():
    a, b, c = three()
    vecadd(a, b, c, block=(16, 16))  # HERE


def negative_grid():
    a, b, c = three()
    vecadd(a, b, c, grid=-1)  # HERE


def freed_array():
    cpu = gw.device("cpu")
    a, b, c = (cpu.array(x) for x in three())
    b.free()
    vecadd(a, b, c)  # HERE


def array_of_another_device():
    cpu, check = gw.device("cpu"), gw.device("check")
    a, b, c = three()
    vecadd(cpu.array(a), check.array(b), cpu.array(c))  # HERE


def host_array_for_a_device():
    check = gw.device("check")
    a, b, c = three()
    vecadd.prepare(check)(check.array(a), b, check.array(c))  # HERE


def integer_out_of_range():
    scale(2.0, 1 << 32, three()[0])  # HERE


def float_for_an_integer():
    scale(2.0, 3.5, three()[0])  # HERE


def text_for_a_number():
    scale("2", 3, three()[0])  # HERE


def unknown_device():
    gw.device("gpu")  # HERE


CALLS = [
    (wrong_dtype, gw.LaunchTypeError, "argument 'b' has dtype float64, expected Slice[f32]"),
    (wrong_rank, gw.LaunchTypeError, "argument 'b' has 2 axes (shape (2, 4)), expected 1"),
    (a_list, gw.LaunchTypeError, "argument 'b' takes Slice[f32], and was given a list"),
    (too_few_arguments, gw.LaunchTypeError, "argument 'c' missing"),
    (unknown_argument, gw.LaunchTypeError, "no parameter 'out'"),
    (wrong_length, gw.LaunchValueError, "requires len(a) >= 2 * len(c), but len(a) is 8, 2 * len(c) is 16"),
    (read_only_output, gw.LaunchValueError, "argument 'c' is a read-only array"),
    (overlapping_arguments, gw.LaunchValueError, "arguments 'c' and 'a' overlap in memory"),
    (broadcast_output, gw.LaunchValueError, "argument 'c' reaches one element by several indices"),
    (block_too_large, gw.LaunchValueError, "a block of 1048576 threads is more than cpu can run"),
    (block_of_two_axes, gw.LaunchValueError, "block=(16, 16) has 2 axes, and the kernel has domain=1"),
    (negative_grid, gw.LaunchValueError, "grid=-1 has an axis below 0"),
    (freed_array, gw.LaunchValueError, "argument 'b' was freed"),
    (array_of_another_device, gw.LaunchTypeError, "argument 'b' is on check, and 'a' is on cpu"),
    (host_array_for_a_device, gw.LaunchTypeError, "argument 'b' is a NumPy array on the host, expected an array on"),
    (integer_out_of_range, gw.LaunchValueError, "argument 'n' is 4294967296, which does not fit u32"),
    (float_for_an_integer, gw.LaunchTypeError, "argument 'n' takes u32, an integer, and was given 3.5"),
    (text_for_a_number, gw.LaunchTypeError, "argument 'alpha' takes f32, a number, and was given a str"),
]


def line_of(fn) -> int:
    lines, first = inspect.getsourcelines(fn)
    return first + next(n for n, text in enumerate(lines) if "# HERE" in text)


def check_report(error: Exception, fn, says: str, helps: bool = True) -> None:
    text = str(error)
    assert says in text, text
    assert len(text.splitlines()) <= 6, text
    assert re.search(rf"--> {re.escape(__file__)}:{line_of(fn)}:\d+$", text, re.M), text
    assert not helps or "help: " in text, text


@pytest.mark.parametrize(("mistake", "kind", "says"), CALLS, ids=[c[0].__name__ for c in CALLS])
def test_calling(mistake, kind, says):
    with pytest.raises(kind) as caught:
        mistake()
    check_report(caught.value, mistake, says)
    assert isinstance(caught.value, TypeError if kind is gw.LaunchTypeError else ValueError)
    # The traceback is the user's: one frame of ours at the most, below theirs.
    frames = [f.path for f in caught.traceback if "gridwise" in str(f.path) and "tests" not in str(f.path)]
    assert len(frames) <= 1, frames


# -- mistakes in writing a kernel ------------------------------------------------------------------------------
# Each body is compiled for the first launch; the report names its own line.


@gw.kernel
def plain_integer_index(a: Slice[f32], c: DisjointSlice[f32]):
    i = int(thread.index_1d())
    if i < len(c):
        c[i // 2] = a[i]  # HERE


@gw.kernel
def undefined_name(a: Slice[f32], c: DisjointSlice[f32]):
    i = thread.index_1d()
    if i in c:
        c[i] = alpha * a[i]  # HERE  # noqa: F821


@gw.kernel
def unbound_name(a: Slice[f32], c: DisjointSlice[f32]):
    i = thread.index_1d()
    if i in c:
        if a[i] > 0.0:
            x = a[i]
        c[i] = x  # HERE


@gw.kernel
def mixed_signs(a: Slice[f32], c: DisjointSlice[f32]):
    i = thread.index_1d()
    n = i32(-1)
    if i in c:
        c[i] = f32(n + u32(1))  # HERE


@gw.kernel
def name_changes_type(a: Slice[f32], c: DisjointSlice[f32]):
    i = thread.index_1d()
    x = i32(1)
    x = f32(1.5)  # HERE
    if i in c:
        c[i] = x + a[i]


@gw.kernel
def narrowing_store(a: Slice[f32], c: DisjointSlice[f32]):
    i = thread.index_1d()
    if i in c:
        c[i] = gw.f64(a[i]) * 2.0  # HERE


@gw.kernel
def try_statement(a: Slice[f32], c: DisjointSlice[f32]):
    i = thread.index_1d()
    try:  # HERE  # noqa: SIM105
        c[i] = a[i]
    except IndexError:
        pass


@gw.kernel
def list_comprehension(a: Slice[f32], c: DisjointSlice[f32]):
    i = thread.index_1d()
    x = [a[k] for k in range(3)]  # HERE
    if i in c:
        c[i] = x[0]


@gw.kernel
def write_to_a_read_only(a: Slice[f32], c: DisjointSlice[f32]):
    i = thread.index_1d()
    if i in c:
        a[i] = c[i]  # HERE


@gw.kernel
def literal_too_large(a: Slice[f32], c: DisjointSlice[f32]):
    i = thread.index_1d()
    n = u32(1)
    if i in c:
        c[i] = f32(n + 5_000_000_000)  # HERE


@gw.kernel
def numpy_in_a_kernel(a: Slice[f32], c: DisjointSlice[f32]):
    i = thread.index_1d()
    if i in c:
        c[i] = np.linalg.norm(a[i])  # HERE


@gw.kernel
def returns_a_value(a: Slice[f32], c: DisjointSlice[f32]):
    i = thread.index_1d()
    return a[i]  # HERE


@gw.kernel
def divergent_barrier(a: Slice[f32], c: DisjointSlice[f32]):
    i = thread.index_1d()
    if i in c:
        gw.barrier()  # HERE
        c[i] = a[i]


@gw.kernel
def every_thread_one_element(a: Slice[f32], c: DisjointSlice[f32]):
    i = thread.index_1d()
    if i in a:
        c[0] = a[i]  # HERE


@gw.kernel
def missing_attribute(a: Slice[f32], c: DisjointSlice[f32]):
    i = thread.index_1d()
    if i in c:
        c[i] = a[i] * f32(a.length)  # HERE


BODIES = [
    (plain_integer_index, gw.RaceError),
    (undefined_name, gw.KernelNameError),
    (unbound_name, gw.KernelNameError),
    (mixed_signs, gw.KernelTypeError),
    (name_changes_type, gw.KernelTypeError),
    (narrowing_store, gw.KernelTypeError),
    (try_statement, gw.KernelSyntaxError),
    (list_comprehension, gw.KernelSyntaxError),
    (write_to_a_read_only, gw.KernelTypeError),
    (literal_too_large, gw.KernelValueError),
    (numpy_in_a_kernel, gw.KernelSyntaxError),
    (returns_a_value, gw.KernelTypeError),
    (divergent_barrier, gw.DivergenceError),
    (every_thread_one_element, gw.RaceError),
    (missing_attribute, gw.KernelAttributeError),
]


@pytest.mark.parametrize(("kernel", "kind"), BODIES, ids=[k.name for k, _ in BODIES])
def test_writing(kernel, kind):
    a, c, _ = three()
    with pytest.raises(kind) as caught:
        kernel(a, c)
    check_report(caught.value, kernel.fn, "", helps=kernel is not undefined_name)
    # One bad kernel never affects another.
    vecadd(*three())


def test_unknown_device():
    with pytest.raises(gw.DeviceUnavailableError, match="'gpu' is no device\n  help: use one of auto, cpu"):
        unknown_device()
