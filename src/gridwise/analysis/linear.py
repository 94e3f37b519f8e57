"""Linear reasoning about terms: forms, ranges, and infeasibility by elimination. Needs no solver.

A *form* is ``({atom: coefficient}, constant)``. A *ring* form equals its term modulo ``2**bits``, whatever wraps.
An *exact* form equals it in the integers; it exists where the facts show that nothing wraps. Inequalities are
exact forms that are at least 0.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import gcd

from gridwise.ir.types import BOOL

from .terms import Term, integral

Form = tuple[dict[Term, int], int]
# An atom as it is, or as one of two threads sees it.
Atom = Term | tuple[Term, int]
Ineq = tuple[dict[Atom, int], int]
MAX_INEQS = 160  # elimination gives up above this many: the solver may try


def add_forms(a: Form, b: Form, k: int = 1) -> Form:
    """a + k * b."""
    out = dict(a[0])
    for atom, c in b[0].items():
        n = out.get(atom, 0) + k * c
        if n:
            out[atom] = n
        else:
            out.pop(atom, None)
    return out, a[1] + k * b[1]


def ring(term: Term) -> Form:
    """A form equal to ``term`` modulo 2**bits of its type."""
    code, args = term.code, term.args
    if code == "const":
        return {}, term.data
    if code in ("add", "xadd", "sub"):
        return add_forms(ring(args[0]), ring(args[1]), -1 if code == "sub" else 1)
    if code in ("mul", "xmul"):
        a, b = ring(args[0]), ring(args[1])
        if not a[0] or not b[0]:
            k, other = (a[1], b) if not a[0] else (b[1], a)
            return ({x: c * k for x, c in other[0].items()} if k else {}), other[1] * k
    if code == "neg":
        return add_forms(({}, 0), ring(args[0]), -1)
    if code == "not" and term.type != BOOL:
        return add_forms(({}, -1), ring(args[0]), -1)
    if code == "shl" and args[1].code == "const" and 0 <= args[1].data < term.type.bits:
        return add_forms(({}, 0), ring(args[0]), 1 << args[1].data)
    if code == "cast" and args[0].type.is_int and args[0].type.bits >= term.type.bits:
        return ring(args[0])
    return {term: 1}, 0


class Facts:
    """What follows from a conjunction of conditions: ranges of atoms, and inequalities between them."""

    def __init__(self, path: Iterable[Term] = (), given: Facts | None = None):
        self.ranges: dict[Term, tuple[int, int]] = dict(given.ranges) if given else {}
        self.ineqs: list[Form] = list(given.ineqs) if given else []
        self.known: set[Term] = set(given.known) if given else set()
        self.forms: dict[Term, Form] = {}
        self.contradiction: bool = given.contradiction if given else False
        for condition in path:
            self.add(condition)

    # -- ranges ------------------------------------------------------------------------------------------
    def range(self, term: Term) -> tuple[int, int]:
        """Inclusive bounds of an integer term."""
        if term.code == "const":
            return int(term.data), int(term.data)
        known = self.ranges.get(term)
        if known is None:
            known = self.ranges[term] = self._range(term)
        return known

    def _range(self, t: Term) -> tuple[int, int]:
        lo, hi = (t.data.lo, t.data.hi) if t.code == "leaf" else (t.type.min, t.type.max)
        if t.code in ("leaf", "load") or not t.args or not integral(t.args[0].type):
            return lo, hi
        if t.code in ("xadd", "xmul", "add", "sub", "mul", "neg", "shl"):
            exact = self.exact(t)
            if exact != ({t: 1}, 0):
                a, b = self.span(exact)
                return (a, b) if t.code[0] == "x" else (max(a, lo), min(b, hi))
        r = [self.range(a) for a in t.args]
        if t.code in ("mul", "xmul"):
            corners = [x * y for x in r[0] for y in r[1]]
            a, b = min(corners), max(corners)
            return (a, b) if t.code == "xmul" or (lo <= a and b <= hi) else (lo, hi)
        if t.code == "and" and (r[0][0] >= 0 or r[1][0] >= 0):
            return 0, min(x[1] for x in r if x[0] >= 0)
        if t.code in ("or", "xor") and r[0][0] >= 0 and r[1][0] >= 0:
            return 0, (1 << max(r[0][1].bit_length(), r[1][1].bit_length())) - 1
        if t.code in ("floordiv", "mod") and r[1][0] > 0:
            if t.code == "mod":
                return (max(0, r[0][0]), min(r[0][1], r[1][1] - 1)) if r[0][0] >= 0 and r[0][1] < r[1][0] else (
                    0, min(r[1][1] - 1, r[0][1]) if r[0][0] >= 0 else r[1][1] - 1)
            quotients = [x // y for x in r[0] for y in r[1]]
            return min(quotients), max(quotients)
        if t.code == "shr" and r[1][0] >= 0 and r[1][1] < t.type.bits:
            shifted = [x >> y for x in r[0] for y in r[1]]
            return min(shifted), max(shifted)
        if t.code in ("min", "max"):
            pick = min if t.code == "min" else max
            return pick(r[0][0], r[1][0]), pick(r[0][1], r[1][1])
        if t.code == "abs" and r[0][0] > t.type.min:
            ends = [abs(x) for x in r[0]]
            return (0 if r[0][0] <= 0 <= r[0][1] else min(ends)), max(ends)
        if t.code == "select":
            return min(r[1][0], r[2][0]), max(r[1][1], r[2][1])
        if t.code == "cast":
            return r[0] if lo <= r[0][0] and r[0][1] <= hi else (lo, hi)
        if t.code in ("popcount", "clz", "ctz"):
            return 0, t.type.bits
        return lo, hi

    def span(self, form: Form) -> tuple[int, int]:
        """Bounds of a form from the ranges of its atoms."""
        lo = hi = form[1]
        for atom, c in form[0].items():
            a, b = self.range(atom)
            lo, hi = (lo + c * a, hi + c * b) if c > 0 else (lo + c * b, hi + c * a)
        return lo, hi

    # -- exact forms -------------------------------------------------------------------------------------
    def exact(self, term: Term) -> Form:
        """A form equal to ``term`` in the integers; the term itself as an atom where it might wrap."""
        known = self.forms.get(term)
        if known is None:
            known = self.forms[term] = self._exact(term)
        return known

    def _exact(self, t: Term) -> Form:
        if t.code == "const":
            return {}, int(t.data)
        if not t.args or not integral(t.args[0].type):
            return {t: 1}, 0
        form: Form | None = None
        if t.code in ("add", "xadd", "sub"):
            form = add_forms(self.exact(t.args[0]), self.exact(t.args[1]), -1 if t.code == "sub" else 1)
        elif t.code in ("mul", "xmul"):
            a, b = self.exact(t.args[0]), self.exact(t.args[1])
            if not a[0] or not b[0]:
                k, other = (a[1], b) if not a[0] else (b[1], a)
                form = ({x: c * k for x, c in other[0].items()} if k else {}), other[1] * k
        elif t.code == "neg":
            form = add_forms(({}, 0), self.exact(t.args[0]), -1)
        elif t.code == "shl" and t.args[1].code == "const" and 0 <= t.args[1].data < t.type.bits:
            form = add_forms(({}, 0), self.exact(t.args[0]), 1 << t.args[1].data)
        elif t.code == "cast" and t.args[0].type.is_int:
            form = self.exact(t.args[0])
        if form is None:
            return {t: 1}, 0
        lo, hi = self.span(form)
        fits = t.code[0] == "x" or (t.type.min <= lo and hi <= t.type.max)
        return form if fits else ({t: 1}, 0)

    # -- conditions --------------------------------------------------------------------------------------
    def add(self, c: Term) -> None:
        """Take a condition as true."""
        if c in self.known:
            return
        self.known.add(c)
        if c.code == "const":
            self.contradiction |= not c.data
        elif c.code == "and":
            self.add(c.args[0])
            self.add(c.args[1])
        elif c.code in ("lt", "le", "gt", "ge", "eq", "ne") and integral(c.args[0].type) and c.args[0].type != BOOL:
            a, b = self.exact(c.args[0]), self.exact(c.args[1])
            difference = add_forms(a, b, -1)
            if c.code == "ne":
                lo, hi = self.span(difference)
                if lo == 0:
                    self.at_least((difference[0], difference[1] - 1))
                elif hi == 0:
                    self.at_least(add_forms(({}, -1), difference, -1))
                return
            if c.code in ("gt", "ge", "eq"):
                self.at_least((difference[0], difference[1] - (c.code == "gt")))
            if c.code in ("lt", "le", "eq"):
                self.at_least(add_forms(({}, -1 if c.code == "lt" else 0), difference, -1))

    def at_least(self, form: Form, rounds: int = 2) -> None:
        """Take ``form >= 0`` as a fact and narrow ranges by it."""
        coefficients, constant = form
        if not coefficients:
            self.contradiction |= constant < 0
            return
        self.ineqs.append(form)
        if self._narrow(form):
            for _ in range(rounds):
                if not sum(self._narrow(f) for f in self.ineqs):
                    break
            self.forms.clear()  # more may be exact now
            for t in [t for t in self.ranges if t.code not in ("leaf", "load")]:
                a, b = self.ranges[t]
                lo, hi = self._range(t)
                self.ranges[t] = max(a, lo), min(b, hi)

    def _narrow(self, form: Form) -> bool:
        changed = False
        _, total = self.span(form)
        for atom, c in form[0].items():
            lo, hi = self.range(atom)
            rest = total - (c * hi if c > 0 else c * lo)  # the most that the others can give
            if c > 0:
                bound = -(rest // c)  # c * atom >= -rest
                if bound > lo:
                    lo, changed = bound, True
            else:
                bound = rest // -c
                if bound < hi:
                    hi, changed = bound, True
            if changed:
                self.ranges[atom] = lo, hi
                if lo > hi:
                    self.contradiction = True
                    return False
        return changed

    # -- questions ---------------------------------------------------------------------------------------
    def implies(self, c: Term) -> bool:
        """Does the condition follow, as far as linear reasoning goes?"""
        if self.contradiction or c in self.known:
            return True
        if c.code == "const":
            return bool(c.data)
        if c.code == "and":
            return self.implies(c.args[0]) and self.implies(c.args[1])
        if c.code == "or":
            return self.implies(c.args[0]) or self.implies(c.args[1])
        if c.code in ("lt", "le", "gt", "ge", "eq", "ne") and c.args[0].type.is_int:
            d = add_forms(self.exact(c.args[0]), self.exact(c.args[1]), -1)
            up, down = (d[0], d[1]), add_forms(({}, 0), d, -1)
            if c.code == "eq":
                return self.proves(up) and self.proves(down)
            if c.code == "ne":
                return self.proves((up[0], up[1] - 1)) or self.proves((down[0], down[1] - 1))
            form = up if c.code in ("gt", "ge") else down
            return self.proves((form[0], form[1] - (c.code in ("gt", "lt"))))
        return False

    def proves(self, form: Form) -> bool:
        """Is ``form >= 0`` implied?"""
        if self.contradiction or self.span(form)[0] >= 0:
            return True
        negated = add_forms(({}, -1), form, -1)
        return self.infeasible_with([negated])

    def infeasible_with(self, forms: list[Form]) -> bool:
        """Is there no integer assignment with these forms, too, at least 0?"""
        return infeasible([*self.inequalities(forms), *forms])  # type: ignore[list-item]

    def inequalities(self, goals: list[Form]) -> list[Form]:
        """The facts connected to the atoms of ``goals``, ranges and the meaning of atoms included."""
        atoms: set[Term] = set()
        for f in goals:
            atoms.update(f[0])
        picked: list[Form] = []
        left = list(self.ineqs)
        done: set[Term] = set()
        while True:
            for atom in list(atoms - done):
                done.add(atom)
                for f in self._meaning(atom):
                    atoms.update(f[0])
                    picked.append(f)
            more = [f for f in left if not atoms.isdisjoint(f[0])]
            left = [f for f in left if atoms.isdisjoint(f[0])]
            picked += more
            for f in more:
                atoms.update(f[0])
            if not more and atoms <= done:
                break
        for atom in atoms:
            lo, hi = self.range(atom)
            picked += [({atom: 1}, -lo), ({atom: -1}, hi)]
        return picked

    def _meaning(self, t: Term) -> list[Form]:
        """Inequalities that hold of an atom because of what it computes."""
        if t.code in ("min", "max"):
            sign = 1 if t.code == "min" else -1
            return [add_forms(add_forms(({}, 0), self.exact(a), sign), ({t: 1}, 0), -sign) for a in t.args]
        if t.code in ("floordiv", "shr") and t.args[1].code == "const":
            k = t.args[1].data if t.code == "floordiv" else 1 << t.args[1].data if 0 <= t.args[1].data < 63 else 0
            if k > 0:
                rest = add_forms(self.exact(t.args[0]), ({t: 1}, 0), -k)  # 0 <= x - k*q <= k - 1
                return [rest, add_forms(({}, k - 1), rest, -1)]
        if t.code == "mod" and self.range(t.args[1])[0] > 0:
            out = [add_forms(self.exact(t.args[1]), ({t: 1}, 1), -1)]  # below the divisor
            if self.range(t.args[0])[0] >= 0:
                out.append(add_forms(self.exact(t.args[0]), ({t: 1}, 0), -1))  # at most the dividend
            if t.args[1].code == "const":  # x % k == x - k * (x // k), both ways
                rest = add_forms(add_forms(self.exact(t.args[0]), ({t: 1}, 0), -1), ({t.data: 1}, 0), -t.args[1].data)
                out += [rest, add_forms(({}, 0), rest, -1)]
            return out
        if t.code == "and":
            return [add_forms(self.exact(a), ({t: 1}, 0), -1) for a in t.args if self.range(a)[0] >= 0]
        return []


def _order(entry: tuple[Atom, int]) -> tuple[int, int]:
    atom = entry[0]
    return (atom[0].serial, atom[1]) if isinstance(atom, tuple) else (atom.serial, 0)


def infeasible(ineqs: list[Ineq]) -> bool:
    """Fourier-Motzkin elimination: True if the inequalities (each form >= 0) have no rational solution.

    Constants are tightened by the gcd of the coefficients, so some integer contradictions are seen too.
    False means "not shown".
    """
    work: dict[tuple[tuple[Atom, int], ...], int] = {}

    def put(form: Ineq) -> bool:
        coefficients, constant = form
        if not coefficients:
            return constant < 0
        g = gcd(*coefficients.values())
        key = tuple(sorted(((a, c // g) for a, c in coefficients.items()), key=_order))
        low = constant // g
        work[key] = min(work.get(key, low), low)
        return False

    if any(put(f) for f in ineqs):
        return True
    while work:
        ups: dict[Atom, int] = {}
        downs: dict[Atom, int] = {}
        for key in work:
            for atom, c in key:
                side = ups if c > 0 else downs
                side[atom] = side.get(atom, 0) + 1
        atom = min({*ups, *downs}, key=lambda a: ups.get(a, 0) * downs.get(a, 0) - ups.get(a, 0) - downs.get(a, 0))
        if ups.get(atom, 0) * downs.get(atom, 0) + len(work) > MAX_INEQS:
            return False
        positive: list[Ineq] = []
        negative: list[Ineq] = []
        for key in [k for k in work if any(a == atom for a, _ in k)]:
            form: Ineq = dict(key), work.pop(key)
            (positive if form[0][atom] > 0 else negative).append(form)
        for p, pk in positive:
            for n, nk in negative:
                a, b = -n[atom], p[atom]
                merged = {x: c * a for x, c in p.items() if x != atom}
                for x, c in n.items():
                    if x != atom:
                        total = merged.get(x, 0) + c * b
                        if total:
                            merged[x] = total
                        else:
                            merged.pop(x, None)
                if put((merged, pk * a + nk * b)):
                    return True
    return False
