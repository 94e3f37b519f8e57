"""What the check device costs: microseconds a thread of the standard kernels, watched.

    python bench/check_cost.py [--threads N] [--only bitonic,tree] [--json FILE] [--profile]

The kernels are the repaired twins of ``tests/safety/programs``. Every run has arrays of its own, inputs filled anew
and outputs never written, so that nothing is remembered from one run to the next; a run is one launch, and the best
of several counts. ``accesses`` are loads, stores and atomics a thread, on average: a kernel with a loop has many.
"""

import argparse
import cProfile
import json
import pstats
import sys
import time
from collections.abc import Callable
from math import isqrt
from pathlib import Path
from typing import Any

import numpy as np

import gridwise as gw
from gridwise import DisjointSlice, Slice, f32, thread
from gridwise.devices.check.watch import Watch

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "safety"))

from programs import shared

REPEAT, LONGEST = 5, 20.0  # runs, and the seconds after which there are no more
OUT = object()  # stands for an array that nothing has written


@gw.kernel(domain=1, block=256)
def vecadd(a: Slice[f32], b: Slice[f32], c: DisjointSlice[f32]):
    i = thread.index_1d()
    if i in c:
        c[i] = a[i] + b[i]


def line(n: int) -> np.ndarray:
    return np.random.default_rng().random(n, np.float32)


def square(n: int) -> np.ndarray:
    return line(isqrt(n) ** 2).reshape(isqrt(n), isqrt(n))


def keys(n: int) -> np.ndarray:
    return np.random.default_rng().integers(0, 256, n, np.int32)


# name -> (kernel, arguments for a number of threads, where OUT is an array like the first, and the grid)
Case = tuple[Any, Callable[[int], list[Any]], Callable[[int], tuple[int, ...]]]
CASES: dict[str, Case] = {
    "vecadd": (vecadd, lambda n: [line(n), line(n), OUT], lambda n: (n // 256,)),
    "bitonic": (shared.bitonic, lambda n: [line(n)], lambda n: (n // 256,)),
    "transpose": (shared.transpose, lambda n: [square(4 * n), OUT], lambda n: (isqrt(4 * n) // 32,) * 2),
    "tree": (shared.tree, lambda n: [line(n), OUT], lambda n: (n // 256,)),
    "scan": (shared.scan_two_buffers, lambda n: [line(n), OUT], lambda n: (n // 256,)),
    "halo": (shared.halo, lambda n: [line(n), OUT], lambda n: (n // 256,)),
    "product": (shared.product_after_load, lambda n: [square(n), square(n), OUT], lambda n: (isqrt(n) // 16,) * 2),
    "histogram": (shared.histogram_read, lambda n: [keys(n), np.zeros(256, np.uint32)], lambda n: (n // 256,)),
}


def launch(case: Case, threads: int) -> Callable[[], None]:
    """A launch on fresh arrays of a fresh device; calling it runs it."""
    kernel, make, grid = case
    device = gw.device("check")
    given = make(threads)
    arrays = [device.empty(given[0].shape, f32) if a is OUT else device.array(a) for a in given]
    switches = {} if kernel is vecadd else {"BAD": False}

    def run() -> None:
        kernel(*arrays, **switches, grid=grid(threads))
        device.synchronize()

    return run


def accesses(case: Case, threads: int) -> float:
    """Loads, stores and atomics a thread."""
    count, access = 0, Watch.access

    def counted(self: Watch, f: Any, a: Any, space: Any, at: Any, lanes: Any, *rest: Any) -> None:
        nonlocal count
        count += f.n if lanes is None else lanes.size
        access(self, f, a, space, at, lanes, *rest)

    Watch.access = counted  # type: ignore[method-assign]
    try:
        launch(case, threads)()
    finally:
        Watch.access = access  # type: ignore[method-assign]
    return count / threads


def seconds(case: Case, threads: int, profile: cProfile.Profile | None) -> float:
    """The best of several launches; the first, which compiles, does not count."""
    launch(case, threads)()
    best, begun = float("inf"), time.perf_counter()
    for _ in range(REPEAT):
        run = launch(case, threads)
        start = time.perf_counter()
        profile.runcall(run) if profile is not None else run()
        best = min(best, time.perf_counter() - start)
        if time.perf_counter() - begun > LONGEST:
            break
    return best


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, default=1 << 16, help="threads a launch, a power of four")
    parser.add_argument("--only", default=",".join(CASES), help="kernels, with commas between")
    parser.add_argument("--json", type=Path, help="write the figures here, too")
    parser.add_argument("--profile", action="store_true", help="say where the time goes")
    options = parser.parse_args()
    if isqrt(options.threads) ** 2 != options.threads or options.threads % 1024:
        parser.error("--threads is a square and a multiple of 1024")
    rows = []
    for name in options.only.split(","):
        profile = cProfile.Profile() if options.profile else None
        took = seconds(CASES[name], options.threads, profile)
        row = {
            "kernel": name,
            "threads": options.threads,
            "accesses": round(accesses(CASES[name], options.threads), 1),
            "us_a_thread": round(took * 1e6 / options.threads, 3),
        }
        rows.append(row)
        print(f"{name:12} {row['threads']:8} threads {row['accesses']:8} accesses {row['us_a_thread']:9} us a thread",
              flush=True)
        if profile is not None:
            pstats.Stats(profile).sort_stats("tottime").print_stats(16)
    if options.json:
        options.json.write_text(json.dumps(rows, indent=2) + "\n")


if __name__ == "__main__":
    main()
