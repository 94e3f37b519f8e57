"""Traps of other systems, by their reports: arrays, threads, errors."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import threading
from pathlib import Path

import numpy as np
import pytest
from cases import case, refused, run

import gridwise as gw
from gridwise import DisjointSlice, Slice, bool_, f32, i32, thread

# -- arrays ----------------------------------------------------------------------------------------------------


@gw.kernel(block=32)
def copies(a: Slice[f32], o: DisjointSlice[f32]):
    i = thread.index_1d()
    if i in a and i in o:
        o[i] = a[i]


@case("traps: arrays")
def strides_offsets_and_reversed_views(device):
    """warp#404, #1703, #1533; non-contiguous arrays refused by Taichi."""
    host = np.arange(120, dtype=np.float32).reshape(4, 30)
    whole = device.array(host)
    for key in (np.s_[1, 3:], np.s_[:, 5], np.s_[2, ::-4], np.s_[3, 1:29:7]):
        view = whole[key]
        out = device.zeros((len(view) * 2,), f32)
        copies(view, out[1::2])
        got = out.numpy()
        assert got[1::2].tolist() == host[key].tolist() and not got[::2].any()


@case("traps: arrays")
def a_host_array_with_stride_zero(device):
    """warp#857."""
    a = np.lib.stride_tricks.as_strided(np.full(1, 3, np.float32), (40,), (0,))
    out = np.zeros(40, np.float32)
    with gw.default_device(device.name):
        copies(a, out)
    assert out.tolist() == [3.0] * 40


@case("traps: arrays")
def a_read_only_array_is_not_written(device):
    """numba#1229, Warp."""
    a, out = np.ones(4, np.float32), np.zeros(4, np.float32)
    out.flags.writeable = False
    with gw.default_device(device.name), pytest.raises(gw.LaunchValueError, match=r"'o'.*read-only"):
        copies(a, out)
    with pytest.raises(gw.LaunchValueError, match=r"'o'.*read-only"):
        copies(device.array(a), device.zeros(4, f32).readonly())


@case("traps: arrays")
def a_launch_of_size_zero(device):
    """numba#4140."""
    assert run(device, copies, np.zeros(0, np.float32), np.zeros(0, np.float32))[1].size == 0


@gw.kernel(block=32)
def flips(a: Slice[bool_], o: DisjointSlice[bool_]):
    i = thread.index_1d()
    if i in a and i in o:
        o[i] = not a[i]


@case("traps: arrays")
def arrays_of_bool(device):
    """numba#5055."""
    a = np.arange(77) % 3 == 0
    assert run(device, flips, a, np.zeros(77, np.bool_))[1].tolist() == (~a).tolist()


@gw.kernel(block=32)
def looks_ahead(a: Slice[f32], o: DisjointSlice[f32]):
    i = thread.index_1d()
    if i in o:
        o[i] = a[int(i) + 4]


@case("traps: arrays")
def a_read_out_of_bounds_gives_no_neighbour(device):
    """Warp read its neighbour's 99; Taichi crashed Python on the CPU."""
    whole = device.full(64, 99.0, f32)
    whole[8:16].copy_from(np.arange(8, dtype=np.float32))
    out = device.full(8, -1.0, f32)
    looks_ahead(whole[8:16], out)
    with pytest.raises(gw.DeviceIndexError, match=r"index 8 is out of range for a of length 8 \(thread 4\)"):
        device.synchronize()
    assert out.numpy().tolist() == [4.0, 5.0, 6.0, 7.0, 0.0, 0.0, 0.0, 0.0]


# -- threads ---------------------------------------------------------------------------------------------------


@case("traps: threads")
def two_threads_compile_at_once(device):
    """warp#1284, #1474."""
    @gw.kernel(block=32)
    def kernel(o: DisjointSlice[i32]):
        i = thread.index_1d()
        if i in o:
            o[i] = (o[i] + 2) * 5

    results, errors = [], []
    gate = threading.Barrier(4)

    def work() -> None:
        try:
            gate.wait()
            x = device.full(50, 1, i32)
            kernel(x)
            results.append(x.numpy().tolist())
        except Exception as e:
            errors.append(e)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not errors and results == [[15] * 50] * 4


# -- errors ----------------------------------------------------------------------------------------------------


@gw.kernel(block=32)
def uses_an_unknown_name(o: DisjointSlice[f32]):
    i = thread.index_1d()
    if i in o:
        o[i] = nothing_of_that_name  # HERE  # noqa: F821


@gw.kernel(block=32)
def tries(o: DisjointSlice[f32]):
    i = thread.index_1d()
    if i in o:
        try:  # HERE
            o[i] = 1.0
        except ValueError:
            o[i] = 2.0


@case("traps: errors")
def errors_are_short_and_name_the_line(device):
    """numba-cuda: 67 lines without the user's file; `try:` as an internal attribute error; #209: the wrong line."""
    refused(device, gw.KernelNameError, "nothing_of_that_name", uses_an_unknown_name, np.zeros(1, np.float32))
    refused(device, gw.KernelSyntaxError, "try", tries, np.zeros(1, np.float32))


FORKS = """
import os, sys
sys.path.insert(0, {folder!r})
import gridwise as gw
from fork_kernel import one

def work():
    x = gw.device({name!r}).zeros(40, gw.i32)
    one(x)
    return x.numpy().tolist() == [1] * 40

assert work()
sys.stdout.flush()
child = os.fork()
if child == 0:
    try:
        print("right" if work() else "wrong", flush=True)
    except gw.DeviceUnavailableError as e:
        print("refused:", e, flush=True)
    os._exit(0)
os.waitpid(child, 0)
assert work()
"""

FORK_KERNEL = """
import gridwise as gw
from gridwise import DisjointSlice, i32, thread

@gw.kernel(block=32)
def one(o: DisjointSlice[i32]):
    i = thread.index_1d()
    if i in o:
        o[i] = o[i] + 1
"""


@case("traps: threads")
def a_fork_after_the_device_was_opened(device):
    """CUDA after fork: results of garbage, or a hang. A GPU's device refuses in the child; the parent goes on."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "fork_kernel.py").write_text(FORK_KERNEL)
        script = FORKS.format(folder=folder, name=device.name)
        done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    wanted = "refused: " if device.kind in ("cuda", "webgpu") else "right"
    assert done.stdout.startswith(wanted), done.stdout
    assert wanted == "right" or "spawn" in done.stdout
