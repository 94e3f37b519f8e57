"""The CUDA device's own work, on the simulated driver: memory, streams, faults, print, refusals."""

from __future__ import annotations

import gc
import os
import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from cuda_kernels import Kern, argument, array, lowered, run
from cuda_simulator import Simulator, simulated

from gridwise.ir.types import BF16, BOOL, F16, F32, F64, I8, I32, I64, U64
from gridwise.lang.errors import (
    DeviceError,
    DeviceIndexError,
    DeviceUnavailableError,
    LaunchValueError,
    OutOfMemoryError,
)


@pytest.fixture
def driver() -> Iterator[Simulator]:
    with simulated(capacity=64 << 20) as simulator:
        yield simulator
        gc.collect()


@pytest.fixture
def device(driver: Simulator) -> Any:
    from gridwise.devices import cuda

    return cuda.open("cuda")


def gather() -> Any:
    """out[i] = values[where[i]], checked in place."""
    k = Kern("gather", (64, 1, 1), values=array(F32), where=array(I32), out=array(F32, "disjoint"))
    i = k.b.identity("global_idx", 0)
    k.b.store(k.out, [i], k.b.load(k.values, [k.b.load(k.where, [i], check="proved")]), check="proved")
    return lowered(k.kernel)


def test_names(driver: Simulator) -> None:
    from gridwise.devices import cuda

    assert cuda.find() == ["cuda:0"]
    assert cuda.open("cuda:0").name == "cuda:0"
    with pytest.raises(DeviceUnavailableError, match="there is no cuda:3: the driver shows 1 device"):
        cuda.open("cuda:3")
    with pytest.raises(DeviceUnavailableError, match="write 'cuda' or 'cuda:0'"):
        cuda.open("cuda:x")


def test_copies_and_views(device: Any) -> None:
    host = np.arange(60, dtype=np.int16).reshape(6, 10)
    on_device = device.array(host)
    np.testing.assert_array_equal(on_device.numpy(), host)
    np.testing.assert_array_equal(on_device[1:5:2, 3:].numpy(), host[1:5:2, 3:])
    assert not device.zeros((3, 0), np.float64).numpy().size
    assert (device.zeros(100, np.uint8).numpy() == 0).all()


def test_memory_comes_back(driver: Simulator, device: Any) -> None:
    start = len(driver.memory)
    held = [device.zeros(1000, np.float32) for _ in range(50)]
    assert len(driver.memory) == start + 50
    held[0].free()
    assert len(driver.memory) == start + 49
    del held
    gc.collect()
    assert len(driver.memory) == start
    with pytest.raises(OutOfMemoryError, match="could not allocate 1,073,741,824 bytes") as e:
        device.allocate(1 << 30)
    assert isinstance(e.value, MemoryError)
    assert device.zeros(10, np.float32).numpy().sum() == 0  # usable after


def test_pinned_arrays(driver: Simulator, device: Any) -> None:
    start = len(driver.memory)
    page = device.pinned((4, 5), np.float32)
    page[:] = 7
    on_device = device.array(page, blocking=False)
    np.testing.assert_array_equal(on_device.numpy(), page)
    del page, on_device
    gc.collect()
    assert len(driver.memory) == start


def test_the_smallest_thread_of_the_first_launch_is_reported(device: Any) -> None:
    k = gather()
    values, out = np.arange(10, dtype=np.float32), np.full(128, -1, np.float32)
    where = np.arange(128, dtype=np.int32) % 10
    where[[40, 90, 100]] = 10, -3, 2**31 - 1
    got, fault = run(device, k, [values, where, out], (2, 1, 1))
    assert isinstance(fault, DeviceIndexError) and isinstance(fault, IndexError)
    assert fault.thread == (40, 0, 0)
    assert str(fault).startswith("gather: index 10 is out of range for values of length 10 (thread 40)")
    assert got[2][40] == got[2][90] == 0 and got[2][41] == 1
    where[40] = 0
    _, fault = run(device, k, [values, where, out], (2, 1, 1))
    assert fault is not None and "index -3 is out of range" in str(fault) and fault.thread == (90, 0, 0)


def test_one_fault_per_wait_and_other_modules_do_not_mix(device: Any) -> None:
    """Two kernels fault on one stream: the first launch's fault is raised, with its own names."""
    k, stream = gather(), device.stream()
    other = Kern("other", (32, 1, 1), a=array(I32), out=array(I32, "disjoint"))
    b = other.b
    i = b.identity("global_idx", 0)
    b.store(other.out, [i], b.binary("floordiv", b.const(7, I32), b.load(other.a, [i], check="proved")), check="proved")
    first, second = device.load(k), device.load(lowered(other.kernel))
    values, bad, out = device.zeros(4, F32), device.full(64, 9, I32), device.zeros(64, F32)
    zeros, ints = device.zeros(32, I32), device.zeros(32, I32)
    device.launch(first, (1, 1, 1), [argument(a) for a in (values, bad, out)], stream)
    device.launch(second, (1, 1, 1), [argument(a) for a in (zeros, ints)], stream)
    with pytest.raises(DeviceIndexError, match="gather: index 9"):
        stream.synchronize()
    stream.synchronize()  # raised once
    device.launch(second, (1, 1, 1), [argument(a) for a in (zeros, ints)], stream)
    with pytest.raises(ZeroDivisionError, match="other: integer division or modulo by zero"):
        device.synchronize()
    device.synchronize()


def test_a_read_raises_what_another_stream_recorded(device: Any) -> None:
    k, stream = gather(), device.stream()
    module = device.load(k)
    out = device.zeros(64, F32)
    args = [argument(a) for a in (device.zeros(4, F32), device.full(64, 9, I32), out)]
    device.launch(module, (1, 1, 1), args, stream)
    with pytest.raises(DeviceIndexError):
        device.read(out.buffer, 0, np.empty(64, np.float32), device.default_stream)


def test_print_lines_are_ordered(device: Any, capsys: pytest.CaptureFixture[str]) -> None:
    k = Kern("talk", (40, 1, 1), a=array(F32), h=F16, w=BF16, flag=BOOL, d=F64, u=U64, s=I8)
    i = k.b.identity("global_idx", 0)
    k.b.emit("print", (i, k.b.load(k.a, [i], check="proved")), parts=("a[", (0, ""), "]=", (1, ".3f")))
    with k.b.into(k.b.if_(k.b.binary("eq", i, k.b.const(1, I32))).regions[0]):
        values = (k.h, k.w, k.flag, k.d, k.u, k.s)
        k.b.emit("print", values, parts=tuple(x for n in range(6) for x in ((n, ""), " ")))
    module = device.load(lowered(k.kernel))
    a = device.array(np.linspace(0, 1, 80, dtype=np.float32))
    args = [argument(a), 1.5, -2.0, True, 1e300, 2**64 - 1, -128]
    for _ in range(2):
        device.launch(module, (2, 1, 1), args, device.default_stream)
    device.synchronize()
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 162 and lines[:81] == lines[81:]
    assert lines[0] == "a[0]=0.000" and lines[2] == "1.5 -2 True 1e+300 18446744073709551615 -128 "
    assert lines[80] == "a[79]=1.000"
    device.synchronize()
    assert capsys.readouterr().out == ""


def test_a_full_print_buffer_says_so(device: Any, capsys: pytest.CaptureFixture[str], monkeypatch: Any) -> None:
    from gridwise.devices import printing
    from gridwise.targets.ptx import runtime

    for module, name in ((printing, "CAPACITY"), (runtime, "PRINT_CAPACITY")):
        monkeypatch.setattr(module, name, 60)
    k = Kern("talk", (32, 1, 1))
    k.b.emit("print", (k.b.identity("thread_idx", 0),), parts=("thread ", (0, "")))
    module = device.load(lowered(k.kernel))
    device.launch(module, (1, 1, 1), [], device.default_stream)
    device.synchronize()
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 11 and lines[-1] == "... 22 more lines were lost: the print buffer was full"


def test_refused_ptx_is_explained(driver: Simulator, device: Any) -> None:
    driver.refuse["cuModuleLoadDataEx"] = "yes"
    driver.log = "ptxas application ptx input, line 5; error : Unknown something"
    with pytest.raises(DeviceError, match="gather: the CUDA driver does not accept the generated PTX") as e:
        device.load(gather())
    assert "line 5" in str(e.value) and len(str(e.value).splitlines()) <= 6


def test_a_context_made_current_by_another_library_is_replaced(driver: Simulator, device: Any) -> None:
    module = device.load(gather())
    out = device.zeros(64, F32)
    args = [argument(a) for a in (device.full(4, 2, F32), device.zeros(64, I32), out)]
    driver.refuse["cuLaunchKernel"] = "CUDA_ERROR_INVALID_CONTEXT"
    device.launch(module, (1, 1, 1), args, device.default_stream)
    assert (out.numpy() == 2).all()
    driver.refuse["cuLaunchKernel"] = "CUDA_ERROR_ILLEGAL_ADDRESS"
    with pytest.raises(DeviceError, match="cuLaunchKernel failed: CUDA_ERROR_ILLEGAL_ADDRESS") as e:
        device.launch(module, (1, 1, 1), args, device.default_stream)
    assert "restart it" in str(e.value)


def test_too_much_shared_memory(device: Any) -> None:
    module = device.load(gather())
    args = [argument(device.zeros(64, t)) for t in (F32, I32, F32)]
    with pytest.raises(LaunchValueError, match="300,000 bytes of shared memory a block, 232,448 are available"):
        device.launch(module, (1, 1, 1), args, device.default_stream, 300_000)


def test_launches_from_many_threads_keep_their_arguments(device: Any) -> None:
    k = Kern("mark", (1, 1, 1), out=array(I64, "disjoint"), value=I64)
    k.b.store(k.out, [k.b.const(0, I32)], k.value, check="proved")
    module = device.load(lowered(k.kernel))
    outs = [device.zeros(1, I64) for _ in range(8)]
    wrong: list[int] = []

    def worker(n: int) -> None:
        stream = device.stream()
        for turn in range(50):
            device.launch(module, (1, 1, 1), [argument(outs[n]), n * 1000 + turn], stream)
            if outs[n].numpy(stream)[0] != n * 1000 + turn:
                wrong.append(n)

    workers = [threading.Thread(target=worker, args=(n,)) for n in range(8)]
    for w in workers:
        w.start()
    for w in workers:
        w.join()
    assert not wrong


def test_zero_blocks_launch_nothing(driver: Simulator, device: Any) -> None:
    module = device.load(gather())
    device.launch(module, (0, 1, 1), [], device.default_stream)
    assert driver.launches == 0


def test_a_coarsened_kernel_runs_fewer_blocks(device: Any) -> None:
    k = Kern("scale", (32, 1, 1), a=array(F32), out=array(F32, "disjoint"))
    b = k.b
    i = b.identity("global_idx", 0)
    with b.into(b.if_(b.binary("lt", i, b.dim(k.out, 0))).regions[0]):
        x = b.load(k.a, [i], check="launch")
        b.store(k.out, [i], b.binary("mul", x, b.const(3.0, F32)), check="proved")
    kernel = lowered(k.kernel, vector=True)
    assert kernel.coarsen == 4
    a = np.random.default_rng(0).random(1003, dtype=np.float32)
    (_, out), fault = run(device, kernel, [a, np.zeros_like(a)], (32, 1, 1))
    assert fault is None
    np.testing.assert_array_equal(out, a * np.float32(3))
    assert "ld.global.nc.v4" in device.load(kernel).stages["ptx"]


def test_several_devices_copy_between_them(driver: Simulator) -> None:
    from gridwise.devices import cuda

    driver.devices = 2
    assert cuda.find() == ["cuda:0", "cuda:1"]
    one, two = cuda.open("cuda:0"), cuda.open("cuda:1")
    host = np.arange(1000, dtype=np.float32)
    a = one.array(host)
    b = two.array(a)
    assert b.device is two and driver.peer_copies == 1
    np.testing.assert_array_equal(b.numpy(), host)
    b.copy_from(a[::-1])  # strided: through the host
    assert driver.peer_copies == 1
    np.testing.assert_array_equal(b.numpy(), host[::-1])


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this platform")
def test_a_forked_child_is_refused(device: Any) -> None:
    from gridwise.devices import cuda_driver

    cuda_driver._State.started = True  # the simulated driver starts nothing
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            device.zeros(3, F32)
            os.write(write, b"allowed")
        except DeviceUnavailableError as e:
            os.write(write, str(e).encode())
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    cuda_driver._State.started = False
    assert os.read(read, 1000).startswith(b"CUDA cannot be used in a forked child")
    assert (device.zeros(3, F32).numpy() == 0).all()


def test_import_is_free_of_cuda() -> None:
    """Neither ``import gridwise`` nor looking for devices without the bindings imports NVIDIA's packages early."""
    import subprocess
    import sys

    code = "import sys, gridwise; assert not [m for m in sys.modules if m == 'cuda' or m.startswith('cuda.')]"
    subprocess.run([sys.executable, "-c", code], check=True)
