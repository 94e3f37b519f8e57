"""Everything that needs an NVIDIA GPU, in one run: right results, then figures, then one table.

    python bench/h200.py                  all sections
    python bench/h200.py --only check,copy
    python bench/h200.py --skip conformance
    python bench/h200.py --small          tiny sizes: to try the script itself

Sections: check, faults, copy, vulkan, latency, launch, checks, std, stress, semantics, conformance, fuzz. One that
fails is reported and the rest goes on; the exit status is 1 if any failed. Written to be started on a machine with a
GPU and no network: it needs the package, NumPy, and for some sections pytest or wgpu. With OUT set, JSON goes there.

Bandwidth counts bytes read plus bytes written. Times are medians of many launches by device events, on random data
larger than the caches, into outputs that are poisoned before and checked after.
"""

from __future__ import annotations

import argparse
import ctypes
import importlib.util
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import timeit
import traceback
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "src"))

import gridwise as gw  # noqa: E402
from gridwise import DisjointSlice, Slice, f32, i32, thread  # noqa: E402
from gridwise.devices import registry  # noqa: E402

ROWS: list[tuple[str, str, str]] = []  # what, figure, note
RECORD: dict[str, Any] = {}
SIZE = {"bandwidth": 28, "keys": 20, "checked": 20, "launches": 20_000, "turns": 200}
SMALL = {"bandwidth": 10, "keys": 6, "checked": 10, "launches": 20, "turns": 2}
PYCACHE = os.path.join(tempfile.gettempdir(), "gridwise-bench-pycache")
POISON = np.float32(-1234.5)


def row(what: str, figure: str, note: str = "", **values: Any) -> None:
    """One line of the table, and its numbers for the JSON."""
    ROWS.append((what, figure, note))
    RECORD.setdefault(what, {}).update(values, shown=figure, note=note)
    print(f"  {what}: {figure} {note}", flush=True)


def example(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, ROOT / "examples" / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def seconds(device: gw.Device, work: Callable[[], None], repeats: int = 30, warm: int = 5, batch: int = 1) -> float:
    """Median seconds of ``work`` on the device's default stream, by events around ``batch`` of it."""
    stream = device.default_stream
    for _ in range(warm):
        work()
    pairs = []
    for _ in range(repeats):
        start = stream.record()
        for _ in range(batch):
            work()
        pairs.append((start, stream.record()))
    stream.synchronize()
    return statistics.median(end.elapsed_since(start) for start, end in pairs) / batch


# ---- right results ---------------------------------------------------------------------------------------------
def section_check(cuda: gw.Device) -> None:
    rng = np.random.default_rng()
    vecadd, saxpy = example("vecadd").vecadd, example("saxpy").saxpy
    for n in (0, 1, 3, 255, 256, 257, 1000, (1 << 20) + 3):
        a, b = rng.standard_normal((2, n)).astype(np.float32)
        c = cuda.full(n, POISON, f32) if n else cuda.empty(0, f32)
        vecadd(cuda.array(a), cuda.array(b), c)
        np.testing.assert_array_equal(c.numpy(), a + b)
    x, y = rng.standard_normal((2, 4096)).astype(np.float32)
    for step in (1, 2, -3):
        dy = cuda.array(y)
        dx = cuda.array(x)[:: abs(step)] if step > 0 else cuda.array(x)[::step]
        view = dy[: len(dx)]
        saxpy(1.5, dx, view)
        want = np.float32(1.5) * (x[:: abs(step)] if step > 0 else x[::step]) + y[: len(dx)]
        np.testing.assert_allclose(dy.numpy()[: len(dx)], want, rtol=2e-6, atol=1e-6)
    row("vecadd, saxpy", "right", "0 to 2^20+3 elements, views with strides 1, 2, -3")

    picture = example("mandelbrot").render
    cpu, gpu = picture(gw.device("cpu")), picture(cuda)
    same = float(np.mean(cpu == gpu))
    assert same > 0.99, f"only {same:.2%} of the Mandelbrot pixels agree"
    row("mandelbrot, cpu and cuda", f"{same:.4%} equal", "contraction to fma may move the escape of a few pixels")

    bitonic = example("bitonic_sort")
    count = 1 << SIZE["keys"]
    keys = rng.integers(0, 1 << 32, count, dtype=np.uint32)
    for dtype in (np.uint32, np.int32, np.float32):
        data = keys.view(dtype) if dtype is not np.float32 else rng.standard_normal(count).astype(np.float32)
        on_device = cuda.array(data)
        bitonic.sort(on_device)
        cuda.synchronize()
        fresh = cuda.array(data)
        start = cuda.default_stream.record()
        bitonic.sort(fresh)
        end = cuda.default_stream.record()
        np.testing.assert_array_equal(on_device.numpy(), np.sort(data))
        np.testing.assert_array_equal(fresh.numpy(), np.sort(data))
        name = np.dtype(dtype).name
        spent = end.elapsed_since(start)
        row(f"bitonic sort 2^{SIZE['keys']} {name}", f"{spent * 1e3:.2f} ms", "equal to numpy.sort", seconds=spent)


@gw.kernel(domain=1, block=256)
def gather(values: Slice[f32], where: Slice[i32], out: DisjointSlice[f32]):
    i = thread.index_1d()
    if i in out:
        out[i] = values[where[i]]


@gw.kernel(domain=1, block=128)
def divide(a: Slice[i32], b: Slice[i32], out: DisjointSlice[i32]):
    i = thread.index_1d()
    if i in out:
        out[i] = a[i] // b[i]


def section_faults(cuda: gw.Device) -> None:
    """A failed check raises the right exception at the next wait, and the device works on."""
    rng = np.random.default_rng()
    n = 1 << SIZE["checked"]
    values = rng.standard_normal(n).astype(np.float32)
    where = rng.integers(0, n, n).astype(np.int32)
    bad = where.copy()
    smallest = n // 2 + 1
    bad[n - 7], bad[smallest], bad[n - 100] = n, -5, 2**31 - 1
    dv, out = cuda.array(values), cuda.full(n, POISON, f32)
    for _ in range(20):  # the smallest thread is reported, every time
        gather(dv, cuda.array(bad), out)
        try:
            cuda.synchronize()
            raise AssertionError("no fault was raised")
        except gw.DeviceIndexError as e:
            assert e.thread == (smallest, 0, 0), e
            assert "index -5 is out of range for values" in str(e), e
            first = str(e)
    got = out.numpy()
    good = (bad >= 0) & (bad < n)
    np.testing.assert_array_equal(got[good], values[bad[good]])
    assert (got[~good] == 0).all()
    wild = cuda.array(rng.integers(-(2**31), 2**31 - 1, n).astype(np.int32))  # nearly every thread faults
    start = time.perf_counter()
    gather(dv, wild, out)
    try:
        cuda.synchronize()
        raise AssertionError("no fault was raised")
    except gw.DeviceIndexError:
        storm = time.perf_counter() - start
    try:
        divide(cuda.array(where), cuda.zeros(n, i32), cuda.zeros(n, i32))
        cuda.synchronize()
        raise AssertionError("no fault was raised")
    except gw.DeviceZeroDivisionError as e:
        assert e.thread == (0, 0, 0), e
    good_where = cuda.array(where)
    for _ in range(1000 if SIZE is not SMALL else 3):
        gather(dv, good_where, out)
    cuda.synchronize()
    np.testing.assert_array_equal(out.numpy(), values[where])
    note = f"smallest thread 20 times of 20; 2^{SIZE['checked']} faults in {storm * 1e3:.1f} ms"
    row("fault, then 1,000 launches", "right", note)
    print("\n".join("      " + line for line in first.splitlines()))

    checked = seconds(cuda, lambda: gather(dv, good_where, out))
    row(f"gather 2^{SIZE['checked']}, checked in place", f"{checked * 1e6:.1f} us", seconds=checked)

    done = subprocess.run([sys.executable, "-c", FORK], capture_output=True, text=True, timeout=120, env=environment())
    assert done.returncode == 0 and "refused" in done.stdout, done.stdout + done.stderr
    row("use after fork", "refused", done.stdout.strip().splitlines()[-1])


FORK = """
import os, sys
import gridwise as gw, numpy as np
d = gw.device("cuda"); a = d.array(np.arange(8))
child = os.fork()
if child == 0:
    try:
        d.array(np.arange(8))
    except gw.DeviceUnavailableError as e:
        print("refused: " + str(e).splitlines()[0], flush=True)
        del a
        os._exit(0)
    os._exit(1)
_, status = os.waitpid(child, 0)
assert (a.numpy() == np.arange(8)).all()
sys.exit(os.waitstatus_to_exitcode(status))
"""


# ---- bandwidth ---------------------------------------------------------------------------------------------------
def bandwidth(device: gw.Device, label: str) -> tuple[float, float]:
    """GB/s of the device's own copy and of vecadd, 2^28 f32, in one run; checks the sum."""
    n = 1 << SIZE["bandwidth"]
    vecadd = example("vecadd").vecadd
    rng = np.random.default_rng()
    a, b = rng.random(n, dtype=np.float32), rng.random(n, dtype=np.float32)
    da, db, dc = device.array(a), device.array(b), device.full(n, POISON, f32)
    stream = device.default_stream
    size = n * 4
    copying = lambda: device.copy(da.buffer, 0, dc.buffer, 0, size, stream)  # noqa: E731
    prepared = vecadd.prepare(device)
    adding = lambda: prepared(da, db, dc)  # noqa: E731
    copies, adds = [], []
    for _ in range(3):  # interleaved, so that a drifting clock touches both
        # Through WebGPU an event costs a submission, so several launches go between two.
        batch, repeats = (1, 30) if device.kind == "cuda" else (20, 5)
        copies.append(seconds(device, copying, repeats, batch=batch))
        adds.append(seconds(device, adding, repeats, batch=batch))
    copy_rate = 2 * size / statistics.median(copies) / 1e9
    add_rate = 3 * size / statistics.median(adds) / 1e9
    dc.fill(POISON)
    adding()
    got = dc.numpy()
    assert np.array_equal(got, a + b), f"vecadd through {label} is wrong"
    row(f"copy, {label}", f"{copy_rate:,.0f} GB/s", f"2^{SIZE['bandwidth']} f32", gbps=copy_rate)
    row(f"vecadd, {label}", f"{add_rate:,.0f} GB/s", f"{add_rate / copy_rate:.3f} of the copy", gbps=add_rate)
    return copy_rate, add_rate


def section_copy(cuda: gw.Device) -> None:
    bandwidth(cuda, "cuda")
    module = next(iter(modules_of(example("vecadd").vecadd, cuda)), None)
    if module is not None:
        info = module.info
        row("vecadd as compiled", f"{info['registers']} registers", f"{info['blocks_per_multiprocessor']} blocks an SM")


def section_vulkan(cuda: gw.Device) -> None:
    if importlib.util.find_spec("wgpu") is None:
        row("vulkan", "not run", "wgpu is not installed")
        return
    vulkan = gw.device("vulkan")
    row("vulkan", "found", vulkan.description)
    _, add = bandwidth(vulkan, "vulkan")
    copy = RECORD.get("copy, cuda", {}).get("gbps")
    if copy:
        row("vecadd vulkan / cuda copy", f"{add / copy:.3f}", "", ratio=add / copy)


def modules_of(kernel: Any, device: gw.Device) -> list[Any]:
    """The loaded modules of a kernel on a device."""
    found = []
    for (where, *_), loaded in kernel.launcher._canonical.items():
        if where is device:
            found.append(loaded.fast)
    return found


# ---- latency and overhead ------------------------------------------------------------------------------------------
FIRST_CALL = """
import time
t0 = time.perf_counter()
import gridwise as gw
t1 = time.perf_counter()
import numpy as np, sys
sys.path.insert(0, "examples")
from vecadd import vecadd
t2 = time.perf_counter()
d = gw.device("cuda")
t3 = time.perf_counter()
a, b = np.random.rand(2, 1000).astype(np.float32)
da, db, dc = d.array(a), d.array(b), d.zeros(1000, gw.f32)
t4 = time.perf_counter()
vecadd(da, db, dc); d.synchronize()
t5 = time.perf_counter()
vecadd(da, db, dc); d.synchronize()
t6 = time.perf_counter()
assert (dc.numpy() == a + b).all()
print(*(1e3 * (y - x) for x, y in ((t0, t1), (t2, t3), (t4, t5), (t5, t6))))
"""


# The same way, step by step, to see where the time goes.
STEPS = """
import time
marks = []
def mark(name): marks.append((name, time.perf_counter()))
mark("")
import numpy as np, sys; mark("numpy")
import gridwise as gw; mark("gridwise")
sys.path.insert(0, "examples")
from vecadd import vecadd
mark("")
import cuda.bindings.driver; mark("cuda.bindings")
from gridwise.devices.cuda_driver import call
call("cuDeviceGetCount"); mark("cuInit")
from gridwise.devices.cuda_driver import Context
Context(0); mark("context")
d = gw.device("cuda"); mark("rest of opening")
n = 1000
da, db, dc = d.array(np.ones(n, np.float32)), d.array(np.ones(n, np.float32)), d.zeros(n, gw.f32)
d.synchronize(); mark("arrays")
import gridwise.launch.launcher; mark("import launcher, frontend")
import gridwise.passes.pipeline; mark("import passes")
import gridwise.targets.ptx.emit; mark("import emitter")
from gridwise.targets.ptx.compile import compile, start
start(); mark("start LLVM")
launcher = vecadd.launcher
bounds = launcher.bind((da, db, dc)); mark("bind")
from gridwise.ir.types import I32
compiled = launcher.frontend((256, 1, 1), I32, d.caps, bounds); mark("frontend")
kernel = gridwise.passes.pipeline.analyse(compiled.kernel); mark("analyse")
lowered = gridwise.passes.pipeline.lower(kernel, "ptx"); mark("lower")
emitted = gridwise.targets.ptx.emit.emit(lowered, d.capability); mark("emit")
_, ptx = compile(emitted.llvm, d.capability, d.driver_version); mark("LLVM to PTX")
from gridwise.devices.cuda_module import CudaModule
module = CudaModule(d, lowered, emitted, ptx, 0); mark("driver: PTX to code")
info = module.info(); mark("registers, occupancy")
print("|".join(f"{name} {1e3 * (t - before):.1f}" for (_, before), (name, t) in zip(marks, marks[1:]) if name))
"""


def environment(**extra: str) -> dict[str, str]:
    """For a process of its own: this package, and byte code kept as an installed package has it."""
    path = os.pathsep.join([str(ROOT / "src"), *filter(None, [os.environ.get("PYTHONPATH", "")])])
    kept = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    return {**kept, "PYTHONPATH": path, "PYTHONPYCACHEPREFIX": PYCACHE, **extra}


def section_latency(cuda: gw.Device) -> None:
    runs = []
    for n in range(6):  # a process each; the driver's own cache of compiled PTX is off, and ours is empty
        with tempfile.TemporaryDirectory() as empty:
            env = environment(CUDA_CACHE_DISABLE="1", GRIDWISE_CACHE_DIR=empty)
            done = subprocess.run(
                [sys.executable, "-c", FIRST_CALL], capture_output=True, text=True, timeout=300, cwd=ROOT, env=env
            )
            assert done.returncode == 0, done.stderr[-2000:]
        if n:  # the first writes the byte code
            runs.append([float(x) for x in done.stdout.split()])
    steps = subprocess.run(
        [sys.executable, "-c", STEPS], capture_output=True, text=True, timeout=300, cwd=ROOT,
        env=environment(CUDA_CACHE_DISABLE="1"),
    )  # fmt: skip
    assert steps.returncode == 0, steps.stderr[-2000:]
    for step in steps.stdout.strip().split("|"):
        print(f"      {step} ms")
    RECORD["steps to the first call, ms"] = steps.stdout.strip().split("|")
    importing, opening, first, second = (statistics.median(column) for column in zip(*runs, strict=True))
    row("first call of vecadd", f"{first:.0f} ms", "frontend to machine code, new process each time", ms=first)
    row("second call", f"{second * 1e3:.0f} us", "with its wait", ms=second)
    row("import gridwise", f"{importing:.0f} ms", ms=importing)
    row("opening the device", f"{opening:.0f} ms", "of which the driver's start is most", ms=opening)


def compiled_loop() -> Callable[..., int]:
    """``loop(n, cuLaunchKernel, function, gx, bx, stream, params)`` in machine code: the floor of a launch."""
    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    ir = f"""
target triple = "{llvm.get_process_triple()}"
define i32 @loop(i64 %n, ptr %launch, ptr %f, i32 %gx, i32 %bx, ptr %stream, ptr %params) {{
entry:
  br label %next
next:
  %i = phi i64 [ 0, %entry ], [ %j, %next ]
  %r = call i32 %launch(ptr %f, i32 %gx, i32 1, i32 1, i32 %bx, i32 1, i32 1, i32 0, ptr %stream, ptr %params, ptr null)
  %j = add i64 %i, 1
  %more = icmp ult i64 %j, %n
  br i1 %more, label %next, label %done
done:
  ret i32 %r
}}
"""
    machine = llvm.Target.from_default_triple().create_target_machine(opt=2, jit=True)
    module = llvm.parse_assembly(ir)
    module.verify()
    engine = llvm.create_mcjit_compiler(module, machine)
    engine.finalize_object()
    pointer, integer = ctypes.c_void_p, ctypes.c_int
    kind = ctypes.CFUNCTYPE(integer, ctypes.c_int64, pointer, pointer, integer, integer, pointer, pointer)
    loop = kind(engine.get_function_address("loop"))
    loop.engine = engine  # type: ignore[attr-defined]
    return loop


def section_launch(cuda: Any) -> None:
    """Host microseconds a launch, 1,024-element vecadd, back to back, beside the driver's own call."""
    from gridwise.devices.cuda_driver import driver, function_address

    vecadd = example("vecadd").vecadd
    n, count = 1024, SIZE["launches"]
    a, b, c = (cuda.array(np.random.rand(n).astype(np.float32)) for _ in range(3))
    prepared = vecadd.prepare(cuda, grid=4)
    for call_it in (prepared, vecadd):
        for _ in range(20):
            call_it(a, b, c)
        call_it.settle()  # its machine code is in place
    cuda.synchronize()
    handle = modules_of(vecadd, cuda)[0].handle
    stream = cuda.default_stream
    params = handle.pack([x.arg for x in (a, b, c)], stream.fault_address, 0)
    loop, entry = compiled_loop(), function_address("cuLaunchKernel")

    def bare() -> float:
        start = time.perf_counter()
        loop(count, entry, handle.function_address, 1, 256, stream.address, params)
        return (time.perf_counter() - start) / count

    def python(statement: str, **names: Any) -> float:
        """As ``timeit`` has it: the statement in a loop, and nothing else."""
        return timeit.Timer(statement, globals=names).timeit(count) / count

    grid = (handle.function, 1, 1, 1, 256, 1, 1, 0, stream.handle, params, 0)
    arrays = {"a": a, "b": b, "c": c}
    ways: dict[str, Callable[[], float]] = {
        "compiled loop": bare,
        "cuda.bindings": lambda: python("f(*args)", f=driver().cuLaunchKernel, args=grid),
        "prepared": lambda: python("f(a, b, c)", f=prepared, **arrays),
        "not prepared": lambda: python("f(a, b, c)", f=vecadd, **arrays),
    }
    times: dict[str, list[float]] = {w: [] for w in ways}
    for _ in range(9):
        for name, way in ways.items():
            times[name].append(way())
            cuda.synchronize()
    kernels = 100
    with gw.graph(cuda) as graph:
        for _ in range(kernels):
            prepared(a, b, c)
    graph()
    cuda.synchronize()
    replays = []
    for _ in range(9):
        replays.append(timeit.Timer("g()", globals={"g": graph}).timeit(50) / 50 / kernels)
        cuda.synchronize()
    floor = statistics.median(times["compiled loop"])
    for name, found in times.items():
        t = statistics.median(found)
        row(f"launch, {name}", f"{t * 1e6:.2f} us", f"{t / floor:.2f} of cuLaunchKernel from machine code", us=t * 1e6)
    t = statistics.median(replays)
    row("launch, graph of 100", f"{t * 1e6:.2f} us", "a kernel, host time of a replay", us=t * 1e6)
    total = seconds(cuda, graph, 10, batch=20)
    row("graph of 100, on the device", f"{total / kernels * 1e6:.2f} us", "a kernel of 1,024 elements")


# ---- stress, semantics, conformance ----------------------------------------------------------------------------------
def section_stress(cuda: gw.Device) -> None:
    """16 threads, 8 streams, buffers that come and go: right results, no growth of memory."""
    vecadd = example("vecadd").vecadd
    streams = [cuda.stream() for _ in range(8)]
    wrong: list[str] = []

    def worker(seed: int) -> None:
        try:
            rng = np.random.default_rng(seed)
            stream = streams[seed % len(streams)]
            for _ in range(SIZE["turns"]):
                n = int(rng.integers(1, 5000))
                a, b = rng.random((2, n), dtype=np.float32)
                da, db, dc = cuda.array(a), cuda.array(b), cuda.full(n, POISON, f32)
                for _ in range(5):
                    vecadd(da, db, dc, stream=stream)
                if not np.array_equal(dc.numpy(), a + b):
                    wrong.append(f"thread {seed}, {n} elements")
        except Exception as e:
            wrong.append(f"thread {seed}: {e!r}")

    def used() -> int:
        cuda.synchronize()
        free, total = cuda.memory()  # type: ignore[attr-defined]
        return int(total - free)

    start = time.perf_counter()
    before = 0
    for turn in range(3):
        workers = [threading.Thread(target=worker, args=(n,)) for n in range(16)]
        for w in workers:
            w.start()
        for w in workers:
            w.join()
        if turn == 0:
            before = used()  # the pool has what this load needs
    growth = used() - before
    assert not wrong, wrong[:3]
    assert growth < 64 << 20, f"device memory grew by {growth >> 20} MiB"
    launches = 3 * 16 * SIZE["turns"] * 5
    row("stress", f"{launches:,} launches right", f"16 threads, 8 streams, {time.perf_counter() - start:.1f} s, "
        f"memory +{growth >> 20} MiB")  # fmt: skip


def pytest_section(label: str, paths: list[str], limit: int, *options: str) -> None:
    there = [p for p in paths if (ROOT / p).exists()]
    if not there or importlib.util.find_spec("pytest") is None:
        row(label, "not run", "no tests here" if not there else "pytest is not installed")
        return
    expect = os.environ.get("GRIDWISE_EXPECT", "cpu,check,cuda")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-x" if "-x" in options else "--maxfail=20", *there],
        capture_output=True, text=True, timeout=limit, cwd=ROOT, env=environment(GRIDWISE_EXPECT=expect),
    )  # fmt: skip
    lines = [line for line in done.stdout.strip().splitlines() if line.strip()]
    log = os.environ.get("OUT")
    if log:
        (Path(log) / f"{label.replace(' ', '_')}.log").write_text(done.stdout + done.stderr)
    if done.returncode:
        print("\n".join(lines[-60:]), flush=True)
        raise AssertionError(f"pytest: {lines[-1] if lines else done.stderr[-500:]}")
    row(label, lines[-1].strip("= "), ", ".join(there))


def section_semantics(cuda: gw.Device) -> None:
    """Every operation of the IR on every type, against the reference device, on the GPU itself."""
    pytest_section("semantics", ["tests/cuda"], 400)


def section_conformance(cuda: gw.Device) -> None:
    pytest_section("conformance", ["tests/conformance"], 450)


def add_body(a: Slice[f32], b: Slice[f32], c: DisjointSlice[f32]):
    i = thread.index_1d()
    if i in c:
        c[i] = a[i] + b[i]


def sums_body(x: Slice[f32], out: DisjointSlice[f32]):
    t = thread.local_index()
    i = thread.index_1d()
    part = gw.shared((256,), f32)
    part[t] = x[i] if i in x else 0.0
    gw.barrier()
    step = 128
    while step > 0:
        if t < step:
            part[t] = part[t] + part[t + step]
        gw.barrier()
        step //= 2
    b = thread.block_index()
    if t == 0 and b < len(out):
        out[b] = part[0]


def product_body(a: Slice[f32, 2], b: Slice[f32, 2], c: DisjointSlice[f32, 2]):
    x, y = thread.local_index(0), thread.local_index(1)
    row, col = thread.block_index(1) * 16 + y, thread.block_index(0) * 16 + x
    left, right = gw.shared((16, 16), f32), gw.shared((16, 16), f32)
    total = f32(0)
    for k in range((a.shape[1] + 15) // 16):
        left[y, x] = a[row, k * 16 + x] if row < a.shape[0] and k * 16 + x < a.shape[1] else 0.0
        right[y, x] = b[k * 16 + y, col] if k * 16 + y < b.shape[0] and col < b.shape[1] else 0.0
        gw.barrier()
        for j in range(16):
            total += left[y, j] * right[j, x]
        gw.barrier()
    at = thread.index_2d()
    if at in c:
        c[at] = total


def section_checks(cuda: gw.Device) -> None:
    """The checks that are left after proof, against none at all (``unchecked=True``), in one run, turn about."""
    rng = np.random.default_rng()
    for device in (cuda, gw.device("cpu")):
        scale = (26, 26, 2048) if device is cuda else (24, 22, 256)
        scale = (9, 9, 16) if SIZE is SMALL else scale
        n, m, side = 1 << scale[0], 1 << scale[1], scale[2]
        a, b = (device.array(rng.random(n, dtype=np.float32)) for _ in range(2))
        p, q = (device.array(rng.random((side, side), dtype=np.float32)) for _ in range(2))
        cases: list[tuple[str, Any, int, Any, tuple[Any, ...], Any]] = [
            ("vecadd", add_body, 1, 256, (a, b, device.empty(n, f32)), None),
            ("reduction", sums_body, 1, 256, (a[:m], device.empty(m // 256, f32)), m // 256),
            ("matrix product", product_body, 2, (16, 16), (p, q, device.empty((side, side), f32)), None),
        ]
        for name, body, domain, block, args, grid in cases:
            pair = [gw.kernel(domain=domain, block=block, unchecked=u)(body) for u in (False, True)]

            def spent(kernel: Any, device: Any = device, args: Any = args, grid: Any = grid) -> float:
                if device.kind == "cuda":
                    return seconds(device, lambda: kernel(*args, grid=grid), *((1, 1) if SIZE is SMALL else (20, 5)))
                start = time.perf_counter()
                kernel(*args, grid=grid)
                device.synchronize()
                return time.perf_counter() - start

            for kernel in pair:
                spent(kernel)
            times: list[list[float]] = [[], []]
            for _ in range(2 if SIZE is SMALL else 7 if device.kind == "cuda" else 25):
                for found, kernel in zip(times, pair, strict=True):
                    found.append(spent(kernel))
            with_, without = (statistics.median(found) for found in times)
            label = f"checks, {name}, {device.kind}"
            row(label, f"{with_ / without:.3f}", f"of unchecked, {without * 1e3:.3f} ms", ratio=with_ / without)


def section_fuzz(cuda: gw.Device) -> None:
    """Random programs on every device against the reference device, as many as fit."""
    budget, chunk = int(os.environ.get("GRIDWISE_FUZZ_SECONDS", "400")), 2000
    total = int(os.environ.get("GRIDWISE_FUZZ", "20000"))
    workers = ["-n", str(min(14, os.cpu_count() or 1))] if importlib.util.find_spec("xdist") else []
    expect = os.environ.get("GRIDWISE_EXPECT", "cpu,check,cuda")
    begin, ran = time.perf_counter(), 0
    while ran < total:
        took = time.perf_counter() - begin
        if ran and took + 1.2 * took / ran * chunk > budget:
            break
        done = subprocess.run(
            [sys.executable, "-m", "pytest", "-q", *workers, "tests/conformance/test_random_programs.py"],
            capture_output=True, text=True, timeout=580, cwd=ROOT,
            env=environment(GRIDWISE_EXPECT=expect, GRIDWISE_FUZZ=str(chunk), GRIDWISE_SEED=str(ran)),
        )  # fmt: skip
        if done.returncode:
            print(done.stdout[-6000:], flush=True)
            raise AssertionError(f"programs {ran} to {ran + chunk}: {done.stdout.strip().splitlines()[-1:]}")
        ran += chunk
        print(f"      {ran} programs, {time.perf_counter() - begin:.0f} s", flush=True)
    note = f"{', '.join(n for n in registry.names() if n != 'check')} against check"
    row("random programs", f"{ran:,} agree", f"{note}, {time.perf_counter() - begin:.0f} s", programs=ran)


def section_std(cuda: gw.Device) -> None:
    """The standard library beside the device's own copy, and torch where it is installed."""
    from gridwise import std

    rng = np.random.default_rng()
    n, side = 1 << SIZE["bandwidth"], 1 << (SIZE["bandwidth"] // 2)
    host = rng.random(n, dtype=np.float32)
    a, out, one = cuda.array(host), cuda.full(n, POISON, f32), cuda.zeros(1, f32)
    matrix, turned = a.reshape(side, side), out.reshape(side, side)
    np.testing.assert_allclose(std.sum(a), host.sum(dtype=np.float64), rtol=1e-5)
    whole = cuda.array(np.ones(n, np.int32))
    np.testing.assert_array_equal(std.cumsum(whole).numpy(), np.arange(1, n + 1, dtype=np.int32))
    std.transpose(matrix, turned)
    np.testing.assert_array_equal(turned.numpy(), host.reshape(side, side).T)
    stream = cuda.default_stream
    copy = 8 * n / seconds(cuda, lambda: cuda.copy(a.buffer, 0, out.buffer, 0, 4 * n, stream)) / 1e9
    ours = {
        "sum": (4 * n, lambda: std.sum(a, one)),
        "cumsum": (8 * n, lambda: std.cumsum(a, out)),
        "transpose": (8 * n, lambda: std.transpose(matrix, turned)),
    }
    theirs: dict[str, Callable[[], Any]] = {}
    torch: Any = None
    if importlib.util.find_spec("torch") is not None:
        import torch as found

        torch = found
        if torch.cuda.is_available():
            x = torch.from_numpy(host).cuda()
            y, z = torch.empty_like(x), torch.empty((), device="cuda")
            square = x.reshape(side, side)
            theirs = {
                "sum": lambda: torch.sum(x, dim=0, out=z),
                "cumsum": lambda: torch.cumsum(x, 0, out=y),
                "transpose": lambda: y.reshape(side, side).copy_(square.t()),
            }
    for name, (moved, work) in ours.items():
        rate = moved / seconds(cuda, work) / 1e9
        note = f"{rate / copy:.3f} of the copy"
        if name in theirs:
            peer = moved / torch_seconds(torch, theirs[name]) / 1e9
            note += f"; torch {peer:,.0f} GB/s, {peer / copy:.3f}"
        row(f"std.{name} 2^{SIZE['bandwidth']} f32", f"{rate:,.0f} GB/s", note, gbps=rate, ratio=rate / copy)


def torch_seconds(torch: Any, work: Callable[[], Any], repeats: int = 30) -> float:
    """Median seconds of work on torch's current stream, by its events."""
    for _ in range(5):
        work()
    pairs = []
    for _ in range(repeats):
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        start.record()
        work()
        end.record()
        pairs.append((start, end))
    torch.cuda.synchronize()
    return statistics.median(s.elapsed_time(e) for s, e in pairs) / 1e3


SECTIONS: dict[str, Callable[[Any], None]] = {
    "check": section_check,
    "faults": section_faults,
    "copy": section_copy,
    "vulkan": section_vulkan,
    "latency": section_latency,
    "launch": section_launch,
    "checks": section_checks,
    "std": section_std,
    "stress": section_stress,
    "semantics": section_semantics,
    "conformance": section_conformance,
    "fuzz": section_fuzz,
}


def versions() -> str:
    from importlib.metadata import PackageNotFoundError, version

    found = []
    for package in ("llvmlite", "numpy", "cuda-bindings", "wgpu", "z3-solver"):
        try:
            found.append(f"{package} {version(package)}")
        except PackageNotFoundError:
            found.append(f"no {package}")
    return f"Python {platform.python_version()}, " + ", ".join(found)


def table(device: str) -> str:
    width = max((len(r[0]) for r in ROWS), default=0), max((len(r[1]) for r in ROWS), default=0)
    lines = [device, versions(), ""]
    lines += [f"{what:<{width[0]}}  {figure:>{width[1]}}  {note}".rstrip() for what, figure, note in ROWS]
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="sections, with commas")
    parser.add_argument("--skip", default="", help="sections, with commas")
    parser.add_argument("--small", action="store_true", help="tiny sizes")
    options = parser.parse_args()
    if options.small:
        global SIZE
        SIZE = SMALL
    wanted = [s for s in SECTIONS if not options.only or s in options.only.split(",")]
    wanted = [s for s in wanted if s not in options.skip.split(",")]
    try:
        cuda = gw.device("cuda")
    except gw.DeviceUnavailableError as e:
        print(e)
        return 2
    print(cuda.description, flush=True)
    failed = 0
    for name in wanted:
        print(f"[{name}]", flush=True)
        start = time.perf_counter()
        try:
            SECTIONS[name](cuda)
        except BaseException as e:
            failed += 1
            traceback.print_exc()
            row(name, "FAILED", f"{type(e).__name__}: {e}".splitlines()[0][:120])
        print(f"  ({time.perf_counter() - start:.1f} s)", flush=True)
    print("\n" + table(cuda.description), flush=True)
    if os.environ.get("OUT"):
        path = Path(os.environ["OUT"]) / "h200.json"
        path.write_text(json.dumps({"device": cuda.description, "versions": versions(), "figures": RECORD}, indent=1))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
