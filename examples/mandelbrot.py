"""The Mandelbrot set, one thread a pixel, written to a PNG.

python examples/mandelbrot.py [picture.png]
"""

import struct
import sys
import zlib
from pathlib import Path

import numpy as np

import gridwise as gw
from gridwise import DisjointSlice, f32, i32, thread

WIDTH, HEIGHT, LIMIT = 1024, 768, 255


@gw.kernel(domain=2, block=(16, 16))
def mandelbrot(counts: DisjointSlice[i32, 2], left: f32, top: f32, step: f32, limit: i32):
    at = thread.index_2d()
    if at in counts:
        row, col = at
        cx = left + step * f32(col)
        cy = top - step * f32(row)
        x = f32(0)
        y = f32(0)
        n = i32(0)
        while n < limit and x * x + y * y <= 4.0:
            x, y = x * x - y * y + cx, 2.0 * x * y + cy
            n += 1
        counts[at] = n


def render(device: gw.Device, width: int = WIDTH, height: int = HEIGHT) -> np.ndarray:
    """Steps until each pixel escaped, (height, width) int32."""
    counts = device.empty((height, width), i32)
    step = 3.0 / width
    mandelbrot(counts, -2.2, step * height / 2, step, LIMIT)
    return counts.numpy()


def colours(counts: np.ndarray) -> np.ndarray:
    """(height, width, 3) uint8."""
    t = np.sqrt(counts / LIMIT)
    rgb = np.stack([9 * (1 - t) * t**3, 15 * (1 - t) ** 2 * t**2, 8.5 * (1 - t) ** 3 * t], axis=-1)
    return (255 * np.clip(rgb, 0, 1)).astype(np.uint8)


def write_png(path: str | Path, rgb: np.ndarray) -> None:
    """An 8-bit RGB picture as a PNG file."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    height, width, _ = rgb.shape
    rows = np.concatenate([np.zeros((height, 1), np.uint8), rgb.reshape(height, -1)], axis=1)  # filter 0 a row
    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    data = chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows.tobytes())) + chunk(b"IEND", b"")
    Path(path).write_bytes(b"\x89PNG\r\n\x1a\n" + data)


def main() -> None:
    device = gw.device("auto")
    path = sys.argv[1] if len(sys.argv) > 1 else "mandelbrot.png"
    counts = render(device)
    write_png(path, colours(counts))
    print(f"{path}: {WIDTH} x {HEIGHT}, {np.mean(counts == LIMIT):.1%} inside, computed on {device.name}")


if __name__ == "__main__":
    main()
