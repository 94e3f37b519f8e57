"""Bitonic sort of 2**n keys: one generic kernel for u32, i32 and f32, many launches, one copy each way.

The network has log2(n) stages; stage s has s passes. In a pass every thread looks at the pair (i, i ^ distance)
and puts the two keys in order. No two threads hold the same pair, and the compiler proves it. The numbers of
stages and passes are nominal types, so that they cannot be mixed up.
"""

import enum
from typing import NewType, Protocol, TypeVar

import numpy as np

import gridwise as gw
from gridwise import DisjointSlice, i32, thread, u32


class Ordered(Protocol):
    """Keys that can be compared."""

    def __lt__(self, other, /) -> bool: ...


Key = TypeVar("Key", bound=Ordered)
Stage = NewType("Stage", i32)
Pass = NewType("Pass", i32)


@gw.enum(u32)
class Order(enum.IntEnum):
    """Which way the keys are sorted."""

    ASCENDING = 0
    DESCENDING = 1


@gw.kernel(domain=1, block=256)
def compare_exchange(keys: DisjointSlice[Key], stage: Stage, step: Pass, order: Order):
    i = int(thread.index_1d())
    distance = 1 << int(stage) - int(step)
    partner = i ^ distance
    if partner > i and partner < len(keys):
        a = keys[i]
        b = keys[partner]
        upwards = (i >> int(stage) + 1) & 1 == 0
        if order == Order.DESCENDING:
            upwards = not upwards
        if (b < a) == upwards:
            keys[i] = b
            keys[partner] = a


def sort(keys: "gw.DeviceArray", order: Order = Order.ASCENDING) -> None:
    """Sort a device array of 2**n keys in place. Queued: nothing waits, nothing is copied."""
    n = len(keys)
    if n & (n - 1):
        raise ValueError(f"a bitonic network needs a power of two, not {n} keys")
    for stage in range(n.bit_length() - 1):
        for step in range(stage + 1):
            compare_exchange(keys, stage, step, order)


def main() -> None:
    device = gw.device("auto")
    rng = np.random.default_rng(2)
    for dtype in (np.uint32, np.int32, np.float32):
        bits = rng.integers(0, 1 << 32, 1 << 14, dtype=np.uint32)
        keys = bits.astype(dtype) if dtype is np.float32 else bits.view(dtype)
        for order in Order:
            on_device = device.array(keys)
            sort(on_device, order)
            wanted = np.sort(keys) if order == Order.ASCENDING else np.sort(keys)[::-1]
            assert np.array_equal(on_device.numpy(), wanted), (dtype, order)
    print(f"bitonic sort of u32, i32 and f32 keys, both ways, on {device.name}: right")


if __name__ == "__main__":
    main()
