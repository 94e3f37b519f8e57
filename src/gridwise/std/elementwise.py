"""``map``: apply a scalar function to every element, in one launch.

    map(lambda x, y: x * x + y, a, b, out=c)

The function is compiled into the kernel: any function of the language, with the constants that it captures. Arrays
are of one shape; element types may differ, and the function's result must become the output's without narrowing.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any, TypeVar

import gridwise as gw
from gridwise import DisjointSlice, Slice, thread

from .shapes import flat

A = TypeVar("A")
B = TypeVar("B")
C = TypeVar("C")
D = TypeVar("D")
R = TypeVar("R")


def _one(f: Callable[..., Any]) -> Any:
    @gw.kernel
    def mapped(a: Slice[A], out: DisjointSlice[R]) -> None:
        i = thread.index_1d()
        if i in out:
            out[i] = f(a[i])

    return mapped


def _two(f: Callable[..., Any]) -> Any:
    @gw.kernel
    def mapped(a: Slice[A], b: Slice[B], out: DisjointSlice[R]) -> None:
        i = thread.index_1d()
        if i in out:
            out[i] = f(a[i], b[i])

    return mapped


def _three(f: Callable[..., Any]) -> Any:
    @gw.kernel
    def mapped(a: Slice[A], b: Slice[B], c: Slice[C], out: DisjointSlice[R]) -> None:
        i = thread.index_1d()
        if i in out:
            out[i] = f(a[i], b[i], c[i])

    return mapped


def _four(f: Callable[..., Any]) -> Any:
    @gw.kernel
    def mapped(a: Slice[A], b: Slice[B], c: Slice[C], d: Slice[D], out: DisjointSlice[R]) -> None:
        i = thread.index_1d()
        if i in out:
            out[i] = f(a[i], b[i], c[i], d[i])

    return mapped


_MAKERS = {1: _one, 2: _two, 3: _three, 4: _four}


@lru_cache(maxsize=256)
def _kernel(f: Callable[..., Any], arrays: int) -> Any:
    return _MAKERS[arrays](f)


def map(f: Callable[..., Any], *arrays: Any, out: Any) -> None:
    """``out[i] = f(a[i], b[i], ...)`` for one to four arrays of ``out``'s shape.

    Raises LaunchValueError for shapes that differ, and KernelTypeError where the function does not fit the types.
    """
    if len(arrays) not in _MAKERS:
        raise gw.LaunchValueError(f"map takes 1 to 4 arrays, not {len(arrays)}")
    for n, a in enumerate(arrays):
        if tuple(a.shape) != tuple(out.shape):
            raise gw.LaunchValueError(f"map: array {n} has shape {tuple(a.shape)}, and out has {tuple(out.shape)}")
    _kernel(f, len(arrays))(*(flat(a, f"map: array {n}") for n, a in enumerate(arrays)), flat(out, "map: out"))
