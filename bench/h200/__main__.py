"""Everything that needs an NVIDIA GPU, in one run: right results, then figures, then one table.

    python -m bench.h200                      all sections
    python -m bench.h200 --only check,copy
    python -m bench.h200 --skip conformance
    python -m bench.h200 --only fuzz --seeds 20000:40000
    python -m bench.h200 --small              tiny sizes: to try the script itself

A section is a module of this folder with ``run(device)`` that calls ``common.row`` for each line of the table; its
name stands in SECTIONS below. One that fails is reported and the rest goes on; the exit status is 1 if any failed.
Written to be started on a machine with a GPU and no network: it needs the package, NumPy, and for some sections
pytest or wgpu. With OUT set, JSON goes there.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import platform
import sys
import time
import traceback
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from .common import RECORD, ROWS, SIZE, SMALL, gw, row

SECTIONS = (
    "check", "faults", "copy", "vulkan", "latency", "launch", "checks", "std", "stress", "semantics", "conformance",
    "fuzz",
)  # fmt: skip


def versions() -> str:
    found = []
    for package in ("llvmlite", "numpy", "cuda-bindings", "wgpu", "z3-solver", "torch", "triton"):
        try:
            found.append(f"{package} {version(package)}")
        except PackageNotFoundError:
            found.append(f"no {package}")
    return f"Python {platform.python_version()}, " + ", ".join(found)


def table(device: str) -> str:
    width = max((len(r[0]) for r in ROWS), default=0), max((len(r[1]) for r in ROWS), default=0)
    lines = [device, versions(), ""]
    lines += [f"{what:<{width[0]}}  {figure:>{width[1]}}  {note}".rstrip() for what, figure, note in ROWS]
    return "\n".join(lines)


def names(text: str) -> list[str]:
    """Section names with commas; argparse reports one that does not exist."""
    found = [name for name in text.split(",") if name]
    unknown = [name for name in found if name not in SECTIONS]
    if unknown:
        raise argparse.ArgumentTypeError(f"no section {', '.join(unknown)}; there are {', '.join(SECTIONS)}")
    return found


def seeds(text: str) -> tuple[int, int]:
    """``A:B``: random programs from number A up to B."""
    first, _, last = text.partition(":")
    if not (first.isdecimal() and last.isdecimal() and int(first) < int(last)):
        raise argparse.ArgumentTypeError(f"{text!r} is not A:B with A below B")
    return int(first), int(last)


def main() -> int:
    parser = argparse.ArgumentParser(
        "python -m bench.h200", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", default=list(SECTIONS), type=names, help="sections, with commas")
    parser.add_argument("--skip", default=[], type=names, help="sections, with commas")
    parser.add_argument("--seeds", type=seeds, metavar="A:B", help="random programs A up to B (0:20000)")
    parser.add_argument("--small", action="store_true", help="tiny sizes")
    options = parser.parse_args()
    if options.small:
        SIZE.update(SMALL)
    if options.seeds:
        SIZE["first seed"], SIZE["last seed"] = options.seeds
    try:
        cuda = gw.device("cuda")
    except gw.DeviceUnavailableError as e:
        print(e)
        return 2
    print(cuda.description, flush=True)
    failed = 0
    for name in SECTIONS:
        if name not in options.only or name in options.skip:
            continue
        print(f"[{name}]", flush=True)
        start = time.perf_counter()
        try:
            importlib.import_module(f".{name}", __package__).run(cuda)
        except BaseException as e:
            failed += 1
            traceback.print_exc()
            row(name, "FAILED", f"{type(e).__name__}: {e}".splitlines()[0][:120])
        print(f"  ({time.perf_counter() - start:.1f} s)", flush=True)
    print("\n" + table(cuda.description), flush=True)
    if os.environ.get("OUT"):
        path = Path(os.environ["OUT"]) / "h200.json"
        path.write_text(json.dumps({"device": cuda.description, "versions": versions(), "figures": RECORD}, indent=1))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
