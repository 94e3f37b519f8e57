"""Runs generated programs on several devices and says where they disagree; shrinks what does."""

from __future__ import annotations

import importlib.util
import itertools
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar

import ml_dtypes
import numpy as np
from cooperate import BINS, BLOCK, GRID, Cooperative
from elementwise import Elementwise, execute_elementwise
from generate import PREAMBLE
from program import Program

import gridwise as gw

THREADS = 64
OUTPUTS = {"i32": 0, "i64": 1, "f32": 2}
_serial = itertools.count()


@contextmanager
def module(source: str) -> Iterator[ModuleType]:
    """The source as an imported module, in a file of its own, so that errors show its lines."""
    with tempfile.TemporaryDirectory() as folder:
        name = f"generated_{next(_serial)}"
        path = Path(folder) / f"{name}.py"
        path.write_text(source)
        spec = importlib.util.spec_from_file_location(name, path)
        assert spec is not None and spec.loader is not None
        made = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(made)
        yield made


def source_of(programs: Sequence[Program]) -> str:
    """A module whose kernel ``run`` calls every program in every thread."""
    functions = "\n\n".join(p.source(f"program{n}") for n, p in enumerate(programs))
    rows = dict.fromkeys(OUTPUTS, 0)
    calls = []
    for n, p in enumerate(programs):
        t = p.result.type
        calls.append(f"        out_{t}[{rows[t]}, n] = program{n}(a, b, c, d, x, y)")
        rows[t] += 1
    return (
        PREAMBLE + functions + "\n\n@gw.kernel(domain=1, block=64)\n"
        "def run(ints: Slice[i32, 2], longs: Slice[i64, 2], floats: Slice[f32, 2],\n"
        "        out_i32: DisjointSlice[i32, 2], out_i64: DisjointSlice[i64, 2], out_f32: DisjointSlice[f32, 2]):\n"
        "    n = int(thread.index_1d())\n"
        "    if n < ints.shape[1]:\n"
        "        a, b, c, d = ints[0, n], ints[1, n], longs[0, n], longs[1, n]\n"
        "        x, y = floats[0, n], floats[1, n]\n" + "\n".join(calls) + "\n"
    )


def arguments(seed: int, special: bool) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Two columns each of i32, i64 and f32: edges, small numbers and random bits.

    Floats are finite and moderate; with ``special``, also NaN, infinite, subnormal and near the ends of the range,
    which WGSL does not promise to keep.
    """
    rng = np.random.default_rng(seed)

    def integers(bits: int) -> np.ndarray:
        low, high = -(1 << (bits - 1)), (1 << (bits - 1)) - 1
        edge = np.array([0, 1, -1, 2, 7, low, high, low + 1, high - 1, 255, 256, -128, 65535, bits, bits - 1])
        values = rng.integers(low, high, (2, THREADS), endpoint=True)
        kind = rng.integers(0, 3, (2, THREADS))
        values = np.where(kind == 0, rng.choice(edge, (2, THREADS)), values)
        return np.where(kind == 1, rng.integers(-20, 20, (2, THREADS)), values).astype(f"int{bits}")

    floats = rng.normal(size=(2, THREADS)) * 2.0 ** rng.integers(-3, 12, (2, THREADS))
    whole = rng.random((2, THREADS)) < 0.4
    floats = np.where(whole, np.rint(floats), floats).astype(np.float32)
    if special:
        edge = [0.0, -0.0, np.inf, -np.inf, np.nan, 1e-45, -1e-40, 3.4e38, -3.4e38, 2**31, 2**63, 0.5]
        floats = np.where(rng.random((2, THREADS)) < 0.4, rng.choice(edge, (2, THREADS)), floats)
    return integers(32), integers(64), floats.astype(np.float32)


Outputs = list[np.ndarray]


def execute(made: ModuleType, device: gw.Device, programs: Sequence[Program], seed: int, special: bool) -> Outputs:
    """One result row a program: what the kernel wrote on this device."""
    counts = [sum(p.result.type == t for p in programs) for t in OUTPUTS]
    types = (gw.i32, gw.i64, gw.f32)
    given = [device.array(v) for v in arguments(seed, special)]
    outs = [device.zeros((max(1, n), THREADS), t) for n, t in zip(counts, types)]
    made.run(*given, *outs, grid=1)
    arrays = [o.numpy() for o in outs]
    rows = dict.fromkeys(OUTPUTS, 0)
    results = []
    for p in programs:
        t = p.result.type
        results.append(arrays[OUTPUTS[t]][rows[t]])
        rows[t] += 1
    return results


def keeps_specials(device: gw.Device) -> bool:
    """Whether NaN, infinity, subnormals and the sign of zero are the language's there: not on WGSL."""
    return device.target != "wgsl"


def differ(want: np.ndarray, got: np.ndarray, strict: bool) -> np.ndarray:
    """Where two results disagree, bit for bit; a NaN equals a NaN. Not strict: subnormals are zeros, of any sign."""
    if want.dtype.kind in "biu":
        return want != got
    w, g = want.astype(np.float64), got.astype(np.float64)
    nan = np.isnan(w) & np.isnan(g)
    unsigned = f"u{want.dtype.itemsize}"
    if strict:
        return ~((want.view(unsigned) == got.view(unsigned)) | nan)
    tiny = float(ml_dtypes.finfo(want.dtype).tiny)
    return ~((np.where(np.abs(w) < tiny, 0, w) == np.where(np.abs(g) < tiny, 0, g)) | nan)


@dataclass
class Failure:
    """A program on which ``device`` disagrees with the check device, or that an error stops."""

    program: Program | Cooperative | Elementwise
    device: str
    what: str

    def report(self) -> str:
        call = self.program.source()
        return f"seed {self.program.seed} on {self.device}:\n{call}\n{self.what}"


def one(program: Program, device: gw.Device, oracle: gw.Device, seed: int) -> str | None:
    """What is wrong with one program alone, or None."""
    special = keeps_specials(device)
    try:
        with module(source_of([program])) as made:
            want = execute(made, oracle, [program], seed, special)[0]
            got = execute(made, device, [program], seed, special)[0]
    except gw.KernelError as e:
        return f"refused: {e}"
    except Exception as e:
        return f"{type(e).__name__}: {e}"
    bad = np.flatnonzero(differ(want, got, special))
    if not len(bad):
        return None
    n = int(bad[0])
    ints, longs, floats = arguments(seed, special)
    a, b, c, d, x, y = (*ints[:, n].tolist(), *longs[:, n].tolist(), *floats[:, n].tolist())
    return f"a={a} b={b} c={c} d={d} x={x!r} y={y!r}: check gives {want[n]!r}, {device.name} gives {got[n]!r}"


P = TypeVar("P", Program, Cooperative, Elementwise)


def _kind(why: str) -> str:
    """Refused, which error, or a wrong result: shrinking must not wander from one to another."""
    head = why.split(":")[0]
    return head if head in ("refused", "unproved") or head.endswith("Error") else "wrong"


def shrink(program: P, fails: Callable[[P], str | None], attempts: int = 150) -> tuple[P, str]:
    """The smallest program found that fails in the same way."""
    why = fails(program)
    assert why is not None
    kind = _kind(why)
    tried = 0
    progress = True
    while progress and tried < attempts:
        progress = False
        for smaller in program.smaller():
            if smaller.size() >= program.size() or tried >= attempts:
                continue
            tried += 1
            less = fails(smaller)
            if less is not None and _kind(less) == kind:
                program, why, progress = smaller, less, True
                break
    return program, why


def execute_cooperative(kernel: Cooperative, device: gw.Device) -> np.ndarray:
    """``out`` and ``bins`` after one launch, in one row."""
    rng = np.random.default_rng(kernel.seed)
    count = BLOCK * GRID
    ints = np.where(rng.random(count) < 0.5, rng.integers(-9, 9, count), rng.integers(-(2**31), 2**31, count))
    with module(kernel.module()) as made:
        out, bins = device.zeros(count, gw.i32), device.array(np.full(BINS, 1 << 20, np.uint32))
        made.run(device.array(ints.astype(np.int32)), out, bins, int(rng.integers(-2, 7)), grid=GRID)
        return np.concatenate([out.numpy().astype(np.int64), bins.numpy().astype(np.int64)])


def one_elementwise(case: Elementwise, device: gw.Device, oracle: gw.Device) -> str | None:
    """What is wrong with an elementwise kernel on a device, or None."""
    special = keeps_specials(device)
    try:
        with module(case.module()) as made:
            want = execute_elementwise(made.run, case, oracle, special)
            got = execute_elementwise(made.run, case, device, special)
    except gw.KernelError as e:
        return f"refused: {e}"
    except Exception as e:
        return f"{type(e).__name__}: {e}"
    bad = np.argwhere(differ(want, got, special))
    if not len(bad):
        return None
    at = tuple(int(n) for n in bad[0])
    layout = f"shape {case.shape}, step {case.step}, offset {case.offset}"
    return f"{layout}: out{list(at)}: check gives {want[at]!r}, {device.name} gives {got[at]!r}; {len(bad)} differ"


def compare_elementwise(case: Elementwise, devices: Sequence[gw.Device], oracle: gw.Device) -> list[Failure]:
    """Run it on every device and shrink what fails."""
    failures = []
    for device in devices:
        if one_elementwise(case, device, oracle) is not None:
            small, why = shrink(case, lambda k, d=device: one_elementwise(k, d, oracle))
            failures.append(Failure(small, device.name, why))
    return failures


def one_cooperative(kernel: Cooperative, device: gw.Device, oracle: gw.Device) -> str | None:
    """What is wrong with a cooperative kernel on a device, or None."""
    try:
        want, got = execute_cooperative(kernel, oracle), execute_cooperative(kernel, device)
    except gw.UnprovedError as e:
        return f"unproved: {e}"
    except gw.KernelError as e:
        return f"refused: {e}"
    except Exception as e:
        return f"{type(e).__name__}: {e}"
    bad = np.flatnonzero(want != got)
    if not len(bad):
        return None
    n = int(bad[0])
    place = f"out[{n}]" if n < BLOCK * GRID else f"bins[{n - BLOCK * GRID}]"
    return f"{place}: check gives {want[n]}, {device.name} gives {got[n]}; {len(bad)} elements differ"


def compare_cooperative(
    kernel: Cooperative, devices: Sequence[gw.Device], oracle: gw.Device
) -> list[Failure]:
    """Run it on every device and shrink what fails. A kernel that the prover cannot prove is kept as it is."""
    failures = []
    for device in devices:
        why = one_cooperative(kernel, device, oracle)
        if why is not None and why.startswith("unproved"):
            return [Failure(kernel, "every device", why)]
        if why is not None:
            fails = lambda k, d=device: one_cooperative(k, d, oracle)  # noqa: E731
            small, why = shrink(kernel, fails)
            failures.append(Failure(small, device.name, why))
    return failures


def compare(programs: Sequence[Program], devices: Sequence[gw.Device], oracle: gw.Device, seed: int) -> list[Failure]:
    """Run a batch on every device; what fails is run alone and shrunk."""
    suspects: set[tuple[int, str]] = set()
    try:
        with module(source_of(programs)) as made:
            want = {special: execute(made, oracle, programs, seed, special) for special in (False, True)}
            for device in devices:
                special = keeps_specials(device)
                got = execute(made, device, programs, seed, special)
                wrong = [n for n in range(len(programs)) if differ(want[special][n], got[n], special).any()]
                suspects |= {(n, device.name) for n in wrong}
    except Exception:  # find out which program alone does it
        suspects = {(n, device.name) for n in range(len(programs)) for device in devices}
    by_name: dict[str, Any] = {d.name: d for d in devices}
    failures = []
    for n, name in sorted(suspects):
        device = by_name[name]
        if one(programs[n], device, oracle, seed) is None:
            continue
        small, why = shrink(programs[n], lambda p, d=device: one(p, d, oracle, seed))
        failures.append(Failure(small, name, why))
        if len(failures) >= 3:
            break
    return failures
