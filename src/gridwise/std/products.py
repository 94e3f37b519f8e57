"""The matrix product of f32, tile by tile through shared memory.

On a GPU each thread computes a 4 x 4 piece of the result. On a CPU, where the threads of a row are vector lanes, a
thread computes as many elements of its columns as the vector registers hold; the tile of the left matrix stays in
the second-level cache and a panel of the right one in the first (Goto and van de Geijn, "Anatomy of High-Performance
Matrix Multiplication", ACM TOMS 34, 2008).
"""

from __future__ import annotations

from typing import Any

import gridwise as gw
from gridwise import Const, DisjointSlice, Slice, barrier, f32, thread
from gridwise.devices.cpu import CpuDevice

from .arrays import Like, device_of, empty_like

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


LINE = 16  # threads along x on a CPU: a vector, or two
DEEP = 256  # of the inner dimension, at a time


def _shape(at: dict[str, Any]) -> dict[str, Any]:
    """Sums in most of the registers, and tiles no larger than the matrices need."""
    device, c = device_of(at["a"]), at["c"]
    many = isinstance(device, CpuDevice) and device.machine.registers >= 32
    large = c.shape[0] >= 256 and c.shape[1] >= 256
    return _SHAPES[2 * (not many) + (not large)]


def _configuration(rows: int, vectors: int, gangs: int, panels: int) -> dict[str, Any]:
    return {"block": (LINE, gangs), "ROWS": rows, "VECTORS": vectors, "PANELS": panels, "GANGS": gangs}


# For many registers and large matrices; for smaller ones; for few registers, likewise. The rest is for tuning.
_SHAPES = [
    _configuration(12, 2, 16, 16),
    _configuration(12, 2, 4, 4),
    _configuration(6, 1, 16, 32),
    _configuration(6, 1, 4, 8),
    _configuration(12, 2, 8, 8),
    _configuration(8, 3, 16, 8),
    _configuration(6, 2, 16, 16),
]


@gw.tune(
    configs=_SHAPES,
    key=["a", "c"],
    grid=lambda at: (
        -(-at["c"].shape[1] // (LINE * at["VECTORS"] * at["PANELS"])),
        -(-at["c"].shape[0] // (at["ROWS"] * at["GANGS"])),
    ),
    asked=True,
    default=_shape,
)
@gw.kernel(domain=2, block=(LINE, 16))
def matmul_lanes(
    a: Slice[f32, 2], b: Slice[f32, 2], c: DisjointSlice[f32, 2],
    ROWS: Const[int], VECTORS: Const[int], PANELS: Const[int], GANGS: Const[int],
) -> None:  # fmt: skip
    """For a CPU, whose block has GANGS rows of LINE threads."""
    x, y = thread.local_index(0), thread.local_index(1)
    top, left = thread.block_index(1) * (ROWS * GANGS), thread.block_index(0) * (LINE * VECTORS * PANELS)
    mine = y * ROWS  # this thread's first row of the tile
    left_tile = gw.shared((ROWS * GANGS, DEEP + LINE), f32)  # a line more: rows begin in different cache sets
    right_tile = gw.shared((PANELS, DEEP, LINE * VECTORS), f32)
    total = gw.local((ROWS, VECTORS), f32)
    whole = top + ROWS * GANGS <= c.shape[0] and left + LINE * VECTORS * PANELS <= c.shape[1]
    for start in range(0, a.shape[1], DEEP):
        if top + ROWS * GANGS <= a.shape[0] and start + DEEP <= a.shape[1]:
            for r in range(ROWS):
                for s in gw.unroll(range(0, DEEP, LINE)):
                    left_tile[mine + r, s + x] = a[top + mine + r, start + s + x]
        else:
            for r in range(ROWS):
                row = top + mine + r
                for k in range(x, DEEP, LINE):
                    inside = row < a.shape[0] and start + k < a.shape[1]
                    left_tile[mine + r, k] = a[row, start + k] if inside else 0.0
        if left + LINE * VECTORS * PANELS <= b.shape[1] and start + DEEP <= b.shape[0]:
            for k in range(y, DEEP, GANGS):
                for p in gw.unroll(range(PANELS)):
                    for v in gw.unroll(range(VECTORS)):
                        right_tile[p, k, v * LINE + x] = b[start + k, left + (p * VECTORS + v) * LINE + x]
        else:
            for k in range(y, DEEP, GANGS):
                for p in range(PANELS):
                    for v in gw.unroll(range(VECTORS)):
                        col = left + (p * VECTORS + v) * LINE + x
                        inside = start + k < b.shape[0] and col < b.shape[1]
                        right_tile[p, k, v * LINE + x] = b[start + k, col] if inside else 0.0
        barrier()
        deep = min(DEEP, a.shape[1] - start)
        for p in range(PANELS):
            if top + mine < c.shape[0] and left + p * (VECTORS * LINE) < c.shape[1]:
                for r in gw.unroll(range(ROWS)):
                    for v in gw.unroll(range(VECTORS)):
                        total[r, v] = 0.0
                for k in range(deep):
                    for r in gw.unroll(range(ROWS)):
                        for v in gw.unroll(range(VECTORS)):
                            total[r, v] += left_tile[mine + r, k] * right_tile[p, k, v * LINE + x]
                if whole:
                    for r in gw.unroll(range(ROWS)):
                        for v in gw.unroll(range(VECTORS)):
                            row, col = top + mine + r, left + (p * VECTORS + v) * LINE + x
                            c[row, col] = total[r, v] if start == 0 else c[row, col] + total[r, v]
                else:
                    for r in range(ROWS):
                        for v in range(VECTORS):
                            row, col = top + mine + r, left + (p * VECTORS + v) * LINE + x
                            if row < c.shape[0] and col < c.shape[1]:
                                c[row, col] = total[r, v] if start == 0 else c[row, col] + total[r, v]
            barrier()  # the panel stays in the cache until every row of threads has used it


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
    device = device_of(a)
    if c.size and a.shape[1] and isinstance(device, CpuDevice):
        matmul_lanes(a, b, c)
    elif c.size:
        _matmul(a, b, c, grid=(-(-c.shape[1] // TILE), -(-c.shape[0] // TILE)))
    return c
