"""Traps of other systems, by their reports: control flow, barriers, capture and cache."""

from __future__ import annotations

import importlib
import sys
import tempfile
from pathlib import Path

import numpy as np
import pytest
from cases import case, refused, run

import gridwise as gw
from gridwise import DisjointSlice, Slice, barrier, f32, i32, thread

# -- control flow ----------------------------------------------------------------------------------------------


@gw.kernel(block=32)
def loops_with_else(o: DisjointSlice[i32, 2], stop: i32):
    row = int(thread.index_1d())
    if row < o.shape[0]:
        i = i32(row)
        for k in range(10):
            if k == i:
                break
        else:
            o[row, 0] = 1
        n = i
        while n < 8:
            n += 3
            if n == stop:
                break
        else:
            o[row, 1] = 1


@case("traps: control flow")
def loop_else_is_not_dropped(device):
    """Warp dropped the bodies of while ... else and for ... else."""
    o = run(device, loops_with_else, np.zeros((20, 2), np.int32), 7, grid=1)[0]
    for i in range(20):
        n, broke = i, False
        while n < 8 and not broke:
            n += 3
            broke = n == 7
        assert o[i].tolist() == [int(i >= 10), int(not broke)]


@gw.kernel(block=32)
def reuses(o: DisjointSlice[i32]):
    i = thread.index_1d()
    if i in o:
        total = 0
        for k in range(3):
            total += k
        for k in range(10, 12):
            total += k
        k = 100
        while k > 0:
            k -= 30
            if k < 20:
                break
        o[i] = total * 1000 + k


@case("traps: control flow")
def a_loop_variable_used_again(device):
    """warp#1534 (reuse in a later loop), warp#115 (break in while)."""
    assert run(device, reuses, np.zeros(5, np.int32))[0].tolist() == [24010] * 5


@gw.kernel(block=32)
def continues(o: DisjointSlice[i32]):
    i = thread.index_1d()
    if i in o:
        total = 0
        k = 0
        while k < 20:
            k += 1
            if k % 2 == 0:
                if k % 3 == 0:
                    continue
                total += 100
            if k == int(i):
                continue
            for m in range(3):
                if m == 1:
                    continue
                if m == 2 and k > 10:
                    break
                total += m + 1
        o[i] = total


@case("traps: control flow")
def continue_in_nested_loops_and_ifs(device):
    """taichi#8057, #5562 (skipped, or hanging); numba#1522 (nested if with continue)."""

    def plain(i: int) -> int:
        total = k = 0
        while k < 20:
            k += 1
            if k % 2 == 0:
                if k % 3 == 0:
                    continue
                total += 100
            if k == i:
                continue
            for m in range(3):
                if m == 1:
                    continue
                if m == 2 and k > 10:
                    break
                total += m + 1
        return total

    assert run(device, continues, np.zeros(25, np.int32))[0].tolist() == [plain(i) for i in range(25)]


def found(n: i32) -> i32:
    for a in range(1, 10):
        b = 1
        while True:
            if a * b >= n:
                return a * 100 + b
            b += 1
            if b > 5:
                break
    return -1


@gw.kernel(block=32)
def returns(o: DisjointSlice[i32]):
    i = thread.index_1d()
    if i not in o:
        return
    if int(i) == 3:
        return
    o[i] = found(i32(int(i)))


@case("traps: control flow")
def return_inside_loops_and_bare_return(device):
    """triton#5768, cupy#8979."""

    def plain(n: int) -> int:
        for a in range(1, 10):
            for b in range(1, 6):
                if a * b >= n:
                    return a * 100 + b
        return -1

    o = run(device, returns, np.full(60, -5, np.int32))[0]
    assert o.tolist() == [-5 if n == 3 else plain(n) for n in range(60)]


@gw.kernel(block=1)
def bound_under_if(o: DisjointSlice[f32], n: i32):
    if n > 0:
        y = 2.0
    o[thread.index_1d()] = y  # HERE


@gw.kernel(block=1)
def truncates(o: DisjointSlice[i32], a: i32):
    x = a
    x = 1.5  # HERE
    o[thread.index_1d()] = i32(x)


@gw.kernel(block=1)
def sums_floats(a: Slice[f32], o: DisjointSlice[f32]):
    total = 0
    for k in range(3):
        total += a[k]  # HERE
    o[thread.index_1d()] = total


@case("traps: control flow")
def names_are_not_guessed_or_truncated(device):
    """numba, Warp, CuPy: a name bound only under if; Taichi: x = 1.5 truncated; taichi#939: 0 that sums floats."""
    one = np.ones(1, np.float32)
    refused(device, gw.KernelNameError, "'y'", bound_under_if, one, 1)
    refused(device, gw.KernelTypeError, "'x'", truncates, np.zeros(1, np.int32), 1)
    error = refused(device, gw.KernelTypeError, "i32 + f32", sums_floats, np.ones(3, np.float32), one)
    assert "f32(0)" in str(error)


# -- barriers --------------------------------------------------------------------------------------------------


@gw.kernel(block=64)
def returns_early(x: Slice[i32], o: DisjointSlice[i32]):
    s = gw.shared((64,), i32)
    t = thread.local_index()
    i = thread.index_1d()
    if i not in x:
        return
    s[t] = x[i]
    barrier()  # HERE
    if i in o:
        o[i] = s[63 - t]


@case("traps: barriers")
def a_return_before_a_barrier_is_refused(device):
    """numba#1626, #2655."""
    refused(device, gw.DivergenceError, "barrier", returns_early, np.zeros(100, np.int32), np.zeros(100, np.int32))


@gw.kernel(block=64)
def rotates(o: DisjointSlice[i32], rounds: i32):
    s = gw.shared((64,), i32)
    t = thread.local_index()
    s[t] = i32(t)
    barrier()
    k = 0
    while k < rounds:
        k += 1
        if k % 3 == 0:
            continue
        v = s[(t + 1) % 64]
        barrier()
        s[t] = v
        barrier()
    i = thread.index_1d()
    if i in o:
        o[i] = s[t]


@case("traps: barriers")
def all_threads_wait_at_the_same_barrier_of_a_loop(device):
    """numba#9770: a back edge was duplicated, so that threads waited at different barriers."""
    for rounds in (0, 1, 7):
        turns = sum(k % 3 != 0 for k in range(1, rounds + 1))
        o = run(device, rotates, np.zeros(128, np.int32), rounds)[0]
        assert o.tolist() == [(t + turns) % 64 for t in range(64)] * 2


# -- capture and cache -----------------------------------------------------------------------------------------

SCALE = 2


@gw.kernel(block=32)
def scaled(o: DisjointSlice[i32]):
    i = thread.index_1d()
    if i in o:
        o[i] = o[i] * SCALE


@case("traps: capture and cache")
def a_changed_global_is_not_ignored(device):
    """triton#7322."""
    global SCALE
    try:
        for SCALE in (2, 7, 2):
            assert run(device, scaled, np.ones(3, np.int32))[0].tolist() == [SCALE] * 3
    finally:
        SCALE = 2


@case("traps: capture and cache")
def an_edit_in_another_file_is_seen(device):
    """numba#9483."""
    with tempfile.TemporaryDirectory() as folder:
        name = f"edited_{device.name.replace(':', '_')}"
        path = Path(folder) / f"{name}.py"
        sys.path.insert(0, folder)
        try:
            path.write_text("from gridwise import i32\ndef h(x: i32) -> i32:\n    return x + 1\n")
            library = importlib.import_module(name)

            @gw.kernel(block=32)
            def calls(o: DisjointSlice[i32]):
                i = thread.index_1d()
                if i in o:
                    o[i] = library.h(o[i])

            assert run(device, calls, np.zeros(2, np.int32))[0].tolist() == [1, 1]
            path.write_text("from gridwise import i32\n\n\ndef h(x: i32) -> i32:\n    return x + 50\n")
            importlib.invalidate_caches()
            sys.modules.pop(name)
            library.h = importlib.import_module(name).h
            assert run(device, calls, np.zeros(2, np.int32))[0].tolist() == [50, 50]
        finally:
            sys.path.remove(folder)
            sys.modules.pop(name, None)


def make(k: int, f: object) -> gw.Kernel:
    @gw.kernel(block=32)
    def made(o: DisjointSlice[i32]):
        i = thread.index_1d()
        if i in o:
            o[i] = f(o[i]) * k

    return made


@case("traps: capture and cache")
def kernels_of_one_factory_do_not_collide(device):
    """warp#1211, #1231; wrong binaries by short hashes, warp#1696."""
    made = [make(k, f) for k in (2, 3) for f in (lambda x: x + 1, lambda x: x - 1)]
    for _ in range(2):
        got = [run(device, kernel, np.full(1, 10, np.int32))[0].tolist() for kernel in made]
        assert got == [[22], [18], [33], [27]]


def refuses(x: i32) -> i32:
    return x + undefined_name  # noqa: F821


def accepts(x: i32) -> i32:
    return x + 4


repaired = refuses


@gw.kernel(block=32)
def calls_repaired(o: DisjointSlice[i32]):
    i = thread.index_1d()
    if i in o:
        o[i] = repaired(o[i])


@case("traps: capture and cache")
def a_failed_build_is_not_launched_and_harms_no_other(device):
    """warp#1713: the launch after a failed build ran a truncated kernel. Warp: one bad kernel failed its module."""
    global repaired
    try:
        for _ in range(2):
            with pytest.raises(gw.KernelNameError, match="undefined_name"):
                run(device, calls_repaired, np.zeros(1, np.int32))
            assert run(device, scaled, np.ones(3, np.int32))[0].tolist() == [2] * 3
        repaired = accepts
        assert run(device, calls_repaired, np.zeros(1, np.int32))[0].tolist() == [4]
    finally:
        repaired = refuses
