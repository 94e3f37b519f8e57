"""Wrong indices of writes to global memory."""

from catalogue import floats, ints, program, zeros

from gridwise import Const, DisjointSlice, Slice, barrier, f32, i32, thread, u8


@program("wrong stride of a run of elements", lambda: (floats(2048), zeros(2048)))
def run_of_four(a: Slice[f32], c: DisjointSlice[f32], BAD: Const[bool]):
    start = int(thread.index_1d()) * (3 if BAD else 4)
    for j in range(4):
        if start + j < len(c) and start + j < len(a):
            c[start + j] = a[start + j]


@program("index in the block for the index in the grid", lambda: (floats(512), zeros(512)))
def local_for_global(a: Slice[f32], c: DisjointSlice[f32], BAD: Const[bool]):
    i = thread.local_index() if BAD else thread.global_index()
    if i < len(c) and i < len(a):
        c[i] = a[i]


@program("two threads share an element by division", lambda: (zeros(512),))
def halved(c: DisjointSlice[f32], BAD: Const[bool]):
    i = int(thread.index_1d())
    j = i // 2 if BAD else i
    if j < len(c):
        c[j] = 1.0


@program("low bit masked off", lambda: (zeros(512),))
def masked(c: DisjointSlice[f32], BAD: Const[bool]):
    i = int(thread.index_1d())
    j = i & 0x3FFFFFFE if BAD else i ^ 1
    if j < len(c):
        c[j] = 1.0


@program("reflection that folds", lambda: (zeros(512), 512))
def reflected(c: DisjointSlice[f32], n: i32, BAD: Const[bool]):
    i = int(thread.index_1d())
    if i < n and n <= len(c):
        if BAD:
            c[abs(n - 1 - 2 * i)] = 1.0
        else:
            c[n - 1 - i] = 1.0


@program("neighbour written too", lambda: (floats(512), zeros(513)))
def neighbour(a: Slice[f32], c: DisjointSlice[f32], BAD: Const[bool]):
    i = int(thread.index_1d())
    if i < len(a) and i + 1 < len(c):
        c[i] = a[i]
        if BAD:
            c[i + 1] = a[i]


@program("column used for both axes", lambda: (zeros(32, 32),), block=(16, 16), domain=2, grid=(2, 2))
def both_axes_column(c: DisjointSlice[f32, 2], BAD: Const[bool]):
    row, col = thread.index_2d()
    if row < c.shape[0] and col < c.shape[1]:
        if BAD:
            c[col, col] = 1.0
        else:
            c[row, col] = 1.0


@program("swapped names in a permuted output", lambda: (floats(8, 8, 8), zeros(8, 8, 8)), block=(8, 8, 4), domain=3,
         grid=(1, 1, 2))
def permuted(a: Slice[f32, 3], c: DisjointSlice[f32, 3], BAD: Const[bool]):
    z, y, x = thread.index_3d()
    if z < a.shape[0] and y < a.shape[1] and x < a.shape[2]:
        v = a[z, y, x]
        p, q, r = (y, x, y) if BAD else (y, x, z)
        if p < c.shape[0] and q < c.shape[1] and r < c.shape[2]:
            c[p, q, r] = v


@program("height for width in a flat index", lambda: (zeros(1024), 64, 8), block=(16, 16), domain=2, grid=(4, 1),
         requires=lambda c, w, h: len(c) >= w * h)
def flat_rows(c: DisjointSlice[f32], w: i32, h: i32, BAD: Const[bool]):
    row, col = thread.index_2d()
    if row < h and col < w:
        c[row * (h if BAD else w) + col] = 1.0


@program("grid-stride loop with the stride of a block", lambda: (zeros(2000),))
def stride_of_a_block(c: DisjointSlice[f32], BAD: Const[bool]):
    step = thread.block_dim() if BAD else thread.block_dim() * thread.grid_dim()
    for i in range(int(thread.index_1d()), len(c), step):
        c[i] = 1.0


@program("grid-stride while loop with the number of blocks as stride", lambda: (zeros(2000),))
def stride_of_the_grid(c: DisjointSlice[f32], BAD: Const[bool]):
    i = int(thread.index_1d())
    while i < len(c):
        c[i] = 1.0
        i += thread.grid_dim() if BAD else thread.grid_dim() * thread.block_dim()


@program("index modulo a table's size", lambda: (zeros(512),))
def modulo(c: DisjointSlice[f32], BAD: Const[bool]):
    i = int(thread.index_1d())
    j = i % 64 if BAD else i
    if j < len(c):
        c[j] = 1.0


@program("every thread writes one element", lambda: (zeros(4),))
def constant_index(c: DisjointSlice[f32], BAD: Const[bool]):
    i = int(thread.index_1d())
    if BAD or i == 0:
        c[0] = 1.0


@program("exclusive-or partner without its guard", lambda: (floats(512), 64))
def exchange(c: DisjointSlice[f32], distance: i32, BAD: Const[bool]):
    i = int(thread.index_1d())
    partner = i ^ distance
    if (partner != i if BAD else partner > i) and partner >= 0 and partner < len(c) and i < len(c):
        x, y = c[i], c[partner]
        c[i] = y
        c[partner] = x


@program("scatter through an index array", lambda: (zeros(512, dtype="int32"), floats(512), zeros(512)))
def scatter(where: Slice[i32], a: Slice[f32], c: DisjointSlice[f32], BAD: Const[bool]):
    i = int(thread.index_1d())
    if i < len(where) and i < len(c):
        if BAD:
            c[where[i]] = a[i]
        else:
            c[i] = a[where[i]]


@program("index that wraps around at 32 bits", lambda: (zeros(1 << 22),), grid=512)
def wraps(c: DisjointSlice[f32], BAD: Const[bool]):
    i = int(thread.index_1d())
    if BAD or i < 16384:
        c[i * 65536 >> 8 if BAD else i * 65536 // 256] = 1.0


@program("index scaled until it wraps around", lambda: (zeros(16), 1 << 30))
def wraps_by_factor(c: DisjointSlice[f32], w: i32, BAD: Const[bool]):
    i = int(thread.index_1d())
    if w > 0 and (BAD or i < len(c) // w):
        c[i * w] = 1.0


@program("row index that wraps around at 32 bits", lambda: (zeros(1024), 1 << 28, 32), block=(16, 16), domain=2,
         grid=(2, 2))
def wraps_in_a_matrix(c: DisjointSlice[f32], w: i32, h: i32, BAD: Const[bool]):
    row, col = thread.index_2d()
    if row < h and col < w and w > 0 and (BAD or (w <= 16384 and h <= 16384)):
        c[row * w + col] = 1.0


@program("index shifted right", lambda: (zeros(512),))
def shifted(c: DisjointSlice[f32], BAD: Const[bool]):
    i = int(thread.index_1d())
    j = i >> 1 if BAD else i
    if j < len(c):
        c[j] = 1.0


@program("low bit set", lambda: (zeros(512),))
def bit_set(c: DisjointSlice[f32], BAD: Const[bool]):
    i = int(thread.index_1d())
    j = i | 1 if BAD else 2 * i + 1
    if j < len(c):
        c[j] = 1.0


@program("index clamped at the end", lambda: (zeros(500),))
def clamped_end(c: DisjointSlice[f32], BAD: Const[bool]):
    i = int(thread.index_1d())
    if BAD or i < len(c):
        c[min(i, len(c) - 1)] = 1.0


@program("index clamped at the start", lambda: (zeros(512),))
def clamped_start(c: DisjointSlice[f32], BAD: Const[bool]):
    i = int(thread.index_1d())
    if i < len(c) and (BAD or i > 0):
        c[max(i - 1, 0)] = 1.0


@program("distance for position", lambda: (zeros(512),))
def distance(c: DisjointSlice[f32], BAD: Const[bool]):
    i = int(thread.index_1d())
    if i < len(c) and (BAD or i >= 8):
        c[abs(i - 8)] = 1.0


@program("result of a block written by all its threads", lambda: (zeros(2),))
def block_result(c: DisjointSlice[f32], BAD: Const[bool]):
    if (BAD or thread.local_index() == 0) and thread.block_index() < len(c):
        c[thread.block_index()] = 1.0


@program("result of a block written by two of its threads", lambda: (zeros(2),))
def block_result_twice(c: DisjointSlice[f32], BAD: Const[bool]):
    if thread.local_index() < (2 if BAD else 1) and thread.block_index() < len(c):
        c[thread.block_index()] = 1.0


@program("four threads for two results a block", lambda: (zeros(4),))
def halves_of_a_block(c: DisjointSlice[f32], BAD: Const[bool]):
    t = thread.local_index()
    at = thread.block_index() * 2 + t // 128
    if t % (64 if BAD else 128) == 0 and at < len(c):
        c[at] = 1.0


@program("index narrowed to 8 bits", lambda: (zeros(512),))
def narrowed(c: DisjointSlice[f32], BAD: Const[bool]):
    i = int(thread.index_1d())
    if i < len(c):
        c[i32(u8(i)) if BAD else i] = 1.0


@program("second half folded on the first", lambda: (zeros(512), 256))
def folded(c: DisjointSlice[f32], m: i32, BAD: Const[bool]):
    i = int(thread.index_1d())
    if m <= len(c) // 2 and i < 2 * m:
        at = i if BAD else i + m
        if i >= m:
            at = i - m
        c[at] = 1.0


@program("branches that meet", lambda: (zeros(512),))
def branches(c: DisjointSlice[f32], BAD: Const[bool]):
    i = int(thread.index_1d())
    if i < len(c):
        if i % 2 == 0:
            c[i] = 1.0
        elif BAD:
            c[i - 1] = 2.0
        else:
            c[i] = 2.0


@program("stencil in place", lambda: (floats(512), floats(512)))
def stencil_in_place(a: Slice[f32], c: DisjointSlice[f32], BAD: Const[bool]):
    i = int(thread.index_1d())
    if i > 0 and i + 1 < len(c) and i + 1 < len(a):
        if BAD:
            c[i] = c[i - 1] + c[i + 1]
        else:
            c[i] = a[i - 1] + a[i + 1]


@program("reversal in place by all threads", lambda: (floats(512),))
def reversed_in_place(c: DisjointSlice[f32], BAD: Const[bool]):
    i = int(thread.index_1d())
    n = len(c)
    if i < (n if BAD else n // 2):
        x, y = c[i], c[n - 1 - i]
        c[i] = y
        c[n - 1 - i] = x


@program("transposition in place by all threads", lambda: (floats(32, 32),), block=(16, 16), domain=2, grid=(2, 2))
def transposed_in_place(c: DisjointSlice[f32, 2], BAD: Const[bool]):
    row, col = thread.index_2d()
    if row < c.shape[0] and col < c.shape[1] and (row != col if BAD else row < col):
        x, y = c[row, col], c[col, row]
        c[row, col] = y
        c[col, row] = x


@program("shift by one in place", lambda: (floats(513), floats(513)))
def shifted_in_place(a: Slice[f32], c: DisjointSlice[f32], BAD: Const[bool]):
    i = int(thread.index_1d())
    if i + 1 < len(c) and i < len(a):
        c[i + 1] = c[i] if BAD else a[i]


@program("odd-even step on every pair", lambda: (floats(512)[::-1].copy(), 1))
def odd_even(c: DisjointSlice[f32], phase: i32, BAD: Const[bool]):
    i = int(thread.index_1d())
    if i + 1 < len(c) and (BAD or i % 2 == phase):
        x, y = c[i], c[i + 1]
        if x > y:
            c[i] = y
            c[i + 1] = x


@program("Gauss-Seidel without colours", lambda: (floats(32, 32), 0), block=(16, 16), domain=2, grid=(2, 2))
def red_black(c: DisjointSlice[f32, 2], colour: i32, BAD: Const[bool]):
    row, col = thread.index_2d()
    inside = row > 0 and col > 0 and row + 1 < c.shape[0] and col + 1 < c.shape[1]
    if inside and (BAD or (row + col) % 2 == colour):
        c[row, col] = 0.25 * (c[row - 1, col] + c[row + 1, col] + c[row, col - 1] + c[row, col + 1])


@program("butterfly without a zero between the halves", lambda: (floats(1024), 3))
def butterfly(c: DisjointSlice[f32], stage: i32, BAD: Const[bool]):
    i = int(thread.index_1d())
    if stage >= 0 and stage < 20 and i < 1 << 24:
        half = 1 << stage
        low = i & half - 1
        first = ((i >> stage) << (stage if BAD else stage + 1)) | low
        second = first + half
        if second < len(c):
            x, y = c[first], c[second]
            c[first] = x + y
            c[second] = x - y


@program("three channels with a pitch of two", lambda: (zeros(2048),))
def channels(c: DisjointSlice[f32], BAD: Const[bool]):
    i = int(thread.index_1d())
    for k in range(3):
        at = i * (2 if BAD else 3) + k
        if at < len(c):
            c[at] = 1.0


@program("columns shared by two threads", lambda: (zeros(4, 512),))
def columns(c: DisjointSlice[f32, 2], BAD: Const[bool]):
    i = int(thread.index_1d())
    j = i // 2 if BAD else i
    if j < c.shape[1]:
        for row in range(c.shape[0]):
            c[row, j] = 1.0


@program("rows that overlap by one", lambda: (zeros(600, 8),))
def rows(c: DisjointSlice[f32, 2], BAD: Const[bool]):
    i = int(thread.index_1d())
    for k in range(2):
        row = (i if BAD else 2 * i) + k
        if row < c.shape[0]:
            c[row, 0] = 1.0


@program("one element too many a thread", lambda: (zeros(8192),))
def chunk(c: DisjointSlice[f32], BAD: Const[bool]):
    start = int(thread.index_1d()) * 16
    for j in range(17 if BAD else 16):
        if start + j < len(c):
            c[start + j] = 1.0


@program("gap that is too small for what is strided over it", lambda: (zeros(4096),))
def interleaved(c: DisjointSlice[f32], BAD: Const[bool]):
    t = thread.local_index()
    base = thread.block_index() * 1024
    for j in range(4):
        at = base + t + j * (255 if BAD else 256)
        if at < len(c):
            c[at] = 1.0


@program("blocks that overlap", lambda: (zeros(1024),))
def overlapping_blocks(c: DisjointSlice[f32], BAD: Const[bool]):
    i = thread.block_index() * (255 if BAD else 256) + thread.local_index()
    if i < len(c):
        c[i] = 1.0


@program("blocks in two dimensions that overlap", lambda: (zeros(64, 64),), block=(16, 16), domain=2, grid=(2, 2))
def overlapping_tiles(c: DisjointSlice[f32, 2], BAD: Const[bool]):
    row = thread.block_index(1) * (8 if BAD else 16) + thread.local_index(1)
    col = thread.block_index(0) * 16 + thread.local_index(0)
    if row < c.shape[0] and col < c.shape[1]:
        c[row, col] = 1.0


@program("y forgotten in a flat index", lambda: (zeros(1, 512),), block=(16, 16), domain=2, grid=(2, 1))
def y_forgotten(c: DisjointSlice[f32, 2], BAD: Const[bool]):
    i = thread.block_index(0) * 256 + thread.local_index(0)
    if not BAD:
        i += 16 * thread.local_index(1)
    if thread.block_index(1) < c.shape[0] and i < c.shape[1]:
        c[thread.block_index(1), i] = 1.0


@program("pitch smaller than the row", lambda: (zeros(1, 600),), block=(16, 16), domain=2, grid=(2, 1))
def small_pitch(c: DisjointSlice[f32, 2], BAD: Const[bool]):
    i = thread.block_index(0) * 256 + (15 if BAD else 16) * thread.local_index(1) + thread.local_index(0)
    if thread.block_index(1) < c.shape[0] and i < c.shape[1]:
        c[thread.block_index(1), i] = 1.0


@program("quotient without the remainder", lambda: (zeros(512), 7))
def quotient(c: DisjointSlice[f32], w: i32, BAD: Const[bool]):
    i = int(thread.index_1d())
    if w > 0 and i < len(c):
        at = i // w if BAD else i // w * w + i % w
        c[at] = 1.0


@program("exclusive or with what differs between threads", lambda: (ints(512), zeros(1024)))
def xor_with_data(a: Slice[i32], c: DisjointSlice[f32], BAD: Const[bool]):
    i = int(thread.index_1d())
    if i < len(a):
        j = i ^ (a[i] if BAD else a[0])
        if j >= 0 and j < len(c):
            c[j] = 1.0


@program("offset that differs between threads", lambda: (-ints(512), zeros(1024)))
def offset_by_data(a: Slice[i32], c: DisjointSlice[f32], BAD: Const[bool]):
    i = int(thread.index_1d())
    if i < len(a):
        j = i + (a[i] if BAD else a[0])
        if j >= 0 and j < len(c):
            c[j] = 1.0


@program("barrier taken for one of the whole grid", lambda: (floats(512), zeros(512)))
def grid_barrier(c: DisjointSlice[f32], d: DisjointSlice[f32], BAD: Const[bool]):
    i = int(thread.index_1d())
    t = thread.local_index()
    if i < len(c):
        c[i] = 1.0
    barrier()
    if i + 1 < len(c) and i < len(d) and (BAD or t < 255):
        d[i] = c[i + 1]


@program("block 0 reads what other blocks write", lambda: (zeros(2), zeros(1)))
def last_block(partial: DisjointSlice[f32], total: DisjointSlice[f32], BAD: Const[bool]):
    if thread.local_index() == 0 and thread.block_index() < len(partial):
        partial[thread.block_index()] = 1.0
    barrier()
    if thread.global_index() == 0 and len(total) > 0:
        if BAD:
            total[0] = partial[0] + partial[1]
        else:
            total[0] = partial[0]


@program("exchange through global memory without a barrier", lambda: (floats(512),))
def exchange_in_global(c: DisjointSlice[f32], BAD: Const[bool]):
    t = thread.local_index()
    base = thread.block_index() * 256
    if base + 255 < len(c):
        x = c[base + 255 - t]
        if not BAD:
            barrier()
        c[base + t] = x
