"""Loads Z3 so that it is not disturbed by another copy of itself.

Mesa's Vulkan drivers are linked with LLVM, and Debian's LLVM with its own, older libz3. Once a Vulkan device has
been opened that copy's C++ symbols are in the global scope, and the one in Python's ``z3`` package would bind to
them and abort. With RTLD_DEEPBIND a library prefers its own symbols, whatever was loaded before.
"""

from __future__ import annotations

import ctypes
import importlib.util
import os
import sys
import threading
from pathlib import Path
from typing import Any

_lock = threading.Lock()


def load() -> Any:
    """The ``z3`` module."""
    with _lock:
        if "z3" not in sys.modules and hasattr(os, "RTLD_DEEPBIND"):
            spec = importlib.util.find_spec("z3")
            if spec is not None and spec.origin is not None:
                folder = Path(spec.origin).parent / "lib"
                # Packages that hold it under a versioned name too open that one.
                for path in sorted(folder.glob("libz3.so.*")) or sorted(folder.glob("libz3.so")):
                    ctypes.CDLL(str(path), mode=os.RTLD_NOW | os.RTLD_DEEPBIND)
        import z3

        return z3
