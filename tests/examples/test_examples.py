"""Every example runs, on every device, and does what it says."""

import runpy
from pathlib import Path

import numpy as np
import pytest

from gridwise.devices import registry

EXAMPLES = sorted((Path(__file__).resolve().parents[2] / "examples").glob("*.py"))
SMALL = {"mandelbrot": {"WIDTH": 64, "HEIGHT": 48}}  # the reference device interprets


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda p: p.stem)
def test_example(device, path, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.argv", [str(path)])
    with registry.default_device(device.name):
        space = runpy.run_path(str(path))
        space["main"].__globals__.update(SMALL.get(path.stem, {}))
        space["main"]()
    assert device.name in capsys.readouterr().out


def test_mandelbrot_picture(device):
    space = runpy.run_path(str(next(p for p in EXAMPLES if p.stem == "mandelbrot")))
    width, height = 48, 36
    counts = space["render"](device, width, height)
    step = 3.0 / width
    row, col = np.indices((height, width)).astype(np.float32)
    c = (np.float32(-2.2) + np.float32(step) * col) + 1j * (np.float32(step * height / 2) - np.float32(step) * row)
    z, wanted, inside = np.zeros_like(c), np.zeros(c.shape, int), np.ones(c.shape, bool)
    for _ in range(space["LIMIT"]):
        inside &= z.real**2 + z.imag**2 <= 4
        z = np.where(inside, z * z + c, z)
        wanted += inside
    # The edge of the set is chaotic: a few pixels depend on the last bit.
    assert np.mean(counts != wanted) < 0.02


def test_bitonic_refuses_other_lengths(device):
    space = runpy.run_path(str(next(p for p in EXAMPLES if p.stem == "bitonic_sort")))
    with pytest.raises(ValueError, match="power of two"):
        space["sort"](device.zeros(12, np.uint32))
