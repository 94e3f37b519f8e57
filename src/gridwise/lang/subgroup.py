"""``gridwise.subgroup``: consecutive threads of a block that exchange values without memory (``Cap.SUBGROUP``).

A subgroup has ``size()`` threads: 32 on NVIDIA, 4 to 128 elsewhere. A block whose size is no multiple of it ends in
a shorter one. All operations stand in uniform control flow. Lanes that do not exist take no part; a shuffle from
such a lane gives the thread its own value.

Outside a kernel, and in plain-Python runs, a subgroup has one thread.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .operation import Operation
from .records import dataclass

OPS: dict[str, Operation] = {}  # by the name written in a program


@dataclass(frozen=True, eq=False)
class Choice:
    """Several operations under one name; the last argument, a constant string, chooses."""

    name: str
    operations: dict[str, Operation]
    default: str
    doc: str

    def __call__(self, value: Any, op: str = "") -> Any:
        return self.choose(op or self.default)(value)

    def choose(self, op: str) -> Operation:
        """The operation of that name; ValueError lists the names."""
        if op not in self.operations:
            raise ValueError(f"subgroup.{self.name} takes one of {', '.join(map(repr, self.operations))}, not {op!r}")
        return self.operations[op]


def _declare(name: str, signature: str, types: str, reference: Callable[..., Any], doc: str) -> Operation:
    OPS[name] = Operation(name, "subgroup", signature, types, reference, name, doc)
    return OPS[name]


def _own(value: Any, *_: Any) -> Any:
    return value


# ---- who and how many ----------------------------------------------------------------------------
size = _declare("size", "->X", "any", lambda: 1, "Threads of a subgroup on this device.")
lane = _declare("lane", "->X", "any", lambda: 0, "The thread's place in its subgroup.")

# ---- shuffles: T is any scalar type, the lane an i32 -----------------------------------------------
shuffle = _declare("shuffle", "TI->T", "any", _own, "shuffle(value, lane): the value of that lane.")
shuffle_xor = _declare("shuffle_xor", "TI->T", "any", _own, "shuffle_xor(value, mask): of the lane own ^ mask.")
shuffle_up = _declare("shuffle_up", "TI->T", "any", _own, "shuffle_up(value, n): of the lane n below.")
shuffle_down = _declare("shuffle_down", "TI->T", "any", _own, "shuffle_down(value, n): of the lane n above.")
broadcast = _declare("broadcast", "TI->T", "any", _own, "broadcast(value, lane): that lane's value; lane is uniform.")

# ---- votes -------------------------------------------------------------------------------------------
ballot = _declare(
    "ballot",
    "B->U",
    "any",
    lambda condition: np.uint32(bool(condition)),
    "A u32 with a bit for each lane where the condition holds, lane 0 lowest; lanes from 32 up are left out.",
)
any = _declare("any", "B->B", "any", bool, "Whether the condition holds in some lane.")
all = _declare("all", "B->B", "any", bool, "Whether the condition holds in every lane.")

# ---- reductions and scans: the result is the same in every lane; float sums in an unspecified order -------
_REDUCTIONS = {
    "add": ("number", "sum"),
    "mul": ("number", "product"),
    "min": ("number", "smallest"),
    "max": ("number", "largest"),
    "and": ("int", "bitwise and"),
    "or": ("int", "bitwise or"),
    "xor": ("int", "bitwise exclusive or"),
}
for _op, (_types, _word) in _REDUCTIONS.items():
    _declare(f"reduce_{_op}", "T->T", _types, _own, f"The {_word} over the lanes.")

reduce_add, reduce_mul = OPS["reduce_add"], OPS["reduce_mul"]
reduce_min, reduce_max = OPS["reduce_min"], OPS["reduce_max"]
reduce_and, reduce_or, reduce_xor = OPS["reduce_and"], OPS["reduce_or"], OPS["reduce_xor"]
reduce = Choice(
    "reduce",
    {op: OPS[f"reduce_{op}"] for op in _REDUCTIONS},
    "add",
    'reduce(value, "add"): the lanes combined by add, mul, min, max, and, or, xor.',
)

scan_add = _declare("scan_add", "T->T", "number", _own, "The sum over the lanes up to and including the own.")
scan_exclusive_add = _declare(
    "scan_exclusive_add",
    "T->T",
    "number",
    lambda value: type(value)(0),
    "The sum over the lanes below the own; 0 in lane 0.",
)
scan = Choice(
    "scan",
    {"add": scan_add, "exclusive_add": scan_exclusive_add},
    "add",
    'scan(value): running sums, inclusive; scan(value, "exclusive_add") leaves the own lane out.',
)
