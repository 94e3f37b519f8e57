"""Can two threads meet at one element? The question put to Z3; the only place that imports it.

Two encodings of a term. *Bits*: bit-vectors of the real width, exact for everything on integers; good at shifts, masks
and exclusive or, hopeless at products of two unknowns. *Integers*: unbounded, with wrap-around written out where the
facts do not exclude it (``r == a + b - 2**bits * k``); good at products, and bit operations are unknowns. Products
of two unknowns are first replaced by new unknowns with the lemma that makes rows of a matrix disjoint: if
``x - y >= 1`` and ``w >= 0`` then ``x * w - y * w >= w``.

Both encodings only ever allow more than the kernel does, so "unsatisfiable" from either is a proof.
"""

from __future__ import annotations

import threading
from typing import Any

from gridwise.ir.core import Value
from gridwise.ir.types import BOOL
from gridwise.lang.records import dataclass, field

from .affine import Pair
from .linear import Facts
from .summaries import Access, Summary
from .terms import Term, integral
from .z3_library import load

FIRST_STEPS = 300_000  # of Z3, for a first try of each encoding: about 0.2 s, and the same on a busy machine
FIRST_MS = 1000
SMALL = 4096  # counterexamples are looked for among numbers below this first

_COMPARE = frozenset(("eq", "ne", "lt", "le", "gt", "ge"))
_BITWISE = frozenset(("and", "or", "xor", "not", "shl", "shr", "popcount", "clz", "ctz"))


@dataclass
class Model:
    """An assignment that the solver found: what to launch, and which two threads to look at."""

    leaves: dict[Term, int] = field(default_factory=dict)  # inputs that all threads share
    threads: tuple[dict[Term, int], dict[Term, int]] = field(default_factory=lambda: ({}, {}))  # each one's own
    loads: dict[tuple[Value, tuple[str, ...], tuple[int, ...]], int] = field(default_factory=dict)


@dataclass
class Answer:
    """``proved`` with the encoding that did it, or a model if there is one; ``final`` if more time changes nothing."""

    proved: bool
    by: str = ""
    model: Model | None = None
    final: bool = False


class _Encoder:
    """Terms of two threads as Z3 expressions."""

    def __init__(self, z3: Any, pair: Pair, facts: tuple[Facts, Facts]):
        self.z3, self.pair, self.facts = z3, pair, facts
        self.known: dict[tuple[Term, int], Any] = {}
        self.given: dict[tuple[Term, int], Any] = {}  # leaves and loads
        self.side: list[Any] = []  # what holds of the unknowns that were introduced

    def tag(self, t: Term, which: int) -> int:
        return 0 if self.pair.shared(t) else which

    def __call__(self, t: Term, which: int) -> Any:
        key = t, self.tag(t, which)
        out = self.known.get(key)
        if out is None:
            out = self.known[key] = self.leaf(t, key[1]) if t.code == "leaf" else self.term(t, which)
        return out

    def name(self, t: Term, tag: int) -> str:
        return f"v{t.serial}.{tag}"

    def loaded(self, t: Term) -> str:
        """The function that an array is: equal indices give equal values, for every thread."""
        return f"load{id(t.data[0])}.{'.'.join(t.data[1])}"

    def leaf(self, t: Term, tag: int) -> Any:
        raise NotImplementedError

    def term(self, t: Term, which: int) -> Any:
        raise NotImplementedError

    def boolean(self, t: Term, which: int) -> Any:
        """A term of type bool; None if it is not one of the common ones."""
        z3 = self.z3
        if t.code == "const":
            return z3.BoolVal(bool(t.data))
        if t.type != BOOL:
            return None
        if t.code == "leaf" or not all(integral(a.type) for a in t.args):
            return z3.Bool(self.name(t, self.tag(t, which)))
        args = [self(a, which) for a in t.args]
        if t.code in ("and", "or", "not", "xor"):
            return {"and": z3.And, "or": z3.Or, "not": z3.Not, "xor": z3.Xor}[t.code](*args)
        if t.code == "select":
            return z3.If(*args)
        if t.code == "eq":
            return args[0] == args[1]
        if t.code == "ne":
            return args[0] != args[1]
        if t.code == "cast":
            return args[0] != 0
        return None

    def unknown_bool(self, t: Term, which: int) -> Any:
        return self.z3.Bool(self.name(t, self.tag(t, which)))


class _Bits(_Encoder):
    label = "bits"

    def leaf(self, t: Term, tag: int) -> Any:
        z3 = self.z3
        if t.type == BOOL:
            return z3.Bool(self.name(t, tag))
        if not t.type.is_int:
            return z3.BitVec(self.name(t, tag), t.type.bits)
        v = self.given[t, tag] = z3.BitVec(self.name(t, tag), t.type.bits)
        self.bound(v, t, t.data.lo, t.data.hi)
        return v

    def bound(self, v: Any, t: Term, lo: int, hi: int) -> None:
        if lo > t.type.min and lo <= t.type.max:
            self.side.append(v >= lo if t.type.signed else self.z3.UGE(v, lo))
        if hi < t.type.max and hi >= t.type.min:
            self.side.append(v <= hi if t.type.signed else self.z3.ULE(v, hi))

    def fit(self, v: Any, source: Term, bits: int) -> Any:
        """A value resized to ``bits``, by its sign if it has one."""
        z3 = self.z3
        if source.type == BOOL:
            return z3.If(v, z3.BitVecVal(1, bits), z3.BitVecVal(0, bits))
        if source.type.bits > bits:
            return z3.Extract(bits - 1, 0, v)
        if source.type.bits < bits:
            extend = z3.SignExt if source.type.signed else z3.ZeroExt
            return extend(bits - source.type.bits, v)
        return v

    def term(self, t: Term, which: int) -> Any:
        z3 = self.z3
        if t.code == "const" and t.type.is_int:
            return z3.BitVecVal(t.data, t.type.bits)
        known = self.boolean(t, which)
        if known is not None:
            return known
        if t.type == BOOL:
            a, b = (self(x, which) for x in t.args)
            signed = t.args[0].type.signed
            return {"lt": (z3.ULT, lambda: a < b), "le": (z3.ULE, lambda: a <= b), "gt": (z3.UGT, lambda: a > b),
                    "ge": (z3.UGE, lambda: a >= b)}[t.code][1 if signed else 0](*([] if signed else [a, b]))
        bits = t.type.bits
        if t.code == "load" and t.type.is_int:
            args = [self(a, which) for a in t.args]
            f = z3.Function(self.loaded(t), *(a.sort() for a in args), z3.BitVecSort(bits))
            out = self.given[t, self.tag(t, which)] = f(*args)
            return out
        if not t.type.is_int or not all(integral(a.type) for a in t.args) or t.code in ("popcount", "clz", "ctz"):
            v = z3.BitVec(self.name(t, self.tag(t, which)), bits)
            if t.type.is_int:
                self.bound(v, t, *self.facts[which - 1].range(t))
            return v
        if t.code == "select":
            return z3.If(*(self(a, which) for a in t.args))
        if t.code == "cast":
            return self.fit(self(t.args[0], which), t.args[0], bits)
        args = [self.fit(self(a, which), a, bits) for a in t.args]
        return self.arithmetic(t, args)

    def arithmetic(self, t: Term, args: list[Any]) -> Any:
        z3, a = self.z3, args[0]
        b: Any = args[1] if len(args) > 1 else None
        signed, zero = t.type.signed, self.z3.BitVecVal(0, t.type.bits)
        less = (lambda x, y: x < y) if signed else z3.ULT
        if t.code in ("floordiv", "mod"):
            if not signed:
                out = z3.UDiv(a, b) if t.code == "floordiv" else z3.URem(a, b)
            else:
                rest = z3.SRem(a, b)
                inexact = z3.And(rest != 0, (rest < 0) != (b < 0))
                out = z3.If(inexact, a / b - 1, a / b) if t.code == "floordiv" else z3.If(inexact, rest + b, rest)
            return z3.If(b == 0, zero, out)
        if t.code == "shl":
            return z3.If(z3.ULT(b, t.type.bits), a << b, zero)
        if t.code == "shr":
            far = z3.If(a < 0, zero - 1, zero) if signed else zero
            return z3.If(z3.ULT(b, t.type.bits), a >> b if signed else z3.LShR(a, b), far)
        simple = {
            "add": lambda: a + b, "xadd": lambda: a + b, "sub": lambda: a - b, "mul": lambda: a * b,
            "xmul": lambda: a * b, "neg": lambda: -a, "not": lambda: ~a, "and": lambda: a & b, "or": lambda: a | b,
            "xor": lambda: a ^ b, "min": lambda: z3.If(less(a, b), a, b), "max": lambda: z3.If(less(a, b), b, a),
            "abs": lambda: z3.If(a < 0, -a, a) if signed else a,
        }
        return simple[t.code]()


class _Integers(_Encoder):
    label = "integers"

    def __init__(self, z3: Any, pair: Pair, facts: tuple[Facts, Facts], abstract: bool, lemmas: bool):
        super().__init__(z3, pair, facts)
        self.abstract = abstract  # products of unknowns are unknowns
        self.lemmas = lemmas
        self.products: dict[tuple[int, int], tuple[Any, Any, Any]] = {}
        self.quotients: dict[tuple[int, int], tuple[Any, Any, Any, Any]] = {}
        self.approximate = False
        self.count = 0

    def fresh(self) -> Any:
        self.count += 1
        return self.z3.Int(f"k{self.count}")

    def between(self, v: Any, lo: int, hi: int) -> Any:
        self.side += [v >= lo, v <= hi]
        return v

    def leaf(self, t: Term, tag: int) -> Any:
        if t.type == BOOL:
            return self.z3.Bool(self.name(t, tag))
        v = self.z3.Int(self.name(t, tag))
        if t.type.is_int:
            self.given[t, tag] = v
            self.between(v, t.data.lo, t.data.hi)
        return v

    def unknown(self, t: Term, which: int) -> Any:
        self.approximate = True
        v = self.z3.Int(self.name(t, self.tag(t, which)))
        return self.between(v, *self.facts[which - 1].range(t)) if t.type.is_int else v

    def wrapped(self, t: Term, value: Any, which: int) -> Any:
        """``value`` reduced to the type of ``t``; as it is where the facts exclude wrap-around."""
        if t.code[0] == "x":
            return value
        facts = self.facts[which - 1]
        if facts.exact(t) != ({t: 1}, 0):
            return value
        if t.code == "mul":
            (alo, ahi), (blo, bhi) = (facts.range(a) for a in t.args)
            corners = [x * y for x in (alo, ahi) for y in (blo, bhi)]
            if t.type.min <= min(corners) and max(corners) <= t.type.max:
                return value
        k = self.fresh()
        r = value - k * (1 << t.type.bits)
        self.side += [r >= t.type.min, r <= t.type.max]
        if t.code in ("add", "sub"):
            self.side += [k >= -1, k <= 1]
        return r

    def product(self, a: Any, b: Any) -> Any:
        z3 = self.z3
        if z3.is_int_value(a) or z3.is_int_value(b):
            return a * b
        key = min(a.get_id(), b.get_id()), max(a.get_id(), b.get_id())
        if key in self.products:
            return self.products[key][2]
        p = self.fresh() if self.abstract else a * b
        if self.abstract:
            self.approximate = True
        if self.lemmas:
            self.side += [z3.Implies(z3.And(a >= 0, b >= 0), p >= 0), z3.Implies(z3.Or(a == 0, b == 0), p == 0),
                          z3.Implies(z3.And(a >= 1, b >= 0), p >= b), z3.Implies(z3.And(b >= 1, a >= 0), p >= a),
                          z3.Implies(z3.And(a <= -1, b >= 0), p <= -b), z3.Implies(z3.And(b <= -1, a >= 0), p <= -a)]
            for c, d, q in self.products.values():
                for (x, w), (y, v) in (((a, b), (c, d)), ((b, a), (c, d)), ((a, b), (d, c)), ((b, a), (d, c))):
                    if w.eq(v):
                        self.side.append(z3.Implies(w >= 0, z3.And(
                            z3.Implies(x - y >= 1, p - q >= w), z3.Implies(y - x >= 1, q - p >= w),
                            z3.Implies(x == y, p == q))))
        self.products[key] = a, b, p
        return p

    def term(self, t: Term, which: int) -> Any:
        z3 = self.z3
        if t.code == "const" and t.type.is_int:
            return z3.IntVal(t.data)
        known = self.boolean(t, which)
        if known is not None:
            return known
        if t.type == BOOL:
            a, b = (self(x, which) for x in t.args)
            return {"lt": lambda: a < b, "le": lambda: a <= b, "gt": lambda: a > b, "ge": lambda: a >= b}[t.code]()
        if t.code == "load" and t.type.is_int:
            args = [self(a, which) for a in t.args]
            f = z3.Function(self.loaded(t), *(z3.IntSort() for _ in args), z3.IntSort())
            out = self.given[t, self.tag(t, which)] = f(*args)
            return self.between(out, t.type.min, t.type.max)
        if not t.type.is_int or not all(integral(a.type) for a in t.args):
            return self.unknown(t, which)
        return self.arithmetic(t, which)

    def arithmetic(self, t: Term, which: int) -> Any:
        z3 = self.z3
        args = [self(a, which) for a in t.args]
        a, b = args[0], args[-1]
        k = t.args[-1].data if t.args[-1].code == "const" else None
        if t.code in ("add", "xadd", "sub"):
            return self.wrapped(t, a - b if t.code == "sub" else a + b, which)
        if t.code in ("mul", "xmul"):
            return self.wrapped(t, self.product(a, b), which)
        if t.code == "neg":
            return self.wrapped(t, -a, which)
        if t.code == "select":
            return z3.If(*args)
        if t.code in ("min", "max"):
            return z3.If(a < b if t.code == "min" else a > b, a, b)
        if t.code == "abs":
            return self.wrapped(t, z3.If(a < 0, -a, a), which)
        if t.code == "cast":
            if t.args[0].type == BOOL:
                return z3.If(a, 1, 0)
            return self.wrapped(t, a, which)
        if t.code == "shl" and k is not None and 0 <= k < t.type.bits:
            return self.wrapped(t, a * (1 << k), which)
        if t.code == "shr" and k is not None and 0 <= k < t.type.bits:
            return self.divided(a, z3.IntVal(1 << k), True)[0]
        if t.code == "and" and k is not None and k > 0 and k & (k + 1) == 0:
            return self.divided(a, z3.IntVal(k + 1), True)[1]
        if t.code in ("floordiv", "mod"):
            positive = self.facts[which - 1].range(t.args[1])[0] > 0
            q, r = self.divided(a, b, positive)
            out = q if t.code == "floordiv" else r
            return out if positive else z3.If(b == 0, 0, out)
        return self.unknown(t, which)

    def divided(self, a: Any, b: Any, positive: bool) -> tuple[Any, Any]:
        """Quotient and remainder, rounded down: a == b * q + r."""
        z3 = self.z3
        key = a.get_id(), b.get_id()
        if key not in self.quotients:
            q, r = self.fresh(), self.fresh()
            up, down = z3.And(r >= 0, r < b), z3.And(r <= 0, r > b)
            self.side += [a == self.product(q, b) + r, up if positive else z3.If(b > 0, up, z3.Or(down, b == 0)),
                          z3.Implies(z3.And(a >= 0, b > 0), z3.And(q >= 0, q <= a))]
            self.quotients[key] = a, b, q, r  # the operands are kept so that their numbers stay theirs
        return self.quotients[key][2:]


def _codes(terms: list[Term]) -> set[str]:
    """The operations in some terms; a product of two unknowns counts as "product"."""
    out: set[str] = set()
    stack, seen = list(terms), set()
    while stack:
        t = stack.pop()
        if t in seen or (t.type != BOOL and not t.type.is_int):
            continue
        seen.add(t)
        if t.code in ("mul", "xmul", "floordiv", "mod") and t.args[1].code != "const" and t.args[0].code != "const":
            out.add("product")
        if t.type != BOOL:
            out.add(t.code)
        stack.extend(t.args)
    return out


def _plan(codes: set[str], rules: frozenset[str], limit_ms: int, stage: int) -> list[tuple[str, int]]:
    """Which encodings to try, in order, and for how long: the likeliest, then the others, then each for long."""
    bits, products = bool(codes & _BITWISE), "product" in codes
    integers = ["lemma", "integers"] if products else ["integers"]
    order = [n for n in (["bits", *integers] if bits and not products else [*integers, "bits"]) if n in rules]
    if stage == 2:
        return [(name, limit_ms) for name in order]
    return [(name, min(FIRST_MS, limit_ms)) for name in (order[:1] if stage == 0 else order[1:])]


_one_at_a_time = threading.Lock()  # Z3's objects belong to one context, and kernels are compiled by several threads


STAGES = 3


def meet(summary: Summary, pair: Pair, rules: frozenset[str], limit_ms: int, stage: int) -> Answer:
    """Look for two different threads that reach ``pair`` at one element.

    Stage 0 and 1 give each encoding a moment; stage 2 gives each ``limit_ms``.
    """
    conditions = [(pair.conditions(summary, which), which) for which in (1, 2)]
    terms = [*pair.a.index, *pair.b.index, *(c for cs, _ in conditions for c in cs)]
    out = Answer(False)
    for name, ms in _plan(_codes(terms), rules, limit_ms, stage):
        with _one_at_a_time:  # every object of the query is gone when it is released
            verdict, model, exact = _ask(summary, pair, conditions, name, ms, "lemma" in rules)
        if verdict == "unsat":
            return Answer(True, name)
        if verdict == "sat":
            if out.model is None or exact:
                out.model = model
            out.final = name == "integers" and exact  # it knows of wrap-around, and of what cannot wrap
            if out.final:
                break
    return out


def _ask(summary: Summary, pair: Pair, conditions: list[tuple[tuple[Term, ...], int]], name: str, ms: int,
         lemmas: bool) -> tuple[str, Model | None, bool]:
    """One query in one encoding: the verdict, a model if there is one, and whether the encoding is exact."""
    z3 = load()
    facts = pair.facts(summary, 1), pair.facts(summary, 2)
    encode = _Bits(z3, pair, facts) if name == "bits" else _Integers(z3, pair, facts, name == "lemma", lemmas)
    solver = z3.Solver()
    solver.set("timeout", ms)
    if ms <= FIRST_MS:
        solver.set("rlimit", FIRST_STEPS)
    asserted = [encode(c, which) for cs, which in conditions for c in cs]
    asserted += [encode(x, 1) == encode(y, 2) for x, y in zip(
        pair.a.index[: pair.axes], pair.b.index[: pair.axes], strict=True)]
    asserted.append(z3.Or([encode(p, 1) != encode(p, 2) for p in pair.positions(summary)]))
    solver.add(*asserted, *encode.side)
    verdict = str(solver.check())
    if verdict != "sat":
        return verdict, None, True
    return verdict, _model(z3, solver, encode), not (isinstance(encode, _Integers) and encode.approximate)


def holds(summary: Summary, access: Access, facts: Facts, goal: Term) -> bool:
    """Does ``goal`` follow from the conditions of one access? With the lemma for products; for what is not linear."""
    with _one_at_a_time:
        z3 = load()
        encode = _Integers(z3, Pair(access, access, "block", 0), (facts, facts), True, True)
        solver = z3.Solver()
        solver.set("timeout", FIRST_MS)
        solver.set("rlimit", FIRST_STEPS)
        asserted = [encode(c, 1) for c in (*access.path, *summary.given)]
        asserted.append(z3.Not(encode(goal, 1)))
        solver.add(*asserted, *encode.side)
        return str(solver.check()) == "unsat"


def _model(z3: Any, solver: Any, encode: _Encoder) -> Model:
    """The assignment, in small numbers if there is one."""
    found = solver.model()
    solver.push()
    small = [v for (t, _), v in encode.given.items() if t.code == "leaf" and t.data.kind != "tid"]
    solver.add(*(z3.And(v >= -SMALL, v <= SMALL) for v in small))
    solver.set("timeout", FIRST_MS // 4)
    if solver.check() == z3.sat:
        found = solver.model()
    solver.pop()

    def number(v: Any, t: Term) -> int:
        value = found.eval(v, model_completion=True)
        if isinstance(encode, _Bits):
            return int(value.as_signed_long() if t.type.signed else value.as_long())
        return int(value.as_long())

    out = Model()
    for (t, tag), v in encode.given.items():
        if t.code == "load":
            which = tag or 1
            index = tuple(number(encode(a, which), a) for a in t.args)
            out.loads[t.data[0], t.data[1], index] = number(v, t)
        elif tag == 0:
            out.leaves[t] = number(v, t)
        else:
            out.threads[tag - 1][t] = number(v, t)
    return out
