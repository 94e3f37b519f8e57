"""``make bench``: every benchmark that this machine can run, in one table, with JSON and a plot beside it.

    python bench/run.py [--out FOLDER] [--only cpu_std,cpu_bandwidth] [--stored FILE] [--store] [--quick]

Runs the CPU benchmarks beside the peers that are installed, and the GPU script where there is an NVIDIA driver.
FOLDER gets the JSON of each, ``bench.json`` with the ratios of all, and ``bench.svg``. The ratios are compared with
those that FILE holds for this device: one that fell by more than 10 % is measured once more, and if it fell again
it is reported and makes the exit status 1. ``--store`` puts this run's ratios into FILE.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import report

BENCH = Path(__file__).resolve().parent
# Arguments of a run, and of a quick one that only shows that everything works.
SECTIONS: dict[str, tuple[list[str], list[str]]] = {
    "cpu_bandwidth": ([], ["--elements", "65536"]),
    "cpu_cooperative": ([], ["--scale", "0.001"]),
    "cpu_math": ([], ["--elements", "4096"]),
    "cpu_std": ([], ["--sizes", "64"]),
    "h200": ([], ["--small", "--only", "check,copy,std"]),
}
PEERS = ("numpy", "numba", "warp-lang", "taichi", "torch", "triton", "cupy", "numba-cuda")


def measure(name: str, out: Path, quick: bool) -> Any:
    """Run one benchmark in a process of its own; its JSON, or None if it failed."""
    file = out / f"{name}.json"
    file.unlink(missing_ok=True)
    if name == "h200":
        command = ["-m", "bench.h200"]
    else:
        command = [str(BENCH / f"{name}.py"), "--json", str(file)]
    command += SECTIONS[name][quick]
    paths = [str(BENCH.parent / "src"), os.environ.get("PYTHONPATH", "")]
    environment = {**os.environ, "OUT": str(out), "PYTHONPATH": os.pathsep.join(filter(None, paths))}
    failed = subprocess.run([sys.executable, *command], env=environment, cwd=BENCH.parent).returncode
    if failed and name != "h200":  # that script goes on after a failed section
        return None
    return json.loads(file.read_text()) if file.exists() else None


def versions() -> dict[str, str]:
    found = {"python": platform.python_version()}
    for package in PEERS:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found


def names(text: str) -> list[str]:
    """Benchmarks with commas; argparse reports one that does not exist."""
    found = [name for name in text.split(",") if name]
    unknown = [name for name in found if name not in SECTIONS]
    if unknown:
        raise argparse.ArgumentTypeError(f"no benchmark {', '.join(unknown)}; there are {', '.join(SECTIONS)}")
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("out/bench"), help="folder for JSON and plot")
    parser.add_argument("--only", type=names, default=[], help="benchmarks, with commas")
    parser.add_argument("--stored", type=Path, default=BENCH / "stored.json", help="ratios of earlier runs, by device")
    parser.add_argument("--store", action="store_true", help="keep this run's ratios there")
    parser.add_argument("--quick", action="store_true", help="tiny sizes: to try the script itself")
    options = parser.parse_args()
    out: Path = options.out.resolve()
    out.mkdir(parents=True, exist_ok=True)

    import gridwise as gw
    from gridwise.devices.cpu import CpuDevice

    cpu = gw.device("cpu")
    assert isinstance(cpu, CpuDevice)
    device = cpu.description
    busy = os.getloadavg()[0] if hasattr(os, "getloadavg") else 0.0
    crowded = f"other programs keep {busy:.1f} of {cpu.workers} cores busy: figures and ratios suffer from it"
    crowded = crowded if busy > cpu.workers / 4 else ""
    print(crowded, flush=True)
    stored = json.loads(options.stored.read_text()) if options.stored.exists() else {}
    before: dict[str, float] = stored.get(device, {})
    rows: dict[str, dict[str, float]] = {}
    now: dict[str, float] = {}
    failed: list[str] = []
    for name in options.only or [n for n in SECTIONS if n != "h200" or shutil.which("nvidia-smi")]:
        print(f"\n== {name}", flush=True)
        table = measure(name, out, options.quick)
        if table is None:
            failed.append(f"{name} failed")
            continue
        found = dict(report.ratios({name: table}))
        if fell := report.regressions(found, before):
            print(f"\n== {name} again: {len(fell)} slower than stored", flush=True)
            again = dict(report.ratios({name: measure(name, out, options.quick)}))
            found |= {n: max(found[n], again.get(n, 0.0)) for n in fell}
        now |= found
        rows |= dict(report.programs({name: table}))
    fell = report.regressions(now, before)
    failed += fell.values()

    text = "\n".join([device, *(f"{n} {v}" for n, v in versions().items()), "", *report.lines(rows)])
    print(f"\n{text}")
    (out / "bench.txt").write_text(text + "\n")
    whole = {"device": device, "versions": versions(), "busy": busy, "programs": rows, "ratios": now,
             "slower": sorted(fell)}  # fmt: skip
    (out / "bench.json").write_text(json.dumps(whole, indent=1) + "\n")
    (out / "bench.svg").write_text(report.svg(device, now, before))
    if options.store:
        stored[device] = {**before, **{n: round(r, 3) for n, r in now.items()}}
        options.stored.write_text(json.dumps(stored, indent=1, sort_keys=True) + "\n")
    held = f"compared with {len(set(now) & set(before))} stored ratios of this device"
    print(f"\nbench.txt, bench.json and bench.svg in {out}; {held}")
    print("\n".join(filter(None, [crowded, *failed])))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
