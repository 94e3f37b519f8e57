"""Which values and control points are the same for every thread of a block.

The verdicts are those of the WebGPU specification's uniformity analysis (section "Uniformity"), carried over
to structured IR: a barrier or subgroup operation must be reached by all threads of a block or by none.

Uniform: constants, the block's position, sizes of block and grid, kernel parameters, array extents, loads from
read-only arrays at uniform indices. Not uniform: the thread's position, loads from memory that the kernel may
write, results of atomics and of subgroup operations, and whatever is assigned where control is not uniform.
A ``return``, ``break``, ``continue`` or ``leave`` that only some threads take makes what follows it not
uniform, up to the end of the construct that it jumps out of.
"""

from __future__ import annotations

from collections.abc import Iterable

from gridwise.ir.core import Kernel, Op, Region, Value
from gridwise.ir.types import ArrayType
from gridwise.lang.errors import DivergenceError, Loc
from gridwise.lang.records import dataclass, field


@dataclass(frozen=True)
class Divergence:
    """Why a value differs between threads: the expression itself and where the difference comes from."""

    text: str
    root: str
    loc: Loc | None = None


# What is known of one thing: None if it is uniform.
Why = Divergence | None
Env = dict[Value, Why]


def snippet(value: Value) -> str:
    """The source text of a value, or its name, or the operation that made it."""
    loc = value.op.loc if value.op is not None else None
    if loc is not None and loc.end_col > loc.col:
        text = loc.source()[loc.col : loc.end_col].strip()
        if text and "\n" not in text and len(text) <= 60:
            return text
    if value.name:
        return value.name
    return value.op.code if value.op is not None else "a value"


@dataclass
class Uniformity:
    """The result: ask ``is_uniform``; ``loop_uniform`` holds the variables that are uniform at a loop's head."""

    divergent: dict[Value, Divergence] = field(default_factory=dict)
    control: dict[Op, Divergence] = field(default_factory=dict)
    loop_divergent: dict[Op, set[Value]] = field(default_factory=dict)

    def is_uniform(self, value: Value) -> bool:
        """Does every thread of a block that computes this value in the same iteration get the same one?"""
        return value not in self.divergent

    def uniform_at_head(self, loop: Op, var: Value) -> bool:
        """Is variable slot ``var`` uniform whenever ``loop`` begins an iteration?"""
        return var not in self.loop_divergent.get(loop, set())

    def uniform_control(self, op: Op) -> bool:
        """Do all threads of a block reach ``op`` together?"""
        return op not in self.control


def _join(*whys: Why) -> Why:
    return next((w for w in whys if w is not None), None)


def _join_envs(envs: Iterable[Env | None]) -> Env | None:
    alive = [e for e in envs if e is not None]
    if not alive:
        return None
    out = dict(alive[0])
    for env in alive[1:]:
        for var, why in env.items():
            out[var] = out.get(var) or why
    return out


@dataclass
class _Frame:
    """A loop or scope being executed: the states in which it is left, and with which control."""

    breaks: list[Env] = field(default_factory=list)
    continues: list[Env] = field(default_factory=list)
    control: list[Why] = field(default_factory=list)


_ROOTS = {"thread_idx": "the thread's index", "global_idx": "the thread's index"}


class _Analysis:
    def __init__(self, kernel: Kernel, refuse: bool):
        self.kernel = kernel
        self.refuse = refuse
        self.out = Uniformity()
        self.loops: list[_Frame] = []
        self.scopes: dict[int, _Frame] = {}
        self.names = {p.value: p.name for p in kernel.params}
        self.outer: dict[Op, bool] = {}

    # -- expressions -------------------------------------------------------------------------------------
    def why(self, value: Value) -> Why:
        return self.out.divergent.get(value)

    def mark(self, value: Value, why: Why) -> None:
        if why is not None and value not in self.out.divergent:
            text = snippet(value)
            self.out.divergent[value] = Divergence(text, why.root, value.op.loc if value.op else why.loc)

    def expression(self, op: Op, env: Env, control: Why) -> None:
        """Set the uniformity of ``op``'s result."""
        assert op.result is not None
        why = _join(*(self.why(v) for v in op.operands))
        if op.code in _ROOTS:
            why = Divergence(snippet(op.result), _ROOTS[op.code], op.loc)
        elif op.code == "get":
            why = env.get(op.operands[0])
        elif op.code in ("load", "vload"):
            array = op.operands[0].type
            assert isinstance(array, ArrayType)
            if array.space == "local":
                why = _join(env.get(op.operands[0]), why)
            elif array.access != "read":
                kind = "shared memory" if array.space == "shared" else "an array that the kernel writes"
                why = Divergence(snippet(op.result), f"{kind}, {self.name(op.operands[0])}", op.loc)
        elif op.code == "atomic":
            why = Divergence(snippet(op.result), "the result of an atomic operation", op.loc)
        elif op.code == "subgroup" and op.attrs["fn"] != "size":
            why = Divergence(snippet(op.result), "the result of a subgroup operation", op.loc)
        self.mark(op.result, why)

    def name(self, value: Value) -> str:
        return self.names.get(value) or value.name or "an array"

    # -- control -----------------------------------------------------------------------------------------
    def region(self, region: Region, env: Env | None, control: Why) -> tuple[Env | None, Why]:
        """Execute; the state at the end (None if the end is not reached) and the control there."""
        for op in region.ops:
            if env is None:
                return None, control
            if control is not None:
                self.out.control.setdefault(op, control)
            env, control = self.op(op, env, control)
        return env, control

    def op(self, op: Op, env: Env, control: Why) -> tuple[Env | None, Why]:
        if op.code == "set":
            var, value = op.operands
            return {**env, var: _join(self.why(value), control)}, control
        together = op.code == "barrier" or (op.code == "subgroup" and op.attrs["fn"] not in ("size", "lane"))
        if together and control is not None and self.refuse:
            self.refused(op, control)
        if op.code == "store":
            array = op.operands[0]
            if isinstance(array.type, ArrayType) and array.type.space == "local":
                why = _join(env.get(array), control, *(self.why(v) for v in op.operands[1:]))
                return {**env, array: why}, control
            return env, control
        if op.code == "if":
            return self.branch(op, env, control)
        if op.code in ("for", "while"):
            return self.loop(op, env, control)
        if op.code == "scope":
            return self.scope(op, env, control)
        if op.code in ("break", "continue"):
            frame = self.loops[-1]
            (frame.breaks if op.code == "break" else frame.continues).append(env)
            frame.control.append(control)
            return None, control
        if op.code == "leave":
            frame = self.scopes[op.attrs["id"]]
            frame.breaks.append(env)
            frame.control.append(control)
            return None, control
        if op.code == "return":
            return None, control
        if op.result is not None:
            self.expression(op, env, control)
        return env, control

    def branch(self, op: Op, env: Env, control: Why) -> tuple[Env | None, Why]:
        inner = _join(control, self.why(op.operands[0]))
        then, after_then = self.region(op.regions[0], dict(env), inner)
        other, after_else = self.region(op.regions[1], dict(env), inner)
        after = _join(after_then, after_else) if self.jumps_out(op) else control
        return _join_envs([then, other]), after

    def scope(self, op: Op, env: Env, control: Why) -> tuple[Env | None, Why]:
        frame = self.scopes[op.attrs["id"]] = _Frame()
        loops, self.loops = self.loops, []
        end, after = self.region(op.regions[0], env, control)
        self.loops = loops
        out = _join_envs([end, *frame.breaks])
        return out, _join(after, *frame.control) if self.jumps_out(op) else control

    def loop(self, op: Op, env: Env, control: Why) -> tuple[Env | None, Why]:
        head, inside = dict(env), control
        if op.code == "for":
            inside = _join(control, *(self.why(v) for v in op.operands))
        while True:  # reasons are only ever added, so this ends
            frame = _Frame()
            self.loops.append(frame)
            if op.code == "for":
                self.mark(op.regions[0].args[0], inside)
                leaving: Env | None = head
                end, after = self.region(op.regions[0], dict(head), inside)
            else:
                leaving, in_body = self.region(op.regions[0], dict(head), inside)
                in_body = _join(in_body, self.why(op.regions[0].ops[-1].operands[0]))
                end, after = self.region(op.regions[1], dict(leaving) if leaving is not None else None, in_body)
            self.loops.pop()
            around = _join_envs([head, end, *frame.continues]) or head
            again = _join(inside, after, *frame.control)
            if {v for v in around if around[v]} == {v for v in head if head[v]} and (again is None) == (inside is None):
                break
            head, inside = around, again
        self.out.loop_divergent[op] = {v for v, why in head.items() if why is not None}
        orelse = _join(control, inside) if frame.breaks else control
        other, _ = self.region(op.regions[-1], leaving, orelse)
        return _join_envs([other, *frame.breaks]), inside if self.jumps_out(op) else control

    def jumps_out(self, op: Op) -> bool:
        """Can a jump inside ``op`` land outside it?"""
        known = self.outer.get(op)
        if known is None:
            known = self.outer[op] = bool(_targets(op))
        return known

    def refused(self, op: Op, why: Divergence) -> None:
        what = "barrier()" if op.code == "barrier" else f"subgroup.{op.attrs['fn']}"
        hint = "let every thread of the block get here: end the `if` before it, or guard single accesses instead"
        where = f" (line {why.loc.line})" if why.loc is not None else ""
        message = f"{what} is reached only by some threads of a block: `{why.text}`{where} comes from {why.root}"
        raise DivergenceError(message, op.loc, hint)


def _targets(op: Op) -> set[object]:
    """What the jumps inside ``op`` leave, seen from outside: "loop", "kernel", or a scope's id."""
    out: set[object] = set()
    for n, region in enumerate(op.regions):
        inner: set[object] = set()
        for o in region.ops:
            if o.code in ("break", "continue"):
                inner.add("loop")
            elif o.code == "return":
                inner.add("kernel")
            elif o.code == "leave":
                inner.add(o.attrs["id"])
            elif o.regions:
                inner |= _targets(o)
        if op.code in ("for", "while") and n < len(op.regions) - 1:
            inner.discard("loop")
        if op.code == "scope":
            inner.discard(op.attrs["id"])
        out |= inner
    return out


def uniformity(kernel: Kernel) -> Uniformity:
    """The analysis alone: refuses nothing."""
    return _run(kernel, refuse=False)


def check_uniformity(kernel: Kernel) -> Uniformity:
    """Refuse a barrier or subgroup operation that not all threads of a block reach together.

    Raises DivergenceError, which names the value that differs between threads and its line.
    """
    return _run(kernel, refuse=True)


def _run(kernel: Kernel, refuse: bool) -> Uniformity:
    analysis = _Analysis(kernel, refuse)
    env: Env = {op.result: None for op in kernel.body.ops if op.code in ("var", "local") and op.result is not None}
    analysis.region(kernel.body, env, None)
    return analysis.out
