"""Settles every check: proved, answered once by the launch, hoisted before its loop, or done in place.

An index is in range if ``0 <= index < extent`` follows from the conditions that the access is under. Where it does
not, but would follow from a relation among the arguments (``len(a) >= len(c)``), the relation becomes a
``Condition`` of the kernel, and the check is the launch's. What depends on the thread or on data is checked by the
kernel: before a loop that moves the index by constant steps (``hoisting.py``), else in place.
"""

from __future__ import annotations

import time

from gridwise.ir.core import Condition, Kernel, Op
from gridwise.ir.types import BOOL
from gridwise.lang.errors import Loc
from gridwise.lang.records import dataclass

from .disjoint import described
from .hoisting import hoistable
from .linear import Facts, Form, add_forms
from .loops import summarise
from .summaries import WIDE, Access, Summary
from .terms import Term, subterms
from .uniformity import Uniformity, snippet

FAR = 1 << 24
_ORDER = {"proved": 0, "launch": 1, "inplace": 2}  # hoisted ones are chosen among the last, in the end


@dataclass(frozen=True)
class Check:
    """One line of ``gridwise check --report``: an access or a division, and how it was settled."""

    text: str
    loc: Loc | None
    how: str  # proved, launch, hoisted, inplace or unsafe
    ms: float
    detail: str = ""  # the launch condition, or the author's reason


class _Bounds:
    def __init__(self, summary: Summary):
        self.summary, self.kernel = summary, summary.kernel
        self.slot_of: dict[Term, int] = {}
        self.conditions: dict[tuple[tuple[tuple[int, int], ...], int], Condition] = {}
        self.facts: dict[tuple[Term, ...], Facts] = {}
        for n, slot in enumerate(self.kernel.slots()):
            value = self.kernel.params[slot.param].value
            if slot.kind == "dim":
                self.slot_of[summary.dim(value, slot.axis)] = n
            elif slot.kind == "scalar" and slot.type is not None and slot.type.is_int:
                self.slot_of[summary.values[value]] = n

    def facts_at(self, path: tuple[Term, ...]) -> Facts:
        known = self.facts.get(path)
        if known is None:
            known = self.facts[path] = Facts(path, self.summary.base)
        return known

    def settle(self, access: Access) -> tuple[str, str]:
        """How the access is settled, and the launch conditions it needs."""
        facts = self.facts_at(access.path)
        needed: list[Condition] = []
        for index, extent in zip(access.index, access.extent, strict=True):
            i, n = facts.exact(index), facts.exact(extent)
            for room in (i, add_forms(add_forms(n, i, -1), ({}, 1), -1)):
                if facts.proves(room):
                    continue
                if self.worthwhile(access) and self.by_solver(facts, index, extent, access, room is i):
                    continue
                condition = self.by_launch(facts, room, access)
                if condition is None:
                    return "inplace", ""
                needed.append(condition)
        for c in needed:
            self.conditions.setdefault((c.terms, c.const), c)
        return ("launch", ", ".join(dict.fromkeys(c.text for c in needed))) if needed else ("proved", "")

    def worthwhile(self, access: Access) -> bool:
        """Ask the solver where ``requires`` relates a product to an extent: there it is quick, and often proves it."""
        return any(leaf.type == WIDE and leaf.code == "xmul" for c in access.path for leaf in subterms(c))

    def by_solver(self, facts: Facts, index: Term, extent: Term, access: Access, lower: bool) -> bool:
        from .solver import holds

        t = self.summary.terms
        goal = t.make("ge", BOOL, index, t.const(0, index.type)) if lower else t.make("lt", BOOL, index, extent)
        return holds(self.summary, access, facts, goal)

    def by_launch(self, facts: Facts, room: Form, access: Access) -> Condition | None:
        """A relation among arguments that gives ``room >= 0``, by replacing what is not an argument by its bounds."""
        form = room
        for _ in range(8):
            atom = next((a for a in form[0] if a not in self.slot_of), None)
            if atom is None:
                break
            k = form[0][atom]
            best: Form | None = None
            for f in facts.inequalities([({atom: 1}, 0)]):
                c = f[0].get(atom, 0)
                if c * k <= 0 or k % c:
                    continue
                candidate = add_forms(form, f, -(k // c))  # form >= candidate, since k // c > 0 and f >= 0
                if best is None or self.cost(candidate) < self.cost(best):
                    best = candidate
            if best is None or len(best[0]) > 6:
                return None
            form = best
        terms, constant = form
        if any(a not in self.slot_of for a in terms) or not terms:
            return None
        if abs(constant) > FAR:
            return None  # it rests on the bound of the index type: no launch keeps it
        slots = tuple(sorted((self.slot_of[a], c) for a, c in terms.items()))
        return Condition(slots, constant, relation(form), access.loc)

    def cost(self, form: Form) -> tuple[int, int]:
        """Prefer what is made of extents to what is made of constants: 2**30 bounds every index, and helps none."""
        return sum(a not in self.slot_of for a in form[0]), 0 if form[0] and abs(form[1]) <= FAR else 1

    def divisor(self, term: Term, path: tuple[Term, ...]) -> bool:
        facts = self.facts_at(path)
        zero = self.summary.terms.const(0, term.type)
        return facts.implies(self.summary.terms.make("ne", BOOL, term, zero))


def relation(form: Form) -> str:
    """``form >= 0`` for people, with the positive terms on the left."""
    left = [(a, c) for a, c in form[0].items() if c > 0]
    right = [(a, -c) for a, c in form[0].items() if c < 0]

    def side(parts: list[tuple[Term, int]], k: int) -> str:
        return " + ".join([f"{c} * {a}" if c > 1 else f"{a}" for a, c in parts] + ([str(k)] if k else [])) or "0"

    a, b = side(left, max(form[1], 0)), side(right, max(-form[1], 0))
    return f"{a} >= {b}"


def settle_bounds(kernel: Kernel, uniform: Uniformity | None = None, *, summary: Summary | None = None) -> list[Check]:
    """Write the ``check`` of every access and division and ``kernel.conditions``; returns the report."""
    s = summary if summary is not None else summarise(kernel, uniform)
    bounds = _Bounds(s)
    found: dict[Op, tuple[str, str, float, str]] = {}

    def note(op: Op, how: str, detail: str, ms: float, text: str) -> None:
        old = found.get(op)
        if old is None or _ORDER[how] >= _ORDER[old[0]]:
            details = detail if old is None or not old[1] or old[1] == detail else f"{old[1]}, {detail}"
            found[op] = how, details, ms + (old[2] if old else 0.0), text

    for a in s.accesses:
        if a.copy:
            continue
        start = time.perf_counter()
        how, detail = bounds.settle(a)
        note(a.op, how, detail, (time.perf_counter() - start) * 1e3, described(s, a))
    for d in s.divisions:
        start = time.perf_counter()
        how = "proved" if bounds.divisor(d.divisor, d.path) else "inplace"
        note(d.op, how, "", (time.perf_counter() - start) * 1e3, snippet(d.op.result) if d.op.result else d.op.code)
    if any(how == "inplace" for how, _, _, _ in found.values()):
        for op, outer in hoistable(kernel).items():
            if op in found and found[op][0] == "inplace":
                where = f"before the loop at line {outer.loc.line}" if outer.loc else ""
                found[op] = "hoisted", where, *found[op][2:]
    for op, (how, _, _, _) in found.items():
        op.attrs["check"] = how
    kernel.conditions = list(bounds.conditions.values())
    return [_row(op, text, how, ms, detail) for op, (how, detail, ms, text) in found.items()]


def _row(op: Op, text: str, how: str, ms: float, detail: str) -> Check:
    """``gw.unsafe`` waives the proof of disjointness only; its reason is told, and the index is checked as ever."""
    reason = op.attrs.get("unsafe")
    if reason is None:
        return Check(text, op.loc, how, ms, detail)
    return Check(text, op.loc, "unsafe", ms, f"{reason} (index: {how}{', ' + detail if detail else ''})")
