"""Callables whose calls machine code takes over once it is clear what they are called with."""

from __future__ import annotations

import types
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gridwise.devices.base import Device, Module, Stream

    from .bind import Bound
    from .grid import XYZ
    from .launcher import Launcher
    from .specialise import Loaded


class Replaceable:
    """An object whose ``__call__`` may be replaced by machine code: each has a class of its own for that.

    Looking up ``__call__`` finds the newest function there; what it does not recognise goes to the one before, and
    at last to the method in Python.
    """

    MOST = 4  # functions one object gets: after that its calls are too different from each other
    TWICE = 2  # a launch must be seen so often before code is made for it: a single one is not worth the time

    def __new__(cls, *args: Any, **named: Any) -> Any:
        return object.__new__(type(cls.__name__, (cls,), {"__doc__": cls.__doc__, "__module__": cls.__module__}))

    def offer(
        self, launcher: Launcher, loaded: Loaded, module: Module, values: Sequence[Any], bounds: Sequence[Bound],
        device: Device, grid: XYZ | None, block: XYZ, stream: Stream,
    ) -> None:  # fmt: skip
        """A launch went the way through Python: the next one like it need not."""
        seen: dict[Any, int] = self.__dict__.setdefault("_seen", {})
        key = (loaded, grid, stream, *[b.trait for b in bounds])
        seen[key] = count = seen.get(key, 0) + 1
        if count != self.TWICE or sum(n >= self.TWICE for n in seen.values()) > self.MOST:
            return
        own = type(self)
        slow = own.__dict__.get("__call__") or types.MethodType(own.__call__, self)
        from .quick import build

        made = build(launcher, loaded, module, values, bounds, device, grid, block, stream, slow)
        if made is not None:
            own.__call__ = made  # type: ignore[method-assign]
