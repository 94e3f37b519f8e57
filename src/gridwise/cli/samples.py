"""The example programs: in a checkout under ``examples/``, in an installed package beside the code."""

from __future__ import annotations

import functools
from pathlib import Path
from types import ModuleType

import click

from .script import load

_PLACES = (Path(__file__).parents[1] / "_examples", Path(__file__).parents[3] / "examples")


@functools.cache
def sample(name: str) -> ModuleType:
    """An example, imported."""
    for place in _PLACES:
        if (place / f"{name}.py").is_file():
            return load(place / f"{name}.py")
    raise click.ClickException(f"the example {name}.py is not installed")
