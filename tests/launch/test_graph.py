"""Recorded launches do what the launches would have done, as often as they are replayed, on every device."""

from __future__ import annotations

import numpy as np
import pytest

import gridwise as gw
from gridwise import DisjointSlice, Slice, f32, i32, thread


@gw.kernel(domain=1, block=64)
def scale(a: Slice[f32], c: DisjointSlice[f32], by: f32):
    i = thread.index_1d()
    if i in c:
        c[i] = a[i] * by


@gw.kernel(domain=1, block=32)
def pick(a: Slice[f32], at: Slice[i32], c: DisjointSlice[f32]):
    i = thread.index_1d()
    if i in c:
        c[i] = a[at[i]]


def test_launches_fills_and_copies_are_replayed(device: gw.Device) -> None:
    host = np.arange(200, dtype=np.float32)
    a, b, c = device.array(host), device.zeros(200, f32), device.full(200, -1.0, f32)
    with gw.graph(device) as g:
        scale(a, b, 2.0)
        scale(b, a, 0.5)
        c.copy_from(b)
        b.fill(0)
    assert len(g) == 4
    assert (c.numpy() == -1).all() and (b.numpy() == 0).all(), "recorded work was done"
    for turn in range(3):
        a.copy_from(host + turn)
        g()
        np.testing.assert_array_equal(c.numpy(), 2 * (host + turn))
        assert (b.numpy() == 0).all()
        np.testing.assert_array_equal(a.numpy(), host + turn)


def test_a_prepared_launch_and_one_in_machine_code_are_recorded(device: gw.Device) -> None:
    a, c = device.full(100, 3.0, f32), device.zeros(100, f32)
    prepared = scale.prepare(device)
    for _ in range(20):
        prepared(a, c, 1.0)
        scale(a, c, 1.0)
    prepared.settle()
    scale.settle()
    c.fill(0)
    with gw.graph(device) as g:
        prepared(a, c, 2.0)
        scale(c, a, 2.0)
    assert len(g) == 2 and (c.numpy() == 0).all()
    g()
    assert (a.numpy() == 12).all()


def test_an_update_changes_arguments(device: gw.Device) -> None:
    a, b, c = device.full(100, 3.0, f32), device.full(100, 5.0, f32), device.zeros(100, f32)
    with gw.graph(device) as g:
        c.fill(0)
        scale(a, c, 2.0)
    g()
    assert (c.numpy() == 6).all()
    g.update(0, scale, b, c, 10.0)
    assert (c.numpy() == 6).all()
    g()
    assert (c.numpy() == 50).all()
    g.update(0, scale.prepare(device), a, c, by=1.0)
    g()
    assert (c.numpy() == 3).all()
    g.update(0, scale, b, c, 10.0)
    with pytest.raises(gw.LaunchError, match="has 1 launches: there is no number 1"):
        g.update(1, scale, b, c, 10.0)
    with pytest.raises(gw.LaunchError, match="is of scale, not of pick"):
        g.update(0, pick, b, device.zeros(100, i32), c)
    with pytest.raises(gw.LaunchTypeError):
        g.update(0, scale, b, c, "x")
    g()
    assert (c.numpy() == 50).all()


def test_faults_in_a_replay_are_raised(device: gw.Device) -> None:
    a, c = device.full(10, 2.0, f32), device.zeros(40, f32)
    at = np.zeros(40, np.int32)
    where = device.array(at)
    with gw.graph(device) as g:
        pick(a, where, c)
    g()
    device.synchronize()
    at[17] = 10
    where.copy_from(at)
    g()
    with pytest.raises(gw.DeviceIndexError, match=r"pick: index 10 is out of range for a of length 10 \(thread 17\)"):
        device.synchronize()
    device.synchronize()


def test_what_cannot_be_recorded(device: gw.Device) -> None:
    a = device.zeros(10, f32)
    with gw.graph(device) as g:
        with pytest.raises(gw.DeviceError, match="cannot go to or from the host"):
            a.numpy()
        with pytest.raises(gw.DeviceError, match="cannot go to or from the host"):
            a.copy_from(np.zeros(10, np.float32))
        with pytest.raises(gw.DeviceError, match="recorded already"), gw.graph(device):
            pass
        with pytest.raises(gw.LaunchError, match="still being recorded"):
            g()
    g()
    assert len(g) == 0
    assert (a.numpy() == 0).all()


def test_a_freed_array_is_refused(device: gw.Device) -> None:
    a, c = device.full(10, 2.0, f32), device.zeros(10, f32)
    with gw.graph(device) as g:
        scale(a, c, 2.0)
    g()
    device.synchronize()
    a.free()
    with pytest.raises(gw.DeviceError, match="array of this graph was freed"):
        g()


def test_an_error_while_recording_leaves_the_stream_usable(device: gw.Device) -> None:
    a, c = device.full(10, 2.0, f32), device.zeros(10, f32)
    with pytest.raises(gw.LaunchTypeError), gw.graph(device):
        scale(a, None, 2.0)
    scale(a, c, 2.0)
    assert (c.numpy() == 4).all()
