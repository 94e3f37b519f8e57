"""Vector addition: the smallest kernel, on the CPU in place and on a device.

python examples/vecadd.py
gridwise run examples/vecadd.py --all-devices
"""

import numpy as np

import gridwise as gw
from gridwise import DisjointSlice, Slice, f32, thread


@gw.kernel(domain=1, block=256)
def vecadd(a: Slice[f32], b: Slice[f32], c: DisjointSlice[f32]):
    i = thread.index_1d()
    if i in c:  # the last block has threads with no element
        c[i] = a[i] + b[i]


def main() -> None:
    n = 1_000_000
    rng = np.random.default_rng(0)
    a, b = rng.random((2, n), dtype=np.float32)

    # NumPy arrays: runs on the CPU, in place; the grid follows from c.
    c = np.empty_like(a)
    vecadd(a, b, c)
    assert np.array_equal(c, a + b)

    # A device: copy in once, launch as often as you like, copy back.
    device = gw.device("auto")
    da, db, dc = device.array(a), device.array(b), device.zeros(n, f32)
    prepared = vecadd.prepare(device)
    prepared(da, db, dc)
    assert np.array_equal(dc.numpy(), a + b)
    print(f"vecadd of {n:,} elements on {device.name}: right")


if __name__ == "__main__":
    main()
