"""``gridwise.atomic``: read-modify-write of an element that many threads share.

Every operation is ``atomic.fn(array, index, value, *, order="relaxed", scope="device")`` on an ``AtomicSlice`` or a
shared array and returns the element's value before the operation. ``index`` is a number, a tuple of numbers or a
witness. ``order`` is ``relaxed``, ``acquire``, ``release`` or ``acq_rel``; ``scope`` is ``block`` or ``device``: which
threads see the operation as one. Elements are 32-bit integers everywhere; 64-bit integers need ``Cap.ATOMIC_I64``,
f32 needs ``Cap.ATOMIC_F32`` where it is not made of ``compare_exchange``.

Outside a kernel, and in plain-Python runs, the reference changes the NumPy array and returns the old value.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .operation import Operation

ORDERS = ("relaxed", "acquire", "release", "acq_rel")
SCOPES = ("block", "device")

OPS: dict[str, Operation] = {}  # by the name written in a program


def _place(index: Any) -> Any:
    """What NumPy takes as an index: witnesses and tuples of numbers become tuples."""
    return tuple(int(i) for i in index) if isinstance(index, tuple) else int(index)


def _read_modify_write(combine: Callable[..., Any]) -> Callable[..., Any]:
    def reference(array: Any, index: Any, *values: Any, order: str = "relaxed", scope: str = "device") -> Any:
        if order not in ORDERS:
            raise ValueError(f"order is one of {ORDERS}, not {order!r}")
        if scope not in SCOPES:
            raise ValueError(f"scope is one of {SCOPES}, not {scope!r}")
        at = _place(index)
        old = array[at]
        with np.errstate(all="ignore"):
            array[at] = combine(old, *(np.asarray(v).astype(old.dtype)[()] for v in values))
        return old

    return reference


def _extreme(name: str) -> Callable[[Any, Any], Any]:
    """min or max; for floats -0.0 is below 0.0, and a NaN gives way to a number."""

    def combine(old: Any, value: Any) -> Any:
        if value != value:
            return old
        if old != old:
            return value
        if old == value:
            return old if bool(np.signbit(old)) == (name == "min") else value
        return old if (old < value) == (name == "min") else value

    return combine


def _declare(name: str, types: str, combine: Callable[..., Any], doc: str) -> Operation:
    signature = "AXTT->T" if name == "compare_exchange" else "AXT->T"
    fn = name.rstrip("_")
    OPS[name] = Operation(name, "atomic", signature, types, _read_modify_write(combine), fn, doc)
    return OPS[name]


add = _declare("add", "number", lambda old, value: old + value, "Add; integers wrap. Adding 0 reads the element.")
sub = _declare("sub", "number", lambda old, value: old - value, "Subtract; integers wrap.")
min = _declare("min", "number", _extreme("min"), "Keep the smaller; -0.0 is below 0.0, a NaN operand is ignored.")
max = _declare("max", "number", _extreme("max"), "Keep the larger; 0.0 is above -0.0, a NaN operand is ignored.")
and_ = _declare("and_", "int", lambda old, value: old & value, "Bitwise and.")
or_ = _declare("or_", "int", lambda old, value: old | value, "Bitwise or.")
xor = _declare("xor", "int", lambda old, value: old ^ value, "Bitwise exclusive or.")
exchange = _declare("exchange", "number", lambda old, value: value, "Store, and return what was there.")
compare_exchange = _declare(
    "compare_exchange",
    "number",
    lambda old, expected, desired: desired if old.tobytes() == expected.tobytes() else old,
    "compare_exchange(array, index, expected, desired): store desired if the element's bits are those of expected.",
)
