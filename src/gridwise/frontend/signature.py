"""What a kernel's parameters are: read from its annotations, once, when it is decorated."""

from __future__ import annotations

import inspect
import types
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, Literal, TypeVar

from gridwise.ir import types as ir
from gridwise.lang.errors import KernelNameError, KernelSyntaxError, KernelTypeError, Loc
from gridwise.lang.records import dataclass
from gridwise.lang.slices import NAMES, SliceOf
from gridwise.lang.structs import is_enum, is_struct
from gridwise.lang.types import ConstOf, ScalarType

from .source import find
from .types import FixedTy, NotAType, OptionTy, ScalarTy, StructTy, TupleTy, Ty, VecTy, WitnessTy, resolve

ParamKind = Literal["slice", "disjoint", "atomic", "scalar", "struct", "enum", "const"]
EMPTY = inspect.Parameter.empty


@dataclass(frozen=True)
class ParamSpec:
    """One parameter: ``elem`` is its language type (of an array, its element's), perhaps a TypeVar."""

    name: str
    kind: ParamKind
    elem: Any
    rank: int = 0
    default: Any = EMPTY

    @property
    def is_array(self) -> bool:
        return self.kind in ("slice", "disjoint", "atomic")

    def __str__(self) -> str:
        elem = getattr(self.elem, "__name__", repr(self.elem))
        if self.is_array:
            return f"{self.name}: {NAMES[self.kind]}[{elem}{f', {self.rank}' if self.rank != 1 else ''}]"
        return f"{self.name}: {f'Const[{elem}]' if self.kind == 'const' else elem}"


@dataclass(frozen=True)
class Signature:
    """The parameters of a kernel, in order."""

    params: tuple[ParamSpec, ...]
    loc: Loc

    def __iter__(self) -> Iterator[ParamSpec]:
        return iter(self.params)

    def __len__(self) -> int:
        return len(self.params)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(p.name for p in self.params)


# -- how an argument is bound, for one specialisation ----------------------------------------------


@dataclass(frozen=True)
class ArraySpec:
    """An array argument. ``elem`` is an ir Scalar or Struct, or the language type where the parameter is generic."""

    elem: Any
    rank: int
    strided: bool = False


@dataclass(frozen=True)
class ScalarSpec:
    """A value argument of this language type (a scalar, enum, NewType or struct)."""

    type: Any


@dataclass(frozen=True)
class ConstSpec:
    """A compile-time argument."""

    value: Any


ArgSpec = ArraySpec | ScalarSpec | ConstSpec


def hints_of(fn: types.FunctionType) -> dict[str, Any]:
    """The annotation objects of a function; strings (``from __future__ import annotations``) are evaluated."""
    raw = fn.__annotations__
    if not any(isinstance(a, str) for a in raw.values()):
        return raw
    space = dict(fn.__globals__)
    for name, cell in zip(fn.__code__.co_freevars, fn.__closure__ or ()):
        try:
            space[name] = cell.cell_contents
        except ValueError:
            continue
    for t in getattr(fn, "__type_params__", ()):
        space[t.__name__] = t
    out: dict[str, Any] = {}
    for name, a in raw.items():
        try:
            out[name] = eval(a, space) if isinstance(a, str) else a
        except NameError as e:
            raise KernelNameError(
                f"the annotation of '{name}': {e}",
                annotation_loc(fn, name),
                "define it at module level, or leave out 'from __future__ import annotations'",
            ) from None
        except Exception as e:
            raise KernelTypeError(f"the annotation of '{name}': {e}", annotation_loc(fn, name)) from None
    return out


def annotation_loc(fn: types.FunctionType, name: str) -> Loc:
    """The place of one parameter's annotation (of the parameter, if it has none)."""
    file, node = find(fn)
    for a in [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]:
        if a.arg == name:
            return file.loc(a.annotation or a)
    return file.loc(getattr(node, "returns", None) or node) if name == "return" else function_loc(fn)


def function_loc(fn: types.FunctionType) -> Loc:
    """The ``def`` line of a function."""
    file, node = find(fn)
    loc = file.loc(node)
    name = getattr(node, "name", None)
    if name is None:
        return loc
    text = file.lines[loc.line - 1]
    col = text.find(name, loc.col + 3)
    return Loc(loc.file, loc.line, max(col, 0), max(col, 0) + len(name))


@lru_cache(maxsize=1024)
def signature(fn: types.FunctionType) -> Signature:
    """The parameters of a kernel. Raises KernelTypeError at the annotation that is none of the language's."""
    code_loc = Loc(fn.__code__.co_filename, fn.__code__.co_firstlineno)
    params = []
    hints = hints_of(fn)
    for name, p in inspect.signature(fn).parameters.items():
        if p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD):
            star = "*" if p.kind is p.VAR_POSITIONAL else "**"
            raise KernelSyntaxError(
                f"{star}{name}: a kernel has a fixed list of parameters", function_loc(fn), "name every parameter"
            )
        if name not in hints:
            raise KernelTypeError(
                f"the parameter '{name}' has no type",
                annotation_loc(fn, name),
                f"annotate it: {name}: Slice[f32] for an array, {name}: f32 for a number",
            )
        params.append(_param(fn, name, hints[name], p.default))
    returns = hints.get("return")
    if returns is not None and returns is not type(None):
        raise KernelTypeError(
            "a kernel returns nothing", annotation_loc(fn, "return"), "write the result to a DisjointSlice parameter"
        )
    return Signature(tuple(params), code_loc)


def _param(fn: types.FunctionType, name: str, a: Any, default: Any) -> ParamSpec:
    def bad(why: str, hint: str | None = None) -> KernelTypeError:
        return KernelTypeError(f"the parameter '{name}': {why}", annotation_loc(fn, name), hint)

    if isinstance(a, SliceOf):
        elem = a.elem if isinstance(a.elem, TypeVar) else _checked(a.elem, bad)
        return ParamSpec(name, a.kind, elem, a.rank, default)
    if isinstance(a, ConstOf):
        return ParamSpec(name, "const", a.type, 0, default)
    if isinstance(a, TypeVar):
        return ParamSpec(name, "scalar", a, 0, default)
    slices = {"Slice": "Slice[f32]", "DisjointSlice": "DisjointSlice[f32]", "AtomicSlice": "AtomicSlice[u32]"}
    shown = getattr(a, "__name__", "")
    if shown in slices:
        raise bad(f"{shown} does not say of what", f"write {slices[shown]}")
    if shown == "ndarray" or getattr(a, "__origin__", None).__class__.__name__ == "ndarray":
        raise bad("a NumPy array type does not say who may touch it", "write Slice[f32] or DisjointSlice[f32]")
    elem = _checked(a, bad)
    if is_enum(elem):
        return ParamSpec(name, "enum", elem, 0, default)
    kind: ParamKind = "scalar"
    if is_struct(elem) or not (isinstance(elem, ScalarType) or hasattr(elem, "__supertype__")):
        kind = "struct"
    return ParamSpec(name, kind, elem, 0, default)


def _checked(a: Any, bad: Any) -> Any:
    try:
        t = resolve(a, ir.I32)
    except NotAType as e:
        raise bad(str(e)) from None
    if isinstance(t, WitnessTy):
        raise bad("a ThreadIndex is made by the thread, not passed in", "call thread.index_1d() in the kernel")
    return a


def leaf_paths(name: str, t: Ty) -> list[tuple[str, ScalarTy]]:
    """The scalars that a by-value parameter is taken apart into: ``("camera.origin.x", f32)``, ..."""
    if isinstance(t, ScalarTy):
        return [(name, t)]
    if isinstance(t, StructTy):
        return [leaf for n, ft in t.fields for leaf in leaf_paths(f"{name}.{n}", ft)]
    if isinstance(t, VecTy):
        return [leaf for k in range(t.lanes) for leaf in leaf_paths(f"{name}.{'xyzw'[k]}", t.elem)]
    if isinstance(t, FixedTy):
        return [leaf for k in range(t.count) for leaf in leaf_paths(f"{name}.{k}", t.elem)]
    if isinstance(t, OptionTy):
        return [*leaf_paths(f"{name}.present", resolve_bool()), *leaf_paths(f"{name}.value", t.elem)]
    assert isinstance(t, TupleTy)
    names = t.cls._fields if t.cls else range(len(t.items))  # type: ignore[attr-defined]
    return [leaf for n, item in zip(names, t.items) for leaf in leaf_paths(f"{name}.{n}", item)]


def resolve_bool() -> ScalarTy:
    from .types import BOOL

    return BOOL
