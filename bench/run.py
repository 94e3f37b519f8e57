"""``make bench``: every benchmark that this machine can run, one table a device, JSON beside it.

    python bench/run.py [--out FOLDER] [--baseline FOLDER]

Runs the CPU benchmarks, and the GPU script where there is an NVIDIA driver. With ``--baseline``, ratios to the peers
are compared with those of an earlier run, and a fall of more than 10 % is reported and makes the exit status 1.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

BENCH = Path(__file__).resolve().parent
TOLERANCE = 0.10


def ratios(table: Any, path: str = "") -> Iterator[tuple[str, float]]:
    """Every number named ``ratio`` in a benchmark's JSON, by the path to it."""
    if isinstance(table, dict):
        for name, value in table.items():
            if name == "ratio" and isinstance(value, int | float):
                yield path, float(value)
            else:
                yield from ratios(value, f"{path}/{name}")


def regressions(now: Path, before: Path) -> list[str]:
    """Ratios that fell by more than the tolerance, as sentences."""
    found = []
    old = dict(ratios(json.loads(before.read_text())))
    for name, ratio in ratios(json.loads(now.read_text())):
        if name in old and ratio < old[name] * (1 - TOLERANCE):
            found.append(f"{now.stem}{name}: {ratio:.2f}, was {old[name]:.2f}")
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("out/bench"), help="folder for the JSON")
    parser.add_argument("--baseline", type=Path, help="folder of an earlier run")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)

    runs = [
        (name, [str(BENCH / f"{name}.py"), "--json", str(options.out / f"{name}.json")])
        for name in ("cpu_bandwidth", "cpu_cooperative")
    ]
    if subprocess.run(["sh", "-c", "command -v nvidia-smi"], capture_output=True).returncode == 0:
        runs.append(("h200", ["-m", "bench.h200"]))
    failed = []
    for name, arguments in runs:
        print(f"\n== {name}", flush=True)
        environment = {**os.environ, "OUT": str(options.out)}
        if subprocess.run([sys.executable, *arguments], env=environment, cwd=BENCH.parent).returncode:
            failed.append(f"{name} failed")
    for now in sorted(options.out.glob("*.json")) if options.baseline else ():
        before = options.baseline / now.name
        if before.exists():
            failed += regressions(now, before)
    print("\n" + ("\n".join(failed) if failed else f"JSON in {options.out}"))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
