"""Launches in machine code do what launches through Python do, refusals included."""

from __future__ import annotations

import enum
import gc
import sys
import threading
from collections.abc import Iterator
from typing import Any, TypeVar

import numpy as np
import pytest
from cuda_simulator import Simulator, simulated

import gridwise as gw
from gridwise import Const, DisjointSlice, Slice, f32, f64, i32, index, thread, u8, u64
from gridwise.launch import cpython

pytestmark = pytest.mark.skipif(not cpython.supported(), reason="this interpreter's launches go through Python")

T = TypeVar("T")
OFFSET = 1.0


@gw.enum(u8)
class Mode(enum.IntEnum):
    KEEP = 0
    NEGATE = 1


@gw.kernel(domain=1, block=64)
def scale(a: Slice[f32], c: DisjointSlice[f32], by: f32):
    i = thread.index_1d()
    if i in c:
        c[i] = a[i] * by + OFFSET


@gw.kernel(domain=1, block=32)
def many(c: DisjointSlice[T], x: T, n: index, u: u64, s: i32, d: f64, on: gw.bool_, mode: Mode, k: Const[int] = 3):
    i = thread.index_1d()
    if i in c:
        v = x
        if on and mode == Mode.NEGATE:
            v = -v
        if n > 2 and u > u64(5) and s < 0 and d > 0.5:
            v += x * k
        c[i] = v


@gw.kernel(domain=2, block=(8, 4))
def turn(a: Slice[f32, 2], c: DisjointSlice[f32, 2]):
    at = thread.index_2d()
    if at in c:
        row, col = at
        c[at] = a[col, row]


@pytest.fixture
def driver(monkeypatch: Any) -> Iterator[Simulator]:
    from gridwise.devices import registry

    with simulated() as simulator:
        monkeypatch.setattr(registry, "_devices", {})
        yield simulator
        gc.collect()


@pytest.fixture
def device(driver: Simulator) -> Any:
    return gw.device("cuda")


def fresh(kernel: Any) -> Any:
    """The same function as a kernel of its own, without machine code yet."""
    return gw.kernel(domain=kernel.domain, block=kernel.block)(kernel.fn)


def warm(kernel: Any, driver: Simulator, *args: Any) -> None:
    """Call until the launch is in machine code."""
    for _ in range(17):
        kernel(*args)
    kernel.settle()
    before = driver.native
    kernel(*args)
    assert driver.native == before + 1, "the launch still goes through Python"


@pytest.mark.parametrize("prepared", [False, True])
def test_results_and_other_arguments(driver: Simulator, device: Any, prepared: bool) -> None:
    kernel = fresh(scale)
    call = kernel.prepare(device) if prepared else kernel
    rng = np.random.default_rng(0)
    for n in (1, 63, 64, 65, 1000, 1003):
        a = rng.integers(0, 99, n).astype(np.float32)  # exact, with or without fused multiply-add
        da, dc = device.array(a), device.zeros(n, f32)
        if n == 1:
            warm(call, driver, da, dc, 2.0)
        before = driver.native
        call(da, dc, 3.5)
        assert driver.native == before + 1
        np.testing.assert_array_equal(dc.numpy(), a * np.float32(3.5) + np.float32(1))


def test_every_kind_of_scalar(driver: Simulator, device: Any) -> None:
    kernel = fresh(many)
    c = device.zeros(40, f32)
    warm(kernel, driver, c, 1.5, 3, 6, -1, 0.75, True, Mode.NEGATE, 3)
    for args, want in [
        ((1.5, 3, 6, -1, 0.75, True, Mode.NEGATE, 3), -1.5 + 4.5),
        ((1.5, 2, 6, -1, 0.75, True, Mode.NEGATE, 3), -1.5),
        ((2.5, 3, 2**63 - 1, -(2**31), 0.75, False, Mode.NEGATE, 3), 2.5 + 7.5),
        ((1.5, 3, 2**64 - 1, -1, 0.75, True, Mode.KEEP, 3), 1.5 + 4.5),  # beyond what machine code takes
        ((1.5, 3, 6, -1, 0.75, True, Mode.KEEP, 4), 1.5 + 6.0),  # another constant: another specialisation
        ((1.5, 3, 6, -1, 1, True, Mode.KEEP, 3), 1.5 + 4.5),  # an int for a float
        ((np.float32(1.5), 3, 6, -1, 0.75, np.True_, Mode.KEEP, 3), 1.5 + 4.5),
    ]:
        c.fill(0)
        kernel(c, *args)
        assert (c.numpy() == want).all(), args
    with pytest.raises(gw.LaunchValueError, match="does not fit i32"):
        kernel(c, 1.5, 3, 6, 2**31, 0.75, True, Mode.KEEP, 3)
    with pytest.raises(gw.LaunchTypeError, match="takes i32, an integer"):
        kernel(c, 1.5, 3, 6, 1.0, 0.75, True, Mode.KEEP, 3)
    with pytest.raises(gw.LaunchTypeError, match="takes a bool"):
        kernel(c, 1.5, 3, 6, 1, 0.75, 1, Mode.KEEP, 3)


@pytest.mark.parametrize("prepared", [False, True])
def test_refusals_are_those_of_python(driver: Simulator, device: Any, prepared: bool) -> None:
    kernel = fresh(scale)
    call = kernel.prepare(device) if prepared else kernel
    a, c = device.full(100, 2.0, f32), device.zeros(100, f32)
    warm(call, driver, a, c, 2.0)
    launches = driver.launches
    gone = device.zeros(100, f32)
    gone.free()
    for args, message in [
        ((a, c), "missing"),
        ((a, c, 2.0, 1), "takes 3 arguments"),
        ((a, None, 2.0), "was given None"),
        ((a, a, 2.0), "overlap in memory"),
        ((c[10:60], c[:50], 2.0), "overlap in memory"),
        ((a, c.readonly(), 2.0), "read-only"),
        ((gone, c, 2.0), "was freed"),
        ((a, gone, 2.0), "was freed"),
        ((device.zeros(100, f64), c, 2.0), "has dtype f64"),
        ((device.zeros((10, 10), f32), c, 2.0), "has 2 axes"),
        ((np.zeros(100, np.float32), c, 2.0), "NumPy array on the host|is on cuda:0"),
        ((a, c, "2"), "takes f32, a number"),
    ]:
        with pytest.raises((gw.LaunchError, TypeError), match=message):
            call(*args)
    assert driver.launches == launches
    call(a, c, by=3.0)  # by name: through Python, and right
    assert (c.numpy() == 7).all()


def test_lengths_that_break_a_relation_are_checked_in_place(driver: Simulator, device: Any) -> None:
    kernel = fresh(scale)
    a, c = device.full(100, 2.0, f32), device.zeros(100, f32)
    warm(kernel, driver, a, c, 2.0)
    kernel(a[:60], c, 2.0)
    with pytest.raises(gw.DeviceIndexError, match="index 60 is out of range for a of length 60"):
        device.synchronize()
    before = driver.native
    kernel(a, c[:60], 2.0)  # shorter output: the relation holds
    assert driver.native == before + 1 and (c.numpy()[:60] == 5).all()


def test_nothing_to_do(driver: Simulator, device: Any) -> None:
    kernel = fresh(scale)
    a, c = device.full(100, 2.0, f32), device.zeros(100, f32)
    warm(kernel, driver, a, c, 2.0)
    launches = driver.launches
    kernel(a, c[:0], 2.0)
    assert driver.launches == launches


def test_two_axes_and_views(driver: Simulator, device: Any) -> None:
    kernel = fresh(turn)
    host = np.random.default_rng(1).random((37, 19), dtype=np.float32)
    a, c = device.array(host), device.zeros((19, 37), f32)
    warm(kernel, driver, a, c)
    np.testing.assert_array_equal(c.numpy(), host.T)
    view = a[::2, 3:]  # strided: another specialisation, in machine code too
    out = device.zeros((16, 19), f32)
    warm(kernel, driver, view, out)
    np.testing.assert_array_equal(out.numpy(), host[::2, 3:].T)
    before = driver.native
    kernel(a, c)  # the first kind still has its code
    kernel(view, out)
    assert driver.native == before + 2
    strided = device.zeros((38, 37), f32)[::2]
    for _ in range(4):
        kernel(a, strided)
    np.testing.assert_array_equal(strided.numpy(), host.T)


def test_a_changed_global_or_function_is_seen(driver: Simulator, device: Any, monkeypatch: Any) -> None:
    a, c = device.full(10, 2.0, f32), device.zeros(10, f32)
    for call in (fresh(scale), fresh(scale).prepare(device)):
        monkeypatch.setattr(sys.modules[__name__], "OFFSET", 1.0)
        warm(call, driver, a, c, 2.0)
        assert (c.numpy() == 5).all()
        monkeypatch.setattr(sys.modules[__name__], "OFFSET", 10.0)
        call(a, c, 2.0)
        assert (c.numpy() == 14).all()


def factory(add: float) -> Any:
    def inner(a: Slice[f32], c: DisjointSlice[f32]):
        i = thread.index_1d()
        if i in c:
            c[i] = a[i] + add

    def change(to: float) -> None:
        nonlocal add
        add = to

    return gw.kernel(domain=1, block=64)(inner), change


def test_a_changed_closure_is_seen(driver: Simulator, device: Any) -> None:
    kernel, change = factory(5.0)
    a, c = device.full(10, 2.0, f32), device.zeros(10, f32)
    warm(kernel, driver, a, c)
    change(7.0)
    kernel(a, c)
    assert (c.numpy() == 9).all()


def test_use_on_another_stream_goes_through_the_order(driver: Simulator, device: Any) -> None:
    kernel, stream = fresh(scale), device.stream()
    a, c = device.full(10, 2.0, f32), device.zeros(10, f32)
    warm(kernel, driver, a, c, 2.0)
    kernel(a, c, 3.0, stream=stream)
    assert c.buffer.writer is stream and stream in a.buffer.readers
    before = driver.native
    kernel(a, c, 4.0)  # must wait for the other stream: not for machine code
    assert driver.native == before and c.buffer.writer is device.default_stream
    assert (c.numpy() == 9).all()


def test_an_error_of_the_driver_is_raised(driver: Simulator, device: Any) -> None:
    kernel = fresh(scale)
    a, c = device.full(10, 2.0, f32), device.zeros(10, f32)
    warm(kernel, driver, a, c, 2.0)
    driver.refuse["cuLaunchKernel"] = "CUDA_ERROR_INVALID_CONTEXT"  # once: the second try is through Python
    kernel(a, c, 3.0)
    assert (c.numpy() == 7).all()


def test_faults_from_machine_code(driver: Simulator, device: Any) -> None:
    @gw.kernel(domain=1, block=32)
    def pick(a: Slice[f32], at: Slice[i32], c: DisjointSlice[f32]):
        i = thread.index_1d()
        if i in c:
            c[i] = a[at[i]]

    a, at, c = device.full(10, 2.0, f32), device.zeros(20, i32), device.zeros(20, f32)
    warm(pick, driver, a, at, c)
    bad = device.array(np.r_[np.zeros(13), 10, np.zeros(6)].astype(np.int32))
    before = driver.native
    pick(a, bad, c)
    assert driver.native == before + 1
    with pytest.raises(gw.DeviceIndexError, match=r"pick: index 10 is out of range for a of length 10 \(thread 13\)"):
        device.synchronize()


def test_references_are_balanced(driver: Simulator, device: Any) -> None:
    kernel = fresh(scale)
    a, c = device.full(10, 2.0, f32), device.zeros(10, f32)
    warm(kernel, driver, a, c, 2.0)
    watched = (a, c, a.trait, a.buffer, a.raw, None, device, device.default_stream)
    before = [sys.getrefcount(x) for x in watched]
    for _ in range(2000):
        kernel(a, c, 2.0)
    after = [sys.getrefcount(x) for x in watched]
    assert all(abs(y - x) < 50 for x, y in zip(before, after, strict=True)), (before, after)


def test_many_threads(driver: Simulator, device: Any) -> None:
    kernel = fresh(scale)
    wrong: list[Any] = []

    def worker(n: int) -> None:
        a, c = device.full(65, float(n), f32), device.zeros(65, f32)
        for turn in range(60):
            kernel(a, c, float(turn))
            if not (c.numpy() == np.float32(n * turn + 1)).all():
                wrong.append((n, turn))

    workers = [threading.Thread(target=worker, args=(n,)) for n in range(6)]
    for w in workers:
        w.start()
    for w in workers:
        w.join()
    assert not wrong


def test_kernels_are_collected(driver: Simulator, device: Any) -> None:
    import weakref

    kernel = fresh(scale)
    a, c = device.full(10, 2.0, f32), device.zeros(10, f32)
    prepared = kernel.prepare(device)
    warm(prepared, driver, a, c, 2.0)
    warm(kernel, driver, a, c, 2.0)
    gone = [weakref.ref(kernel), weakref.ref(prepared)]
    del kernel, prepared
    gc.collect()
    assert [g() for g in gone] == [None, None]
