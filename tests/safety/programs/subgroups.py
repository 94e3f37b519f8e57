"""Results of subgroups written by the wrong threads; and safe programs whose safety rests on data."""

from catalogue import floats, ints, program, zeros

import gridwise as gw
from gridwise import Const, DisjointSlice, Slice, atomic, barrier, f32, i32, subgroup, thread


@program("result of a subgroup written by all its threads", lambda: (floats(512), zeros(512)))
def subgroup_sums(a: Slice[f32], c: DisjointSlice[f32], BAD: Const[bool]):
    i = thread.global_index()
    x = subgroup.reduce_add(a[i] if i < len(a) else f32(0))
    w = thread.warp_index()
    if (BAD or subgroup.lane() == 0) and w < len(c):
        c[w] = x


@program("sums of subgroups read before they are there", lambda: (floats(512), zeros(2)))
def block_sum(a: Slice[f32], c: DisjointSlice[f32], BAD: Const[bool]):
    s = gw.shared((256,), f32)
    t, i = thread.local_index(), thread.global_index()
    x = subgroup.reduce_add(a[i] if i < len(a) else f32(0))
    if subgroup.lane() == 0:
        s[t // subgroup.size()] = x
    if not BAD:
        barrier()
    if t == 0 and thread.block_index() < len(c):
        total = f32(0)
        for k in range(256 // subgroup.size()):
            total += s[k]
        c[thread.block_index()] = total


@program("two elements kept in one place", lambda: (floats(512), zeros(512)),
         refused="the place comes from an atomic counter: that its old values differ is not modelled")
def compaction(a: Slice[f32], c: DisjointSlice[f32], BAD: Const[bool]):
    count = gw.shared((1,), i32)
    s = gw.shared((256,), f32)
    t, i = thread.local_index(), thread.global_index()
    if i < len(a) and a[i] > 3.0:
        at = atomic.add(count, 0, 1)
        s[at // 2 if BAD else at] = a[i]
    barrier()
    if i < len(c):
        c[i] = s[t]


@program("rows of a sparse matrix that share an end", lambda: (ints(513), zeros(600)),
         refused="the rows are apart only if the offsets ascend, which is data")
def sparse_rows(offsets: Slice[i32], c: DisjointSlice[f32], BAD: Const[bool]):
    i = thread.global_index()
    if i + 1 < len(offsets):
        for k in range(offsets[i], offsets[i + 1] + (1 if BAD else 0)):
            if k >= 0 and k < len(c):
                c[k] = 1.0
