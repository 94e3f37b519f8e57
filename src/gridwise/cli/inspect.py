"""``gridwise inspect``."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from gridwise.launch import Kernel
from gridwise.launch.inspect import HOME

from .script import kernels, load
from .types import OPTION, parse


def pick(where: str) -> Kernel:
    """The kernel that ``FILE::kernel`` names; FILE alone will do if it has one."""
    file, _, name = where.partition("::")
    path = Path(file)
    if not path.is_file():
        raise click.UsageError(f"there is no file {file}")
    found = kernels(load(path))
    if name in found:
        return found[name]
    if not name and len(found) == 1:
        return next(iter(found.values()))
    if not found:
        raise click.UsageError(f"{file} has no kernel")
    problem = f"{file} has no kernel {name!r}" if name else f"{file} has several kernels"
    raise click.UsageError(f"{problem}: write one of " + ", ".join(f"{file}::{n}" for n in found))


@click.command("inspect")
@click.argument("kernel", metavar="FILE::KERNEL")
@click.option("--stage", default="ir", show_default=True, help="python, ir, simt, llvm, asm, ptx, sass or wgsl.")
@click.option("--device", "name", metavar="NAME", help="Compile for this device; by default one that has the stage.")
@OPTION
def command(kernel: str, stage: str, name: str | None, chosen: tuple[str, ...]) -> None:
    """Print a kernel at a stage of its compilation.

    python: its source. ir: typed and proved. simt: as the target's emitter takes it. Then the target's own.
    """
    text = pick(kernel).inspect(name or HOME.get(stage, "cpu"), stage, choices=parse(chosen))
    sys.stdout.write(text if text.endswith("\n") else text + "\n")
