"""Missing and misplaced barriers, and wrong indices into shared memory."""

from catalogue import floats, ints, program, zeros

import gridwise as gw
from gridwise import Const, DisjointSlice, Slice, atomic, barrier, f32, i32, thread, u32


@program("missing barrier between write and read", lambda: (floats(512), zeros(512)))
def reverse_block(a: Slice[f32], c: DisjointSlice[f32], BAD: Const[bool]):
    s = gw.shared((256,), f32)
    t, i = thread.local_index(), thread.global_index()
    if i < len(a):
        s[t] = a[i]
    if not BAD:
        barrier()
    if i < len(c):
        c[i] = s[255 - t]


@program("barrier before the write instead of behind it", lambda: (floats(512), zeros(512)))
def early_barrier(a: Slice[f32], c: DisjointSlice[f32], BAD: Const[bool]):
    s = gw.shared((256,), f32)
    t, i = thread.local_index(), thread.global_index()
    if BAD:
        barrier()
    if i < len(a):
        s[t] = a[i]
    if not BAD:
        barrier()
    if i < len(c):
        c[i] = s[t ^ 1]


@program("missing barrier in a matrix product, behind the loads",
         lambda: (floats(32, 32), floats(32, 32), zeros(32, 32)), block=(16, 16), domain=2, grid=(2, 2))
def product_after_load(a: Slice[f32, 2], b: Slice[f32, 2], c: DisjointSlice[f32, 2], BAD: Const[bool]):
    x, y = gw.shared((16, 16), f32), gw.shared((16, 16), f32)
    ty, tx = thread.local_index(1), thread.local_index(0)
    row, col = thread.index_2d()
    acc = f32(0)
    for k in range(0, a.shape[1], 16):
        x[ty, tx] = a[row, k + tx] if row < a.shape[0] and k + tx < a.shape[1] else 0.0
        y[ty, tx] = b[k + ty, col] if k + ty < b.shape[0] and col < b.shape[1] else 0.0
        if not BAD:
            barrier()
        for j in range(16):
            acc += x[ty, j] * y[j, tx]
        barrier()
    if row < c.shape[0] and col < c.shape[1]:
        c[row, col] = acc


@program("missing barrier in a matrix product, before the next tiles",
         lambda: (floats(32, 32), floats(32, 32), zeros(32, 32)), block=(16, 16), domain=2, grid=(2, 2))
def product_before_next(a: Slice[f32, 2], b: Slice[f32, 2], c: DisjointSlice[f32, 2], BAD: Const[bool]):
    x, y = gw.shared((16, 16), f32), gw.shared((16, 16), f32)
    ty, tx = thread.local_index(1), thread.local_index(0)
    row, col = thread.index_2d()
    acc = f32(0)
    for k in range(0, a.shape[1], 16):
        x[ty, tx] = a[row, k + tx] if row < a.shape[0] and k + tx < a.shape[1] else 0.0
        y[ty, tx] = b[k + ty, col] if k + ty < b.shape[0] and col < b.shape[1] else 0.0
        barrier()
        for j in range(16):
            acc += x[ty, j] * y[j, tx]
        if not BAD:
            barrier()
    if row < c.shape[0] and col < c.shape[1]:
        c[row, col] = acc


@program("tiles written with swapped indices, so that a column is read while it is written",
         lambda: (floats(32, 32), zeros(32, 32)), block=(16, 16), domain=2, grid=(2, 2))
def tile_rows(a: Slice[f32, 2], c: DisjointSlice[f32, 2], BAD: Const[bool]):
    s = gw.shared((16, 16), f32)
    ty, tx = thread.local_index(1), thread.local_index(0)
    row, col = thread.index_2d()
    if row < a.shape[0] and col < a.shape[1] and row < c.shape[0] and col < c.shape[1]:
        s[ty, tx] = a[row, col]
        c[row, col] = s[tx, ty] if BAD else s[ty, tx]


@program("missing barrier in a tree reduction", lambda: (floats(512), zeros(2)))
def tree(a: Slice[f32], out: DisjointSlice[f32], BAD: Const[bool]):
    s = gw.shared((256,), f32)
    t, i = thread.local_index(), thread.global_index()
    s[t] = a[i] if i < len(a) else 0.0
    barrier()
    stride = 128
    while stride > 0:
        if t < stride:
            s[t] += s[t + stride]
        if not BAD:
            barrier()
        stride //= 2
    if t == 0 and thread.block_index() < len(out):
        out[thread.block_index()] = s[0]


@program("missing barrier before a tree reduction", lambda: (floats(512), zeros(2)))
def tree_first(a: Slice[f32], out: DisjointSlice[f32], BAD: Const[bool]):
    s = gw.shared((256,), f32)
    t, i = thread.local_index(), thread.global_index()
    s[t] = a[i] if i < len(a) else 0.0
    if not BAD:
        barrier()
    stride = 128
    while stride > 0:
        if t < stride:
            s[t] += s[t + stride]
        barrier()
        stride >>= 1
    if t == 0 and thread.block_index() < len(out):
        out[thread.block_index()] = s[0]


@program("one thread too many in a tree reduction", lambda: (floats(512), zeros(2)))
def tree_off_by_one(a: Slice[f32], out: DisjointSlice[f32], BAD: Const[bool]):
    s = gw.shared((256,), f32)
    t, i = thread.local_index(), thread.global_index()
    s[t] = a[i] if i < len(a) else 0.0
    barrier()
    for k in range(8):
        stride = 128 >> k
        if t < stride or (BAD and t == stride and 2 * stride < 256):
            s[t] += s[t + stride]
        barrier()
    if t == 0 and thread.block_index() < len(out):
        out[thread.block_index()] = s[0]


@program("missing barrier in a reduction with growing stride", lambda: (floats(512), zeros(2)))
def tree_upwards(a: Slice[f32], out: DisjointSlice[f32], BAD: Const[bool]):
    s = gw.shared((256,), f32)
    t, i = thread.local_index(), thread.global_index()
    s[t] = a[i] if i < len(a) else 0.0
    barrier()
    stride = 1
    while stride < 256:
        at = 2 * stride * t
        if at < 256:
            s[at] += s[at + stride]
        if not BAD:
            barrier()
        stride *= 2
    if t == 0 and thread.block_index() < len(out):
        out[thread.block_index()] = s[0]


@program("missing barrier in a reduction by remainder", lambda: (floats(512), zeros(2)))
def tree_modulo(a: Slice[f32], out: DisjointSlice[f32], BAD: Const[bool]):
    s = gw.shared((256,), f32)
    t, i = thread.local_index(), thread.global_index()
    s[t] = a[i] if i < len(a) else 0.0
    barrier()
    stride = 1
    while stride < 256:
        if t % (2 * stride) == 0:
            s[t] += s[t + stride]
        if not BAD:
            barrier()
        stride *= 2
    if t == 0 and thread.block_index() < len(out):
        out[thread.block_index()] = s[0]


@program("last steps left to the warp", lambda: (floats(512), zeros(2)))
def warp_synchronous(a: Slice[f32], out: DisjointSlice[f32], BAD: Const[bool]):
    s = gw.shared((256,), f32)
    t, i = thread.local_index(), thread.global_index()
    s[t] = a[i] if i < len(a) else 0.0
    barrier()
    stride = 128
    while stride > 0:
        if t < stride:
            s[t] += s[t + stride]
        if not BAD or stride > 16:
            barrier()
        stride //= 2
    if t == 0 and thread.block_index() < len(out):
        out[thread.block_index()] = s[0]


@program("missing barrier in a scan with two buffers", lambda: (floats(512), zeros(512)))
def scan_two_buffers(a: Slice[f32], c: DisjointSlice[f32], BAD: Const[bool]):
    s = gw.shared((2, 256), f32)
    t, i = thread.local_index(), thread.global_index()
    s[0, t] = a[i] if i < len(a) else 0.0
    barrier()
    source = 0
    d = 1
    while d < 256:
        s[1 - source, t] = s[source, t] + s[source, t - d] if t >= d else s[source, t]
        if not BAD:
            barrier()
        source = 1 - source
        d *= 2
    if i < len(c):
        c[i] = s[source, t]


@program("one buffer reused in a scan", lambda: (floats(512), zeros(512)))
def scan_reused_buffer(a: Slice[f32], c: DisjointSlice[f32], BAD: Const[bool]):
    s = gw.shared((2, 256), f32)
    t, i = thread.local_index(), thread.global_index()
    s[0, t] = a[i] if i < len(a) else 0.0
    barrier()
    source, target = 0, 1
    d = 1
    while d < 256:
        s[target, t] = s[source, t] + s[source, t - d] if t >= d else s[source, t]
        barrier()
        if not BAD:
            source, target = target, source
        else:
            source = 1
        d *= 2
    if i < len(c):
        c[i] = s[source, t]


@program("missing barrier between reading and writing in a scan in place", lambda: (floats(512), zeros(512)))
def scan_in_place(a: Slice[f32], c: DisjointSlice[f32], BAD: Const[bool]):
    s = gw.shared((256,), f32)
    t, i = thread.local_index(), thread.global_index()
    s[t] = a[i] if i < len(a) else 0.0
    barrier()
    d = 1
    while d < 256:
        x = s[t - d] if t >= d else f32(0)
        if not BAD:
            barrier()
        s[t] += x
        barrier()
        d *= 2
    if i < len(c):
        c[i] = s[t]


@program("missing barrier in the up-sweep of a scan", lambda: (floats(512),))
def up_sweep(c: DisjointSlice[f32], BAD: Const[bool]):
    s = gw.shared((256,), f32)
    t, i = thread.local_index(), thread.global_index()
    s[t] = c[i] if i < len(c) else 0.0
    barrier()
    offset = 1
    d = 128
    while d > 0:
        if t < d:
            left = offset * (2 * t + 1) - 1
            right = offset * (2 * t + 2) - 1
            s[right] += s[left]
        if not BAD:
            barrier()
        offset *= 2
        d //= 2
    barrier()
    if i < len(c):
        c[i] = s[t]


@program("missing barrier in a padded transposition", lambda: (floats(64, 64), zeros(64, 64)), block=(32, 8), domain=2,
         grid=(2, 2))
def transpose(a: Slice[f32, 2], c: DisjointSlice[f32, 2], BAD: Const[bool]):
    s = gw.shared((32, 33), f32)
    x, y = thread.local_index(0), thread.local_index(1)
    col, row = thread.block_index(0) * 32, thread.block_index(1) * 32
    for j in range(0, 32, 8):
        if row + y + j < a.shape[0] and col + x < a.shape[1]:
            s[y + j, x] = a[row + y + j, col + x]
    if not BAD:
        barrier()
    for j in range(0, 32, 8):
        if col + y + j < c.shape[0] and row + x < c.shape[1]:
            c[col + y + j, row + x] = s[x, y + j]


@program("rows loaded twice in a transposition", lambda: (floats(64, 64), zeros(64, 64)), block=(32, 8), domain=2,
         grid=(2, 2))
def transpose_step(a: Slice[f32, 2], c: DisjointSlice[f32, 2], BAD: Const[bool]):
    s = gw.shared((36, 33), f32)
    x, y = thread.local_index(0), thread.local_index(1)
    col, row = thread.block_index(0) * 32, thread.block_index(1) * 32
    for j in range(0, 32, 4 if BAD else 8):
        if row + y + j < a.shape[0] and col + x < a.shape[1]:
            s[y + j, x] = a[row + y + j, col + x]
    barrier()
    for j in range(0, 32, 8):
        if col + y + j < c.shape[0] and row + x < c.shape[1]:
            c[col + y + j, row + x] = s[x, y + j]


@program("pitch of 31 in a flat tile", lambda: (floats(64, 64), zeros(64, 64)), block=(32, 8), domain=2, grid=(2, 2))
def transpose_pitch(a: Slice[f32, 2], c: DisjointSlice[f32, 2], BAD: Const[bool]):
    s = gw.shared((32 * 33,), f32)
    x, y = thread.local_index(0), thread.local_index(1)
    col, row = thread.block_index(0) * 32, thread.block_index(1) * 32
    for j in range(0, 32, 8):
        if row + y + j < a.shape[0] and col + x < a.shape[1]:
            s[(y + j) * (31 if BAD else 33) + x] = a[row + y + j, col + x]
    barrier()
    for j in range(0, 32, 8):
        if col + y + j < c.shape[0] and row + x < c.shape[1]:
            c[col + y + j, row + x] = s[x * 33 + y + j]


@program("blocks of a transposition not swapped", lambda: (floats(64, 64), zeros(64, 64)), block=(32, 8), domain=2,
         grid=(2, 2))
def transpose_blocks(a: Slice[f32, 2], c: DisjointSlice[f32, 2], BAD: Const[bool]):
    x, y = thread.local_index(0), thread.local_index(1)
    col, row = thread.block_index(0) * 32, thread.block_index(1) * 32
    for j in range(0, 32, 8):
        to = (row if BAD else col) + y + j
        if row + y + j < a.shape[0] and col + x < a.shape[1] and to < c.shape[0] and row + x < c.shape[1]:
            c[to, row + x] = a[row + y + j, col + x]


@program("missing barrier behind the clearing of a histogram",
         lambda: (ints(512)[::-1] * 7 % 256, zeros(256, dtype="uint32")))
def histogram_clear(a: Slice[i32], bins: DisjointSlice[u32], BAD: Const[bool]):
    s = gw.shared((256,), u32)
    t = thread.local_index()
    s[t] = 0
    if not BAD:
        barrier()
    for i in range(thread.global_index(), len(a), 256 * thread.grid_dim()):
        atomic.add(s, a[i] & 255, 1)
    barrier()
    if thread.block_index() == 0 and t < len(bins):
        bins[t] = s[t]


@program("missing barrier before a histogram is read",
         lambda: (ints(512)[::-1] * 7 % 256, zeros(256, dtype="uint32")))
def histogram_read(a: Slice[i32], bins: DisjointSlice[u32], BAD: Const[bool]):
    s = gw.shared((256,), u32)
    t = thread.local_index()
    s[t] = 0
    barrier()
    for i in range(thread.global_index(), len(a), 256 * thread.grid_dim()):
        atomic.add(s, a[i] & 255, 1)
    if not BAD:
        barrier()
    if thread.block_index() == 0 and t < len(bins):
        bins[t] = s[t]


@program("histogram without atomics", lambda: (zeros(512, dtype="int32"), zeros(256, dtype="uint32")))
def histogram_plain(a: Slice[i32], bins: DisjointSlice[u32], BAD: Const[bool]):
    s = gw.shared((256,), u32)
    t, i = thread.local_index(), thread.global_index()
    s[t] = 0
    barrier()
    if i < len(a):
        if BAD:
            s[a[i] & 255] += 1
        else:
            atomic.add(s, a[i] & 255, 1)
    barrier()
    if thread.block_index() == 0 and t < len(bins):
        bins[t] = s[t]


@program("missing barrier in a stencil with halo", lambda: (floats(512), zeros(512)))
def halo(a: Slice[f32], c: DisjointSlice[f32], BAD: Const[bool]):
    s = gw.shared((258,), f32)
    t, i = thread.local_index(), thread.global_index()
    if i < len(a):
        s[t + 1] = a[i]
        if t == 0 and i > 0:
            s[0] = a[i - 1]
        if t == 255 and i + 1 < len(a):
            s[257] = a[i + 1]
    if not BAD:
        barrier()
    if i > 0 and i + 1 < len(c):
        c[i] = s[t] + s[t + 1] + s[t + 2]


@program("halo written by two threads", lambda: (floats(512), zeros(512)))
def halo_twice(a: Slice[f32], c: DisjointSlice[f32], BAD: Const[bool]):
    s = gw.shared((258,), f32)
    t, i = thread.local_index(), thread.global_index()
    if i < len(a):
        s[t + 1] = a[i]
        if t < (2 if BAD else 1) and i > 0:
            s[0] = a[i - 1]
        if t == 255 and i + 1 < len(a):
            s[257] = a[i + 1]
    barrier()
    if i > 0 and i + 1 < len(c):
        c[i] = s[t] + s[t + 1] + s[t + 2]


@program("halo off by one, on a neighbour's element", lambda: (floats(512), zeros(512)))
def halo_off_by_one(a: Slice[f32], c: DisjointSlice[f32], BAD: Const[bool]):
    s = gw.shared((258,), f32)
    t, i = thread.local_index(), thread.global_index()
    if i < len(a):
        s[t + 1] = a[i]
        if t == 0 and i > 0:
            s[0] = a[i - 1]
        if t == 0 and i + 256 < len(a):
            s[256 if BAD else 257] = a[i + 256]
    barrier()
    if i > 0 and i + 1 < len(c):
        c[i] = s[t] + s[t + 1] + s[t + 2]


@program("one shared element written by all threads", lambda: (floats(512), zeros(512)))
def shared_scalar(a: Slice[f32], c: DisjointSlice[f32], BAD: Const[bool]):
    s = gw.shared((1,), f32)
    t, i = thread.local_index(), thread.global_index()
    if i < len(a) and (BAD or t == 0):
        s[0] = a[i]
    barrier()
    if i < len(c):
        c[i] = s[0]


@program("missing barrier behind a broadcast", lambda: (floats(512), zeros(512)))
def broadcast(a: Slice[f32], c: DisjointSlice[f32], BAD: Const[bool]):
    s = gw.shared((1,), f32)
    t, i = thread.local_index(), thread.global_index()
    if t == 0 and i < len(a):
        s[0] = a[i]
    if not BAD:
        barrier()
    if i < len(c):
        c[i] = s[0]


@program("source of a double buffer is its target", lambda: (floats(512), zeros(512), 4))
def ping_pong(a: Slice[f32], c: DisjointSlice[f32], steps: i32, BAD: Const[bool]):
    s = gw.shared((2, 256), f32)
    t, i = thread.local_index(), thread.global_index()
    s[0, t] = a[i] if i < len(a) else 0.0
    barrier()
    source = 0
    for _ in range(steps):
        target = source if BAD else source ^ 1
        s[target, t] = s[source, (t + 1) % 256]
        barrier()
        source = target
    if i < len(c):
        c[i] = s[source, t]


@program("rotation without a barrier between reading and writing", lambda: (floats(512), zeros(512)))
def rotation(a: Slice[f32], c: DisjointSlice[f32], BAD: Const[bool]):
    s = gw.shared((256,), f32)
    t, i = thread.local_index(), thread.global_index()
    s[t] = a[i] if i < len(a) else 0.0
    barrier()
    x = s[(t + 1) % 256]
    if not BAD:
        barrier()
    s[t] = x
    if i < len(c):
        c[i] = s[t]


@program("chunk overwritten while it is read", lambda: (floats(2048), zeros(256)), grid=1)
def chunks(a: Slice[f32], c: DisjointSlice[f32], BAD: Const[bool]):
    s = gw.shared((256,), f32)
    t = thread.local_index()
    total = f32(0)
    for start in range(0, len(a), 256):
        s[t] = a[start + t] if start + t < len(a) else 0.0
        barrier()
        total += s[255 - t]
        if not BAD:
            barrier()
    if thread.global_index() < len(c):
        c[thread.global_index()] = total


@program("barrier in every second iteration", lambda: (floats(2048), zeros(256)), grid=1)
def every_second(a: Slice[f32], c: DisjointSlice[f32], BAD: Const[bool]):
    s = gw.shared((256,), f32)
    t = thread.local_index()
    total = f32(0)
    for k in range(8):
        s[t] = a[k] if k < len(a) else 0.0
        if not BAD or k % 2 == 0:
            barrier()
        total += s[255 - t]
        if not BAD or k % 2 == 0:
            barrier()
    if thread.global_index() < len(c):
        c[thread.global_index()] = total


@program("barrier in every fourth iteration, for what comes back in every second", lambda: (zeros(512),))
def every_fourth(c: DisjointSlice[f32], BAD: Const[bool]):
    s = gw.shared((2, 256), f32)
    t, i = thread.local_index(), thread.global_index()
    for k in range(8):
        s[k % 2, (t + k // 2) % 256] = f32(k)
        if not BAD or k % 4 == 3:
            barrier()
    barrier()
    if i < len(c):
        c[i] = s[0, t]


@program("barrier outside the loop that needs it", lambda: (floats(512), zeros(512)))
def outside_the_loop(a: Slice[f32], c: DisjointSlice[f32], BAD: Const[bool]):
    s = gw.shared((256,), f32)
    t, i = thread.local_index(), thread.global_index()
    s[t] = a[i] if i < len(a) else 0.0
    barrier()
    for k in range(1, 4):
        x = s[t ^ k]
        if not BAD:
            barrier()
        s[t] = x
        if not BAD:
            barrier()
    barrier()
    if i < len(c):
        c[i] = s[t]


@program("missing barrier in an odd-even sort", lambda: (floats(512)[::-1].copy(),))
def odd_even_sort(c: DisjointSlice[f32], BAD: Const[bool]):
    s = gw.shared((256,), f32)
    t, i = thread.local_index(), thread.global_index()
    if i < len(c):
        s[t] = c[i]
    barrier()
    for step in range(256):
        if t % 2 == step % 2 and t + 1 < 256:
            x, y = s[t], s[t + 1]
            if x > y:
                s[t] = y
                s[t + 1] = x
        if not BAD:
            barrier()
    barrier()
    if i < len(c):
        c[i] = s[t]


@program("missing barrier in a bitonic sort of a block", lambda: (floats(512)[::-1].copy(),))
def bitonic(c: DisjointSlice[f32], BAD: Const[bool]):
    s = gw.shared((256,), f32)
    t, i = thread.local_index(), thread.global_index()
    if i < len(c):
        s[t] = c[i]
    barrier()
    size = 2
    while size <= 256:
        stride = size // 2
        while stride > 0:
            partner = t ^ stride
            if partner > t:
                x, y = s[t], s[partner]
                if (x > y) == (t & size == 0):
                    s[t] = y
                    s[partner] = x
            if not BAD:
                barrier()
            stride //= 2
        size *= 2
    barrier()
    if i < len(c):
        c[i] = s[t]


@program("both threads of a pair exchange", lambda: (floats(512)[::-1].copy(),))
def bitonic_guard(c: DisjointSlice[f32], BAD: Const[bool]):
    s = gw.shared((256,), f32)
    t, i = thread.local_index(), thread.global_index()
    if i < len(c):
        s[t] = c[i]
    barrier()
    for k in range(8):
        partner = t ^ (128 >> k)
        if BAD or partner > t:
            x, y = s[t], s[partner]
            s[t] = min(x, y)
            s[partner] = max(x, y)
        barrier()
    if i < len(c):
        c[i] = s[t]


@program("missing barrier in a blur of a tile", lambda: (floats(32, 32), zeros(32, 32)), block=(16, 16), domain=2,
         grid=(2, 2))
def blur(a: Slice[f32, 2], c: DisjointSlice[f32, 2], BAD: Const[bool]):
    s = gw.shared((16, 16), f32)
    y, x = thread.local_index(1), thread.local_index(0)
    row, col = thread.index_2d()
    if row < a.shape[0] and col < a.shape[1]:
        s[y, x] = a[row, col]
    if not BAD:
        barrier()
    total = f32(0)
    for j in range(-1, 2):
        for k in range(-1, 2):
            if y + j >= 0 and y + j < 16 and x + k >= 0 and x + k < 16:
                total += s[y + j, x + k]
    if row < c.shape[0] and col < c.shape[1]:
        c[row, col] = total


@program("rows of a warp that overlap", lambda: (floats(512), zeros(512)))
def warp_rows(a: Slice[f32], c: DisjointSlice[f32], BAD: Const[bool]):
    s = gw.shared((8, 32), f32)
    t, i = thread.local_index(), thread.global_index()
    if i < len(a) and i < len(c):
        s[t // 32, t % (16 if BAD else 32)] = a[i]
        c[i] = s[t // 32, t % (16 if BAD else 32)]


@program("two elements a thread that overlap", lambda: (floats(1024), zeros(512)))
def two_a_thread(a: Slice[f32], c: DisjointSlice[f32], BAD: Const[bool]):
    s = gw.shared((514,), f32)
    t, i = thread.local_index(), thread.global_index()
    if 2 * i + 1 < len(a):
        s[2 * t] = a[2 * i]
        s[2 * t + (2 if BAD else 1)] = a[2 * i + 1]
    barrier()
    if i < len(c):
        c[i] = s[t]


@program("flags of a table set without atomics", lambda: (floats(512), zeros(16, dtype="uint32")))
def table(a: Slice[f32], c: DisjointSlice[u32], BAD: Const[bool]):
    s = gw.shared((16,), u32)
    t = thread.local_index()
    if t < 16:
        s[t] = 0
    barrier()
    if BAD:
        s[t % 16] += 1
    else:
        atomic.add(s, t % 16, 1)
    barrier()
    if t < 16 and thread.block_index() == 0 and t < len(c):
        c[t] = s[t]


@program("maximum by comparing and writing", lambda: (ints(512), zeros(2, dtype="int32")))
def maximum(a: Slice[i32], c: DisjointSlice[i32], BAD: Const[bool]):
    s = gw.shared((1,), i32)
    t, i = thread.local_index(), thread.global_index()
    if i < len(a):
        if BAD:
            if a[i] > s[0]:
                s[0] = a[i]
        else:
            atomic.max(s, 0, a[i])
    barrier()
    if t == 0 and thread.block_index() < len(c):
        c[thread.block_index()] = s[0]


@program("atomics mixed with a plain write", lambda: (zeros(2, dtype="uint32"),))
def mixed(c: DisjointSlice[u32], BAD: Const[bool]):
    s = gw.shared((1,), u32)
    t = thread.local_index()
    if t == 0:
        s[0] = 7
    if not BAD:
        barrier()
    atomic.add(s, 0, 1)
    barrier()
    if t == 0 and thread.block_index() < len(c):
        c[thread.block_index()] = s[0]


@program("atomics mixed with a plain read", lambda: (zeros(512, dtype="uint32"),))
def mixed_read(c: DisjointSlice[u32], BAD: Const[bool]):
    s = gw.shared((1,), u32)
    i = thread.global_index()
    atomic.add(s, 0, 1)
    if not BAD:
        barrier()
    if i < len(c):
        c[i] = s[0]


@program("total read before the others have added", lambda: (floats(512), zeros(2)))
def total_too_early(a: Slice[f32], c: DisjointSlice[f32], BAD: Const[bool]):
    s = gw.shared((256,), f32)
    t, i = thread.local_index(), thread.global_index()
    s[t] = a[i] if i < len(a) else 0.0
    if not BAD:
        barrier()
    if t == 0 and thread.block_index() < len(c):
        total = f32(0)
        for k in range(256):
            total += s[k]
        c[thread.block_index()] = total


@program("result kept in the element that the next phase clears", lambda: (floats(512), zeros(2)))
def cleared_early(a: Slice[f32], c: DisjointSlice[f32], BAD: Const[bool]):
    s = gw.shared((256,), f32)
    t, i = thread.local_index(), thread.global_index()
    s[t] = a[i] if i < len(a) else 0.0
    barrier()
    x = s[255 - t]
    if not BAD:
        barrier()
    s[t] = 0.0
    if t == 0 and thread.block_index() < len(c):
        c[thread.block_index()] = x


@program("phase of a loop that starts before the last one ends", lambda: (zeros(512), 4))
def two_phases(c: DisjointSlice[f32], steps: i32, BAD: Const[bool]):
    u, v = gw.shared((256,), f32), gw.shared((256,), f32)
    t, i = thread.local_index(), thread.global_index()
    u[t] = f32(t)
    barrier()
    for _ in range(steps):
        v[t] = u[(t + 1) % 256]
        barrier()
        u[t] = v[(t + 2) % 256]
        if not BAD:
            barrier()
    barrier()
    if i < len(c):
        c[i] = u[t]


@program("matrix row summed while another thread writes it", lambda: (floats(16, 16), zeros(16)), block=(16, 16),
         domain=2, grid=(1, 1))
def row_sums(a: Slice[f32, 2], c: DisjointSlice[f32], BAD: Const[bool]):
    s = gw.shared((16, 17), f32)
    y, x = thread.local_index(1), thread.local_index(0)
    if y < a.shape[0] and x < a.shape[1]:
        s[y, x] = a[y, x]
    if not BAD:
        barrier()
    if x == 0 and y < len(c) and thread.block_index(0) == 0 and thread.block_index(1) == 0:
        total = f32(0)
        for k in range(16):
            total += s[y, k]
        c[y] = total


@program("shared array indexed by x in a block of two dimensions", lambda: (zeros(16, 16),), block=(16, 16), domain=2,
         grid=(1, 1))
def only_x(c: DisjointSlice[f32, 2], BAD: Const[bool]):
    s = gw.shared((256,), f32)
    row, col = thread.index_2d()
    t = thread.local_index(0) if BAD else thread.local_linear()
    s[t] = f32(col)
    if row < c.shape[0] and col < c.shape[1]:
        c[row, col] = s[t]


@program("helper function without its barrier", lambda: (floats(512), zeros(512)))
def with_helper(a: Slice[f32], c: DisjointSlice[f32], BAD: Const[bool]):
    s = gw.shared((256,), f32)
    t, i = thread.local_index(), thread.global_index()

    def put(x: f32):
        s[t] = x
        if not BAD:
            barrier()

    put(a[i] if i < len(a) else f32(0))
    if i < len(c):
        c[i] = s[(t + 128) % 256]


@program("loop that leaves before its barrier", lambda: (floats(512), zeros(512), 3))
def leaves_early(a: Slice[f32], c: DisjointSlice[f32], n: i32, BAD: Const[bool]):
    s = gw.shared((256,), f32)
    t, i = thread.local_index(), thread.global_index()
    for k in range(8):
        s[t] = a[i] if i < len(a) else 0.0
        if BAD and k == n:
            break
        barrier()
        if not BAD and k == n:
            break
        if i < len(c):
            c[i] = s[255 - t]
        barrier()
    if i < len(c):
        c[i] = s[255 - t]
