"""Abstract execution of a kernel: every memory access with its symbolic indices and the conditions it is under.

One abstract thread runs the kernel once. Names that are assigned in a loop become unknowns that stand for any
iteration, as far as ``loops.py`` does not know better. A barrier starts a new *interval*; an access carries the
intervals in which it can happen, so two accesses of one block may meet only if they have an interval in common.

A loop in which every path crosses a barrier is *aligned*: all threads of a block are in the same iteration or, around
the back edge, in neighbouring ones. Its body is executed twice in a row, so that the end of an iteration meets the
start of the next with the values that it really has, and unknowns that are uniform are shared by the block.
In every other loop two threads may be in different iterations, so each has unknowns of its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from gridwise.ir.core import Kernel, Op, Region, Value
from gridwise.ir.types import BOOL, ArrayType, Scalar, VarType, extent_limit
from gridwise.lang.errors import Loc
from gridwise.lang.records import dataclass, field, replace

from .linear import Facts
from .terms import BLOCK, LAUNCH, THREAD, Term, Terms, integral
from .uniformity import Uniformity

Path = tuple[Term, ...]
Intervals = dict[int, Path]  # the intervals that this may be in, and what else holds in each
MAX_BLOCKS_YZ = 65535  # along y and z of a grid: CUDA's limit, and WebGPU's; the launch keeps it everywhere
WIDE = Scalar("i128", "int", 128)  # of exact arithmetic: four factors of 32 bits, and room for sums


@dataclass(slots=True, eq=False)
class Access:
    """One access: to ``array`` at ``index`` (one term an axis, then one for each fixed array inside the element)."""

    op: Op
    array: Value
    index: tuple[Term, ...]
    extent: tuple[Term, ...]
    path: Path
    kind: str  # read, write or atomic
    intervals: Intervals
    copy: bool  # from the second execution of an aligned loop: like the first, but for its interval
    facts: dict[Path, Facts] = field(default_factory=dict)  # made when first needed, see affine.facts_of

    @property
    def loc(self) -> Loc | None:
        return self.op.loc

    @property
    def unsafe(self) -> bool:
        """The author's word stands for the proof that no other thread meets it."""
        return "unsafe" in self.op.attrs


    @property
    def block_scope(self) -> bool:
        """An atomic that other blocks do not see as one."""
        return self.op.attrs.get("scope") == "block"


@dataclass(slots=True, eq=False)
class Division:
    """An integer floordiv or mod."""

    op: Op
    divisor: Term
    path: Path


@dataclass
class Summary:
    """Everything that disjointness and bounds need to know of a kernel."""

    kernel: Kernel
    terms: Terms
    base: Facts
    accesses: list[Access] = field(default_factory=list)
    divisions: list[Division] = field(default_factory=list)
    values: dict[Value, Term] = field(default_factory=dict)
    inputs: list[Term] = field(default_factory=list)  # the position of a thread: parts that can differ are leaves
    given: list[Term] = field(default_factory=list)  # conditions that hold everywhere
    barriers: bool = False

    def dim(self, array: Value, axis: int) -> Term:
        a = array.type
        assert isinstance(a, ArrayType)
        if a.shape is not None and a.shape[axis] > 0:
            return self.terms.const(a.shape[axis], a.index)
        name = self.name(array)
        shown = f"len({name})" if a.rank == 1 else f"{name}.shape[{axis}]"
        return self.terms.leaf("dim", a.index, LAUNCH, shown, 0, extent_limit(a.index), (array, axis))

    def name(self, array: Value) -> str:
        """The name that the author gave an array."""
        return next((p.name for p in self.kernel.params if p.value is array), array.name or "the array")

    def in_range(self, access: Access) -> Path:
        """The conditions of an access that happens: an index out of range makes a fault and no access."""
        t = self.terms
        out: list[Term] = []
        for i, n in zip(access.index, access.extent, strict=True):
            out += [t.make("ge", BOOL, i, t.const(0, i.type)), t.make("lt", BOOL, i, n)]
        return tuple(out)


@dataclass(slots=True)
class State:
    """A point of the abstract execution."""

    env: dict[Value, Term]
    path: Path
    cur: Intervals

    def fork(self, *conditions: Term) -> State:
        return State(dict(self.env), self.path + tuple(c for c in conditions if not (c.code == "const" and c.data)),
                     self.cur)


@dataclass(slots=True)
class Frame:
    """A loop or scope being executed, and the states in which jumps leave it."""

    breaks: list[State] = field(default_factory=list)
    continues: list[State] = field(default_factory=list)


class Executor:
    """Runs regions of one kernel. ``loops.Loops`` extends it."""

    def __init__(self, kernel: Kernel, uniform: Uniformity):
        self.kernel, self.uniform = kernel, uniform
        self.terms = Terms()
        self.values: dict[Value, Term] = {}
        self.names = {p.value: p.name for p in kernel.params}
        self.out = Summary(kernel, self.terms, Facts(), values=self.values)
        self.frames: list[Frame] = []
        self.scopes: dict[int, Frame] = {}
        self.mode = "real"  # real, copy (only what meets the intervals in `live`) or dry (nothing is recorded)
        self.live: frozenset[int] = frozenset()
        self.may_align = True
        self.interval = 0
        self.context = 0  # which execution of the bodies of aligned loops this is
        self.shared_intervals: dict[tuple[Op, int], int] = {}
        self.inputs()
        self.always = Facts((), self.out.base)

    # -- inputs ------------------------------------------------------------------------------------------
    def inputs(self) -> None:
        k, t, index = self.kernel, self.terms, self.kernel.index
        limit = extent_limit(index)
        self.tid: list[Term] = []
        self.bid: list[Term] = []
        self.gdim: list[Term] = []
        for a, size in enumerate(k.block):
            most = min(limit // size, MAX_BLOCKS_YZ) if a else limit // size // k.reach
            blocks = max(1, most) if a < k.domain else 1
            zero, one = t.const(0, index), t.const(1, index)
            self.tid.append(t.leaf("tid", index, THREAD, f"thread_{'xyz'[a]}", 0, size - 1, a) if size > 1 else zero)
            bid = t.leaf("bid", index, BLOCK, f"block_{'xyz'[a]}", 0, blocks - 1, a) if blocks > 1 else zero
            gdim = t.leaf("gdim", index, LAUNCH, f"grid_{'xyz'[a]}", 1, blocks, a) if blocks > 1 else one
            self.bid.append(bid)
            self.gdim.append(gdim)
            if blocks > 1:
                self.out.given.append(t.make("lt", BOOL, bid, gdim))
                self.out.base.add(self.out.given[-1])
        self.out.inputs = [*self.tid, *self.bid]
        for p in k.params:
            if isinstance(p.type, ArrayType):
                for axis in range(p.type.rank):
                    self.out.dim(p.value, axis)
            else:
                self.values[p.value] = t.leaf("param", p.type, LAUNCH, p.name, key=p.value)

    # -- values ------------------------------------------------------------------------------------------
    def value(self, op: Op, state: State) -> Term:
        """The term of an operation without side effects."""
        t, result = self.terms, op.result
        assert result is not None and isinstance(result.type, Scalar)
        code, axis = op.code, int(op.attrs.get("axis", 0))
        if code == "const":
            return t.const(op.attrs["value"], result.type)
        if code == "get":
            known = state.env.get(op.operands[0])
            return known if known is not None else t.fresh("havoc", result.type, THREAD, op.operands[0].name)
        if code == "thread_idx":
            return self.tid[axis]
        if code == "block_idx":
            return self.bid[axis]
        if code == "grid_dim":
            return self.gdim[axis]
        if code == "block_dim":
            return t.const(self.kernel.block[axis], result.type)
        if code == "global_idx":
            start = t.make("xmul", result.type, self.bid[axis], t.const(self.kernel.block[axis], result.type))
            return t.make("xadd", result.type, start, self.tid[axis])
        if code == "dim":
            return self.out.dim(op.operands[0], axis)
        args = [self.values[v] for v in op.operands]
        if code == "subgroup":
            size = t.leaf("havoc", result.type, LAUNCH, "subgroup.size()", 1, 128, "size")
            if op.attrs["fn"] == "size":
                return size
            if op.attrs["fn"] == "lane":  # subgroups are made of threads in a row, x fastest
                return t.make("mod", result.type, t.make("cast", result.type, self.linear()), size)
            return t.fresh("data", result.type, THREAD, f"subgroup.{op.attrs['fn']}")
        if code == "bitcast" and args[0].type.is_int and result.type.is_int:
            code = "cast"
        return self.decided(t.make(code, result.type, *args, data=op.attrs.get("fn")))

    def decided(self, term: Term) -> Term:
        """A comparison that the ranges of inputs alone decide, such as ``grid_dim() != 0``, as a constant."""
        if term.code not in ("eq", "ne", "lt", "le", "gt", "ge") or not term.args[0].type.is_int:
            return term
        (alo, ahi), (blo, bhi) = (self.always.range(a) for a in term.args)
        below, above = ahi < blo, alo > bhi
        sure = {"eq": (False, below or above), "ne": (below or above, False), "lt": (below, alo >= bhi),
                "le": (ahi <= blo, above), "gt": (above, ahi <= blo), "ge": (alo >= bhi, below)}[term.code]
        return self.terms.true if sure[0] else self.terms.false if sure[1] else term

    def linear(self) -> Term:
        """The thread's number in its block, x fastest."""
        t, index, out = self.terms, self.kernel.index, self.tid[2]
        for axis in (1, 0):
            scaled = t.make("xmul", index, out, t.const(self.kernel.block[axis], index))
            out = t.make("xadd", index, scaled, self.tid[axis])
        return out

    def exactly(self, value: Value) -> Term:
        """The term of an ``assume``, whose arithmetic is in unbounded integers."""
        op, t = value.op, self.terms
        assert isinstance(value.type, Scalar)
        if op is not None and op.code in ("add", "mul", "sub", "and", "or", "not", "eq", "ne", "lt", "le", "gt", "ge") \
                and all(integral(v.type) for v in op.operands if isinstance(v.type, Scalar)):
            args = [self.exactly(v) for v in op.operands]
            if value.type == BOOL:
                return t.make(op.code, BOOL, *args)
            if op.code == "sub":
                return t.make("xadd", WIDE, args[0], t.make("xmul", WIDE, args[1], t.const(-1, WIDE)))
            if op.code in ("add", "mul"):
                return t.make("x" + op.code, WIDE, *args)
        known = self.values[value]
        return t.make("cast", WIDE, known) if known.type.is_int else known

    # -- memory ------------------------------------------------------------------------------------------
    def access(self, op: Op, state: State) -> None:
        array = op.operands[0]
        a = array.type
        assert isinstance(a, ArrayType)
        counts = [f.count for f in op.attrs.get("field", ()) if f.count]
        rank = a.rank + len(counts)
        index = tuple(self.values[v] for v in op.operands[1 : 1 + rank])
        if op.result is not None:
            assert isinstance(op.result.type, Scalar)
            if op.code == "load" and a.access == "read" and a.space == "global":
                member = tuple(f.name for f in op.attrs.get("field", ()))
                loaded = self.terms.make("load", op.result.type, *index, data=(array, member))
            else:
                loaded = self.terms.fresh("data", op.result.type, THREAD, self.names.get(array) or array.name)
            self.values[op.result] = loaded
        copy = self.mode == "copy"
        if self.mode == "dry" or (copy and (a.space == "local" or state.cur.keys().isdisjoint(self.live))):
            return
        extent = (*(self.out.dim(array, n) for n in range(a.rank)), *(self.terms.const(c, a.index) for c in counts))
        kind = {"load": "read", "store": "write", "atomic": "atomic"}[op.code]
        self.out.accesses.append(Access(op, array, index, extent, state.path, kind, state.cur, copy))

    # -- control -----------------------------------------------------------------------------------------
    def region(self, region: Region, state: State | None) -> State | None:
        for op in region.ops:
            if state is None:
                return None
            state = self.op(op, state)
        return state

    def op(self, op: Op, state: State) -> State | None:
        code = op.code
        if code == "set":
            state.env[op.operands[0]] = self.values[op.operands[1]]
        elif code in ("load", "store", "atomic"):
            self.access(op, state)
        elif code == "if":
            return self.branch(op, state)
        elif code in ("for", "while"):
            return self.loop(op, state)
        elif code == "scope":
            frame = self.scopes[op.attrs["id"]] = Frame()
            base = len(state.path)
            end = self.region(op.regions[0], state)
            return self.merge([*frame.breaks, *([end] if end else [])], base, THREAD)
        elif code in ("break", "continue"):
            (self.frames[-1].breaks if code == "break" else self.frames[-1].continues).append(state)
            return None
        elif code == "leave":
            self.scopes[op.attrs["id"]].breaks.append(state)
            return None
        elif code == "return":
            return None
        elif code == "barrier":
            self.out.barriers = True
            return replace(state, cur={self.after_barrier(op): ()})
        elif code == "assume":
            return state.fork(self.exactly(op.operands[0]))
        elif op.result is not None and isinstance(op.result.type, Scalar):
            term = self.values[op.result] = self.value(op, state)
            if code in ("floordiv", "mod") and term.type.is_int and self.mode == "real":
                self.out.divisions.append(Division(op, self.values[op.operands[1]], state.path))
        return state

    def after_barrier(self, op: Op) -> int:
        """The interval that begins here: a new one, or always the same where iterations run together."""
        if self.may_align:
            self.interval += 1
            return self.interval
        key = op, self.context
        if key not in self.shared_intervals:
            self.interval += 1
            self.shared_intervals[key] = self.interval
        return self.shared_intervals[key]

    def loop(self, op: Op, state: State) -> State | None:
        raise NotImplementedError

    def branch(self, op: Op, state: State) -> State | None:
        cond = self.values[op.operands[0]]
        refuted = self.terms.negate(cond)
        if cond.code == "const" or cond in state.path or refuted in state.path:
            holds = cond.data if cond.code == "const" else cond in state.path
            return self.region(op.regions[0 if holds else 1], state)
        base = len(state.path)
        then = self.region(op.regions[0], state.fork(cond))
        other = self.region(op.regions[1], state.fork(refuted))
        return self.merge([s for s in (then, other) if s is not None], base, THREAD)

    def merge(self, states: list[State], base: int, scope: int) -> State | None:
        """One state for several that meet; their paths agree up to ``base``."""
        if not states:
            return None
        out = states[0]
        for s in states[1:]:
            out = self.merge_two(out, s, base, scope)
        return out

    def merge_two(self, a: State, b: State, base: int, scope: int) -> State:
        t = self.terms
        first, second = a.path[base:], b.path[base:]
        in_b = set(second)
        cond = next((c for c in first if t.negate(c) in in_b), None)
        common = tuple(c for c in first if c in in_b)
        rest_a = [c for c in first if c not in common and c is not cond]
        rest_b = [c for c in second if c not in common and (cond is None or c is not t.negate(cond))]
        path = a.path[:base] + common
        if (rest_a or rest_b) and len(rest_a) <= 3 and len(rest_b) <= 3:
            # Each side's conditions are implied by having come from there: (cond and rest_a) or (not cond and rest_b).
            sides = [t.all([*([c] if c is not None else []), *rest])
                     for c, rest in ((cond, rest_a), (t.negate(cond) if cond is not None else None, rest_b))]
            either = t.either(*sides)
            if either is not t.true and either.size < 100:
                path += (either,)
        env: dict[Value, Term] = {}
        for var in a.env.keys() | b.env.keys():
            x, y = a.env.get(var), b.env.get(var)
            if x is y or x is None or y is None:
                env[var] = x or y  # type: ignore[assignment]  # unset on one side: never read from there
                continue
            if cond is None and integral(x.type):
                cond = t.fresh("havoc", BOOL, scope, "the path taken")
            if integral(x.type):
                assert cond is not None
                env[var] = t.make("select", x.type, cond, x, y)
            else:
                env[var] = t.fresh("data", x.type, THREAD, var.name)
        came_a, came_b = (tuple(c for c in side if c not in common) for side in (first, second))
        cur = {k: conditions + came_a for k, conditions in a.cur.items()}
        for k, conditions in b.cur.items():
            cur[k] = self.either_of(cur[k], conditions + came_b) if k in cur else conditions + came_b
        return State(env, path, cur)

    def either_of(self, a: Path, b: Path) -> Path:
        """What holds if all of ``a`` or all of ``b`` do: what they share, and the choice if it is short."""
        common = tuple(c for c in a if c in b)
        rest = [[c for c in side if c not in common] for side in (a, b)]
        if not all(rest) or max(map(len, rest)) > 4:
            return common
        either = self.terms.either(*(self.terms.all(side) for side in rest))
        return common if either is self.terms.true or either.size > 100 else (*common, either)

    # -- modes -------------------------------------------------------------------------------------------
    @contextmanager
    def recording(self, mode: str, live: frozenset[int] | None = None) -> Iterator[None]:
        saved = self.mode, self.live
        if mode == "dry" or self.mode == "dry":
            self.mode = "dry"
        elif self.mode == "real":
            self.mode, self.live = mode, live if live is not None else self.live
        yield
        self.mode, self.live = saved


def assigned(op: Op) -> list[Value]:
    """The variable slots set anywhere inside an operation, in program order."""
    out: dict[Value, None] = {}
    for region in op.regions:
        for o in region.walk():
            if o.code == "set":
                out[o.operands[0]] = None
    return [v for v in out if isinstance(v.type, VarType)]
