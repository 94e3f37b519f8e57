"""Loops over what data decides: their checks stand before the loop, and find the iteration that goes wrong."""

import numpy as np
from catalogue import FAULT, floats, ints, program, zeros

from gridwise import Const, DisjointSlice, Slice, f32, i32, thread


@program("row of a sparse matrix that takes one element of the next", lambda: (ints(513), floats(512), zeros(512)),
         fault=FAULT)
def sparse_sums(offsets: Slice[i32], values: Slice[f32], c: DisjointSlice[f32], BAD: Const[bool]):
    i = int(thread.index_1d())
    if i < len(c) and i + 1 < len(offsets):
        total = f32(0)
        for k in range(offsets[i], offsets[i + 1] + (1 if BAD else 0)):
            total += values[k]
        c[i] = total


@program("columns of a sparse matrix counted from one", lambda: (ints(513), ints(512), floats(512), zeros(512)),
         fault=FAULT)
def sparse_product(offsets: Slice[i32], columns: Slice[i32], x: Slice[f32], c: DisjointSlice[f32], BAD: Const[bool]):
    i = int(thread.index_1d())
    if i < len(c) and i + 1 < len(offsets):
        total = f32(0)
        for k in range(offsets[i], offsets[i + 1]):
            total += x[columns[k] + (1 if BAD else 0)]
        c[i] = total


@program("window that starts one step too early", lambda: (np.full(64, 3, np.int32), floats(1024), zeros(64)),
         fault=FAULT)
def window_back(where: Slice[i32], a: Slice[f32], c: DisjointSlice[f32], BAD: Const[bool]):
    i = int(thread.index_1d())
    if i < len(c) and i < len(where):
        middle = where[i]
        total = f32(0)
        for k in range(-4 if BAD else -3, 4):
            total += a[middle + k]
        c[i] = total


@program("run downwards that includes -1", lambda: (np.full(64, 9, np.int32), floats(10), zeros(64)), fault=FAULT)
def downwards(where: Slice[i32], a: Slice[f32], c: DisjointSlice[f32], BAD: Const[bool]):
    i = int(thread.index_1d())
    if i < len(c) and i < len(where):
        last = where[i]
        total = f32(0)
        for k in range(last, -2 if BAD else -1, -1):
            total += a[k]
        c[i] = total


@program("pairs of a list with an odd end", lambda: (np.full(64, 5, np.int32), floats(11), zeros(64)), fault=FAULT)
def pairs(pairs_of: Slice[i32], a: Slice[f32], c: DisjointSlice[f32], BAD: Const[bool]):
    i = int(thread.index_1d())
    if i < len(c) and i < len(pairs_of):
        n = pairs_of[i]
        total = f32(0)
        for k in range(n + 1 if BAD else n):
            total += a[2 * k] * a[2 * k + 1]
        c[i] = total
