"""``await stream`` waits for a stream and lets other tasks of the event loop run."""

from __future__ import annotations

import asyncio

import numpy as np
import pytest

import gridwise as gw
from gridwise import DisjointSlice, Slice, f32, i32, thread


@gw.kernel(domain=1, block=64)
def pick(a: Slice[f32], at: Slice[i32], c: DisjointSlice[f32]):
    i = thread.index_1d()
    if i in c:
        c[i] = a[at[i]]


def test_two_tasks(device: gw.Device) -> None:
    a = np.arange(50, dtype=np.float32)

    async def work(shift: int) -> np.ndarray:
        at = ((np.arange(200) + shift) % 50).astype(np.int32)
        c = device.zeros(200, f32)
        pick(device.array(a), device.array(at), c)
        await device.default_stream
        return c.numpy()

    async def both() -> list[np.ndarray]:
        return await asyncio.gather(work(0), work(7))

    for shift, got in zip((0, 7), asyncio.run(both()), strict=True):
        np.testing.assert_array_equal(got, a[(np.arange(200) + shift) % 50])


def test_a_fault_is_raised_by_the_await(device: gw.Device) -> None:
    async def work() -> None:
        c = device.zeros(64, f32)
        pick(device.zeros(5, f32), device.full(64, 5, i32), c)
        await device.default_stream

    with pytest.raises(gw.DeviceIndexError, match="index 5 is out of range for a of length 5"):
        asyncio.run(work())
    device.synchronize()
