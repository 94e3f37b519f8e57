"""Which lines of a kernel ran, as coverage.py counts them."""

from __future__ import annotations

from pathlib import Path

import pytest
from running import Sketch, launch

from gridwise.devices.check import CheckDevice
from gridwise.devices.check.coverage import write
from gridwise.ir import Kernel
from gridwise.ir.types import BOOL, I32
from gridwise.lang.errors import Loc


def branches(file: str) -> Kernel:
    """Line 2: if t < 0: line 3, else line 5; line 6: a loop that breaks at line 7 before line 8; line 9."""
    s = Sketch((8, 1, 1))
    out = s.array("out", I32)
    b = s.b

    def at(line: int) -> None:
        b.loc = Loc(file, line)

    at(2)
    t = b.identity("thread_idx", 0)
    branch = b.if_(b.binary("lt", t, b.const(0, I32)))
    for region, line in zip(branch.regions, (3, 5), strict=True):
        at(line)
        with b.into(region):
            b.store(out, [t], b.const(line, I32))
    at(6)
    loop = b.for_(b.const(0, I32), b.const(3, I32), b.const(1, I32))
    with b.into(loop.regions[0]):
        at(7)
        with b.into(b.if_(b.const(True, BOOL)).regions[0]):
            b.emit("break")
        at(8)
        b.store(out, [t], b.const(0, I32))
    at(9)
    b.store(out, [t], t)
    return s.kernel()




def test_lines_that_some_thread_ran() -> None:
    device = CheckDevice(coverage=True)
    launch(device, branches("k.py"), 1, [device.zeros(8, I32)])
    assert device.lines == {"k.py": {2, 5, 6, 7, 9}}
    assert CheckDevice().lines is None


@pytest.mark.parametrize("branch", [False, True])
def test_data_file_of_coverage(tmp_path: Path, branch: bool) -> None:
    coverage = pytest.importorskip("coverage")
    source = tmp_path / "k.py"
    source.write_text("".join(f"line{n} = {n}\n" for n in range(1, 10)))
    device = CheckDevice(coverage=True)
    launch(device, branches(str(source)), 1, [device.zeros(8, I32)])
    assert device.lines is not None
    path = write(device.lines, tmp_path / ".coverage", branch=branch)
    assert path.name.startswith(".coverage.gridwise.")
    combined = coverage.CoverageData(basename=str(tmp_path / "all"))
    part = coverage.CoverageData(basename=str(path))
    part.read()
    combined.update(part)
    assert combined.has_arcs() == branch
    assert sorted(combined.lines(str(source))) == [2, 5, 6, 7, 9]
