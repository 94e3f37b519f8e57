"""Random programs on every device against the reference device, as many as fit."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import time

import gridwise as gw
from gridwise.devices import registry

from .common import ROOT, SIZE, environment, row


def run(cuda: gw.Device) -> None:
    budget = int(os.environ.get("GRIDWISE_FUZZ_SECONDS", "400"))
    first, last = SIZE["first seed"], SIZE["last seed"]
    workers = ["-n", str(min(14, os.cpu_count() or 1))] if importlib.util.find_spec("xdist") else []
    expect = os.environ.get("GRIDWISE_EXPECT", "cpu,check,cuda")
    begin, ran = time.perf_counter(), 0
    while first + ran < last:
        chunk = min(2000, last - first - ran)
        took = time.perf_counter() - begin
        if ran and took + 1.2 * took / ran * chunk > budget:
            break
        done = subprocess.run(
            [sys.executable, "-m", "pytest", "-q", *workers, "tests/conformance/test_random_programs.py"],
            capture_output=True, text=True, timeout=580, cwd=ROOT,
            env=environment(GRIDWISE_EXPECT=expect, GRIDWISE_FUZZ=str(chunk), GRIDWISE_SEED=str(first + ran)),
        )  # fmt: skip
        if done.returncode:
            print(done.stdout[-6000:], flush=True)
            which = f"programs {first + ran} to {first + ran + chunk}"
            raise AssertionError(f"{which}: {done.stdout.strip().splitlines()[-1:]}")
        ran += chunk
        print(f"      {ran} programs, {time.perf_counter() - begin:.0f} s", flush=True)
    note = f"from {first:,}, {', '.join(n for n in registry.names() if n != 'check')} against check"
    row("random programs", f"{ran:,} agree", f"{note}, {time.perf_counter() - begin:.0f} s", programs=ran)
