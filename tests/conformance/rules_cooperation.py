"""The parts of the language by name: cooperation, conditional code, unsafe, output."""

from __future__ import annotations

import numpy as np
from cases import case, refused, run

import gridwise as gw
from gridwise import (
    AtomicSlice,
    Cap,
    DisjointSlice,
    Slice,
    atomic,
    barrier,
    f32,
    i32,
    subgroup,
    thread,
    u8,
    u32,
    u64,
)

# -- cooperation -----------------------------------------------------------------------------------------------


@gw.kernel(block=128)
def reversed_blocks(x: Slice[i32], o: DisjointSlice[i32]):
    s = gw.shared((128,), i32)
    t = thread.local_index()
    i = thread.index_1d()
    s[t] = x[i] if i in x else -1
    barrier()
    if i in o:
        o[i] = s[127 - t]


@case("cooperation")
def shared_memory_and_barriers(device):
    x = np.arange(1024, dtype=np.int32)
    o = run(device, reversed_blocks, x, np.zeros_like(x))[1]
    assert o.tolist() == x.reshape(-1, 128)[:, ::-1].reshape(-1).tolist()


@gw.kernel(block=64)
def untouched(o: DisjointSlice[i32]):
    s = gw.shared((64, 3), i32)
    i = thread.index_1d()
    if i in o:
        o[i] = s[thread.local_index(), 0] + s[63 - thread.local_index(), 2]


@case("cooperation")
def shared_memory_starts_at_zero(device):
    run(device, reversed_blocks, np.full(1024, 77, np.int32), np.zeros(1024, np.int32))
    assert run(device, untouched, np.full(640, 9, np.int32))[0].tolist() == [0] * 640


@gw.kernel(block=256)
def tree(x: Slice[i32], o: DisjointSlice[i32]):
    s = gw.shared((256,), i32)
    t = thread.local_index()
    i = thread.global_index()
    s[t] = x[i] if i < len(x) else 0
    barrier()
    step = 128
    while step > 0:
        if t < step:
            s[t] += s[t + step]
        barrier()
        step = step // 2
    if t == 0 and thread.block_index() < len(o):
        o[thread.block_index()] = s[0]


@case("cooperation")
def a_tree_reduction(device):
    x = np.random.default_rng(1).integers(-(2**31), 2**31, 2000).astype(np.int32)
    o = run(device, tree, x, np.zeros(8, np.int32), grid=8)[1]
    want = [np.add.reduce(x[n : n + 256], dtype=np.int32) for n in range(0, 2000, 256)]
    assert o.tolist() == [int(w) for w in want]


@gw.kernel(block=64)
def counts(x: Slice[i32], c: AtomicSlice[i32], m: AtomicSlice[u32]):
    i = thread.index_1d()
    if i in x:
        v = x[i]
        atomic.add(c, v % 8, 1)
        atomic.max(c, 8, v)
        atomic.min(c, 9, v)
        atomic.xor(c, 10, v)
        atomic.or_(m, 0, u32(1) << u32(v % 32))
        atomic.and_(m, 1, ~(u32(1) << u32(v % 32)))
        atomic.sub(m, 2, 3)


@case("cooperation")
def atomics_of_32_bits(device):
    x = np.random.default_rng(2).integers(-1000, 1000, 500).astype(np.int32)
    c, m = np.zeros(11, np.int32), np.array([0, 2**32 - 1, 5], np.uint32)
    c, m = run(device, counts, x, c, m, grid=8)[1:]
    assert c[:8].tolist() == np.bincount(x % 8, minlength=8).tolist()
    assert c[8:].tolist() == [max(0, x.max()), min(0, x.min()), np.bitwise_xor.reduce(x)]
    bits = np.bitwise_or.reduce(np.uint32(1) << (x % 32).astype(np.uint32))
    assert m.tolist() == [bits, ~bits & 0xFFFFFFFF, (5 - 1500) % 2**32]


@gw.kernel(block=64)
def locks(c: AtomicSlice[u32], o: DisjointSlice[u32]):
    i = thread.index_1d()
    if i in o:
        o[i] = atomic.add(c, 0, 1)
        seen = u32(0)
        done = False
        while not done:
            was = atomic.compare_exchange(c, 1, seen, seen + 2)
            done = was == seen
            seen = was
        atomic.exchange(c, 2, 7)


@case("cooperation")
def atomics_return_the_old_value(device):
    c, o = run(device, locks, np.zeros(3, np.uint32), np.zeros(300, np.uint32))
    assert sorted(o.tolist()) == list(range(300)) and c.tolist() == [300, 600, 7]


@gw.kernel(block=64)
def float_atomics(x: Slice[f32], c: AtomicSlice[f32]):
    i = thread.index_1d()
    if i in x:
        atomic.add(c, 0, x[i])
        atomic.max(c, 1, x[i])
        atomic.min(c, 2, x[i])


@case("cooperation")
def atomics_of_f32(device):
    x = -np.arange(1, 301, dtype=np.float32)
    c = run(device, float_atomics, x, np.array([0, -np.inf, np.inf], np.float32), grid=5)[1]
    assert c.tolist() == [-45150.0, -1.0, -300.0]


@gw.kernel(block=64)
def histogram(x: Slice[u8], bins: AtomicSlice[u32]):
    s = gw.shared((256,), u32)
    i = thread.index_1d()
    t = thread.local_index()
    if i in x:
        atomic.add(s, i32(x[i]), 1, scope="block")
    barrier()
    for k in range(t, 256, 64):
        atomic.add(bins, k, s[k])


@case("cooperation")
def atomics_on_shared_memory(device):
    x = np.random.default_rng(3).integers(0, 256, 2000).astype(np.uint8)
    bins = run(device, histogram, x, np.zeros(256, np.uint32), grid=-(-2000 // 64))[1]
    assert bins.tolist() == np.bincount(x, minlength=256).tolist()


@gw.kernel(block=64)
def wide_atomics(c: AtomicSlice[u64], o: DisjointSlice[u64]):
    i = thread.index_1d()
    if i in o:
        o[i] = atomic.add(c, 0, u64(2**33))
        atomic.max(c, 1, u64(int(i)) << 40)


@case("cooperation", needs=(Cap.ATOMIC_I64, Cap.I64))
def atomics_of_64_bits(device):
    c, o = run(device, wide_atomics, np.zeros(2, np.uint64), np.zeros(100, np.uint64))
    assert c.tolist() == [100 * 2**33, 99 << 40] and sorted(o.tolist()) == [n * 2**33 for n in range(100)]


@gw.kernel(block=64)
def groups_of_lanes(x: Slice[i32], o: DisjointSlice[i32, 2]):
    i = int(thread.index_1d())
    v = x[i] if i < len(x) else 0
    total = subgroup.reduce(v)
    least_ = subgroup.reduce(v, "min")
    running = subgroup.scan(v)
    before = subgroup.scan(v, "exclusive_add")
    other = subgroup.shuffle_xor(v, 1)
    some_ = subgroup.any(v > 40)
    lanes = subgroup.size()
    if i < o.shape[0]:
        o[i, 0] = total
        o[i, 1] = least_
        o[i, 2] = running
        o[i, 3] = before
        o[i, 4] = other
        o[i, 5] = i32(some_)
        o[i, 6] = i32(lanes)


@case("cooperation", needs=(Cap.SUBGROUP,))
def subgroup_operations(device):
    x = np.random.default_rng(4).integers(-50, 50, 128).astype(np.int32)
    o = run(device, groups_of_lanes, x, np.zeros((128, 8), np.int32), grid=2)[1]
    size = int(o[0, 6])
    assert size in device.limits.subgroup_sizes
    for block in range(2):
        for first in range(block * 64, block * 64 + 64, size):
            lanes = x[first : min(first + size, block * 64 + 64)].tolist()
            for k, v in enumerate(lanes):
                swapped = lanes[k ^ 1] if k ^ 1 < len(lanes) else v
                want = [sum(lanes), min(lanes), sum(lanes[: k + 1]), sum(lanes[:k]), swapped, max(lanes) > 40, size]
                assert o[first + k, :7].tolist() == [int(w) for w in want]


@gw.kernel(block=64)
def divergent(o: DisjointSlice[i32]):
    if thread.local_index() < 10:
        barrier()  # HERE
    o[thread.index_1d()] = 1


@case("cooperation")
def a_divergent_barrier_never_compiles(device):
    refused(device, gw.DivergenceError, "barrier", divergent, np.zeros(64, np.int32))


# -- conditional code ------------------------------------------------------------------------------------------


@gw.kernel(block=64)
def conditional(o: DisjointSlice[i32]):
    i = thread.index_1d()
    if gw.target.has(Cap.SUBGROUP):
        x = i32(subgroup.size())
    else:
        x = 0
    if i in o:
        o[i] = x


@case("conditional code")
def target_has_folds(device):
    o = run(device, conditional, np.full(10, -1, np.int32))[0].tolist()
    assert len(set(o)) == 1
    assert (o[0] in device.limits.subgroup_sizes) if Cap.SUBGROUP in device.caps else o[0] == 0


# -- unsafe ----------------------------------------------------------------------------------------------------


@gw.kernel(block=64)
def permutes(at: Slice[i32], x: Slice[i32], o: DisjointSlice[i32]):
    i = thread.index_1d()
    if i in at and i in x:
        with gw.unsafe("`at` is a permutation"):
            o[at[i]] = x[i]  # HERE


@case("unsafe")
def unsafe_permits_what_cannot_be_proved(device):
    at = np.random.default_rng(5).permutation(200).astype(np.int32)
    x = np.arange(200, dtype=np.int32)
    o = run(device, permutes, at, x, np.zeros_like(x))[2]
    assert o[at].tolist() == x.tolist()


# -- output ----------------------------------------------------------------------------------------------------


@gw.kernel(block=4)
def speaks(x: Slice[f32]):
    i = thread.index_1d()
    if i in x and x[i] > 0:
        print(f"thread {int(i)}: {x[i]:.2f}")


@case("output", needs=(Cap.PRINT,))
def print_in_the_order_of_threads(device):
    import contextlib
    import io

    text = io.StringIO()
    with contextlib.redirect_stdout(text):
        run(device, speaks, np.array([1, -1, 2.5, 0, 3, 4.125], np.float32), grid=2)
    assert text.getvalue() == "thread 0: 1.00\nthread 2: 2.50\nthread 4: 3.00\nthread 5: 4.12\n"


