"""y = alpha * x + y in place, on views: every second element, and a column of a matrix."""

import numpy as np

import gridwise as gw
from gridwise import DisjointSlice, Slice, f32, thread


@gw.kernel(domain=1, block=256, requires=lambda x, y: len(x) >= len(y))
def saxpy(alpha: f32, x: Slice[f32], y: DisjointSlice[f32]):
    i = thread.index_1d()
    if i in y:
        y[i] = alpha * x[i] + y[i]


def main() -> None:
    device = gw.device("auto")
    rng = np.random.default_rng(1)
    x, y = rng.random((2, 1 << 20), dtype=np.float32)

    dx, dy = device.array(x), device.array(y)
    saxpy(2.5, dx, dy)
    # Contraction to a fused multiply-add is allowed, so the last bit may differ from NumPy's two roundings.
    assert np.allclose(dy.numpy(), 2.5 * x + y, rtol=1e-6)

    # Views need no copy: strides travel with the argument.
    matrix = device.array(rng.random((512, 384), dtype=np.float32))
    before = matrix.numpy()
    saxpy(2.0, dx[: 2 * 512 : 2], matrix[:, 3])
    after = matrix.numpy()
    assert np.allclose(after[:, 3], 2.0 * x[: 2 * 512 : 2] + before[:, 3], rtol=1e-6)
    after[:, 3] = before[:, 3]
    assert np.array_equal(after, before)
    print(f"saxpy on {device.name}: right, contiguous and strided")


if __name__ == "__main__":
    main()
