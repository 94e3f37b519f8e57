"""``math`` operations: the reference meanings that ``lang.math`` declares, at the types of one IR operation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gridwise.ir.types import Scalar
from gridwise.lang.math import BY_FN

Array = np.ndarray[Any, Any]


def call(fn: str, of: Scalar, to: Scalar) -> Callable[..., Array]:
    """The function on arrays of ``of``, giving arrays of ``to``."""
    reference = BY_FN[fn].reference

    def function(*args: Array) -> Array:
        return np.asarray(reference(*args)).astype(to.dtype, copy=False)

    return function
