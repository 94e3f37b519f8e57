"""Control flow under masks: ``if`` narrows the mask; what leaves a region early is kept until its construct ends."""

from __future__ import annotations

import abc
from collections.abc import Callable
from typing import Any

import numpy as np

from gridwise.ir.core import Op, Region, Value

from .frame import NOTHING, Frame, Loop, Mask, Nothing, union

Array = np.ndarray[Any, Any]
Step = Callable[[Frame], None]
CONTROL = frozenset("if for while scope break continue return leave".split())


class Control(abc.ABC):
    """Translates the structured operations; the program that inherits it translates what stands in their regions."""

    @abc.abstractmethod
    def number(self, value: Value) -> int:
        """The place of a value in a frame."""

    @abc.abstractmethod
    def region(self, region: Region) -> Step:
        """A region as one step."""

    def op_if(self, op: Op) -> Step:
        cond = self.number(op.operands[0])
        then, orelse = (self.region(r) for r in op.regions)
        has_else = bool(op.regions[1].ops)

        def branch(f: Frame) -> None:
            c, entry = f.v[cond], f.mask
            if c.shape[0] == 1:
                if c[0]:
                    then(f)
                elif has_else:
                    orelse(f)
                return
            yes, no = split(entry, c)
            if yes is NOTHING:
                if has_else:
                    orelse(f)
                return
            if no is NOTHING:
                then(f)
                return
            f.mask = yes
            then(f)
            after = f.mask
            f.mask = no
            if has_else:
                orelse(f)
            # Most branches give back what they took: then the entry mask needs no recomputing.
            f.mask = entry if after is yes and f.mask is no else union(after, f.mask)

        return branch

    def op_for(self, op: Op) -> Step:
        start, stop, step = (self.number(v) for v in op.operands)
        index = self.number(op.regions[0].args[0])
        body, orelse = (self.region(r) for r in op.regions)

        def loop(f: Frame) -> None:
            first, last, by = f.v[start], f.v[stop], f.v[step]
            counts = trip_counts(first, last, by)
            here = Loop()
            f.loops.append(here)
            finished: Mask = NOTHING
            i, k = first, 0
            while True:
                go, done = split(f.mask, counts > k)
                finished = union(finished, done)
                f.mask = go
                if go is NOTHING:
                    break
                f.v[index] = i
                body(f)
                f.mask = union(f.mask, here.continued)
                here.continued = NOTHING
                if f.mask is NOTHING:
                    break
                i = i + by
                k += 1
            f.loops.pop()
            leave_loop(f, finished, here, orelse)

        return loop

    def op_while(self, op: Op) -> Step:
        test, body, orelse = (self.region(r) for r in op.regions)
        cond = self.number(op.regions[0].ops[-1].operands[0])

        def loop(f: Frame) -> None:
            here = Loop()
            f.loops.append(here)
            finished: Mask = NOTHING
            while f.mask is not NOTHING:
                test(f)
                if f.mask is NOTHING:
                    break
                go, done = split(f.mask, f.v[cond])
                finished = union(finished, done)
                f.mask = go
                if go is NOTHING:
                    break
                body(f)
                f.mask = union(f.mask, here.continued)
                here.continued = NOTHING
            f.loops.pop()
            leave_loop(f, finished, here, orelse)

        return loop

    def op_yield(self, op: Op) -> Step:
        return lambda f: None

    def op_break(self, op: Op) -> Step:
        def leave(f: Frame) -> None:
            f.loops[-1].broken = union(f.loops[-1].broken, f.mask)
            f.mask = NOTHING

        return leave

    def op_continue(self, op: Op) -> Step:
        def leave(f: Frame) -> None:
            f.loops[-1].continued = union(f.loops[-1].continued, f.mask)
            f.mask = NOTHING

        return leave

    def op_return(self, op: Op) -> Step:
        def leave(f: Frame) -> None:
            f.mask = NOTHING

        return leave

    def op_scope(self, op: Op) -> Step:
        id, body = op.attrs["id"], self.region(op.regions[0])

        def scope(f: Frame) -> None:
            f.left[id] = NOTHING
            body(f)
            f.mask = union(f.mask, f.left[id])

        return scope

    def op_leave(self, op: Op) -> Step:
        id = op.attrs["id"]

        def leave(f: Frame) -> None:
            f.left[id] = union(f.left[id], f.mask)
            f.mask = NOTHING

        return leave


def split(mask: Mask, cond: Array) -> tuple[Mask, Mask]:
    """The lanes of ``mask`` where ``cond`` holds and where it does not."""
    if isinstance(mask, Nothing):
        return NOTHING, NOTHING
    if cond.shape[0] == 1:
        return (mask, NOTHING) if cond[0] else (NOTHING, mask)
    yes: Array = cond if mask is None else cond & mask
    no: Array = ~cond if mask is None else mask & ~cond
    if not np.count_nonzero(yes):
        return NOTHING, mask
    if not np.count_nonzero(no):
        return mask, NOTHING
    return yes, no


def leave_loop(f: Frame, finished: Mask, loop: Loop, orelse: Step) -> None:
    """After a loop: ``orelse`` for the lanes that ran out, then those that broke join them."""
    f.mask = finished
    if finished is not NOTHING:
        orelse(f)
    f.mask = union(f.mask, loop.broken)


def trip_counts(start: Array, stop: Array, step: Array) -> Array:
    """len(range(start, stop, step)) for each lane, exactly, as u64."""
    wide = np.uint64
    up = step > 0
    forward = stop.astype(wide) - start.astype(wide)  # modulo 2**64: exact where it is used
    distance = np.where(up, forward, wide(0) - forward)
    by = np.where(up, step.astype(wide), wide(0) - step.astype(wide))
    some = np.where(up, start < stop, start > stop)
    return np.where(some, (distance - wide(1)) // np.where(by == 0, wide(1), by) + wide(1), wide(0))
