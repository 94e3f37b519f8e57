"""``gridwise list``."""

from __future__ import annotations

from pathlib import Path

import click
from rich.console import Console
from rich.table import Table

from gridwise.devices import registry
from gridwise.lang.errors import GridwiseError
from gridwise.launch.bind import show

from .script import kernels, load


@click.command("list")
@click.argument("files", nargs=-1, type=click.Path(exists=True, dir_okay=False, path_type=Path))
def command(files: tuple[Path, ...]) -> None:
    """The devices of this machine, or the kernels of FILES."""
    console = Console()
    if not files:
        table = Table("device", "what it is", "threads a block", "capabilities")
        for device in registry.all_devices():
            caps = ", ".join(sorted(c.name.lower() for c in device.caps))
            table.add_row(device.name, device.description, str(device.limits.max_threads_per_block), caps)
        console.print(table)
        return
    table = Table("kernel", "parameters", "domain", "block")
    for file in files:
        for name, kernel in kernels(load(file)).items():
            try:
                shown = ", ".join(f"{s.name}: {show(s)}" for s in kernel.signature.params)
            except GridwiseError as e:
                shown = str(e).splitlines()[0]
            block = " x ".join(map(str, kernel.block[: kernel.domain]))
            table.add_row(f"{file}::{name}", shown, str(kernel.domain), block)
    console.print(table)
