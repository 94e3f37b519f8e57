"""``kernel.python(...)``: the same function as plain Python, one thread after the other, for pdb and for teaching.

Threads of a block that meet at barriers run in turns: each up to its next barrier, in order, so a run is
deterministic. Arrays are the caller's NumPy arrays, seen through a view in which ``i in c`` asks for an index.
"""

from __future__ import annotations

import itertools
import threading
import types
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from gridwise.frontend import types as ty
from gridwise.ir.types import I64
from gridwise.lang import memory, thread
from gridwise.lang.plain import PlainArray
from gridwise.lang.types import ScalarType, convert

from .bind import ARRAYS
from .grid import XYZ, block_size, grid_size
from .report import bad_type

if TYPE_CHECKING:
    from .kernel import Kernel


def _value(elem: Any, value: Any) -> Any:
    """A by-value argument as the body sees it."""
    if isinstance(elem, ScalarType):
        return convert(value, elem)
    resolved = ty.resolve(elem, I64) if isinstance(elem, type) else None
    if isinstance(resolved, ty.ScalarTy) and resolved.form == "enum":
        return elem(value)
    return value


def _uses_barrier(fn: types.FunctionType, seen: set[Any]) -> bool:
    """Whether the function, or one that it names, has a barrier."""
    if fn in seen:
        return False
    seen.add(fn)
    codes = [fn.__code__]
    while codes:
        code = codes.pop()
        codes += [c for c in code.co_consts if isinstance(c, types.CodeType)]
        for name in code.co_names:
            if name == "barrier":
                return True
            other = fn.__globals__.get(name)
            other = getattr(other, "fn", other)
            if other is memory.barrier:
                return True
            ours = isinstance(other, types.FunctionType) and other.__module__.startswith("gridwise.lang")
            if isinstance(other, types.FunctionType) and not ours and _uses_barrier(other, seen):
                return True
    return False


class _Turns:
    """Runs the threads of a block in turns, each up to its next barrier."""

    def __init__(self) -> None:
        self.back = threading.Semaphore(0)
        self.turns: dict[int, threading.Semaphore] = {}
        self.alive: list[threading.Semaphore] = []
        self.error: BaseException | None = None

    def wait(self) -> None:
        mine = self.turns[threading.get_ident()]
        self.back.release()
        mine.acquire()
        if self.error is not None:
            raise SystemExit  # another thread failed: this one ends quietly

    def run(self, bodies: list[Callable[[], None]]) -> None:
        def start(body: Callable[[], None], turn: threading.Semaphore) -> None:
            self.turns[threading.get_ident()] = turn
            turn.acquire()
            try:
                if self.error is None:
                    body()
            except SystemExit:
                pass
            except BaseException as e:
                self.error = self.error or e
            finally:
                self.alive.remove(turn)
                self.back.release()

        for body in bodies:
            turn = threading.Semaphore(0)
            self.alive.append(turn)
            threading.Thread(target=start, args=(body, turn), daemon=True).start()
        while self.alive:
            for turn in list(self.alive):
                turn.release()
                self.back.acquire()
        if self.error is not None:
            raise self.error


def _xyz(size: XYZ) -> list[XYZ]:
    """Every position in a block or grid, x fastest."""
    return [(x, y, z) for z, y, x in itertools.product(*(range(n) for n in reversed(size)))]


def run(kernel: Kernel, args: tuple[Any, ...], named: dict[str, Any], grid: Any, block: Any) -> Callable[[], None]:
    """Bind the arguments as a launch would; the result runs the threads."""
    launcher = kernel.launcher
    values = launcher.positional(args, named)
    bounds = launcher.bind(values)
    for n in launcher.arrays:
        if not isinstance(values[n], np.ndarray):
            bad_type(f"{kernel.name}.python: argument '{launcher.specs[n].name}' must be a NumPy array")
    launcher.contract(values, bounds)
    blocks = kernel.block if block is None else block_size(kernel.name, block, kernel.domain)
    grids = launcher.grid(bounds, blocks) if grid is None else grid_size(kernel.name, grid, kernel.domain)
    inside = []
    for spec, value in zip(launcher.specs, values, strict=True):
        if spec.kind in ARRAYS:
            view = PlainArray.over(value, None if isinstance(spec.elem, TypeVar) else spec.elem)
            view.flags.writeable = spec.kind != "slice"
            inside.append(view)
        else:
            inside.append(value if spec.kind == "const" else _value(spec.elem, value))
    fn = kernel.fn
    assert isinstance(fn, types.FunctionType)
    together = _uses_barrier(fn, set())

    def one(at: thread.Identity, group: memory.Block) -> None:
        with thread.running_as(at), memory.running_in(group), np.errstate(all="ignore"):
            fn(*inside)

    def launch() -> None:
        for b in _xyz(grids):
            places = [thread.Identity(t, b, blocks, grids) for t in _xyz(blocks)]
            if together:
                turns = _Turns()
                group = memory.Block(turns.wait)
                turns.run([lambda at=at, group=group: one(at, group) for at in places])  # type: ignore[misc]
            else:
                for at in places:
                    one(at, memory.Block(lambda: None))

    return launch
