"""Callables whose calls machine code takes over once it is clear what they are called with."""

from __future__ import annotations

import threading
import types
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

if TYPE_CHECKING:
    from gridwise.devices.base import Device, Module, Stream

    from .bind import Bound
    from .grid import XYZ
    from .launcher import Launcher
    from .specialise import Loaded


class Replaceable:
    """An object whose ``__call__`` may be replaced by machine code: each has a class of its own for that.

    Looking up ``__call__`` finds the newest function there; what it does not recognise goes to the one before, and
    at last to the method in Python. Code is made beside the calls, in a thread, so that none of them waits for it.
    """

    MOST: ClassVar[int] = 4  # functions one object gets: after that its calls are too different from each other
    AFTER: ClassVar[int] = 16  # launches of one kind before code is made for it: fewer are not worth its time
    _lock: ClassVar[threading.Lock] = threading.Lock()

    def __new__(cls, *args: Any, **named: Any) -> Any:
        return object.__new__(type(cls.__name__, (cls,), {"__doc__": cls.__doc__, "__module__": cls.__module__}))

    def offer(
        self, launcher: Launcher, loaded: Loaded, module: Module, values: Sequence[Any], bounds: Sequence[Bound],
        device: Device, grid: XYZ | None, block: XYZ, stream: Stream | None,
    ) -> None:  # fmt: skip
        """A launch went the way through Python: later ones like it need not."""
        seen: dict[Any, int] = self.__dict__.setdefault("_seen", {})
        key = (loaded, grid, stream, *[b.trait for b in bounds])
        seen[key] = count = seen.get(key, 0) + 1
        if count != self.AFTER or sum(n >= self.AFTER for n in seen.values()) > self.MOST:
            return
        work = (launcher, loaded, module, values, bounds, device, grid, block, stream)
        thread = threading.Thread(target=self._replace, args=work, name=f"gridwise: launcher of {launcher.name}")
        self.__dict__.setdefault("_making", []).append(thread)
        thread.start()

    def _replace(self, *work: Any) -> None:
        from .quick import build

        own = type(self)
        with self._lock:
            slow = own.__dict__.get("__call__") or types.MethodType(own.__call__, self)
            made = build(*(*work, slow))
            if made is not None:
                own.__call__ = made  # type: ignore[method-assign]
        self.__dict__["_making"].remove(threading.current_thread())

    def settle(self) -> None:
        """Wait until code that is being made is in place. For tests and benchmarks."""
        for thread in list(self.__dict__.get("_making", ())):
            thread.join()
