"""From a new process to the first result, and where the time goes."""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile

import gridwise as gw

from .common import RECORD, ROOT, environment, row

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


def run(cuda: gw.Device) -> None:
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
