"""Arguments to machine arguments: one binder a parameter, made once when the kernel is decorated.

A binder checks one value against its parameter and returns what a launch needs of it. What can go wrong is
said at the caller's line, with the parameter's name, what it takes and what it was given.
"""

from __future__ import annotations

import enum
import inspect
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import numpy as np

from gridwise.devices import foreign
from gridwise.devices.array import ALIGNMENT, Array, Trait, contiguous_strides, describe
from gridwise.devices.elements import Element, from_numpy, same_layout
from gridwise.devices.memory import ArrayArg, Buffer
from gridwise.frontend import ParamSpec
from gridwise.frontend import types as ty
from gridwise.ir.types import I32, I64, Scalar, extent_limit, from_dtype
from gridwise.lang.options import OptionValue, none, some
from gridwise.lang.records import dataclass
from gridwise.lang.slices import NAMES

from .overlap import folds
from .report import bad_type, bad_value

ARRAYS = ("slice", "disjoint", "atomic")
C_CONTIGUOUS, ALIGNED, WRITEABLE = 0x1, 0x100, 0x400  # bits of ndarray.flags.num
EXTENT = extent_limit(I32)
ONE = (1,)


@dataclass(slots=True)
class Bound:
    """One argument, checked. ``trait`` is its part of the specialisation key."""

    trait: Any
    args: tuple[Any, ...]  # machine arguments: one ArrayArg, the scalars of a by-value parameter, or none (Const)
    array: Array | np.ndarray | None = None
    low: int = 0  # byte range of an array
    high: int = 0


def show(spec: ParamSpec) -> str:
    """The annotation, as written."""
    if spec.kind in ARRAYS:
        elem = getattr(spec.elem, "__name__", str(spec.elem))
        return f"{NAMES[spec.kind]}[{elem}{f', {spec.rank}' if spec.rank != 1 else ''}]"
    return getattr(spec.elem, "__name__", str(spec.elem))


def _given(value: Any) -> str:
    if value is None:
        return "None"
    name = type(value).__name__
    return f"{'an' if name[0] in 'aeiouAEIOU' else 'a'} {name}"


class ArrayBinder:
    """Binds NumPy arrays in place and arrays on devices."""

    def __init__(self, kernel: str, spec: ParamSpec):
        self.kernel, self.spec = kernel, spec
        self.mutable = spec.kind != "slice"
        self.rank = spec.rank
        self.generic = isinstance(spec.elem, TypeVar)
        self.elem: Element | None = None if self.generic else ty.memory_type(spec.elem)
        self.dtype = self.elem.dtype if self.elem is not None else None
        self.flags = C_CONTIGUOUS | ALIGNED | (WRITEABLE if self.mutable else 0)
        if self.elem is not None:
            self.aligned = Trait.of(self.elem, self.rank)
            self.unaligned = Trait.of(self.elem, self.rank, aligned=False)

    def __call__(self, value: Any) -> Bound:
        if type(value) is Array:
            trait = value.trait
            if trait.elem is not self.elem or trait.rank != self.rank or value.buffer.freed or self.mutable:
                self._check_device(value)
            return Bound(trait, (value.arg,), value, value.low, value.high)
        if type(value) is not np.ndarray:
            value = self._as_array(value)
            if type(value) is Array:
                return self(value)
        # The common case in few steps: the very dtype and rank, contiguous, aligned, not huge.
        shape = value.shape
        if value.dtype is self.dtype and len(shape) == self.rank and value.flags.num & self.flags == self.flags:
            count = value.size
            if count <= EXTENT:
                address = value.__array_interface__["data"][0]
                nbytes = value.nbytes
                strides = ONE if self.rank == 1 else contiguous_strides(shape)
                arg = ArrayArg(Buffer(value, nbytes, address, value), 0, shape, strides)
                trait = self.aligned if address % ALIGNMENT == 0 else self.unaligned
                return Bound(trait, (arg,), value, address, address + nbytes)
        return self._host(value)

    def _as_array(self, value: Any) -> np.ndarray | Array:
        """What is neither a NumPy array nor ours: another library's array, in place."""
        if isinstance(value, np.ndarray):
            return value.view(np.ndarray)
        name = self.spec.name
        if foreign.is_foreign(value):
            try:
                return foreign.adopt(value)
            except (BufferError, TypeError, RuntimeError) as e:
                why = str(e).splitlines()[0]
                bad_type(f"{self.kernel}: argument '{name}', {_given(value)}, cannot be shared: {why}", "pass a copy")
        hint = "pass a NumPy array, or an array made by device.array(...)"
        if isinstance(value, list | tuple):
            want = self.dtype.name if self.dtype is not None and not self.dtype.names else "..."
            hint = f"np.array({name}, np.{want})"
        bad_type(f"{self.kernel}: argument '{name}' takes {show(self.spec)}, and was given {_given(value)}", hint)

    def _host(self, value: np.ndarray) -> Bound:
        spec = self.spec
        dtype, shape, flags = value.dtype, value.shape, value.flags
        if self.dtype is None or dtype != self.dtype:  # (a dtype compared with None means float64)
            elem = self._check_dtype(from_numpy(dtype), str(dtype) if dtype.isnative else f"byte-swapped {dtype.name}")
        else:
            assert self.elem is not None
            elem = self.elem
        if len(shape) != self.rank:
            self._bad_rank(shape)
        if self.mutable and not flags.writeable:
            bad_value(
                f"{self.kernel}: argument '{spec.name}' is a read-only array, and {show(spec)} is written",
                f"pass a writable array: {spec.name}.copy()",
            )
        contiguous = flags.c_contiguous
        if contiguous:
            strides = (1,) if len(shape) == 1 else contiguous_strides(shape)
        else:
            size = dtype.itemsize
            strides = tuple(s // size for s in value.strides)
            if any(s % size for s in value.strides):
                bad_value(
                    f"{self.kernel}: argument '{spec.name}' has strides of {value.strides} bytes, "
                    f"not multiples of its {size}-byte elements",
                    f"np.ascontiguousarray({spec.name})",
                )
        if not flags.aligned:
            bad_value(
                f"{self.kernel}: argument '{spec.name}' starts at an address that is not aligned for {dtype}",
                f"pass an aligned copy: {spec.name}.copy()",
            )
        address = value.__array_interface__["data"][0]
        arg = ArrayArg(Buffer(value, value.nbytes, address, value), 0, shape, strides)
        if self.mutable and not contiguous and folds(arg):
            self._folded()
        trait, low, high = describe(arg, elem, contiguous)
        return Bound(trait, (arg,), value, low, high)

    def _check_device(self, value: Array) -> None:
        spec = self.spec
        if value.buffer.freed:
            bad_value(f"{self.kernel}: argument '{spec.name}' was freed", "free an array after its last launch")
        if self.generic or not same_layout(value.elem, self.elem):  # type: ignore[arg-type]
            self._check_dtype(value.elem, str(value.elem))
        if value.trait.rank != self.rank:
            self._bad_rank(value.shape)
        if self.mutable:
            if not value.writable:
                bad_value(
                    f"{self.kernel}: argument '{spec.name}' is a read-only view, and {show(spec)} is written",
                    "pass the array itself",
                )
            if value.trait.strided and folds(value.arg):
                self._folded()

    def _check_dtype(self, found: Element | None, name: str) -> Element:
        """The element type of an argument whose dtype is not the very dtype expected."""
        spec = self.spec
        if found is not None and (self.elem is None or same_layout(found, self.elem)):
            return found if self.elem is None else self.elem
        if self.dtype is None:
            hint = "use one of the language's types: bool, 8 to 64-bit integers, f16, bf16, f32, f64"
        elif self.dtype.names:
            hint = f"make the array with dtype {spec.elem.__name__}.dtype()"
        else:
            hint = f"convert it: {spec.name}.astype(np.{self.dtype.name})"
            if found is None and "swapped" in name:
                hint = f"convert it: {spec.name}.astype({spec.name}.dtype.newbyteorder('='))"
        bad_type(f"{self.kernel}: argument '{spec.name}' has dtype {name}, expected {show(spec)}", hint)

    def _bad_rank(self, shape: tuple[int, ...]) -> None:
        spec = self.spec
        hint: str | None = None
        if self.rank == 1:
            hint = f"pass a view: {spec.name}.reshape(-1)"
        elif shape:
            hint = f"annotate it with rank {len(shape)}"
        bad_type(
            f"{self.kernel}: argument '{spec.name}' has {len(shape)} axes (shape {shape}), "
            f"expected {self.rank}: {show(spec)}",
            hint,
        )

    def _folded(self) -> None:
        name = self.spec.name
        bad_value(
            f"{self.kernel}: argument '{name}' reaches one element by several indices, "
            f"and {show(self.spec)} is written",
            f"pass an array with an element for each index: {name}.copy()",
        )


def scalar(kernel: str, name: str, t: ty.ScalarTy, value: Any) -> bool | int | float:
    """One value for a scalar of type ``t``: integers must fit, floats are rounded, enums must be members."""
    where = f"{kernel}: argument '{name}'"
    machine = t.ir
    if t.form == "enum":
        try:
            return int(t.cls(value))
        except ValueError:
            members = ", ".join(f"{t}.{m.name}" for m in t.cls)
            bad_value(f"{where} is {value!r}, which is no {t}", f"pass one of {members}")
    if isinstance(value, np.ndarray) and value.shape == ():
        value = value[()]
    if machine.kind == "bool":
        if isinstance(value, bool | np.bool_):
            return bool(value)
        bad_type(f"{where} takes a bool, and was given {value!r}", f"write {value!r} != 0" if _number(value) else None)
    if machine.is_int:
        if isinstance(value, bool | np.bool_) or not isinstance(value, int | np.integer):
            hint = f"write int({name}), which cuts toward zero" if isinstance(value, float | np.floating) else None
            hint = f"write int({name})" if isinstance(value, bool | np.bool_) else hint
            bad_type(f"{where} takes {t}, an integer, and was given {value!r}", hint)
        n = int(value)
        low, high = (I64.min, I64.max) if t.is_index else (machine.min, machine.max)
        if not low <= n <= high:
            bad_value(f"{where} is {n}, which does not fit {t} ({low} to {high})", f"pass gw.{t}(...) to wrap it")
        return n
    if isinstance(value, bool | np.bool_) or not _number(value):
        bad_type(f"{where} takes {t}, a number, and was given {_given(value)}", "pass a number")
    return float(value)


def _number(value: Any) -> bool:
    return isinstance(value, int | float | np.integer | np.floating) or (
        isinstance(value, np.generic) and from_dtype(value.dtype) is not None
    )


def flatten(kernel: str, name: str, t: ty.Ty, value: Any) -> Iterator[bool | int | float]:
    """The scalars that make up a by-value argument, in the order of ``t.leaves``."""
    if isinstance(t, ty.ScalarTy):
        yield scalar(kernel, name, t, value)
    elif isinstance(t, ty.StructTy):
        if not isinstance(value, t.cls | np.void):
            bad_type(f"{kernel}: argument '{name}' takes a {t}, and was given {_given(value)}", f"pass {t}(...)")
        for field, ft in t.fields:
            part = value[field] if isinstance(value, np.void) else getattr(value, field)
            yield from flatten(kernel, f"{name}.{field}", ft, part)
    elif isinstance(t, ty.OptionTy):
        if not isinstance(value, OptionValue):
            value = none(t.elem) if value is None else some(value)
        yield value.is_some
        if value.is_some:
            yield from flatten(kernel, name, t.elem, value.held)
        else:
            yield from (False if leaf.ir.kind == "bool" else 0 for leaf in t.elem.leaves)
    else:
        items, parts = _items(t)
        try:
            values = [value[k] for k in range(len(items))]
            right = len(value) == len(items)
        except (TypeError, IndexError, KeyError):
            right = False
        if not right:
            bad_type(f"{kernel}: argument '{name}' takes {t}, {len(items)} values, and was given {_given(value)}")
        for part, item, v in zip(parts, items, values, strict=True):
            yield from flatten(kernel, f"{name}.{part}", item, v)


def _items(t: ty.Ty) -> tuple[tuple[ty.Ty, ...], list[str]]:
    if isinstance(t, ty.VecTy):
        return (t.elem,) * t.lanes, list("xyzw"[: t.lanes])
    if isinstance(t, ty.FixedTy):
        return (t.elem,) * t.count, [str(k) for k in range(t.count)]
    assert isinstance(t, ty.TupleTy)
    return t.items, [str(k) for k in range(len(t.items))]


class ValueBinder:
    """Binds a scalar, an enum or a composite, by value."""

    def __init__(self, kernel: str, spec: ParamSpec):
        self.kernel, self.spec = kernel, spec
        self.generic = isinstance(spec.elem, TypeVar)
        self.type = None if self.generic else ty.resolve(spec.elem, I64)
        # The trait of a value not known yet: an index is taken to fit 32 bits.
        self.unspecific = False if isinstance(self.type, ty.ScalarTy) else None

    def __call__(self, value: Any) -> Bound:
        t = self.type
        if isinstance(t, ty.ScalarTy):
            one = scalar(self.kernel, self.spec.name, t, value)
            return Bound(t.is_index and not I32.min <= one <= I32.max, (one,))
        if t is None:  # the type follows from the arrays: see ``settle``
            return Bound(None, (value,))
        return Bound(None, tuple(flatten(self.kernel, self.spec.name, t, value)))

    def settle(self, value: Any, found: Scalar | None) -> Bound:
        """Bind a value whose annotation is a type variable; ``found`` is what the arrays made of it, or None."""
        if found is None:
            found = from_dtype(value.dtype) if isinstance(value, np.generic) else None
            if found is None and isinstance(value, int | float):
                found = ty.default_scalar(value).ir
            if found is None:
                bad_type(f"{self.kernel}: argument '{self.spec.name}' takes a number, and was given {_given(value)}")
        return Bound(found, (scalar(self.kernel, self.spec.name, ty.plain(found), value),))


class ConstBinder:
    """Binds a compile-time constant: it becomes part of the specialisation."""

    def __init__(self, kernel: str, spec: ParamSpec):
        self.kernel, self.spec = kernel, spec

    def __call__(self, value: Any) -> Bound:
        spec, kind = self.spec, self.spec.elem
        where = f"{self.kernel}: argument '{spec.name}'"
        if isinstance(value, np.generic):
            value = value.item()
        if isinstance(kind, type) and kind in (int, float, bool, str, tuple):
            wrong = not isinstance(value, kind) and not (kind is float and isinstance(value, int))
            if wrong or (isinstance(value, bool) and kind is not bool):
                bad_type(f"{where} takes a constant {kind.__name__}, and was given {value!r}")
        elif isinstance(kind, type) and issubclass(kind, enum.IntEnum) and not isinstance(value, kind):
            bad_type(f"{where} takes a {kind.__name__}, and was given {value!r}")
        try:
            hash(value)
        except TypeError:
            bad_type(f"{where} is a compile-time constant, which {_given(value)} cannot be", "pass a number or a tuple")
        return Bound((type(value), repr(value) if isinstance(value, float) else value, value), ())


Binder = Callable[[Any], Bound]


def binder(kernel: str, spec: ParamSpec) -> ArrayBinder | ValueBinder | ConstBinder:
    """The binder of one parameter."""
    if spec.kind in ARRAYS:
        return ArrayBinder(kernel, spec)
    return ConstBinder(kernel, spec) if spec.kind == "const" else ValueBinder(kernel, spec)


def positional(
    kernel: str, specs: tuple[ParamSpec, ...], args: tuple[Any, ...], named: dict[str, Any]
) -> tuple[Any, ...]:
    """Arguments in the order of the parameters, defaults filled in."""
    names = [s.name for s in specs]
    if len(args) > len(specs):
        bad_type(f"{kernel} takes {len(specs)} arguments ({', '.join(names)}), and was given {len(args)}")
    values = dict(zip(names, args))
    for name, value in named.items():
        if name not in names:
            bad_type(f"{kernel} has no parameter '{name}'", f"its parameters are {', '.join(names)}")
        if name in values:
            bad_type(f"{kernel}: argument '{name}' is given twice")
        values[name] = value
    missing = [s.name for s in specs if s.name not in values and s.default is inspect.Parameter.empty]
    if missing:
        shown = ", ".join(f"'{m}'" for m in missing)
        plural = "s" if len(missing) > 1 else ""
        bad_type(f"{kernel}: argument{plural} {shown} missing", f"call {kernel}({', '.join(names)})")
    return tuple(values.get(s.name, s.default) for s in specs)
