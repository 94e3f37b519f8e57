"""Kernels with shared memory and barriers on the CPU, beside numba's prange, Warp and Taichi in the same process.

    pip install gridwise[bench]
    python bench/cpu_cooperative.py [--only reduction,matmul] [--json FILE]

Four programs: a reduction, a histogram, a tiled transpose and a tiled matrix product. Ours are the GPU programs as
they stand: blocks, shared memory, barriers. numba's are its best plain loops over ``prange``; numba has no barrier
on the CPU, so the tiled product is also written with tiles the way its users do. Warp runs CPU kernels on one
thread and has no shared memory; Taichi's are parallel loops. All arrays start at a cache line. Times are the best of
several runs, in milliseconds.
"""

import argparse
import json
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from report import compared

import gridwise as gw
from gridwise import AtomicSlice, DisjointSlice, Slice, f32, i32, thread, u8, u32

REPEAT, LONGEST = 7, 3.0  # runs, and the seconds after which there are no more


# ---- ours --------------------------------------------------------------------------------------------------------
@gw.kernel(domain=1, block=256)
def reduction(a: Slice[f32], total: AtomicSlice[f32]):
    partial = gw.shared((256,), f32)
    t = thread.local_index()
    acc = f32(0)
    for i in thread.grid_stride(a):
        acc += a[i]
    partial[t] = acc
    gw.barrier()
    stride = 128
    while stride > 0:
        if t < stride:
            partial[t] += partial[t + stride]
        gw.barrier()
        stride //= 2
    if t == 0:
        gw.atomic.add(total, 0, partial[0])


@gw.kernel(domain=1, block=256)
def histogram(keys: Slice[u8], bins: AtomicSlice[u32]):
    counts = gw.shared((256,), u32)
    for i in thread.grid_stride(keys):
        gw.atomic.add(counts, i32(keys[i]), 1)
    gw.barrier()
    t = thread.local_index()
    gw.atomic.add(bins, t, counts[t])


@gw.kernel(domain=2, block=(32, 8))
def transpose(a: Slice[f32, 2], b: DisjointSlice[f32, 2]):
    tile = gw.shared((32, 33), f32)
    x, y = thread.local_index(0), thread.local_index(1)
    col, row = thread.block_index(0) * 32, thread.block_index(1) * 32
    for j in range(0, 32, 8):
        if row + y + j < a.shape[0] and col + x < a.shape[1]:
            tile[y + j, x] = a[row + y + j, col + x]
    gw.barrier()
    for j in range(0, 32, 8):
        if col + y + j < b.shape[0] and row + x < b.shape[1]:
            b[col + y + j, row + x] = tile[x, y + j]


@gw.kernel(domain=2, block=(16, 16))
def matmul(a: Slice[f32, 2], b: Slice[f32, 2], c: DisjointSlice[f32, 2]):
    x, y = gw.shared((16, 16), f32), gw.shared((16, 16), f32)
    tx, ty = thread.local_index(0), thread.local_index(1)
    row, col = thread.global_index(1), thread.global_index(0)
    acc = f32(0)
    for step in range((a.shape[1] + 15) // 16):
        x[ty, tx] = a[row, step * 16 + tx] if row < a.shape[0] and step * 16 + tx < a.shape[1] else 0.0
        y[ty, tx] = b[step * 16 + ty, col] if step * 16 + ty < b.shape[0] and col < b.shape[1] else 0.0
        gw.barrier()
        for j in range(16):
            acc += x[ty, j] * y[j, tx]
        gw.barrier()
    if row < c.shape[0] and col < c.shape[1]:
        c[row, col] = acc


# ---- the others --------------------------------------------------------------------------------------------------
def numba_programs() -> dict[str, Callable[..., None]]:
    """The plain parallel loops that numba's users write, and the tiled product."""
    import numba
    from numba import njit, prange

    fast = {"parallel": True, "fastmath": {"contract", "reassoc"}}

    @njit(**fast)
    def reduction(a, total):
        s = np.float32(0)
        for i in prange(a.size):
            s += a[i]
        total[0] += s

    @njit(parallel=True)
    def histogram(keys, bins):
        workers = numba.get_num_threads()
        private = np.zeros((workers, 256), np.uint32)
        for w in prange(workers):
            for i in range(w * keys.size // workers, (w + 1) * keys.size // workers):
                private[w, keys[i]] += 1
        bins += private.sum(axis=0).astype(np.uint32)

    @njit(parallel=True)
    def transpose(a, b):
        h, w = a.shape
        for bi in prange((w + 31) // 32):
            for bj in range((h + 31) // 32):
                for i in range(bi * 32, min(bi * 32 + 32, w)):
                    for j in range(bj * 32, min(bj * 32 + 32, h)):
                        b[i, j] = a[j, i]

    @njit(**fast)
    def matmul(a, b, c):
        m, k = a.shape
        n = b.shape[1]
        for bi in prange((m + 15) // 16):
            acc = np.empty((16, 16), np.float32)
            for bj in range((n + 15) // 16):
                acc[:] = 0
                rows, cols = min(16, m - bi * 16), min(16, n - bj * 16)
                for p in range(k):
                    for i in range(rows):
                        x = a[bi * 16 + i, p]
                        for j in range(cols):
                            acc[i, j] += x * b[p, bj * 16 + j]
                for i in range(rows):
                    for j in range(cols):
                        c[bi * 16 + i, bj * 16 + j] = acc[i, j]

    return {"reduction": reduction, "histogram": histogram, "transpose": transpose, "matmul": matmul}


def warp_programs() -> dict[str, Callable[..., None]]:
    """Warp on its CPU device: one thread, atomics for what is shared."""
    import warp as wp

    wp.config.quiet = True
    wp.init()

    @wp.kernel
    def sum_all(a: wp.array(dtype=float), total: wp.array(dtype=float)):
        wp.atomic_add(total, 0, a[wp.tid()])

    @wp.kernel
    def count(keys: wp.array(dtype=wp.uint8), bins: wp.array(dtype=wp.uint32)):
        wp.atomic_add(bins, int(keys[wp.tid()]), wp.uint32(1))

    @wp.kernel
    def flip(a: wp.array2d(dtype=float), b: wp.array2d(dtype=float)):
        i, j = wp.tid()
        b[i, j] = a[j, i]

    @wp.kernel
    def product(a: wp.array2d(dtype=float), b: wp.array2d(dtype=float), c: wp.array2d(dtype=float)):
        i, j = wp.tid()
        s = float(0.0)  # noqa: UP018 (Warp's way of making a variable)
        for p in range(a.shape[1]):
            s += a[i, p] * b[p, j]
        c[i, j] = s

    def launcher(kernel: Any, dims: Callable[..., Any]) -> Callable[..., None]:
        def call(*arrays: np.ndarray) -> None:
            wrapped = [wp.array(x, copy=False, device="cpu") for x in arrays]
            wp.launch(kernel, dim=dims(*arrays), inputs=wrapped, device="cpu")

        return call

    return {
        "reduction": launcher(sum_all, lambda a, t: a.size),
        "histogram": launcher(count, lambda k, b: k.size),
        "transpose": launcher(flip, lambda a, b: b.shape),
        "matmul": launcher(product, lambda a, b, c: c.shape),
    }


def taichi_programs() -> dict[str, Callable[..., None]]:
    """Taichi on its CPU back end: parallel outermost loops."""
    import taichi as ti

    ti.init(arch=ti.cpu, log_level=ti.ERROR)

    @ti.kernel
    def reduction(a: ti.types.ndarray(ndim=1), total: ti.types.ndarray(ndim=1)):
        for i in a:
            total[0] += a[i]

    @ti.kernel
    def histogram(keys: ti.types.ndarray(ndim=1), bins: ti.types.ndarray(ndim=1)):
        for i in keys:
            bins[ti.cast(keys[i], ti.i32)] += ti.u32(1)

    @ti.kernel
    def transpose(a: ti.types.ndarray(ndim=2), b: ti.types.ndarray(ndim=2)):
        for i, j in b:
            b[i, j] = a[j, i]

    @ti.kernel
    def matmul(a: ti.types.ndarray(ndim=2), b: ti.types.ndarray(ndim=2), c: ti.types.ndarray(ndim=2)):
        for i, j in c:
            s = 0.0
            for p in range(a.shape[1]):
                s += a[i, p] * b[p, j]
            c[i, j] = s

    return {"reduction": reduction, "histogram": histogram, "transpose": transpose, "matmul": matmul}


def aligned(shape: tuple[int, ...], dtype: Any = np.float32) -> np.ndarray:
    """Zeros from the start of a cache line on: NumPy's own large arrays start 16 bytes into one."""
    size = int(np.prod(shape)) * np.dtype(dtype).itemsize
    raw = np.zeros(size + 64, np.uint8)
    start = -raw.ctypes.data % 64
    return raw[start : start + size].view(dtype).reshape(shape)


def filled(values: np.ndarray) -> np.ndarray:
    out = aligned(values.shape, values.dtype)
    out[...] = values
    return out


# ---- the comparison ------------------------------------------------------------------------------------------------
def problems(scale: float) -> dict[str, tuple[list[np.ndarray], np.ndarray, str]]:
    """Inputs with the output last, the right answer, and what was done."""
    rng = np.random.default_rng(5)
    n = int((1 << 26) * scale)
    side, square = int(8192 * scale**0.5) // 32 * 32, int(1024 * scale ** (1 / 3)) // 16 * 16
    a, keys = filled(rng.random(n, np.float32)), filled(rng.integers(0, 256, n, np.uint8))
    m = filled(rng.random((side, side), np.float32))
    p, q = (filled(rng.random((square, square), np.float32)) for _ in range(2))
    return {
        "reduction": ([a, np.zeros(1, np.float32)], np.array([a.sum(dtype=np.float64)]), f"{n} f32"),
        "histogram": ([keys, np.zeros(256, np.uint32)], np.bincount(keys, minlength=256), f"{n} u8, 256 bins"),
        "transpose": ([m, aligned(m.shape)], m.T, f"{side} x {side} f32"),
        "matmul": ([p, q, aligned(p.shape)], p @ q, f"{square} x {square} f32, tiles of 16"),
    }


def ours(device: Any) -> dict[str, Callable[..., None]]:
    """The kernels above on NumPy arrays in place; grid-stride kernels with a block for each core."""
    cores = device.workers
    return {
        "reduction": lambda a, total: reduction(a, total, grid=cores),
        "histogram": lambda keys, bins: histogram(keys, bins, grid=cores),
        "transpose": lambda a, b: transpose(a, b, grid=(-(-a.shape[1] // 32), -(-a.shape[0] // 32))),
        "matmul": matmul,
    }


def best(call: Callable[..., None], arrays: list[np.ndarray], right: np.ndarray) -> float:
    """Milliseconds, after a first call that compiles and whose result is checked."""
    out = arrays[-1]
    out[...] = 0
    call(*arrays)
    np.testing.assert_allclose(out, right, rtol=2e-3)
    times: list[float] = []
    while len(times) < REPEAT and sum(times) < LONGEST:
        out[...] = 0
        start = time.perf_counter()
        call(*arrays)
        times.append(time.perf_counter() - start)
    return min(times) * 1e3


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", help="programs, separated by commas")
    parser.add_argument("--scale", type=float, default=1.0, help="size of the problems")
    parser.add_argument("--json", default="", help="write the table to this file")
    options = parser.parse_args()
    systems: dict[str, dict[str, Callable[..., None]]] = {"gridwise": ours(gw.device("cpu"))}
    for name, make in (("numba", numba_programs), ("warp", warp_programs), ("taichi", taichi_programs)):
        try:
            systems[name] = make()
        except ImportError as e:
            print(f"{name} is not installed ({e.name}): pip install gridwise[bench]", file=sys.stderr)
    wanted = options.only.split(",") if options.only else []
    table: dict[str, dict[str, float]] = {}
    print(f"{'milliseconds':<12}{'':30}" + "".join(f"{s:>11}" for s in systems) + "   best / ours")
    for name, (arrays, right, what) in problems(options.scale).items():
        if wanted and name not in wanted:
            continue
        row: dict[str, float] = {}
        for system, programs in systems.items():
            try:
                row[system] = best(programs[name], arrays, right)
            except AssertionError as e:
                print(f"{system} {name}: wrong result: {str(e).strip().splitlines()[0]}", file=sys.stderr)
                row[system] = float("nan")
        table[name] = compared(row)
        ratio = f"{table[name]['ratio']:>12.2f}" if "ratio" in table[name] else ""
        print(f"{name:<12}{what:<30}" + "".join(f"{row[s]:>11.2f}" for s in systems) + "   " + ratio, flush=True)
    if options.json:
        with open(options.json, "w") as f:
            json.dump(table, f, indent=1)


if __name__ == "__main__":
    main()
