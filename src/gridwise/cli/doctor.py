"""``gridwise doctor``: what this machine has, and the fix for what it lacks."""

from __future__ import annotations

import importlib
import importlib.metadata
import json
import platform
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass

import click
from rich.console import Console
from rich.table import Table

# Package, the extra it belongs to ("" if always needed), and what it is for.
PACKAGES = (
    ("numpy", "", "arrays on the host"),
    ("llvmlite", "", "code for the CPU and NVIDIA GPUs"),
    ("ml_dtypes", "", "bf16 and fp8 arrays on the host"),
    ("z3-solver", "", "proofs"),
    ("cuda-bindings", "cuda", "NVIDIA GPUs through their driver"),
    ("wgpu", "webgpu", "every other GPU: Vulkan, Metal, DX12"),
)


@dataclass
class Finding:
    """One line of the diagnosis. ``state``: ok, absent (optional, not there) or broken (needed, or failing)."""

    subject: str
    state: str
    found: str
    fix: str = ""


def _python() -> Finding:
    found = f"{platform.python_implementation()} {platform.python_version()}, {platform.system()} {platform.machine()}"
    if sys.implementation.name != "cpython" or sys.version_info < (3, 11):
        return Finding("Python", "broken", found, "use CPython 3.11 or later")
    return Finding("Python", "ok", found)


def _packages() -> Iterator[Finding]:
    for name, extra, purpose in PACKAGES:
        try:
            yield Finding(name, "ok", importlib.metadata.version(name))
        except importlib.metadata.PackageNotFoundError:
            fix = f"pip install 'gridwise[{extra}]'" if extra else f"pip install {name}"
            yield Finding(name, "absent" if extra else "broken", f"not installed ({purpose})", fix)


def _first_line(error: Exception) -> tuple[str, str]:
    """An error's message, and the help in it."""
    lines = [line.strip() for line in str(error).splitlines()]
    fixes = [line.removeprefix("help:").strip() for line in lines if line.startswith("help:")]
    return lines[0] if lines else type(error).__name__, fixes[0] if fixes else ""


def _devices() -> Iterator[Finding]:
    from gridwise.devices import registry
    from gridwise.lang.errors import GridwiseError

    for module, name in (("cpu", "cpu"), ("cuda", "cuda"), ("webgpu", "webgpu"), ("check", "check")):
        needed = name in ("cpu", "check")
        found: list[str] = importlib.import_module(f"gridwise.devices.{module}").find()
        if not found:
            try:
                registry.device(name)
                why, fix = "not found", ""
            except GridwiseError as e:
                why, fix = _first_line(e)
            yield Finding(f"device {name}", "broken" if needed else "absent", why, fix)
        for each in found:
            try:
                yield Finding(f"device {each}", "ok", registry.device(each).description)
            except GridwiseError as e:
                why, fix = _first_line(e)
                yield Finding(f"device {each}", "broken", why, fix)


def findings() -> list[Finding]:
    """Everything that ``gridwise doctor`` prints."""
    return [_python(), *_packages(), *_devices()]


@click.command("doctor")
@click.option("--json", "as_json", is_flag=True, help="Print the findings as JSON.")
def command(as_json: bool) -> None:
    """Python, packages, drivers and devices: each finding with its fix.

    Exits with 1 if something needed is missing or a device fails; what is merely absent is no failure.
    """
    found = findings()
    if as_json:
        click.echo(json.dumps([asdict(f) for f in found], indent=2))
    else:
        table = Table("", "subject", "found", "fix")
        marks = {"ok": "[green]ok[/]", "absent": "[yellow]absent[/]", "broken": "[red]broken[/]"}
        for f in found:
            table.add_row(marks[f.state], f.subject, f.found, f.fix)
        Console().print(table)
    sys.exit(1 if any(f.state == "broken" for f in found) else 0)
