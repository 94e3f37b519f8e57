"""Transposition of a matrix through shared memory, so that rows are read and rows are written."""

from __future__ import annotations

from typing import Any, Protocol, TypeVar

import gridwise as gw
from gridwise import DisjointSlice, Slice, barrier, thread

from .arrays import Like, empty_like

TILE = 32  # a tile is TILE by TILE elements, ROWS of them by a block at a time
ROWS = 8


class Element(Protocol):
    """Any element type."""


T = TypeVar("T", bound=Element)


@gw.kernel(domain=2, block=(TILE, ROWS))
def transpose_tiles(a: Slice[T, 2], out: DisjointSlice[T, 2]) -> None:
    x, y = thread.local_index(0), thread.local_index(1)
    left, top = thread.block_index(0) * TILE, thread.block_index(1) * TILE
    height, width = a.shape[0], a.shape[1]
    tile = gw.shared((TILE, TILE + 1), T)  # one column more: a column of the tile then lies in 32 banks
    if top + TILE <= height and left + TILE <= width:  # a whole tile: all loads are on their way before any store
        one = a[top + y, left + x]
        two = a[top + y + 8, left + x]
        three = a[top + y + 16, left + x]
        four = a[top + y + 24, left + x]
        tile[y, x] = one
        tile[y + 8, x] = two
        tile[y + 16, x] = three
        tile[y + 24, x] = four
    else:
        for j in gw.static(range(0, TILE, ROWS)):
            if top + y + j < height and left + x < width:
                tile[y + j, x] = a[top + y + j, left + x]
    barrier()
    for j in gw.static(range(0, TILE, ROWS)):
        if left + y + j < out.shape[0] and top + x < out.shape[1]:
            out[left + y + j, top + x] = tile[x, y + j]


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
    transpose_tiles(a, out, grid=(-(-width // TILE), -(-height // TILE)))
    return out
