"""``gridwise check``."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

from gridwise.launch.prove import Proved, prove

from .script import kernels, load
from .types import OPTION, parse


def _row(proved: Proved) -> dict[str, Any]:
    return {
        "kernel": proved.name,
        "accepted": proved.error is None,
        "error": None if proved.error is None else {"type": type(proved.error).__name__, "report": str(proved.error)},
        "seconds": round(proved.seconds, 6),
        "checks": [
            {
                "access": c.text,
                "line": c.loc.line if c.loc else None,
                "settled": c.how,
                "detail": c.detail,
                "ms": round(c.ms, 3),
            }
            for c in proved.checks
        ],
    }


@click.command("check")
@click.argument("files", nargs=-1, required=True, type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--report", is_flag=True, help="How each access was settled.")
@click.option("--json", "as_json", is_flag=True, help="Print everything as JSON.")
@OPTION
def command(files: tuple[Path, ...], report: bool, as_json: bool, chosen: tuple[str, ...]) -> None:
    """Prove the kernels of FILES free of races, bad indices and divergent barriers.

    Each is compiled for its annotated types; f32 for a type variable unless --with says otherwise.
    Exits with 1 if any is refused.
    """
    console = Console(highlight=False)
    rows, refused = [], False
    for file in files:
        for name, kernel in kernels(load(file)).items():
            proved = prove(kernel, parse(chosen))
            refused = refused or proved.error is not None
            if as_json:
                rows.append({"file": str(file), **_row(proved)})
                continue
            place = f"{file}::{name}"
            if proved.error is not None:
                console.print(Text(f"{place}: refused", style="red"), soft_wrap=True)
                console.print(Text(f"{type(proved.error).__name__}: {proved.error}"), soft_wrap=True)
                continue
            counts = ", ".join(f"{n} {how}" for how, n in proved.counts().items()) or "no access to check"
            verdict = f"{place}: safe ({counts}; {1000 * proved.seconds:.1f} ms)"
            console.print(Text(verdict, style="green"), soft_wrap=True)
            if report and proved.checks:
                table = Table("access", "line", "settled", "by", "ms")
                for c in proved.checks:
                    line = str(c.loc.line) if c.loc else ""
                    table.add_row(Text(c.text), line, c.how, Text(c.detail), f"{c.ms:.2f}")
                console.print(table)
    if as_json:
        click.echo(json.dumps(rows, indent=2))
    sys.exit(1 if refused else 0)
