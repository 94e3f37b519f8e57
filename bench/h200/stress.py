"""16 threads, 8 streams, buffers that come and go: right results, no growth of memory."""

from __future__ import annotations

import threading
import time

import numpy as np

import gridwise as gw
from gridwise import f32

from .common import POISON, SIZE, example, row


def run(cuda: gw.Device) -> None:
    vecadd = example("vecadd").vecadd
    streams = [cuda.stream() for _ in range(8)]
    wrong: list[str] = []

    def worker(seed: int) -> None:
        try:
            rng = np.random.default_rng(seed)
            stream = streams[seed % len(streams)]
            for _ in range(SIZE["turns"]):
                n = int(rng.integers(1, 5000))
                a, b = rng.random((2, n), dtype=np.float32)
                da, db, dc = cuda.array(a), cuda.array(b), cuda.full(n, POISON, f32)
                for _ in range(5):
                    vecadd(da, db, dc, stream=stream)
                if not np.array_equal(dc.numpy(), a + b):
                    wrong.append(f"thread {seed}, {n} elements")
        except Exception as e:
            wrong.append(f"thread {seed}: {e!r}")

    def used() -> int:
        cuda.synchronize()
        free, total = cuda.memory()  # type: ignore[attr-defined]
        return int(total - free)

    start = time.perf_counter()
    before = 0
    for turn in range(3):
        workers = [threading.Thread(target=worker, args=(n,)) for n in range(16)]
        for w in workers:
            w.start()
        for w in workers:
            w.join()
        if turn == 0:
            before = used()  # the pool has what this load needs
    growth = used() - before
    assert not wrong, wrong[:3]
    assert growth < 64 << 20, f"device memory grew by {growth >> 20} MiB"
    launches = 3 * 16 * SIZE["turns"] * 5
    row("stress", f"{launches:,} launches right", f"16 threads, 8 streams, {time.perf_counter() - start:.1f} s, "
        f"memory +{growth >> 20} MiB")  # fmt: skip
