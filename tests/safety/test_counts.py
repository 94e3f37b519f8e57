"""How the checks of the standard kernels are settled: frozen, so that a proof that is lost is seen."""

from __future__ import annotations

import importlib.util
from collections import Counter
from pathlib import Path

import pytest
from catalogue import PROGRAMS, load
from harness import judge

from gridwise.analysis import bounds
from gridwise.launch.prove import prove

list(load())
COUNTS = {  # proved, left to the launch, before a loop, in place
    "tree": (8, 0, 0, 0),
    "scan_two_buffers": (8, 0, 0, 0),
    "transpose": (4, 0, 0, 0),
    "product_after_load": (7, 0, 0, 0),
    "histogram_read": (5, 0, 0, 0),
    "halo": (10, 0, 0, 0),
    "bitonic": (10, 0, 0, 0),
    "block_sum": (6, 0, 0, 0),
    "local_for_global": (2, 0, 0, 0),
    "run_of_four": (2, 0, 0, 0),
    "stride_of_the_grid": (1, 0, 0, 0),
    "stride_of_a_block": (1, 0, 0, 0),
    "exchange": (4, 0, 0, 0),
    "flat_rows": (1, 0, 0, 0),
    "red_black": (6, 0, 0, 0),
    "chunk": (1, 0, 0, 0),
    "columns": (1, 0, 0, 0),
    "reversed_in_place": (5, 0, 0, 0),
    "permuted": (2, 0, 0, 0),
    "butterfly": (0, 0, 0, 4),  # bits: proved apart, but not in range
    "up_sweep": (5, 0, 0, 3),  # products of two names of the loop
    "sparse_sums": (3, 0, 1, 0),
    "sparse_product": (3, 0, 1, 1),  # x[columns[k]]
    "window_back": (2, 0, 1, 0),
    "downwards": (2, 0, 1, 0),
    "pairs": (2, 0, 2, 0),
}
EXAMPLES = {
    "vecadd.vecadd": (1, 2, 0, 0),
    "saxpy.saxpy": (3, 0, 0, 0),
    "bitonic_sort.compare_exchange": (4, 0, 0, 0),
    "mandelbrot.mandelbrot": (1, 0, 0, 0),
}


def counted(how: Counter[str]) -> tuple[int, int, int, int]:
    return how["proved"], how["launch"], how["hoisted"], how["inplace"]


@pytest.mark.parametrize("name", COUNTS)
def test_standard_kernels(name: str) -> None:
    assert counted(Counter(c.how for c in judge(PROGRAMS[name], bad=False).checks)) == COUNTS[name]


@pytest.mark.parametrize("name", EXAMPLES)
def test_examples(name: str) -> None:
    module, kernel = name.split(".")
    file = Path(__file__).parents[2] / "examples" / f"{module}.py"
    spec = importlib.util.spec_from_file_location(module, file)
    assert spec is not None and spec.loader is not None
    loaded = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    verdict = prove(getattr(loaded, kernel))
    assert verdict.error is None
    assert counted(Counter(verdict.counts())) == EXAMPLES[name]


def test_without_hoisting(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is hoisted is what would else be checked in place; nothing else changes."""
    monkeypatch.setattr(bounds, "hoistable", lambda kernel: {})
    for name, (proved, launch, hoisted, inplace) in COUNTS.items():
        checks = judge(PROGRAMS[name], bad=False).checks
        assert counted(Counter(c.how for c in checks)) == (proved, launch, 0, hoisted + inplace)
