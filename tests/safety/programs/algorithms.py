"""Scans, sorts and matrices: buffers that are reused too early, partners that are not alone, wrong strides."""

from catalogue import DIVERGENCE, floats, ints, program, zeros

import gridwise as gw
from gridwise import Const, DisjointSlice, Slice, barrier, f32, i32, subgroup, thread


@program("missing barrier in the down-sweep of a scan", lambda: (floats(512),))
def down_sweep(c: DisjointSlice[f32], BAD: Const[bool]):
    s = gw.shared((256,), f32)
    t, i = thread.local_index(), thread.global_index()
    s[t] = c[i] if i < len(c) else 0.0
    barrier()
    d = 128
    while d > 0:
        if t & (2 * d - 1) == 0:
            x = s[t]
            s[t] = s[t + d]
            s[t + d] += x
        if not BAD:
            barrier()
        d //= 2
    barrier()
    if i < len(c):
        c[i] = s[t]


@program("scan with the buffers swapped by some threads only", lambda: (floats(512), zeros(512)))
def swapped_by_some(a: Slice[f32], c: DisjointSlice[f32], BAD: Const[bool]):
    s = gw.shared((2, 256), f32)
    t, i = thread.local_index(), thread.global_index()
    s[0, t] = a[i] if i < len(a) else 0.0
    s[1, t] = 0.0
    barrier()
    source = 0
    for k in range(8):
        x = s[source, t]
        if t >= 1 << k:
            x += s[source, t - (1 << k)]
        s[1 - source, t] = x
        barrier()
        if not BAD or t >= 1 << k:
            source = 1 - source
    if i < len(c):
        c[i] = s[source, t]


@program("offsets of the subgroups added before they are scanned", lambda: (floats(512), zeros(512)))
def offsets_too_early(a: Slice[f32], c: DisjointSlice[f32], BAD: Const[bool]):
    s = gw.shared((256,), f32)
    t, i = thread.local_index(), thread.global_index()
    x = subgroup.scan_add(a[i] if i < len(a) else f32(0))
    if subgroup.lane() == subgroup.size() - 1:
        s[t // subgroup.size()] = x
    barrier()
    if t == 0:
        total = f32(0)
        for k in range(256 // subgroup.size()):
            y = s[k]
            s[k] = total
            total += y
    if not BAD:
        barrier()
    if i < len(c):
        c[i] = x + s[t // subgroup.size()]


@program("carry of a scan overwritten before all have read it", lambda: (floats(1024), zeros(1024)), grid=1)
def carry(a: Slice[f32], c: DisjointSlice[f32], BAD: Const[bool]):
    s = gw.shared((1,), f32)
    t = thread.local_index()
    if thread.block_index() > 0:
        return
    for start in range(0, len(c), 256):
        x = s[0]
        if not BAD:
            barrier()
        if t == 255 and start + t < len(a):
            s[0] = x + a[start + t]
        barrier()
        if start + t < len(c):
            c[start + t] = x


@program("head of a segment marked by its neighbour", lambda: (ints(512), zeros(512)))
def heads(keys: Slice[i32], c: DisjointSlice[f32], BAD: Const[bool]):
    i = int(thread.index_1d())
    if i + 1 < len(c) and i + 1 < len(keys) and keys[i] != keys[i + 1]:
        c[i] = 1.0
        if BAD:
            c[i + 1] = 2.0


@program("stable partition with one offset for both halves", lambda: (floats(512), zeros(512)))
def partition(a: Slice[f32], c: DisjointSlice[f32], BAD: Const[bool]):
    i = int(thread.index_1d())
    if i < 512 and i < len(a) and len(c) >= 512:
        if i & 1 == 0:
            c[i >> 1] = a[i]
        else:
            c[(i >> 1) + (0 if BAD else 256)] = a[i]


@program("missing barrier in a merge by ranks", lambda: (floats(512),))
def ranks(c: DisjointSlice[f32], BAD: Const[bool]):
    s = gw.shared((256,), f32)
    t, i = thread.local_index(), thread.global_index()
    s[t] = c[i] if i < len(c) else 0.0
    if not BAD:
        barrier()
    below = 0
    for k in range(256):
        if s[k] < s[255 - t]:
            below += 1
    if i < len(c):
        c[i] = f32(below)


@program("comb sort with overlapping pairs", lambda: (floats(512)[::-1].copy(),))
def comb(c: DisjointSlice[f32], BAD: Const[bool]):
    s = gw.shared((256,), f32)
    t, i = thread.local_index(), thread.global_index()
    s[t] = c[i] if i < len(c) else 0.0
    barrier()
    for k in range(8):
        gap = 128 >> k
        if t + gap < 256 and (BAD or t & gap == 0):
            x, y = s[t], s[t + gap]
            s[t] = min(x, y)
            s[t + gap] = max(x, y)
        barrier()
    if i < len(c):
        c[i] = s[t]


@program("bitonic pass in global memory by partners of both sides", lambda: (floats(512), 3))
def pass_in_global(c: DisjointSlice[f32], bit: i32, BAD: Const[bool]):
    i = int(thread.index_1d())
    if bit >= 0 and bit < 9:
        j = i ^ (1 << bit)
        if i < len(c) and j < len(c) and (i != j if BAD else i < j):
            x, y = c[i], c[j]
            c[i] = min(x, y)
            c[j] = max(x, y)


@program("blocks of a sort that exchange with blocks", lambda: (floats(512), zeros(512)))
def pass_between_blocks(a: Slice[f32], c: DisjointSlice[f32], BAD: Const[bool]):
    i = thread.global_index()
    j = i ^ 256
    if i < len(c) and j < len(c) and j < len(a):
        c[i] = c[j] if BAD else a[j]


@program("missing barrier in a product of a matrix and a vector", lambda: (floats(32, 256), floats(256), zeros(32)),
         grid=32)
def matrix_by_vector(a: Slice[f32, 2], x: Slice[f32], y: DisjointSlice[f32], BAD: Const[bool]):
    s = gw.shared((256,), f32)
    t, row = thread.local_index(), thread.block_index()
    s[t] = a[row, t] * x[t] if row < a.shape[0] and t < a.shape[1] and t < len(x) else 0.0
    if not BAD:
        barrier()
    for k in range(8):
        d = 128 >> k
        if t < d:
            s[t] += s[t + d]
        barrier()
    if t == 0 and row < len(y):
        y[row] = s[0]


@program("tile of the second matrix loaded by half of the rows", lambda: (floats(32, 32), zeros(32, 32)),
         block=(16, 16), domain=2, grid=(2, 2))
def tile_by_halves(a: Slice[f32, 2], c: DisjointSlice[f32, 2], BAD: Const[bool]):
    s = gw.shared((16, 16), f32)
    y, x = thread.local_index(1), thread.local_index(0)
    row, col = thread.index_2d()
    s[y & (7 if BAD else 15), x] = a[row, col] if row < a.shape[0] and col < a.shape[1] else 0.0
    barrier()
    if row < c.shape[0] and col < c.shape[1]:
        c[row, col] = s[x, y]


@program("prefetch into the tile that is being read", lambda: (floats(32, 64), zeros(32, 32)), block=(16, 16),
         domain=2, grid=(2, 2))
def prefetch(a: Slice[f32, 2], c: DisjointSlice[f32, 2], BAD: Const[bool]):
    s = gw.shared((2, 16, 16), f32)
    y, x = thread.local_index(1), thread.local_index(0)
    row, col = thread.index_2d()
    s[0, y, x] = a[row, x] if row < a.shape[0] and x < a.shape[1] else 0.0
    barrier()
    total = f32(0)
    for k in range(4):
        now = k & 1
        following = now if BAD else 1 - now
        at = 16 * k + 16 + x
        s[following, y, x] = a[row, at] if row < a.shape[0] and at < a.shape[1] else 0.0
        for j in range(16):
            total += s[now, j, x]
        barrier()
    if row < c.shape[0] and col < c.shape[1]:
        c[row, col] = total


@program("pipeline of two stages with one barrier too few", lambda: (floats(1024), zeros(256)), grid=1)
def pipeline(a: Slice[f32], c: DisjointSlice[f32], BAD: Const[bool]):
    s = gw.shared((2, 256), f32)
    t = thread.local_index()
    total = f32(0)
    for k in range(4):
        s[0, t] = a[256 * k + t] if 256 * k + t < len(a) else 0.0
        barrier()
        s[1, 255 - t] = s[0, t] + s[0, (t + 1) & 255]
        if not BAD:
            barrier()
        total += s[1, t]
    if thread.global_index() < len(c):
        c[thread.global_index()] = total


@program("rows longer than their pitch", lambda: (zeros(8192),), grid=1, block=64)
def rows_of_a_strip(c: DisjointSlice[f32], BAD: Const[bool]):
    i = int(thread.index_1d())
    if i < 64:
        for j in range(64 if BAD else 32):
            if 32 * i + j < len(c):
                c[32 * i + j] = 1.0


@program("matrix mirrored from both halves", lambda: (zeros(32, 32),), block=(16, 16), domain=2, grid=(2, 2))
def symmetric(c: DisjointSlice[f32, 2], BAD: Const[bool]):
    row, col = thread.index_2d()
    if row < c.shape[0] and col < c.shape[1] and row < c.shape[1] and col < c.shape[0] and (BAD or col <= row):
        c[row, col] = 1.0
        c[col, row] = 1.0


@program("barrier behind a search that some threads end early", lambda: (floats(512), zeros(512)), fault=DIVERGENCE)
def search(a: Slice[f32], c: DisjointSlice[f32], BAD: Const[bool]):
    s = gw.shared((256,), f32)
    t, i = thread.local_index(), thread.global_index()
    s[t] = a[i] if i < len(a) else 0.0
    barrier()
    for k in range(256):
        if BAD and s[k] > f32(t):
            break
        barrier()
    if i < len(c):
        c[i] = s[255 - t]


@program("barrier for the threads of a reduction's last step", lambda: (floats(512), zeros(512)), fault=DIVERGENCE)
def last_step(a: Slice[f32], c: DisjointSlice[f32], BAD: Const[bool]):
    s = gw.shared((256,), f32)
    t, i = thread.local_index(), thread.global_index()
    s[t] = a[i] if i < len(a) else 0.0
    barrier()
    d = 128
    while d > 0:
        if t < d:
            s[t] += s[t + d]
            if BAD and d == 1:
                barrier()
        barrier()
        d //= 2
    if i < len(c):
        c[i] = s[0]


@program("shuffle in the tail of a loop that differs between threads", lambda: (floats(512), zeros(512)),
         fault=DIVERGENCE)
def shuffle_in_a_loop(a: Slice[f32], c: DisjointSlice[f32], BAD: Const[bool]):
    i = thread.global_index()
    total = f32(0)
    for k in range(thread.local_index() & 3 if BAD else 4):
        x = a[i + k] if i + k < len(a) else f32(0)
        total += subgroup.shuffle_down(x, 1)
    if i < len(c):
        c[i] = total
