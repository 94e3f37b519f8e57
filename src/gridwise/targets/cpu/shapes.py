"""How each value varies across the lanes of a gang, and where control diverges.

A gang is ``lanes`` consecutive threads that the CPU runs at once, one a vector lane. A value is *uniform* (the
same in every lane), *linear* (lane k holds base + k * stride, wrapping) or *varying*. Uniform and linear values
live in scalar registers; an access at a linear index of stride 1 is one vector load.

The analysis is optimistic: everything starts uniform and rises until nothing changes. Facts about a variable
slot hold at all its uses at once. Divergence is *relative*: a slot used only inside one region need not be
blended for lanes that never entered that region.
"""

from __future__ import annotations

from collections.abc import Iterator

from gridwise.ir import Kernel, Op, Region, Value, ops
from gridwise.ir.types import ArrayType, Scalar
from gridwise.lang.records import dataclass


@dataclass(frozen=True, slots=True)
class Shape:
    """``stride`` is None for varying, 0 for uniform. ``align``: the base is a multiple of it (a power of two).

    ``exact``: no lane that matters wraps, so widening keeps it linear.
    """

    stride: int | None
    align: int = 1
    exact: bool = False

    @property
    def uniform(self) -> bool:
        return self.stride == 0

    @property
    def linear(self) -> bool:
        return self.stride is not None and self.stride != 0

    @property
    def varying(self) -> bool:
        return self.stride is None


UNIFORM, VARYING = Shape(0), Shape(None)

LANE_FREE = frozenset("size ballot any all broadcast reduce_add reduce_min reduce_max reduce_and reduce_or reduce_xor "
                      "reduce_mul".split())  # subgroup operations that give every lane the same

Jump = tuple[str, object]  # ("loop", op), ("again", op), ("scope", id) or ("return", None)


def join(a: Shape | None, b: Shape) -> Shape:
    """The least shape that covers both."""
    if a is None or a == b:
        return b
    if a.stride == b.stride and a.stride is not None:
        return Shape(a.stride, min(a.align, b.align), a.exact and b.exact)
    return VARYING


def constant(v: Value) -> int | None:
    """The integer that ``v`` is, if it is a constant."""
    if v.op is not None and v.op.code == "const" and isinstance(v.type, Scalar) and v.type.is_int:
        return int(v.op.attrs["value"])
    return None


def _power(n: int) -> bool:
    return n > 0 and n & (n - 1) == 0


def _low_bit(n: int) -> int:
    return n & -n if n else 1 << 30


class Shapes:
    """Results: ``of(value)``, ``variables[slot]``, ``masked`` (jumps and sets that not all lanes of their target's
    region reach), ``shrinking`` (loops that lanes leave one by one), ``escapes[op]`` (targets outside ``op`` that
    some of its lanes jump to).

    identities  the shape of thread_idx, global_idx, ... by (code, axis).
    known       conditions that hold for every lane that enters: they count as uniform.
    together    control operations proved to be taken by all threads of the block alike.
    """

    def __init__(
        self,
        kernel: Kernel,
        lanes: int,
        identities: dict[tuple[str, int], Shape],
        known: frozenset[Value] = frozenset(),
        together: frozenset[Op] = frozenset(),
    ):
        self.kernel, self.lanes, self.identities = kernel, lanes, identities
        self.known, self.together = known, together
        self.values: dict[Value, Shape] = {}
        self.variables: dict[Value, Shape | None] = {}
        self.masked: set[Op] = set()
        self.shrinking: set[Op] = set()
        self.escapes: dict[Op, set[Jump]] = {}
        self.homes = _homes(kernel)
        self.owners = {r: op for op in kernel.walk() for r in op.regions}
        for p in kernel.params:
            self.values[p.value] = UNIFORM
        self._run()

    def of(self, v: Value) -> Shape:
        return self.values[v]

    def variable(self, v: Value) -> Shape:
        return self.variables.get(v) or UNIFORM

    # -- the walk ------------------------------------------------------------------------------------------
    def _run(self) -> None:
        while True:
            before = (dict(self.variables), set(self.shrinking))
            self.masked.clear()
            self.escapes.clear()
            self._region(self.kernel.body, [], [])
            if before == (self.variables, self.shrinking):
                return

    def _region(self, region: Region, outer: list[Region], flags: list[bool], start: bool = False) -> set[Jump]:
        """``flags[j]``: fewer lanes may be here than entered ``outer[j]``. Returns the jumps that leave it."""
        chain, flags = [*outer, region], [*flags, start]
        leaving: set[Jump] = set()
        for op in region.ops:
            escaped = self._op(op, chain, flags)
            if escaped:
                self.escapes[op] = escaped
                leaving |= escaped
                flags = [True] * len(flags)
        return leaving

    def _op(self, op: Op, chain: list[Region], flags: list[bool]) -> set[Jump]:
        if op.code in ("break", "continue", "leave", "return"):
            return self._jump(op, chain, flags)
        if op.code == "if":
            apart = not self._together(op, op.operands[0])
            inner = [True] * len(flags) if apart else flags
            return self._region(op.regions[0], chain, inner) | self._region(op.regions[1], chain, inner)
        if op.code in ("for", "while"):
            return self._loop(op, chain, flags)
        if op.code == "scope":
            return self._region(op.regions[0], chain, flags) - {("scope", op.attrs["id"])}
        if op.code == "set":
            var, value = op.operands
            apart = flags[chain.index(self.homes[var])]
            if apart:
                self.masked.add(op)
            shape = self.of(value)
            if apart and shape.linear:
                shape = VARYING
            self.variables[var] = join(self.variables.get(var), VARYING if apart else shape)
        elif op.result is not None:
            self.values[op.result] = UNIFORM if op.result in self.known else self._shape(op)
        return set()

    def _together(self, op: Op, cond: Value) -> bool:
        return op in self.together or self.of(cond).uniform

    def _jump(self, op: Op, chain: list[Region], flags: list[bool]) -> set[Jump]:
        """A jump that all lanes of its target's region take at once is a branch; others only mask lanes off."""
        target: Jump
        if op.code == "return":
            target, region = ("return", None), chain[0]
        else:
            region = next(r for r in reversed(chain) if self._owner(r, op))
            owner = self.owners[region]
            target = ("scope", op.attrs["id"]) if op.code == "leave" else (
                "loop" if op.code == "break" else "again", owner)
            if op.code == "break" and owner in self.shrinking and owner.regions[1 if owner.code == "for" else 2].ops:
                self.masked.add(op)  # the lanes that left earlier still have the else part to run
                return {target}
        if not flags[chain.index(region)]:
            return set()
        self.masked.add(op)
        return {target}

    def _owner(self, region: Region, op: Op) -> bool:
        owner = self.owners.get(region)
        if owner is None:
            return False
        if op.code == "leave":
            return owner.code == "scope" and owner.attrs["id"] == op.attrs["id"]
        return owner.code in ("for", "while") and region is owner.regions[1 if owner.code == "while" else 0]

    def _loop(self, op: Op, chain: list[Region], flags: list[bool]) -> set[Jump]:
        body = op.regions[1 if op.code == "while" else 0]
        orelse = op.regions[-1]
        if op.code == "for":
            start, stop, step = op.operands
            if not (op in self.together or self._same_trips(start, stop, step)):
                self.shrinking.add(op)
            at, by = self.of(start), self.of(step)
            shape = Shape(at.stride, 1, at.exact) if by.uniform else VARYING
            self.values[body.args[0]] = shape
        inner = [True] * len(flags) if op in self.shrinking else flags
        leaving: set[Jump] = set()
        if op.code == "while":
            leaving |= self._region(op.regions[0], chain, inner)
            if not self._together(op, op.regions[0].ops[-1].operands[0]):
                self.shrinking.add(op)
        leaving |= self._region(body, chain, inner)
        if leaving - {("again", op)}:
            self.shrinking.add(op)
        parted = ("loop", op) in leaving
        outward = leaving - {("loop", op), ("again", op)}
        inner = [True] * len(flags) if parted or outward else flags
        return outward | self._region(orelse, chain, inner)

    def _same_trips(self, start: Value, stop: Value, step: Value) -> bool:
        return self.of(start).uniform and self.of(stop).uniform and self.of(step).uniform

    # -- shapes of values ------------------------------------------------------------------------------------
    def _shape(self, op: Op) -> Shape:
        code = op.code
        if self.lanes == 1 or code in ("const", "dim", "block_dim", "grid_dim"):
            return UNIFORM
        if code in ("thread_idx", "block_idx", "global_idx"):
            return self.identities.get((code, op.attrs["axis"]), UNIFORM)
        if code == "get":
            return self.variable(op.operands[0])
        if code == "load":
            t = op.operands[0].type
            assert isinstance(t, ArrayType)
            same = t.space != "local" and all(self.of(v).uniform for v in op.operands[1:])
            return UNIFORM if same else VARYING
        if code == "subgroup":
            return UNIFORM if op.attrs["fn"] in LANE_FREE else VARYING
        if not ops.TABLE[code].pure and code not in ("floordiv", "mod"):
            return VARYING
        if all(self.of(v).uniform for v in op.operands):
            return UNIFORM
        return self._linear(op)

    def _linear(self, op: Op) -> Shape:
        """Operations that keep a linear operand linear, or make it uniform."""
        t = op.result.type if op.result is not None else None
        a = self.of(op.operands[0])
        if not (isinstance(t, Scalar) and t.is_int) or a.varying:
            return VARYING
        if op.code in ("cast", "bitcast"):
            source = op.operands[0].type
            assert isinstance(source, Scalar)
            if not source.is_int or (t.bits > source.bits and not a.exact):
                return VARYING
            return Shape(a.stride, a.align, a.exact and t.bits >= source.bits)
        if op.code == "neg":
            return Shape(-(a.stride or 0), a.align)
        if len(op.operands) != 2:
            return VARYING
        b = self.of(op.operands[1])
        if b.varying or a.stride is None or b.stride is None:
            return VARYING
        known = constant(op.operands[1])
        if op.code in ("add", "sub"):
            stride = a.stride + b.stride if op.code == "add" else a.stride - b.stride
            align = min(self._align(op.operands[0]), self._align(op.operands[1]))
            return Shape(stride, align) if stride else UNIFORM
        if op.code == "mul" and (known is not None or constant(op.operands[0]) is not None):
            factor, s = (known, a) if known is not None else (constant(op.operands[0]), b)
            assert factor is not None and s.stride is not None
            if abs(factor * s.stride) >= 1 << 15:
                return VARYING
            return Shape(s.stride * factor, s.align * min(_low_bit(factor), 1 << 10)) if factor else UNIFORM
        if op.code == "shl" and known is not None and 0 <= known < 15 and known < t.bits and a.stride:
            return Shape(a.stride << known, a.align << known)
        if known is not None and a.stride == 1 and a.align >= self.lanes and a.exact:
            return self._split(op.code, known)
        return VARYING

    def _split(self, code: str, n: int) -> Shape:
        """Quotient and remainder of an aligned index by a power of two no smaller than the gang."""
        if code == "shr" and 0 <= n < 31:
            code, n = "floordiv", 1 << n
        if code == "and" and _power(n + 1):
            code, n = "mod", n + 1
        if not _power(n) or n < self.lanes:
            return VARYING
        return {"floordiv": UNIFORM, "mod": Shape(1, self.lanes, True)}.get(code, VARYING)

    def _align(self, v: Value) -> int:
        known = constant(v)
        return _low_bit(known) if known is not None else self.of(v).align


def _paths(region: Region, above: tuple[Region, ...]) -> Iterator[tuple[Op, tuple[Region, ...]]]:
    here = (*above, region)
    for op in region.ops:
        yield op, here
        for inner in op.regions:
            yield from _paths(inner, here)


def _homes(kernel: Kernel) -> dict[Value, Region]:
    """The innermost region that holds every use of each variable slot."""
    homes: dict[Value, tuple[Region, ...]] = {}
    for op, path in _paths(kernel.body, ()):
        if op.code in ("get", "set"):
            var = op.operands[0]
            old = homes.get(var, path)
            homes[var] = tuple(a for a, b in zip(old, path, strict=False) if a is b)
    return {var: path[-1] for var, path in homes.items()}
