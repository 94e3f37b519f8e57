"""Indices and divisors that only the arguments decide: the faulty version is stopped by a fault when it runs."""

import numpy as np
from catalogue import FAULT, floats, ints, program, zeros

import gridwise as gw
from gridwise import Const, DisjointSlice, Slice, f32, i32, thread


@program("reads one element past the end", lambda: (floats(512), zeros(512)), fault=FAULT)
def past_the_end(a: Slice[f32], c: DisjointSlice[f32], BAD: Const[bool]):
    i = int(thread.index_1d())
    if i < len(c) and (BAD or i + 1 < len(a)):
        c[i] = a[i + 1]


@program("reads one element before the start", lambda: (floats(512), zeros(512)), fault=FAULT)
def before_the_start(a: Slice[f32], c: DisjointSlice[f32], BAD: Const[bool]):
    i = int(thread.index_1d())
    if i < len(c) and i < len(a) and (BAD or i > 0):
        c[i] = a[i - 1]


@program("loop that includes the end", lambda: (floats(64), zeros(512)), fault=FAULT)
def inclusive_loop(a: Slice[f32], c: DisjointSlice[f32], BAD: Const[bool]):
    i = int(thread.index_1d())
    total = f32(0)
    for k in range(len(a) + (1 if BAD else 0)):
        total += a[k]
    if i < len(c):
        c[i] = total


@program("rows and columns swapped in a matrix that is not square", lambda: (floats(16, 32), zeros(16, 32)),
         fault=FAULT, block=(16, 16), domain=2, grid=(2, 1))
def swapped_axes(a: Slice[f32, 2], c: DisjointSlice[f32, 2], BAD: Const[bool]):
    row, col = thread.index_2d()
    if row < c.shape[0] and col < c.shape[1]:
        if BAD:
            c[row, col] = a[col, row]
        elif row < a.shape[0] and col < a.shape[1]:
            c[row, col] = a[row, col]


@program("shared array one element too small", lambda: (floats(512), zeros(512)), fault=FAULT)
def small_shared(a: Slice[f32], c: DisjointSlice[f32], BAD: Const[bool]):
    s = gw.shared((255 if BAD else 256,), f32)
    t, i = thread.local_index(), thread.global_index()
    if i < len(a) and i < len(c):
        s[t] = a[i]
        c[i] = s[t]


@program("halo wider than the shared array", lambda: (floats(512), zeros(512)), fault=FAULT)
def small_halo(a: Slice[f32], c: DisjointSlice[f32], BAD: Const[bool]):
    s = gw.shared((257 if BAD else 258,), f32)
    t, i = thread.local_index(), thread.global_index()
    s[t + 1] = a[i] if i < len(a) else 0.0
    if t == 255:
        s[t + 2] = 0.0
    gw.barrier()
    if i < len(c):
        c[i] = s[t]


@program("index taken from data", lambda: (np.full(512, 1000, np.int32), floats(512), zeros(512)), fault=FAULT)
def gather(where: Slice[i32], a: Slice[f32], c: DisjointSlice[f32], BAD: Const[bool]):
    i = int(thread.index_1d())
    if i < len(c) and i < len(where):
        at = where[i]
        if BAD or (at >= 0 and at < len(a)):
            c[i] = a[at]


@program("negative index taken from data", lambda: (np.full(512, -1, np.int32), floats(512), zeros(512)), fault=FAULT)
def gather_negative(where: Slice[i32], a: Slice[f32], c: DisjointSlice[f32], BAD: Const[bool]):
    i = int(thread.index_1d())
    if i < len(c) and i < len(where):
        at = where[i]
        if at < len(a) and (BAD or at >= 0):
            c[i] = a[at]


@program("division by zero", lambda: (np.zeros(512, np.int32), zeros(512, dtype="int32")), fault=FAULT)
def divided(a: Slice[i32], c: DisjointSlice[i32], BAD: Const[bool]):
    i = int(thread.index_1d())
    if i < len(a) and i < len(c) and (BAD or a[i] != 0):
        c[i] = 100 // a[i]


@program("remainder by zero", lambda: (ints(512), zeros(512, dtype="int32"), 0), fault=FAULT)
def remainder(a: Slice[i32], c: DisjointSlice[i32], n: i32, BAD: Const[bool]):
    i = int(thread.index_1d())
    if i < len(a) and i < len(c) and (BAD or n > 0):
        c[i] = a[i] % n


@program("guard on the length of another array", lambda: (floats(100), zeros(512)), fault=FAULT)
def other_length(a: Slice[f32], c: DisjointSlice[f32], BAD: Const[bool]):
    i = int(thread.index_1d())
    if i < len(c) and (BAD or i < len(a)):
        c[i] = a[i]


@program("first element of an empty array", lambda: (floats(0), zeros(512)), fault=FAULT)
def empty(a: Slice[f32], c: DisjointSlice[f32], BAD: Const[bool]):
    i = int(thread.index_1d())
    if i < len(c) and (BAD or len(a) > 0):
        c[i] = a[0]


@program("offset that an argument gives", lambda: (floats(512), zeros(512), 10), fault=FAULT)
def offset(a: Slice[f32], c: DisjointSlice[f32], start: i32, BAD: Const[bool]):
    i = int(thread.index_1d())
    if i < len(c) and start >= 0 and start < 1024 and (BAD or i + start < len(a)):
        c[i] = a[i + start]


@program("every second element of an array that is too short", lambda: (floats(512), zeros(512)), fault=FAULT)
def every_second_element(a: Slice[f32], c: DisjointSlice[f32], BAD: Const[bool]):
    i = int(thread.index_1d())
    if i < len(c) and (BAD or 2 * i + 1 < len(a)):
        c[i] = a[2 * i + 1]


@program("write past the end", lambda: (zeros(500),), fault=FAULT)
def no_guard(c: DisjointSlice[f32], BAD: Const[bool]):
    i = int(thread.index_1d())
    if BAD or i < len(c):
        c[i] = 1.0


@program("guard that lets the length through", lambda: (zeros(500),), fault=FAULT)
def wrong_guard(c: DisjointSlice[f32], BAD: Const[bool]):
    i = int(thread.index_1d())
    if i <= len(c) if BAD else i < len(c):
        c[i] = 1.0


@program("guard that wraps around", lambda: (floats(512), zeros(512), -(1 << 31)), fault=FAULT)
def guard_wraps(a: Slice[f32], c: DisjointSlice[f32], n: i32, BAD: Const[bool]):
    i = int(thread.index_1d())
    if i < len(c) and n <= len(a) and (i < n - 1 if BAD else i + 1 < n):
        c[i] = a[i + 1 if BAD else i]


@program("padding that is not there", lambda: (floats(10, 10), zeros(10, 10)), fault=FAULT, block=(16, 16), domain=2,
         grid=(1, 1))
def padding(a: Slice[f32, 2], c: DisjointSlice[f32, 2], BAD: Const[bool]):
    row, col = thread.index_2d()
    if row < c.shape[0] and col < c.shape[1]:
        total = f32(0)
        for k in range(-1, 2):
            if BAD or (col + k >= 0 and col + k < a.shape[1] and row < a.shape[0]):
                total += a[row, col + k]
        c[row, col] = total
