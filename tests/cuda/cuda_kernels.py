"""Kernels built by hand, and how tests run them on the simulated CUDA device and on the check device."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gridwise.devices.check import CheckDevice
from gridwise.devices.memory import ArrayArg
from gridwise.ir import Builder, Kernel, Param, Region, Value, verify
from gridwise.ir.rewrite import clone
from gridwise.ir.types import I32, ArrayType, Scalar
from gridwise.lang.errors import DeviceFault, Loc
from gridwise.passes.lower_checks import lower_checks
from gridwise.passes.simplify import simplify
from gridwise.passes.vectorise import vectorise


class Kern:
    """``Kern("name", a=array(F32), n=I32)``: ``k.b`` builds, ``k.a`` is the parameter."""

    def __init__(
        self, name: str, block: tuple[int, int, int] = (32, 1, 1), domain: int = 1, index: Scalar = I32, **params: Any
    ):
        values = [Param(n, Value(t, None, n)) for n, t in params.items()]
        self.kernel = Kernel(name, values, Region(), block, domain, index, Loc(__file__, 1))
        self.b = Builder(self.kernel.body, index, Loc(__file__, 1))
        for p in values:
            setattr(self, p.name, p.value)

    def __getattr__(self, name: str) -> Any:  # the parameters, for type checkers and readers
        raise AttributeError(name)


def array(elem: Any, access: str = "read", rank: int = 1, **options: Any) -> ArrayType:
    return ArrayType(elem, rank, "global", access, **options)  # type: ignore[arg-type]


def shared(elem: Any, *shape: int, index: Scalar = I32) -> ArrayType:
    return ArrayType(elem, len(shape), "shared", "disjoint", index, shape)


def lowered(kernel: Kernel, vector: bool = False) -> Kernel:
    k = clone(kernel)
    if vector:
        vectorise(k, True)
    lower_checks(k, True)
    simplify(k)
    return verify(k)


def argument(array: Any) -> ArrayArg:
    return ArrayArg(array.buffer, array.offset, array.shape, array.strides)


def run(
    device: Any, kernel: Kernel, arrays: Sequence[Any], grid: tuple[int, int, int] = (1, 1, 1), shared_bytes: int = 0
) -> tuple[list[Any], DeviceFault | None]:
    """Launch on copies of the NumPy arrays; what they hold afterwards, and the fault. Scalars are passed on."""
    module = device.load(kernel)
    held = [device.array(a) if isinstance(a, np.ndarray) else a for a in arrays]
    args = [argument(h) if isinstance(a, np.ndarray) else a for a, h in zip(arrays, held, strict=True)]
    device.launch(module, grid, args, device.default_stream, shared_bytes)
    fault = None
    try:
        device.synchronize()
    except DeviceFault as e:
        fault = e
    return [h.numpy() if isinstance(a, np.ndarray) else a for a, h in zip(arrays, held, strict=True)], fault


def agree(
    cuda: Any, kernel: Kernel, arrays: Sequence[Any], grid: tuple[int, int, int] = (1, 1, 1), shared_bytes: int = 0
) -> list[Any]:
    """The same launch on the CUDA device and on the check device gives the same bits (any NaN equals any NaN)
    and the same fault."""
    k = lowered(kernel)
    got, fault = run(cuda, k, arrays, grid, shared_bytes)
    want, expected = run(CheckDevice(sanitize=False), k, arrays, grid, shared_bytes)
    assert (type(fault), str(fault)) == (type(expected), str(expected))
    for g, w in zip(got, want, strict=True):
        if isinstance(g, np.ndarray):
            assert g.dtype == w.dtype
            if g.dtype.kind in "fV" and g.dtype.names is None:
                np.testing.assert_array_equal(np.isnan(g.astype(np.float64)), np.isnan(w.astype(np.float64)))
                g, w = np.where(np.isnan(g.astype(np.float64)), 0, g), np.where(np.isnan(w.astype(np.float64)), 0, w)
                np.testing.assert_array_equal(np.signbit(g.astype(np.float64)), np.signbit(w.astype(np.float64)))
            np.testing.assert_array_equal(g, w)
    return got
