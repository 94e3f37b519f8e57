"""The array annotations of kernel parameters: they say who may touch what.

``Slice`` is read-only and seen by every thread. ``DisjointSlice`` is mutable, and no element is touched by two
threads between barriers. ``AtomicSlice`` is mutable and shared: only ``atomic.*`` touches it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar

from .records import dataclass

T = TypeVar("T")
SliceKind = Literal["slice", "disjoint", "atomic"]
NAMES: dict[str, str] = {"slice": "Slice", "disjoint": "DisjointSlice", "atomic": "AtomicSlice"}


@dataclass(frozen=True)
class SliceOf:
    """An array annotation: its kind, element type (a lang type, struct, enum or TypeVar) and rank."""

    kind: SliceKind
    elem: Any
    rank: int

    def __repr__(self) -> str:
        elem = getattr(self.elem, "__name__", repr(self.elem))
        return f"{NAMES[self.kind]}[{elem}{f', {self.rank}' if self.rank != 1 else ''}]"


def _annotation(kind: SliceKind, params: Any) -> SliceOf:
    elem, rank = params if isinstance(params, tuple) and len(params) == 2 else (params, 1)
    if isinstance(params, tuple) and len(params) != 2:
        raise TypeError(f"{NAMES[kind]} takes an element type and a rank: {NAMES[kind]}[f32, 2]")
    if not isinstance(rank, int) or not 1 <= rank <= 8:
        raise TypeError(f"the rank of a {NAMES[kind]} is a number from 1 to 8, not {rank!r}")
    return SliceOf(kind, elem, rank)


if TYPE_CHECKING:

    class Slice(Generic[T]):
        """A read-only array, seen by every thread."""

        shape: tuple[int, ...]
        size: int
        ndim: int
        dtype: Any

        def __getitem__(self, i: Any) -> Any: ...
        def __len__(self) -> int: ...
        def __contains__(self, i: object) -> bool: ...

    class DisjointSlice(Slice[T]):
        """A mutable array; no element is touched by two threads between barriers."""

        def __setitem__(self, i: Any, value: Any) -> None: ...

    class AtomicSlice(Slice[T]):
        """A mutable array that every thread may touch, by ``atomic.*`` only."""

else:

    class Slice:
        """``Slice[T]``, ``Slice[T, rank]``: a read-only array, seen by every thread."""

        def __class_getitem__(cls, params: Any) -> SliceOf:
            return _annotation("slice", params)

    class DisjointSlice:
        """``DisjointSlice[T]``: mutable; no element is touched by two threads between barriers."""

        def __class_getitem__(cls, params: Any) -> SliceOf:
            return _annotation("disjoint", params)

    class AtomicSlice:
        """``AtomicSlice[T]``: mutable and shared; only ``atomic.*`` operations touch it."""

        def __class_getitem__(cls, params: Any) -> SliceOf:
            return _annotation("atomic", params)
