"""Every exception a user can meet, and the short report that each one prints.

A report is at most six lines: what is wrong, where (file, line, column), the source line with a caret,
and what to write instead.
"""

from __future__ import annotations

import linecache
from collections.abc import Sequence
from typing import Any

from .records import dataclass


@dataclass(frozen=True, slots=True)
class Loc:
    """A span of the user's source. ``caller`` is the call that led here when a function was inlined."""

    file: str
    line: int
    col: int = 0  # 0-based, in characters
    end_col: int = 0
    caller: Loc | None = None

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.col + 1}"

    def source(self) -> str:
        return linecache.getline(self.file, self.line).rstrip("\n")


def report(message: str, loc: Loc | None, hint: str | None = None) -> str:
    """The text of an error: message, place, source line, caret, and the fix."""
    lines = [message]
    if loc is not None:
        lines.append(f"  --> {loc}")
        text = loc.source()
        if text.strip():
            indent = len(text) - len(text.lstrip())
            shown, start = text.strip(), max(0, loc.col - indent)
            width = max(1, min(loc.end_col - loc.col if loc.end_col > loc.col else 1, len(shown) - start))
            lines.append(f"  |   {shown}")
            lines.append(f"  |   {' ' * start}{'^' * width}")
        if loc.caller is not None:
            lines.append(f"  called from {loc.caller}")
    if hint:
        lines.append(f"  help: {hint}")
    return "\n".join(lines)


class GridwiseError(Exception):
    """Base of everything this package raises on purpose."""


class KernelError(GridwiseError):
    """A kernel is refused at compile time. ``message``, ``loc`` and ``hint`` make up its report."""

    def __init__(self, message: str, loc: Loc | None = None, hint: str | None = None):
        self.message, self.loc, self.hint = message, loc, hint
        super().__init__(report(message, loc, hint))


class KernelSyntaxError(KernelError, SyntaxError):
    """Python that the language does not have; the hint says what to write instead."""

    def __str__(self) -> str:
        return report(self.message, self.loc, self.hint)


class KernelTypeError(KernelError, TypeError):
    """Types that do not fit: mixed signs, a name that changes its type, a narrowing store."""


class KernelNameError(KernelError, NameError):
    """An unknown name, or one that is not bound on every path."""


class KernelValueError(KernelError, ValueError):
    """A constant out of range: a literal that does not fit its type, a bad shape, a zero step."""


class KernelAttributeError(KernelError, AttributeError):
    """An attribute that the value does not have."""


class RaceError(KernelError):
    """Two threads can touch the same element; the message holds the counterexample."""


class UnprovedError(RaceError):
    """Disjointness could be neither proved nor refuted in the time allowed."""


class DivergenceError(KernelError):
    """A barrier or subgroup operation under control flow that is not uniform."""


class UnsupportedError(KernelError):
    """A target cannot run this kernel; the message names the line and the missing capability."""


class LaunchError(GridwiseError):
    """A launch is refused before the device is touched."""


class LaunchTypeError(LaunchError, TypeError):
    """An argument of the wrong type, dtype, rank or device."""


class LaunchValueError(LaunchError, ValueError):
    """An argument of the wrong shape, a broken contract, a grid or block out of range, overlap."""


class DeviceError(GridwiseError):
    """Something that happened on a device."""


class DeviceUnavailableError(DeviceError, RuntimeError):
    """The device asked for is not on this machine; the message says what is missing."""


class OutOfMemoryError(DeviceError, MemoryError):
    """The device could not allocate; the message gives the size asked for and what is free."""


class DeviceFault(DeviceError):
    """A check failed inside a kernel (rule 7). The device stays usable.

    Attributes: kernel (name), loc, thread (global x, y, z), detail (the sentence about index and length).
    """

    def __init__(self, message: str, *, kernel: str, loc: Loc | None, thread: tuple[int, int, int], detail: str = ""):
        self.kernel, self.loc, self.thread, self.detail = kernel, loc, thread, detail
        super().__init__(report(message, loc))


class DeviceIndexError(DeviceFault, IndexError):
    """An index out of range in a kernel."""


class DeviceZeroDivisionError(DeviceFault, ZeroDivisionError):
    """Integer division or modulo by zero in a kernel."""


class DeviceAssertionError(DeviceFault, AssertionError):
    """A failed ``assert`` in a kernel."""


class SanitizerError(DeviceError):
    """The check device found a race, a read of memory that was never written, or a divergent barrier.

    ``findings`` holds one ``gridwise.devices.check.Finding`` for each place.
    """

    def __init__(self, message: str, findings: Sequence[Any] = ()):
        self.findings = list(findings)
        super().__init__(message)
