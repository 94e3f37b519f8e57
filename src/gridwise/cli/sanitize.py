"""``gridwise sanitize``."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import click

from .script import run_script


@click.command("sanitize", context_settings={"ignore_unknown_options": True})
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.argument("args", nargs=-1, type=click.UNPROCESSED)
@click.option("--seed", default=0, help="Another order of the threads.")
@click.option("--subgroup-size", default=32, show_default=True, help="Lanes of a subgroup.")
@click.option("--leaks", is_flag=True, help="Report arrays that are still alive at the end.")
@click.option("--coverage", is_flag=True, help="Write the lines of kernels that ran, for 'coverage combine'.")
@click.option("--json", "as_json", is_flag=True, help="Print the findings as JSON.")
def command(
    file: Path, args: tuple[str, ...], seed: int, subgroup_size: int, leaks: bool, coverage: bool, as_json: bool
) -> None:
    """Run FILE with ARGS, every launch on the reference device, and report what goes wrong.

    Finds data races, uninitialised reads, indices out of range, failed asserts and divergent barriers.
    Exits with 1 if it found anything or the script failed.
    """
    from gridwise.devices.check.session import sanitize

    with sanitize(seed=seed, subgroup_size=subgroup_size, leaks=leaks, coverage=coverage) as session:
        status = run_script(file, args)
    if session.device.lines is not None:
        from gridwise.devices.check.coverage import write

        click.echo(f"lines of kernels: {write(session.device.lines).name}", err=True)
    if as_json:
        rows = [{"kind": f.kind, "report": f.report()} for f in session.findings]
        click.echo(json.dumps(rows, indent=2))
    else:
        click.echo(session.report())
    sys.exit(1 if status or session.findings else 0)
