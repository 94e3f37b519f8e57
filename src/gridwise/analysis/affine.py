"""Can two threads meet at one element? The cheap answer, by linear reasoning; it needs no solver.

``Pair`` is the question. Two rules answer most of it:

- *radix*: where the difference of two indices is a sum of ``c_j * d_j`` and each coefficient exceeds what the smaller
  ones can add up to (as in ``256 * block + thread``), it is 0 only if every ``d_j`` is. Modulo 2**bits, so what wraps
  is seen. If that makes the threads' positions equal, they are one thread. A common divisor, or a difference that
  cannot reach 0, settles it as well.
- *order*: assume that one position is less than the other, and that the indices are equal; with the facts of both paths
  there is no solution (Fourier-Motzkin).
"""

from __future__ import annotations

from math import gcd

from gridwise.lang.records import dataclass

from .linear import Atom, Facts, Form, Ineq, infeasible, ring
from .summaries import Access, Path, Summary
from .terms import BLOCK, LAUNCH, Term


@dataclass(slots=True, eq=False)
class Pair:
    """May ``a`` by one thread and ``b`` by another touch the same element?

    where  "grid": any two threads of the launch; "block": two of one block, in a common interval;
           "blocks": two of different blocks.
    axes   how many index terms to compare.
    also   what else holds for each in the interval in which they would meet.
    """

    a: Access
    b: Access
    where: str
    axes: int
    also: tuple[Path, Path] = ((), ())

    def conditions(self, summary: Summary, which: int) -> Path:
        """Everything that holds of access ``which`` (1 or 2) if it takes part."""
        access = self.a if which == 1 else self.b
        return (*access.path, *self.also[which - 1], *summary.in_range(access), *summary.given)

    def facts(self, summary: Summary, which: int) -> Facts:
        """The same, for linear reasoning."""
        access, also = (self.a, self.also[0]) if which == 1 else (self.b, self.also[1])
        known = access.facts.get(also)
        if known is None:
            known = access.facts[also] = Facts((*access.path, *also, *summary.in_range(access)), summary.base)
        return known

    def shared(self, t: Term) -> bool:
        """Is this value the same for both threads?"""
        return t.scope == LAUNCH or (t.scope == BLOCK and self.where == "block")

    def positions(self, summary: Summary) -> list[Term]:
        """The parts of a thread's position, at least one of which differs."""
        inputs = [t for t in summary.inputs if t.code == "leaf"]
        kinds = {"grid": ("tid", "bid"), "block": ("tid",), "blocks": ("bid",)}[self.where]
        return [t for t in inputs if t.data.kind in kinds]


def cheap(summary: Summary, pair: Pair, rules: frozenset[str]) -> str | None:
    """The rule that shows that the two never meet, or None."""
    fa, fb = pair.facts(summary, 1), pair.facts(summary, 2)
    if fa.contradiction or fb.contradiction:
        return "unreachable"
    positions = pair.positions(summary)
    if not positions:
        return "one thread"
    # What is certainly the same for both threads if they meet.
    same = {p for p in positions if fa.range(p) == fb.range(p) and fa.range(p)[0] == fa.range(p)[1]}
    if "radix" in rules:
        for x, y in zip(pair.a.index[: pair.axes], pair.b.index[: pair.axes], strict=True):
            if _radix(pair, fa, fb, x, y, same):
                return "radix"
        _unfold(pair, fa, fb, same)
    if same.issuperset(positions):
        return "radix"
    if "order" in rules and _order(pair, fa, fb, [p for p in positions if p not in same]):
        return "order"
    return None


def _radix(pair: Pair, fa: Facts, fb: Facts, x: Term, y: Term, same: set[Term]) -> bool:
    """True if x of one thread never equals y of the other; else adds to ``same`` what equality implies."""
    modulus = 1 << x.type.bits
    (ca, ka), (cb, kb) = ring(x), ring(y)
    parts: list[tuple[int, int, int, Term | None]] = []  # coefficient, lowest, highest, the atom if a difference
    for atom in {**ca, **cb}:
        a, b = ca.get(atom, 0), cb.get(atom, 0)
        if pair.shared(atom):
            if (a - b) % modulus:
                parts.append((a - b, *_both(fa, fb, atom), None))
            continue
        (alo, ahi), (blo, bhi) = fa.range(atom), fb.range(atom)
        if a == b:
            parts.append((a, alo - bhi, ahi - blo, atom))
        else:
            if a:
                parts.append((a, alo, ahi, None))
            if b:
                parts.append((-b, blo, bhi, None))
    constant = ka - kb
    if constant % gcd(modulus, *(c for c, *_ in parts)):
        return True
    lo = constant + sum(min(c * a, c * b) for c, a, b, _ in parts)
    hi = constant + sum(max(c * a, c * b) for c, a, b, _ in parts)
    first = -(-lo // modulus) * modulus
    if first > hi:
        return True
    if lo <= -modulus or hi >= modulus:
        return False  # it may be 0 only modulo 2**bits
    # From the largest coefficient down: what the others can give leaves each part a few values; one, if they are small.
    parts.sort(key=lambda p: -abs(p[0]))
    for c, a, b, found in parts:
        low, high = min(c * a, c * b), max(c * a, c * b)
        lo, hi = lo - low, hi - high  # of everything else
        k, left, right = (c, -hi, -lo) if c > 0 else (-c, lo, hi)  # k * part is between left and right
        first, last = max(a, -(-left // k)), min(b, right // k)
        if first > last:
            return True
        if first < last:
            return False
        lo, hi = lo + c * first, hi + c * first
        if first == 0 and found is not None:
            same.add(found)
    return False


def _both(fa: Facts, fb: Facts, atom: Term) -> tuple[int, int]:
    (alo, ahi), (blo, bhi) = fa.range(atom), fb.range(atom)
    return max(alo, blo), min(ahi, bhi)


def _unfold(pair: Pair, fa: Facts, fb: Facts, same: set[Term]) -> None:
    """Equal results of one-to-one operations have equal operands."""
    todo, seen = list(same), set(same)

    def equal(t: Term) -> None:
        before = set(same)
        same.add(t)
        _radix(pair, fa, fb, t, t, same)
        todo.extend(same - before - seen)
        seen.update(same)

    while todo:
        t = todo.pop()
        if t.code == "xor" and pair.shared(t.args[1]):
            equal(t.args[0])
        elif t.code == "xor" and pair.shared(t.args[0]):
            equal(t.args[1])
        elif t.code == "cast" and t.args[0].type.is_int and t.args[0].type.bits <= t.type.bits:  # noqa: SIM114
            equal(t.args[0])
        elif t.code == "mod" and t.data is not None and t.data in same:
            equal(t.args[0])
        elif t.code == "floordiv":
            for r in [r for r in same if r.code == "mod" and r.data is t]:
                equal(r.args[0])


def _order(pair: Pair, fa: Facts, fb: Facts, positions: list[Term]) -> bool:
    ineqs: list[Ineq] = []
    forms: list[list[Form]] = [[], []]
    for x, y in zip(pair.a.index[: pair.axes], pair.b.index[: pair.axes], strict=True):
        forms[0].append(fa.exact(x))
        forms[1].append(fb.exact(y))
    for which, facts in ((1, fa), (2, fb)):
        goals = [*forms[which - 1], *(({p: 1}, 0) for p in positions)]
        ineqs += [_renamed(pair, f, which) for f in facts.inequalities(goals)]
    for f, g in zip(*forms, strict=True):
        a, b = _renamed(pair, f, 1), _renamed(pair, g, 2)
        ineqs += [_minus(a, b), _minus(b, a)]
    mirrored = pair.a is pair.b and pair.also[0] == pair.also[1]
    for p in positions:
        one, two = (p, 1), (p, 2)
        if not infeasible([*ineqs, ({one: 1, two: -1}, -1)]):
            return False
        if not mirrored and not infeasible([*ineqs, ({one: -1, two: 1}, -1)]):
            return False
    return True


def _renamed(pair: Pair, form: Form, which: int) -> Ineq:
    out: dict[Atom, int] = {}
    for atom, c in form[0].items():
        out[atom if pair.shared(atom) else (atom, which)] = c
    return out, form[1]


def _minus(a: Ineq, b: Ineq) -> Ineq:
    out = dict(a[0])
    for atom, c in b[0].items():
        n = out.get(atom, 0) - c
        if n:
            out[atom] = n
        else:
            out.pop(atom, None)
    return out, a[1] - b[1]
