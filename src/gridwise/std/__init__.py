"""The standard library: written in the language, so that it runs on every device and reads as an example.

Nothing is imported before it is used: ``from gridwise.std import argmax, random`` loads two modules.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from . import random, segmented
    from .elementwise import map
    from .search import argmax, argmin, topk

# Where each public name is; None for a module of that name.
_HOMES: dict[str, str | None] = {
    "argmax": "search",
    "argmin": "search",
    "map": "elementwise",
    "random": None,
    "segmented": None,
    "topk": "search",
}

__all__ = ["argmax", "argmin", "map", "random", "segmented", "topk"]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'gridwise.std' has no attribute {name!r}")
    home = _HOMES[name]
    if home is None:
        return importlib.import_module(f"gridwise.std.{name}")
    return getattr(importlib.import_module(f"gridwise.std.{home}"), name)


def __dir__() -> list[str]:
    return sorted(_HOMES)
