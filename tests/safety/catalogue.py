"""How a labelled program is written.

A program is one kernel with a compile-time switch ``BAD``: with it the kernel has exactly one fault of the kind that
its label names; without it, the same kernel is repaired. So every function here is two programs, a faulty one and its
twin. ``args`` makes small arguments with which the fault shows when the kernel runs.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import gridwise as gw

RACE, DIVERGENCE, FAULT = "race", "divergence", "fault"


@dataclass(frozen=True)
class Program:
    """One labelled kernel. ``fault`` says how the faulty version must be stopped: refused for a race or a divergent
    barrier, or, for an index or a divisor that data decides, by a fault when it runs."""

    kernel: Any
    kind: str
    fault: str
    args: Callable[[], tuple[Any, ...]]
    grid: Any = None
    refused: str = ""  # why the repaired twin is refused although it is safe, where we know that it is

    @property
    def name(self) -> str:
        return str(self.kernel.name)


PROGRAMS: dict[str, Program] = {}


def program(kind: str, args: Callable[[], tuple[Any, ...]], *, fault: str = RACE, block: Any = 256, domain: int = 1,
            grid: Any = 2, requires: Any = None, refused: str = "") -> Callable[[Any], Any]:
    """Label a kernel. ``kind`` names the fault that ``BAD`` puts in."""

    def make(fn: Any) -> Any:
        extra = {} if requires is None else {"requires": requires}
        kernel = gw.kernel(domain=domain, block=block, **extra)(fn)
        assert fn.__name__ not in PROGRAMS, fn.__name__
        PROGRAMS[fn.__name__] = Program(kernel, kind, fault, args, grid, refused)
        return kernel

    return make


def floats(*shape: int) -> np.ndarray:
    """Distinct numbers, so that what is lost in a race is seen."""
    return np.arange(np.prod(shape), dtype=np.float32).reshape(shape)


def ints(*shape: int) -> np.ndarray:
    return np.arange(np.prod(shape), dtype=np.int32).reshape(shape)


def zeros(*shape: int, dtype: Any = np.float32) -> np.ndarray:
    return np.zeros(shape, dtype)


def load() -> Iterator[Program]:
    """Every labelled program, in the order of the files."""
    for file in sorted((Path(__file__).parent / "programs").glob("*.py")):
        importlib.import_module(f"programs.{file.stem}")
    return iter(PROGRAMS.values())
