"""What the emitter keeps while it writes a function body: lines with their source places, names, open expressions.

An expression used once is not given a name: its text waits until its use, so that the shader reads as the kernel
does. What it reads (variables, mutable arrays) is kept with it, and it is named after all before any of that
changes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from gridwise.ir import Kernel, Op, Region, Value
from gridwise.lang.errors import Loc
from gridwise.lang.records import dataclass, field

from .text import Expr, Names, atom

LONGEST = 90  # characters of an expression that may wait
NOTHING: frozenset[Value] = frozenset()


@dataclass
class Frame:
    """An open loop of the shader: the user's, or one that stands for an inlined function (``scope``)."""

    scope: int | None = None
    broke: str = ""  # the flag that a `break` sets, if the loop has an else
    left: str = ""  # the flag that a `leave` from an inner loop sets
    escapes: list[str] = field(default_factory=list)  # flags to look at once the loop is over


class Body:
    """Lines being written. ``reads``: what the expression made last depends on is passed explicitly."""

    def __init__(self, kernel: Kernel):
        self.kernel = kernel
        self.names = Names()
        self.lines: list[tuple[str, Loc | None]] = []
        self.depth = 1
        self.frames: list[Frame] = []
        self.known: dict[Value, Expr] = {}
        self.waiting: dict[Value, tuple[Expr, frozenset[Value], Op]] = {}
        self.count: dict[Value, int] = {}
        self.home: dict[Value, int] = {}
        self.user: dict[Value, int] = {}
        self._survey(kernel.body)

    def _survey(self, region: Region) -> None:
        for op in region.ops:
            for v in op.operands:
                self.count[v] = self.count.get(v, 0) + 1
                self.user[v] = id(region)
            if op.result is not None:
                self.home[op.result] = id(region)
            for inner in op.regions:
                self._survey(inner)

    # -- lines -------------------------------------------------------------------------------------------
    def line(self, text: str, loc: Loc | None) -> None:
        self.lines.append(("    " * self.depth + text, loc))

    @contextmanager
    def block(self) -> Iterator[None]:
        self.depth += 1
        yield
        self.depth -= 1

    # -- values ------------------------------------------------------------------------------------------
    def define(self, op: Op, text: Expr, reads: frozenset[Value] = NOTHING) -> None:
        """Give the result of ``op`` its text: at once as a name, or when it is used."""
        v = op.result
        assert v is not None
        if not self.count.get(v, 0):
            return
        if text.atom and not reads and "(" not in text:  # a name already
            self.known[v] = text
        elif self.count[v] == 1 and self.user[v] == self.home.get(v) and len(text) <= LONGEST:
            self.waiting[v] = (text, reads, op)
        else:
            self.let(op, text)

    def let(self, op: Op, text: Expr) -> None:
        assert op.result is not None
        name = self.names(op.result.name or "t")
        self.line(f"let {name} = {text};", op.loc)
        self.known[op.result] = atom(name)

    def take(self, v: Value) -> tuple[Expr, frozenset[Value]]:
        """The text of a value and what it reads."""
        if v in self.waiting:
            text, reads, _ = self.waiting.pop(v)
            return text, reads
        return self.known[v], NOTHING

    def settle(self, changed: Iterable[Value] | None = None) -> None:
        """Name the waiting expressions that read any of ``changed`` (None: that read anything)."""
        what = None if changed is None else set(changed)
        for v, (text, reads, op) in list(self.waiting.items()):
            if reads and (what is None or reads & what):
                del self.waiting[v]
                self.let(op, text)
