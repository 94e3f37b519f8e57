"""Specialisations: a kernel compiled for the types, constants, block and capabilities of a launch.

An ``Analysed`` kernel is the IR after every proof, shared by devices of one target. A ``Loaded`` one is on a
device, in up to three versions: fast and vector, fast for views that are not aligned, and checked, which is
compiled only when a launch breaks a relation that the fast ones rely on.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from gridwise.devices.base import Device, Module
from gridwise.frontend import Compiled
from gridwise.frontend.dependencies import Dependencies
from gridwise.ir.core import Kernel
from gridwise.ir.types import extent_limit

from . import cache
from .contract import cover, guard

if TYPE_CHECKING:
    from .kernel import Kernel as Author


class Analysed:
    """The IR of one specialisation, and what it depended on outside its arguments."""

    def __init__(self, kernel: Kernel, dependencies: Dependencies, longest_run: int, name: str | None = None):
        self.kernel, self.dependencies, self.longest_run = kernel, dependencies, longest_run
        self.name = name  # in the disk cache, for the code made of it; None if it is not kept
        # Threads along x, times how far one reaches, stay within what an index can count.
        self.most_threads = extent_limit(kernel.index) // max(longest_run, kernel.reach)
        self.guard = guard(kernel)

    @classmethod
    def of(cls, compiled: Compiled) -> Analysed:
        """Prove, or refuse with a KernelError."""
        from gridwise.passes.pipeline import analyse

        return cls(analyse(compiled.kernel), compiled.dependencies, compiled.longest_run)

    @classmethod
    def cached(cls, author: Author, key: str | None, frontend: Callable[[], Compiled]) -> Analysed:
        """As ``of(frontend())``, from the disk cache if an earlier process did it under this key."""
        found = cache.load_proof(key, author) if key is not None else None
        if found is not None:
            return cls(*found)
        made = cls.of(frontend())
        if key is not None:
            made.name = cache.save_proof(key, author, made.kernel, made.dependencies, made.longest_run)
        return made

    def valid(self) -> bool:
        """Whether captured globals and called functions are still what was compiled (rule 9)."""
        return self.dependencies.valid()


class Loaded:
    """One specialisation on one device; versions are compiled when first needed, each by one thread."""

    def __init__(self, analysed: Analysed, device: Device, aligned: bool):
        self.analysed, self.device, self.aligned = analysed, device, aligned
        self.kernel = analysed.kernel
        self.guard = analysed.guard
        self.wide = analysed.kernel.index.bits == 64
        self._modules: dict[tuple[bool, bool], Module] = {}
        self._lock = threading.Lock()
        self.fast = self.module(True, aligned)
        self.cover = cover(self.fast.kernel)
        if device.target == "check":  # the interpreter runs the analysed kernel and checks every access
            self.guard = None

    def module(self, trust_launch: bool, vector: bool) -> Module:
        """The version that trusts the launch's relations (or checks them), with or without vector access."""
        if self.device.target == "check":
            trust_launch = vector = False
        made = self._modules.get((trust_launch, vector))
        if made is None:
            with self._lock:
                made = self._modules.get((trust_launch, vector))
                if made is None:
                    made = self._modules[trust_launch, vector] = self._load(trust_launch, vector)
        return made

    def _load(self, trust_launch: bool, vector: bool) -> Module:
        if self.device.target == "check":
            return self.device.load(self.kernel)
        version = f"trust={trust_launch} vector={vector}"
        found = cache.load_code(self.analysed.name, self.device, version)
        if found is not None:
            return found
        from gridwise.passes.pipeline import lower

        lowered = lower(self.kernel, self.device.target, trust_launch=trust_launch, vector=vector)
        module = self.device.load(lowered)
        cache.save_code(self.analysed.name, self.device, version, module)
        return module

    def choose(self, args: Sequence[Any], grid_x: int) -> Module:
        """The version that is right for these arguments."""
        if self.guard is not None and not self.guard(args):
            return self.module(False, False)
        if self.cover is not None and not self.cover(args, grid_x):
            return self.module(True, False)
        return self.fast
