"""Kernels built by hand, run on the check device and through WebGPU, and compared byte for byte."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gridwise.devices.base import Device
from gridwise.devices.check import CheckDevice
from gridwise.devices.webgpu import WebGpuDevice
from gridwise.ir import Builder, Kernel, Param, Region, Value, verify
from gridwise.ir.types import BF16, BOOL, F32, I32, ArrayType, Scalar, Struct
from gridwise.lang.errors import Loc
from gridwise.passes.pipeline import lower

LOC = Loc("kernel.py", 1)


class Sketch:
    """A kernel in the making: ``array`` and ``scalar`` add parameters, ``b`` builds the body."""

    def __init__(self, block: tuple[int, int, int] = (64, 1, 1), index: Scalar = I32, domain: int = 1):
        self.body = Region()
        self.b = Builder(self.body, index, LOC)
        self.params: list[Param] = []
        self.block, self.index, self.domain = block, index, domain

    def array(
        self, name: str, elem: Scalar | Struct, access: Any = "disjoint", rank: int = 1, strided: bool = False
    ) -> Value:
        value = Value(ArrayType(elem, rank, access=access, index=self.index, strided=strided), None, name)
        self.params.append(Param(name, value))
        return value

    def scalar(self, name: str, type: Scalar) -> Value:
        value = Value(type, None, name)
        self.params.append(Param(name, value))
        return value

    def block_array(self, name: str, elem: Scalar | Struct, shape: tuple[int, ...], space: Any = "shared") -> Value:
        return self.b.array(name, ArrayType(elem, len(shape), space, "disjoint", self.index, shape))

    def at(self, line: int) -> Builder:
        self.b.loc = Loc("kernel.py", line, 0, 4)
        return self.b

    def kernel(self, name: str = "k") -> Kernel:
        return verify(Kernel(name, self.params, self.body, self.block, self.domain, self.index, LOC))


def launch(
    device: Device, kernel: Kernel, grid: int | tuple[int, int, int], args: Sequence[Any], shared: int = 0
) -> Any:
    """Queue a kernel; arguments are device arrays and plain numbers. Returns the module."""
    blocks = (grid, 1, 1) if isinstance(grid, int) else grid
    bound = [a if isinstance(a, bool | int | float) else a.arg for a in args]
    module = device.load(kernel)
    device.launch(module, blocks, bound, device.default_stream, shared)
    return module


def run(
    device: Device, kernel: Kernel, grid: int | tuple[int, int, int], args: Sequence[Any], shared: int = 0,
    vector: bool = True,
) -> list[np.ndarray]:
    """Copies of the NumPy arguments after a launch. A kernel for WebGPU is lowered first."""
    given = [device.array(a) if isinstance(a, np.ndarray) else a for a in args]
    if device.target != "check":
        kernel = lower(kernel, device.target, trust_launch=True, vector=vector)
    launch(device, kernel, grid, given, shared)
    device.synchronize()
    return [a.numpy() for a in given if not isinstance(a, bool | int | float)]


def agree(
    gpu: Device, kernel: Kernel, grid: int | tuple[int, int, int], args: Sequence[Any], shared: int = 0,
    vector: bool = True, ulp: int = 0,
) -> list[np.ndarray]:
    """Both devices give the same bytes, NaN for NaN."""
    want = run(CheckDevice(sanitize=False), kernel, grid, args, shared)
    got = run(gpu, kernel, grid, args, shared, vector)
    for n, (a, b) in enumerate(zip(got, want, strict=True)):
        compare(a, b, ulp, f"array {n}")
    return got


def compare(a: np.ndarray, b: np.ndarray, ulp: int = 0, what: str = "") -> None:
    if a.dtype.names or a.dtype.kind in "biu":
        np.testing.assert_array_equal(a, b, what)
        return
    word = np.dtype(f"i{a.itemsize}")
    nan = np.isnan(a.astype(np.float64))
    np.testing.assert_array_equal(nan, np.isnan(b.astype(np.float64)), what)
    x, y = a[~nan].reshape(-1).view(word).astype(np.int64), b[~nan].reshape(-1).view(word).astype(np.int64)
    if ulp == 0:
        np.testing.assert_array_equal(x, y, what)
        return
    low = np.int64(np.iinfo(word).min)
    x, y = np.where(x < 0, low - x, x), np.where(y < 0, low - y, y)
    assert np.abs(x - y).max(initial=0) <= ulp, f"{what}: {np.abs(x - y).max()} ulp apart"


def subnormal(values: np.ndarray) -> np.ndarray:
    """Which values are too small for a normal f32."""
    x = np.abs(values.astype(np.float32))
    return (x > 0) & (x < np.finfo(np.float32).tiny)


Make = Callable[[Builder, Sequence[Value]], Value]


def table(
    gpu: WebGpuDevice, types: Sequence[Scalar], result: Scalar, makes: dict[str, Make], columns: Sequence[np.ndarray]
) -> None:
    """One kernel that computes every entry of ``makes`` for each row; the first that differs is named."""
    s = Sketch()
    arrays = [s.array(f"x{n}", t, "read") for n, t in enumerate(types)]
    out = s.array("out", result)
    b = s.b
    i = b.identity("global_idx", 0)
    rows = b.dim(arrays[0], 0)
    with b.into(b.if_(b.binary("lt", i, rows)).regions[0]):
        values = [b.load(a, [i], check="proved") for a in arrays]
        for n, make in enumerate(makes.values()):
            at = b.binary("add", i, b.binary("mul", rows, b.const(n, I32)))
            b.store(out, [at], make(b, values), check="proved")
    count = len(columns[0])
    zero = np.zeros(count * len(makes), result.dtype)
    args = [*(np.ascontiguousarray(c, t.dtype) for c, t in zip(columns, types, strict=True)), zero]
    grid = -(-count // 64)
    want = run(CheckDevice(sanitize=False), s.kernel(), grid, args)[-1]
    got = run(gpu, s.kernel(), grid, args)[-1]
    for n, name in enumerate(makes):
        a, w = got[n * count : (n + 1) * count], want[n * count : (n + 1) * count]
        if result == BOOL or result.is_int:
            bad = a != w
        else:
            word = np.dtype(f"u{result.size}")
            with np.errstate(invalid="ignore"):
                nans = np.isnan(a.astype(np.float64)) & np.isnan(w.astype(np.float64))
            bad = (a.view(word) != w.view(word)) & ~nans
        if not gpu.numerics.subnormals:  # flushed to zero there, as WebGPU allows
            for values, t in zip((*columns, w), (*types, result), strict=True):
                bad &= ~subnormal(values) if t in (F32, BF16) else True
        if bad.any():
            k = int(np.flatnonzero(bad)[0])
            row = [c[k] for c in columns]
            rows_bad = f"{int(bad.sum())} rows of {count} differ"
            raise AssertionError(f"{name} on {row}: {a[k]!r}, expected {w[k]!r}; {rows_bad}")
