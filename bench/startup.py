"""What a user waits for before the first result, and for a small call: medians over fresh processes.

    python bench/startup.py [processes]

- import: ``import gridwise``, NumPy included, from the interpreter's first line.
- first call: of ``vecadd`` on 1000 elements after that import, nothing compiled before (an empty disk cache).
- first result: from the start of the process to the first result, compiled by an earlier process.
- call: of ``vecadd`` on 256 elements, with NumPy arrays and with arrays of the device.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

PROCESSES = 7
LIMITS = {"import, ms": 150.0, "first call, ms": 60.0, "first result, ms": 250.0, "NumPy beyond ours, µs": 1.0}

PROGRAM = '''
import time
start = time.perf_counter()
import gridwise as gw
imported = time.perf_counter()
import json
import sys

import numpy as np
from gridwise import DisjointSlice, Slice, f32, thread


@gw.kernel(domain=1, block=256)
def vecadd(a: Slice[f32], b: Slice[f32], c: DisjointSlice[f32]):
    i = thread.index_1d()
    if i in c:
        c[i] = a[i] + b[i]


def call(*arrays):
    for _ in range(2 * vecadd.AFTER):
        vecadd(*arrays)
    vecadd.settle()
    best = 1.0
    for _ in range(5):
        begin = time.perf_counter()
        for _ in range(2000):
            vecadd(*arrays)
        best = min(best, (time.perf_counter() - begin) / 2000)
    return 1e6 * best


a, b = np.ones((2, 1000), np.float32)
c = np.empty_like(a)
ready = time.perf_counter()
vecadd(a, b, c)
done, since = time.perf_counter(), time.time()
assert (c == 2).all()
small = [x[:256].copy() for x in (a, b, c)]
cpu = gw.device("cpu")
ours = [cpu.array(x) for x in small]
calls = [call(*small), call(*ours)] if sys.argv[1:] else []
print(json.dumps([1e3 * (imported - start), 1e3 * (done - ready), since, *calls]))
'''


def process(cache: str, folder: Path, *args: str) -> tuple[list[float], float]:
    """The program's own figures, and the seconds from its start to its first result."""
    program = folder / "startup_vecadd.py"
    program.write_text(PROGRAM)
    env = {k: v for k, v in os.environ.items() if k not in ("PYTHONDONTWRITEBYTECODE", "GRIDWISE_CACHE")}
    env |= {"GRIDWISE_CACHE_DIR": cache, "PYTHONPYCACHEPREFIX": str(folder / "pyc")}  # as an installation has it
    start = time.time()
    text = subprocess.run([sys.executable, str(program), *args], env=env, capture_output=True, text=True, check=True)
    figures: list[float] = json.loads(text.stdout)
    return figures, figures[2] - start


def measure(processes: int = PROCESSES) -> dict[str, float]:
    """The figures of ``LIMITS`` and the two that the last is made of, each a median."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        process(str(folder / "unused"), folder)  # writes the byte code
        cold = [process(str(folder / f"cold{n}"), folder)[0] for n in range(processes)]
        warm = [process(str(folder / "cold0"), folder)[1] for _ in range(processes)]
        calls = [process(str(folder / "cold0"), folder, "calls")[0][3:] for _ in range(processes)]
    median = statistics.median
    host, ours = (median(c[k] for c in calls) for k in (0, 1))
    return {
        "import, ms": median(c[0] for c in cold),
        "first call, ms": median(c[1] for c in cold),
        "first result, ms": 1e3 * median(warm),
        "NumPy beyond ours, µs": host - ours,
        "call, NumPy, µs": host,
        "call, ours, µs": ours,
    }


if __name__ == "__main__":
    for what, figure in measure(int(sys.argv[1]) if sys.argv[1:] else PROCESSES).items():
        limit = f"{LIMITS[what]:10.2f}" if what in LIMITS else ""
        print(f"{what:24} {figure:10.2f} {limit}")
