"""The checks that are left after proof, against none at all (``unchecked=True``), in one run, turn about."""

from __future__ import annotations

import statistics
import time
from typing import Any

import numpy as np

import gridwise as gw
from gridwise import DisjointSlice, Slice, f32, thread

from .common import SIZE, row, seconds


def add_body(a: Slice[f32], b: Slice[f32], c: DisjointSlice[f32]):
    i = thread.index_1d()
    if i in c:
        c[i] = a[i] + b[i]


def sums_body(x: Slice[f32], out: DisjointSlice[f32]):
    t = thread.local_index()
    i = thread.index_1d()
    part = gw.shared((256,), f32)
    part[t] = x[i] if i in x else 0.0
    gw.barrier()
    step = 128
    while step > 0:
        if t < step:
            part[t] = part[t] + part[t + step]
        gw.barrier()
        step //= 2
    b = thread.block_index()
    if t == 0 and b < len(out):
        out[b] = part[0]


def product_body(a: Slice[f32, 2], b: Slice[f32, 2], c: DisjointSlice[f32, 2]):
    x, y = thread.local_index(0), thread.local_index(1)
    row, col = thread.block_index(1) * 16 + y, thread.block_index(0) * 16 + x
    left, right = gw.shared((16, 16), f32), gw.shared((16, 16), f32)
    total = f32(0)
    for k in range((a.shape[1] + 15) // 16):
        left[y, x] = a[row, k * 16 + x] if row < a.shape[0] and k * 16 + x < a.shape[1] else 0.0
        right[y, x] = b[k * 16 + y, col] if k * 16 + y < b.shape[0] and col < b.shape[1] else 0.0
        gw.barrier()
        for j in range(16):
            total += left[y, j] * right[j, x]
        gw.barrier()
    at = thread.index_2d()
    if at in c:
        c[at] = total


def run(cuda: gw.Device) -> None:
    rng = np.random.default_rng()
    for device in (cuda, gw.device("cpu")):
        scale = (26, 26, 2048) if device is cuda else (24, 22, 256)
        scale = (9, 9, 16) if SIZE["small"] else scale
        n, m, side = 1 << scale[0], 1 << scale[1], scale[2]
        a, b = (device.array(rng.random(n, dtype=np.float32)) for _ in range(2))
        p, q = (device.array(rng.random((side, side), dtype=np.float32)) for _ in range(2))
        cases: list[tuple[str, Any, int, Any, tuple[Any, ...], Any]] = [
            ("vecadd", add_body, 1, 256, (a, b, device.empty(n, f32)), None),
            ("reduction", sums_body, 1, 256, (a[:m], device.empty(m // 256, f32)), m // 256),
            ("matrix product", product_body, 2, (16, 16), (p, q, device.empty((side, side), f32)), None),
        ]
        for name, body, domain, block, args, grid in cases:
            pair = [gw.kernel(domain=domain, block=block, unchecked=u)(body) for u in (False, True)]

            def spent(kernel: Any, device: Any = device, args: Any = args, grid: Any = grid) -> float:
                if device.kind == "cuda":
                    return seconds(device, lambda: kernel(*args, grid=grid), *((1, 1) if SIZE["small"] else (20, 5)))
                start = time.perf_counter()
                kernel(*args, grid=grid)
                device.synchronize()
                return time.perf_counter() - start

            for kernel in pair:
                spent(kernel)
            times: list[list[float]] = [[], []]
            for _ in range(2 if SIZE["small"] else 7 if device.kind == "cuda" else 25):
                for found, kernel in zip(times, pair, strict=True):
                    found.append(spent(kernel))
            with_, without = (statistics.median(found) for found in times)
            label = f"checks, {name}, {device.kind}"
            row(label, f"{with_ / without:.3f}", f"of unchecked, {without * 1e3:.3f} ms", ratio=with_ / without)
