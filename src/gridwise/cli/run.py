"""``gridwise run``."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from gridwise.devices import registry

from .script import run_script


@click.command("run", context_settings={"ignore_unknown_options": True})
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.argument("args", nargs=-1, type=click.UNPROCESSED)
@click.option("--device", "name", metavar="NAME", help="cpu, cuda, cuda:1, vulkan, metal, dx12, webgpu or check.")
@click.option("--all-devices", is_flag=True, help="Run once on each device of this machine.")
def command(file: Path, args: tuple[str, ...], name: str | None, all_devices: bool) -> None:
    """Run FILE with ARGS as a script.

    In it, gw.device() is the chosen device, and kernels called with NumPy arrays run there too.
    Exits with the script's status; with --all-devices, with 1 if any run failed.
    """
    if name and all_devices:
        raise click.UsageError("--device and --all-devices exclude each other")
    if not all_devices:
        with registry.default_device(name or registry.chosen() or "auto"):
            sys.exit(run_script(file, args))
    failed = []
    for each in registry.names():
        click.secho(f"== {each}", bold=True)
        sys.stdout.flush()
        with registry.default_device(each):
            if run_script(file, args):
                failed.append(each)
    if failed:
        click.echo(f"failed on {', '.join(failed)}", err=True)
        sys.exit(1)
