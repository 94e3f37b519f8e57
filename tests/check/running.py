"""Small kernels built by hand, run on the check device."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gridwise.devices.base import ArrayArg
from gridwise.devices.check import CheckDevice
from gridwise.ir import Builder, Kernel, Param, Region, Value, verify
from gridwise.ir.types import BOOL, I32, ArrayType, Scalar, Struct
from gridwise.lang.errors import Loc

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

    def at(self, line: int) -> Builder:
        """The builder, at a source line."""
        self.b.loc = Loc("kernel.py", line, 0, 4)
        return self.b

    def kernel(self, name: str = "k") -> Kernel:
        return verify(Kernel(name, self.params, self.body, self.block, self.domain, self.index, LOC))


def launch(
    device: CheckDevice, kernel: Kernel, grid: int | tuple[int, int, int], args: Sequence[Any], shared_bytes: int = 0
) -> None:
    """Queue it; arrays of the device and plain numbers are arguments."""
    blocks = (grid, 1, 1) if isinstance(grid, int) else grid
    bound = [a if isinstance(a, int | float | ArrayArg) else a.arg for a in args]
    device.launch(device.load(kernel), blocks, bound, device.default_stream, shared_bytes)


def evaluate(
    build: Callable[..., Value],
    types: Sequence[Scalar],
    columns: Sequence[np.ndarray],
    result: Scalar,
    device: CheckDevice | None = None,
) -> np.ndarray:
    """``build(b, *operands)`` for each row of ``columns``, one thread a row."""
    device = device or CheckDevice()
    s = Sketch()
    arrays = [s.array(f"x{n}", t, "read") for n, t in enumerate(types)]
    out = s.array("out", result)
    b = s.b
    i = b.identity("global_idx", 0)
    with b.into(b.if_(b.binary("lt", i, b.dim(out, 0))).regions[0]):
        b.store(out, [i], build(b, *(b.load(a, [i]) for a in arrays)))
    n = len(columns[0])
    host = [np.asarray(c).astype(t.dtype) if not isinstance(c, np.ndarray) else c for c, t in zip(columns, types)]
    given = [device.array(h, t) for h, t in zip(host, types)]
    target = device.zeros(n, result)
    launch(device, s.kernel(), -(-n // 64), [*given, target])
    return target.numpy()


def same(a: Any, b: Any) -> bool:
    """Equal numbers; NaN equals NaN, and zeros must agree in sign."""
    a, b = float(a), float(b)
    if np.isnan(a) or np.isnan(b):
        return bool(np.isnan(a) and np.isnan(b))
    return a == b and bool(np.signbit(a) == np.signbit(b))


__all__ = ["BOOL", "LOC", "Sketch", "evaluate", "launch", "same"]
