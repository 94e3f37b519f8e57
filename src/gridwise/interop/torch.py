"""Kernels as torch operators: ``torch.library`` custom ops that work under ``torch.compile``.

    op = torch_op(kernel, "mine::saxpy", outputs={"out": "x"})
    y = op(2.0, x)                         # CPU tensors: the CPU device; CUDA tensors: torch's current stream
    op.register_autograd(backward, setup_context=keep)

A kernel can also be called with tensors as it is: they are used in place.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch

from gridwise.devices import registry
from gridwise.devices.array import Array
from gridwise.devices.base import Stream
from gridwise.devices.foreign import ForeignBuffer, adopt
from gridwise.frontend import ParamSpec, resolve
from gridwise.frontend.types import ScalarTy
from gridwise.ir.types import I64, SCALARS, Scalar
from gridwise.lang.errors import LaunchTypeError
from gridwise.launch import Kernel

from .outputs import Functional, Like

_NAMES = {"bool": "bool", "bf16": "bfloat16", "f8e4m3": "float8_e4m3fn", "f8e5m2": "float8_e5m2"}


@functools.cache
def _types() -> dict[torch.dtype, Scalar]:
    """Element types by torch's dtype."""
    return {getattr(torch, _NAMES.get(name, t.dtype.name)): t for name, t in SCALARS.items()}


@functools.cache
def _dtype(dtype: np.dtype[Any]) -> torch.dtype:
    found = next((theirs for theirs, ours in _types().items() if ours.dtype == dtype), None)
    if found is None:
        raise LaunchTypeError(f"torch has no dtype for {dtype}")
    return found


@functools.lru_cache(maxsize=256)
def _stream(ordinal: int, handle: int) -> Stream:
    device = registry.device(f"cuda:{ordinal}")
    if handle == 0:
        return device.default_stream
    made: Stream = device.external_stream(handle)  # type: ignore[attr-defined]
    return made


def current_stream(ordinal: int) -> Stream:
    """Torch's current stream on a CUDA device, as one of ours."""
    return _stream(ordinal, torch.cuda.current_stream(ordinal).cuda_stream)


def array(tensor: torch.Tensor) -> Array | np.ndarray:
    """A tensor in place: a NumPy array if it is on the CPU, else an ``Array`` ordered on torch's current stream."""
    if tensor.device.type != "cuda":
        return adopt(tensor.detach())
    elem = _types().get(tensor.dtype)
    if elem is None:
        raise TypeError(f"{tensor.dtype} is not one of gridwise's element types")
    ordinal = tensor.device.index
    stream = current_stream(ordinal)
    address = tensor.data_ptr()  # torch's strides are never negative: the first element is the lowest
    size = sum((n - 1) * s for n, s in zip(tensor.shape, tensor.stride())) + 1 if tensor.numel() else 0
    buffer = ForeignBuffer(address, size * elem.size, address, tensor)
    buffer.writer = stream
    return Array(stream.device, buffer, elem, tuple(tensor.shape), tuple(tensor.stride()))


def _schema(functional: Functional) -> str:
    """The operator's types, in torch's notation."""
    parts = []
    for n, spec in enumerate(functional.inputs):
        parts.append(f"{_type(spec, n, functional)} {spec.name}")
    results = ", ".join("Tensor" for _ in functional.results)
    return f"({', '.join(parts)}) -> ({results})"


def _type(spec: ParamSpec, n: int, functional: Functional) -> str:
    if spec.is_array:
        return f"Tensor(a{n}!)" if spec.name in functional.mutated else "Tensor"
    elem = spec.elem
    if spec.kind == "const":
        names = {int: "int", float: "float", bool: "bool", str: "str"}
        if elem in names:
            return names[elem]
    else:
        resolved = resolve(elem, I64)
        if isinstance(resolved, ScalarTy):
            machine = resolved.ir
            return "bool" if machine.kind == "bool" else "int" if machine.is_int else "float"
    raise LaunchTypeError(
        f"{functional.kernel.name}: torch operators take tensors and numbers; the parameter '{spec.name}' is neither"
    )


def torch_op(
    kernel: Kernel,
    name: str,
    outputs: Mapping[str, Like] | None = None,
    grid: int | tuple[int, ...] | None = None,
    block: int | tuple[int, ...] | None = None,
) -> Any:
    """Register a kernel as the operator ``name`` ("namespace::operator").

    Args:
        outputs: mutable parameters that the operator makes and returns, each with the input that it is like or a
                 function of the inputs that gives its shape. Mutable parameters that are not named are written in
                 place. Results are uninitialised before the kernel, as ``torch.empty``.
        grid, block: as for a launch.

    Returns a ``torch.library.CustomOpDef``: call it, or ``register_autograd``. Raises LaunchTypeError for parameters
    that torch has no type for (structs).
    """
    functional = Functional(kernel, outputs or {})

    def make(given: dict[str, Any], device: torch.device) -> dict[str, torch.Tensor]:
        made = {}
        for spec in functional.results:
            dtype = functional.dtype(spec, given)
            theirs = given[dtype].dtype if isinstance(dtype, str) else _dtype(dtype)
            made[spec.name] = torch.empty(functional.shape(spec, given), dtype=theirs, device=device)
        return made

    def place(given: dict[str, Any]) -> torch.device:
        return next((v.device for v in given.values() if isinstance(v, torch.Tensor)), torch.device("cpu"))

    def returned(made: dict[str, torch.Tensor]) -> Any:
        results = tuple(made.values())
        return None if not results else results[0] if len(results) == 1 else results

    def run(*args: Any) -> Any:
        given = {s.name: v for s, v in zip(functional.inputs, args, strict=True)}
        device = place(given)
        made = make(given, device)
        stream = current_stream(device.index) if device.type == "cuda" else None
        values = [array(v) if isinstance(v, torch.Tensor) else v for v in functional.arrange(given, made)]
        kernel.launch(None, tuple(values), {}, grid, block, stream)
        return returned(made)

    def fake(*args: Any) -> Any:
        given = {s.name: v for s, v in zip(functional.inputs, args, strict=True)}
        return returned(make(given, place(given)))

    op = torch.library.custom_op(name, run, mutates_args=functional.mutated, schema=_schema(functional))
    op.register_fake(fake)
    return op
