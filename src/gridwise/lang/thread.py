"""Who am I: the identity of the running thread, as witnesses and as plain numbers.

``index_1d()``, ``index_2d()``, ``index_3d()`` give a :class:`ThreadIndex`: no other thread of the launch holds the
same one, and it cannot be made from an integer. ``int(i)`` gives the plain number, which has lost that proof.
The last axis of an index is x, the fastest: ``row, col = thread.index_2d()``.

In a plain-Python run these functions read the identity that the run has set with :func:`running_as`.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from .records import dataclass

XYZ = tuple[int, int, int]


@dataclass(frozen=True)
class Identity:
    """One thread of one launch: all triples are (x, y, z)."""

    local: XYZ
    block: XYZ
    block_dim: XYZ
    grid_dim: XYZ

    def global_index(self, axis: int) -> int:
        return self.block[axis] * self.block_dim[axis] + self.local[axis]

    @property
    def local_linear(self) -> int:
        (x, y, z), (width, height, _) = self.local, self.block_dim
        return x + width * (y + height * z)


_current: ContextVar[Identity] = ContextVar("gridwise_thread")


def current() -> Identity:
    """The identity of the running thread; RuntimeError outside a kernel."""
    try:
        return _current.get()
    except LookupError:
        raise RuntimeError(
            "thread.* has a meaning only inside a kernel: launch it, or call kernel.python(...)"
        ) from None


@contextmanager
def running_as(identity: Identity) -> Iterator[None]:
    """Run the body as this thread (plain-Python runs)."""
    token = _current.set(identity)
    try:
        yield
    finally:
        _current.reset(token)


class ThreadIndex(tuple[int, ...]):
    """A witness: the position of this thread in the launch, one number an axis (z, y, x order).

    Unpacks into plain numbers; ``int(i)`` is the number of a one-dimensional index. ``i in c`` asks whether the
    array has such an element. Only ``thread.*`` makes one.
    """

    __slots__ = ()

    def __int__(self) -> int:
        if len(self) != 1:
            raise TypeError("int(i) needs a one-dimensional index: unpack it, row, col = i")
        return self[0]

    def __index__(self) -> int:
        return int(self)

    def __repr__(self) -> str:
        return f"ThreadIndex{tuple(self)}"


def index_1d() -> Any:
    """The thread's index along x."""
    return ThreadIndex((current().global_index(0),))


def index_2d() -> Any:
    """(row, col): the thread's indices along y and x."""
    return ThreadIndex((current().global_index(1), current().global_index(0)))


def index_3d() -> Any:
    """(plane, row, col): the thread's indices along z, y and x."""
    me = current()
    return ThreadIndex((me.global_index(2), me.global_index(1), me.global_index(0)))


def run(n: int) -> Any:
    """The ``n`` consecutive indices that belong to this thread: ``for i in thread.run(4): if i in c: ...``."""
    start = current().global_index(0) * n
    return (ThreadIndex((i,)) for i in range(start, start + n))


def grid_stride(c: Any) -> Any:
    """Every index of the 1-d array ``c`` that falls to this thread when the grid walks over it as often as needed."""
    me = current()
    return (ThreadIndex((i,)) for i in range(me.global_index(0), len(c), me.block_dim[0] * me.grid_dim[0]))


def local_index(axis: int = 0) -> int:
    """Position of the thread in its block along ``axis`` (0 is x)."""
    return current().local[axis]


def local_linear() -> int:
    """Position of the thread in its block, x fastest: x + width * (y + height * z)."""
    return current().local_linear


def block_index(axis: int = 0) -> int:
    """Position of the block in the grid along ``axis``: the same for all threads of a block, distinct across blocks."""
    return current().block[axis]


def global_index(axis: int = 0) -> int:
    """Position of the thread in the whole launch along ``axis``, as a plain number."""
    return current().global_index(axis)


def block_dim(axis: int = 0) -> int:
    """Threads a block along ``axis``; known at compile time."""
    return current().block_dim[axis]


def grid_dim(axis: int = 0) -> int:
    """Blocks in the grid along ``axis``."""
    return current().grid_dim[axis]


def warp_index() -> int:
    """Position of the thread's subgroup in the launch (one-dimensional): distinct across subgroups."""
    me = current()
    return me.global_index(0)  # a plain-Python run has subgroups of one thread
