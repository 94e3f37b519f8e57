"""Random kernels whose threads cooperate: shared memory between barriers, atomics whose result is order-free.

Each is free of races by construction. A phase writes shared memory only through a permutation of the block's
threads, waits, reads anything, and waits; an array of atomics sees one order-free operation between barriers.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from generate import PREAMBLE, Writer
from program import Expr, Stmt, shrunk

BLOCK, GRID, BINS = 64, 3, 16


@dataclass(frozen=True)
class Cooperative:
    """A whole kernel: phases over the thread's value ``a``, ending in ``out[i] = a``."""

    body: tuple[Stmt, ...]
    result: Expr
    seed: int = 0

    def source(self) -> str:
        body = "\n".join(line for s in self.body for line in s.lines("    "))
        return (
            "@gw.kernel(domain=1, block=64)\n"
            "def run(ints: Slice[i32], out: DisjointSlice[i32], bins: AtomicSlice[u32], u: i32):\n"
            "    t = thread.local_index()\n"
            "    i = thread.global_index()\n"
            "    s0 = gw.shared((64,), i32)\n"
            "    s1 = gw.shared((64,), u32)\n"
            "    s2 = gw.shared((64,), f32)\n"
            "    hits = gw.shared((16,), u32)\n"
            "    b = i32(t)\n"
            "    c, d = i64(i), i64(u)\n"
            "    x, y = f32(t), f32(u)\n"
            "    a = ints[i] if i < len(ints) else i32(-7)\n"
            f"{body}\n"
            "    if i < len(out):\n"
            f"        out[i] = {self.result.text()}\n"
        )

    def module(self) -> str:
        return PREAMBLE + self.source()

    def smaller(self) -> Iterator[Cooperative]:
        for body in shrunk(self.body):
            yield replace(self, body=body)
        for result in self.result.smaller():
            yield replace(self, result=result)

    def size(self) -> int:
        return len(self.source())


class CooperativeWriter(Writer):
    """Draws one cooperative kernel from a seed."""

    SHARED = (("s0", "i32"), ("s1", "u32"), ("s2", "f32"))

    def __init__(self, seed: int):
        super().__init__(seed)
        self.writable = {"i32": ["a"]}

    def permutation(self) -> str:
        """An index that no two threads of the block share."""
        k = self.r.randrange(64)
        return self.r.choice(["t", "t", f"t ^ {k}", "63 - t", f"(t + {k}) % 64", "(t * 5 + 3) % 64"])

    def anywhere(self) -> str:
        return self.r.choice(["63 - t", f"(t + {self.r.randrange(64)}) & 63", "a & 63", f"t ^ {self.r.randrange(64)}",
                              "(a ^ b) & 63", str(self.r.randrange(64)), "-1"])

    def fixed_group(self, *statements: Stmt) -> Stmt:
        """Statements that go together."""
        return Stmt("", (), (("", tuple(replace(s, fixed=True) for s in statements)),))

    def exchange(self) -> Stmt:
        name, t = self.r.choice(self.SHARED)
        write = Stmt(f"{name}[{self.permutation()}] = {{0}}", (self.expr(t, 2),))
        if self.r.random() < 0.3:
            write = Stmt("if {0}:", (self.expr("bool_", 1),), (("", (write,)),))
        got = Expr(t, f"{name}[{self.anywhere()}]")
        read = Stmt("a {0}", (self.combined(got),))
        return self.fixed_group(write, Stmt("barrier()"), read, Stmt("barrier()"))

    def combined(self, got: Expr) -> Expr:
        """What to do to ``a`` with a value read from shared memory."""
        value = got if got.type == "i32" else Expr("i32", "i32({0})", (got,))
        return Expr("update", f"{self.r.choice(['=', '+=', '^=', '-='])} {{0}}", (value,))

    def tally(self, array: str, size: int) -> Stmt:
        fn = self.r.choice(["add", "min", "max", "and_", "or_", "xor", "sub"])
        call = Stmt(f"atomic.{fn}({array}, {{0}} & {size - 1}, {{1}})", (self.expr("i32", 1), self.expr("u32", 2)))
        return Stmt("if {0}:", (self.expr("bool_", 1),), (("", (call,)),)) if self.r.random() < 0.5 else call

    def phase(self, depth: int = 2) -> Stmt:
        pick = self.r.randrange(8)
        if pick < 3:
            return self.exchange()
        if pick == 3:
            read = Stmt("a += {0}", (Expr("i32", f"i32(hits[{self.r.choice(['t & 15', 'a & 15', '7'])}])"),))
            return self.fixed_group(self.tally("hits", BINS), Stmt("barrier()"), read, Stmt("barrier()"))
        if pick == 4 and depth:
            inner = tuple(self.phase(depth - 1) for _ in range(self.r.randint(1, 2)))
            return Stmt("if {0}:", (Expr("bool_", self.r.choice(["u > 2", "u % 2 == 0", "thread.block_index() < 2"])),),
                        (("", inner),))
        if pick == 5 and depth:
            inner = tuple(self.phase(depth - 1) for _ in range(self.r.randint(1, 2)))
            bounds = self.r.choice(["3", "0, 4, 2", "(u & 3)"])
            return Stmt(f"for {self.fresh('k')} in range({bounds}):", (), (("", inner),))
        if pick == 6:
            return self.assign(3)
        return Stmt("if {0}:", (self.expr("bool_", 2),), (("", (self.assign(2),)), ("else:", (self.assign(2),))))

    def cooperative(self) -> Cooperative:
        self.vars["bool_"] = []
        body = [self.phase() for _ in range(self.r.randint(2, 5))]
        # One operation on the global bins: different ones would depend on the order between blocks.
        body.append(self.tally("bins", BINS))
        return Cooperative(tuple(body), self.expr("i32", 2), self.seed)
