"""Transposition of a matrix through shared memory, so that rows are read and rows are written."""

from __future__ import annotations

from typing import Any, Protocol, TypeVar

import numpy as np

import gridwise as gw
from gridwise import Const, DisjointSlice, Slice, barrier, thread

from .arrays import Like, device_of, empty_like

WIDE, HIGH = 32, 8  # threads of a block
# Elements of a tile's side. The larger moves 256 bytes of a row at a time, in more shared memory than every device has.
SIDE, LARGE_SIDE = 32, 64


class Element(Protocol):
    """Any element type."""


T = TypeVar("T", bound=Element)


def _tile(at: dict[str, Any]) -> dict[str, int]:
    """Where nothing was measured."""
    a = at["a"]
    large = device_of(a).kind == "cuda" and np.dtype(a.dtype).itemsize <= 8 and min(a.shape) >= LARGE_SIDE
    return {"TILE": LARGE_SIDE if large else SIDE}


@gw.tune(
    configs=[{"TILE": SIDE}, {"TILE": LARGE_SIDE}],
    key=["a"],
    grid=lambda at: (-(-at["a"].shape[1] // at["TILE"]), -(-at["a"].shape[0] // at["TILE"])),
    asked=True,
    default=_tile,
)
@gw.kernel(domain=2, block=(WIDE, HIGH))
def transpose_tiles(a: Slice[T, 2], out: DisjointSlice[T, 2], TILE: Const[int]) -> None:
    x, y = thread.local_index(0), thread.local_index(1)
    left, top = thread.block_index(0) * TILE, thread.block_index(1) * TILE
    height, width = a.shape[0], a.shape[1]
    tile = gw.shared((TILE, TILE + 1), T)  # one column more: a column of the tile then lies in 32 banks
    if top + TILE <= height and left + TILE <= width:  # a whole tile: all loads are on their way before any store
        mine = gw.local((TILE // HIGH, TILE // WIDE), T)
        for j in gw.static(range(TILE // HIGH)):
            for k in gw.static(range(TILE // WIDE)):
                mine[j, k] = a[top + y + HIGH * j, left + x + WIDE * k]
        for j in gw.static(range(TILE // HIGH)):
            for k in gw.static(range(TILE // WIDE)):
                tile[y + HIGH * j, x + WIDE * k] = mine[j, k]
    else:
        for j in gw.static(range(0, TILE, HIGH)):
            for k in gw.static(range(0, TILE, WIDE)):
                if top + y + j < height and left + x + k < width:
                    tile[y + j, x + k] = a[top + y + j, left + x + k]
    barrier()
    if left + TILE <= out.shape[0] and top + TILE <= out.shape[1]:
        for j in gw.static(range(0, TILE, HIGH)):
            for k in gw.static(range(0, TILE, WIDE)):
                out[left + y + j, top + x + k] = tile[x + k, y + j]
    else:
        for j in gw.static(range(0, TILE, HIGH)):
            for k in gw.static(range(0, TILE, WIDE)):
                if left + y + j < out.shape[0] and top + x + k < out.shape[1]:
                    out[left + y + j, top + x + k] = tile[x + k, y + j]


def transpose(a: Like, out: Like | None = None) -> Any:
    """The transpose of a matrix, as a new contiguous array (or in ``out``, of shape (columns, rows)).

    ``a`` has two axes; a view is taken as it is. For a view without a copy use ``a.T`` (NumPy) or ``a.transpose()``.
    Raises ValueError for another number of axes, LaunchError if ``out`` overlaps ``a``.
    """
    if len(a.shape) != 2:
        raise ValueError(f"transpose takes a matrix, not an array of {len(a.shape)} axes")
    height, width = a.shape
    if out is None:
        out = empty_like(a, width, height)
    elif tuple(out.shape) != (width, height):
        raise ValueError(f"the transpose of {tuple(a.shape)} has shape {(width, height)}, not {tuple(out.shape)}")
    transpose_tiles(a, out)
    return out
