"""``gridwise``: the command line. One file a verb; this one names them and prints errors as reports."""

from __future__ import annotations

import importlib
import sys
from typing import Any

import click

VERBS = {
    "cache": "List or clear the kernels that earlier runs proved and compiled.",
    "check": "Prove a file's kernels safe, or say where they are not.",
    "demo": "Sort a million keys and draw a picture on every device.",
    "doctor": "What is installed, which devices are found, and how to fix what is missing.",
    "inspect": "Print a kernel at a stage of its compilation.",
    "list": "The devices of this machine, or the kernels of a file.",
    "run": "Run a script on a chosen device, or on each.",
    "sanitize": "Run a script on the reference device and report races, bad reads and faults.",
    "tune": "What tuned kernels chose: list, export, import, check against a program.",
}


class Verbs(click.Group):
    """Loads a verb's file when it is asked for, so that ``--help`` stays quick."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in VERBS:
            return None
        command: click.Command = importlib.import_module(f"gridwise.cli.{cmd_name}").command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Verbs"):
            formatter.write_dl(sorted(VERBS.items()))


@click.group(cls=Verbs, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="gridwise")
def cli() -> None:
    """Memory-safe GPU kernels in typed Python."""


def main(argv: list[str] | None = None) -> Any:
    """Entry point. A user's mistake is printed as its report, and exits with 1; wrong usage exits with 2."""
    from gridwise.lang.errors import GridwiseError

    try:
        return cli.main(args=argv, prog_name="gridwise")
    except GridwiseError as e:
        click.echo(f"{type(e).__name__}: {e}", err=True)
        sys.exit(1)
