"""Launches on every device: grids, views, scalars, generics, constants, streams, caches."""

import enum
import threading
from typing import NewType, TypeVar

import numpy as np
import pytest

import gridwise as gw
from gridwise import Const, DisjointSlice, Slice, bool_, f32, i32, thread, u32
from gridwise.devices import registry

T = TypeVar("T")
Metres = NewType("Metres", f32)
FACTOR = 3.0


@gw.enum(u32)
class Mode(enum.IntEnum):
    KEEP = 0
    NEGATE = 5


@gw.kernel(domain=1, block=64)
def axpy(alpha: f32, x: Slice[f32], y: DisjointSlice[f32]):
    i = thread.index_1d()
    if i in y:
        y[i] = alpha * x[i] + y[i]


@gw.kernel(domain=2, block=(8, 4))
def number(out: DisjointSlice[i32, 2]):
    at = thread.index_2d()
    if at in out:
        row, col = at
        out[at] = i32(row) * 1000 + i32(col)


@gw.kernel
def copy(x: Slice[T], y: DisjointSlice[T]):
    i = thread.index_1d()
    if i in y:
        y[i] = x[i]


@gw.kernel
def add_scalar(x: DisjointSlice[T], v: T):
    i = thread.index_1d()
    if i in x:
        x[i] = x[i] + v


@gw.kernel
def power(x: DisjointSlice[f32], N: Const[int] = 2):
    i = thread.index_1d()
    if i in x:
        r = f32(1)
        for _ in range(N):
            r = r * x[i]
        x[i] = r


@gw.kernel
def choose(x: DisjointSlice[f32], mode: Mode, flag: bool_, by: Metres):
    i = thread.index_1d()
    if i in x and flag:
        if mode == Mode.NEGATE:
            x[i] = -x[i]
        x[i] = x[i] + f32(by)


@gw.kernel
def captured(x: DisjointSlice[f32]):
    i = thread.index_1d()
    if i in x:
        x[i] = x[i] * FACTOR


@gw.kernel(requires=lambda x, n: len(x) >= n)
def first(x: Slice[f32], y: DisjointSlice[f32], n: i32):
    i = thread.index_1d()
    if i in y:
        y[i] = x[int(i)] if int(i) < n else 0.0


def data(*shape):
    return np.random.default_rng(3).integers(-100, 100, shape).astype(np.float32)


@pytest.mark.parametrize("n", [1, 63, 64, 65, 1000, 4096])
def test_every_length(device, n):
    x, y = data(2, n)
    dx, dy = device.array(x), device.array(y)
    axpy(2.0, dx, dy)
    assert np.array_equal(dy.numpy(), 2 * x + y)


def test_nothing_to_do(device):
    axpy(1.0, device.zeros(0, f32), device.zeros(0, f32))
    axpy(1.0, device.zeros(5, f32), device.zeros(5, f32), grid=0)
    number(device.zeros((0, 7), i32))


@pytest.mark.parametrize("shape", [(1, 1), (4, 8), (5, 9), (37, 21)])
def test_grid_of_two_axes(device, shape):
    out = device.zeros(shape, i32)
    number(out)
    rows, cols = np.indices(shape)
    assert np.array_equal(out.numpy(), rows * 1000 + cols)


def test_explicit_grid_leaves_the_rest(device):
    x, y = data(2, 1000)
    dy = device.array(y)
    axpy(1.0, device.array(x), dy, grid=2)
    assert np.array_equal(dy.numpy(), np.concatenate([(x + y)[:128], y[128:]]))


@pytest.mark.parametrize("xk", [np.s_[:50, 3], np.s_[49::-1, 0], np.s_[0, 1:51]])
@pytest.mark.parametrize("yk", [np.s_[:50, 4], np.s_[3, :50], np.s_[::-2, -1]])
def test_views(device, xk, yk):
    x, y = data(2, 100, 60)
    dx, dy = device.array(x), device.array(y)
    axpy(0.5, dx[xk], dy[yk])
    y[yk] += 0.5 * x[xk]
    assert np.array_equal(dy.numpy(), y)


def test_views_that_are_not_aligned(device):
    x, y = data(2, 1001)
    for at in range(1, 5):
        dx, dy = device.array(x), device.array(y)
        axpy(1.0, dx[at:], dy[at:])
        assert np.array_equal(dy.numpy(), np.concatenate([y[:at], (x + y)[at:]]))


def test_numpy_in_place():
    x, y = data(2, 10, 20)
    before = y.copy()
    axpy(2.0, x[:, 3], y[:, 5])
    before[:, 5] += 2 * x[:, 3]
    assert np.array_equal(y, before)


@pytest.mark.parametrize("dtype", ["int8", "uint16", "int32", "uint32", "float32"])
def test_generic(device, dtype):
    x = np.arange(300).astype(dtype)
    out = device.zeros(300, dtype)
    copy(device.array(x), out)
    add_scalar(out, 7)
    assert np.array_equal(out.numpy(), x + x.dtype.type(7))


@pytest.mark.parametrize("dtype", ["int16", "float32", "float64"])
def test_generic_on_numpy_arrays(dtype):
    x = np.arange(10).astype(dtype)
    out = np.zeros_like(x)
    copy(x, out)
    assert np.array_equal(out, x)


def test_generic_scalars_must_fit(device):
    with pytest.raises(gw.LaunchValueError, match="'v' is 300, which does not fit u8"):
        add_scalar(device.zeros(4, "u1"), 300)


def test_types_that_differ_for_one_variable(device):
    with pytest.raises(TypeError):
        copy(device.zeros(4, f32), device.zeros(4, i32))


def test_constants(device):
    x = device.full(10, 3.0, f32)
    power(x)
    assert x.numpy()[0] == 9
    power(x, 3)
    assert x.numpy()[0] == 729
    power(x, N=0)
    assert x.numpy()[0] == 1


def test_scalars(device):
    x = device.full(4, 2.0, f32)
    choose(x, Mode.NEGATE, True, 0.5)
    assert x.numpy()[0] == -1.5
    choose(x, 0, np.bool_(True), np.float64(1))
    assert x.numpy()[0] == -0.5
    choose(x, Mode.NEGATE, False, 0)
    assert x.numpy()[0] == -0.5
    axpy(float("nan"), device.full(4, 1.0, f32), x)
    assert np.isnan(x.numpy()).all()
    with pytest.raises(gw.LaunchValueError, match="'mode' is 3, which is no Mode"):
        choose(x, 3, True, 0)
    with pytest.raises(gw.LaunchTypeError, match="'flag' takes a bool"):
        choose(x, Mode.KEEP, 1, 0)


def test_contract(device):
    y = device.zeros(8, f32)
    first(device.full(5, 1.0, f32), y, 5)
    assert y.numpy().sum() == 5
    with pytest.raises(gw.LaunchValueError, match=r"first requires len\(x\) >= n, but len\(x\) is 5, n is 6"):
        first(device.full(5, 1.0, f32), y, 6)


def test_a_short_array_faults_and_the_device_goes_on(device):
    x, y = device.full(70, 1.0, f32), device.zeros(100, f32)
    axpy(1.0, x, y)
    with pytest.raises(gw.DeviceIndexError, match=r"axpy: index (7\d|[89]\d) is out of range for x of length 70") as e:
        device.synchronize()
    assert "y[i] = alpha * x[i] + y[i]" in str(e.value)
    y = device.zeros(70, f32)
    axpy(1.0, x, y)
    device.synchronize()
    assert y.numpy().sum() == 70


def test_a_changed_global_is_seen(device, monkeypatch):
    x = device.full(4, 1.0, f32)
    captured(x)
    monkeypatch.setitem(globals(), "FACTOR", 5.0)
    captured(x)
    monkeypatch.setitem(globals(), "FACTOR", 3.0)
    captured(x)
    assert x.numpy()[0] == 45


def test_prepared(device):
    x, y = data(2, 500)
    prepared = axpy.prepare(device, block=32)
    dx, dy = device.array(x), device.array(y)
    for _ in range(3):
        prepared(1.0, dx, dy)
    prepared(alpha=1.0, x=dx[::-1], y=dy)
    assert np.array_equal(dy.numpy(), y + 3 * x + x[::-1])
    assert device.name in repr(prepared)


def test_prepared_generic(device):
    y = device.zeros(5, i32)
    copy.prepare(device, args=(y, y))(device.full(5, 4, i32), y)
    assert y.numpy().tolist() == [4] * 5


def test_streams_wait_for_each_other(device):
    n = 1 << 15
    streams = [device.stream() for _ in range(4)]
    one, total = device.full(n, 1.0, f32), device.zeros(n, f32)
    for k in range(20):
        axpy(1.0, one, total, stream=streams[k % 4])
    assert np.all(total.numpy() == 20)


def test_threads_compile_once(device):
    @gw.kernel
    def triple(x: DisjointSlice[f32]):
        i = thread.index_1d()
        if i in x:
            x[i] = x[i] * 3.0

    arrays = [device.full(100, float(k), f32) for k in range(8)]
    errors = []

    def work(x):
        try:
            triple(x, stream=device.stream())
        except Exception as e:
            errors.append(e)

    threads = [threading.Thread(target=work, args=(x,)) for x in arrays]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    device.synchronize()
    assert not errors
    assert [x.numpy()[0] for x in arrays] == [3 * k for k in range(8)]
    assert len(triple.launcher._canonical) == 1


def test_numpy_arrays_go_to_the_default_device(device):
    x, y = data(2, 3, 100)
    wanted = y.copy()
    wanted[:, 7] += 2 * x[:, 9]
    with registry.default_device(device.name):
        assert gw.device("auto") is device
        axpy(2.0, x[:, 9], y[:, 7])
    assert np.array_equal(y, wanted)


def test_plain_python():
    x, y = data(2, 70)
    wanted = 2 * x + y
    axpy.python(2.0, x, y)
    assert np.array_equal(y, wanted)
    out = np.zeros((5, 6), np.int32)
    number.python(out)
    assert out[4, 5] == 4005


@gw.kernel(block=8)
def reverse_in_block(x: DisjointSlice[f32]):
    tile = gw.shared((8,), f32)
    i = thread.index_1d()
    k = thread.local_index()
    tile[k] = x[i] if i in x else 0.0
    gw.barrier()
    if i in x:
        x[i] = tile[7 - k]


def test_plain_python_with_barriers():
    x = np.arange(24, dtype=np.float32)
    reverse_in_block.python(x)
    assert np.array_equal(x, np.arange(24, dtype=np.float32).reshape(3, 8)[:, ::-1].ravel())


def test_inspect():
    assert "def axpy" in axpy.inspect(stage="python")
    assert "kernel axpy" in axpy.inspect("check", "ir")
    assert "define" in axpy.inspect("cpu", "llvm")
    assert "kernel copy" in copy.inspect("cpu", "ir", choices={"T": gw.u8})
    with pytest.raises(gw.LaunchValueError, match="no stage 'ptx'"):
        axpy.inspect("cpu", "ptx")
