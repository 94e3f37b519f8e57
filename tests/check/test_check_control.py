"""Structured control flow under masks, against a plain interpreter that runs one thread at a time."""

from __future__ import annotations

from contextlib import suppress

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from running import Sketch, launch

from gridwise.devices.check import CheckDevice
from gridwise.ir import Builder, Kernel, Value
from gridwise.ir.types import I8, I32, U8, Scalar
from gridwise.passes.pipeline import analyse, lower


class Break(Exception):
    pass


class Continue(Exception):
    pass


class Return(Exception):
    pass


class Leave(Exception):
    pass


# A program is a list of statements over three variables a, b, c (indices 0 to 2) and the thread's number:
#   ("add", v, k)  v += k                    ("mix", v, w)   v = v * 3 + w
#   ("if", cond, then, orelse)               ("for", start, stop, step, body, orelse)
#   ("while", limit, body, orelse)           ("scope", body)
#   ("break",) ("continue",) ("return",) ("leave", depth)
# cond and for's stop are (v, m, k): (variable v + thread) % m compared with k, or taken as the bound.


def conditions() -> st.SearchStrategy:
    return st.tuples(st.integers(0, 2), st.integers(1, 5), st.integers(0, 4))


def programs(depth: int, loops: bool, scopes: int) -> st.SearchStrategy:
    simple = [
        st.tuples(st.just("add"), st.integers(0, 2), st.integers(-3, 9)),
        st.tuples(st.just("mix"), st.integers(0, 2), st.integers(0, 2)),
    ]
    exits = [st.just(("return",))]
    if loops:
        exits += [st.just(("break",)), st.just(("continue",))]
    if scopes:
        exits.append(st.tuples(st.just("leave"), st.integers(0, scopes - 1)))
    if depth == 0:
        return st.lists(st.one_of(simple), max_size=3)
    inner = programs(depth - 1, loops, scopes)
    body = programs(depth - 1, True, scopes)
    nested = [
        st.tuples(st.just("if"), conditions(), inner, inner),
        st.tuples(st.just("if"), conditions(), inner, st.tuples(inner, st.one_of(exits)).map(lambda p: [*p[0], p[1]])),
        st.tuples(st.just("if"), conditions(), st.one_of(exits).map(lambda e: [e]), inner),
        st.tuples(st.just("for"), st.integers(-2, 3), conditions(), st.sampled_from([-2, -1, 1, 2]), body, inner),
        st.tuples(st.just("while"), st.integers(1, 4), body, inner),
        st.tuples(st.just("scope"), programs(depth - 1, False, scopes + 1)),
    ]
    return st.lists(st.one_of(simple + nested), min_size=1, max_size=4)


class Plain:
    """One thread of a program, by Python's own control flow."""

    def __init__(self, thread: int):
        self.v, self.thread = [0, 0, 0], thread

    def cond(self, c: tuple[int, int, int]) -> int:
        return (self.v[c[0]] + self.thread) % c[1] - c[2]

    def run(self, program: list, scopes: tuple[int, ...]) -> None:
        for s in program:
            match s[0]:
                case "add":
                    self.v[s[1]] = wrap(self.v[s[1]] + s[2])
                case "mix":
                    self.v[s[1]] = wrap(self.v[s[1]] * 3 + self.v[s[2]])
                case "if":
                    self.run(s[2] if self.cond(s[1]) < 0 else s[3], scopes)
                case "for":
                    for i in range(s[1], self.cond(s[2]), s[3]):
                        try:
                            self.v[0] = wrap(self.v[0] + i)
                            self.run(s[4], scopes)
                        except Break:
                            break
                        except Continue:
                            pass
                    else:
                        self.run(s[5], scopes)
                case "while":
                    left = s[1] + self.thread % 3
                    while left > 0:
                        left -= 1
                        try:
                            self.run(s[2], scopes)
                        except Break:
                            break
                        except Continue:
                            pass
                    else:
                        self.run(s[3], scopes)
                case "scope":
                    me = len(scopes)
                    try:
                        self.run(s[1], (*scopes, me))
                    except Leave as e:
                        if e.args[0] != me:
                            raise
                case "break":
                    raise Break
                case "continue":
                    raise Continue
                case "return":
                    raise Return
                case "leave":
                    raise Leave(scopes[s[1]])


def wrap(x: int) -> int:
    return (x + 2**31) % 2**32 - 2**31


class Emit:
    """The same program as IR."""

    def __init__(self, b: Builder, thread: Value):
        self.b, self.thread = b, thread
        self.v = [b.var(name, I32) for name in "abc"]
        self.ids = 0

    def const(self, n: int) -> Value:
        return self.b.const(n, I32)

    def cond(self, c: tuple[int, int, int]) -> Value:
        total = self.b.binary("add", self.b.get(self.v[c[0]]), self.thread)
        return self.b.binary("sub", self.b.binary("mod", total, self.const(c[1])), self.const(c[2]))

    def run(self, program: list, scopes: tuple[int, ...]) -> None:
        b = self.b
        for s in program:
            match s[0]:
                case "add":
                    b.set(self.v[s[1]], b.binary("add", b.get(self.v[s[1]]), self.const(s[2])))
                case "mix":
                    tripled = b.binary("mul", b.get(self.v[s[1]]), self.const(3))
                    b.set(self.v[s[1]], b.binary("add", tripled, b.get(self.v[s[2]])))
                case "if":
                    op = b.if_(b.binary("lt", self.cond(s[1]), self.const(0)))
                    for region, part in zip(op.regions, s[2:], strict=True):
                        with b.into(region):
                            self.run(part, scopes)
                case "for":
                    op = b.for_(self.const(s[1]), self.cond(s[2]), self.const(s[3]))
                    with b.into(op.regions[0]):
                        b.set(self.v[0], b.binary("add", b.get(self.v[0]), op.regions[0].args[0]))
                        self.run(s[4], scopes)
                    with b.into(op.regions[1]):
                        self.run(s[5], scopes)
                case "while":
                    left = b.var("left", I32)
                    third = b.binary("mod", self.thread, self.const(3))
                    b.set(left, b.binary("add", third, self.const(s[1])))
                    op = b.while_()
                    with b.into(op.regions[0]):
                        b.emit("yield", (b.binary("gt", b.get(left), self.const(0)),))
                    with b.into(op.regions[1]):
                        b.set(left, b.binary("sub", b.get(left), self.const(1)))
                        self.run(s[2], scopes)
                    with b.into(op.regions[2]):
                        self.run(s[3], scopes)
                case "scope":
                    self.ids += 1
                    me = self.ids
                    with b.into(b.scope(me).regions[0]):
                        self.run(s[1], (*scopes, me))
                case "leave":
                    b.emit("leave", (), id=scopes[s[1]])
                case "return":
                    b.emit("leave", (), id=0)
                case exit:
                    b.emit(exit)


THREADS = 24


def built(program: list) -> Kernel:
    """The program as a kernel: each thread stores its three variables."""
    s = Sketch(block=(8, 1, 1))
    out = s.array("out", I32)
    i = s.b.identity("global_idx", 0)
    emit = Emit(s.b, i)
    for v in emit.v:
        s.b.set(v, s.b.const(0, I32))
    with s.b.into(s.b.scope(0).regions[0]):
        # `return` would skip the stores below, so the program proper runs as a function that returns by leaving.
        emit.run(program, ())
    for n, v in enumerate(emit.v):
        at = s.b.binary("add", s.b.binary("mul", i, s.b.const(3, I32)), s.b.const(n, I32))
        s.b.store(out, [at], s.b.get(v))
    return s.kernel()


def result(kernel: Kernel) -> list[int]:
    device = CheckDevice()
    target = device.zeros(3 * THREADS, I32)
    launch(device, kernel, THREADS // 8, [target])
    return target.numpy().tolist()


@settings(max_examples=150, deadline=None)
@given(programs(3, False, 0))
def test_control_flow(program: list) -> None:
    want: list[int] = []
    for thread in range(THREADS):
        plain = Plain(thread)
        with suppress(Return):
            plain.run(program, ())
        want += plain.v
    assert result(built(program)) == want


@settings(max_examples=60, deadline=None)
@given(programs(3, False, 0))
def test_passes_keep_the_meaning(program: list) -> None:
    kernel = built(program)
    want = result(kernel)
    analysed = analyse(kernel)
    assert result(analysed) == want
    for target in ("cpu", "ptx", "wgsl"):
        for trust in (False, True):
            assert result(lower(analysed, target, trust_launch=trust)) == want, (target, trust)


def test_return_ends_the_thread() -> None:
    s = Sketch(block=(8, 1, 1))
    out = s.array("out", I32)
    b = s.b
    i = b.identity("global_idx", 0)
    b.store(out, [i], b.const(1, I32))
    loop = b.for_(b.const(0, I32), b.const(10, I32), b.const(1, I32))
    with b.into(loop.regions[0]):
        with b.into(b.if_(b.binary("eq", i, loop.regions[0].args[0])).regions[0]):
            b.emit("return")
        b.store(out, [i], b.binary("add", b.load(out, [i]), b.const(1, I32)))
    b.store(out, [i], b.const(-1, I32))
    device = CheckDevice()
    target = device.zeros(16, I32)
    launch(device, s.kernel(), 2, [target])
    assert target.numpy().tolist() == [t + 1 if t < 10 else -1 for t in range(16)]


@pytest.mark.parametrize("t", [I8, U8], ids=str)
def test_for_trip_counts_are_exact_at_the_ends_of_the_type(t: Scalar) -> None:
    """Every start, stop and step of the edges: the index never has to pass the last value."""
    edges = sorted({t.min, t.min + 1, t.min + 5, 0, 1, t.max // 2, t.max - 3, t.max - 1, t.max})
    steps = [1, 2, 7, t.max] + ([-1, -3, -t.max, t.min] if t.signed else [])
    rows = [(a, z, d) for a in edges for z in edges for d in steps]
    s = Sketch()
    given_ = [s.array(n, t, "read") for n in ("start", "stop", "step")]
    out = s.array("out", I32, rank=2)
    b = s.b
    i = b.identity("global_idx", 0)
    total, last = b.var("total", I32), b.var("last", I32)
    with b.into(b.if_(b.binary("lt", i, b.dim(out, 0))).regions[0]):
        b.set(total, b.const(0, I32))
        b.set(last, b.const(0, I32))
        loop = b.for_(*(b.load(a, [i]) for a in given_))
        with b.into(loop.regions[0]):
            b.set(total, b.binary("add", b.get(total), b.const(1, I32)))
            b.set(last, b.cast(loop.regions[0].args[0], I32))
        b.store(out, [i, b.const(0, I32)], b.get(total))
        b.store(out, [i, b.const(1, I32)], b.get(last))
    device = CheckDevice()
    columns = [device.array(np.array([r[n] for r in rows]), t) for n in range(3)]
    target = device.zeros((len(rows), 2), I32)
    launch(device, s.kernel(), -(-len(rows) // 64), [*columns, target])
    want = [[len(r), r[-1] if len(r) else 0] for r in (range(*row) for row in rows)]
    assert target.numpy().tolist() == want
