"""Arrays of a launch, as one lane a thread sees them: addressing, bounds, loads, stores, atomics.

A ``Space`` is one array of one launch (or of one batch, for shared and local arrays). Its elements lie in plain
bytes; the element of a lane is at ``base[lane] + sum(index * stride)``, where ``base`` is 0 for global arrays, the
block's part for shared ones and the lane's part for local ones.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from gridwise.ir.types import ArrayType, Field, Scalar, Struct

from ..base import ArrayArg

if TYPE_CHECKING:
    from .shadow import Shadow

Array = np.ndarray[Any, Any]


@dataclass(frozen=True, eq=False)
class Member:
    """A scalar member of an array's element: where it lies, and the extra indices that reach it."""

    type: Scalar
    offset: int  # bytes from the element's start
    counts: tuple[tuple[int, int, str], ...]  # (count, bytes between, dotted name) of each fixed array on the way
    path: str  # ".origin.x", empty for a scalar element


def member(elem: Scalar | Struct, path: tuple[Field, ...]) -> Member:
    """Resolve the ``field`` attribute of an access."""
    if not path:
        assert isinstance(elem, Scalar), "load one scalar member at a time"
        return Member(elem, 0, (), "")
    offset, counts, name = 0, [], ""
    for f in path:
        offset += f.offset
        name += f".{f.name}"
        if f.count:
            counts.append((f.count, f.type.size, name))
    last = path[-1].type
    assert isinstance(last, Scalar), "load one scalar member at a time"
    return Member(last, offset, tuple(counts), name)


class Space:
    """One array: its bytes, shape and strides, and where each lane's part begins."""

    def __init__(
        self,
        name: str,
        type: ArrayType,
        data: Array,
        offset: int,
        shape: tuple[int, ...],
        strides: tuple[int, ...],
        base: Array | None = None,
        buffer: Any = None,
    ):
        self.name, self.type = name, type
        self.data = data  # uint8, flat
        self.offset = offset  # bytes
        self.shape, self.strides = shape, strides
        self.base = base  # elements, one a lane
        self.buffer = buffer  # of a global array
        self.shadow: Shadow | None = None  # set by the watch; a record for each ``unit`` bytes
        self.unit = 1
        self.written: Array | None = None  # 0xFF for each byte written so far; None if all are
        self.views: dict[Member, tuple[Array, int, int]] = {}
        self.bases: dict[int, Array] = {}  # ``base`` in elements of each size

    def view(self, m: Member) -> tuple[Array, int, int]:
        """(typed elements, elements to add, elements a unit of index) for one member."""
        if m not in self.views:
            size = m.type.size
            start = (self.offset + m.offset) % size
            usable = (self.data.size - start) // size * size
            dtype = np.dtype(np.uint8) if m.type.kind == "bool" else m.type.dtype
            typed = self.data[start : start + usable].view(dtype)
            self.views[m] = (typed, (self.offset + m.offset - start) // size, self.type.elem.size // size)
        return self.views[m]

    def place(self, m: Member, indices: list[Array], lanes: Array | None = None) -> Array:
        """The position in the typed view of the element of each lane (of ``lanes``, to which indices belong)."""
        _, add, scale = self.view(m)
        rank = self.type.rank
        factors = [stride * scale for stride in self.strides]
        factors += [step // m.type.size for _, step, _ in m.counts]
        at: Array | None = None
        for index, factor in zip(indices[: rank + len(m.counts)], factors, strict=True):
            term = np.multiply(index, np.int64(factor), dtype=np.int64, casting="unsafe")
            at = term if at is None else _sum(at, term)
        if self.base is not None:
            if scale not in self.bases:
                self.bases[scale] = self.base * scale
            base = self.bases[scale] if lanes is None else self.bases[scale][lanes]
            at = base if at is None else _sum(at, base)
        if at is None:
            return np.array([add], np.int64)
        return at if add == 0 else at + np.int64(add)


def _sum(a: Array, b: Array) -> Array:
    """``a + b``, in the place of ``a``, which nobody else has, if that is large enough."""
    return np.add(a, b, out=a) if a.shape[0] >= b.shape[0] else np.add(a, b)


def global_space(name: str, type: ArrayType, arg: ArrayArg) -> Space:
    """A kernel's array argument."""
    return Space(name, type, arg.buffer.handle, arg.offset, tuple(arg.shape), tuple(arg.strides), buffer=arg.buffer)


def private_shape(type: ArrayType, shared_bytes: int) -> tuple[int, ...]:
    """The extents of a shared or local array; a leading 0 is filled from the launch's ``shared_bytes``."""
    assert type.shape is not None
    if type.space == "shared" and type.shape and type.shape[0] == 0:
        rest = type.elem.size * prod(type.shape[1:])
        return (shared_bytes // rest if rest else 0, *type.shape[1:])
    return type.shape


def contiguous(shape: tuple[int, ...]) -> tuple[int, ...]:
    """C strides in elements."""
    return tuple(prod(shape[n + 1 :]) for n in range(len(shape)))


def private_space(name: str, type: ArrayType, shape: tuple[int, ...], copies: int, owner: Array) -> Space:
    """A zeroed array for each block (or lane); ``owner`` says which copy a lane has."""
    each = prod(shape)
    data = np.zeros(copies * each * type.elem.size, np.uint8)
    return Space(name, type, data, 0, shape, contiguous(shape), owner.astype(np.int64) * each)


def read(typed: Array, at: Array, type: Scalar) -> Array:
    """Elements at positions that are in range."""
    values: Array = typed[at]
    return values != 0 if type.kind == "bool" else values


def write(typed: Array, at: Array, values: Array) -> None:
    """Store; where two lanes meet, the later one stays."""
    typed[at] = values
