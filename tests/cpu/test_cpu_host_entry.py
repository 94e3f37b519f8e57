"""Small launches on NumPy arrays, taken over by machine code: the same results and the same refusals."""

from __future__ import annotations

import ctypes
import types
from typing import TypeVar

import numpy as np
import pytest

import gridwise as gw
from gridwise import DisjointSlice, Slice, f32, i32, thread
from gridwise.devices import registry

T = TypeVar("T", f32, i32)
N = 64


def add():
    """A kernel of its own, which machine code has taken over, with the arrays that it was settled on."""

    @gw.kernel(domain=1, block=64)
    def add(a: Slice[f32], b: Slice[f32], c: DisjointSlice[f32]):
        i = thread.index_1d()
        if i in c and i in a and i in b:
            c[i] = a[i] + b[i]

    a, b, c = aligned(N), aligned(N), aligned(N)
    settle(add, a, b, c)
    return add, a, b, c


def aligned(n: int, past: int = 0, dtype: type = np.float32) -> np.ndarray:
    """``n`` random numbers that start ``past`` bytes beyond a multiple of 64."""
    size = np.dtype(dtype).itemsize
    raw = np.zeros(n * size + 192, np.uint8)
    start = -raw.ctypes.data % 64 + past
    out = raw[start : start + n * size].view(dtype)
    out[...] = np.random.default_rng(n).integers(0, 100, n)
    return out


def settle(kernel, *args) -> None:
    for _ in range(kernel.AFTER + 1):
        kernel(*args)
    kernel.settle()
    assert isinstance(type(kernel).__call__, types.BuiltinFunctionType), "no machine code was made"


@pytest.fixture(autouse=True)
def at_home():
    """Other tests of this process may have set a default device, which sends every launch on NumPy arrays to Python."""
    before, registry.elsewhere.value = registry.elsewhere.value, 0
    yield
    registry.elsewhere.value |= before


@pytest.fixture
def python_only(monkeypatch):
    """Call it: from then on a launch that reaches Python fails."""

    def forbid() -> None:
        def launch(self, *args):
            raise AssertionError("the launch went the way through Python")

        monkeypatch.setattr("gridwise.launch.launcher.Launcher.launch", launch)

    return forbid


@pytest.mark.parametrize("n", [1, 15, 16, 63, 64, 65, 1000])
def test_any_length_without_python(python_only, n) -> None:
    kernel, *_ = add()
    a, b, c = aligned(n), aligned(n), aligned(n)
    c[...] = -1
    python_only()
    kernel(a, b, c)
    np.testing.assert_array_equal(c, a + b)


def test_two_axes(python_only) -> None:
    @gw.kernel(domain=2, block=(8, 4))
    def turned(a: Slice[f32, 2], b: DisjointSlice[f32, 2]):
        at = thread.index_2d()
        if at in b:
            row, col = at
            if col < a.shape[0] and row < a.shape[1]:
                b[at] = a[col, row]

    a, b = aligned(20 * 32).reshape(20, 32), aligned(20 * 32).reshape(32, 20)
    settle(turned, a, b)
    a, b = aligned(9 * 16).reshape(9, 16), aligned(9 * 16).reshape(16, 9)
    python_only()
    turned(a, b)
    np.testing.assert_array_equal(b, a.T)


def test_generic_elements_and_structs() -> None:
    @gw.struct
    class Pair:
        x: f32
        n: i32

    @gw.kernel(domain=1, block=64)
    def twice(a: Slice[T], b: DisjointSlice[T], p: DisjointSlice[Pair]):
        i = thread.index_1d()
        if i in b and i in a and i in p:
            b[i] = a[i] + a[i]
            p[i] = Pair(1.5, 7)

    pairs = np.zeros(N, Pair.dtype())
    for dtype in (np.float32, np.int32, np.float32):
        a, b = aligned(N, dtype=dtype), aligned(N, dtype=dtype)
        settle(twice, a, b, pairs)
        pairs[...] = 0
        twice(a, b, pairs)
        np.testing.assert_array_equal(b, a + a)
        assert (pairs["x"] == 1.5).all() and (pairs["n"] == 7).all()


def test_an_array_of_another_alignment() -> None:
    kernel, a, b, _ = add()
    for past in (4, 16, 60):
        c = aligned(N, past)
        c[...] = -1
        kernel(a, b, c)
        np.testing.assert_array_equal(c, a + b)


def test_strided_inputs_and_outputs() -> None:
    kernel, a, b, c = add()
    wide = np.zeros(2 * N, np.float32)
    kernel(aligned(2 * N)[::2], b, wide[::2])
    np.testing.assert_array_equal(wide[::2], aligned(2 * N)[::2] + b)
    assert not wide[1::2].any()
    kernel(a[::-1], b, c)
    np.testing.assert_array_equal(c, a[::-1] + b)


def test_a_read_only_output_is_refused() -> None:
    kernel, a, b, c = add()
    before = c.copy()
    c.flags.writeable = False
    with pytest.raises(gw.LaunchValueError, match="'c' is a read-only array"):
        kernel(b, a, c)
    np.testing.assert_array_equal(c, before)
    a.flags.writeable = False  # an input may be
    out = aligned(N)
    kernel(a, b, out)
    np.testing.assert_array_equal(out, a + b)


def test_overlap_with_an_output_is_refused() -> None:
    kernel, a, b, _ = add()
    for one, other in [(a, a), (a[: N - 16], a[16:]), (a, a[N - 1 :])]:
        with pytest.raises(gw.LaunchValueError, match="overlap in memory"):
            kernel(one, b, other)
    kernel(a, a, b)  # two inputs may
    np.testing.assert_array_equal(b, a + a)
    kernel(a[:32], a[:32], a[32:])
    np.testing.assert_array_equal(a[32:], a[:32] + a[:32])


def test_an_array_between_two_addresses_is_refused() -> None:
    kernel, a, b, _ = add()
    raw = np.zeros(4 * N + 65, np.uint8)
    odd = raw[1 + -raw.ctypes.data % 64 :][: 4 * N].view(np.float32)
    for args in [(odd, b, a), (a, b, odd)]:
        with pytest.raises(gw.LaunchValueError, match="not aligned"):
            kernel(*args)


@pytest.mark.parametrize("dtype", [np.float64, np.int32, ">f4"])
def test_another_dtype_is_refused(dtype) -> None:
    kernel, a, b, c = add()
    with pytest.raises(gw.LaunchTypeError, match="'b' has dtype"):
        kernel(a, b.astype(dtype), c)


def test_another_rank_is_refused() -> None:
    kernel, a, b, c = add()
    with pytest.raises(gw.LaunchTypeError, match=r"'c' has 2 axes"):
        kernel(a, b, c.reshape(8, 8))
    with pytest.raises(gw.LaunchTypeError, match=r"'a' has 0 axes"):
        kernel(np.array(1, np.float32), b, c)


def test_what_is_no_array_is_refused() -> None:
    kernel, a, b, c = add()
    for wrong in (None, [1.0], 3, "text", a.data):
        with pytest.raises(gw.LaunchTypeError):
            kernel(a, wrong, c)
    with pytest.raises(gw.LaunchTypeError):
        kernel(a, b)
    with pytest.raises(gw.LaunchTypeError, match="NumPy array on the host"):
        kernel(a, gw.device("cpu").array(b), c)


def test_a_broadcast_output_is_refused() -> None:
    kernel, a, b, _ = add()
    one = np.lib.stride_tricks.as_strided(aligned(1), (N,), (0,))
    with pytest.raises(gw.LaunchValueError, match="one element by several indices"):
        kernel(a, b, one)


def test_no_elements_and_subclasses() -> None:
    kernel, a, b, c = add()
    kernel(a, b, c[:0])
    kernel(a[:0], b, c)

    class Sub(np.ndarray):
        pass

    c[...] = -1
    kernel(a.view(Sub), b, c.view(Sub))
    np.testing.assert_array_equal(c, a + b)


def test_named_arguments_and_other_grids() -> None:
    kernel, a, b, c = add()
    c[...] = -1
    kernel(c=c, a=a, b=b)
    np.testing.assert_array_equal(c, a + b)
    c[...] = -1
    kernel(a, b, c, block=32, grid=1)
    np.testing.assert_array_equal(c[:32], (a + b)[:32])
    assert (c[32:] == -1).all()


def test_a_prepared_kernel_takes_them(python_only) -> None:
    kernel, a, b, c = add()
    prepared = kernel.prepare("cpu")
    settle(prepared, a, b, c)
    c[...] = -1
    python_only()
    prepared(a, b, c)
    np.testing.assert_array_equal(c, a + b)


def test_only_other_devices_count_as_other_defaults(monkeypatch) -> None:
    from gridwise.devices import registry

    monkeypatch.setattr(registry, "elsewhere", ctypes.c_int32(0))
    with gw.default_device("cpu"), registry.overriding(gw.device("cpu")):
        assert registry.elsewhere.value == 0
    with registry.overriding(gw.device("check")):
        assert registry.elsewhere.value == 1


def test_a_launch_under_another_default_goes_there(monkeypatch) -> None:
    from gridwise.devices import registry

    kernel, a, b, c = add()
    before = registry.elsewhere.value
    gone = []
    monkeypatch.setattr("gridwise.launch.launcher.Launcher._staged", lambda self, *args: gone.append(args[1].name))
    try:
        with gw.default_device("check"):
            kernel(a, b, c)
    finally:
        registry.elsewhere.value = before
    assert gone == ["check"]
