"""Arrays in WGSL: every element type, structs, strides, views, arrays of one buffer, shared and local memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from wgsl_kernels import Sketch, agree, launch, run

from gridwise.devices.check import CheckDevice
from gridwise.devices.webgpu import WebGpuDevice
from gridwise.ir import Kernel, Value
from gridwise.ir.types import (
    BF16,
    BOOL,
    F16,
    F32,
    F64,
    I8,
    I16,
    I32,
    I64,
    INTEGERS,
    U8,
    U16,
    U32,
    U64,
    Scalar,
    Struct,
    layout,
)
from gridwise.lang.target import Cap
from gridwise.passes.pipeline import lower
from gridwise.passes.vectorise import vectorise

RNG = np.random.default_rng(3)
EVERY = [BOOL, *INTEGERS, F16, BF16, F32, F64]


def values(t: Scalar, shape: int | Sequence[int]) -> np.ndarray:
    n = int(np.prod(shape))
    if t == BOOL:
        return RNG.integers(0, 2, n).astype(bool).reshape(shape)
    if t.is_float:
        return RNG.standard_normal(n).astype(np.float32).astype(t.dtype).reshape(shape)
    return RNG.integers(0, 256, n * t.size, dtype=np.uint8).view(t.dtype).reshape(shape)


def copier(t: Scalar, index: Scalar = I32, check: str = "proved") -> Kernel:
    """out[i] = a[i] + a[i] (bools: not a[i])"""
    s = Sketch(index=index)
    a, out = s.array("a", t, "read"), s.array("out", t)
    b = s.b
    i = b.identity("global_idx", 0)
    with b.into(b.if_(b.binary("lt", i, b.dim(out, 0))).regions[0]):
        x = b.load(a, [i], check=check)
        b.store(out, [i], b.unary("not", x) if t == BOOL else b.binary("add", x, x), check=check)
    return s.kernel("copier")


@pytest.mark.parametrize("vector", [True, False], ids=["grouped", "plain"])
@pytest.mark.parametrize("t", EVERY, ids=str)
def test_every_element_type_at_every_length(gpu: WebGpuDevice, t: Scalar, vector: bool) -> None:
    if t == F64 and Cap.F64 not in gpu.caps:
        pytest.skip("no 64-bit floats on this driver")
    kernel = copier(t)
    assert (lower(kernel, "wgsl", vector=vector).coarsen > 1) == vector
    for n in (1, 2, 3, 5, 15, 16, 17, 64, 100, 1023):
        agree(gpu, kernel, -(-n // 64), [values(t, n), np.zeros(n, t.dtype)], vector=vector)


def test_64_bit_indices(gpu: WebGpuDevice) -> None:
    for vector in (True, False):
        for n in (1, 64, 129):
            agree(gpu, copier(F32, I64), -(-n // 64), [values(F32, n), np.zeros(n, np.float32)], vector=vector)


def test_mixed_sizes_group_by_the_largest(gpu: WebGpuDevice) -> None:
    s = Sketch()
    a, h, out = s.array("a", F32, "read"), s.array("h", U8, "read"), s.array("out", U16)
    b = s.b
    i = b.identity("global_idx", 0)
    with b.into(b.if_(b.binary("lt", i, b.dim(out, 0))).regions[0]):
        x = b.binary("add", b.cast(b.load(a, [i], check="proved"), I32), b.cast(b.load(h, [i], check="proved"), I32))
        b.store(out, [i], b.cast(x, U16), check="proved")
    assert lower(s.kernel(), "wgsl").coarsen == 4
    for n in (3, 4, 66, 257):
        agree(gpu, s.kernel(), -(-n // 64), [values(F32, n), values(U8, n), np.zeros(n, np.uint16)])


def test_a_grid_smaller_than_the_array_leaves_the_rest(gpu: WebGpuDevice) -> None:
    """Four blocks of the plain kernel and one of the grouped one do the same."""
    a, out = values(F32, 1000), np.zeros(1000, np.float32)
    kernel = lower(copier(F32), "wgsl")
    assert kernel.coarsen == 4
    slots = [0, 1000, 0, 1000]
    assert kernel.covers(4, slots) and kernel.covers(16, slots) and not kernel.covers(5, slots)
    got = agree(gpu, copier(F32), 4, [a, out])
    assert got[1][:256].any() and not got[1][256:].any()


def test_vectorised_ir_runs_on_the_check_device() -> None:
    for t in (U8, F16, F32, I64):
        plain, grouped = copier(t), lower(copier(t), "wgsl")
        assert grouped.coarsen == 16 // t.size
        for n in (1, 7, 16, 33, 200):
            args = [values(t, n), np.zeros(n, t.dtype)]
            want = run(CheckDevice(sanitize=False), plain, -(-n // 64), args)
            device = CheckDevice(sanitize=False)
            given = [device.array(a) for a in args]
            launch(device, grouped, -(-n // 64), given)
            np.testing.assert_array_equal(given[1].numpy(), want[1])


def refused(edit: Any, **kinds: Any) -> int:
    """``coarsen`` of a copying kernel with something extra in its body."""
    s = Sketch(**kinds)
    a, out = s.array("a", F32, "read"), s.array("out", F32)
    b = s.b
    i = b.identity("global_idx", 0)
    with b.into(b.if_(b.binary("lt", i, b.dim(out, 0))).regions[0]):
        x = b.load(a, [i], check="proved")
        edit(b, i, a, out, x)
        b.store(out, [i], x, check="proved")
    kernel = s.kernel()
    vectorise(kernel, True)
    return kernel.coarsen


def test_what_is_not_vectorised(gpu: WebGpuDevice) -> None:
    one = lambda b: b.const(1, I32)  # noqa: E731
    assert refused(lambda b, i, a, out, x: None) == 4
    assert refused(lambda b, i, a, out, x: b.load(a, [i], check="inplace")) == 1
    assert refused(lambda b, i, a, out, x: b.store(out, [b.binary("add", i, one(b))], x, check="proved")) == 1
    assert refused(lambda b, i, a, out, x: b.for_(one(b), i, one(b))) == 1
    assert refused(lambda b, i, a, out, x: b.emit("barrier")) == 1
    assert refused(lambda b, i, a, out, x: b.identity("grid_dim", 0)) == 1
    assert refused(lambda b, i, a, out, x: b.emit("assert", (b.binary("lt", i, one(b)),), message="")) == 1
    assert refused(lambda b, i, a, out, x: None, block=(16, 4, 1)) == 1
    # A mutable array read at another place too: the order of a thread's accesses would matter.
    assert refused(lambda b, i, a, out, x: b.load(out, [one(b)], check="proved")) == 1
    # A read-only one may be read anywhere.
    assert refused(lambda b, i, a, out, x: b.store(out, [i], b.load(a, [one(b)], check="proved"), check="proved")) == 4


def transposer(strided: bool) -> Kernel:
    s = Sketch(block=(8, 8, 1), domain=2)
    a, out = s.array("a", F32, "read", 2, strided), s.array("out", F32, "disjoint", 2, strided)
    b = s.b
    row, col = b.identity("global_idx", 1), b.identity("global_idx", 0)
    inside = b.binary("and", b.binary("lt", row, b.dim(out, 0)), b.binary("lt", col, b.dim(out, 1)))
    with b.into(b.if_(inside).regions[0]):
        b.store(out, [row, col], b.load(a, [col, row], check="proved"), check="proved")
    return s.kernel("transposer")


def test_two_dimensions(gpu: WebGpuDevice) -> None:
    for rows, cols in ((1, 1), (5, 17), (32, 33)):
        a, out = values(F32, (cols, rows)), np.zeros((rows, cols), np.float32)
        agree(gpu, transposer(False), (-(-cols // 8), -(-rows // 8), 1), [a, out])


@pytest.mark.parametrize("view", ["[::2, ::2]", "[::-1, ::-1]", "[3:-2, 1:-4]", "[::-3, 1::3]", ".T"])
def test_strided_views(gpu: WebGpuDevice, view: str) -> None:
    """A square view of one array is transposed into the same view of another."""
    base, want = values(F32, (24, 24)), np.zeros((24, 24), np.float32)
    source, place = (eval(f"x{view}", {"x": x}) for x in (base, want))
    place[...] = source.T
    da, dt = gpu.array(base), gpu.zeros((24, 24), F32)
    launch(gpu, lower(transposer(True), "wgsl"), (3, 3, 1), [eval(f"x{view}", {"x": x}) for x in (da, dt)])
    np.testing.assert_array_equal(dt.numpy(), want)


def test_views_that_start_anywhere(gpu: WebGpuDevice) -> None:
    for t in (U8, F16, F32, I64):
        a, out = gpu.array(values(t, 500)), gpu.zeros(500, t)
        host = a.numpy()
        for first, n in ((1, 7), (3, 100), (16, 5), (64, 64), (129, 300), (80, 99)):
            aligned = first * t.size % 16 == 0
            kernel = lower(copier(t), "wgsl", vector=aligned)
            assert (kernel.coarsen > 1) == aligned
            launch(gpu, kernel, -(-n // 64), [a[first : first + n], out[first : first + n]])
            with np.errstate(over="ignore"):
                np.testing.assert_array_equal(out.numpy()[first : first + n], (host + host)[first : first + n])


@pytest.mark.parametrize("t", [U8, F16, F32, I64], ids=str)
def test_arrays_of_one_buffer(gpu: WebGpuDevice, t: Scalar) -> None:
    """WebGPU allows a buffer that is written only one use a launch: the two views share a binding."""
    base = values(t, 200)
    for lo, hi in ((0, 100), (3, 53), (100, 101)):
        whole = gpu.array(base)
        kernel = lower(copier(t), "wgsl", vector=False)
        launch(gpu, kernel, 2, [whole[lo:hi], whole[hi : 2 * hi - lo]])
        want = base.copy()
        with np.errstate(over="ignore"):
            want[hi : 2 * hi - lo] = want[lo:hi] + want[lo:hi]
        np.testing.assert_array_equal(whole.numpy(), want)


def test_neighbouring_bytes_are_spared(gpu: WebGpuDevice) -> None:
    """Every third byte is written by its own thread; those between keep their values."""
    s = Sketch()
    out = s.array("out", U8)
    b = s.b
    i = b.identity("global_idx", 0)
    three = b.const(3, I32)
    with b.into(b.if_(b.binary("lt", b.binary("mul", i, three), b.dim(out, 0))).regions[0]):
        b.store(out, [b.binary("mul", i, three)], b.cast(i, U8), check="proved")
    agree(gpu, s.kernel(), 16, [np.full(3000, 0xAB, np.uint8)])


INNER = layout("Inner", [("x", F32, 0), ("flag", BOOL, 0), ("h", F16, 0)])
OUTER = layout("Outer", [("id", U8, 0), ("inner", INNER, 0), ("big", I64, 0), ("many", I16, 3), ("end", U16, 0)])


def member(s: Struct, *path: str) -> tuple[Any, ...]:
    fields, t = [], s
    for name in path:
        f = next(f for f in t.fields if f.name == name)
        fields.append(f)
        t = f.type  # type: ignore[assignment]
    return tuple(fields)


@pytest.mark.parametrize("space", ["global", "shared", "local"])
def test_struct_members(gpu: WebGpuDevice, space: str) -> None:
    """Each member goes from one array of structs to another, through a struct in shared or local memory."""
    s = Sketch(block=(32, 1, 1))
    a, out = s.array("a", OUTER, "read"), s.array("out", OUTER)
    b = s.b
    length = 32 if space == "shared" else 2
    between = s.block_array("between", OUTER, (length,), space) if space != "global" else None
    i, t = b.identity("global_idx", 0), b.identity("thread_idx", 0)
    at = t if space == "shared" else b.const(1, I32)
    paths = [("id",), ("inner", "x"), ("inner", "flag"), ("inner", "h"), ("big",), ("end",)]
    with b.into(b.if_(b.binary("lt", i, b.dim(out, 0))).regions[0]):
        for path in paths:
            f = member(OUTER, *path)
            x = b.load(a, [i], f, "proved")
            if between is not None:
                b.store(between, [at], x, f, "proved")
                x = b.load(between, [at], f, "proved")
            b.store(out, [i], x, f, "proved")
        f = member(OUTER, "many")
        loop = b.for_(b.const(0, I32), b.const(3, I32), b.const(1, I32))
        with b.into(loop.regions[0]):
            k = loop.regions[0].args[0]
            x = b.load(a, [i, k], f, "proved")
            if between is not None:
                b.store(between, [at, k], x, f, "proved")
                x = b.load(between, [at, k], f, "proved")
            b.store(out, [i, b.binary("sub", b.const(2, I32), k)], x, f, "proved")
    records = np.zeros(100, OUTER.dtype)
    for name in ("id", "big", "many", "end"):
        records[name] = RNG.integers(0, 100, records[name].shape)
    records["big"] *= -(10**12)
    records["inner"]["x"], records["inner"]["h"] = RNG.standard_normal((2, 100))
    records["inner"]["flag"] = RNG.integers(0, 2, 100)
    got = agree(gpu, s.kernel(), 4, [records, np.zeros(100, OUTER.dtype)])[1]
    np.testing.assert_array_equal(got["many"], records["many"][:, ::-1])
    np.testing.assert_array_equal(got["big"], records["big"])


@pytest.mark.parametrize("t", [BOOL, I8, U16, F16, F32, I64, U64], ids=str)
def test_shared_memory_and_barriers(gpu: WebGpuDevice, t: Scalar) -> None:
    """Each block reverses its part; the last block is not full and sees zeros."""
    s = Sketch()
    a, out = s.array("a", t, "read"), s.array("out", t)
    b = s.b
    tile = s.block_array("tile", t, (64,))
    i, k = b.identity("global_idx", 0), b.identity("thread_idx", 0)
    inside = b.binary("lt", i, b.dim(a, 0))
    with b.into(b.if_(inside).regions[0]):
        b.store(tile, [k], b.load(a, [i], check="proved"), check="proved")
    b.emit("barrier")
    with b.into(b.if_(inside).regions[0]):
        b.store(out, [i], b.load(tile, [b.binary("sub", b.const(63, I32), k)], check="proved"), check="proved")
    for n in (64, 100, 640):
        agree(gpu, s.kernel(), -(-n // 64), [values(t, n), np.zeros(n, t.dtype)])


def test_shared_memory_of_a_launch(gpu: WebGpuDevice) -> None:
    """The same kernel with two sizes of its launch-sized array."""
    s = Sketch()
    out = s.array("out", I32)
    b = s.b
    tile = s.block_array("tile", I32, (0,))
    k = b.identity("thread_idx", 0)
    n = b.dim(tile, 0)
    with b.into(b.if_(b.binary("lt", k, n)).regions[0]):
        b.store(tile, [k], b.binary("mul", k, k), check="proved")
    b.emit("barrier")
    last = b.load(tile, [b.binary("mod", b.binary("add", k, b.const(1, I32)), n)], check="inplace")
    b.store(out, [k], last, check="proved")
    for size in (16, 64):
        agree(gpu, s.kernel(), 1, [np.zeros(64, np.int32)], shared=size * 4)


def test_local_arrays_with_a_run_time_index(gpu: WebGpuDevice) -> None:
    for t in (U8, F32, U64):
        s = Sketch()
        a, out = s.array("a", t, "read", rank=2), s.array("out", t)
        b = s.b
        local = s.block_array("mine", t, (2, 4), "local")
        i = b.identity("global_idx", 0)
        with b.into(b.if_(b.binary("lt", i, b.dim(out, 0))).regions[0]):
            loop = b.for_(b.const(0, I32), b.const(3, I32), b.const(1, I32))
            with b.into(loop.regions[0]):
                k: Value = loop.regions[0].args[0]
                b.store(local, [b.const(1, I32), k], b.load(a, [i, k], check="proved"), check="proved")
            pick = b.value("mod", (i, b.const(4, I32)), I32, check="proved")
            b.store(out, [i], b.load(local, [b.const(1, I32), pick], check="proved"), check="proved")
        agree(gpu, s.kernel(), 2, [values(t, (100, 3)), np.zeros(100, t.dtype)])


def test_a_grid_beyond_the_dispatch_limit_is_folded(gpu: WebGpuDevice) -> None:
    """70,000 blocks of one thread: more than the 65,535 of one axis."""
    s = Sketch(block=(1, 1, 1))
    out = s.array("out", I32)
    b = s.b
    i = b.identity("global_idx", 0)
    with b.into(b.if_(b.binary("lt", i, b.dim(out, 0))).regions[0]):
        b.store(out, [i], b.binary("add", i, b.identity("grid_dim", 0)), check="proved")
    got = run(gpu, s.kernel(), 70_000, [np.zeros(70_000, np.int32)], vector=False)[0]
    np.testing.assert_array_equal(got, np.arange(70_000) + 70_000)


def test_scalars_of_every_type(gpu: WebGpuDevice) -> None:
    kinds = [t for t in (*EVERY, U32) if t != F64 or Cap.F64 in gpu.caps]
    for t in kinds:
        s = Sketch()
        x, out = s.scalar("x", t), s.array("out", t)
        b = s.b
        with b.into(b.if_(b.binary("lt", b.identity("global_idx", 0), b.const(1, I32))).regions[0]):
            b.store(out, [b.const(0, I32)], x, check="proved")
        for v in values(t, 3).tolist():
            agree(gpu, s.kernel(), 1, [v, np.zeros(1, t.dtype)])
