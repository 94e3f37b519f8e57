"""The types of IR values: scalars, tiles, arrays and variable slots.

Everything a kernel's author groups (structs, vectors, tuples, options) is taken apart by the frontend:
an IR value is one scalar. Only *memory* keeps a composite element type, as a C layout with byte offsets.
"""

from __future__ import annotations

import math
from typing import Literal

import numpy as np

from gridwise.lang.records import dataclass

Kind = Literal["bool", "int", "uint", "float"]


@dataclass(frozen=True, slots=True)
class Scalar:
    """A machine scalar. ``bits`` is the width of its values; a bool is stored as one byte."""

    name: str
    kind: Kind
    bits: int

    @property
    def size(self) -> int:
        """Bytes in memory."""
        return max(1, self.bits // 8)

    @property
    def is_int(self) -> bool:
        return self.kind in ("int", "uint")

    @property
    def is_float(self) -> bool:
        return self.kind == "float"

    @property
    def signed(self) -> bool:
        return self.kind == "int"

    @property
    def min(self) -> int:
        """Smallest value of an integer type."""
        return -(1 << (self.bits - 1)) if self.kind == "int" else 0

    @property
    def max(self) -> int:
        """Largest value of an integer type (1 for bool)."""
        return (1 << (self.bits - 1)) - 1 if self.kind == "int" else (1 << self.bits) - 1

    def wrap(self, value: int) -> int:
        """``value`` reduced to this integer type, two's complement."""
        value &= (1 << self.bits) - 1
        return value - (1 << self.bits) if self.kind == "int" and value > self.max else value

    @property
    def dtype(self) -> np.dtype:
        """The NumPy dtype of this scalar (``ml_dtypes`` supplies bf16 and fp8)."""
        if self.name in _ML_DTYPES:
            import ml_dtypes

            small: np.dtype = np.dtype(getattr(ml_dtypes, _ML_DTYPES[self.name]))
            return small
        return np.dtype(_NUMPY[self.name])

    def __str__(self) -> str:
        return self.name


BOOL = Scalar("bool", "bool", 1)
I8, I16, I32, I64 = (Scalar(f"i{b}", "int", b) for b in (8, 16, 32, 64))
U8, U16, U32, U64 = (Scalar(f"u{b}", "uint", b) for b in (8, 16, 32, 64))
F16, F32, F64 = (Scalar(f"f{b}", "float", b) for b in (16, 32, 64))
BF16 = Scalar("bf16", "float", 16)
F8E4M3 = Scalar("f8e4m3", "float", 8)
F8E5M2 = Scalar("f8e5m2", "float", 8)

SIGNED = (I8, I16, I32, I64)
UNSIGNED = (U8, U16, U32, U64)
INTEGERS = SIGNED + UNSIGNED
FLOATS = (F16, BF16, F32, F64)
STORAGE_ONLY = (F8E4M3, F8E5M2)
SCALARS = {t.name: t for t in (BOOL, *INTEGERS, *FLOATS, *STORAGE_ONLY)}

_NUMPY = {"bool": "bool", "f16": "float16", "f32": "float32", "f64": "float64"}
_NUMPY |= {t.name: ("int" if t.signed else "uint") + str(t.bits) for t in INTEGERS}
_ML_DTYPES = {"bf16": "bfloat16", "f8e4m3": "float8_e4m3fn", "f8e5m2": "float8_e5m2"}


def from_dtype(dtype: np.dtype | type | str) -> Scalar | None:
    """The scalar that a NumPy dtype stands for, or None."""
    dt = np.dtype(dtype)
    if dt.names or dt.subdtype or not dt.isnative:
        return None
    for name, numpy_name in _NUMPY.items():
        if dt == np.dtype(numpy_name):
            return SCALARS[name]
    for name, ml_name in _ML_DTYPES.items():
        if dt.name == ml_name:
            return SCALARS[name]
    return None


def extent_limit(index: Scalar) -> int:
    """The largest array extent, and the most threads along an axis of the grid, of a kernel with this index type.

    2**30 for I32, 2**62 for I64: the launch specialises to I64 above it. With a bit to spare, the sum of an index
    and a stride of the grid cannot wrap, so that common loops need no wider arithmetic to be proved safe.
    """
    return 1 << (index.bits - 2)


@dataclass(frozen=True, slots=True)
class Field:
    """One member of a struct in memory. ``count`` > 0 makes it a fixed array of that many elements."""

    name: str
    type: Scalar | Struct
    offset: int
    count: int = 0


@dataclass(frozen=True, slots=True)
class Struct:
    """A C layout: offsets, size and alignment in bytes, equal to ``numpy.dtype(align=True)``."""

    name: str
    fields: tuple[Field, ...]
    size: int
    align: int

    @property
    def dtype(self) -> np.dtype:
        formats = [np.dtype((f.type.dtype, (f.count,))) if f.count else f.type.dtype for f in self.fields]
        return np.dtype(
            {
                "names": [f.name for f in self.fields],
                "formats": formats,
                "offsets": [f.offset for f in self.fields],
                "itemsize": self.size,
                "aligned": True,
            }
        )

    def __str__(self) -> str:
        return self.name


def alignment(t: Scalar | Struct) -> int:
    return t.align if isinstance(t, Struct) else t.size


def layout(name: str, members: list[tuple[str, Scalar | Struct, int]]) -> Struct:
    """Lay out ``(name, type, count)`` members by the C rules."""
    fields, offset, align = [], 0, 1
    for member, t, count in members:
        a = alignment(t)
        offset = -(-offset // a) * a
        fields.append(Field(member, t, offset, count))
        offset += t.size * max(1, count)
        align = max(align, a)
    return Struct(name, tuple(fields), -(-offset // align) * align, align)


Space = Literal["global", "shared", "local"]
Access = Literal["read", "disjoint", "atomic"]


@dataclass(frozen=True, slots=True)
class ArrayType:
    """An array in memory.

    space   global (a parameter), shared (one a block) or local (one a thread).
    access  what the program may do: ``read``; ``disjoint`` (read and write, proved race-free);
            ``atomic`` (atomic operations only). Shared arrays are ``disjoint`` but admit atomics too.
    index   I32 or I64: the type of its dimensions, strides and indices.
    shape   static extents of shared and local arrays; None for parameters. A shared array whose first
            extent is 0 takes that extent from the launch (``shared_bytes``).
    strided True if the strides (in elements) are run-time values; False means C-contiguous.
    tile    of a parameter that is a partition: the shape of the piece each block of a tile kernel owns.
    """

    elem: Scalar | Struct
    rank: int
    space: Space = "global"
    access: Access = "read"
    index: Scalar = I32
    shape: tuple[int, ...] | None = None
    strided: bool = False
    tile: tuple[int, ...] | None = None

    def __str__(self) -> str:
        dims = "x".join(map(str, self.shape)) if self.shape is not None else "x".join("?" * self.rank)
        return f"{self.space}<{dims}x{self.elem}, {self.access}{', strided' if self.strided else ''}>"


@dataclass(frozen=True, slots=True)
class TileType:
    """A whole tile as a value, of static shape (rank >= 1, any sides >= 1); only in tile kernels."""

    elem: Scalar
    shape: tuple[int, ...]

    @property
    def rank(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        """Elements."""
        return math.prod(self.shape)

    def __str__(self) -> str:
        return f"tile<{'x'.join(map(str, self.shape))}x{self.elem}>"


@dataclass(frozen=True, slots=True)
class VarType:
    """A mutable slot of one scalar (or tile), private to a thread: what a Python local name becomes."""

    elem: Scalar | TileType

    @property
    def scalar(self) -> Scalar:
        """The slot's type where tiles are no more: after ``passes/tile``, and in every kernel of threads."""
        assert isinstance(self.elem, Scalar)
        return self.elem

    def __str__(self) -> str:
        return f"var<{self.elem}>"


@dataclass(frozen=True, slots=True)
class VectorType:
    """``lanes`` scalars that are loaded or stored together; made only by the vectorise pass."""

    elem: Scalar
    lanes: int

    def __str__(self) -> str:
        return f"{self.elem}x{self.lanes}"


Type = Scalar | TileType | ArrayType | VarType | VectorType
