"""Atomics: mixed with plain accesses, or taken for an order that they do not give."""

from catalogue import DIVERGENCE, FAULT, floats, ints, program, zeros

import gridwise as gw
from gridwise import AtomicSlice, Const, DisjointSlice, Slice, atomic, barrier, f32, i32, thread, u32


@program("bin cleared by each thread that counts", lambda: (ints(512), zeros(16, dtype="uint32")))
def cleared_while_counted(a: Slice[i32], bins: AtomicSlice[u32], BAD: Const[bool]):
    s = gw.shared((16,), u32)
    t, i = thread.local_index(), thread.global_index()
    if BAD:
        s[t & 15] = 0
    elif t < 16:
        s[t] = 0
    barrier()
    if i < len(a):
        atomic.add(s, a[i] & 15, 1)
    barrier()
    if t < 16 and t < len(bins):
        atomic.add(bins, t, s[t])


@program("bins cleared again before all have read them", lambda: (ints(512), zeros(16, dtype="uint32")))
def cleared_again(a: Slice[i32], bins: AtomicSlice[u32], BAD: Const[bool]):
    s = gw.shared((16,), u32)
    t, i = thread.local_index(), thread.global_index()
    for k in range(2):
        if t < 16:
            s[t] = 0
        barrier()
        if i + k < len(a):
            atomic.add(s, a[i + k] & 15, 1)
        barrier()
        n = s[(t + 1) & 15]
        if not BAD:
            barrier()
        if t < 16 and t < len(bins):
            atomic.add(bins, t, n)


@program("counter incremented without an atomic", lambda: (floats(512), zeros(1, dtype="uint32")))
def plain_counter(a: Slice[f32], count: AtomicSlice[u32], BAD: Const[bool]):
    s = gw.shared((1,), u32)
    t, i = thread.local_index(), thread.global_index()
    if i < len(a) and a[i] > 100.0:
        if BAD:
            s[0] += 1
        else:
            atomic.add(s, 0, 1)
    barrier()
    if t == 0 and len(count) > 0:
        atomic.add(count, 0, s[0])


@program("maximum started by a thread while others update it", lambda: (ints(512), zeros(2, dtype="int32")))
def maximum_started_late(a: Slice[i32], c: DisjointSlice[i32], BAD: Const[bool]):
    s = gw.shared((1,), i32)
    t, i = thread.local_index(), thread.global_index()
    if t == 0:
        s[0] = -1
    if not BAD:
        barrier()
    if i < len(a):
        atomic.max(s, 0, a[i])
    barrier()
    if t == 0 and thread.block_index() < len(c):
        c[thread.block_index()] = s[0]


@program("minimum read by every thread while others update it", lambda: (ints(512), zeros(512, dtype="int32")))
def minimum_read_early(a: Slice[i32], c: DisjointSlice[i32], BAD: Const[bool]):
    s = gw.shared((1,), i32)
    i = thread.global_index()
    if i < len(a):
        atomic.min(s, 0, -a[i])
    if not BAD:
        barrier()
    if i < len(c):
        c[i] = s[0]


@program("flag set by an atomic and read plainly in a loop", lambda: (ints(512), zeros(512, dtype="int32"), 4))
def flag_in_a_loop(a: Slice[i32], c: DisjointSlice[i32], steps: i32, BAD: Const[bool]):
    s = gw.shared((1,), i32)
    i = thread.global_index()
    seen = 0
    for k in range(steps):
        if i < len(a) and a[i] == k:
            atomic.exchange(s, 0, 1)
        barrier()
        seen += s[0]
        if not BAD:
            barrier()
    if i < len(c):
        c[i] = seen


@program("lock taken by an atomic, with a plain write behind it", lambda: (floats(512), zeros(2)))
def try_lock(a: Slice[f32], c: DisjointSlice[f32], BAD: Const[bool]):
    taken = gw.shared((1,), i32)
    s = gw.shared((1,), f32)
    t, i = thread.local_index(), thread.global_index()
    won = atomic.compare_exchange(taken, 0, 0, 1) == 0
    if i < len(a) and (won or t == 7 if BAD else t == 7):
        s[0] = a[i]
    barrier()
    if t == 0 and thread.block_index() < len(c):
        c[thread.block_index()] = s[0]


@program("sum by atomics in one array, by plain adds in its twin", lambda: (floats(512), zeros(16)))
def one_of_two_sums(a: Slice[f32], c: AtomicSlice[f32], BAD: Const[bool]):
    s = gw.shared((2, 16), f32)
    t, i = thread.local_index(), thread.global_index()
    if i < len(a):
        atomic.add(s, (0, t & 15), a[i])
        if BAD:
            s[1, t & 15] += 1.0
        else:
            atomic.add(s, (1, t & 15), 1.0)
    barrier()
    if t < 16 and t < len(c):
        atomic.add(c, t, s[0, t] + s[1, t])


@program("atomic on a neighbour's element", lambda: (zeros(512, dtype="uint32"),))
def atomic_on_a_neighbour(c: DisjointSlice[u32], BAD: Const[bool]):
    s = gw.shared((257,), u32)
    t, i = thread.local_index(), thread.global_index()
    s[t] = u32(t)
    if not BAD:
        barrier()
    atomic.add(s, t + 1, 1)
    barrier()
    if i < len(c):
        c[i] = s[t]


@program("bit set by an atomic or, tested in the same interval", lambda: (ints(512), zeros(512, dtype="uint32")))
def bitmap(a: Slice[i32], c: DisjointSlice[u32], BAD: Const[bool]):
    s = gw.shared((8,), u32)
    t, i = thread.local_index(), thread.global_index()
    if i < len(a):
        atomic.or_(s, t >> 5, u32(1) << u32(t & 31))
    if not BAD:
        barrier()
    if i < len(c):
        c[i] = s[(t >> 5) ^ 1]


@program("total of a block kept where the next block's loop adds", lambda: (floats(1024), zeros(2)))
def total_reused(a: Slice[f32], c: AtomicSlice[f32], BAD: Const[bool]):
    s = gw.shared((1,), f32)
    t = thread.local_index()
    for start in range(thread.block_index() * 256, len(a), 512):
        if t == 0:
            s[0] = 0.0
        barrier()
        if start + t < len(a):
            atomic.add(s, 0, a[start + t])
        barrier()
        if t == 1 and thread.block_index() < len(c):
            atomic.add(c, thread.block_index(), s[0])
        if not BAD:
            barrier()


@program("bin that the data decides", lambda: (ints(512), zeros(16, dtype="uint32")), fault=FAULT)
def bin_of_data(a: Slice[i32], bins: AtomicSlice[u32], BAD: Const[bool]):
    i = thread.global_index()
    if i < len(a) and len(bins) >= 16:
        b = a[i] if BAD else a[i] & 15
        atomic.add(bins, b, 1)


@program("bin of a value that may be negative", lambda: (-ints(512), zeros(16, dtype="uint32")), fault=FAULT)
def bin_of_a_negative(a: Slice[i32], bins: AtomicSlice[u32], BAD: Const[bool]):
    i = thread.global_index()
    if i < len(a):
        b = a[i]
        if b < len(bins) and (BAD or b >= 0):
            atomic.add(bins, b, 1)


@program("work until an atomic counter says stop, with a barrier inside", lambda: (zeros(512), 300), fault=DIVERGENCE)
def work_queue(c: DisjointSlice[f32], n: i32, BAD: Const[bool]):
    s = gw.shared((1,), i32)
    i = thread.global_index()
    if BAD:
        while atomic.add(s, 0, 1) < n:
            barrier()
    else:
        for _ in range(2):
            atomic.add(s, 0, 1)
            barrier()
    if i < len(c):
        c[i] = 1.0


@program("last thread by an atomic reads what the others wrote", lambda: (floats(512), zeros(2)))
def last_thread_reads(a: Slice[f32], c: DisjointSlice[f32], BAD: Const[bool]):
    s = gw.shared((256,), f32)
    done = gw.shared((1,), i32)
    t, i = thread.local_index(), thread.global_index()
    s[t] = a[i] if i < len(a) else 0.0
    last = atomic.add(done, 0, 1) == 255
    if not BAD:
        barrier()
    if (last if BAD else t == 0) and thread.block_index() < len(c):
        total = f32(0)
        for k in range(256):
            total += s[k]
        if t == 0 or not BAD:
            c[thread.block_index()] = total
