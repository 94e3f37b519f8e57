"""The threads that run CPU kernels: one for each core, the caller being one of them.

A launch hands the same native call to every worker; they share the work through a counter in the arguments, so the
interpreter lock is taken only at the start and the end.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor


def cores() -> int:
    """Cores that this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not on this platform
        return os.cpu_count() or 1


class Pool:
    """Workers, and a scratch memory for each. Made again in a child process after a fork."""

    def __init__(self) -> None:
        self.workers = cores()
        self.executor: ThreadPoolExecutor | None = None
        self.local = threading.local()
        self.lock = threading.Lock()
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._forget)

    def _forget(self) -> None:
        """The threads did not survive the fork."""
        self.executor = None
        self.local = threading.local()
        self.lock = threading.Lock()

    def scratch(self, nbytes: int) -> int:
        """Address of at least ``nbytes`` of this thread's own memory, 64-byte aligned; 0 if none is needed."""
        if nbytes == 0:
            return 0
        size, address = getattr(self.local, "kept", (0, 0))
        if size < nbytes:
            memory = self.local.memory = np.empty(nbytes + 64, np.uint8)
            start = int(memory.ctypes.data)
            address = start + -start % 64
            self.local.kept = nbytes, address
        return address

    def everyone(self, work: Callable[[], None], workers: int) -> None:
        """Run ``work`` on this thread and on up to ``workers - 1`` others at once; returns when all are done."""
        with self.lock:
            if self.executor is None:
                from concurrent.futures import ThreadPoolExecutor  # small launches do without

                self.executor = ThreadPoolExecutor(max(1, self.workers - 1), "gridwise-cpu")
            executor = self.executor
        others = [executor.submit(work) for _ in range(min(workers, self.workers) - 1)]
        try:
            work()
        finally:
            for other in others:
                # One that no thread has picked up has nothing left to do: the counter is past the end.
                if not other.cancel():
                    other.result()
