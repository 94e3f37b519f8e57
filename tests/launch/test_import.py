"""``import gridwise`` is light: what compiles, proves or drives a GPU is loaded when it is first needed."""

import subprocess
import sys

HEAVY = ("z3", "llvmlite", "wgpu", "cuda", "rich", "click", "ml_dtypes", "torch")
HEAVY += ("gridwise.frontend", "gridwise.passes")

CODE = """
import sys, time
start = time.perf_counter()
import numpy
middle = time.perf_counter()
import gridwise
end = time.perf_counter()
print(middle - start, end - middle, *[m for m in {heavy!r} if m in sys.modules])
"""


def _import() -> list[str]:
    code = CODE.format(heavy=HEAVY)
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()


def test_nothing_heavy_is_imported():
    assert _import()[2:] == []


def test_import_costs_no_more_than_numpys(tmp_path, monkeypatch):
    monkeypatch.delenv("PYTHONDONTWRITEBYTECODE", raising=False)
    monkeypatch.setenv("PYTHONPYCACHEPREFIX", str(tmp_path))  # so that byte code is written, as in an installation
    runs = [[float(t) for t in _import()[:2]] for _ in range(6)]
    numpy, gridwise = (min(times) for times in zip(*runs[1:], strict=True))
    assert gridwise < numpy, runs
