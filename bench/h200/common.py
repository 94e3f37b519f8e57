"""What the sections share: the table, sizes, examples, times by device events, and processes of their own.

Bandwidth counts bytes read plus bytes written. Times are medians of many launches by device events, on random data
larger than the caches, into outputs that are poisoned before and checked after.
"""

from __future__ import annotations

import importlib.util
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "src"))

import gridwise as gw  # noqa: E402
from gridwise import f32  # noqa: E402

ROWS: list[tuple[str, str, str]] = []  # what, figure, note
RECORD: dict[str, Any] = {}
SIZE = {
    "bandwidth": 28, "keys": 20, "checked": 20, "launches": 20_000, "turns": 200, "side": 4096,
    "first seed": 0, "last seed": 20_000, "small": 0,
}  # fmt: skip
SMALL = {"bandwidth": 10, "keys": 6, "checked": 10, "launches": 20, "turns": 2, "side": 100, "small": 1}  # --small
PYCACHE = os.path.join(tempfile.gettempdir(), "gridwise-bench-pycache")
POISON = np.float32(-1234.5)


def row(what: str, figure: str, note: str = "", **values: Any) -> None:
    """One line of the table, and its numbers for the JSON; a number named ``ratio`` is watched by bench/run.py."""
    ROWS.append((what, figure, note))
    RECORD.setdefault(what, {}).update(values, shown=figure, note=note)
    print(f"  {what}: {figure} {note}", flush=True)


def example(name: str) -> ModuleType:
    """A module of examples/."""
    if name in sys.modules:
        return sys.modules[name]
    spec = importlib.util.spec_from_file_location(name, ROOT / "examples" / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def seconds(device: gw.Device, work: Callable[[], Any], repeats: int = 30, warm: int = 5, batch: int = 1) -> float:
    """Median seconds of ``work`` on the device's default stream, by events around ``batch`` of it."""
    stream = device.default_stream
    if SIZE["small"]:
        repeats, warm, batch = 2, 1, 1
    for _ in range(warm):
        work()
    pairs = []
    for _ in range(repeats):
        start = stream.record()
        for _ in range(batch):
            work()
        pairs.append((start, stream.record()))
    stream.synchronize()
    return statistics.median(end.elapsed_since(start) for start, end in pairs) / batch


def modules_of(kernel: Any, device: gw.Device) -> list[Any]:
    """The loaded modules of a kernel on a device."""
    found = []
    for (where, *_), loaded in kernel.launcher._canonical.items():
        if where is device:
            found.append(loaded.fast)
    return found


def torch_seconds(torch: Any, work: Callable[[], Any], repeats: int = 30) -> float:
    """Median seconds of work on torch's current stream, by its events."""
    if SIZE["small"]:
        repeats = 2
    for _ in range(5):
        work()
    pairs = []
    for _ in range(repeats):
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        start.record()
        work()
        end.record()
        pairs.append((start, end))
    torch.cuda.synchronize()
    return statistics.median(s.elapsed_time(e) for s, e in pairs) / 1e3


def environment(**extra: str) -> dict[str, str]:
    """For a process of its own: this package, and byte code kept as an installed package has it."""
    path = os.pathsep.join([str(ROOT / "src"), *filter(None, [os.environ.get("PYTHONPATH", "")])])
    kept = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    return {**kept, "PYTHONPATH": path, "PYTHONPYCACHEPREFIX": PYCACHE, **extra}


def pytest_section(label: str, paths: list[str], limit: int, *options: str) -> None:
    there = [p for p in paths if (ROOT / p).exists()]
    if not there or importlib.util.find_spec("pytest") is None:
        row(label, "not run", "no tests here" if not there else "pytest is not installed")
        return
    expect = os.environ.get("GRIDWISE_EXPECT", "cpu,check,cuda")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-x" if "-x" in options else "--maxfail=20", *there],
        capture_output=True, text=True, timeout=limit, cwd=ROOT, env=environment(GRIDWISE_EXPECT=expect),
    )  # fmt: skip
    lines = [line for line in done.stdout.strip().splitlines() if line.strip()]
    log = os.environ.get("OUT")
    if log:
        (Path(log) / f"{label.replace(' ', '_')}.log").write_text(done.stdout + done.stderr)
    if done.returncode:
        print("\n".join(lines[-60:]), flush=True)
        raise AssertionError(f"pytest: {lines[-1] if lines else done.stderr[-500:]}")
    row(label, lines[-1].strip("= "), ", ".join(there))


def bandwidth(device: gw.Device, label: str) -> tuple[float, float]:
    """GB/s of the device's own copy and of vecadd, 2^28 f32, in one run; checks the sum."""
    n = 1 << SIZE["bandwidth"]
    vecadd = example("vecadd").vecadd
    rng = np.random.default_rng()
    a, b = rng.random(n, dtype=np.float32), rng.random(n, dtype=np.float32)
    da, db, dc = device.array(a), device.array(b), device.full(n, POISON, f32)
    stream = device.default_stream
    size = n * 4
    copying = lambda: device.copy(da.buffer, 0, dc.buffer, 0, size, stream)  # noqa: E731
    prepared = vecadd.prepare(device)
    adding = lambda: prepared(da, db, dc)  # noqa: E731
    copies, adds = [], []
    for _ in range(3):  # interleaved, so that a drifting clock touches both
        # Through WebGPU an event costs a submission, so several launches go between two.
        batch, repeats = (1, 30) if device.kind == "cuda" else (20, 5)
        copies.append(seconds(device, copying, repeats, batch=batch))
        adds.append(seconds(device, adding, repeats, batch=batch))
    copy_rate = 2 * size / statistics.median(copies) / 1e9
    add_rate = 3 * size / statistics.median(adds) / 1e9
    dc.fill(POISON)
    adding()
    got = dc.numpy()
    assert np.array_equal(got, a + b), f"vecadd through {label} is wrong"
    row(f"copy, {label}", f"{copy_rate:,.0f} GB/s", f"2^{SIZE['bandwidth']} f32", gbps=copy_rate)
    row(f"vecadd, {label}", f"{add_rate:,.0f} GB/s", f"{add_rate / copy_rate:.3f} of the copy", gbps=add_rate)
    return copy_rate, add_rate
