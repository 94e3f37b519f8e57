"""``vec2``, ``vec3`` and ``vec4`` values outside kernels: small, immutable, elementwise."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from .records import replace
from .types import VectorOf


class Vector:
    """Lanes x, y, z, w of one NumPy scalar type; ``+ - * /`` work lane by lane and with a scalar."""

    __slots__ = ("items", "type")

    def __init__(self, type: VectorOf, items: tuple[Any, ...]):
        self.type, self.items = type, items

    @staticmethod
    def of(type: VectorOf, values: tuple[Any, ...]) -> Vector:
        """Make one from ``type.lanes`` values, vectors flattened, or from one value for every lane."""
        flat = [x for v in values for x in (v.items if isinstance(v, Vector) else (v,))]
        if len(flat) == 1:
            flat *= type.lanes
        if len(flat) != type.lanes:
            raise TypeError(f"vec{type.lanes} takes {type.lanes} values, or one for every lane, not {len(flat)}")
        if type.elem is None:
            from .types import SCALARS, f32, i32

            dtype = np.result_type(*(v for v in flat))
            weak = all(isinstance(v, int | float) for v in flat)
            by_dtype = {t.dtype: t for t in SCALARS.values() if t.kind == dtype.kind or t.dtype == dtype}
            elem = (f32 if any(isinstance(v, float) for v in flat) else i32) if weak else by_dtype.get(dtype, f32)
            type = replace(type, elem=elem)
        return Vector(type, tuple(type.elem(v) for v in flat))

    def __getattr__(self, name: str) -> Any:
        lanes = "xyzw"[: self.type.lanes]
        if name and all(c in lanes for c in name) and len(name) <= 4:
            picked = tuple(self.items[lanes.index(c)] for c in name)
            return picked[0] if len(picked) == 1 else Vector(VectorOf(self.type.elem, len(picked)), picked)
        raise AttributeError(f"{self.type!r} has no attribute {name!r}")

    def __getitem__(self, k: int) -> Any:
        return self.items[k]

    def __iter__(self) -> Iterator[Any]:
        return iter(self.items)

    def __len__(self) -> int:
        return len(self.items)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        return np.array(self.items, dtype or self.type.elem.dtype)

    def _with(self, other: Any, fn: Callable[[Any, Any], Any], swap: bool = False) -> Vector:
        others = other.items if isinstance(other, Vector) else (other,) * len(self.items)
        with np.errstate(all="ignore"):
            out = tuple(fn(b, a) if swap else fn(a, b) for a, b in zip(self.items, others, strict=True))
        return Vector.of(replace(self.type, elem=None) if isinstance(out[0], np.generic) else self.type, out)

    def __add__(self, other: Any) -> Vector:
        return self._with(other, operator.add)

    def __radd__(self, other: Any) -> Vector:
        return self._with(other, operator.add, True)

    def __sub__(self, other: Any) -> Vector:
        return self._with(other, operator.sub)

    def __rsub__(self, other: Any) -> Vector:
        return self._with(other, operator.sub, True)

    def __mul__(self, other: Any) -> Vector:
        return self._with(other, operator.mul)

    def __rmul__(self, other: Any) -> Vector:
        return self._with(other, operator.mul, True)

    def __truediv__(self, other: Any) -> Vector:
        return self._with(other, operator.truediv)

    def __rtruediv__(self, other: Any) -> Vector:
        return self._with(other, operator.truediv, True)

    def __neg__(self) -> Vector:
        return Vector(self.type, tuple(-v for v in self.items))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Vector) and self.items == other.items

    def __hash__(self) -> int:
        return hash(self.items)

    def sum(self) -> Any:
        total = self.items[0]
        for v in self.items[1:]:
            total = total + v
        return total

    def dot(self, other: Vector) -> Any:
        return (self * other).sum()

    def cross(self, other: Vector) -> Vector:
        a, b = self.items, other.items
        pairs = ((1, 2), (2, 0), (0, 1))
        return Vector(self.type, tuple(a[i] * b[j] - a[j] * b[i] for i, j in pairs))

    def length(self) -> Any:
        return np.sqrt(self.dot(self))

    def normalized(self) -> Vector:
        return self._with(self.length(), operator.truediv)

    def __repr__(self) -> str:
        return f"{self.type!r}({', '.join(map(str, self.items))})"
