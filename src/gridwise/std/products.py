"""The matrix product of f32, tile by tile through shared memory: each thread computes a 4 x 4 piece of the result."""

from __future__ import annotations

from typing import Any

import gridwise as gw
from gridwise import DisjointSlice, Slice, barrier, f32, thread

from .arrays import Like, empty_like

SIDE = 16  # threads of a block along each axis
PIECE = 4  # elements a thread, along each axis, SIDE apart
TILE = SIDE * PIECE
DEPTH = 16  # of the inner dimension, at a time


@gw.kernel(domain=2, block=(SIDE, SIDE))
def _matmul(a: Slice[f32, 2], b: Slice[f32, 2], c: DisjointSlice[f32, 2]) -> None:
    tx, ty = thread.local_index(0), thread.local_index(1)
    top, left = thread.block_index(1) * TILE, thread.block_index(0) * TILE
    left_tile = gw.shared((TILE, DEPTH + 1), f32)  # one more column: no two rows start in one bank
    right_tile = gw.shared((DEPTH, TILE), f32)
    total = gw.local((PIECE, PIECE), f32)
    for start in range(0, a.shape[1], DEPTH):
        k = start + tx
        for p in gw.static(range(PIECE)):
            row = top + ty + SIDE * p
            left_tile[ty + SIDE * p, tx] = a[row, k] if row < a.shape[0] and k < a.shape[1] else 0.0
        deep = start + ty
        for p in gw.static(range(PIECE)):
            col = left + tx + SIDE * p
            right_tile[ty, tx + SIDE * p] = b[deep, col] if deep < b.shape[0] and col < b.shape[1] else 0.0
        barrier()
        for d in gw.static(range(DEPTH)):
            for p in gw.static(range(PIECE)):
                x = left_tile[ty + SIDE * p, d]
                for q in gw.static(range(PIECE)):
                    total[p, q] += x * right_tile[d, tx + SIDE * q]
        barrier()
    for p in gw.static(range(PIECE)):
        for q in gw.static(range(PIECE)):
            row, col = top + ty + SIDE * p, left + tx + SIDE * q
            if row < c.shape[0] and col < c.shape[1]:
                c[row, col] = total[p, q]


def matmul(a: Like, b: Like, out: Like | None = None) -> Any:
    """The product of an (m, k) and a (k, n) matrix of f32: (m, n).

    Products are summed in f32 in the order of k, fused or not as the device does it.
    Raises ValueError where the shapes do not fit.
    """
    if len(a.shape) != 2 or len(b.shape) != 2 or a.shape[1] != b.shape[0]:
        raise ValueError(f"matrices of shapes {tuple(a.shape)} and {tuple(b.shape)} have no product")
    c = empty_like(a, a.shape[0], b.shape[1]) if out is None else out
    if tuple(c.shape) != (a.shape[0], b.shape[1]):
        raise ValueError(f"out must have the shape {(a.shape[0], b.shape[1])}, not {tuple(c.shape)}")
    if c.size:
        _matmul(a, b, c, grid=(-(-c.shape[1] // TILE), -(-c.shape[0] // TILE)))
    return c
