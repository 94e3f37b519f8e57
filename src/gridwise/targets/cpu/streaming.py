"""Large outputs written past the cache.

An ordinary store first reads the cache line that it will overwrite. A store of whole lines past the cache does not,
which saves a quarter to a third of the memory traffic of a streaming kernel; but what is written is then not in the
cache for whoever reads it next. So it is done only for outputs far larger than a core's cache, by a loop of its own
that starts at the first whole line.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gridwise.ir import Kernel, Op, Region, Value
from gridwise.ir.types import ArrayType, Scalar

from .guards import closure

if TYPE_CHECKING:
    from .emit import Gang

LINE = 64  # bytes
LARGE = 1 << 25  # bytes of output from which the cache would be of no use
SHORT = 60  # operations: a longer kernel is not limited by memory


def streamed(kernel: Kernel, known: dict[Value, bool]) -> list[Op]:
    """The stores of a short kernel without loops that write an array, at the thread's own place, and never read it."""
    every = list(kernel.walk())
    if len(every) > SHORT or any(op.code in ("for", "while", "scope", "return", "atomic") for op in every):
        return []
    read = {op.operands[0] for op in every if op.code == "load"}
    found: list[Op] = []

    def collect(region: Region) -> None:
        for op in region.ops:
            if op.code == "if" and known.get(op.operands[0], False):
                collect(op.regions[0])
            elif op.code == "if" and op is kernel.body.ops[-1] and not op.regions[1].ops:
                collect(op.regions[0])  # the guard of the kernel: the rest of its condition is uniform or masks
            elif op.code == "store" and op.operands[0] not in read and _own(op):
                found.append(op)

    collect(kernel.body)
    arrays = {op.operands[0] for op in found}
    return found if len(arrays) == len(found) else []


def _own(op: Op) -> bool:
    """Is the last index the global x, and the others known without running the kernel?"""
    t = op.operands[0].type
    if not (isinstance(t, ArrayType) and isinstance(t.elem, Scalar) and not t.strided and t.space == "global"):
        return False
    *rows, x = op.operands[1:-1]
    if x.op is None or x.op.code != "global_idx" or x.op.attrs["axis"] != 0:
        return False
    for row in rows:
        made = closure(row)
        if made is None or any(o.code == "global_idx" and o.attrs["axis"] == 0 for o in made):
            return False
    return True


def start_line(gang: Gang, stores: list[Op], threads: str) -> tuple[str, str]:
    """Whether to write past the cache (an i1), and how many threads come before the first whole line (an i64).

    ``gang`` stands at the first thread of the row; ``threads`` counts those of the launch (an i64). All stores must
    reach a line's start at the same thread.
    """
    f = gang.fn
    ahead, go = "", f.value(f"icmp uge i64 {threads}, {LARGE // min(_size(op) for op in stores)}", "large")
    for op in sorted(stores, key=lambda op: -_size(op)):
        for v in op.operands[1:-1]:
            for made in closure(v) or []:
                if made.result not in gang.values:
                    gang.op(made)
        address = f.value(f"ptrtoint ptr {gang.place(op).pointer} to i64", "address")
        if not ahead:
            before = f.value(f"sub i64 0, {address}")
            # Of bytes a gang writes less than a line: it is enough that its own stores are aligned.
            unit = min(LINE, _size(op) * gang.lanes)
            ahead = f.value(f"udiv i64 {f.value(f'and i64 {before}, {unit - 1}')}, {_size(op)}", "ahead")
        reach = f.value(f"add i64 {address}, {f.value(f'mul i64 {ahead}, {_size(op)}')}")
        off = f.value(f"and i64 {reach}, {min(LINE, _size(op) * gang.lanes) - 1}")
        go = f.value(f"and i1 {go}, {f.value(f'icmp eq i64 {off}, 0')}", "go")
    return go, ahead


def _size(op: Op) -> int:
    t = op.operands[-1].type
    assert isinstance(t, Scalar)
    return t.size
