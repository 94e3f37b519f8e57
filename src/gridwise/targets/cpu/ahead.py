"""Output lines asked for ahead of time.

Where a block first gathers and, after a barrier, writes its results, each write would wait for a cache line that
nobody has asked for, with everything behind it waiting too (stores leave a core in order). The addresses are known
from the start: so the first run asks for the lines while it waits for its own input.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from gridwise.ir import Op, Region, Value
from gridwise.ir.types import ArrayType

from .guards import closure
from .lanes import Val
from .shapes import constant

if TYPE_CHECKING:
    from .cuts import Run
    from .emit import Gang

MOST = 8  # lines a gang


def outputs(runs: list[Run]) -> list[tuple[Op, dict[Value, int]]]:
    """Stores in later runs at places known from the start, each with the loop indices it stands for."""
    if len(runs) < 2 or not any(op.code == "load" and _is_global(op) for op in runs[0].walk()):
        return []
    found = [at for run in runs[1:] for at in _stores(run.ops, {})]
    return found if len(found) <= MOST else []


def _is_global(op: Op) -> bool:
    t = op.operands[0].type
    return isinstance(t, ArrayType) and t.space == "global"


def _stores(body: list[Op], indices: dict[Value, int]) -> Iterator[tuple[Op, dict[Value, int]]]:
    for op in body:
        if op.code == "if" and not op.regions[1].ops and _bounds(op.operands[0]):
            yield from _stores(op.regions[0].ops, indices)
        elif op.code == "for":
            for i in _turns(op):
                yield from _stores(_inside(op), {**indices, op.regions[0].args[0]: i})
        elif op.code == "store" and _is_global(op) and all(_known(v, indices) for v in op.operands[1:-1]):
            yield op, indices


def _inside(op: Op) -> list[Op]:
    body: Region = op.regions[0]
    return body.ops


def _turns(op: Op) -> range:
    start, stop, step = (constant(v) for v in op.operands)
    if start is None or stop is None or not step:
        return range(0)
    turns = range(start, stop, step)
    return turns if len(turns) <= MOST else range(0)


def _bounds(cond: Value) -> bool:
    """A test that nearly every thread passes: comparisons of places with extents, not of one thread with another."""
    made = closure(cond)
    return made is not None and any(op.code == "dim" for op in made) and not any(
        op.code in ("eq", "ne", "or", "not") for op in made)


def _known(v: Value, indices: dict[Value, int]) -> bool:
    """Is ``v`` made of parameters, the thread's place and these loop indices alone?"""
    made = closure(v, 40)
    return made is not None


def ask(gang: Gang, wanted: list[tuple[Op, dict[Value, int]]]) -> None:
    """Prefetch for writing the lines that the gang's lanes will store to."""
    for op, indices in wanted:
        inner = gang.twin()
        inner.values.update({v: Val(str(i)) for v, i in indices.items()})
        for v in op.operands[1:-1]:
            for made in closure(v, 40) or []:
                if made.result not in inner.values:
                    inner.op(made)
        place = inner.place(op)
        if place.stride != 1:
            continue
        last = gang.lanes * place.elem.size - 1
        for pointer in (place.pointer, gang.fn.value(f"getelementptr i8, ptr {place.pointer}, i64 {last}", "last")):
            gang.fn.module.declare("llvm.prefetch.p0", "void {}(ptr, i32, i32, i32)")
            gang.fn.do(f"call void @llvm.prefetch.p0(ptr {pointer}, i32 1, i32 3, i32 1)")
