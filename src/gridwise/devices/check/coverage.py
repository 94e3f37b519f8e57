"""Line coverage of kernels, in the data format of coverage.py.

A kernel's body never runs as Python, so that coverage.py sees none of its lines. The check device knows which
of them at least one thread ran; written as a data file, ``coverage combine`` joins them with the rest.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from gridwise.lang.errors import GridwiseError


def write(lines: Mapping[str, set[int]], base: str | Path = ".coverage", branch: bool = False) -> Path:
    """Write ``base.gridwise.<pid>``, a data file that ``coverage combine`` picks up; returns its path.

    ``lines`` maps a source file to the numbers of the lines that ran. ``branch``: the other data files measure
    branches, and coverage.py joins only files of one kind; each line then counts as entered from outside.
    Raises GridwiseError if coverage.py is not installed.
    """
    try:
        from coverage import CoverageData
    except ImportError:
        raise GridwiseError("coverage of kernels is written by coverage.py\n  help: pip install coverage") from None
    path = Path(f"{base}.gridwise.{os.getpid()}").absolute()
    path.unlink(missing_ok=True)
    data = CoverageData(basename=str(path))
    files = {str(Path(file).absolute()): ran for file, ran in lines.items() if Path(file).is_file()}
    if branch:
        data.add_arcs({file: {(-1, n) for n in ran} for file, ran in files.items()})
    else:
        data.add_lines(files)
    data.write()
    return path
