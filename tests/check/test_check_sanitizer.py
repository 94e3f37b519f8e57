"""The sanitizer: races in every order, uninitialised reads, divergent barriers, leaks; and no false alarms."""

from __future__ import annotations

import gc
import itertools
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from running import Sketch, launch

from gridwise.devices.check import CheckDevice, SanitizerError
from gridwise.ir import Builder, Kernel, Value
from gridwise.ir.types import BOOL, F32, I32, ArrayType, layout

# -- one kernel that does any schedule of accesses, against all pairs ----------------------------------------------

NONE, READ, WRITE, ATOMIC = range(4)


def scheduled(space: str, barriers: tuple[int, ...], steps: int, threads: int) -> Kernel:
    """Step n: each thread does kind[n, global thread] to element at[n, global thread] of one array.

    A barrier stands before each step in ``barriers``.
    """
    s = Sketch((threads, 1, 1))
    kind, at = s.array("kind", I32, "read", 2), s.array("at", I32, "read", 2)
    c = s.array("c", I32)
    b = s.b
    target = b.array("s", ArrayType(I32, 1, "shared", "disjoint", shape=(4,))) if space == "shared" else c
    g = b.identity("global_idx", 0)
    for n in range(steps):
        if n in barriers:
            b.emit("barrier")
        step = b.const(n, I32)
        what, where = b.load(kind, [step, g]), b.load(at, [step, g])
        for code in (READ, WRITE, ATOMIC):
            s.at(10 * n + code)
            with b.into(b.if_(b.binary("eq", what, b.const(code, I32))).regions[0]):
                if code == READ:
                    b.load(target, [where])
                elif code == WRITE:
                    b.store(target, [where], g)
                else:
                    b.atomic("add", target, [where], [g])
    return s.kernel("scheduled")


Access = tuple[int, int, int, int, int]  # thread, block, barriers passed, kind, element


def race(one: Access, two: Access, shared: bool) -> bool:
    (t1, b1, e1, k1, a1), (t2, b2, e2, k2, a2) = one, two
    if t1 == t2 or a1 != a2 or (k1 == READ and k2 == READ) or (k1 == ATOMIC and k2 == ATOMIC):
        return False
    return not shared if b1 != b2 else e1 == e2


def accesses(
    kind: np.ndarray, at: np.ndarray, barriers: tuple[int, ...], threads: int
) -> dict[tuple[int, int], Access]:
    return {
        (n, t): (t, t // threads, sum(k <= n for k in barriers), int(kind[n, t]), int(at[n, t]))
        for n, t in itertools.product(range(kind.shape[0]), range(kind.shape[1]))
        if kind[n, t] != NONE
    }


@settings(max_examples=300, deadline=None)
@given(
    st.sampled_from(["global", "shared"]),
    st.sets(st.integers(1, 3), max_size=3),
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=24, max_size=24),
    st.integers(0, 3),
    st.integers(0, 5),
)
def test_races_are_found_exactly(
    space: str, cuts: set[int], table: list[tuple[int, int]], quiet: int, seed: int
) -> None:
    """Verdicts equal those of all pairs: 4 steps of 2 blocks of 3 threads, any accesses, barriers anywhere."""
    steps, threads, barriers = 4, 3, tuple(sorted(cuts))
    kind = np.array([k if n % 4 >= quiet else NONE for n, (k, _) in enumerate(table)], np.int32).reshape(steps, 6)
    at = np.array([a for _, a in table], np.int32).reshape(steps, 6)
    device = CheckDevice(seed=seed, collect=True)
    args = [device.array(kind), device.array(at), device.zeros(4, I32)]
    launch(device, scheduled(space, barriers, steps, threads), 2, args)
    every, shared = accesses(kind, at, barriers, threads), space == "shared"
    assert bool(device.findings) == any(race(x, y, shared) for x, y in itertools.combinations(every.values(), 2))
    for f in device.findings:  # each finding names two accesses that do race
        assert f.kind == "race" and f.loc is not None and f.other_loc is not None and f.element is not None
        one, two = (every[loc.line // 10, t[0]] for loc, t in zip((f.loc, f.other_loc), f.threads, strict=True))
        assert race(one, two, shared) and one[4] == two[4] == f.element[1][0]
        assert (one[3], two[3]) == (f.loc.line % 10, f.other_loc.line % 10)


# -- the words of a finding ----------------------------------------------------------------------------------------


def shift(barrier: bool) -> Kernel:
    """s[t] = t; (barrier); out[g] = s[t + 1 mod 64]"""
    s = Sketch((64, 1, 1))
    out = s.array("out", I32)
    b = s.b
    tile = b.array("tile", ArrayType(I32, 1, "shared", "disjoint", shape=(64,)))
    t, g = b.identity("thread_idx", 0), b.identity("global_idx", 0)
    s.at(3)
    b.store(tile, [t], t)
    if barrier:
        b.emit("barrier")
    s.at(5)
    after = b.binary("mod", b.binary("add", t, b.const(1, I32)), b.const(64, I32))
    b.store(out, [g], b.load(tile, [after]))
    return s.kernel("shift")


def test_missing_barrier_names_both_sides() -> None:
    device = CheckDevice()
    out = device.empty(128, I32)
    launch(device, shift(True), 2, [out])
    device.synchronize()
    launch(device, shift(False), 2, [out])
    with pytest.raises(SanitizerError) as e:
        out.numpy()
    (found,) = e.value.findings
    assert (found.loc.line, found.other_loc.line) == (3, 5)
    writer, reader = (t[0] for t in found.threads)
    assert writer % 64 == (reader + 1) % 64 == found.element[1][0] and writer // 64 == reader // 64
    assert str(e.value) == (
        f"shift: race on tile[{writer % 64}]: written by thread {writer} here, read by thread {reader} at line 5\n"
        "  --> kernel.py:3:1\n  and kernel.py:5:1\n"
        "  help: order the two accesses by a barrier in one block, give each thread its own element, or use atomics"
    )
    device.synchronize()  # raised once


def test_two_threads_write_one_element_in_one_operation() -> None:
    s = Sketch((64, 1, 1))
    out = s.array("out", I32)
    b = s.at(4)
    b.store(out, [b.binary("floordiv", b.identity("global_idx", 0), b.const(2, I32))], b.const(1, I32))
    device = CheckDevice(collect=True)
    launch(device, s.kernel(), 2, [device.empty(64, I32)])
    (found,) = device.findings
    one, two = (t[0] for t in found.threads)
    assert one // 2 == two // 2 == found.element[1][0] and one != two
    assert "here, written by thread" in found.message and found.message.endswith("here too")


def test_all_threads_write_one_uniform_element() -> None:
    s = Sketch((8, 1, 1))
    out = s.array("out", I32)
    s.b.store(out, [s.b.const(0, I32)], s.b.const(1, I32))
    device = CheckDevice(collect=True)
    kernel = s.kernel()
    launch(device, kernel, 1, [device.empty(1, I32)])
    assert [f.kind for f in device.findings] == ["race"]
    device.findings.clear()
    single = Sketch((1, 1, 1))
    out = single.array("out", I32)
    single.b.store(out, [single.b.const(0, I32)], single.b.const(1, I32))
    launch(device, single.kernel(), 1, [device.empty(1, I32)])
    assert not device.findings


@pytest.mark.parametrize("scope", ["block", "device"])
def test_atomics_of_block_scope_meet_between_blocks(scope: str) -> None:
    s = Sketch((8, 1, 1))
    c = s.array("c", I32, "atomic")
    s.b.atomic("add", c, [s.b.const(0, I32)], [s.b.const(1, I32)], scope=scope)
    device = CheckDevice(collect=True)
    kernel = s.kernel()
    launch(device, kernel, 1, [device.zeros(1, I32)])
    assert not device.findings
    launch(device, kernel, 2, [device.zeros(1, I32)])
    assert [f.kind for f in device.findings] == (["race"] if scope == "block" else [])


def test_members_of_a_struct_do_not_race_with_each_other() -> None:
    pair = layout("Pair", [("left", I32, 0), ("right", F32, 2)])
    device = CheckDevice(collect=True)
    for field, racy in ((pair.fields[1], False), (pair.fields[0], True)):
        s = Sketch((2, 1, 1))
        a = s.array("a", pair)
        b = s.b
        zero = b.const(0, I32)
        branch = b.if_(b.binary("eq", b.identity("thread_idx", 0), zero))
        with b.into(branch.regions[0]):
            b.store(a, [zero], b.const(1, I32), (pair.fields[0],))
        with b.into(branch.regions[1]):
            index = [zero, b.const(1, I32)] if field.count else [zero]
            b.store(a, index, b.const(1, I32) if field.type == I32 else b.const(1.0, F32), (field,))
        launch(device, s.kernel(), 1, [device.zeros(1, pair)])
        assert bool(device.findings) == racy
    assert "a[0].left" in device.findings[0].message


def test_a_place_is_reported_once_and_counted() -> None:
    device = CheckDevice(collect=True)
    kernel = shift(False)
    module = device.load(kernel)
    out = device.empty(128, I32)
    for _ in range(3):
        device.launch(module, (2, 1, 1), [out.arg], device.default_stream)
    assert len(device.findings) == 1 and device.findings[0].count >= 3


# -- memory that was never written ---------------------------------------------------------------------------------


def double() -> Kernel:
    s = Sketch((32, 1, 1))
    a, out = s.array("a", F32, "read"), s.array("out", F32)
    b = s.b
    i = b.identity("global_idx", 0)
    v = s.at(6).load(a, [i])
    b.store(out, [i], b.binary("add", v, v))
    return s.kernel("double")


def test_uninitialised_read() -> None:
    device = CheckDevice(collect=True)
    a, out = device.empty(64, F32), device.empty(64, F32)
    a[:40].copy_from(np.ones(40, np.float32))
    launch(device, double(), 1, [a, out])  # reads the first 32 only
    assert not device.findings
    launch(device, double(), 2, [a, out])
    (found,) = device.findings
    assert found.kind == "uninitialised" and found.element == ("a", (40,)) and found.threads == ((40, 0, 0),)
    assert found.message == "double: a[40] is read by thread 40 but was never written" and found.loc.line == 6


def test_what_a_kernel_or_a_copy_writes_is_initialised() -> None:
    device = CheckDevice()
    a, middle, out = device.full(64, 2.0, F32), device.empty(64, F32), device.empty(64, F32)
    launch(device, double(), 1, [a, middle])  # the first half
    half = middle.copy()  # copies what was never written too
    launch(device, double(), 1, [half, out])
    assert out[:32].numpy().tolist() == [8.0] * 32
    launch(device, double(), 2, [half, out])
    with pytest.raises(SanitizerError, match=r"a\[32\] is read by thread 32 but was never written"):
        device.synchronize()
    launch(device, double(), 2, [a, middle])
    launch(device, double(), 2, [middle, out])
    assert out.numpy().tolist() == [8.0] * 64


# -- divergence --------------------------------------------------------------------------------------------------


def guarded(code: str, early: bool) -> Kernel:
    """A barrier (or vote) that threads from 40 on of a block of 64 do not reach."""
    s = Sketch((64, 1, 1))
    b = s.b
    few = b.binary("lt", b.identity("thread_idx", 0), b.const(40, I32))
    branch = b.if_(few)
    if early:
        with b.into(branch.regions[1]):
            b.emit("return")
    region = s.body if early else branch.regions[0]
    s.at(8)
    with b.into(region):
        if code == "barrier":
            b.emit("barrier")
        else:
            b.value("subgroup", [few], BOOL, fn="any")
    return s.kernel("guarded")


@pytest.mark.parametrize("early", [False, True])
def test_divergent_barrier(early: bool) -> None:
    device = CheckDevice()
    launch(device, guarded("barrier", early), 3, [])
    with pytest.raises(SanitizerError, match="divergent barrier: 40 of 64 threads of a block arrive") as e:
        device.synchronize()
    (found,) = e.value.findings
    arrives, missing = (t[0] for t in found.threads)
    assert arrives % 64 < 40 <= missing % 64 and arrives // 64 == missing // 64 and found.loc.line == 8


def test_divergent_subgroup_operation() -> None:
    for size, bad in ((32, True), (8, False)):  # 40 threads are whole subgroups of 8
        device = CheckDevice(subgroup_size=size, collect=True)
        launch(device, guarded("any", False), 1, [])
        assert [f.kind for f in device.findings] == (["divergence"] if bad else [])


def test_a_barrier_that_some_blocks_skip_is_uniform() -> None:
    s = Sketch((16, 1, 1))
    b = s.b
    loop = b.for_(b.const(0, I32), b.identity("block_idx", 0), b.const(1, I32))
    with b.into(loop.regions[0]):
        b.emit("barrier")
    device = CheckDevice(collect=True)
    launch(device, s.kernel(), 5, [])
    assert not device.findings


# -- the rest ----------------------------------------------------------------------------------------------------


def test_out_of_bounds_is_a_finding_and_a_fault() -> None:
    device = CheckDevice(collect=True)
    launch(device, double(), 2, [device.zeros(40, F32), device.zeros(64, F32)])
    (found,) = device.findings
    assert found.kind == "out-of-bounds" and found.element == ("a", (40,)) and found.loc.line == 6
    with pytest.raises(IndexError):
        device.synchronize()


def test_a_false_assumption_is_a_finding() -> None:
    s = Sketch((8, 1, 1))
    n = s.scalar("n", I32)
    b = s.b
    b.emit("assume", (b.binary("gt", n, b.const(3, I32)),))
    device = CheckDevice(collect=True)
    launch(device, s.kernel(), 1, [4])
    assert not device.findings
    launch(device, s.kernel(), 1, [3])
    assert [f.kind for f in device.findings] == ["assumption"]


def test_leaks() -> None:
    device = CheckDevice()
    kept = [device.zeros(100, F32) for _ in range(3)]
    freed, dropped = device.zeros(10, F32), device.zeros(20, F32)
    freed.free()
    del dropped
    gc.collect()
    (leak,) = device.leaks()
    assert leak.kind == "leak" and leak.count == 3 and leak.loc is not None and leak.loc.file == __file__
    assert "3 arrays are still alive on check: 1200 bytes" in leak.report() and len(kept) == 3


def test_reports_are_short() -> None:
    device = CheckDevice(collect=True)
    launch(device, shift(False), 1, [device.empty(64, I32)])
    launch(device, guarded("barrier", True), 1, [])
    launch(device, double(), 1, [device.empty(32, F32), device.empty(32, F32)])
    assert {f.kind for f in device.findings} == {"race", "divergence", "uninitialised"}
    assert all(len(f.report().splitlines()) <= 6 for f in device.findings)


def stencil_body(b: Builder, a: Value, out: Value) -> None:
    i = b.identity("global_idx", 0)
    n = b.dim(a, 0)
    one = b.const(1, I32)
    inside = b.binary("and", b.binary("ge", i, one), b.binary("lt", b.binary("add", i, one), n))
    with b.into(b.if_(inside).regions[0]):
        total = b.load(a, [b.binary("sub", i, one)])
        for k in (i, b.binary("add", i, one)):
            total = b.binary("add", total, b.load(a, [k]))
        b.store(out, [i], b.binary("mul", total, b.const(1 / 3, F32)))


def test_cost_a_thread() -> None:
    """Ordinary kernels cost at most 4 microseconds a thread, watched."""
    s = Sketch((256, 1, 1))
    a, out = s.array("a", F32, "disjoint"), s.array("out", F32)
    stencil_body(s.b, a, out)
    n = 1 << 18
    device = CheckDevice()
    source, target = device.zeros(n, F32), device.empty(n, F32)
    module = device.load(s.kernel())
    start = time.process_time()
    device.launch(module, (n // 256, 1, 1), [source.arg, target.arg], device.default_stream)
    stencil = (time.process_time() - start) / n
    assert stencil <= 4e-6
    threads = 64 * 512
    module = device.load(shift(True))
    wide = device.empty(threads, I32)
    start = time.process_time()
    device.launch(module, (512, 1, 1), [wide.arg], device.default_stream)
    assert (time.process_time() - start) / threads <= 4e-6
    device.synchronize()
