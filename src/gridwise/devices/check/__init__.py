"""The check device: the executable specification of the language, and its sanitizer.

    device.py       the device: memory, streams, launches
    interpret.py, control.py    the IR as steps over NumPy arrays, under masks
    frame.py        what is alive while a batch of blocks runs
    arithmetic.py, conversion.py, functions.py    the meaning of every scalar operation
    memory.py, access.py, atomics.py, subgroups.py    arrays, bounds, read-modify-write, cooperation
    shadow.py, recorder.py, watch.py, findings.py    races, uninitialised reads, divergence; how they are told
    session.py      ``with sanitize(): ...`` for the command line and pytest
    coverage.py     which lines of kernels ran, for coverage.py
"""

from gridwise.lang.errors import SanitizerError

from .device import CheckDevice, find, open
from .findings import Finding
from .session import Session, sanitize

__all__ = ["CheckDevice", "Finding", "SanitizerError", "Session", "find", "open", "sanitize"]
