"""Which launches machine code can take over, and what it is told about them."""

from __future__ import annotations

import enum
import types
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from gridwise.devices.array import Array
from gridwise.devices.base import Device, Module, Stream
from gridwise.frontend import types as ty
from gridwise.ir.types import F32, F64, I32, Scalar, extent_limit

from . import cpython, native
from .bind import ARRAYS, Bound, ConstBinder, ValueBinder
from .grid import MOST_YZ, XYZ
from .native import Parameter, Shape

if TYPE_CHECKING:
    from gridwise.frontend import ParamSpec
    from gridwise.frontend.dependencies import Dependencies

    from .launcher import Launcher
    from .specialise import Loaded


def _scalar(t: ty.Ty | None, wide: bool) -> tuple[Parameter, Any] | None:
    """How a scalar of type ``t`` is taken; None if only Python can."""
    if not isinstance(t, ty.ScalarTy):
        return None
    machine = t.ir
    if t.form == "enum":
        return Parameter("enum", machine, low=machine.min, high=machine.max), t.cls
    if machine.kind == "bool":
        return Parameter("bool", machine), None
    if machine.is_int:
        if t.is_index:
            if wide:  # taken to be below 2**31 where it could be: what passes 2**31 is another specialisation
                return None
            return Parameter("int", machine, low=I32.min, high=I32.max), None
        return Parameter("int", machine, low=machine.min, high=machine.max), None
    return (Parameter("float", machine), None) if machine in (F32, F64) else None


def _parameter(launcher: Launcher, n: int, spec: ParamSpec, bound: Bound, value: Any) -> tuple[Parameter, Any] | None:
    """One parameter as native code takes it, and the object that it compares with (None if none)."""
    binder = launcher.binders[n]
    if spec.kind in ARRAYS:
        trait = bound.trait
        writes = spec.kind != "slice"
        if type(value) is np.ndarray and cpython.arrays():
            if trait.strided or trait.wide:
                return None
            size = trait.elem.size
            return Parameter("host", writes=writes, rank=trait.rank, size=size, aligned=trait.aligned), value.dtype
        if type(value) is not Array or value.raw is None:
            return None
        if writes and trait.strided:
            return None  # whether two indices reach one element is asked for each array
        return Parameter("array", writes=writes, rank=trait.rank), trait
    if isinstance(binder, ConstBinder):
        return Parameter("const"), value
    assert isinstance(binder, ValueBinder)
    if binder.generic:
        found = bound.trait
        decided = any(k == n and a is not None for k, a in launcher.generic)
        return _scalar(ty.plain(found), False) if decided and isinstance(found, Scalar) else None
    return _scalar(binder.type, bound.trait is True)


def _captured(dependencies: Dependencies) -> tuple[tuple[bool, ...], list[Any]] | None:
    """What must be unchanged (rule 9), as native code checks it: by identity. None if something cannot be."""
    names, objects = [], []
    spaces = list(dependencies.names.values())
    for obj, name, value in dependencies.attributes.values():
        if isinstance(obj, enum.EnumMeta) and name in obj.__members__:
            continue  # members cannot be rebound
        if not isinstance(obj, types.ModuleType):
            return None
        if obj.__name__.startswith("gridwise."):
            continue  # the language itself
        spaces.append((obj.__dict__, name, value))
    for space, name, value in spaces:
        there = name in space
        if there and space[name] is not value:
            return None  # equal, but another object
        names.append(there)
        objects += [space, name, value] if there else [space, name]
    for cell, value in dependencies.cells.values():
        objects += [cell, value]
    for fn, code, defaults in dependencies.functions.values():
        objects += [fn, code, defaults]
    return tuple(names), objects


def build(
    launcher: Launcher, loaded: Loaded, module: Module, values: Sequence[Any], bounds: Sequence[Bound],
    device: Device, grid: XYZ | None, block: XYZ, stream: Stream | None, slow: Callable[..., Any],
) -> Callable[..., None] | None:  # fmt: skip
    """Machine code for launches like this one; None where only the way through Python is right.

    ``grid`` None: it follows from the output. ``stream`` None: the arrays are NumPy's, and the call waits.
    """
    if not cpython.supported() or launcher.relations or module is not loaded.fast:
        return None
    entry = device.entry(module, stream or device.default_stream)
    if entry is None:
        return None
    parameters, objects = [], []
    for n, (spec, bound, value) in enumerate(zip(launcher.specs, bounds, values, strict=True)):
        found = _parameter(launcher, n, spec, bound, value)
        if found is None:
            return None
        parameters.append(found[0])
        if found[0].kind in ("array", "host", "enum", "const"):
            objects.append(found[1])
    dependencies = loaded.analysed.dependencies
    captured = _captured(dependencies)
    if captured is None:
        return None
    names, held = captured
    objects += held
    kernel = module.kernel
    if grid is None and launcher.output is None:
        return None
    threads = (loaded.analysed.most_threads, *[extent_limit(kernel.index)] * 2)
    limits = (device.limits.max_grid[0], *(min(m, MOST_YZ) for m in device.limits.max_grid[1:]))
    most = tuple(min(limit, t // b) for limit, t, b in zip(limits, threads, block, strict=True))
    shape = Shape(
        parameters=tuple(parameters),
        strided=tuple(spec.kind in ARRAYS and b.trait.strided for spec, b in zip(launcher.specs, bounds, strict=True)),
        extra=tuple(len(e) for e in entry.extra),
        conditions=tuple((c.terms, c.const) for c in kernel.conditions),
        guard=tuple(kernel.guard) if kernel.coarsen > 1 else (),
        coarsen=kernel.coarsen,
        block=block,
        output=launcher.output if grid is None else None,
        domain=launcher.kernel.domain,
        names=names,
        cells=len(dependencies.cells),
        functions=len(dependencies.functions),
    )
    return native.function(
        launcher.name, shape, entry, grid or (0, 0, 0), most, slow, device, stream, tuple(objects)  # type: ignore[arg-type]
    )
