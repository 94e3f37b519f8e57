"""Arrays: strides, structs, spaces, bounds faults, barriers; and the identities of threads."""

from __future__ import annotations

import numpy as np
import pytest
from running import Sketch, launch

from gridwise.devices.base import ArrayArg
from gridwise.devices.check import CheckDevice
from gridwise.ir import Builder, Kernel, Value
from gridwise.ir.types import BF16, BOOL, F32, F64, I32, I64, INTEGERS, U8, ArrayType, Scalar, layout
from gridwise.lang.errors import DeviceAssertionError, DeviceIndexError, DeviceZeroDivisionError


def copy(elem: Scalar, rank: int, strided: bool = True, index: Scalar = I32) -> Kernel:
    """out[i...] = a[i...], one thread an element along x, loops over the rest."""
    s = Sketch(index=index)
    a, out = s.array("a", elem, "read", rank, strided), s.array("out", elem, "disjoint", rank, strided)
    b = s.b
    i = b.identity("global_idx", 0)
    with b.into(b.if_(b.binary("lt", i, b.dim(out, 0))).regions[0]):
        nest(b, a, out, [i], rank)
    return s.kernel()


def nest(b: Builder, a: Value, out: Value, at: list[Value], rank: int) -> None:
    if len(at) == rank:
        b.store(out, at, b.load(a, at))
        return
    loop = b.for_(b.const(0, b.index), b.dim(out, len(at)), b.const(1, b.index))
    with b.into(loop.regions[0]):
        nest(b, a, out, [*at, loop.regions[0].args[0]], rank)


@pytest.mark.parametrize("elem", [*INTEGERS, BOOL, BF16, F32, F64], ids=str)
def test_copy_of_every_type(elem: Scalar) -> None:
    device = CheckDevice()
    host = np.arange(100).astype(elem.dtype)
    out = device.empty(100, elem)
    launch(device, copy(elem, 1), 2, [device.array(host, elem), out])
    assert (out.numpy() == host).all()


@pytest.mark.parametrize("index", [I32, I64], ids=str)
def test_strided_views(index: Scalar) -> None:
    device = CheckDevice()
    host = np.arange(6 * 8 * 10, dtype=np.float32).reshape(6, 8, 10)
    whole = device.array(host)
    for key in (np.s_[::2, 1::3, ::-1], np.s_[::-1, ::-2, 2:9:3], np.s_[1:2, :, :]):
        view = whole[key]
        out = device.zeros(view.shape, F32)
        launch(device, copy(F32, 3, index=index), 1, [view, out])
        assert (out.numpy() == host[key]).all()
    target = device.zeros((6, 8, 10), F32)
    launch(device, copy(F32, 3, index=index), 1, [whole.transpose(), target.transpose()])
    assert (target.numpy() == host).all()


def test_stride_zero_repeats_an_element() -> None:
    device = CheckDevice()
    a = device.array(np.array([7.0, 8.0], np.float32))
    out = device.zeros(5, F32)
    launch(device, copy(F32, 1), 1, [ArrayArg(a.buffer, 4, (5,), (0,)), out])
    assert out.numpy().tolist() == [8.0] * 5


def test_struct_members() -> None:
    inner = layout("Inner", [("flag", U8, 0), ("weights", F32, 3)])
    outer = layout("Outer", [("id", U8, 0), ("parts", inner, 2), ("total", F64, 0)])
    s = Sketch()
    a = s.array("a", outer)
    b = s.b
    i = b.identity("thread_idx", 0)
    fields = {f.name: f for f in outer.fields}
    inside = {f.name: f for f in inner.fields}
    path = (fields["parts"], inside["weights"])
    with b.into(b.if_(b.binary("lt", i, b.dim(a, 0))).regions[0]):
        weight = b.load(a, [i, b.const(1, I32), b.const(2, I32)], path)
        b.store(a, [i], b.cast(weight, F64), (fields["total"],))
        b.store(a, [i, b.const(0, I32)], b.cast(i, U8), (fields["parts"], inside["flag"]))
    host = np.zeros(4, outer.dtype)
    host["parts"]["weights"] = np.arange(4 * 2 * 3).reshape(4, 2, 3)
    host["id"] = 9
    device = CheckDevice()
    target = device.array(host)
    launch(device, s.kernel(), 1, [target])
    got = target.numpy()
    assert got["total"].tolist() == host["parts"]["weights"][:, 1, 2].tolist() == [5.0, 11.0, 17.0, 23.0]
    assert got["parts"]["flag"][:, 0].tolist() == [0, 1, 2, 3]
    assert (got["parts"]["weights"] == host["parts"]["weights"]).all() and (got["id"] == 9).all()


# -- faults ----------------------------------------------------------------------------------------------------


def gather(block: tuple[int, int, int] = (8, 1, 1)) -> Kernel:
    """out[t] = a[index[t]] + 1"""
    s = Sketch(block)
    a, index, out = s.array("a", I32, "read"), s.array("index", I32, "read"), s.array("out", I32)
    b = s.at(7)
    i = b.identity("global_idx", 0)
    at = b.load(index, [i])
    b = s.at(9)
    b.store(out, [i], b.binary("add", b.load(a, [at]), b.const(1, I32)))
    return s.kernel("gather")


@pytest.mark.parametrize("seed", range(4))
def test_index_fault(seed: int) -> None:
    """The read gives 0, every thread goes on, and the smallest thread's fault is the one raised."""
    device = CheckDevice(seed=seed)
    index = np.arange(32, dtype=np.int32)
    index[[11, 21, 30]] = -1, 99, -(2**31)
    out = device.zeros(32, I32)
    launch(device, gather(), 4, [device.array(np.arange(100, 132, dtype=np.int32)), device.array(index), out])
    message = r"gather: index -1 is out of range for a of length 32 \(thread 11\)"
    with pytest.raises(DeviceIndexError, match=message) as e:
        device.synchronize()
    assert e.value.thread == (11, 0, 0) and e.value.loc is not None and e.value.loc.line == 9
    want = [101 + i for i in range(32)]
    want[11] = want[21] = want[30] = 1
    assert out.numpy().tolist() == want  # the fault was raised once; the device goes on


def test_the_first_fault_of_a_thread_in_program_order() -> None:
    s = Sketch((4, 1, 1))
    a = s.array("a", I32, rank=2)
    b = s.b
    t = b.identity("thread_idx", 0)
    three = b.const(3, I32)
    with b.into(b.if_(b.binary("eq", t, b.const(2, I32))).regions[0]):
        b.load(a, [t, three])  # thread 2: axis 1
    b.emit("assert", (b.binary("lt", t, b.const(1, I32)),), message="t is small")
    device = CheckDevice()
    target = device.zeros((3, 3), I32)
    launch(device, s.kernel(), 1, [target])
    with pytest.raises(DeviceAssertionError, match=r"assertion failed: t is small \(thread 1\)"):
        target.numpy()
    s.body.ops.pop()
    launch(device, s.kernel(), 1, [target])
    with pytest.raises(DeviceIndexError, match="index 3 is out of range for a on axis 1 of length 3"):
        target.numpy()


def test_store_out_of_range_does_not_happen() -> None:
    device = CheckDevice()
    whole = device.zeros(12, I32)
    s = Sketch((8, 1, 1))
    out = s.array("out", I32)
    i = s.b.identity("thread_idx", 0)
    s.b.store(out, [s.b.binary("sub", i, s.b.const(2, I32))], s.b.const(5, I32))
    launch(device, s.kernel(), 1, [whole[4:8]])
    with pytest.raises(DeviceIndexError, match=r"index -2 .* length 4 \(thread 0\)"):
        device.synchronize()
    assert whole.numpy().tolist() == [0] * 4 + [5] * 4 + [0] * 4


@pytest.mark.parametrize("code", ["floordiv", "mod"])
def test_division_by_zero_faults_and_gives_zero(code: str) -> None:
    s = Sketch((8, 1, 1))
    out = s.array("out", I32)
    b = s.b
    t = b.identity("thread_idx", 0)
    less = b.binary("sub", t, b.const(4, I32))
    b.store(out, [t], b.binary(code, b.const(100, I32), less))
    device = CheckDevice()
    target = device.zeros(8, I32)
    launch(device, s.kernel(), 1, [target])
    with pytest.raises(DeviceZeroDivisionError, match=r"integer division or modulo by zero \(thread 4\)"):
        device.synchronize()
    python = {"floordiv": lambda a, b: a // b, "mod": lambda a, b: a % b}[code]
    assert target.numpy().tolist() == [python(100, d) if d else 0 for d in range(-4, 4)]


def test_index_of_a_struct_member_is_checked_against_its_count() -> None:
    t = layout("T", [("w", F32, 3), ("x", F32, 0)])
    s = Sketch((4, 1, 1))
    a = s.array("a", t)
    b = s.b
    i = b.identity("thread_idx", 0)
    b.store(a, [b.const(0, I32), i], b.const(1.0, F32), (t.fields[0],))
    device = CheckDevice(sanitize=False)
    target = device.zeros(1, t)
    launch(device, s.kernel(), 1, [target])
    with pytest.raises(DeviceIndexError, match=r"index 3 is out of range for a\.w of length 3 \(thread 3\)"):
        device.synchronize()
    assert target.numpy()["w"].tolist() == [[1.0, 1.0, 1.0]] and target.numpy()["x"].tolist() == [0.0]


def test_a_fault_belongs_to_its_stream() -> None:
    device = CheckDevice()
    other = device.stream()
    out, bad = device.zeros(8, I32), device.array(np.full(8, 99, np.int32))
    module = device.load(gather())
    a = device.array(np.arange(4, dtype=np.int32))
    device.launch(module, (1, 1, 1), [a.arg, bad.arg, out.arg], other)
    device.default_stream.synchronize()
    with pytest.raises(DeviceIndexError):
        other.synchronize()
    other.synchronize()


# -- identities, shared and local memory -------------------------------------------------------------------------


def test_identities() -> None:
    block, grid = (4, 3, 2), (2, 3, 2)
    codes = [(c, axis) for c in ("thread_idx", "block_idx", "block_dim", "grid_dim", "global_idx") for axis in range(3)]
    s = Sketch(block, domain=3)
    out = s.array("out", I32, rank=2)
    b = s.b
    x, y, z = (b.identity("global_idx", axis) for axis in range(3))
    width, height = b.const(8, I32), b.const(9, I32)
    linear = b.binary("add", x, b.binary("mul", width, b.binary("add", y, b.binary("mul", height, z))))
    for n, (code, axis) in enumerate(codes):
        b.store(out, [linear, b.const(n, I32)], b.identity(code, axis))
    device = CheckDevice()
    target = device.zeros((8 * 9 * 4, len(codes)), I32)
    launch(device, s.kernel(), grid, [target])
    got = target.numpy()
    for gz in range(4):
        for gy in range(9):
            for gx in range(8):
                at = (gx, gy, gz)
                local = [at[n] % block[n] for n in range(3)]
                where = [at[n] // block[n] for n in range(3)]
                assert got[gx + 8 * (gy + 9 * gz)].tolist() == [*local, *where, *block, *grid, *at]


def test_shared_memory_is_a_blocks_own_and_starts_at_zero() -> None:
    """Each block reverses its part through shared memory, after adding to what it found there."""
    s = Sketch((64, 1, 1))
    out = s.array("out", I32)
    b = s.b
    tile = b.array("tile", ArrayType(I32, 1, "shared", "disjoint", shape=(64,)))
    t, g = b.identity("thread_idx", 0), b.identity("global_idx", 0)
    b.store(tile, [t], b.binary("add", b.load(tile, [t]), g))
    b.emit("barrier")
    b.store(out, [g], b.load(tile, [b.binary("sub", b.const(63, I32), t)]))
    device = CheckDevice()
    target = device.zeros(64 * 50, I32)
    kernel = s.kernel()
    for _ in range(2):
        launch(device, kernel, 50, [target])
    assert (target.numpy().reshape(50, 64) == np.arange(64 * 50).reshape(50, 64)[:, ::-1]).all()


def test_the_launch_gives_the_first_extent_of_a_shared_array() -> None:
    s = Sketch((4, 1, 1))
    out = s.array("out", I32)
    b = s.b
    tile = b.array("tile", ArrayType(F32, 2, "shared", "disjoint", shape=(0, 3)))
    b.store(out, [b.identity("thread_idx", 0)], b.dim(tile, 0))
    device = CheckDevice()
    target = device.zeros(4, I32)
    launch(device, s.kernel(), 1, [target], shared_bytes=120)
    assert target.numpy().tolist() == [10] * 4


def test_local_memory_is_a_threads_own() -> None:
    s = Sketch((32, 1, 1))
    out = s.array("out", I32)
    b = s.b
    mine = b.array("mine", ArrayType(I32, 1, "local", "disjoint", shape=(4,)))
    g = b.identity("global_idx", 0)
    slot = b.binary("and", g, b.const(3, I32))
    b.store(mine, [slot], g)
    loop = b.for_(b.const(0, I32), b.const(4, I32), b.const(1, I32))
    total = b.var("total", I32)
    b.region.ops.remove(loop)
    b.set(total, b.const(0, I32))
    b.region.ops.append(loop)
    with b.into(loop.regions[0]):
        b.set(total, b.binary("add", b.get(total), b.load(mine, [loop.regions[0].args[0]])))
    b.store(out, [g], b.get(total))
    device = CheckDevice()
    target = device.zeros(96, I32)
    launch(device, s.kernel(), 3, [target])
    assert target.numpy().tolist() == list(range(96))


def test_empty_grid_and_empty_array() -> None:
    device = CheckDevice()
    out = device.zeros(0, I32)
    launch(device, copy(I32, 1), 0, [device.zeros(0, I32), out])
    launch(device, copy(I32, 1), 1, [device.zeros(0, I32), out])
    assert out.numpy().tolist() == []


def test_print(capsys: pytest.CaptureFixture[str]) -> None:
    s = Sketch((4, 1, 1))
    b = s.b
    t = b.identity("global_idx", 0)
    half = b.binary("div", b.cast(t, F32), b.const(2.0, F32))
    with b.into(b.if_(b.binary("gt", t, b.const(4, I32))).regions[0]):
        b.emit("print", (t, half), parts=("thread ", (0, ""), " has ", (1, ".2f")))
        b.emit("print", (half,), parts=((0, ""),))
    device = CheckDevice()
    launch(device, s.kernel(), 2, [])
    assert capsys.readouterr().out == "".join(f"thread {t} has {t / 2:.2f}\n{t / 2}\n" for t in (5, 6, 7))


def test_lowered_kernels_run_too() -> None:
    """What lower_checks makes of a kernel means the same: values, and the fault."""
    from gridwise.ir.rewrite import clone
    from gridwise.passes.lower_checks import lower_checks

    kernel = gather()
    lowered = clone(kernel)
    lower_checks(lowered, trust_launch=False)
    index = np.array([0, 5, -1, 3, 2, 77, 1, 0], np.int32)
    messages, results = [], []
    for k in (kernel, lowered):
        device = CheckDevice()
        out = device.zeros(8, I32)
        launch(device, k, 1, [device.array(np.arange(6, dtype=np.int32)), device.array(index), out])
        with pytest.raises(DeviceIndexError) as e:
            device.synchronize()
        messages.append(str(e.value))
        results.append(out.numpy().tolist())
    assert messages[0] == messages[1] and results[0] == results[1]


def test_math_comes_from_the_references() -> None:
    from gridwise.lang.math import BY_FN

    s = Sketch((8, 1, 1))
    a, out = s.array("a", F32, "read"), s.array("out", F32)
    b = s.b
    i = b.identity("thread_idx", 0)
    b.store(out, [i], b.math("exp", [b.load(a, [i])]))
    device = CheckDevice()
    host = np.linspace(-3, 3, 8, dtype=np.float32)
    target = device.zeros(8, F32)
    launch(device, s.kernel(), 1, [device.array(host), target])
    assert (target.numpy() == BY_FN["exp"].reference(host)).all()
    assert np.allclose(target.numpy(), np.exp(host.astype(np.float64)), rtol=1e-7)


