"""``portable_to`` and ``inspect`` for targets whose devices are elsewhere."""

import pytest

import gridwise as gw
from gridwise import AtomicSlice, Cap, DisjointSlice, Slice, atomic, f32, f64, subgroup, target, thread, u64


@gw.kernel
def plain(x: Slice[f32], y: DisjointSlice[f32]):
    i = thread.index_1d()
    if i in y:
        y[i] = x[i] + 1.0


@gw.kernel
def doubles(x: Slice[f64], y: DisjointSlice[f64]):
    i = thread.index_1d()
    if i in y:
        y[i] = x[i] + 1.0


@gw.kernel(block=64)
def lanes(y: DisjointSlice[f32]):
    i = thread.index_1d()
    s = subgroup.reduce(f32(1.0))
    if i in y:
        y[i] = s


@gw.kernel(block=64)
def guarded(y: DisjointSlice[f32]):
    i = thread.index_1d()
    s = f32(1.0)
    if target.has(Cap.SUBGROUP):
        s = subgroup.reduce(f32(1.0))
    if i in y:
        y[i] = s


@gw.kernel
def counts(x: Slice[f32], n: AtomicSlice[u64]):
    i = thread.index_1d()
    if i in x:
        atomic.add(n, 0, u64(1))


@gw.kernel(block=1024)
def wide(y: DisjointSlice[f32]):
    i = thread.index_1d()
    if i in y:
        y[i] = 0.0


@gw.kernel
def racy(y: DisjointSlice[f32]):
    y[0] = f32(thread.global_index())


@pytest.mark.parametrize(
    ("kernel", "wanted", "says"),
    [
        (plain, {"cpu": True, "ptx": True, "wgsl": True}, ""),
        (doubles, {"cpu": True, "ptx": True, "wgsl": False}, "64-bit floats"),
        (lanes, {"cpu": True, "ptx": True, "wgsl": False}, "subgroup operations"),
        (guarded, {"cpu": True, "ptx": True, "wgsl": True}, ""),
        (counts, {"cpu": True, "ptx": True, "wgsl": False}, "atomics of 32 bits only"),
        (wide, {"cpu": True, "ptx": True, "wgsl": False}, "1024 threads"),
        (racy, {"cpu": False, "ptx": False, "wgsl": False}, "write y[0]"),
    ],
    ids=lambda p: getattr(p, "name", None),
)
def test_portable_to(kernel, wanted, says):
    verdicts = kernel.portable_to()
    assert {t: bool(v) for t, v in verdicts.items()} == wanted
    for verdict in verdicts.values():
        if not verdict:
            assert says in verdict.reason
            if kernel is not wide:
                assert f"--> {__file__}:" in verdict.reason


@pytest.mark.parametrize(
    ("where", "stage", "says"),
    [
        ("ptx", "ptx", ".visible .entry plain"),
        ("ptx", "llvm", "nvptx64-nvidia-cuda"),
        ("ptx", "ir", "kernel plain"),
        ("wgsl", "wgsl", "@compute"),
        ("wgsl", "simt", "kernel plain"),
    ],
)
def test_inspect_needs_no_device(where, stage, says):
    assert says in plain.inspect(where, stage)


def test_a_target_without_a_device_has_no_machine_code():
    with pytest.raises(gw.LaunchValueError, match="ptx without a device has no stage 'sass'"):
        plain.inspect("ptx", "sass")
