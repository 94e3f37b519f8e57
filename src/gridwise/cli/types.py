"""Types and constants for kernels whose annotations leave them open: ``--with Key=u32 --with BK=64``."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import Any

import click

from gridwise.ir.types import SCALARS

OPTION = click.option(
    "--with",
    "chosen",
    multiple=True,
    metavar="NAME=VALUE",
    help="A type for a type variable (Key=u32), or a value for a Const parameter (BK=64).",
)


def parse(chosen: Sequence[str]) -> dict[str, Any]:
    """``NAME=VALUE`` pairs as scalar types and Python constants."""
    out: dict[str, Any] = {}
    for text in chosen:
        name, equals, value = text.partition("=")
        if not equals:
            raise click.UsageError(f"--with takes NAME=VALUE, not {text!r}")
        if value in SCALARS:
            out[name] = SCALARS[value]
            continue
        try:
            out[name] = ast.literal_eval(value)
        except (ValueError, SyntaxError):
            raise click.UsageError(f"--with {name}: {value!r} is neither a scalar type nor a constant") from None
    return out
