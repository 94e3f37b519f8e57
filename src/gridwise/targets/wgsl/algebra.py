"""Float operations that a driver's algebra would change, found so that the emitter can hide them.

The language allows contraction to FMA and nothing else (rule 11). WGSL allows reassociation, and drivers use it:
Mesa folds ``(a + b) - a`` to ``b``, ``x - x`` and ``x * 0.0`` to 0, ``a * b + a * c`` to ``a * (b + c)``. A value in
``protected`` is passed through ``gw_exact``; a zero in one of ``opaque_zeros`` is made at run time. Patterns
are matched through variables too. Nothing else is hidden: products that feed sums stay free to contract.
"""

from __future__ import annotations

from gridwise.ir import Kernel, Op, Value, ops
from gridwise.ir.types import Scalar

SUM = frozenset({"add", "sub"})
ZERO_SENSITIVE = frozenset({"add", "sub", "mul", "div", "fma"})


def _is_float(v: Value) -> bool:
    return isinstance(v.type, Scalar) and v.type.is_float


def _constant(v: Value, depth: int = 4) -> bool:
    """Whether a value is known before the program runs: a constant, or what functions make of constants."""
    op = v.op
    if op is None or op.regions or op.code in ("get", "load", "vload", "atomic"):
        return False
    return op.code == "const" or (depth > 0 and bool(op.operands) and all(_constant(x, depth - 1) for x in op.operands))


def _zero(v: Value) -> bool:
    return v.op is not None and v.op.code == "const" and v.op.attrs["value"] == 0


def _is_get(v: Value) -> bool:
    return v.op is not None and v.op.code == "get"


def _unsigned(v: Value) -> Value:
    """A value without the ``neg`` and ``abs`` around it."""
    while v.op is not None and v.op.code in ("neg", "abs"):
        v = v.op.operands[0]
    return v


class Fragile:
    """The float values of one kernel to hide, and the operations whose constant zeros must be hidden."""

    def __init__(self, kernel: Kernel):
        self.sets: dict[Value, list[Value]] = {}
        for op in kernel.walk():
            if op.code == "set" and _is_float(op.operands[1]):
                self.sets.setdefault(op.operands[0], []).append(op.operands[1])
        self.held: dict[Value, set[Value]] = {}
        self.chosen: dict[Value, frozenset[Value]] = {}
        self.close()
        self.protected: set[Value] = set()
        self.opaque_zeros: set[int] = set()
        self.first_operand: set[int] = set()  # operations on one value twice: the first use of it is hidden
        for op in kernel.walk():
            if op.operands and _is_float(op.operands[-1]):
                self.visit(op)

    def leaves(self, v: Value) -> frozenset[Value]:
        """What a value may be, up to sign: either side of a ``select``, since a driver may find both to be one."""
        v = _unsigned(v)
        if v.op is None or v.op.code != "select":
            return frozenset((v,))
        if v not in self.chosen:
            self.chosen[v] = self.leaves(v.op.operands[1]) | self.leaves(v.op.operands[2])
        return self.chosen[v]

    def close(self) -> None:
        """What each variable may hold: the results set into it, also by way of other variables."""
        leaves = {v: frozenset[Value]().union(*map(self.leaves, values)) for v, values in self.sets.items()}
        self.held = {v: {x for x in values if not _is_get(x)} for v, values in leaves.items()}
        changed = True
        while changed:
            changed = False
            for v, values in leaves.items():
                for x in values:
                    if _is_get(x) and x.op is not None and not self.held.get(x.op.operands[0], set()) <= self.held[v]:
                        self.held[v] |= self.held[x.op.operands[0]]
                        changed = True

    def sources(self, v: Value) -> set[Value]:
        """The operations' results that a value may be, up to sign: through ``neg``, ``abs``, ``select``, variables."""
        found: set[Value] = set()
        for x in self.leaves(v):
            found |= self.held.get(x.op.operands[0], set()) if x.op is not None and _is_get(x) else {x}
        return found

    def related(self, a: Value, b: Value) -> bool:
        """Whether two values may be the same one."""
        return any(self._related(x, y) for x in self.leaves(a) for y in self.leaves(b))

    def _related(self, a: Value, b: Value) -> bool:
        if a is b:
            return True
        if a.op is None or b.op is None:
            return False
        if a.op.code == b.op.code == "get" and a.op.operands[0] is b.op.operands[0]:
            return True
        if _constant(a) and _constant(b):
            return True
        return (_is_get(a) or _is_get(b)) and not self.sources(a).isdisjoint(self.sources(b))

    def negated(self, v: Value) -> bool:
        """Whether a value may be one whose sign was turned."""
        if v.op is not None and v.op.code == "get":
            return any(x.op is not None and x.op.code == "neg" for x in self.sets.get(v.op.operands[0], []))
        return v.op is not None and v.op.code == "neg"

    def cancel(self, user: Op, v: Value, other: Value) -> None:
        """``user`` combines ``v`` with ``other``: hide the sums in ``v`` of which a term would cancel or double.

        Mesa makes ``(a + b) - a`` into ``b``, and NVIDIA's driver ``(a + b) + b`` into ``a + 2 * b``. A sum that runs
        through a loop meets itself, with another term each time: that is left alone.
        """
        others = [other]
        for source in self.sources(other):
            if source.op is not None and source.op.code in SUM:
                others += source.op.operands
        for source in self.sources(v):
            op = source.op
            if op is None or op.code not in SUM:
                continue
            terms = [x for x in op.operands if any(self.related(x, o) for o in others)]
            opposed = user.code != "add" or op.code == "sub" or any(map(self.negated, (v, other, *terms)))
            if terms and (opposed or _constant(other) or op is not user):
                self.protected.add(source)

    def protect(self, v: Value, codes: frozenset[str], shares: Value | None = None) -> None:
        """Hide what ``v`` may be where that is one of ``codes`` (and has an operand related to ``shares``)."""
        for source in self.sources(v):
            op = source.op
            if op is None or (op.code not in codes and (op.attrs.get("fn") not in codes)):
                continue
            if shares is None or any(self.related(x, shares) for x in op.operands):
                self.protected.add(source)

    def visit(self, op: Op) -> None:
        code, args = op.code, op.operands
        if code in ZERO_SENSITIVE and any(_zero(v) for v in args):
            self.opaque_zeros.add(id(op))
        if code in SUM or code in ops.COMPARISON:
            a, b = args
            self.cancel(op, a, b)
            self.cancel(op, b, a)
            opposed = code == "sub" or (code == "add" and self.negated(a) != self.negated(b))
            if opposed and self.related(a, b):
                self.first_operand.add(id(op))
            self.factor(a, b)
            self.collect(a, b)
            self.collect(b, a)
        elif code == "mul":
            a, b = args
            for x, y in ((a, b), (b, a)):
                if _constant(y):
                    self.protect(x, frozenset({"mul"}), y)
                self.protect(x, frozenset({"div", "sqrt"}))
        elif code == "div":
            for v in args:
                self.protect(v, frozenset({"div", "sqrt", "mul"}))
            if self.related(*args):
                self.first_operand.add(id(op))
        elif code == "math" and op.attrs["fn"] == "sqrt":
            self.protect(args[0], frozenset({"mul", "div"}))

    def collect(self, a: Value, b: Value) -> None:
        """``(z + x * y) + x * w``: hide the inner sum, or it becomes ``z + x * (y + w)``."""
        for source in self.sources(a):
            if source.op is None or source.op.code not in SUM:
                continue
            products = [q for x in source.op.operands for q in self.sources(x)]
            if any(self.share(p, q) for p in self.sources(b) for q in products):
                self.protected.add(source)

    def share(self, p: Value, q: Value) -> bool:
        """Whether two values are different products with a common factor."""
        if p is q or p.op is None or q.op is None or not p.op.code == q.op.code == "mul":
            return False
        return any(self.related(x, y) for x in p.op.operands for y in q.op.operands)

    def factor(self, a: Value, b: Value) -> None:
        """``x * y + x * z``: hide one product."""
        for p in self.sources(a):
            for q in self.sources(b):
                if self.share(p, q):
                    self.protected.add(p)
