"""What an expression evaluates to while a kernel is being lowered.

``Num`` is a run-time scalar; ``Const`` a number known at compile time (weak when it came from a literal);
``Static`` any other compile-time object. The rest group values.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from gridwise.ir.core import Value
from gridwise.ir.types import ArrayType, Field
from gridwise.lang.errors import Loc
from gridwise.lang.records import dataclass, field

from .types import (
    FixedTy,
    OptionTy,
    ScalarTy,
    StaticTy,
    StructTy,
    TupleTy,
    Ty,
    VecTy,
    WitnessTy,
    default_scalar,
)

if TYPE_CHECKING:
    from .scopes import Frame


class Val:
    """Base of all values."""

    if TYPE_CHECKING:

        @property
        def type(self) -> Ty: ...


@dataclass(eq=False)
class Num(Val):
    """A scalar computed at run time. ``const`` is its value where it happens to be known.

    ``choice`` is (condition, a, b) where it is ``a if condition else b`` of two literals, or of such choices: then it
    is as weak as they are.
    """

    type: ScalarTy
    ir: Value
    const: bool | int | float | None = None
    choice: tuple[Value, Val, Val] | None = None


@dataclass(eq=False)
class Const(Val):
    """A number known at compile time. ``ty`` None means weak: it takes the type of what it meets (rule 3)."""

    value: bool | int | float
    ty: ScalarTy | None = None

    @property
    def type(self) -> Ty:
        return self.ty or default_scalar(self.value)

    @property
    def weak(self) -> bool:
        return self.ty is None


@dataclass(eq=False)
class Static(Val):
    """A compile-time object: a function, a type, a module, a string, None."""

    obj: Any

    @property
    def type(self) -> Ty:
        return StaticTy(describe(self.obj), id(self.obj), self)


@dataclass(eq=False)
class TupleV(Val):
    """A tuple; ``cls`` is its NamedTuple class, or None."""

    items: tuple[Val, ...]
    cls: type | None = None

    @property
    def type(self) -> Ty:
        return TupleTy(tuple(v.type for v in self.items), self.cls)


@dataclass(eq=False)
class VecV(Val):
    """A vec2, vec3 or vec4 in scalars."""

    type: VecTy
    items: tuple[Num, ...]


@dataclass(eq=False)
class FixedV(Val):
    """A fixed array in scalars. ``place`` is where it lives, if it can be written."""

    type: FixedTy
    items: tuple[Val, ...]


@dataclass(eq=False)
class StructV(Val):
    """A struct in scalars, field by field."""

    type: StructTy
    fields: dict[str, Val]


@dataclass(eq=False)
class OptionV(Val):
    """A value that may be missing: where it is, ``value`` is some valid value of its type."""

    type: OptionTy
    present: Num
    value: Val


@dataclass(eq=False)
class WitnessV(Val):
    """A ThreadIndex: one index an axis, z y x order."""

    type: WitnessTy
    axes: tuple[Num, ...]


@dataclass(eq=False)
class ArrayV(Val):
    """An array in memory; ``elem`` is its element type in the frontend's terms."""

    name: str
    ir: Value
    elem: Ty
    kind: str  # slice, disjoint, atomic, shared, local

    @property
    def type(self) -> Ty:
        return StaticTy(f"the array {self.name}", id(self.ir), self)

    @property
    def layout(self) -> ArrayType:
        assert isinstance(self.ir.type, ArrayType)
        return self.ir.type


@dataclass(eq=False)
class ElementV(Val):
    """A place in an array whose element is not a scalar: ``a[i]`` or ``a[i].position``, not read yet."""

    array: ArrayV
    indices: tuple[Value, ...]
    path: tuple[Field, ...]
    elem: Ty

    @property
    def type(self) -> Ty:
        return self.elem


@dataclass(eq=False)
class FuncV(Val):
    """A function defined inside the kernel, with the frame it closes over."""

    node: ast.FunctionDef | ast.Lambda
    frame: Frame
    defaults: dict[str, Val] = field(default_factory=dict)

    @property
    def type(self) -> Ty:
        return StaticTy("a function", id(self), self)


@dataclass(eq=False)
class MethodV(Val):
    """``receiver.name``, about to be called. ``place`` names the receiver's variable, if it is one."""

    receiver: Val
    name: str
    func: Any
    place: ast.expr | None = None

    @property
    def type(self) -> Ty:
        return StaticTy(f"the method {self.name}", id(self.func), self)


@dataclass(eq=False)
class RangeV(Val):
    """``range(...)``, or one of the iterators of ``thread``: made only to be looped over."""

    start: Val
    stop: Val
    step: Val
    wrap: Callable[[Num], Val] | None = None  # what each number becomes: a witness
    unroll: int | None = None
    loc: Loc | None = None
    nonzero: bool = False  # the step is known not to be zero

    @property
    def type(self) -> Ty:
        return StaticTy("a range", id(self), self)


@dataclass(eq=False)
class IterV(Val):
    """A sequence of known length, looped over at compile time."""

    items: tuple[Val, ...]

    @property
    def type(self) -> Ty:
        return StaticTy("an iterator", id(self), self)


def describe(obj: Any) -> str:
    """A short phrase for a compile-time object, for messages."""
    if obj is None:
        return "None"
    if isinstance(obj, str):
        return "a string"
    if isinstance(obj, type):
        return f"the type {obj.__name__}"
    name = getattr(obj, "__name__", None)
    if type(obj).__name__ == "module":
        return f"the module {str(name).removeprefix('gridwise.lang.')}"
    if callable(obj) and name:
        return f"the function {name}"
    return f"a Python {type(obj).__name__}"


def leaves(v: Val) -> list[Num]:
    """The run-time scalars of a value (all weak constants already given a type)."""
    if isinstance(v, Num):
        return [v]
    if isinstance(v, TupleV | VecV | FixedV):
        return [leaf for item in v.items for leaf in leaves(item)]
    if isinstance(v, StructV):
        return [leaf for item in v.fields.values() for leaf in leaves(item)]
    if isinstance(v, OptionV):
        return [v.present, *leaves(v.value)]
    if isinstance(v, WitnessV):
        return list(v.axes)
    return []


def rebuild(t: Ty, scalars: list[Num]) -> Val:
    """The value of type ``t`` held by these scalars, which are taken from the front of the list."""
    if isinstance(t, ScalarTy):
        return scalars.pop(0)
    if isinstance(t, TupleTy):
        return TupleV(tuple(rebuild(item, scalars) for item in t.items), t.cls)
    if isinstance(t, VecTy):
        return VecV(t, tuple(scalars.pop(0) for _ in range(t.lanes)))
    if isinstance(t, FixedTy):
        return FixedV(t, tuple(rebuild(t.elem, scalars) for _ in range(t.count)))
    if isinstance(t, StructTy):
        return StructV(t, {name: rebuild(ft, scalars) for name, ft in t.fields})
    if isinstance(t, OptionTy):
        present = scalars.pop(0)
        return OptionV(t, present, rebuild(t.elem, scalars))
    if isinstance(t, WitnessTy):
        return WitnessV(t, tuple(scalars.pop(0) for _ in range(t.rank)))
    assert isinstance(t, StaticTy)
    assert t.held is not None
    held: Val = t.held
    return held
