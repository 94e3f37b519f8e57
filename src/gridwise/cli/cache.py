"""``gridwise cache``."""

from __future__ import annotations

import time

import click
from rich.console import Console
from rich.table import Table

from gridwise.launch.store import Store, directory, store


def _held() -> Store:
    return store() or Store(directory(), 0)  # what is there can be looked at when the cache is off


@click.group("cache")
def command() -> None:
    """Kernels that earlier runs proved and compiled."""


@command.command("list")
def list_() -> None:
    """Where the cache is, and what it holds."""
    held = _held()
    entries = sorted(held.entries(), key=lambda e: -e.used)
    table = Table("entry", "bytes", "last used")
    for e in entries:
        table.add_row(e.path.name[:16], f"{e.nbytes:,}", time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(e.used)))
    console = Console()
    if entries:
        console.print(table)
    total = sum(e.nbytes for e in entries)
    limit = f" of {held.limit / 2**20:,.0f} MB" if held.limit else " (the cache is off: GRIDWISE_CACHE)"
    console.print(f"{held.root}: {len(entries)} entries, {total / 2**20:.1f} MB{limit}", soft_wrap=True)


@command.command("clear")
def clear() -> None:
    """Remove every entry."""
    held = _held()
    click.echo(f"removed {held.clear()} entries from {held.root}")
