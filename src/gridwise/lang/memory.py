"""Memory of a block and of a thread, and the barrier that orders a block's accesses.

    tile = gw.shared((32, 33), f32)     one array a block, every element 0 at the start
    acc = gw.local((8,), f32)           one array a thread, every element 0 at the start
    barrier()                           every thread of the block arrives before any goes on

Shapes are compile-time constants; the first extent of a shared array may be 0, which takes it from the launch.
Inside a kernel the frontend recognises these functions. In a plain-Python run they ask the block that the run has
set with :func:`running_in`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from threading import Lock
from typing import Any

import numpy as np

from .plain import zeros
from .records import dataclass, field


@dataclass
class Block:
    """One block of a plain-Python run: its shared arrays, and how its threads wait for each other.

    The n-th ``shared`` of every thread is the same array, since a kernel declares its arrays once.
    ``wait`` blocks the calling thread until all have called it.
    """

    wait: Callable[[], Any]
    arrays: list[np.ndarray[Any, Any]] = field(default_factory=list)
    lock: Lock = field(default_factory=Lock)


@dataclass
class _Member:
    """A thread of a block: how many shared arrays it has declared so far."""

    block: Block
    declared: int = 0


_current: ContextVar[_Member] = ContextVar("gridwise_block")


@contextmanager
def running_in(block: Block) -> Iterator[None]:
    """Run the body as a thread of this block (plain-Python runs)."""
    token = _current.set(_Member(block))
    try:
        yield
    finally:
        _current.reset(token)


def _member(what: str) -> _Member:
    try:
        return _current.get()
    except LookupError:
        message = f"{what} has a meaning only inside a kernel: launch it, or call kernel.python(...)"
        raise RuntimeError(message) from None


def shared(shape: int | tuple[int, ...], elem: Any) -> Any:
    """An array that the threads of a block share, zero at the start of each block.

    ``shape`` is a constant, or a tuple of them; ``elem`` a scalar type or a ``@gw.struct``. Between two barriers no
    element may be touched by two threads unless both read, or both use ``atomic.*``: the compiler proves it.
    """
    me = _member("shared()")
    with me.block.lock:
        if me.declared == len(me.block.arrays):
            me.block.arrays.append(zeros(shape, elem))
    me.declared += 1
    return me.block.arrays[me.declared - 1]


def local(shape: int | tuple[int, ...], elem: Any) -> Any:
    """A fixed array of this thread alone, zero at the start."""
    return zeros(shape, elem)


def barrier() -> None:
    """Wait for every thread of the block; what any of them wrote before is seen by all after.

    It must stand where all threads of a block arrive together: anything else is a ``DivergenceError``.
    """
    _member("barrier()").block.wait()
