"""Philox: the published words, the same on every device; distributions; map."""

import numpy as np
import pytest

import gridwise as gw
from gridwise import f32, i32, u32
from gridwise.std import elementwise, random


def reference(seed, n, stream=0):
    """Philox 4x32-10 in Python integers, from the paper."""
    words = []
    for t in range(-(-n // 4)):
        c, k0, k1 = [t, 0, stream, 0], seed & 0xFFFFFFFF, seed >> 32
        for _ in range(10):
            a, b = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
            c = [(b >> 32) ^ c[1] ^ k0, b & 0xFFFFFFFF, (a >> 32) ^ c[3] ^ k1, a & 0xFFFFFFFF]
            k0, k1 = (k0 + 0x9E3779B9) & 0xFFFFFFFF, (k1 + 0xBB67AE85) & 0xFFFFFFFF
        words += c
    return np.array(words[:n], np.uint32)


def test_the_reference_gives_the_published_words():
    assert [hex(w) for w in reference(0, 4).tolist()] == ["0x6627e8d5", "0xe169c58d", "0xbc57ac4c", "0x9b00dbd8"]


@pytest.mark.parametrize(
    ("seed", "stream", "n"), [(0, 0, 4), (1, 0, 1001), (2**64 - 1, 2**32 - 1, 257), (12345678901, 7, 3)]
)
def test_bits_are_philox(device, seed, stream, n):
    out = device.zeros(n, u32)
    random.bits(out, seed, stream)
    assert np.array_equal(out.numpy(), reference(seed, n, stream))


def test_uniform_and_integers(device):
    n = 20_000
    out = device.zeros((100, n // 100), f32)
    random.uniform(out, seed=3, low=-1.0, high=3.0)
    got = out.numpy().reshape(-1)
    words = reference(3, 64)
    assert np.array_equal(
        got[:64], np.float32(-1) + np.float32(4) * ((words >> 8).astype(np.float32) / np.float32(2**24))
    )
    assert got.min() >= -1 and got.max() < 3 and abs(got.mean() - 1) < 0.05
    whole = device.zeros(n, i32)
    random.integers(whole, -3, 4, seed=9)
    counts = np.bincount(whole.numpy() + 3, minlength=7)
    assert len(counts) == 7 and abs(counts - n / 7).max() < 6 * np.sqrt(n / 7)


def test_normal(device):
    out = device.zeros(20_001, f32)
    random.normal(out, seed=5, mean=2.0, deviation=0.5)
    x = (out.numpy() - 2) / 0.5
    assert np.isfinite(x).all()
    assert (
        abs(x.mean()) < 0.03 and abs(x.std() - 1) < 0.02 and abs((x**3).mean()) < 0.1 and abs((x**4).mean() - 3) < 0.2
    )


def test_mistakes():
    out = np.zeros(4, np.float32)
    with pytest.raises(gw.LaunchValueError, match="seed"):
        random.uniform(out, seed=-1)
    with pytest.raises(gw.LaunchValueError, match="not contiguous"):
        random.uniform(np.zeros((4, 4), np.float32)[:, ::2])
    with pytest.raises(gw.LaunchValueError, match="empty"):
        random.integers(np.zeros(4, np.int32), 3, 3)


GAIN = 3.0


def test_map(device):
    rng = np.random.default_rng(0)
    a, b = rng.random((2, 30, 7)).astype(np.float32)
    n = rng.integers(-5, 5, (30, 7)).astype(np.int32)
    da, db, dn = device.array(a), device.array(b), device.array(n)
    out = device.zeros((30, 7), f32)
    elementwise.map(lambda x: x * GAIN, da, out=out)
    assert np.array_equal(out.numpy(), a * np.float32(3))
    elementwise.map(lambda x, y, k: max(x, y) if k > 0 else f32(k), da, db, dn, out=out)
    assert np.array_equal(out.numpy(), np.where(n > 0, np.maximum(a, b), n).astype(np.float32))
    with pytest.raises(gw.LaunchValueError, match="shape"):
        elementwise.map(lambda x: x, da, out=device.zeros(3, f32))
    with pytest.raises(gw.KernelTypeError, match="i32"):
        elementwise.map(lambda x: x, da, out=device.zeros((30, 7), i32))
