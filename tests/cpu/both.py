"""Run one kernel on the check device and on the CPU, and compare every byte.

The kernels of ``tests/analysis`` and the edge values of ``tests/check`` are borrowed.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

sys.path += [str(Path(__file__).parents[1] / folder) for folder in ("analysis", "check")]

from gridwise.devices.base import ArrayArg, Buffer
from gridwise.devices.check import CheckDevice
from gridwise.devices.cpu import CpuDevice
from gridwise.ir import Builder, Kernel, Param, Region, Value, verify
from gridwise.ir.types import I32, ArrayType, Scalar, Struct
from gridwise.lang.errors import Loc
from gridwise.passes.pipeline import analyse, lower

CPU = CpuDevice()
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

    def shared(self, name: str, elem: Scalar | Struct, shape: tuple[int, ...]) -> Value:
        return self.b.array(name, ArrayType(elem, len(shape), "shared", "disjoint", self.index, shape))

    def local(self, name: str, elem: Scalar | Struct, shape: tuple[int, ...]) -> Value:
        return self.b.array(name, ArrayType(elem, len(shape), "local", "disjoint", self.index, shape))

    def kernel(self, name: str = "k") -> Kernel:
        return verify(Kernel(name, self.params, self.body, self.block, self.domain, self.index, LOC))


def argument(a: np.ndarray) -> ArrayArg:
    """A NumPy array in place, as the launch passes it."""
    strides = tuple(s // a.itemsize for s in a.strides)
    return ArrayArg(Buffer(a, a.nbytes, a.ctypes.data, a), 0, a.shape, strides)


def on_cpu(
    kernel: Kernel, grid: int | tuple[int, int, int], args: Sequence[Any], shared_bytes: int = 0, proved: bool = False
) -> None:
    """In place. ``proved`` runs the analysis first, so that only the checks it leaves are made."""
    blocks = (grid, 1, 1) if isinstance(grid, int) else grid
    kernel = lower(analyse(kernel), "cpu", trust_launch=False) if proved else lower(kernel, "cpu", trust_launch=False)
    bound = [argument(a) if isinstance(a, np.ndarray) else a for a in args]
    CPU.launch(CPU.load(kernel), blocks, bound, CPU.default_stream, shared_bytes)
    CPU.default_stream.synchronize()


def on_check(kernel: Kernel, grid: int | tuple[int, int, int], args: Sequence[Any], shared_bytes: int = 0) -> list[Any]:
    """On copies, which come back."""
    device = CheckDevice(sanitize=False, subgroup_size=CPU.machine.lanes)
    blocks = (grid, 1, 1) if isinstance(grid, int) else grid
    copies = [a.copy() if isinstance(a, np.ndarray) else a for a in args]
    bound = [argument(a) if isinstance(a, np.ndarray) else a for a in copies]
    whole = [isinstance(a, np.ndarray) and a.flags.c_contiguous and a.size > 0 for a in copies]
    buffers = [device.array(a) if w else None for a, w in zip(copies, whole)]
    bound = [b.arg if b is not None else a for a, b in zip(bound, buffers)]
    device.launch(device.load(kernel), blocks, bound, device.default_stream, shared_bytes)
    device.default_stream.synchronize()
    return [b.numpy() if b is not None else a for a, b in zip(copies, buffers)]


def agree(
    kernel: Kernel, grid: int | tuple[int, int, int], args: Sequence[Any], shared_bytes: int = 0, ulp: int = 0,
    proved: bool = False,
) -> list[Any]:
    """Both devices; equal bytes (``ulp`` units apart for floats), NaN equal to NaN. Returns the CPU's arrays."""
    want = on_check(kernel, grid, args, shared_bytes)
    got = [a.copy() if isinstance(a, np.ndarray) else a for a in args]
    on_cpu(kernel, grid, got, shared_bytes, proved)
    for n, (a, b) in enumerate(zip(got, want)):
        if isinstance(a, np.ndarray):
            compare(a, b, ulp, f"argument {n}")
    return got


def compare(a: np.ndarray, b: np.ndarray, ulp: int = 0, what: str = "") -> None:
    if a.dtype.names or a.dtype.kind in "biu":
        np.testing.assert_array_equal(a, b, what)
        return
    word = np.dtype(f"i{a.itemsize}")
    with np.errstate(invalid="ignore"):
        nan = np.isnan(a.astype(np.float64))
        np.testing.assert_array_equal(nan, np.isnan(b.astype(np.float64)), what)
    x, y = a[~nan].reshape(-1).view(word).astype(np.int64), b[~nan].reshape(-1).view(word).astype(np.int64)
    if ulp == 0:
        np.testing.assert_array_equal(x, y, what)
        return
    low = np.int64(np.iinfo(word).min)
    x, y = np.where(x < 0, low - x, x), np.where(y < 0, low - y, y)
    assert np.abs(x - y).max(initial=0) <= ulp, f"{what}: {np.abs(x - y).max()} ulp apart"
