"""Grid-stride loops, turned so that memory is walked in order.

A thread that strides by the whole grid touches an element here and another far away. Run to its end gang by gang,
such a loop would jump through memory a cache line at a time. The threads of a block may go through it side by side
instead: the block makes the loop, and each turn all its gangs take neighbouring elements.
"""

from __future__ import annotations

from gridwise.ir import Builder, Kernel, Op, Region, Value
from gridwise.ir.rewrite import clone, clone_region
from gridwise.ir.types import ArrayType

from .cuts import JUMPS
from .guards import closure
from .shapes import constant

_THREAD = ("thread_idx", "global_idx")


def side_by_side(kernel: Kernel) -> Kernel:
    """A copy whose grid-stride loops are made by the block (marked ``lockstep``), or ``kernel`` if it has none."""
    if kernel.block[0] == 1 or kernel.block[1] * kernel.block[2] != 1:
        return kernel
    if not any(_turnable(op, kernel) for op in kernel.body.ops):
        return kernel
    kernel = clone(kernel)
    body, kernel.body.ops = kernel.body.ops, []
    b = Builder(kernel.body, kernel.index)
    for op in body:
        if _turnable(op, kernel):
            b.loc = op.loc
            _turn(op, b, kernel)
        else:
            kernel.body.ops.append(op)
    return kernel


def _turnable(op: Op, kernel: Kernel) -> bool:
    if op.code != "for" or op.regions[1].ops or op.regions[0].args[0].type != kernel.index:
        return False
    start, stop, step = op.operands
    inside = list(op.regions[0].walk())
    return (
        _parts(start) is not None
        and _settled(stop)
        and _settled(step)
        and _far(step, kernel)
        and not any(o.code == "barrier" or (o.code in JUMPS and o.code != "continue") for o in inside)
        and any(o.code in ("load", "store", "atomic") and _is_global(o.operands[0]) for o in inside)
    )


def _is_global(array: Value) -> bool:
    return isinstance(array.type, ArrayType) and array.type.space == "global"


def _settled(v: Value) -> bool:
    """Is ``v`` the same for all threads of a block, and cheap to compute anew?"""
    found = closure(v)
    return found is not None and not any(op.code in _THREAD for op in found)


def _parts(start: Value) -> tuple[Value, Value | None] | None:
    """A start that counts threads along x: the thread's index, and what is added to it."""
    op = start.op
    if op is not None and op.code in _THREAD and op.attrs["axis"] == 0:
        return start, None
    if op is not None and op.code == "add":
        for index, rest in (op.operands, reversed(op.operands)):
            if index.op is not None and index.op.code in _THREAD and index.op.attrs["axis"] == 0 and _settled(rest):
                return index, rest
    return None


def _far(step: Value, kernel: Kernel) -> bool:
    """Is ``step`` certainly positive and no less than a block?"""
    known = constant(step)
    if known is not None:
        return known >= kernel.block[0]
    op = step.op
    if op is None or op.code != "mul":
        return False
    for grid, factor in (op.operands, reversed(op.operands)):
        times = constant(factor)
        if grid.op is not None and grid.op.code == "grid_dim" and times is not None and times >= kernel.block[0]:
            return True
    return False


def _turn(op: Op, b: Builder, kernel: Kernel) -> None:
    """``for i in range(start + t, stop, step): body`` as two loops by the block: one while all its threads have an
    element, and one that asks each thread. No sum wraps: extents and threads keep a bit to spare."""
    _, stop, step = op.operands
    parts = _parts(op.operands[0])
    assert parts is not None
    thread, rest = parts
    t = kernel.index
    first = b.const(0, t)
    if thread.op is not None and thread.op.code == "global_idx":
        first = b.binary("mul", b.identity("block_idx", 0), b.const(kernel.block[0], t))
    if rest is not None:
        first = b.binary("add", first, rest)
    # turns = max(0, ceil((stop - threads + 1 - first) / step))
    room = b.binary("sub", b.binary("sub", stop, b.const(kernel.block[0] - 1, t)), first)
    up = b.binary("add", b.binary("max", room, b.const(0, t)), b.binary("sub", step, b.const(1, t)))
    turns = b.value("floordiv", (up, step), t, check="proved")
    name = op.regions[0].args[0].name or "i"
    whole = _turns(b, b.const(0, t), turns, b.const(1, t), name)
    with b.into(whole):
        at = b.binary("add", first, b.binary("mul", whole.args[0], step))
        _body(op, b.binary("add", at, b.identity("thread_idx", 0)), whole)
    some = _turns(b, b.binary("add", first, b.binary("mul", turns, step)), stop, step, name)
    with b.into(some):
        mine = b.binary("add", some.args[0], b.identity("thread_idx", 0))
        _body(op, mine, b.if_(b.binary("lt", mine, stop)).regions[0])


def _turns(b: Builder, start: Value, stop: Value, step: Value, name: str) -> Region:
    loop = b.for_(start, stop, step, name)
    loop.attrs["lockstep"] = True
    return loop.regions[0]


def _body(op: Op, index: Value, into: Region) -> None:
    """A copy of the loop's body for a thread at ``index``."""
    index.name = op.regions[0].args[0].name
    mapping = {op.regions[0].args[0]: index}
    into.ops += clone_region(Region(op.regions[0].ops), mapping).ops
