"""One launch: bind, specialise, check the contract, queue.

The grid, where it is not given, covers the first ``DisjointSlice``: see ``grid.inferred``.
"""

from __future__ import annotations

import inspect
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from gridwise.devices import order
from gridwise.devices.array import Array, Trait
from gridwise.devices.base import Device
from gridwise.devices.recording import Launch, perform
from gridwise.devices.registry import host_device, private_stream
from gridwise.frontend import ArraySpec, Compiled, ConstSpec, ParamSpec, ScalarSpec, compile_kernel
from gridwise.frontend import types as ty
from gridwise.ir.types import F32, I32, I64, Scalar, extent_limit
from gridwise.lang.errors import LaunchValueError
from gridwise.lang.target import Cap

from . import cache
from .bind import ARRAYS, ArrayBinder, Bound, ConstBinder, ValueBinder, binder, positional, show
from .contract import relations
from .grid import XYZ, fits_block, fits_grid, inferred
from .overlap import overlaps
from .report import bad_type, bad_value, refuse
from .specialise import Analysed, Loaded

if TYPE_CHECKING:
    from .kernel import Kernel

_NARROW = extent_limit(I32)  # threads along an axis, beyond which indices are 64 bits wide
_WIDE = extent_limit(I64)


class Launcher:
    """What a kernel's launches share: its parameters, binders and specialisations."""

    def __init__(self, kernel: Kernel):
        self.kernel = kernel
        self.name = kernel.name
        self.specs: tuple[ParamSpec, ...] = tuple(kernel.signature.params)
        self.binders = [binder(self.name, s) for s in self.specs]
        self.arrays = [n for n, s in enumerate(self.specs) if s.kind in ARRAYS]
        mutable = [n for n in self.arrays if self.specs[n].kind != "slice"]
        # Pairs that must not share memory: each mutable array with every other.
        self.pairs = [(m, o) for m in mutable for o in self.arrays if o != m and not (o in mutable and o < m)]
        self.mutable = frozenset(mutable)
        self.output = next((n for n in self.arrays if self.specs[n].kind == "disjoint"), None)
        # By-value parameters whose type is a type variable, with the array that decides it (or None).
        self.generic = [
            (n, next((a for a in self.arrays if self.specs[a].elem is s.elem), None))
            for n, s in enumerate(self.specs)
            if s.kind not in ARRAYS and isinstance(s.elem, TypeVar)
        ]
        self.relations = relations(kernel.requires, [s.name for s in self.specs], kernel.signature.loc)
        self._loaded: dict[Any, Loaded] = {}  # by the exact traits of a launch
        self._canonical: dict[Any, Loaded] = {}  # by what a compiled version depends on
        self._analysed: dict[Any, Analysed] = {}
        self._locks: dict[Any, threading.Lock] = {}

    # -- the launch ------------------------------------------------------------------------------------------
    def launch(
        self,
        values: tuple[Any, ...],
        device: Device | None,
        grid: XYZ | None,
        block: XYZ,
        stream: Any,
        offer: Callable[..., None] | None = None,
    ) -> None:
        """Check everything and queue; ``device`` None means where the arrays are.

        ``offer`` is told of a launch that was queued, so that the next one like it may be quicker.
        """
        given = grid
        bounds = self.bind(values)
        host, device = self.place(bounds, device)
        self.contract(values, bounds)
        if grid is None:
            grid = self.grid(bounds, block)
        fits_grid(self.name, grid, device.limits, device.name)
        if not (grid[0] and grid[1] and grid[2]):
            return
        if host and device.kind != "cpu":
            self._staged(values, device, grid, block)
            return
        loaded = self.specialise(device, block, grid, bounds)
        args = [a for b in bounds for a in b.args]
        if host:
            stream = private_stream(device)
            module = loaded.choose(args, grid[0])
            device.launch(module, grid, args, stream)
            stream.synchronize()
            if offer is not None:
                offer(self, loaded, module, values, bounds, device, given, block, None)
            return
        if stream is None:
            stream = device.default_stream
        elif stream.device is not device:
            bad_value(f"{self.name}: the stream belongs to {stream.device.name}, and the arrays to {device.name}")
        for n in self.arrays:
            buffer = bounds[n].args[0].buffer
            if n in self.mutable:
                order.writes(buffer, stream)
            else:
                order.reads(buffer, stream)
        module = loaded.choose(args, grid[0])
        perform(Launch(module, grid, args), stream)
        if offer is not None and stream.recorder is None:
            offer(self, loaded, module, values, bounds, device, given, block, stream)

    def positional(self, args: tuple[Any, ...], named: dict[str, Any]) -> tuple[Any, ...]:
        """Arguments in the order of the parameters, defaults filled in."""
        if not named and len(args) == len(self.specs):
            return args
        return positional(self.name, self.specs, args, named)

    def bind(self, values: tuple[Any, ...]) -> list[Bound]:
        """Each argument checked against its parameter."""
        bounds = [bind(v) for bind, v in zip(self.binders, values)]
        for n, a in self.generic:
            settle = self.binders[n]
            assert isinstance(settle, ValueBinder)
            bounds[n] = settle.settle(values[n], bounds[a].trait.elem if a is not None else None)
        return bounds

    def contract(self, values: tuple[Any, ...], bounds: Sequence[Bound]) -> None:
        """What must hold among the arguments: no overlap with a mutable array, and ``requires=``."""
        for m, o in self.pairs:
            a, b = bounds[m], bounds[o]
            if a.low < b.high and b.low < a.high:
                self._overlap(m, o, bounds)
        if self.relations:
            named = {s.name: v for s, v in zip(self.specs, values)}
            for relation in self.relations:
                relation.check(self.name, named)

    def place(self, bounds: Sequence[Bound], device: Device | None) -> tuple[bool, Device]:
        """Whether the arrays are on the host, and the device to run on."""
        host: int | None = None
        first: int | None = None
        for n in self.arrays:
            array = bounds[n].array
            if type(array) is Array:
                there = array.device
                if device is None:
                    device, first = there, n
                elif there is not device:
                    on = f"'{self.specs[first].name}' is on" if first is not None else "the kernel is prepared for"
                    bad_type(
                        f"{self.name}: argument '{self.specs[n].name}' is on {there.name}, and {on} {device.name}",
                        f"copy it: gw.device({device.name!r}).array({self.specs[n].name})",
                    )
            else:
                host = n
        if host is None:
            return False, device if device is not None else host_device()
        if device is not None and (first is not None or device.kind != "cpu"):
            name = self.specs[host].name
            bad_type(
                f"{self.name}: argument '{name}' is a NumPy array on the host, expected an array on {device.name}",
                f"copy it: gw.device({device.name!r}).array({name})",
            )
        return True, device if device is not None else host_device()

    def grid(self, bounds: Sequence[Bound], block: XYZ) -> XYZ:
        """The grid that covers the output."""
        if self.output is None:
            bad_value(
                f"{self.name} has no DisjointSlice that the grid could follow from",
                "give the number of blocks: grid=...",
            )
        shape: tuple[int, ...] = bounds[self.output].args[0].shape
        return inferred(self.name, self.specs[self.output].name, shape, self.kernel.domain, block)

    def _overlap(self, m: int, o: int, bounds: Sequence[Bound]) -> None:
        (a,), (b,) = bounds[m].args, bounds[o].args
        if not overlaps(a, bounds[m].trait.elem.size, b, bounds[o].trait.elem.size):
            return
        one, other = self.specs[m], self.specs[o]
        bad_value(
            f"{self.name}: arguments '{one.name}' and '{other.name}' overlap in memory, and '{one.name}' "
            f"({show(one)}) is written",
            f"pass a copy of one: {other.name}.copy()",
        )

    def _staged(self, values: tuple[Any, ...], device: Device, grid: XYZ, block: XYZ) -> None:
        """Run host arrays on a device of its own memory: copy in, launch, copy what is written back."""
        stream = private_stream(device)
        inside = list(values)
        for n in self.arrays:
            inside[n] = device.array(np.asarray(values[n]), stream=stream)
        self.launch(tuple(inside), device, grid, block, stream)
        stream.synchronize()
        for n in self.mutable:
            values[n][...] = inside[n].numpy(stream)

    # -- specialisation -----------------------------------------------------------------------------------------
    def specialise(self, device: Device, block: XYZ, grid: XYZ, bounds: Sequence[Bound]) -> Loaded:
        """The compiled kernel for these arguments; compiles at most once, whichever threads ask."""
        wide = grid[0] * block[0] > _NARROW or grid[1] * block[1] > _NARROW or grid[2] * block[2] > _NARROW
        key = (device, block, wide, *[b.trait for b in bounds])
        loaded = self._loaded.get(key)
        if loaded is None or not loaded.analysed.valid():
            loaded = self._loaded[key] = self._compile(device, block, wide, bounds)
        if grid[0] * block[0] > loaded.analysed.most_threads:  # known only once it is compiled
            if not loaded.wide:
                return self._compile(device, block, True, bounds)
            bad_value(f"{self.name}: a grid of {grid[0]} blocks has more threads than an index can count")
        return loaded

    def prepare(self, device: Device, grid: XYZ | None, block: XYZ, args: tuple[Any, ...] | None) -> Loaded | None:
        """Check block and grid against the device, and compile where the types are known."""
        fits_block(self.name, block, device.limits, device.name)
        if grid is not None:
            fits_grid(self.name, grid, device.limits, device.name)
        bounds = self.example(args)
        return None if bounds is None else self.specialise(device, block, grid or (1, 1, 1), bounds)

    def example(
        self, args: tuple[Any, ...] | None, choices: Mapping[str, Any] | None = None, default: bool = False
    ) -> list[Bound] | None:
        """Bounds to compile for: of ``args``, or of contiguous arrays. None if types do not follow from those.

        ``choices`` gives types to type variables and values to constants, by name; ``default`` takes f32 for a
        type variable that has none.
        """
        if args is not None:
            return self.bind(self.positional(args, {}))
        choices = choices or {}
        bounds: list[Bound] = []
        for spec, bind in zip(self.specs, self.binders):
            elem = getattr(bind, "elem", None)
            if isinstance(bind, ConstBinder):
                value = choices.get(spec.name, spec.default)
                if value is inspect.Parameter.empty:
                    if not default:
                        return None
                    bad_value(
                        f"{self.name}: the constant '{spec.name}' has no default", f"give it: --with {spec.name}=16"
                    )
                bounds.append(bind(value))
                continue
            if bind.generic:
                elem = choices.get(spec.elem.__name__, F32 if default else None)
                if elem is None:
                    return None
            if isinstance(bind, ArrayBinder):
                assert elem is not None
                bounds.append(Bound(Trait.of(elem, spec.rank), ()))
            else:
                bounds.append(Bound(elem if bind.generic else bind.unspecific, ()))
        return bounds

    def _compile(self, device: Device, block: XYZ, wide: bool, bounds: Sequence[Bound]) -> Loaded:
        aligned = True
        parts: list[Any] = []
        for spec, bound in zip(self.specs, bounds):
            trait = bound.trait
            if spec.kind in ARRAYS:
                wide = wide or trait.wide
                aligned = aligned and trait.aligned
                parts.append(Trait.of(trait.elem, trait.rank, trait.strided))
            elif isinstance(trait, bool):  # an index that may need 64 bits
                wide = wide or trait
                parts.append(None)
            else:
                parts.append(trait)
        index = I64 if wide else I32
        analysis = (device.target, device.caps, block, index, *parts)
        with self._locks.setdefault(analysis, threading.Lock()):
            analysed = self._analysed.get(analysis)
            if analysed is None or not analysed.valid():
                self._limits(device, block, wide)
                key = cache.proof_key(self.kernel, block, index, device.caps, self.specs, parts)
                analysed = Analysed.cached(self.kernel, key, lambda: self.frontend(block, index, device.caps, bounds))
                self._analysed[analysis] = analysed
        canonical = (device, aligned, analysis)
        with self._locks.setdefault(canonical, threading.Lock()):
            loaded = self._canonical.get(canonical)
            if loaded is None or loaded.analysed is not analysed:
                self._limits(device, block, wide)
                loaded = self._canonical[canonical] = Loaded(analysed, device, aligned)
        return loaded

    def _limits(self, device: Device, block: XYZ, wide: bool) -> None:
        fits_block(self.name, block, device.limits, device.name)
        if len(self.arrays) > device.limits.max_arrays:
            bad_value(
                f"{self.name} has {len(self.arrays)} array parameters, "
                f"and {device.name} allows {device.limits.max_arrays}"
            )
        if wide and Cap.I64 not in device.caps:
            refuse(
                LaunchValueError,
                f"{self.name}: these arguments need 64-bit indices (more than {_NARROW} elements or threads on an "
                f"axis), which {device.name} does not have",
                "launch on parts of the arrays: a[:n], a[n:]",
            )

    def frontend(self, block: XYZ, index: Scalar, caps: frozenset[Cap], bounds: Sequence[Bound]) -> Compiled:
        """Typed IR for these arguments, before any proof."""
        kernel = self.kernel
        return compile_kernel(
            kernel.fn,
            name=self.name,
            args={s.name: self._arg_spec(s, b) for s, b in zip(self.specs, bounds)},
            block=block,
            domain=kernel.domain,
            index=index,
            caps=caps,
            requires=kernel.requires,
            unchecked=kernel.unchecked,
            fastmath=kernel.fastmath,
        )

    def _arg_spec(self, spec: ParamSpec, bound: Bound) -> ArraySpec | ScalarSpec | ConstSpec:
        if spec.kind in ARRAYS:
            trait: Trait = bound.trait
            elem: Any = trait.elem
            if isinstance(spec.elem, TypeVar) and isinstance(elem, Scalar):
                elem = ty.plain(elem).cls
            return ArraySpec(elem, trait.rank, trait.strided)
        if spec.kind == "const":
            return ConstSpec(bound.trait[2])
        if isinstance(spec.elem, TypeVar):
            return ScalarSpec(ty.plain(bound.trait).cls)
        return ScalarSpec(spec.elem)
