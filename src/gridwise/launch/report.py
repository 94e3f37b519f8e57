"""Launch errors: each names the caller's line, the parameter, what was expected and what to write instead."""

from __future__ import annotations

import itertools
import os
import sys
from typing import NoReturn

from gridwise.lang.errors import LaunchError, LaunchTypeError, LaunchValueError, Loc, report

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep


def caller() -> Loc | None:
    """The place in the user's program that called into this package: the innermost frame outside it."""
    frame = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        if frame.f_back is None:
            return None
        frame = frame.f_back
    positions = next(itertools.islice(frame.f_code.co_positions(), frame.f_lasti // 2, None), None)
    if positions is None or positions[0] is None:
        return Loc(frame.f_code.co_filename, frame.f_lineno or 1)
    line, end_line, col, end_col = positions
    assert line is not None
    if col is None or end_col is None:
        return Loc(frame.f_code.co_filename, line)
    where = Loc(frame.f_code.co_filename, line, col, end_col if end_line == line else col)
    if not where.source().isascii():  # columns of code objects count UTF-8 bytes
        data = where.source().encode()
        col, end = len(data[:col].decode(errors="ignore")), len(data[:end_col].decode(errors="ignore"))
        where = Loc(where.file, line, col, end if end_line == line else col)
    return where


def refuse(kind: type[LaunchError], message: str, hint: str | None = None) -> NoReturn:
    """Raise a launch error at the user's line."""
    raise kind(report(message, caller(), hint))


def bad_type(message: str, hint: str | None = None) -> NoReturn:
    refuse(LaunchTypeError, message, hint)


def bad_value(message: str, hint: str | None = None) -> NoReturn:
    refuse(LaunchValueError, message, hint)
