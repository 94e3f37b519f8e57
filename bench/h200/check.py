"""Right results: elementwise kernels, views, a picture, a sort."""

from __future__ import annotations

import numpy as np

import gridwise as gw
from gridwise import f32

from .common import POISON, SIZE, example, row


def run(cuda: gw.Device) -> None:
    rng = np.random.default_rng()
    vecadd, saxpy = example("vecadd").vecadd, example("saxpy").saxpy
    for n in (0, 1, 3, 255, 256, 257, 1000, (1 << 20) + 3):
        a, b = rng.standard_normal((2, n)).astype(np.float32)
        c = cuda.full(n, POISON, f32) if n else cuda.empty(0, f32)
        vecadd(cuda.array(a), cuda.array(b), c)
        np.testing.assert_array_equal(c.numpy(), a + b)
    x, y = rng.standard_normal((2, 4096)).astype(np.float32)
    for step in (1, 2, -3):
        dy = cuda.array(y)
        dx = cuda.array(x)[:: abs(step)] if step > 0 else cuda.array(x)[::step]
        view = dy[: len(dx)]
        saxpy(1.5, dx, view)
        want = np.float32(1.5) * (x[:: abs(step)] if step > 0 else x[::step]) + y[: len(dx)]
        np.testing.assert_allclose(dy.numpy()[: len(dx)], want, rtol=2e-6, atol=1e-6)
    row("vecadd, saxpy", "right", "0 to 2^20+3 elements, views with strides 1, 2, -3")

    picture = example("mandelbrot").render
    cpu, gpu = picture(gw.device("cpu")), picture(cuda)
    same = float(np.mean(cpu == gpu))
    assert same > 0.99, f"only {same:.2%} of the Mandelbrot pixels agree"
    row("mandelbrot, cpu and cuda", f"{same:.4%} equal", "contraction to fma may move the escape of a few pixels")

    bitonic = example("bitonic_sort")
    count = 1 << SIZE["keys"]
    keys = rng.integers(0, 1 << 32, count, dtype=np.uint32)
    for dtype in (np.uint32, np.int32, np.float32):
        data = keys.view(dtype) if dtype is not np.float32 else rng.standard_normal(count).astype(np.float32)
        on_device = cuda.array(data)
        bitonic.sort(on_device)
        cuda.synchronize()
        fresh = cuda.array(data)
        start = cuda.default_stream.record()
        bitonic.sort(fresh)
        end = cuda.default_stream.record()
        np.testing.assert_array_equal(on_device.numpy(), np.sort(data))
        np.testing.assert_array_equal(fresh.numpy(), np.sort(data))
        name = np.dtype(dtype).name
        spent = end.elapsed_since(start)
        row(f"bitonic sort 2^{SIZE['keys']} {name}", f"{spent * 1e3:.2f} ms", "equal to numpy.sort", seconds=spent)
