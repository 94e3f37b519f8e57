"""Atomics, subgroups, faults and print through WebGPU."""

from __future__ import annotations

import numpy as np
import pytest
from wgsl_kernels import Sketch, agree, launch, run

from gridwise.devices.webgpu import WebGpuDevice
from gridwise.ir import Kernel
from gridwise.ir.types import F32, F64, I32, I64, U32, U64, Scalar
from gridwise.lang.errors import DeviceAssertionError, DeviceIndexError, DeviceZeroDivisionError, UnsupportedError
from gridwise.lang.target import Cap
from gridwise.passes.pipeline import lower
from gridwise.targets.wgsl import capabilities, emit
from gridwise.targets.wgsl.dialect import TINT

RNG = np.random.default_rng(11)


def accumulate(fn: str, t: Scalar, shared: bool, returns: bool = False) -> Kernel:
    """Every element of ``a`` goes into one of 8 cells by an atomic; through shared memory if ``shared``."""
    s = Sketch()
    a, cells = s.array("a", t, "read"), s.array("cells", t, "atomic")
    old = s.array("old", t) if returns else None
    b = s.b
    block = s.block_array("part", t, (8,)) if shared else cells
    i = b.identity("global_idx", 0)
    with b.into(b.if_(b.binary("lt", i, b.dim(a, 0))).regions[0]):
        at = b.binary("and", i, b.const(7, I32))
        scope = "block" if shared else "device"
        before = b.atomic(fn, block, [at], [b.load(a, [i], check="proved")], scope=scope, check="proved")
        if old is not None:
            b.store(old, [i], before, check="proved")
    if shared:
        b.emit("barrier")
        k = b.identity("thread_idx", 0)
        with b.into(b.if_(b.binary("lt", k, b.const(8, I32))).regions[0]):
            b.atomic(fn, cells, [k], [b.load(block, [k], check="proved")], check="proved")
    return s.kernel("accumulate")


ATOMICS = [(fn, t) for t in (I32, U32) for fn in "add sub min max and or xor".split()]
ATOMICS += [(fn, t) for t in (F32, F64) for fn in "add sub min max".split()]
ATOMICS += [(fn, t) for t in (I64, U64) for fn in "add sub min max and or xor".split()]


def has_wide_atomics(gpu: WebGpuDevice, t: Scalar) -> None:
    if t.size == 8 and not {Cap.ATOMIC_I64, Cap.F64} <= gpu.caps:
        pytest.skip("32-bit atomics only on this driver; the refusal is tested elsewhere")


@pytest.mark.parametrize("shared", [False, True], ids=["global", "shared"])
@pytest.mark.parametrize("fn,t", ATOMICS, ids=str)
def test_atomics_without_order(gpu: WebGpuDevice, fn: str, t: Scalar, shared: bool) -> None:
    has_wide_atomics(gpu, t)
    a = RNG.integers(0, 256, 1000 * t.size, np.uint8).view(t.dtype)
    if t.is_float:
        a = RNG.integers(-100, 100, 1000).astype(t.dtype)  # sums of these are exact in any order
    cells = np.zeros(8, t.dtype)
    if t.is_float and fn in ("min", "max"):
        a[5], cells[3] = np.nan, -0.0  # a NaN is ignored
    agree(gpu, accumulate(fn, t, shared), 16, [a, cells])


@pytest.mark.parametrize("t", [I32, U32, F32, I64, U64, F64], ids=str)
def test_atomics_return_what_was_there(gpu: WebGpuDevice, t: Scalar) -> None:
    has_wide_atomics(gpu, t)
    a = np.ones(800, t.dtype)
    got = run(gpu, accumulate("add", t, False, True), 13, [a, np.zeros(8, t.dtype), np.zeros(800, t.dtype)])
    np.testing.assert_array_equal(got[1], np.full(8, 100, t.dtype))
    for cell in range(8):
        assert sorted(got[2][cell::8].tolist()) == list(range(100))


def test_exchange_and_compare_exchange(gpu: WebGpuDevice) -> None:
    for t in (I32, U32, F32, *([I64, U64] if Cap.ATOMIC_I64 in gpu.caps else [])):
        s = Sketch()
        cells, old = s.array("cells", t, "atomic"), s.array("old", t)
        b = s.b
        i = b.identity("global_idx", 0)
        with b.into(b.if_(b.binary("lt", i, b.dim(old, 0))).regions[0]):
            zero = b.const(0, I32)
            mine = b.cast(b.binary("add", i, b.const(1, I32)), t)
            won = b.atomic("compare_exchange", cells, [zero], [b.const(0, t), mine], check="proved")
            b.store(old, [i], won, check="proved")
            b.atomic("exchange", cells, [b.const(1, I32)], [mine], check="proved")
        cells, old = run(gpu, s.kernel(), 2, [np.zeros(2, t.dtype), np.full(100, 77, t.dtype)])
        winner = int(np.flatnonzero(old == 0)[0])
        assert (old == 0).sum() == 1 and cells[0] == winner + 1 and 1 <= cells[1] <= 100
        assert (old[np.arange(100) != winner] == winner + 1).all()


@pytest.mark.parametrize("t", [I64, U64], ids=str)
def test_64_bit_atomics_are_refused_at_their_line(gpu: WebGpuDevice, t: Scalar) -> None:
    s = Sketch()
    cells = s.array("cells", t, "atomic")
    b = s.at(17)
    b.atomic("add", cells, [b.const(0, I32)], [b.const(1, t)], check="proved")
    kernel = lower(s.kernel(), "wgsl")
    for refuse in (lambda: capabilities.check(kernel, gpu.caps - {Cap.ATOMIC_I64}), lambda: emit(kernel, TINT)):
        with pytest.raises(UnsupportedError, match=r"atomic.add on [iu]64.*\n.*kernel.py:17"):
            refuse()


def test_64_bit_atomics_in_a_shared_buffer_are_refused(gpu: WebGpuDevice) -> None:
    if Cap.ATOMIC_I64 not in gpu.caps:
        pytest.skip("32-bit atomics only on this driver")
    whole = gpu.zeros(20, I64)
    with pytest.raises(UnsupportedError, match="shares its memory with another argument"):
        launch(gpu, lower(accumulate("add", I64, False), "wgsl"), 1, [whole[:10], whole[10:]])


def test_ordered_atomics_are_refused(gpu: WebGpuDevice) -> None:
    s = Sketch()
    cells = s.array("cells", I32, "atomic")
    s.b.atomic("add", cells, [s.b.const(0, I32)], [s.b.const(1, I32)], order="acquire", check="proved")
    with pytest.raises(UnsupportedError, match="relaxed atomics only"):
        gpu.load(lower(s.kernel(), "wgsl"))


# -- faults ------------------------------------------------------------------------------------------------


def faulty() -> Kernel:
    """out[a[i]] = 100 // a[i], and an assertion that a[i] is not 13."""
    s = Sketch()
    a, out = s.array("a", I32, "read"), s.array("out", I32)
    b = s.b
    i = b.identity("global_idx", 0)
    with b.into(b.if_(b.binary("lt", i, b.dim(a, 0))).regions[0]):
        x = b.load(a, [i], check="proved")
        s.at(5)
        q = b.binary("floordiv", b.const(100, I32), x)
        s.at(6)
        b.store(out, [x], q)
        s.at(7)
        b.emit("assert", (b.binary("ne", x, b.const(13, I32)),), message="thirteen")
    return s.kernel("faulty")


@pytest.mark.parametrize(
    "bad,kind,line,message",
    [
        ({70: 1000}, DeviceIndexError, 6, r"index 1000 is out of range for out of length 20 \(thread 70\)"),
        ({70: -1, 99: -2}, DeviceIndexError, 6, r"index -1 is out of range for out of length 20 \(thread 70\)"),
        ({3: 0}, DeviceZeroDivisionError, 5, r"division or modulo by zero \(thread 3\)"),
        ({99: 13}, DeviceAssertionError, 7, r"assertion failed: thirteen \(thread 99\)"),
        ({99: 13, 98: 0, 97: 50}, DeviceIndexError, 6, r"index 50 .*\(thread 97\)"),
    ],
)
def test_faults(gpu: WebGpuDevice, bad: dict[int, int], kind: type[Exception], line: int, message: str) -> None:
    a = np.arange(100, dtype=np.int32) % 10 + 1
    for n, x in bad.items():
        a[n] = x
    given = gpu.array(a), gpu.zeros(20, I32)
    kernel = lower(faulty(), "wgsl")
    launch(gpu, kernel, 2, given)
    with pytest.raises(kind, match=message) as e:
        gpu.synchronize()
    assert e.value.loc.line == line  # type: ignore[attr-defined]
    gpu.synchronize()  # reported once
    launch(gpu, kernel, 2, [gpu.array(np.full(100, 5, np.int32)), given[1]])
    assert given[1].numpy()[5] == 20  # the device is usable after


def test_the_first_faulty_launch_is_reported(gpu: WebGpuDevice) -> None:
    kernel = lower(faulty(), "wgsl")
    out = gpu.zeros(20, I32)
    for x in (1, 2, 50, 60, 3):
        launch(gpu, kernel, 2, [gpu.array(np.full(100, x, np.int32)), out])
    with pytest.raises(DeviceIndexError, match=r"index 50 .*\(thread 0\)"):
        out.numpy()


def test_more_launches_than_fault_buffers(gpu: WebGpuDevice) -> None:
    kernel = lower(faulty(), "wgsl")
    good, bad, out = gpu.array(np.full(64, 3, np.int32)), gpu.array(np.full(64, 33, np.int32)), gpu.zeros(20, I32)
    module = gpu.load(kernel)
    for n in range(600):
        gpu.launch(module, (1, 1, 1), [(bad if n == 10 else good).arg, out.arg], gpu.default_stream)
    with pytest.raises(DeviceIndexError, match="index 33"):
        gpu.synchronize()


def test_two_dimensional_threads_are_named(gpu: WebGpuDevice) -> None:
    s = Sketch(block=(8, 8, 1), domain=2)
    out = s.array("out", I32)
    b = s.b
    x, y = b.identity("global_idx", 0), b.identity("global_idx", 1)
    bad = b.binary("and", b.binary("eq", x, b.const(9, I32)), b.binary("eq", y, b.const(3, I32)))
    with b.into(b.if_(bad).regions[0]):
        b.store(out, [b.const(4, I32)], x)
    launch(gpu, lower(s.kernel(), "wgsl"), (2, 1, 1), [gpu.zeros(4, I32)])
    with pytest.raises(DeviceIndexError, match=r"\(thread \(9, 3\)\)"):
        gpu.synchronize()


# -- print -------------------------------------------------------------------------------------------------


def test_print(gpu: WebGpuDevice, capsys: pytest.CaptureFixture[str]) -> None:
    s = Sketch()
    b = s.b
    i = b.identity("global_idx", 0)
    with b.into(b.if_(b.binary("lt", i, b.const(3, I32))).regions[0]):
        b.emit("print", (i, b.cast(i, F32)), parts=("thread ", (0, ""), " of ", (1, ".2f")))
        b.emit("print", (b.binary("mul", b.cast(i, I64), b.const(-(10**12), I64)),), parts=("big ", (0, "")))
    kernel = lower(s.kernel(), "wgsl")
    for _ in range(2):
        launch(gpu, kernel, 1, [])
    gpu.synchronize()
    lines = [f"thread {n} of {n:.2f}\nbig {-(10**12) * n}\n" for n in range(3)]
    assert capsys.readouterr().out == "".join(lines) * 2
    gpu.synchronize()
    assert capsys.readouterr().out == ""


# -- subgroups ---------------------------------------------------------------------------------------------


def subgroup_size(gpu: WebGpuDevice) -> int:
    s = Sketch()
    out = s.array("out", I32)
    b = s.b
    b.store(out, [b.identity("global_idx", 0)], b.value("subgroup", (), I32, fn="size"), check="proved")
    return int(run(gpu, s.kernel(), 1, [np.zeros(64, np.int32)])[0][0])


@pytest.mark.parametrize("t", [I32, U32, F32], ids=str)
def test_subgroup_reductions_and_shuffles(gpu: WebGpuDevice, t: Scalar) -> None:
    if Cap.SUBGROUP not in gpu.caps:
        pytest.skip("no subgroups on this driver; the refusal is tested elsewhere")
    size = subgroup_size(gpu)
    a = RNG.integers(1, 50, 128).astype(t.dtype)
    rows = a.reshape(-1, size)
    lanes = np.arange(size)
    want = {
        "reduce_add": np.broadcast_to(rows.sum(1, keepdims=True), rows.shape),
        "reduce_min": np.broadcast_to(rows.min(1, keepdims=True), rows.shape),
        "reduce_max": np.broadcast_to(rows.max(1, keepdims=True), rows.shape),
        "scan_add": np.cumsum(rows, 1),
        "scan_exclusive_add": np.cumsum(rows, 1) - rows,
        "shuffle": rows[:, np.where(lanes * 0 + 2 < size, 2, lanes)],
        "shuffle_xor": rows[:, lanes ^ 1],
        "shuffle_up": rows[:, np.where(lanes >= 1, lanes - 1, lanes)],
        "shuffle_down": rows[:, np.where(lanes + 1 < size, lanes + 1, lanes)],
        "broadcast": np.broadcast_to(rows[:, :1], rows.shape),
    }
    operand = {"shuffle": 2, "shuffle_xor": 1, "shuffle_up": 1, "shuffle_down": 1, "broadcast": 0}
    for fn, expected in want.items():
        s = Sketch()
        source, out = s.array("a", t, "read"), s.array("out", t)
        b = s.b
        i = b.identity("global_idx", 0)
        args = [b.load(source, [i], check="proved")]
        if fn in operand:
            args.append(b.const(operand[fn], I32))
        b.store(out, [i], b.value("subgroup", args, t, fn=fn), check="proved")
        got = run(gpu, s.kernel(), 2, [a, np.zeros(128, t.dtype)])[1]
        np.testing.assert_array_equal(got, expected.astype(t.dtype).reshape(-1), fn)


def test_lanes_out_of_order_are_refused(gpu: WebGpuDevice, monkeypatch: pytest.MonkeyPatch) -> None:
    if Cap.SUBGROUP not in gpu.caps:
        pytest.skip("no subgroups on this driver")
    s = Sketch(block=(8, 4, 2))
    out = s.array("out", I32)
    b = s.at(3)
    thread = b.identity("thread_idx", 2)
    for axis, extent in ((1, 4), (0, 8)):
        thread = b.binary("add", b.binary("mul", thread, b.const(extent, I32)), b.identity("thread_idx", axis))
    b.store(out, [thread], b.value("subgroup", (), I32, fn="lane"), check="proved")
    got = run(gpu, s.kernel(), 1, [np.zeros(64, np.int32)])[0]
    np.testing.assert_array_equal(got, np.arange(64) % subgroup_size(gpu))
    monkeypatch.setitem(gpu._linear, 64, False)
    with pytest.raises(UnsupportedError, match=r"out of order\n.*kernel.py:3"):
        gpu.load(lower(s.kernel(), "wgsl"))


def test_subgroup_reduction_of_64_bits_is_refused(gpu: WebGpuDevice) -> None:
    if Cap.SUBGROUP not in gpu.caps:
        pytest.skip("no subgroups on this driver")
    s = Sketch()
    out = s.array("out", I64)
    b = s.at(9)
    x = b.value("subgroup", [b.const(1, I64)], I64, fn="reduce_add")
    b.store(out, [b.identity("global_idx", 0)], x, check="proved")
    with pytest.raises(UnsupportedError, match=r"kernel.py:9"):
        gpu.load(lower(s.kernel(), "wgsl"))


def test_barrier_between_global_accesses(gpu: WebGpuDevice) -> None:
    s = Sketch()
    out = s.array("out", I32)
    b = s.b
    k, i = b.identity("thread_idx", 0), b.identity("global_idx", 0)
    b.store(out, [i], k, check="proved")
    b.emit("barrier")
    other = b.binary("sub", b.binary("add", i, b.const(63, I32)), b.binary("mul", k, b.const(2, I32)))
    x = b.load(out, [other], check="proved")
    b.emit("barrier")
    b.store(out, [i], x, check="proved")
    agree(gpu, s.kernel(), 4, [np.zeros(256, np.int32)])
