"""Barriers and subgroup operations that only some threads of a block reach."""

from catalogue import DIVERGENCE, floats, ints, program, zeros

import gridwise as gw
from gridwise import Const, DisjointSlice, Slice, atomic, barrier, f32, i32, subgroup, thread


@program("early return before a barrier", lambda: (floats(300), zeros(512)), fault=DIVERGENCE)
def early_return(a: Slice[f32], c: DisjointSlice[f32], BAD: Const[bool]):
    s = gw.shared((256,), f32)
    t, i = thread.local_index(), thread.global_index()
    if BAD and i >= len(a):
        return
    if i < len(a):
        s[t] = a[i]
    barrier()
    if i < len(c):
        c[i] = s[255 - t]


@program("barrier inside a branch on the thread", lambda: (floats(512), zeros(512)), fault=DIVERGENCE)
def in_a_branch(a: Slice[f32], c: DisjointSlice[f32], BAD: Const[bool]):
    s = gw.shared((256,), f32)
    t, i = thread.local_index(), thread.global_index()
    if t < 128 and i < len(a):
        s[t] = a[i]
        if BAD:
            barrier()
    if not BAD:
        barrier()
    if i < len(c):
        c[i] = s[t % 128]


@program("barrier in the else of a branch on the thread", lambda: (zeros(500),), fault=DIVERGENCE)
def in_an_else(c: DisjointSlice[f32], BAD: Const[bool]):
    i = thread.global_index()
    if i < len(c):
        c[i] = 1.0
    elif BAD:
        barrier()
    if not BAD:
        barrier()


@program("barrier in a loop whose length differs between threads", lambda: (zeros(512),), fault=DIVERGENCE)
def loop_bound(c: DisjointSlice[f32], BAD: Const[bool]):
    i = thread.global_index()
    for _ in range(thread.local_index() if BAD else 8):
        barrier()
    if i < len(c):
        c[i] = 1.0


@program("barrier in a loop that starts at the thread", lambda: (zeros(512),), fault=DIVERGENCE)
def loop_start(c: DisjointSlice[f32], BAD: Const[bool]):
    for _ in range(thread.local_index() if BAD else thread.block_index(), 300, 256):
        barrier()
    i = thread.global_index()
    if i < len(c):
        c[i] = 1.0


@program("break before a barrier", lambda: (zeros(512),), fault=DIVERGENCE)
def divergent_break(c: DisjointSlice[f32], BAD: Const[bool]):
    i = thread.global_index()
    for k in range(8):
        if (thread.local_index() if BAD else thread.block_index()) == k:
            break
        barrier()
    if i < len(c):
        c[i] = 1.0


@program("continue before a barrier", lambda: (zeros(512),), fault=DIVERGENCE)
def divergent_continue(c: DisjointSlice[f32], BAD: Const[bool]):
    i = thread.global_index()
    for k in range(8):
        if (thread.local_index() if BAD else thread.block_index()) == k:
            continue
        barrier()
    if i < len(c):
        c[i] = 1.0


@program("barrier under a condition on each thread's data", lambda: (floats(512), zeros(512)), fault=DIVERGENCE)
def on_data(a: Slice[f32], c: DisjointSlice[f32], BAD: Const[bool]):
    i = thread.global_index()
    if i < len(a) and i < len(c):
        c[i] = 1.0
    if a[i if BAD else 0] > 100.0:
        barrier()


@program("loop until each thread's own flag, with a barrier inside", lambda: (zeros(512),), fault=DIVERGENCE)
def until_flag(c: DisjointSlice[f32], BAD: Const[bool]):
    flag = gw.shared((256,), i32)
    i = thread.global_index()
    flag[thread.local_index()] = i32(i) % 2
    k = 0
    while (flag[thread.local_index()] + k < 4 if BAD else k < 4):
        barrier()
        k += 1
    if i < len(c):
        c[i] = 1.0


@program("condition assigned in a branch on the thread", lambda: (zeros(512),), fault=DIVERGENCE)
def assigned_condition(c: DisjointSlice[f32], BAD: Const[bool]):
    i = thread.global_index()
    ready = False
    if (i if BAD else thread.block_index()) < 100:
        ready = True
    if ready:
        barrier()
    if i < len(c):
        c[i] = 1.0


@program("early return in a function that synchronises", lambda: (zeros(512),), fault=DIVERGENCE)
def in_a_function(c: DisjointSlice[f32], BAD: Const[bool]):
    i = thread.global_index()

    def step(n: i32) -> i32:
        if (thread.local_index() if BAD else thread.block_index()) > 3:
            return n
        barrier()
        return n + 1

    x = step(1)
    if i < len(c):
        c[i] = f32(x)


@program("function that synchronises called in a branch on the thread", lambda: (zeros(512),), fault=DIVERGENCE)
def called_in_a_branch(c: DisjointSlice[f32], BAD: Const[bool]):
    i = thread.global_index()

    def together():
        barrier()

    if (i if BAD else thread.block_index()) > 3:
        together()
    if i < len(c):
        c[i] = 1.0


@program("subgroup sum in a branch on the thread", lambda: (floats(500), zeros(500)), fault=DIVERGENCE)
def subgroup_in_branch(a: Slice[f32], c: DisjointSlice[f32], BAD: Const[bool]):
    i = thread.global_index()
    x = f32(0)
    if BAD:
        if i < len(a):
            x = subgroup.reduce_add(a[i])
    else:
        x = subgroup.reduce_add(a[i] if i < len(a) else f32(0))
    if i < len(c):
        c[i] = x


@program("shuffle behind an early return", lambda: (floats(300), zeros(300)), fault=DIVERGENCE)
def shuffle_after_return(a: Slice[f32], c: DisjointSlice[f32], BAD: Const[bool]):
    i = thread.global_index()
    if BAD and i >= len(a):
        return
    x = subgroup.shuffle_xor(a[i] if i < len(a) else f32(0), 1)
    if i < len(c):
        c[i] = x


@program("return in a loop before a barrier", lambda: (zeros(512),), fault=DIVERGENCE)
def return_in_a_loop(c: DisjointSlice[f32], BAD: Const[bool]):
    i = thread.global_index()
    for k in range(4):
        if (i if BAD else thread.block_index()) > 300 + k:
            return
    barrier()
    if i < len(c):
        c[i] = 1.0


@program("match on the thread", lambda: (zeros(512),), fault=DIVERGENCE)
def matched(c: DisjointSlice[f32], BAD: Const[bool]):
    i = thread.global_index()
    match (i % 2) if BAD else (thread.block_index() % 2):
        case 0:
            barrier()
        case _:
            pass
    if i < len(c):
        c[i] = 1.0


@program("condition with a part that differs between threads", lambda: (zeros(512), 3), fault=DIVERGENCE)
def short_circuit(c: DisjointSlice[f32], n: i32, BAD: Const[bool]):
    i = thread.global_index()
    if n > 2 and (i if BAD else n) < 100:
        barrier()
    if i < len(c):
        c[i] = 1.0


@program("result of an atomic decides", lambda: (zeros(512),), fault=DIVERGENCE)
def last_one(c: DisjointSlice[f32], BAD: Const[bool]):
    count = gw.shared((1,), i32)
    i = thread.global_index()
    old = atomic.add(count, 0, 1)
    if (old if BAD else thread.block_index()) == 0:
        barrier()
    if i < len(c):
        c[i] = f32(old)


@program("barrier in the else of a loop that some threads leave", lambda: (zeros(512),), fault=DIVERGENCE)
def loop_else(c: DisjointSlice[f32], BAD: Const[bool]):
    i = thread.global_index()
    for k in range(4):
        if (i if BAD else thread.block_index()) == k:
            break
    else:
        barrier()
    if i < len(c):
        c[i] = 1.0


@program("barrier in a loop over the grid", lambda: (floats(700), zeros(700)), fault=DIVERGENCE)
def grid_stride_barrier(a: Slice[f32], c: DisjointSlice[f32], BAD: Const[bool]):
    s = gw.shared((256,), f32)
    t = thread.local_index()
    step = 256 * thread.grid_dim()
    for start in range(thread.global_index() if BAD else thread.block_index() * 256, len(c), step):
        i = start if BAD else start + t
        if i < len(a):
            s[t] = a[i]
        barrier()
        if i < len(c):
            c[i] = s[t]
        barrier()


@program("name that differs between threads from the second iteration on", lambda: (ints(8), zeros(512)),
         fault=DIVERGENCE)
def later_iteration(a: Slice[i32], c: DisjointSlice[f32], BAD: Const[bool]):
    i = thread.global_index()
    x = thread.block_index()
    for k in range(4):
        if x > 2:
            barrier()
        x = thread.local_index() if BAD else thread.block_index() + k
    if i < len(c):
        c[i] = 1.0
