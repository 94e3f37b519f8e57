"""The standard library on the CPU beside NumPy, with all cores on both sides.

    python bench/cpu_std.py [--only sum,matmul] [--sizes 512,1024] [--json FILE]

Every program is run on ``size * size`` elements (a matrix of that side, or a vector of as many), with results in
memory that is there already. NumPy's product is OpenBLAS's, on all cores; the rest of NumPy runs on one. Times are
the best of several runs in turn with NumPy's, in milliseconds; a ratio above 1 means faster than NumPy.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from report import compared

from gridwise import std

REPEAT, LONGEST = 25, 4.0  # runs, and the seconds after which there are no more
FLOOR = {"matmul": 0.7}  # of NumPy's speed, that is asked for; 1 where nothing is said
Case = tuple[Callable[[], Any], Callable[[], Any], Callable[[], Any]]  # before each run, ours, NumPy's


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


def cases(side: int) -> dict[str, Case]:
    """The programs for one size; each checked against NumPy's result."""
    rng = np.random.default_rng(side)
    a, b = (filled(rng.standard_normal((side, side), np.float32)) for _ in range(2))
    flat, out, matrix = a.reshape(-1), aligned((side * side,)), aligned((side, side))
    whole = filled(rng.integers(-(2**31), 2**31, side * side, np.int32))
    total, keys = aligned((1,)), aligned((side * side,))
    whole_keys, totals = aligned((side * side,), np.int32), aligned((side * side,), np.int32)

    def nothing() -> None:
        pass

    def shuffle() -> None:
        keys[...] = flat

    def shuffle_whole() -> None:
        whole_keys[...] = whole

    found: dict[str, Case] = {
        "sum": (nothing, lambda: std.sum(flat, total), lambda: flat.sum()),
        "cumsum": (nothing, lambda: std.cumsum(flat, out), lambda: np.cumsum(flat, out=out)),
        "cumsum i32": (nothing, lambda: std.cumsum(whole, totals), lambda: np.cumsum(whole, out=totals)),
        "sort": (shuffle, lambda: std.sort(keys), lambda: keys.sort()),
        "sort i32": (shuffle_whole, lambda: std.sort(whole_keys), lambda: whole_keys.sort()),
        "transpose": (nothing, lambda: std.transpose(a, matrix), lambda: np.copyto(matrix, a.T)),
        "matmul": (nothing, lambda: std.matmul(a, b, matrix), lambda: np.matmul(a, b, out=matrix)),
    }
    std.sum(flat, total)
    np.testing.assert_allclose(total[0], flat.sum(dtype=np.float64), atol=1e-3 * side)
    for name, result in (("cumsum", out), ("cumsum i32", totals), ("sort", keys), ("sort i32", whole_keys),
                         ("transpose", matrix), ("matmul", matrix)):
        before, ours, theirs = found[name]
        before()
        ours()
        got = result.copy()
        before()
        theirs()
        np.testing.assert_allclose(got, result, rtol=1e-3, atol=1e-3 * side, err_msg=name)
    return found


def best(case: Case) -> tuple[float, float]:
    """Milliseconds, ours and NumPy's."""
    before, *calls = case
    times: list[list[float]] = [[], []]
    while len(times[0]) < REPEAT and sum(map(sum, times)) < LONGEST:
        for call, taken in zip(calls, times, strict=True):
            before()
            start = time.perf_counter()
            call()
            taken.append(time.perf_counter() - start)
    return min(times[0]) * 1e3, min(times[1]) * 1e3


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", help="programs, separated by commas")
    parser.add_argument("--sizes", default="512,1024,2048,4096", help="sides of the matrices")
    parser.add_argument("--json", default="", help="write the table to this file")
    options = parser.parse_args()
    wanted = options.only.split(",") if options.only else []
    table: dict[str, dict[str, dict[str, float]]] = {}
    print(f"{'milliseconds':<14}{'size':>6}{'gridwise':>12}{'numpy':>12}{'numpy / ours':>14}")
    for side in map(int, options.sizes.split(",")):
        for name, case in cases(side).items():
            if wanted and name not in wanted:
                continue
            ours, theirs = best(case)
            table.setdefault(name, {})[str(side)] = compared({"gridwise": ours, "numpy": theirs})
            short = "" if theirs / ours >= FLOOR.get(name, 1.0) else f"   below {FLOOR.get(name, 1.0)}"
            print(f"{name:<14}{side:>6}{ours:>12.3f}{theirs:>12.3f}{theirs / ours:>14.2f}{short}", flush=True)
    if options.json:
        with open(options.json, "w") as f:
            json.dump(table, f, indent=1)


if __name__ == "__main__":
    main()
