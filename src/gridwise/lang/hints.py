"""Small functions of the language that direct the compiler: loop copies, unrolling, the bits of a value."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeVar

import numpy as np

T = TypeVar("T")


def unroll(loop: Iterable[T], factor: int = 0) -> Iterable[T]:
    """``for k in gw.unroll(range(n), 4):`` asks for that many copies of the body; 0 for as many as there are turns."""
    return loop


def static(loop: Iterable[T]) -> Iterable[T]:
    """``for k in gw.static(range(4)):`` compiles the body once a turn, with ``k`` a constant: it may index a tuple."""
    return loop


def bitcast(value: Any, to: Any) -> Any:
    """The same bits as another type of equal width: ``gw.bitcast(x, u32)`` of an f32."""
    source = (
        value if isinstance(value, np.generic) else np.float32(value) if isinstance(value, float) else np.int32(value)
    )
    if source.dtype.itemsize != to.dtype.itemsize:
        raise TypeError(f"bitcast from {source.dtype} to {to.name}: both must be numbers of one width")
    return source.view(to.dtype)
