"""Host microseconds a launch, 1,024-element vecadd, back to back, beside the driver's own call."""

from __future__ import annotations

import ctypes
import statistics
import time
import timeit
from collections.abc import Callable
from typing import Any

import numpy as np

import gridwise as gw

from .common import SIZE, example, modules_of, row, seconds


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


def run(cuda: Any) -> None:
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
