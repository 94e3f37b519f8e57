"""Launches that machine code takes over: the same results as through Python, for every kind of argument."""

from __future__ import annotations

import types

import numpy as np
import pytest

import gridwise as gw
from gridwise import DisjointSlice, Slice, f32, f64, i32, thread


@gw.kernel(domain=1, block=64)
def affine(a: f32, b: f64, n: i32, x: Slice[f32], y: DisjointSlice[f64]):
    i = thread.index_1d()
    if i in y and int(i) < n and int(i) < len(x):
        y[i] = f64(a) * f64(x[i]) + b


@gw.kernel(domain=2, block=(8, 4))
def turned(a: Slice[f32, 2], b: DisjointSlice[f32, 2]):
    at = thread.index_2d()
    if at in b:
        row, col = at
        if col < a.shape[0] and row < a.shape[1]:
            b[at] = a[col, row]


@gw.kernel(domain=1, block=32)
def backwards(a: Slice[f32], b: DisjointSlice[f32]):
    s = gw.shared((32,), f32)
    t, i = thread.local_index(), thread.index_1d()
    if i in b and int(i) < len(a):
        s[31 - t] = a[i]
    gw.barrier()
    if i in b:
        b[i] = s[t]


@pytest.fixture
def cpu():
    return gw.device("cpu")


def settled(kernel, *args) -> None:
    for _ in range(kernel.AFTER + 1):
        kernel(*args)
    kernel.settle()
    assert isinstance(type(kernel).__call__, types.BuiltinFunctionType), "no machine code was made"


def test_scalars_and_lengths(cpu) -> None:
    x, y = np.arange(300, dtype=np.float32), cpu.zeros(300, f64)
    dx = cpu.array(x)
    settled(affine, 2.0, 1.0, 300, dx, y)
    for a, b, n in [(0.1, 0.1, 300), (3.0, -1.0, 17), (1e30, 1e300, 0)]:
        y.fill(0)
        affine(a, b, n, dx, y)
        want = np.where(np.arange(300) < n, np.float64(np.float32(a)) * x + b, 0)
        np.testing.assert_array_equal(y.numpy(), want)
    for length in (1, 63, 64, 65, 100_000):  # the last one is for all cores
        x = np.arange(length, dtype=np.float32)
        y = cpu.zeros(length, f64)
        affine(1.0, 0.5, length, cpu.array(x), y)
        np.testing.assert_array_equal(y.numpy(), x + 0.5)


def test_two_axes_and_blocks(cpu) -> None:
    a = np.random.default_rng(0).random((20, 30), np.float32)
    b = cpu.zeros((30, 20), f32)
    settled(turned, cpu.array(a), b)
    b.fill(0)
    turned(cpu.array(a), b)
    np.testing.assert_array_equal(b.numpy(), a.T)
    x, y = np.arange(96, dtype=np.float32), cpu.zeros(96, f32)
    settled(backwards, cpu.array(x), y)
    y.fill(-1)
    backwards(cpu.array(x), y)
    np.testing.assert_array_equal(y.numpy(), x.reshape(3, 32)[:, ::-1].reshape(-1))


def test_a_wrong_argument_still_gets_its_report(cpu) -> None:
    x, y = cpu.zeros(10, f32), cpu.zeros(10, f64)
    settled(affine, 2.0, 1.0, 10, x, y)
    with pytest.raises(gw.LaunchTypeError):
        affine(2.0, 1.0, 10, y, y)
    with pytest.raises(gw.LaunchTypeError):
        affine(2.0, 1.0, 1.5, x, y)
