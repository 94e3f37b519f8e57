"""Which checks can stand before their loop: indices that a loop moves by a constant step.

In ``for k in range(start, stop, step)`` with a constant step, an index is of the form ``c * k + r``: a constant ``c``,
and an ``r`` that the loop leaves alone. All its values are in range if the first one is and the last one is, in exact
arithmetic; ``passes/hoist_checks.py`` writes that test before the loop, and the loop twice, without and with checks.
"""

from __future__ import annotations

from collections.abc import Iterator

from gridwise.ir.core import Kernel, Op, Region, Value
from gridwise.ir.ops import MEMORY, TABLE
from gridwise.ir.types import ArrayType, Scalar
from gridwise.lang.records import dataclass

LONGEST = 200  # operations of a loop that may be written twice
# A barrier must not stand in a branch that differs between threads. Loops would be doubled at every level.
KEPT_WHOLE = frozenset({"barrier", "subgroup", "print", "for", "while"})


@dataclass(frozen=True)
class Loop:
    """A loop whose checks can be hoisted."""

    op: Op
    step: int
    inside: frozenset[Value]  # what its body computes
    changed: frozenset[Value]  # variables that its body sets

    def slope(self, v: Value) -> int | None:
        """``c`` if ``v`` is ``c * k + r`` modulo its width, with an ``r`` that is the same in every iteration."""
        if v is self.op.regions[0].args[0]:
            return 1
        if v not in self.inside:
            return 0
        op = v.op
        assert op is not None
        if op.code == "get":
            return None if op.operands[0] in self.changed else 0
        if not TABLE[op.code].pure or op.regions:
            return None
        slopes = [self.slope(o) for o in op.operands]
        if all(s == 0 for s in slopes):
            return 0
        if None in slopes or v.type != self.op.operands[0].type:
            return None
        return _combined(op, slopes)

    def hoistable(self, access: Op) -> bool:
        """Whether all indices of a load, store or atomic in the body are of that form."""
        array = access.operands[0]
        assert isinstance(array.type, ArrayType)
        if array.type.index != self.op.operands[0].type:
            return False
        return all(self.slope(v) is not None for v in indices(access))


def _combined(op: Op, slopes: list[int | None]) -> int | None:
    """The slope of a sum, a difference, a product or a shift."""
    a = slopes[0]
    assert a is not None
    if op.code == "neg":
        return -a
    if len(slopes) != 2:
        return None
    b = slopes[1]
    assert b is not None
    if op.code == "add":
        return a + b
    if op.code == "sub":
        return a - b
    ka, kb = (constant(v) for v in op.operands)
    if op.code == "mul" and kb is not None:
        return a * kb
    if op.code == "mul" and ka is not None:
        return b * ka
    t = op.operands[0].type
    if op.code == "shl" and kb is not None and isinstance(t, Scalar) and 0 <= kb < t.bits:
        return a << kb
    return None


def constant(v: Value) -> int | None:
    """The number that an integer always is."""
    if v.op is None or v.op.code != "const" or not isinstance(v.type, Scalar) or not v.type.is_int:
        return None
    return int(v.op.attrs["value"])


def indices(access: Op) -> list[Value]:
    """The index operands of a load, store or atomic: the array's axes, then fixed arrays inside the element."""
    t = access.operands[0].type
    assert isinstance(t, ArrayType)
    return access.operands[1 : 1 + t.rank + sum(1 for f in access.attrs.get("field", ()) if f.count)]


def loop(op: Op) -> Loop | None:
    """What there is to know of a loop whose checks can be hoisted."""
    if op.code != "for":
        return None
    step = constant(op.operands[2])
    body = list(op.regions[0].walk())
    if not step or len(body) > LONGEST or any(o.code in KEPT_WHOLE for o in body):
        return None
    return Loop(
        op,
        step,
        frozenset([*op.regions[0].args, *(o.result for o in body if o.result is not None)]),
        frozenset(o.operands[0] for o in body if o.code == "set"),
    )


def hoistable(kernel: Kernel) -> dict[Op, Op]:
    """Every access that can be checked before the loop it is in, with that loop."""

    def below(region: Region) -> Iterator[tuple[Op, Op]]:
        for op in region.ops:
            found = loop(op)
            if found is not None:
                yield from ((o, op) for o in op.regions[0].walk() if o.code in MEMORY and found.hoistable(o))
                continue
            for inner in op.regions:
                yield from below(inner)

    return dict(below(kernel.body))
