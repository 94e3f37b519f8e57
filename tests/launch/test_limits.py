"""Launches at the edges: 64-bit indices, limits of devices, faults among threads, many arguments."""

import runpy
import threading

import numpy as np
import pytest

import gridwise as gw
from gridwise import Cap, DisjointSlice, Slice, f32, i32, i64, thread
from gridwise.launch import launcher


@gw.kernel(block=64)
def axpy(alpha: f32, x: Slice[f32], y: DisjointSlice[f32]):
    i = thread.index_1d()
    if i in y:
        y[i] = alpha * x[i] + y[i]


@gw.kernel
def ends(x: Slice[f32], lengths: DisjointSlice[i64], y: DisjointSlice[f32]):
    i = thread.index_1d()
    if i in y and i in lengths:
        k = len(x) - 1 - int(i)
        lengths[i] = i64(k)
        y[i] = x[k]


@gw.kernel
def gather(index: Slice[i32], x: Slice[f32], y: DisjointSlice[f32]):
    i = thread.index_1d()
    if i in y:
        y[i] = x[index[i]]


def test_arrays_of_more_than_2_31_elements():
    x = np.lib.stride_tricks.as_strided(np.full(1, 3, np.float32), (2**31 + 7,), (0,))
    lengths, y = np.zeros(4, np.int64), np.zeros(4, np.float32)
    ends(x, lengths, y)
    assert lengths.tolist() == [2**31 + 6 - k for k in range(4)]
    assert y.tolist() == [3.0] * 4


def test_wide_indices(device, monkeypatch):
    monkeypatch.setattr(launcher, "_NARROW", 100)
    x, y = np.random.default_rng(0).random((2, 1000), dtype=np.float32)
    dy = device.array(y)
    if Cap.I64 not in device.caps:
        with pytest.raises(gw.LaunchValueError, match="need 64-bit indices"):
            axpy(1.0, device.array(x), dy)
        return
    axpy(1.0, device.array(x), dy)
    assert np.array_equal(dy.numpy(), x + y)
    loaded = next(v for k, v in axpy.launcher._loaded.items() if k[0] is device and k[2] is True)
    assert loaded.kernel.index.bits == 64


def test_blocks_and_grids_beyond_the_device(device):
    x = device.zeros(8, f32)
    with pytest.raises(gw.LaunchValueError, match=f"is more than {device.name} can run"):
        axpy.prepare(device, block=device.limits.max_threads_per_block + 1)
    with pytest.raises(gw.LaunchValueError, match="has 2 axes"):
        axpy(1.0, x, device.zeros(8, f32), grid=(2, 2))

    @gw.kernel(domain=2)
    def rows(y: DisjointSlice[f32, 2]):
        at = thread.index_2d()
        if at in y:
            y[at] = 1.0

    with pytest.raises(gw.LaunchValueError, match=r"70000 blocks along y, and .* allows 65535"):
        rows(device.zeros((2, 2), f32), grid=(1, 70_000))


def test_a_fault_belongs_to_the_thread_that_launched():
    good, bad = [], []

    def work(n):
        index = np.arange(100, dtype=np.int32)
        if n % 2:
            index[50] = 1000
        for _ in range(20):
            try:
                gather(index, np.ones(100, np.float32), np.zeros(100, np.float32))
            except gw.DeviceIndexError as e:
                bad.append((n, e.thread[0]))
            else:
                good.append(n)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(6)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert len(good) == len(bad) == 60
    assert all(n % 2 == 0 for n in good) and all(n % 2 == 1 and at == 50 for n, at in bad)


def test_the_device_works_after_a_fault(device):
    x, y = device.full(100, 1.0, f32), device.zeros(100, f32)
    index = np.arange(100, dtype=np.int32)
    index[70], index[20] = -1, 100
    gather(device.array(index), x, y)
    with pytest.raises(gw.DeviceIndexError) as e:
        y.numpy()
    assert e.value.thread[0] == 20 and "index 100 is out of range for x of length 100" in str(e.value)
    got = y.numpy()
    assert got.sum() == 98 and got[20] == got[70] == 0
    for _ in range(50):
        axpy(1.0, x, y)
    assert y.numpy().sum() == 98 + 5000


MANY = """
import gridwise as gw
from gridwise import DisjointSlice, Slice, f32, thread

@gw.kernel
def many({parameters}out: DisjointSlice[f32]):
    i = thread.index_1d()
    if i in out:
        out[i] = {total}
"""


@pytest.mark.parametrize("inputs", [0, 7])
def test_many_arrays(device, inputs, tmp_path):
    path = tmp_path / "many.py"
    parameters = "".join(f"a{n}: Slice[f32], " for n in range(inputs))
    path.write_text(MANY.format(parameters=parameters, total=" + ".join(["0.0", *(f"a{n}[i]" for n in range(inputs))])))
    kernel = runpy.run_path(str(path))["many"]
    out = device.zeros(33, f32)
    kernel(*[device.full(33, float(n), f32) for n in range(inputs)], out)
    assert out.numpy().tolist() == [float(sum(range(inputs)))] * 33
