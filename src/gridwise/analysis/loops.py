"""What is known of the names that a loop changes, in any of its iterations.

Kept: the index of a ``for``; a name that goes up or down by a constant step (with proof that it does not wrap,
or in wrapping arithmetic); names whose whole history from constants is a short list, such as the stride of a tree
reduction or the two halves of a double buffer; a name that is halved. The rest is unknown.
"""

from __future__ import annotations

from gridwise.ir.core import Kernel, Op, Value
from gridwise.ir.types import BOOL, I64, ArrayType, VarType
from gridwise.lang.records import replace

from .linear import Facts, add_forms, ring
from .summaries import Executor, Frame, Intervals, Path, State, Summary, assigned
from .terms import BLOCK, THREAD, Term, evaluate, integral, leaves
from .uniformity import Uniformity, uniformity

MANY = 1 << 64  # more iterations than any loop has
HISTORY = 64  # names with more values than this are not listed
MAX_REACH = 4096  # elements along x that a thread may span for its index to be kept from wrapping
LISTED = 40  # and no more than this are spelled out for the solver


class Loops(Executor):
    """The executor of whole kernels."""

    contexts = 0

    def loop(self, op: Op, state: State) -> State | None:
        syncs = any(o.code == "barrier" for r in op.regions for o in r.walk())
        names = assigned(op)
        if syncs and self.mode != "dry" and self.may_align:
            mark = self.terms.count
            head, facts, counter = self.generic(op, state, names, mark, BLOCK)
            if self.crosses(op, state, head, facts, counter):
                return self.aligned(op, state, head, facts, counter)
        mark = self.terms.count
        head, facts, counter = self.generic(op, state, names, mark, THREAD)
        if not syncs:
            return self.free(op, state, head, facts, counter)
        return self.rehearsed(op, state, head, facts, counter) if self.mode == "dry" else (
            self.unaligned(op, state, head, facts, counter, mark))

    # -- the head of any iteration -----------------------------------------------------------------------
    def generic(self, op: Op, state: State, names: list[Value], mark: int, scope: int) -> tuple[State, Path, Term]:
        """A state that stands for the start of any iteration; what is known of it; the iteration's number."""
        t = self.terms
        hi = MANY
        if op.code == "for":
            ends = [self.values[v] for v in op.operands]
            if all(e.code == "const" for e in ends):
                hi = max(0, len(range(*(e.data for e in ends))) - 1)
        counter = t.fresh("iter", I64, scope, "the iteration", 0, hi)
        unknown = {v: t.fresh("havoc", v.type.scalar, self.scope_of(op, v, scope), v.name)
                   for v in names if isinstance(v.type, VarType)}
        fixed: dict[Value, Term] = {}
        steps: dict[Value, Term] = {}
        facts: list[Term] = []
        backs, conds = self.try_once(op, state, unknown, counter, ())
        if backs:
            following = {v: nexts.pop() for v in names if len(nexts := {s.env.get(v) for s in backs}) == 1}
            for v, after in following.items():
                before = state.env.get(v)
                if after is None or before is None or not integral(after.type):
                    continue
                if after is unknown[v]:
                    fixed[v] = before
                    continue
                if (step := self.step(after, unknown[v], mark)) is not None:
                    steps[v] = step
            changed = {v: n for v, n in following.items() if n is not None}
            for leaf_facts, renamed in self.histories(changed, state, unknown, conds, hi + 1):
                facts += leaf_facts
                fixed |= renamed
            for v, after in following.items():
                if v not in fixed and v not in steps and after is not None and v in state.env:
                    facts += self.shrinking(after, unknown[v], state.env[v], state.path)
            for v in names:
                if v not in fixed and v not in steps and v in state.env and state.env[v].type.is_int:
                    facts += self.staying(v, unknown[v], state, backs)
        env = {**state.env, **unknown, **fixed}
        for v, step in steps.items():
            if v not in fixed:
                env[v] = self.stepped(state.env[v], step, counter, exact=True)
        wraps = self.wrapping(op, state, env, {v: s for v, s in steps.items() if v not in fixed}, counter, tuple(facts))
        for v in wraps:
            env[v] = self.stepped(state.env[v], steps[v], counter, exact=False)
        return State(env, state.path, state.cur), tuple(facts), counter

    def scope_of(self, op: Op, var: Value, scope: int) -> int:
        return BLOCK if scope == BLOCK and self.uniform.uniform_at_head(op, var) else THREAD

    def try_once(self, op: Op, state: State, env: dict[Value, Term], counter: Term,
                 facts: Path) -> tuple[list[State], Path]:
        """Execute an iteration without recording: the states at its back edges, and its conditions to go on."""
        with self.recording("dry"):
            start = State({**state.env, **env}, state.path + facts, state.cur)
            conds, _, frame, end = self.iteration(op, start, counter, len(state.path))
        return [*([end] if end else []), *frame.continues], conds

    def stepped(self, start: Term, step: Term, counter: Term, exact: bool) -> Term:
        t, of = self.terms, start.type
        if exact:
            return t.make("xadd", of, start, t.make("xmul", of, counter, step))
        return t.make("add", of, start, t.make("mul", of, t.make("cast", of, counter), step))

    def step(self, after: Term, before: Term, mark: int) -> Term | None:
        """The constant step by which a name moves, or None."""
        if after.code not in ("add", "sub") or after.type.bits < 8:
            return None
        a, b = after.args
        if after.code == "add" and b is before:
            a, b = b, a
        if a is not before or b.newest > mark:
            return None
        return b if after.code == "add" else self.terms.make("neg", b.type, b)

    def wrapping(self, op: Op, state: State, env: dict[Value, Term], steps: dict[Value, Term], counter: Term,
                 facts: Path) -> list[Value]:
        """Those of the stepped names that may wrap around, assuming that they have not yet."""
        if not steps:
            return []
        backs, _ = self.try_once(op, state, env, counter, facts)
        out: list[Value] = []
        for s in backs:
            known = Facts(s.path, self.out.base)
            for v, step in steps.items():
                now = env[v]
                following = add_forms(known.exact(now), known.exact(step))
                room = add_forms(({}, now.type.max), following, -1), add_forms(following, ({}, now.type.min), -1)
                if v not in out and not (known.proves(room[0]) and known.proves(room[1])):
                    out.append(v)
        return out

    def histories(self, following: dict[Value, Term], state: State, unknown: dict[Value, Term],
                  conds: Path, most: int) -> list[tuple[list[Term], dict[Value, Term]]]:
        """Names whose values, from constants on, are few: their ranges and, if it is short, the list."""
        groups = self.closed(following, state, unknown)
        everything = list(dict.fromkeys(v for g in groups for v in g))
        # All of them together say most, if that list is short: how the one goes with the other.
        for tried in ([everything], groups):
            found = [(g, rows) for g in tried if g
                     if (rows := self.history(g, following, state, unknown, conds, most)) is not None]
            if found:
                return [self.listed(g, rows, unknown) for g, rows in found]
        return []

    def closed(self, following: dict[Value, Term], state: State, unknown: dict[Value, Term]) -> list[list[Value]]:
        """Sets of names that start as constants and change only by each other."""
        owner = {u: v for v, u in unknown.items()}
        out: list[list[Value]] = []
        for v in following:
            group: list[Value] = []
            todo = [] if any(v in g for g in out) else [v]
            while todo:
                w = todo.pop()
                needs = leaves(following[w]) if w in following else {self.terms.true}
                start = state.env.get(w)
                if start is None or start.code != "const" or not integral(start.type) or not needs <= owner.keys():
                    group = []
                    break
                group.append(w)
                todo += [owner[n] for n in needs if owner[n] not in group and owner[n] not in todo]
            if group and any(following[w] is not unknown[w] for w in group):
                out.append(group)
        return out

    def listed(self, group: list[Value], rows: list[tuple[int, ...]],
               unknown: dict[Value, Term]) -> tuple[list[Term], dict[Value, Term]]:
        """Leaves with the ranges of a history, and the history as a condition if it is short."""
        t = self.terms
        renamed: dict[Value, Term] = {}
        for n, w in enumerate(group):
            seen, leaf = [r[n] for r in rows], unknown[w]
            renamed[w] = leaf if leaf.type == BOOL else t.fresh(
                "havoc", leaf.type, leaf.scope, leaf.data.name, min(seen), max(seen))
        if len(rows) > LISTED:
            return [], renamed
        any_row = t.false
        for row in rows:
            same = [t.make("eq", BOOL, renamed[w], t.const(x, renamed[w].type)) for w, x in zip(group, row)]
            any_row = t.either(any_row, t.all(same))
        return [any_row], renamed

    def history(self, group: list[Value], following: dict[Value, Term], state: State, unknown: dict[Value, Term],
                conds: Path, most: int) -> list[tuple[int, ...]] | None:
        """The values of some names at the head of every iteration, of which there are at most ``most``."""
        row = tuple(state.env[w].data for w in group)
        rows: dict[tuple[int, ...], None] = {}
        while row not in rows and len(rows) <= most:
            if len(rows) >= HISTORY:
                return None
            rows[row] = None
            given = {unknown[w]: x for w, x in zip(group, row)}
            if any(evaluate(c, given) is False for c in conds):
                break
            after = tuple(evaluate(following[w], given) for w in group)
            if any(x is None for x in after):
                return None
            row = after
        return list(rows)

    def shrinking(self, after: Term, before: Term, start: Term, path: Path) -> list[Term]:
        """A name that is divided, or shifted right, stays between 0 and its start if that is not negative."""
        t = self.terms
        if after.code not in ("floordiv", "shr") or after.args[0] is not before or after.args[1].code != "const":
            return []
        if after.args[1].data < 1 or not Facts(path, self.out.base).implies(
                t.make("ge", BOOL, start, t.const(0, start.type))):
            return []
        return [t.make("ge", BOOL, before, t.const(0, before.type)), t.make("le", BOOL, before, start)]

    def staying(self, v: Value, leaf: Term, state: State, backs: list[State]) -> list[Term]:
        """A name that starts in a range, or between 0 and its end, and that no iteration takes out of it."""
        t, start = self.terms, state.env[v]
        lo, hi = Facts(state.path, self.out.base).range(start)
        if (lo, hi) == (start.type.min, start.type.max):
            return []
        for low in dict.fromkeys((lo, min(lo, 0))):
            ends = ("ge", low), ("le", hi)
            within = [t.make(code, BOOL, leaf, t.const(n, leaf.type)) for code, n in ends]
            after = [Facts((*within, *s.path), self.out.base).range(s.env[v]) for s in backs]
            if all(low <= a and b <= hi for a, b in after):
                return within
        return []

    # -- one iteration -----------------------------------------------------------------------------------
    def iteration(self, op: Op, head: State, counter: Term, base: int,
                  again: Term | None = None) -> tuple[Path, State | None, Frame, State | None]:
        """Execute from a head: conditions to go on, the state that leaves there, the jumps, the state at the end."""
        frame = Frame()
        self.frames.append(frame)
        leaving: State | None
        goes_on = () if again is None else (again,)
        stops = () if again is None else (self.terms.negate(again),)
        if op.code == "for":
            conds = self.index(op, counter)
            leaving = head.fork(*stops)
            end = self.region(op.regions[0], head.fork(*conds, *goes_on))
        else:
            before: State | None = self.region(op.regions[0], head)
            conds, end, leaving = (), None, None
            if before is not None:
                cond = self.values[op.regions[0].ops[-1].operands[0]]
                conds = (cond,)
                leaving = before.fork(self.terms.negate(cond), *stops) if cond is not self.terms.true else None
                if cond is not self.terms.false:
                    end = self.region(op.regions[1], before.fork(cond, *goes_on))
        self.frames.pop()
        return conds, leaving, frame, end

    def index(self, op: Op, counter: Term) -> Path:
        """Bind the index of a ``for`` and give the conditions of its body."""
        t = self.terms
        start, stop, step = (self.values[v] for v in op.operands)
        of, zero = start.type, t.const(0, start.type)
        i = t.make("xadd", of, start, t.make("xmul", of, counter, step))
        self.values[op.regions[0].args[0]] = i
        lo, hi = Facts((), self.out.base).range(step)
        up, down = (t.make("lt", BOOL, i, stop), t.make("ge", BOOL, i, start)), (
            t.make("gt", BOOL, i, stop), t.make("le", BOOL, i, start))
        if lo > 0:
            return up
        if hi < 0:
            return down
        rising, falling = t.make("gt", BOOL, step, zero), t.make("lt", BOOL, step, zero)
        return (t.either(t.all([rising, *up]), t.all([falling, *down])),)

    def after(self, op: Op, leaving: list[State], frame: Frame, base: int, scope: int) -> State | None:
        end = self.merge(leaving, base, scope)
        done = self.region(op.regions[-1], end) if end is not None else None
        return self.merge([*frame.breaks, *([done] if done else [])], base, scope)

    # -- loops of three kinds ----------------------------------------------------------------------------
    def free(self, op: Op, state: State, head: State, facts: Path, counter: Term) -> State | None:
        """A loop without barriers: two threads may be in any two iterations."""
        base = len(state.path)
        _, leaving, frame, _ = self.iteration(op, State(head.env, state.path + facts, state.cur), counter, base)
        return self.after(op, [leaving] if leaving else [], frame, base, THREAD)

    def unaligned(self, op: Op, state: State, head: State, facts: Path, counter: Term, mark: int) -> State | None:
        """A loop whose barriers some iterations may skip, or one inside such a loop: intervals run together."""
        base, saved = len(state.path), self.may_align
        self.may_align = False
        start = State(head.env, state.path + facts, state.cur)
        around, behind = self.around(op, start, counter, base, mark)
        _, leaving, frame, _ = self.iteration(op, State(dict(head.env), start.path, around), counter, base)
        self.may_align = saved
        exits = self.not_once(op, state)
        if leaving is not None and behind:
            exits.append(replace(leaving, cur=behind))
        return self.after(op, exits, frame, base, THREAD)

    def ends(self, op: Op, start: State, cur: Intervals, counter: Term, base: int) -> list[State]:
        """The states at the back edges of an iteration that starts in the intervals ``cur``."""
        with self.recording("dry"):
            _, _, frame, end = self.iteration(op, State(dict(start.env), start.path, cur), counter, base)
        return [*([end] if end else []), *frame.continues]

    def around(self, op: Op, start: State, counter: Term, base: int, mark: int) -> tuple[Intervals, Intervals]:
        """The intervals in which an iteration can start, and those in which the loop is left after one.

        What held before the loop still does in an interval from before it; of what an iteration found out, only what
        does not depend on the iteration is kept.
        """
        around = start.cur
        while True:
            following, behind = dict(around), Intervals()
            for s in self.ends(op, start, around, counter, base):
                for k, conditions in s.cur.items():
                    lasting = tuple(c for c in (*conditions, *s.path[base:]) if c.newest <= mark)
                    behind[k] = tuple(c for c in behind[k] if c in lasting) if k in behind else lasting
                    if k not in start.cur:  # what held when it was first entered, if each iteration keeps it
                        following[k] = tuple(c for c in following.get(k, lasting) if c in lasting)
                    else:
                        following[k] = tuple(c for c in following[k] if c in conditions)
            if following == around:
                break
            around = following
        around, outside = dict(around), -1
        for k in behind.keys() - start.cur.keys():
            after = State(start.env, start.path + around[k], start.cur)
            if not any(outside in s.cur for s in self.ends(op, after, {outside: ()}, counter, base)):
                # An iteration that starts here leaves this interval, so the block agrees on whether there is one.
                again = self.terms.fresh("havoc", BOOL, BLOCK, "the loop goes on")
                around[k] = (*around[k], again)
                behind[k] = (*behind[k], self.terms.negate(again))
        return around, behind

    def rehearsed(self, op: Op, state: State, head: State, facts: Path, counter: Term) -> State | None:
        """A loop with barriers where nothing is recorded: what matters is the state behind it."""
        base = len(state.path)
        _, leaving, frame, end = self.iteration(op, State(head.env, state.path + facts, state.cur), counter, base)
        exits = self.not_once(op, state)
        backs = [*([end] if end else []), *frame.continues]
        if leaving is not None and backs:
            exits.append(replace(leaving, cur=dict.fromkeys((k for s in backs for k in s.cur), ())))
        return self.after(op, exits, frame, base, THREAD)

    def crosses(self, op: Op, state: State, head: State, facts: Path, counter: Term) -> bool:
        """Does every iteration cross a barrier?"""
        outside = -1
        with self.recording("dry"):
            start = State(dict(head.env), state.path + facts, {outside: ()})
            _, _, frame, end = self.iteration(op, start, counter, len(state.path))
        return not any(outside in s.cur for s in [*([end] if end else []), *frame.continues])

    def aligned(self, op: Op, state: State, head: State, facts: Path, counter: Term) -> State | None:
        """A loop in which every iteration crosses a barrier: this iteration, and the next."""
        base, context, t = len(state.path), self.context, self.terms
        # All threads of the block agree on whether there is a first iteration, and whether there is one more.
        once, again = (t.fresh("havoc", BOOL, BLOCK, "the loop goes on") for _ in range(2))
        self.context = self.contexts = self.contexts + 1
        start = State(dict(head.env), (*state.path, *facts, once), state.cur)
        _, _, frame, end = self.iteration(op, start, counter, base)
        leaving = [s.fork(t.negate(once)) for s in self.not_once(op, state)]
        back = self.merge([*([end] if end else []), *frame.continues], base, BLOCK)
        if back is not None:
            self.context = self.contexts = self.contexts + 1
            with self.recording("copy", frozenset(back.cur)):
                following = t.make("xadd", counter.type, counter, t.const(1, counter.type))
                _, last, _, _ = self.iteration(op, back.fork(), following, base, again)
            leaving += [last] if last is not None else []
        self.context = context
        return self.after(op, leaving, frame, base, BLOCK)

    def not_once(self, op: Op, state: State) -> list[State]:
        """The state that leaves without an iteration, if that can be."""
        with self.recording("copy", frozenset(state.cur)):
            if op.code == "for":
                start, stop, step = (self.values[v] for v in op.operands)
                lo, hi = Facts((), self.out.base).range(step)
                code = "ge" if lo > 0 else "le" if hi < 0 else ""
                none = self.terms.make(code, BOOL, start, stop) if code else self.terms.true
                leaving: State | None = state.fork(none)
            else:
                before = self.region(op.regions[0], state.fork())
                if before is None:
                    return []
                leaving = before.fork(self.terms.negate(self.values[op.regions[0].ops[-1].operands[0]]))
        return [] if leaving is None or Facts(leaving.path, self.out.base).contradiction else [leaving]


def summarise(kernel: Kernel, uniform: Uniformity | None = None) -> Summary:
    """Every access of a kernel, symbolically. Sets ``kernel.reach``, which the facts rely on."""
    uniform = uniform if uniform is not None else uniformity(kernel)
    while True:
        run = Loops(kernel, uniform)
        run.region(kernel.body, State({}, (), {0: ()}))
        reach = _reach(run.out)
        if reach <= kernel.reach:
            return run.out
        kernel.reach = reach  # with fewer threads to think of, more is known


def _reach(summary: Summary) -> int:
    """How many elements a thread spans along x: with ``c[16 * i + j]`` 16, so that ``16 * i`` need not wrap around."""
    out = 1
    for access in summary.accesses:
        t = access.array.type
        if isinstance(t, ArrayType) and t.space == "global":
            for index in access.index:
                for atom, c in ring(index)[0].items():
                    if atom.code == "leaf" and atom.data.kind == "bid" and atom.data.key == 0:
                        out = max(out, -(-abs(c) // summary.kernel.block[0]))
    return out if out <= MAX_REACH else 1
