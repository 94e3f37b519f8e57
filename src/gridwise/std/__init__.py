"""The standard library: written in the language, so that it runs on every device and reads as an example.

Nothing is imported before it is used: ``from gridwise.std import argmax, random`` loads two modules.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from . import random, segmented
    from .compaction import compact
    from .elementwise import map
    from .histograms import bincount, histogram
    from .products import matmul
    from .radix import radix_sort
    from .reductions import max, min, reduce, sum
    from .scans import cumsum, scan
    from .search import argmax, argmin, topk
    from .sorting import sort
    from .transposition import transpose

# Where each public name is; None for a module of that name.
_HOMES: dict[str, str | None] = {
    "argmax": "search",
    "argmin": "search",
    "bincount": "histograms",
    "compact": "compaction",
    "cumsum": "scans",
    "histogram": "histograms",
    "map": "elementwise",
    "matmul": "products",
    "max": "reductions",
    "min": "reductions",
    "radix_sort": "radix",
    "random": None,
    "reduce": "reductions",
    "scan": "scans",
    "segmented": None,
    "sort": "sorting",
    "sum": "reductions",
    "topk": "search",
    "transpose": "transposition",
}

__all__ = [
    "argmax",
    "argmin",
    "bincount",
    "compact",
    "cumsum",
    "histogram",
    "map",
    "matmul",
    "max",
    "min",
    "radix_sort",
    "random",
    "reduce",
    "scan",
    "segmented",
    "sort",
    "sum",
    "topk",
    "transpose",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'gridwise.std' has no attribute {name!r}")
    home = _HOMES[name]
    if home is None:
        return importlib.import_module(f"gridwise.std.{name}")
    return getattr(importlib.import_module(f"gridwise.std.{home}"), name)


def __dir__() -> list[str]:
    return sorted(_HOMES)
