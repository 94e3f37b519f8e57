"""Loads the compiler while a device starts, so that the first launch does not wait for it.

Opening a GPU spends its time inside the driver, without Python's lock; importing the compiler and starting LLVM
takes about as long as that. A thread does it meanwhile. Nothing depends on it: what a launch needs and does not find
loaded yet, it loads, or waits for.
"""

from __future__ import annotations

import importlib
import threading
from collections.abc import Callable

MODULES = ("gridwise.frontend", "gridwise.passes.pipeline", "gridwise.passes.vectorise")


def start(*modules: str, then: Callable[[], object]) -> None:
    """Import the compiler and ``modules``, then call ``then``, in a thread. Errors are left to the first launch."""

    def work() -> None:
        try:
            for name in (*MODULES, *modules):
                importlib.import_module(name)
            then()
        except Exception:  # it would only be raised again, with the user's call in the traceback
            pass

    threading.Thread(target=work, name="gridwise: loading the compiler").start()
