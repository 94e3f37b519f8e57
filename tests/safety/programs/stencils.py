"""Stencils, halos and images: what neighbours share, in shared memory and in place."""

import numpy as np
from catalogue import FAULT, floats, program, zeros

import gridwise as gw
from gridwise import Const, DisjointSlice, Slice, barrier, f32, i32, thread, u8


@program("missing barrier in a stencil with a wide halo", lambda: (floats(512), zeros(512)))
def wide_halo(a: Slice[f32], c: DisjointSlice[f32], BAD: Const[bool]):
    s = gw.shared((264,), f32)
    t, i = thread.local_index(), thread.global_index()
    s[t + 4] = a[i] if i < len(a) else 0.0
    if t < 4:
        s[t] = a[i - 4] if i >= 4 and i - 4 < len(a) else 0.0
        s[t + 260] = a[i + 256] if i + 256 < len(a) else 0.0
    if not BAD:
        barrier()
    total = f32(0)
    for k in range(9):
        total += s[t + k]
    if i < len(c):
        c[i] = total


@program("halo loaded by one thread too many", lambda: (floats(512), zeros(512)))
def halo_thread_too_many(a: Slice[f32], c: DisjointSlice[f32], BAD: Const[bool]):
    s = gw.shared((260,), f32)
    t, i = thread.local_index(), thread.global_index()
    s[t + 2] = a[i] if i < len(a) else 0.0
    if t < (3 if BAD else 2):
        s[t] = a[i - 2] if i >= 2 and i - 2 < len(a) else 0.0
    if t >= 254:
        s[t + 4] = 0.0
    barrier()
    if i < len(c):
        c[i] = s[t] + s[t + 4]


@program("right halo one element to the left", lambda: (floats(512), zeros(512)))
def right_halo_left(a: Slice[f32], c: DisjointSlice[f32], BAD: Const[bool]):
    s = gw.shared((260,), f32)
    t, i = thread.local_index(), thread.global_index()
    s[t + 2] = a[i] if i < len(a) else 0.0
    if t < 2:
        s[t] = 0.0
        s[t + (257 if BAD else 258)] = a[i + 256] if i + 256 < len(a) else 0.0
    barrier()
    if i < len(c):
        c[i] = s[t] + s[t + 4]


@program("halo of a tile in two dimensions without a barrier", lambda: (floats(32, 32), zeros(32, 32)), block=(16, 16),
         domain=2, grid=(2, 2))
def tile_with_halo(a: Slice[f32, 2], c: DisjointSlice[f32, 2], BAD: Const[bool]):
    s = gw.shared((18, 18), f32)
    y, x = thread.local_index(1), thread.local_index(0)
    row, col = thread.index_2d()
    s[y + 1, x + 1] = a[row, col] if row < a.shape[0] and col < a.shape[1] else 0.0
    if y == 0:
        s[0, x + 1] = 0.0
    if y == 15:
        s[17, x + 1] = 0.0
    if x == 0:
        s[y + 1, 0] = 0.0
    if x == 15:
        s[y + 1, 17] = 0.0
    if not BAD:
        barrier()
    if row < c.shape[0] and col < c.shape[1]:
        c[row, col] = s[y, x + 1] + s[y + 2, x + 1] + s[y + 1, x] + s[y + 1, x + 2]


@program("upper row of a halo written over the tile", lambda: (floats(32, 32), zeros(32, 32)), block=(16, 16),
         domain=2, grid=(2, 2))
def halo_row_inside(a: Slice[f32, 2], c: DisjointSlice[f32, 2], BAD: Const[bool]):
    s = gw.shared((18, 16), f32)
    y, x = thread.local_index(1), thread.local_index(0)
    row, col = thread.index_2d()
    s[y + 1, x] = a[row, col] if row < a.shape[0] and col < a.shape[1] else 0.0
    if y == 0:
        s[1 if BAD else 0, 15 - x] = 0.0
        s[17, x] = 0.0
    barrier()
    if row < c.shape[0] and col < c.shape[1]:
        c[row, col] = s[y, x] + s[y + 2, x]


@program("corner of a halo written by a whole row", lambda: (zeros(32, 32),), block=(16, 16), domain=2, grid=(2, 2))
def halo_corner(c: DisjointSlice[f32, 2], BAD: Const[bool]):
    s = gw.shared((17, 17), f32)
    y, x = thread.local_index(1), thread.local_index(0)
    row, col = thread.index_2d()
    s[y, x] = f32(col)
    if x == 15:
        s[y, 16] = f32(row)
    if y == 15:
        s[16, x] = f32(col)
    if y == 15 and (BAD or x == 15):
        s[16, 16] = f32(x)
    barrier()
    if row < c.shape[0] and col < c.shape[1]:
        c[row, col] = s[y + 1, x + 1]


@program("five-point stencil in place", lambda: (floats(32, 32), zeros(32, 32)), block=(16, 16), domain=2, grid=(2, 2))
def five_points_in_place(a: Slice[f32, 2], c: DisjointSlice[f32, 2], BAD: Const[bool]):
    row, col = thread.index_2d()
    if row >= 1 and row + 1 < c.shape[0] and col < c.shape[1]:
        if BAD:
            c[row, col] = c[row - 1, col] + c[row + 1, col]
        elif row + 1 < a.shape[0] and col < a.shape[1]:
            c[row, col] = a[row - 1, col] + a[row + 1, col]


@program("checkerboard with both colours at once", lambda: (floats(32, 32), 0), block=(16, 16), domain=2, grid=(2, 2))
def checkerboard(c: DisjointSlice[f32, 2], colour: i32, BAD: Const[bool]):
    row, col = thread.index_2d()
    if row < c.shape[0] and col >= 1 and col + 1 < c.shape[1] and (BAD or (row + col) & 1 == colour & 1):
        c[row, col] = c[row, col - 1] + c[row, col + 1]


@program("upwind step in place", lambda: (floats(512), zeros(512)))
def upwind(a: Slice[f32], c: DisjointSlice[f32], BAD: Const[bool]):
    i = int(thread.index_1d())
    if i >= 1 and i < len(c) and i < len(a):
        if BAD:
            c[i] -= c[i - 1]
        else:
            c[i] -= a[i - 1]


@program("steps of a stencil with one buffer", lambda: (floats(512), 4))
def steps_in_one_buffer(c: DisjointSlice[f32], steps: i32, BAD: Const[bool]):
    s = gw.shared((256,), f32)
    t, i = thread.local_index(), thread.global_index()
    s[t] = c[i] if i < len(c) else 0.0
    barrier()
    for _ in range(steps):
        x = s[(t + 1) & 255] + s[(t + 255) & 255]
        if not BAD:
            barrier()
        s[t] = x
        barrier()
    if i < len(c):
        c[i] = s[t]


@program("both directions of a separable blur without a barrier between", lambda: (floats(32, 32), zeros(32, 32)),
         block=(16, 16), domain=2, grid=(2, 2))
def separable(a: Slice[f32, 2], c: DisjointSlice[f32, 2], BAD: Const[bool]):
    u, v = gw.shared((16, 16), f32), gw.shared((16, 16), f32)
    y, x = thread.local_index(1), thread.local_index(0)
    row, col = thread.index_2d()
    u[y, x] = a[row, col] if row < a.shape[0] and col < a.shape[1] else 0.0
    barrier()
    v[y, x] = u[y, x] + u[y, (x + 1) & 15]
    if not BAD:
        barrier()
    if row < c.shape[0] and col < c.shape[1]:
        c[row, col] = v[y, x] + v[(y + 1) & 15, x]


@program("blur that reads the column past the edge", lambda: (floats(20, 20), zeros(20, 20)), fault=FAULT,
         block=(16, 16), domain=2, grid=(2, 2))
def past_the_edge(a: Slice[f32, 2], c: DisjointSlice[f32, 2], BAD: Const[bool]):
    row, col = thread.index_2d()
    if row < c.shape[0] and col < c.shape[1] and row < a.shape[0] and (BAD or col + 1 < a.shape[1]):
        c[row, col] = a[row, col + 1]


@program("wrap-around at the edge without the length", lambda: (floats(512), zeros(512)), fault=FAULT)
def periodic(a: Slice[f32], c: DisjointSlice[f32], BAD: Const[bool]):
    i = int(thread.index_1d())
    if i < len(c) and i < len(a):
        left = i - 1
        if not BAD and left < 0:
            left = len(a) - 1
        c[i] = a[left]


@program("pixel written with its neighbour's channel", lambda: (zeros(16, 48, dtype="uint8"),), block=(16, 16),
         domain=2, grid=(1, 1))
def channel_of_the_neighbour(c: DisjointSlice[u8, 2], BAD: Const[bool]):
    row, col = thread.index_2d()
    if row < c.shape[0] and 3 * col + 3 < c.shape[1]:
        c[row, 3 * col] = 1
        c[row, 3 * col + 1] = 2
        c[row, 3 * col + (3 if BAD else 2)] = 3


@program("image shrunk by a factor that does not match", lambda: (floats(1024), zeros(512)), fault=FAULT)
def shrunk(a: Slice[f32], c: DisjointSlice[f32], BAD: Const[bool]):
    i = int(thread.index_1d())
    if i < len(c) and (i < len(a) if BAD else 3 * i < len(a)):
        c[i] = a[3 * i]


@program("image enlarged with one pixel too many", lambda: (floats(512), zeros(1025)))
def enlarged(a: Slice[f32], c: DisjointSlice[f32], BAD: Const[bool]):
    i = int(thread.index_1d())
    if i < len(a):
        for k in range(3 if BAD else 2):
            if 2 * i + k < len(c):
                c[2 * i + k] = a[i]


@program("mirror of an image written by the whole image", lambda: (floats(32, 32),), block=(16, 16), domain=2,
         grid=(2, 2))
def mirrored(c: DisjointSlice[f32, 2], BAD: Const[bool]):
    row, col = thread.index_2d()
    other = c.shape[1] - 1 - col
    if row < c.shape[0] and other >= 0 and (BAD or col < other):
        x, y = c[row, col], c[row, other]
        c[row, col] = y
        c[row, other] = x


@program("table of weights filled in the interval in which it is used", lambda: (floats(512), zeros(512)))
def weights(a: Slice[f32], c: DisjointSlice[f32], BAD: Const[bool]):
    w = gw.shared((8,), f32)
    t, i = thread.local_index(), thread.global_index()
    if t < 8:
        w[t] = f32(t)
    if not BAD:
        barrier()
    total = f32(0)
    for k in range(8):
        if i + k < len(a):
            total += w[k] * a[i + k]
    if i < len(c):
        c[i] = total


@program("neighbour taken from an array of indices", lambda: (np.full(512, 512, np.int32), floats(512), zeros(512)),
         fault=FAULT)
def neighbours(index: Slice[i32], a: Slice[f32], c: DisjointSlice[f32], BAD: Const[bool]):
    i = int(thread.index_1d())
    if i < len(index) and i < len(c):
        j = index[i]
        if j >= 0 and (j <= len(a) if BAD else j < len(a)):
            c[i] = a[j]
