"""The standard library beside the device's own copy, and torch where it is installed."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from typing import Any

import numpy as np

import gridwise as gw
from gridwise import f32

from .common import POISON, SIZE, row, seconds, torch_seconds


def run(cuda: gw.Device) -> None:
    from gridwise import std

    rng = np.random.default_rng()
    n, side = 1 << SIZE["bandwidth"], 1 << (SIZE["bandwidth"] // 2)
    host = rng.random(n, dtype=np.float32)
    a, out, one = cuda.array(host), cuda.full(n, POISON, f32), cuda.zeros(1, f32)
    matrix, turned = a.reshape(side, side), out.reshape(side, side)
    np.testing.assert_allclose(std.sum(a), host.sum(dtype=np.float64), rtol=1e-5)
    whole = cuda.array(np.ones(n, np.int32))
    np.testing.assert_array_equal(std.cumsum(whole).numpy(), np.arange(1, n + 1, dtype=np.int32))
    std.transpose(matrix, turned)
    np.testing.assert_array_equal(turned.numpy(), host.reshape(side, side).T)
    stream = cuda.default_stream
    copy = 8 * n / seconds(cuda, lambda: cuda.copy(a.buffer, 0, out.buffer, 0, 4 * n, stream)) / 1e9
    ours = {
        "sum": (4 * n, lambda: std.sum(a, one)),
        "cumsum": (8 * n, lambda: std.cumsum(a, out)),
        "transpose": (8 * n, lambda: std.transpose(matrix, turned)),
    }
    theirs: dict[str, Callable[[], Any]] = {}
    torch: Any = None
    if importlib.util.find_spec("torch") is not None:
        import torch as found

        torch = found
        if torch.cuda.is_available():
            x = torch.from_numpy(host).cuda()
            y, z = torch.empty_like(x), torch.empty((), device="cuda")
            square = x.reshape(side, side)
            theirs = {
                "sum": lambda: torch.sum(x, dim=0, out=z),
                "cumsum": lambda: torch.cumsum(x, 0, out=y),
                "transpose": lambda: y.reshape(side, side).copy_(square.t()),
            }
    for name, (moved, work) in ours.items():
        rate = moved / seconds(cuda, work) / 1e9
        note = f"{rate / copy:.3f} of the copy"
        if name in theirs:
            peer = moved / torch_seconds(torch, theirs[name]) / 1e9
            note += f"; torch {peer:,.0f} GB/s, {peer / copy:.3f}"
        row(f"std.{name} 2^{SIZE['bandwidth']} f32", f"{rate:,.0f} GB/s", note, gbps=rate, ratio=rate / copy)
