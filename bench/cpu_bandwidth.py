"""Streaming kernels on the CPU beside NumPy: bandwidth, and what the first and a small call cost.

    python bench/cpu_bandwidth.py [--elements N] [--json FILE]

Arrays are NumPy's, used in place; NumPy writes into existing memory (``out=``). GB/s counts what the program asks
for: each element read or written once. Times are the best of several runs.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable

import numpy as np

import gridwise as gw
from gridwise import DisjointSlice, Slice, f32, thread

REPEAT = 15


@gw.kernel(domain=1, block=256)
def vecadd(a: Slice[f32], b: Slice[f32], c: DisjointSlice[f32]):
    i = thread.index_1d()
    if i in c:
        c[i] = a[i] + b[i]


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
    table: dict[str, dict[str, float]] = {"calls": {"first_ms": first * 1e3, "small_us": call * 1e6}}
    print(f"{n} f32 {'ours ms':>14}{'GB/s':>8}{'numpy ms':>11}{'GB/s':>8}{'ratio':>8}")
    for name, (ours, theirs, arrays) in rows.items():
        theirs()
        right = c.copy()
        ours()
        np.testing.assert_allclose(c, right, rtol=1e-5, atol=1e-5)
        mine, numpy = best(ours), best(theirs)
        size = arrays * 4 * n / 1e9
        table[name] = {"ours_ms": mine * 1e3, "numpy_ms": numpy * 1e3, "ratio": numpy / mine}
        line = f"{name:<12}{mine * 1e3:>14.2f}{size / mine:>8.1f}{numpy * 1e3:>11.2f}{size / numpy:>8.1f}"
        print(f"{line}{numpy / mine:>8.2f}", flush=True)
    if options.json:
        with open(options.json, "w") as f:
            json.dump(table, f, indent=1)


if __name__ == "__main__":
    main()
