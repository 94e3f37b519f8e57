"""The WebGPU device itself: its queue, copies of odd sizes, events, errors, and what it refuses."""

from __future__ import annotations

import gc
import subprocess
import sys

import numpy as np
import pytest
from test_wgsl_memory import copier
from wgsl_kernels import Sketch, launch, run

from gridwise.devices import webgpu
from gridwise.devices.webgpu import WebGpuDevice
from gridwise.devices.webgpu_copy import Copier
from gridwise.ir import Kernel
from gridwise.ir.types import F32, I32, U8
from gridwise.lang.errors import (
    DeviceError,
    DeviceUnavailableError,
    LaunchValueError,
    OutOfMemoryError,
    UnsupportedError,
)
from gridwise.passes.pipeline import lower
from gridwise.targets.wgsl import emit
from gridwise.targets.wgsl.compile import compile_shader, message
from gridwise.targets.wgsl.emit import Shader


def test_names_and_limits(gpu: WebGpuDevice) -> None:
    assert webgpu.find() and gpu.limits.max_threads_per_block == 256 and gpu.limits.max_arrays == 8
    assert gpu.adapter.info["device"] in gpu.description
    assert gpu.handle.limits["max-compute-invocations-per-workgroup"] == 256  # the portable limit, not the adapter's
    with pytest.raises(DeviceUnavailableError, match=r"present: .*vulkan"):
        webgpu.open("vulkan:no such adapter")
    word = gpu.adapter.info["device"].split()[0].lower()
    assert webgpu.open(f"webgpu:{word}").adapter is gpu.adapter


def test_gridwise_does_not_import_wgpu() -> None:
    code = "import sys, gridwise; import gridwise.devices.webgpu; assert 'wgpu' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_many_launches_are_one_submission(gpu: WebGpuDevice, monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = lower(copier(F32), "wgsl")
    module = gpu.load(kernel)
    a, b = gpu.array(np.ones(1000, np.float32)), gpu.zeros(1000, F32)
    gpu.launch(module, (16, 1, 1), [a.arg, b.arg], gpu.default_stream)  # compiled before counting
    gpu.synchronize()
    submissions = []
    flush = gpu.queue.flush
    monkeypatch.setattr(gpu.queue, "flush", lambda: (submissions.append(gpu.queue.recorded), flush())[1])
    for n in range(200):
        source, target = (a, b) if n % 2 == 0 else (b, a)
        gpu.launch(module, (16, 1, 1), [source.arg, target.arg], gpu.default_stream)
    assert not submissions
    assert (a.numpy() == np.inf).all()  # doubled 200 times
    assert submissions[0] == 200 and not any(submissions[1:])


def test_more_launches_than_one_submission_holds(gpu: WebGpuDevice) -> None:
    s = Sketch(block=(1, 1, 1))
    out = s.array("out", I32)
    b = s.b
    zero = b.const(0, I32)
    b.store(out, [zero], b.binary("add", b.load(out, [zero], check="proved"), b.const(1, I32)), check="proved")
    module = gpu.load(lower(s.kernel(), "wgsl"))
    out_array = gpu.zeros(1, I32)
    for _ in range(3000):
        gpu.launch(module, (1, 1, 1), [out_array.arg], gpu.default_stream)
    assert out_array.numpy()[0] == 3000


@pytest.mark.parametrize("offset,size", [(0, 1), (1, 1), (3, 2), (0, 4), (4, 8), (5, 90), (2, 98), (7, 0)])
def test_copies_of_any_bytes(gpu: WebGpuDevice, offset: int, size: int) -> None:
    rng = np.random.default_rng(5)
    host, new = rng.integers(0, 256, (2, 100), dtype=np.uint8)
    buffer, other = gpu.array(host).buffer, gpu.array(host).buffer
    gpu.write(buffer, offset, new[:size], gpu.default_stream)
    want = host.copy()
    want[offset : offset + size] = new[:size]
    got = np.empty(100, np.uint8)
    gpu.read(buffer, 0, got, gpu.default_stream)
    np.testing.assert_array_equal(got, want)
    part = np.empty(size, np.uint8)
    gpu.read(buffer, offset, part, gpu.default_stream)
    np.testing.assert_array_equal(part, want[offset : offset + size])
    gpu.copy(buffer, offset, other, 100 - size, size, gpu.default_stream)
    gpu.read(other, 0, got, gpu.default_stream)
    np.testing.assert_array_equal(got, np.concatenate([host[: 100 - size], want[offset : offset + size]]))
    gpu.fill(buffer, offset, size, 0xCD, gpu.default_stream)
    want[offset : offset + size] = 0xCD
    gpu.read(buffer, 0, got, gpu.default_stream)
    np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("size", [1 << 20, (1 << 20) + 4, (3 << 20) + 12])
def test_large_copies_by_a_kernel(gpu: WebGpuDevice, monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    """As on discrete GPUs; with bindings of 1 MiB, so that a copy takes several."""
    monkeypatch.setattr(gpu, "own_copies", True)
    monkeypatch.setattr(gpu.queue, "copier", Copier(gpu.handle, 1 << 20))
    host = np.random.default_rng(2).integers(0, 256, size + 512, dtype=np.uint8)
    source, target = gpu.array(host), gpu.zeros(size + 512, U8)
    gpu.copy(source.buffer, 256, target.buffer, 0, size, gpu.default_stream)
    got = target.numpy()
    np.testing.assert_array_equal(got[:size], host[256 : 256 + size])
    assert not got[size:].any()


def test_recording_events_submits_nothing(gpu: WebGpuDevice, monkeypatch: pytest.MonkeyPatch) -> None:
    if "timestamp-query" not in gpu.features:
        pytest.skip("no clock on this driver: an event waits")
    gpu.synchronize()
    flushes = []
    flush = gpu.queue.flush
    monkeypatch.setattr(gpu.queue, "flush", lambda: (flushes.append(1), flush())[1])
    stream = gpu.default_stream
    a, b = gpu.zeros(1000, F32), gpu.zeros(1000, F32)
    module = gpu.load(lower(copier(F32), "wgsl"))
    events = [stream.record()]
    for _ in range(5):
        gpu.launch(module, (16, 1, 1), [a.arg, b.arg], stream)
        events.append(stream.record())
    assert not flushes
    assert events[-1].elapsed_since(events[0]) > 0
    assert all(e.done() for e in events)


def test_a_write_waits_for_recorded_launches_that_use_the_buffer(gpu: WebGpuDevice) -> None:
    kernel = lower(copier(F32), "wgsl")
    a, b = gpu.array(np.full(64, 1, np.float32)), gpu.zeros(64, F32)
    launch(gpu, kernel, 1, [a, b])
    gpu.write(a.buffer, 0, np.full(64, 5, np.float32), gpu.default_stream)
    assert (b.numpy() == 2).all() and (a.numpy() == 5).all()


def test_reads_that_do_not_block(gpu: WebGpuDevice) -> None:
    a = gpu.array(np.arange(50, dtype=np.float32))
    out = np.zeros(50, np.float32)
    gpu.read(a.buffer, 0, out, gpu.default_stream, blocking=False)
    gpu.fill(a.buffer, 0, 200, 0, gpu.default_stream)
    gpu.synchronize()
    np.testing.assert_array_equal(out, np.arange(50))  # the content when it was queued


def test_freed_while_recorded(gpu: WebGpuDevice) -> None:
    kernel = lower(copier(F32), "wgsl")
    out = gpu.zeros(64, F32)
    module = gpu.load(kernel)
    for n in range(20):
        source = gpu.array(np.full(64, n, np.float32))
        gpu.launch(module, (1, 1, 1), [source.arg, out.arg], gpu.default_stream)
        del source
        gc.collect()
    assert (out.numpy() == 38).all()
    program = next(iter(module.handle.programs.values()))
    assert len(program.groups) <= 1  # bind groups went with their buffers


def test_events(gpu: WebGpuDevice) -> None:
    kernel = lower(copier(F32), "wgsl")
    a, b = gpu.array(np.ones(1 << 18, np.float32)), gpu.zeros(1 << 18, F32)
    stream = gpu.stream()
    start = stream.record()
    for _ in range(20):
        launch(gpu, kernel, 1 << 12, [a, b])
    end = stream.record()
    stream.wait(start)
    end.synchronize()
    assert start.done() and end.done()
    assert 0 < end.elapsed_since(start) < 10
    assert start.elapsed_since(start) == 0


def test_too_large(gpu: WebGpuDevice) -> None:
    with pytest.raises(OutOfMemoryError, match="bytes asked for"):
        gpu.allocate(1 << 62)


def test_an_array_beyond_one_binding_is_refused(gpu: WebGpuDevice, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpu, "max_binding", 1 << 10)
    a, b = gpu.zeros(1000, F32), gpu.zeros(1000, F32)
    with pytest.raises(LaunchValueError, match=r"a spans 4000 bytes; this device binds at most 1024"):
        launch(gpu, lower(copier(F32), "wgsl"), 16, [a, b])


def test_zero_blocks_are_no_launch(gpu: WebGpuDevice) -> None:
    a, b = gpu.zeros(0, F32), gpu.zeros(0, F32)
    launch(gpu, lower(copier(F32), "wgsl"), (0, 1, 1), [a, b])
    gpu.synchronize()


def many_arrays(n: int, faults: bool) -> Kernel:
    s = Sketch()
    arrays = [s.array(f"a{k}", I32) for k in range(n)]
    b = s.b
    i = b.identity("global_idx", 0)
    for a in arrays:
        b.store(a, [i], i, check="inplace" if faults else "proved")
    return s.kernel("many")


def test_eight_arrays(gpu: WebGpuDevice) -> None:
    run(gpu, many_arrays(8, False), 1, [np.zeros(64, np.int32)] * 8)
    run(gpu, many_arrays(7, True), 1, [np.zeros(64, np.int32)] * 7)
    for n, faults, most in ((9, False, 8), (8, True, 7)):
        text = rf"many: {n} array parameters; WebGPU binds {most} at once.*\n.*kernel"
        with pytest.raises(UnsupportedError, match=text):
            gpu.load(lower(many_arrays(n, faults), "wgsl"))


def test_block_and_shared_limits(gpu: WebGpuDevice) -> None:
    with pytest.raises(UnsupportedError, match=r"512 threads; WebGPU allows 256"):
        gpu.load(lower(Sketch(block=(512, 1, 1)).kernel(), "wgsl"))
    s = Sketch()
    out = s.array("out", F32)
    b = s.at(4)
    tile = s.block_array("tile", F32, (5000,))
    k = b.identity("thread_idx", 0)
    b.store(out, [k], b.load(tile, [k], check="proved"), check="proved")
    with pytest.raises(UnsupportedError, match=r"20000 bytes of shared memory a block; WebGPU has 16384\n.*py:4"):
        gpu.load(lower(s.kernel(), "wgsl"))


def broken_shader() -> tuple[Shader, str]:
    """A kernel whose WGSL is spoilt at the store, line 12 of its source."""
    s = Sketch()
    out = s.array("out", F32)
    b = s.at(12)
    b.store(out, [b.identity("global_idx", 0)], b.const(1.0, F32), check="proved")
    shader = emit(lower(s.kernel("broken"), "wgsl"))
    return shader, shader.text.replace("= 1.0f;", "= nonsense;")


def test_messages_of_the_front_ends_name_the_authors_line(gpu: WebGpuDevice) -> None:
    shader, text = broken_shader()
    bad = Shader(**{**shader.__dict__, "text": text})
    with pytest.raises(DeviceError, match=r"broken: the WGSL compiler refused.*nonsense.*\n.*kernel.py:12"):
        compile_shader(gpu.handle, bad, "auto")
    number = next(n for n, line in enumerate(text.splitlines(), 1) if "nonsense" in line)
    assert "kernel.py:12" in message(bad, f":{number}:5 error: unresolved value 'nonsense'")  # as Tint says it


def test_a_failed_kernel_does_not_affect_the_next(gpu: WebGpuDevice) -> None:
    shader, text = broken_shader()
    with pytest.raises(DeviceError):
        compile_shader(gpu.handle, Shader(**{**shader.__dict__, "text": text}), "auto")
    got = run(gpu, copier(F32), 1, [np.ones(10, np.float32), np.zeros(10, np.float32)])
    assert (got[1] == 2).all()


def test_without_the_function_for_unchecked_modules(gpu: WebGpuDevice, monkeypatch: pytest.MonkeyPatch) -> None:
    """wgpu-py may lose the internals that skipping naga's checks takes: then modules are made the ordinary way."""
    from wgpu.backends.wgpu_native import _api

    class Without:
        def __getattr__(self, name: str) -> object:
            if "Trusted" in name:
                raise AttributeError(name)
            return getattr(whole, name)

    whole = _api.libf
    monkeypatch.setattr(_api, "libf", Without())
    got = run(gpu, copier(F32), 1, [np.ones(10, np.float32), np.zeros(10, np.float32)])
    assert (got[1] == 2).all()
