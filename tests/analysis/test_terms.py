"""Terms, ranges, forms and both encodings of the solver, against plain evaluation on small integers."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gridwise.analysis.affine import Pair
from gridwise.analysis.linear import Facts, infeasible, ring
from gridwise.analysis.solver import _Bits, _Integers
from gridwise.analysis.terms import EVAL, LAUNCH, Terms, evaluate
from gridwise.analysis.z3_library import load
from gridwise.ir.types import BOOL, I8, U8, Scalar

ARITHMETIC = ["add", "sub", "mul", "floordiv", "mod", "min", "max", "and", "or", "xor", "shl", "shr"]
UNARY = ["neg", "abs", "not", "popcount", "clz", "ctz"]
COMPARE = ["eq", "ne", "lt", "le", "gt", "ge"]


@st.composite
def tree(draw, depth=3):
    """An integer expression: a leaf's name, a constant, or (operation, operands...)."""
    if depth == 0 or draw(st.integers(0, 4)) == 0:
        return draw(st.one_of(st.sampled_from("xyz"), st.sampled_from([0, 1, 2, 3, 5, 7, 8, 127])))
    kind = draw(st.integers(0, 9))
    if kind == 0:
        return (draw(st.sampled_from(UNARY)), draw(tree(depth - 1)))
    if kind == 1:
        return ("select", draw(condition(depth - 1)), draw(tree(depth - 1)), draw(tree(depth - 1)))
    return (draw(st.sampled_from(ARITHMETIC)), draw(tree(depth - 1)), draw(tree(depth - 1)))


@st.composite
def condition(draw, depth=2):
    if depth > 0 and draw(st.integers(0, 2)) == 0:
        return (draw(st.sampled_from(["and", "or"])), draw(condition(depth - 1)), draw(condition(depth - 1)))
    return (draw(st.sampled_from(COMPARE)), draw(tree(min(depth, 2))), draw(tree(min(depth, 2))))


class World:
    """Three leaves with small ranges, and the two ways to read a tree: as a term, and as a number."""

    def __init__(self, of: Scalar):
        self.t, self.of = Terms(), of
        low = -3 if of.signed else 0
        self.bounds = {"x": (0, 6), "y": (low, 4), "z": (1, 3)}
        self.leaf = {n: self.t.leaf("param", of, LAUNCH, n, lo, hi, n) for n, (lo, hi) in self.bounds.items()}

    def term(self, tree):
        if isinstance(tree, str):
            return self.leaf[tree]
        if isinstance(tree, int):
            return self.t.const(tree, self.of)
        args = [self.term(a) for a in tree[1:]]
        is_bool = tree[0] in COMPARE or (tree[0] in ("and", "or") and args[0].type == BOOL)
        return self.t.make(tree[0], BOOL if is_bool else self.of, *args)

    def number(self, tree, values):
        if isinstance(tree, str):
            return values[tree]
        if isinstance(tree, int):
            return tree
        args = [self.number(a, values) for a in tree[1:]]
        of = BOOL if isinstance(args[0], bool) and tree[0] in ("and", "or") else self.of
        return EVAL[tree[0]](of, *args)

    def assignments(self):
        for values in itertools.product(*(range(lo, hi + 1) for lo, hi in self.bounds.values())):
            yield dict(zip(self.bounds, values))


SETTINGS = settings(max_examples=25, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))


@pytest.mark.parametrize("of", [I8, U8], ids=str)
@SETTINGS
@given(e=tree(), c=condition())
def test_simplified_terms_mean_the_same(of, e, c):
    w = World(of)
    term, cond = w.term(e), w.term(c)
    negated = w.t.negate(cond)
    for values in w.assignments():
        given_values = {w.leaf[n]: v for n, v in values.items()}
        assert evaluate(term, given_values) == w.number(e, values)
        assert evaluate(cond, given_values) == w.number(c, values)
        assert evaluate(negated, given_values) == (not w.number(c, values))


@pytest.mark.parametrize("of", [I8, U8], ids=str)
@SETTINGS
@given(e=tree(), known=st.lists(condition(1), max_size=3), c=condition(1))
def test_ranges_forms_and_conclusions_hold(of, e, known, c):
    w = World(of)
    term, cond = w.term(e), w.term(c)
    facts = Facts([w.term(k) for k in known])
    lo, hi = facts.range(term)
    exact, (wrapped, constant) = facts.exact(term), ring(term)
    concluded = facts.implies(cond)
    for values in w.assignments():
        if not all(w.number(k, values) for k in known):
            continue
        assert not facts.contradiction
        given_values = {w.leaf[n]: v for n, v in values.items()}
        value = w.number(e, values)
        assert lo <= value <= hi
        assert sum(k * evaluate(a, given_values) for a, k in exact[0].items()) + exact[1] == value
        total = sum(k * evaluate(a, given_values) for a, k in wrapped.items()) + constant
        assert (total - value) % (1 << of.bits) == 0
        if concluded:
            assert w.number(c, values)


@pytest.mark.parametrize("of", [I8, U8], ids=str)
@settings(SETTINGS, max_examples=20)
@given(e=tree(), c=condition(1), data=st.data())
def test_encodings_allow_what_happens(of, e, c, data):
    """The bits are exact; the integers allow at least the truth."""
    z3 = load()
    w = World(of)
    term, cond = w.term(e), w.term(c)
    values = data.draw(st.sampled_from(list(w.assignments())))
    right, holds = w.number(e, values), bool(w.number(c, values))
    pair = Pair(None, None, "block", 0)  # type: ignore[arg-type]
    facts = Facts()
    encoders = [_Bits(z3, pair, (facts, facts)), _Integers(z3, pair, (facts, facts), False, True),
                _Integers(z3, pair, (facts, facts), True, True)]
    for encode in encoders:
        x, b = encode(term, 1), encode(cond, 1)
        leaves = [encode(w.leaf[n], 1) == v for n, v in values.items()]
        solver = z3.Solver()
        solver.add(*leaves, *encode.side, x == right, b if holds else z3.Not(b))
        assert solver.check() == z3.sat
        if isinstance(encode, _Bits) and not {"popcount", "clz", "ctz"} & set(str((e, c)).replace("'", " ").split()):
            solver = z3.Solver()
            solver.add(*leaves, *encode.side, z3.Or(x != right, z3.Not(b) if holds else b))
            assert solver.check() == z3.unsat


@SETTINGS
@given(st.lists(st.tuples(st.lists(st.integers(-3, 3), min_size=3, max_size=3), st.integers(-6, 6)), min_size=1,
                max_size=5))
def test_infeasible_has_no_solution(rows):
    w = World(I8)
    atoms = list(w.leaf.values())
    forms = [({a: k for a, k in zip(atoms, row) if k}, constant) for row, constant in rows]
    if infeasible(forms):
        for point in itertools.product(range(-8, 9), repeat=3):
            assert not all(sum(k * v for k, v in zip(row, point)) + constant >= 0 for row, constant in rows)
