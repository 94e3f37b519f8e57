"""Random structured programs: nested branches, loops, break, continue, early return, inlined functions.

Every program is run by vectors under masks (rows), and block by block with barriers, against the check device.
"""

from __future__ import annotations

import random

import numpy as np
import pytest
from both import Sketch, agree

from gridwise.ir import Builder, Kernel, Value
from gridwise.ir.types import I32, I64, U32, Scalar


class Program:
    """One random kernel over an input and an output array, with three i32 variables a thread."""

    def __init__(self, seed: int, barriers: bool, block: int, local: bool = False):
        self.r = random.Random(seed)
        self.s = Sketch((block, 1, 1))
        self.b: Builder = self.s.b
        self.a, self.out = self.s.array("a", I32, "read"), self.s.array("out", I32)
        self.n = self.s.scalar("n", I32)
        self.barriers = barriers
        self.vars = [self.b.var(f"v{k}", I32) for k in range(3)]
        self.shared = self.s.shared("sh", I32, (block,)) if barriers else None
        self.local = self.s.local("lo", I32, (4,)) if local else None
        self.gid = self.b.identity("global_idx", 0)
        self.tid = self.b.identity("thread_idx", 0) if barriers else self.gid
        self.uniform = [self.n, self.const(3)]
        self.scopes = 0
        for v in self.vars:
            self.b.set(v, self.const(1))
        for v in self.vars:
            self.b.set(v, self.expression(1))

    def const(self, k: int) -> Value:
        return self.b.const(k, I32)

    def expression(self, depth: int = 2) -> Value:
        r, b = self.r, self.b
        pick = r.random()
        if depth == 0 or pick < 0.3:
            return r.choice([
                lambda: self.const(r.randint(-5, 9)),
                lambda: self.gid,
                lambda: self.tid,
                lambda: b.get(r.choice(self.vars)),
                lambda: r.choice(self.uniform),
            ])()
        if pick < 0.4:
            i = b.binary("mod", self.expression(depth - 1), b.binary("max", b.dim(self.a, 0), self.const(1)))
            return b.load(self.a, [i])
        if pick < 0.5 and self.local is not None:
            return b.load(self.local, [b.binary("mod", self.expression(depth - 1), self.const(4))])
        code = r.choice("add sub mul min max and xor shr".split())
        return b.binary(code, self.expression(depth - 1), self.expression(depth - 1))

    def condition(self, uniform: bool = False) -> Value:
        code = self.r.choice("lt le gt eq ne".split())
        if uniform:
            return self.b.binary(code, self.r.choice(self.uniform), self.const(self.r.randint(0, 6)))
        return self.b.binary(code, self.expression(1), self.expression(1))

    # ---- statements that any thread may reach alone ----------------------------------------------------------
    def block(self, depth: int, loop: bool, scope: int | None, count: int = 3) -> None:
        for _ in range(self.r.randint(1, count)):
            if self.statement(depth, loop, scope):
                return

    def statement(self, depth: int, loop: bool, scope: int | None) -> bool:
        """True if nothing may follow."""
        r, b = self.r, self.b
        pick = r.random()
        if pick < 0.4 or depth == 0:
            b.set(r.choice(self.vars), self.expression())
        elif pick < 0.48 and self.local is not None:
            b.store(self.local, [b.binary("mod", self.expression(1), self.const(4))], self.expression(1))
        elif pick < 0.62:
            op = b.if_(self.condition(r.random() < 0.3))
            with b.into(op.regions[0]):
                self.block(depth - 1, loop, scope)
            if r.random() < 0.5:
                with b.into(op.regions[1]):
                    self.block(depth - 1, loop, scope)
        elif pick < 0.74:
            stop = self.const(r.randint(0, 5))
            if r.random() < 0.5:
                stop = b.binary("and", self.expression(1), self.const(7))
            start = self.const(r.randint(-2, 2)) if r.random() < 0.7 else b.binary("and", self.tid, self.const(3))
            step = r.choice([1, 1, 2, 3, -1])
            if step < 0:
                start, stop = stop, start
            op = b.for_(start, stop, self.const(step))
            with b.into(op.regions[0]):
                b.set(r.choice(self.vars), b.binary("add", op.regions[0].args[0], self.expression(1)))
                self.block(depth - 1, True, scope)
            if r.random() < 0.3:
                with b.into(op.regions[1]):
                    self.block(depth - 1, loop, scope)
        elif pick < 0.82:
            counter = b.var("k", I32)
            b.set(counter, self.const(0))
            op = b.while_()
            with b.into(op.regions[0]):
                small = b.binary("lt", b.get(counter), self.const(r.randint(1, 5)))
                if r.random() < 0.5:
                    small = b.binary("and", small, self.condition())
                b.emit("yield", (small,))
            with b.into(op.regions[1]):
                b.set(counter, b.binary("add", b.get(counter), self.const(1)))
                self.block(depth - 1, True, scope)
            if r.random() < 0.3:
                with b.into(op.regions[2]):
                    self.block(depth - 1, loop, scope)
        elif pick < 0.88:
            self.scopes += 1
            op = b.scope(self.scopes)
            with b.into(op.regions[0]):
                self.block(depth - 1, False, self.scopes)
        elif pick < 0.94 and loop:
            b.emit(r.choice(["break", "continue"]))
            return True
        elif pick < 0.97 and scope is not None:
            b.emit("leave", id=scope)
            return True
        elif pick < 0.985 and scope is None and not self.barriers:
            self.finish()
            b.emit("return")
            return True
        return False

    # ---- statements of the whole block -------------------------------------------------------------------------
    def together(self, depth: int) -> None:
        r, b = self.r, self.b
        for _ in range(r.randint(1, 3)):
            pick = r.random()
            if pick < 0.35 or depth == 0:
                self.block(2, False, None)
            elif pick < 0.6:
                assert self.shared is not None
                b.store(self.shared, [self.tid], self.expression(1))
                b.emit("barrier")
                other = b.binary("mod", b.binary("add", self.tid, self.const(r.randint(1, 40))), b.dim(self.shared, 0))
                b.set(r.choice(self.vars), b.load(self.shared, [other]))
                b.emit("barrier")
            elif pick < 0.75:
                op = b.if_(self.condition(True))
                with b.into(op.regions[0]):
                    self.together(depth - 1)
                with b.into(op.regions[1]):
                    self.together(depth - 1)
            else:
                op = b.for_(self.const(0), b.binary("and", self.n, self.const(3)), self.const(1))
                with b.into(op.regions[0]):
                    self.uniform.append(op.regions[0].args[0])
                    self.together(depth - 1)
                    if r.random() < 0.3:
                        stop = b.if_(self.condition(True))
                        with b.into(stop.regions[0]):
                            b.emit(r.choice(["break", "continue"]))
                    self.together(depth - 1)
                    self.uniform.pop()

    def finish(self) -> None:
        b = self.b
        total = b.get(self.vars[0])
        for v in self.vars[1:]:
            total = b.binary("xor", b.binary("mul", total, self.const(31)), b.get(v))
        with b.into(b.if_(b.binary("lt", self.gid, b.dim(self.out, 0))).regions[0]):
            b.store(self.out, [self.gid], total)

    def kernel(self) -> Kernel:
        if self.barriers:
            self.together(2)
        else:
            self.block(4, False, None, 5)
        if not (self.b.region.ops and self.b.region.ops[-1].code in ("return",)):
            self.finish()
        return self.s.kernel()


def run(kernel: Kernel, block: int, n: int, uniform: int) -> None:
    a = np.random.default_rng(n).integers(-1000, 1000, n, np.int32)
    agree(kernel, -(-n // block), [a, np.zeros(n, np.int32), uniform])


@pytest.mark.parametrize("seed", range(40))
def test_rows(seed: int) -> None:
    run(Program(seed, False, 64, seed % 3 == 0).kernel(), 64, 100 + seed, seed % 5)


@pytest.mark.parametrize("seed", range(40))
def test_blocks(seed: int) -> None:
    block = [32, 64, 40, 7][seed % 4]
    run(Program(seed, True, block, seed % 3 == 0).kernel(), block, 100 + seed, seed % 5)


def test_deterministic_text() -> None:
    from gridwise.passes.pipeline import lower
    from gridwise.targets.cpu.capabilities import host
    from gridwise.targets.cpu.emit import emit

    texts = {emit(lower(Program(3, True, 64).kernel(), "cpu"), host()).text for _ in range(3)}
    assert len(texts) == 1



EDGES = [
    (I32, 2**31 - 3, 2**31 - 1, 1),
    (I32, 2**31 - 100, 2**31 - 1, 64),
    (I32, 0, 2**31 - 1, 2**30),
    (I32, -(2**31), 2**31 - 1, 2**31 - 1),
    (I32, -(2**31) + 2, -(2**31), -1),
    (I32, 5, -(2**31), -(2**30) - 1),
    (I32, 3, 3, -1),
    (U32, 2**32 - 3, 2**32 - 1, 1),
    (U32, 2**31 - 2, 2**31 + 2, 1),
    (U32, 2**32 - 100, 2**32 - 1, 64),
    (U32, 0, 2**32 - 1, 2**31),
    (I64, 2**63 - 3, 2**63 - 1, 2),
    (I64, -(2**63) + 3, -(2**63), -2),
]


@pytest.mark.parametrize("apart", [False, True], ids=["together", "apart"])
@pytest.mark.parametrize(("t", "start", "stop", "step"), EDGES)
def test_ranges_that_end_where_the_type_ends(t: Scalar, start: int, stop: int, step: int, apart: bool) -> None:
    """The index after the last turn would wrap. Lanes are through at different times if ``apart``; some break."""
    s = Sketch()
    out, total = s.array("out", t), s.array("total", I32)
    values = [s.scalar(name, t) for name in ("start", "stop", "step")]
    b = s.b
    g = b.identity("global_idx", 0)
    mine = b.binary("lt", g, b.dim(out, 0))
    with b.into(b.if_(b.binary("and", mine, b.binary("lt", g, b.dim(total, 0)))).regions[0]):
        even = b.binary("eq", b.binary("and", g, b.const(1, I32)), b.const(0, I32))
        end = b.select(even, values[1], values[0]) if apart else values[1]
        last, turns = b.var("last", t), b.var("turns", I32)
        b.set(last, b.const(0, t))
        b.set(turns, b.const(0, I32))
        loop = b.for_(values[0], end, values[2], "i")
        with b.into(loop.regions[0]):
            b.set(last, loop.regions[0].args[0])
            b.set(turns, b.binary("add", b.get(turns), b.const(1, I32)))
            third = b.binary("and", b.binary("ge", b.get(turns), b.const(2, I32)), b.binary("lt", g, b.const(3, I32)))
            with b.into(b.if_(third).regions[0]):
                b.emit("break", ())
        b.store(out, [g], b.get(last))
        b.store(total, [g], b.get(turns))
    args = [np.zeros(40, t.dtype), np.zeros(40, np.int32), *(t.dtype.type(v) for v in (start, stop, step))]
    got = agree(s.kernel(), 1, args)
    turns_ = len(range(start, stop, step))
    assert got[1][4] == turns_ and (turns_ == 0 or int(got[0][4]) == range(start, stop, step)[-1])
