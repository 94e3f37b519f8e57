"""Math functions over arrays on the CPU beside NumPy's.

    python bench/cpu_math.py [--elements N] [--json FILE]

Nanoseconds an element, the best of several runs, arrays in place on both sides. Ours uses every core, NumPy one:
``cores`` says how many, so that the figures can be compared either way.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
from report import compared

import gridwise as gw
from gridwise import DisjointSlice, Slice, math, thread

T = TypeVar("T")
FUNCTIONS: dict[str, tuple[Any, tuple[float, float]]] = {  # NumPy's function, and the range of arguments
    "exp": (np.exp, (-10, 10)),
    "log": (np.log, (0.01, 100)),
    "sin": (np.sin, (-100, 100)),
    "cos": (np.cos, (-100, 100)),
    "tan": (np.tan, (-100, 100)),
    "tanh": (np.tanh, (-5, 5)),
    "exp2": (np.exp2, (-10, 10)),
    "log2": (np.log2, (0.01, 100)),
    "atan": (np.arctan, (-10, 10)),
    "cbrt": (np.cbrt, (-10, 10)),
    "expm1": (np.expm1, (-5, 5)),
    "sqrt": (np.sqrt, (0, 100)),
}


def kernel_of(fn: Any) -> gw.Kernel:
    """y = fn(x), element by element."""

    @gw.kernel(domain=1, block=256)
    def apply(x: Slice[T], y: DisjointSlice[T]):
        i = thread.index_1d()
        if i in y and i in x:
            y[i] = fn(x[i])

    return apply


def best(run: Callable[[], object], repeat: int = 7) -> float:
    """Seconds of the fastest of several runs, after one to warm up."""
    run()
    times = []
    for _ in range(repeat):
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return min(times)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--elements", type=int, default=1 << 22)
    parser.add_argument("--json")
    options = parser.parse_args()
    n = options.elements
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    table: dict[str, dict[str, float]] = {}
    print(f"{n} elements, {cores} cores; ns an element\n{'':8}{'f32 ours':>10}{'NumPy':>8}{'f64 ours':>11}{'NumPy':>8}")
    for name, (peer, (low, high)) in FUNCTIONS.items():
        kernel = kernel_of(getattr(math, name))
        figures = []
        for dtype in (np.float32, np.float64):
            x = np.random.default_rng(1).uniform(low, high, n).astype(dtype)
            y, z = np.empty_like(x), np.empty_like(x)
            bits = np.dtype(dtype).itemsize * 8
            ours = best(lambda x=x, y=y, kernel=kernel: kernel(x, y)) * 1e3
            theirs = best(lambda x=x, z=z, peer=peer: peer(x, out=z)) * 1e3
            np.testing.assert_allclose(y, z, rtol=1e-6 if bits == 32 else 1e-14, atol=1e-30)
            table[f"{name} f{bits}"] = compared({"gridwise": ours, "numpy": theirs})
            figures += [ours / n * 1e6, theirs / n * 1e6]
        print(f"{name:8}{figures[0]:10.2f}{figures[1]:8.2f}{figures[2]:11.2f}{figures[3]:8.2f}", flush=True)
    if options.json:
        with open(options.json, "w") as file:
            json.dump(table, file, indent=1)


if __name__ == "__main__":
    main()
