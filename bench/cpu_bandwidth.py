"""Streaming kernels on the CPU beside NumPy and numba: bandwidth, and what the first and a small call cost.

    python bench/cpu_bandwidth.py [--elements N] [--json FILE]

Arrays are NumPy's, used in place; NumPy writes into existing memory (``out=``). GB/s counts what the program asks
for: each element read or written once. The limit is what a copy reaches: all cores on NumPy arrays, or a kernel
that writes past the cache, whichever is faster. numba's are plain parallel loops. Times are the best of several runs.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from report import compared

import gridwise as gw
from gridwise import DisjointSlice, Slice, f32, thread

REPEAT = 15


@gw.kernel(domain=1, block=256)
def vecadd(a: Slice[f32], b: Slice[f32], c: DisjointSlice[f32]):
    i = thread.index_1d()
    if i in c:
        c[i] = a[i] + b[i]


@gw.kernel(domain=1, block=256)
def copy(a: Slice[f32], c: DisjointSlice[f32]):
    i = thread.index_1d()
    if i in c:
        c[i] = a[i]


@gw.kernel(domain=1, block=256)
def scale(a: Slice[f32], c: DisjointSlice[f32]):
    i = thread.index_1d()
    if i in c:
        c[i] = 2.0 * a[i]


@gw.kernel(domain=1, block=256)
def polynomial(a: Slice[f32], c: DisjointSlice[f32]):
    i = thread.index_1d()
    if i in c:
        x = a[i]
        c[i] = ((x * 0.5 + 1.0) * x + 0.25) * x - 3.0


def numpy_polynomial(x: np.ndarray, out: np.ndarray) -> None:
    """As NumPy's users write it without a temporary."""
    np.multiply(x, np.float32(0.5), out=out)
    for constant in (1.0, 0.25, -3.0):
        np.add(out, np.float32(constant), out=out)
        if constant != -3.0:
            np.multiply(out, x, out=out)


def best(call: Callable[[], object]) -> float:
    """Seconds."""
    times = []
    for _ in range(REPEAT):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return min(times)


def numba_programs(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> dict[str, Callable[[], object]]:
    """As numba's users write them; nothing where numba is not installed."""
    try:
        from numba import njit, prange
    except ImportError:
        print("numba is not installed: pip install gridwise[bench]", file=sys.stderr)
        return {}

    @njit(parallel=True)
    def vecadd(a, b, c):
        for i in prange(c.size):
            c[i] = a[i] + b[i]

    @njit(parallel=True)
    def scale(a, c):
        for i in prange(c.size):
            c[i] = np.float32(2) * a[i]

    @njit(parallel=True, fastmath={"contract"})
    def polynomial(a, c):
        for i in prange(c.size):
            x = a[i]
            c[i] = ((x * np.float32(0.5) + np.float32(1)) * x + np.float32(0.25)) * x - np.float32(3)

    return {"a + b": lambda: vecadd(a, b, c), "2 * a": lambda: scale(a, c), "cubic": lambda: polynomial(a, c)}


def copying(a: np.ndarray, c: np.ndarray) -> float:
    """Seconds of the fastest copy of ``a``."""
    cores = gw.device("cpu").workers
    pieces = list(zip(np.array_split(a, cores), np.array_split(c, cores), strict=True))
    with ThreadPoolExecutor(cores) as pool:
        plain = best(lambda: list(pool.map(lambda piece: np.copyto(piece[1], piece[0]), pieces)))
    return min(plain, best(lambda: copy(a, c)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--elements", type=int, default=1 << 26)
    parser.add_argument("--json", default="", help="write the table to this file")
    options = parser.parse_args()
    n = options.elements
    rng = np.random.default_rng(0)
    a, b, c = rng.random(n, np.float32), rng.random(n, np.float32), np.zeros(n, np.float32)

    start = time.perf_counter()
    vecadd(a[:1000], b[:1000], c[:1000])
    first = time.perf_counter() - start
    small = [x[:1000].copy() for x in (a, b, c)]
    vecadd(*small)
    start = time.perf_counter()
    for _ in range(10_000):
        vecadd(*small)
    call = (time.perf_counter() - start) / 10_000
    print(f"first call, compilation included: {first * 1e3:.1f} ms; a call on 1,000 elements: {call * 1e6:.2f} us")

    rows = {
        "a + b": (lambda: vecadd(a, b, c), lambda: np.add(a, b, out=c), 3),
        "2 * a": (lambda: scale(a, c), lambda: np.multiply(a, np.float32(2), out=c), 2),
        "cubic": (lambda: polynomial(a, c), lambda: numpy_polynomial(a, c), 2),
    }
    numba = numba_programs(a, b, c)
    limit = 8 * n / copying(a, c)
    print(f"limit: {limit / 1e9:.1f} GB/s")
    table: dict[str, dict[str, float]] = {"calls": {"first_ms": first * 1e3, "small_us": call * 1e6}}
    print(f"{n} f32 {'ours ms':>14}{'GB/s':>8}{'numpy ms':>11}{'numba ms':>11}{'ratio':>8}{'of limit':>10}")
    for name, (ours, theirs, arrays) in rows.items():
        theirs()
        right = c.copy()
        for system in (ours, *([numba[name]] if numba else [])):
            c[...] = 0
            system()
            np.testing.assert_allclose(c, right, rtol=1e-5, atol=1e-5)
        mine, numpy = best(ours), best(theirs)
        times = {"gridwise": mine * 1e3, "numpy": numpy * 1e3}
        if numba:
            times["numba"] = best(numba[name]) * 1e3
        rate = arrays * 4 * n / mine
        row = table[name] = {**compared(times), "of limit": rate / limit}
        line = f"{name:<12}{mine * 1e3:>14.2f}{rate / 1e9:>8.1f}{numpy * 1e3:>11.2f}{times.get('numba', 0):>11.2f}"
        print(f"{line}{row['ratio']:>8.2f}{row['of limit']:>10.2f}", flush=True)
    if options.json:
        with open(options.json, "w") as f:
            json.dump(table, f, indent=1)


if __name__ == "__main__":
    main()
