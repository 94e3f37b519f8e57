"""``gridwise tune``."""

from __future__ import annotations

import sys
from pathlib import Path

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

from gridwise.launch import Choice, check_choices, export_choices, import_choices, read_choices
from gridwise.launch.choices import kept

from .script import load, tuned

_FILE = click.Path(dir_okay=False, path_type=Path)
_THERE = click.Path(exists=True, dir_okay=False, path_type=Path)


def _config(config: dict[str, object]) -> str:
    return ", ".join(f"{n}={v}" for n, v in config.items())


def _sizes(choice: Choice) -> str:
    return ", ".join(f"{n} {v}" for n, v in choice.sizes.items())


@click.group("tune")
def command() -> None:
    """What kernels under @gw.tune measured and chose."""


@command.command("list")
@click.option("--trials", is_flag=True, help="Every configuration with its time, or why it takes no part.")
def list_(trials: bool) -> None:
    """The choices of the disk cache."""
    console = Console(highlight=False)
    found = kept()
    table = Table("kernel", "device", "sizes", "configuration", "microseconds")
    for choice in found:
        for trial in choice.trials:
            if trials or trial.config == choice.config:
                mark = "* " if trials and trial.config == choice.config else ""
                time = trial.note if trial.seconds is None else f"{trial.seconds * 1e6:.1f}"
                row = (choice.kernel, choice.device, _sizes(choice), mark + _config(trial.config), time)
                table.add_row(*map(Text, row))
    if found:
        console.print(table)
    console.print(f"{len(found)} choices")


@command.command("export")
@click.argument("file", type=_FILE)
@click.option("--kernel", "names", multiple=True, metavar="NAME", help="Only this kernel's; may be repeated.")
def export(file: Path, names: tuple[str, ...]) -> None:
    """Write the choices of the disk cache to FILE, as JSON."""
    count = export_choices(file, [c for c in kept() if not names or c.kernel in names])
    click.echo(f"{file}: {count} choices")


@command.command("import")
@click.argument("file", type=_THERE)
def import_(file: Path) -> None:
    """Put the choices of FILE into the disk cache."""
    click.echo(f"{import_choices(file)} choices from {file}")


@command.command("check")
@click.argument("file", type=_THERE)
@click.argument("scripts", nargs=-1, required=True, type=_THERE)
def check(file: Path, scripts: tuple[Path, ...]) -> None:
    """Hold the choices of FILE against the tuned kernels of SCRIPTS. Needs no device: it compiles, and runs nothing.

    Exits with 1 if one does not fit.
    """
    kernels = {k.name: k for script in scripts for k in tuned(load(script)).values()}
    findings = check_choices(read_choices(file), kernels)
    for one in findings:
        place = f"{one.choice.kernel} on {one.choice.device} ({_sizes(one.choice)}): {_config(one.choice.config)}"
        click.echo(f"{place}: {one.problem or 'fits'}")
    sys.exit(1 if any(one.problem for one in findings) else 0)
