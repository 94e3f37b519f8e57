"""Flat indices, strides and integers: layouts in which two threads meet, and arithmetic that wraps."""

from catalogue import FAULT, floats, ints, program, zeros

import gridwise as gw
from gridwise import Const, DisjointSlice, Slice, barrier, f32, i32, thread, u16, u32


@program("volume with the height for its depth", lambda: (zeros(8 * 8 * 8),), block=(8, 8, 4), domain=3,
         grid=(1, 1, 2))
def volume(c: DisjointSlice[f32], BAD: Const[bool]):
    z, y, x = thread.index_3d()
    if x < 8 and y < 8 and z < 8:
        at = x + 8 * (y + (4 if BAD else 8) * z)
        if at < len(c):
            c[at] = 1.0


@program("structure of arrays with a pitch of one field", lambda: (zeros(2048),))
def fields(c: DisjointSlice[f32], BAD: Const[bool]):
    i = int(thread.index_1d())
    if i < 512:
        for k in range(4):
            at = i + (256 if BAD else 512) * k
            if at < len(c):
                c[at] = f32(k)


@program("blocked layout with the wrong size of a block", lambda: (zeros(4096),))
def blocked(c: DisjointSlice[f32], BAD: Const[bool]):
    b, t = thread.block_index(), thread.local_index()
    for k in range(8):
        at = b * (1024 if BAD else 2048) + k * 256 + t
        if at < len(c):
            c[at] = 1.0


@program("swizzle that is no permutation", lambda: (floats(32, 32), zeros(32, 32)), block=(32, 8), domain=2,
         grid=(1, 4))
def swizzle(a: Slice[f32, 2], c: DisjointSlice[f32, 2], BAD: Const[bool]):
    s = gw.shared((8, 32), f32)
    y, x = thread.local_index(1), thread.local_index(0)
    row, col = thread.index_2d()
    s[y, x & y if BAD else x ^ y] = a[row, col] if row < a.shape[0] and col < a.shape[1] else 0.0
    barrier()
    if row < c.shape[0] and col < c.shape[1]:
        c[row, col] = s[y, x]


@program("skewed rows with a pitch that is too small", lambda: (floats(32, 32), zeros(32, 32)), block=(16, 16),
         domain=2, grid=(2, 2))
def skew(a: Slice[f32, 2], c: DisjointSlice[f32, 2], BAD: Const[bool]):
    s = gw.shared((288,), f32)
    y, x = thread.local_index(1), thread.local_index(0)
    row, col = thread.index_2d()
    at = y * (15 if BAD else 17) + x
    s[at] = a[row, col] if row < a.shape[0] and col < a.shape[1] else 0.0
    if row < c.shape[0] and col < c.shape[1]:
        c[row, col] = s[at]


@program("bits reversed over one bit too few", lambda: (floats(512), zeros(512)))
def bits_reversed(a: Slice[f32], c: DisjointSlice[f32], BAD: Const[bool]):
    i = int(thread.index_1d())
    if i < 8 and i < len(a):
        j = (i & 1) << 2 | (i & 2) | (0 if BAD else (i & 4) >> 2)
        if j < len(c):
            c[j] = a[i]


@program("digits of a mixed radix with the wrong base", lambda: (zeros(512),))
def digits(c: DisjointSlice[f32], BAD: Const[bool]):
    i = int(thread.index_1d())
    high, low = i // 32, i % 32
    at = high * (16 if BAD else 32) + low
    if at < len(c):
        c[at] = 1.0


@program("rotation of the lanes that leaves the row", lambda: (zeros(512),))
def lanes_rotated(c: DisjointSlice[f32], BAD: Const[bool]):
    i = int(thread.index_1d())
    at = (i & ~31) | ((i + 1) & (63 if BAD else 31))
    if at >= 0 and at < len(c):
        c[at] = 1.0


@program("difference of positions that loses its sign", lambda: (zeros(512),))
def sign_lost(c: DisjointSlice[f32], BAD: Const[bool]):
    i = int(thread.index_1d())
    at = abs(i - 100) if BAD else i
    if at < len(c):
        c[at] = 1.0


@program("position kept in 16 bits", lambda: (zeros(70000),), grid=274)
def sixteen_bits(c: DisjointSlice[f32], BAD: Const[bool]):
    i = int(thread.index_1d())
    at = i32(u16(i)) if BAD else i
    if i < len(c) and at < len(c):
        c[at] = 1.0


@program("high bits shifted out and not back in", lambda: (zeros(512),))
def bits_shifted_out(c: DisjointSlice[f32], BAD: Const[bool]):
    i = int(thread.index_1d())
    bits = 24 if BAD else 16
    at = (i << bits) >> bits
    if i < 512 and at >= 0 and at < len(c):
        c[at] = 1.0


@program("unsigned difference below zero", lambda: (floats(512), zeros(512)), fault=FAULT)
def below_zero(a: Slice[f32], c: DisjointSlice[f32], BAD: Const[bool]):
    i = int(thread.index_1d())
    if i < len(c) and i < len(a):
        back = u32(i) - u32(4)
        if BAD or i >= 4:
            c[i] = a[i32(back)]


@program("number of elements rounded up to the block", lambda: (floats(500), zeros(512)), fault=FAULT)
def rounded_up(a: Slice[f32], c: DisjointSlice[f32], BAD: Const[bool]):
    i = int(thread.index_1d())
    n = (len(a) + 255) // 256 * 256 if BAD else len(a)
    if i < n and i < len(c):
        c[i] = a[i]


@program("tail of a run of four read whole", lambda: (floats(510), zeros(128)), fault=FAULT)
def tail(a: Slice[f32], c: DisjointSlice[f32], BAD: Const[bool]):
    i = int(thread.index_1d())
    if i < len(c) and 4 * i < len(a):
        total = f32(0)
        for k in range(4):
            if BAD or 4 * i + k < len(a):
                total += a[4 * i + k]
        c[i] = total


@program("average of no elements", lambda: (ints(512), zeros(512, dtype="int32"), 0), fault=FAULT)
def average(a: Slice[i32], c: DisjointSlice[i32], n: i32, BAD: Const[bool]):
    i = int(thread.index_1d())
    if i < len(c):
        total = 0
        for k in range(n):
            if k < len(a):
                total += a[k]
        if BAD or n != 0:
            c[i] = total // n


@program("row and column of a flat index by the wrong divisor", lambda: (floats(16, 32), zeros(512)), fault=FAULT)
def wrong_divisor(a: Slice[f32, 2], c: DisjointSlice[f32], BAD: Const[bool]):
    i = int(thread.index_1d())
    if i < len(c) and a.shape[0] > 0 and a.shape[1] > 0:
        n = a.shape[0] if BAD else a.shape[1]
        row, col = i // n, i % n
        if col < a.shape[1] and (BAD or row < a.shape[0]):
            c[i] = a[row, col]
