"""Moves checks out of loops: one test before the loop, and the loop twice, without and with its checks.

``analysis/hoisting.py`` says which indices are ``c * k + r``. Of them the first value, at ``start``, and the distance
to the last one are known before the loop. No bit is lost: with ``n`` the extent, the first index must be in
``[0, n)``, and the distance that the index goes, as an unsigned number, must fit into what is left on that side.
Where the test fails nothing is wrong yet: the loop with its checks finds out which iteration faults, if any does.
"""

from __future__ import annotations

from gridwise.analysis.hoisting import Loop, loop
from gridwise.ir import Builder, Kernel, Op, Region, Value, ops
from gridwise.ir.rewrite import clone_region
from gridwise.ir.types import Scalar

from .lower_checks import UNSIGNED_OF, extents


def hoist_checks(kernel: Kernel, alike: bool = False) -> None:
    """Rewrite in place the loops with accesses whose check is ``hoisted``; ``lower_checks`` does the others in place.

    ``alike``: only loops that every thread of a block makes for the same turns. On a CPU the lanes of a gang share a
    loop, and where they leave it at different turns it is masked anyway: there the check is a part of the mask, and
    a second loop costs more.
    """
    if any(op.attrs.get("check") == "hoisted" for op in kernel.walk()) and not kernel.unchecked:
        _region(kernel, kernel.body, alike)


def _alike(kernel: Kernel, v: Value) -> bool:
    """Whether a value plainly is the same for all threads of a block."""
    if v.op is None:
        return any(v is p.value for p in kernel.params)
    pure = ops.TABLE[v.op.code].pure and v.op.code not in ("thread_idx", "global_idx")
    return pure and all(_alike(kernel, o) for o in v.op.operands)


def _region(kernel: Kernel, region: Region, alike: bool) -> None:
    old, region.ops = region.ops, []
    for op in old:
        hoisted = [o for o in op.regions[0].walk() if o.attrs.get("check") == "hoisted"] if op.code == "for" else []
        found = loop(op) if hoisted else None
        if found is None or (alike and not all(_alike(kernel, v) for v in op.operands)):
            region.ops.append(op)
            for inner in op.regions:
                _region(kernel, inner, alike)
            continue
        b = Builder(region, kernel.index, op.loc)
        _twice(b, found, [o for o in hoisted if found.hoistable(o)])


def _twice(b: Builder, found: Loop, hoisted: list[Op]) -> None:
    before = _Before(b, found)
    tests: dict[tuple[Value, Value], Value] = {}
    for access in hoisted:
        b.loc = access.loc
        for index, extent, _, _ in extents(access, b, ""):
            key = (index, extent)
            if key not in tests:
                tests[key] = before.in_range(index, extent)
    b.loc = found.op.loc
    all_good = None
    for test in tests.values():
        all_good = test if all_good is None else b.binary("and", all_good, test)
    assert all_good is not None
    branch = b.if_(all_good)
    for region, how in zip(branch.regions, ("proved", "inplace"), strict=True):
        for access in hoisted:
            access.attrs["check"] = how
        wrapped = clone_region(Region([found.op]), {})
        region.ops += wrapped.ops


class _Before:
    """Builds, before a loop, what its indices will be."""

    def __init__(self, b: Builder, found: Loop):
        self.b, self.found = b, found
        self.values: dict[Value, Value] = {found.op.regions[0].args[0]: found.op.operands[0]}
        self.way: Value | None = None

    def first(self, v: Value) -> Value:
        """The value in the first iteration."""
        if v not in self.found.inside:
            return v
        if v not in self.values:
            op = v.op
            assert op is not None and (ops.TABLE[op.code].pure or op.code == "get")
            self.values[v] = self.b.value(op.code, [self.first(o) for o in op.operands], v.type, **op.attrs)
        return self.values[v]

    def distance(self) -> Value:
        """How far the loop's index goes from its first to its last value; without meaning if there is none."""
        if self.way is None:
            b, step = self.b, self.found.step
            start, stop, _ = self.found.op.operands
            low, high = (start, stop) if step > 0 else (stop, start)
            assert isinstance(start.type, Scalar)
            unsigned = UNSIGNED_OF[start.type]
            gap = b.binary("sub", b.bitcast(high, unsigned), b.bitcast(low, unsigned))
            self.way = b.binary("sub", gap, b.const(1, unsigned))
            if abs(step) > 1:
                over = b.value("mod", (self.way, b.const(abs(step), unsigned)), unsigned, check="proved")
                self.way = b.binary("sub", self.way, over)
        return self.way

    def in_range(self, index: Value, extent: Value) -> Value:
        """Whether ``0 <= index < extent`` in every iteration."""
        b, slope = self.b, self.found.slope(index)
        assert slope is not None and isinstance(extent.type, Scalar)
        unsigned = UNSIGNED_OF[extent.type]
        first, n = b.bitcast(self.first(index), unsigned), b.bitcast(extent, unsigned)
        good = b.binary("lt", first, n)
        if slope == 0:
            return good
        upwards = slope * self.found.step > 0
        room = b.binary("sub", b.binary("sub", n, b.const(1, unsigned)), first) if upwards else first
        if abs(slope) > unsigned.max:
            room = b.const(0, unsigned)
        elif abs(slope) > 1:
            room = b.value("floordiv", (room, b.const(abs(slope), unsigned)), unsigned, check="proved")
        return b.binary("and", good, b.binary("le", self.distance(), room))
