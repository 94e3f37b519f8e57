"""SHA-256 from Python's own module: ``hashlib`` first loads OpenSSL, which takes longer than all there is to digest."""

from __future__ import annotations

import contextlib
import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hashlib import sha256
else:

    def _find() -> Any:
        for name in ("_sha2", "_sha256"):  # of Python 3.12 and later, and of 3.11
            with contextlib.suppress(ImportError):
                return importlib.import_module(name).sha256
        return importlib.import_module("hashlib").sha256  # another interpreter

    sha256 = _find()

__all__ = ["sha256"]
