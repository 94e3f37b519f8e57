"""No element is touched by two threads between barriers, unless both touches are atomic or both read.

For every array that the kernel may write, and every two accesses of which one writes, two different threads are
assumed to reach them at one time with one index. ``affine.py`` refutes that in most cases without a solver;
what is left goes to ``solver.py``. If it finds an assignment, ``replay.py`` runs the two threads to see whether they
really meet: then the kernel is refused with that counterexample, otherwise as not proved.
"""

from __future__ import annotations

import time
from collections.abc import Iterator

from gridwise.ir.core import Kernel, Value
from gridwise.ir.types import ArrayType
from gridwise.lang.errors import Loc, UnprovedError
from gridwise.lang.records import dataclass

from .affine import Pair, cheap
from .summaries import Access, Path, Summary
from .uniformity import Uniformity, snippet

LIMIT_MS = 2000  # for one query to the solver
ALL_RULES = frozenset(("radix", "order", "bits", "integers", "lemma"))


@dataclass(frozen=True)
class Proof:
    """How one pair of accesses was settled. ``by``: a rule of affine.py, or the encoding of the solver."""

    array: str
    loc: Loc | None
    other: Loc | None
    by: str
    ms: float


def mutable(summary: Summary) -> Iterator[Value]:
    """The arrays in which threads can meet and one may write."""
    seen: set[Value] = set()
    for a in summary.accesses:
        t = a.array.type
        assert isinstance(t, ArrayType)
        if a.array not in seen and t.space != "local" and (t.space == "shared" or t.access != "read"):
            seen.add(a.array)
            yield a.array


def pairs(summary: Summary) -> Iterator[Pair]:
    """Every question that must be answered, each once."""
    for array in mutable(summary):
        t = array.type
        assert isinstance(t, ArrayType)
        yield from _pairs_of([a for a in summary.accesses if a.array is array and not a.unsafe], t.space == "shared",
                             summary.barriers)


def _pairs_of(accesses: list[Access], shared: bool, barriers: bool) -> Iterator[Pair]:
    asked: set[object] = set()
    for n, a in enumerate(accesses):
        for b in accesses[n:]:
            if a.kind == b.kind == "read" or (a.copy and b.copy):
                continue
            axes = _common_axes(a, b)
            if axes is None:
                continue
            questions = ["grid"] if not barriers and not shared else [] if shared else ["blocks"]
            if a.kind == b.kind == "atomic":  # they only meet where an atomic of block scope meets another block
                questions = [] if shared or not (a.block_scope or b.block_scope) else ["blocks"]
            also: list[tuple[str, tuple[Path, Path]]] = [(q, ((), ())) for q in questions if not a.copy and not b.copy]
            if (barriers or shared) and not a.kind == b.kind == "atomic":
                also += [("block", (a.intervals[k], b.intervals[k])) for k in a.intervals if k in b.intervals]
            for where, paths in also:
                sides = (a.index[:axes], a.path + paths[0]), (b.index[:axes], b.path + paths[1])
                if (frozenset(sides), where) not in asked:
                    asked.add((frozenset(sides), where))
                    yield Pair(a, b, where, axes, paths)


def _common_axes(a: Access, b: Access) -> int | None:
    """How many indices to compare; None if the two are different members of the element."""
    array = a.array.type
    assert isinstance(array, ArrayType)
    axes = array.rank
    for f, g in zip(a.op.attrs.get("field", ()), b.op.attrs.get("field", ()), strict=False):
        if f != g:
            return None
        axes += 1 if f.count else 0
    return axes


def check_disjoint(kernel: Kernel, uniform: Uniformity | None = None, *, summary: Summary | None = None,
                   rules: frozenset[str] = ALL_RULES, limit_ms: int = LIMIT_MS) -> list[Proof]:
    """Prove that no two threads touch one element between barriers, at least one writing.

    ``rules`` switches proof rules off, for tests. Raises RaceError with a counterexample that was replayed, or
    UnprovedError if ``limit_ms`` a query is not enough or the index is beyond the prover.
    """
    from .loops import summarise

    s = summary if summary is not None else summarise(kernel, uniform)
    proofs: list[Proof] = []
    for pair in pairs(s):
        start = time.perf_counter()
        by = cheap(s, pair, rules)
        if by is None:
            by = _hard(s, pair, rules, limit_ms)
        ms = (time.perf_counter() - start) * 1e3
        proofs.append(Proof(s.name(pair.a.array), pair.a.loc, pair.b.loc, by, ms))
    return proofs


def _hard(summary: Summary, pair: Pair, rules: frozenset[str], limit_ms: int) -> str:
    """Ask the solver; raises unless it proves the pair apart."""
    from .replay import find_race
    from .solver import STAGES, meet

    for stage in range(STAGES):
        answer = meet(summary, pair, rules, limit_ms, stage)
        if answer.proved:
            return answer.by
        find_race(summary, pair, answer.model, stage)  # raises RaceError if two threads really meet
        if answer.final:
            break
    raise unproved(summary, pair)


def described(summary: Summary, access: Access) -> str:
    """An access as its author wrote it: ``c[i + 1]``."""
    if access.loc is not None and access.loc.end_col > access.loc.col:
        text = access.loc.source()[access.loc.col : access.loc.end_col].strip()
        name = summary.name(access.array).split(".")[0]
        if text.startswith(name) and text.endswith("]") and len(text) <= 60:
            return text
    indices = ", ".join(snippet(v) for v in access.op.operands[1 : 1 + len(access.index)])
    return f"{summary.name(access.array)}[{indices}]"


def unproved(summary: Summary, pair: Pair) -> UnprovedError:
    """The refusal of a pair that could be neither proved nor refuted."""
    a, b = (pair.a, pair.b) if pair.a.kind != "read" else (pair.b, pair.a)
    what = "writes" if a.kind == "write" else "updates"
    message = f"cannot prove that only one thread {what} {described(summary, a)}"
    if b.loc != a.loc or b.kind != a.kind:
        line = f" on line {b.loc.line}" if b.loc is not None else ""
        message = (f"cannot prove that {described(summary, a)} and {described(summary, b)}{line} are different "
                   "elements for different threads")
    hint = ('use an index made from the thread\'s own (thread.index_1d()), an AtomicSlice, or '
            'with gw.unsafe("why no two threads meet"):')
    return UnprovedError(message, a.loc, hint)
