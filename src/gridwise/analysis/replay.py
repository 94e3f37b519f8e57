"""Runs single threads of a kernel for their accesses alone, to see whether a suspected race is real.

Integers are computed exactly as the language defines them; read-only arrays hold what the solver chose, and 0
elsewhere. What other threads may write, and floats, are unknown: where control depends on them one way is taken (for
an ``if`` without jumps, both) and what is reached is marked as depending on data.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import product
from typing import Any

from gridwise.ir.core import Kernel, Op, Region, Value
from gridwise.ir.types import BOOL, ArrayType, Scalar
from gridwise.lang.errors import RaceError

from .affine import Pair
from .solver import Model
from .summaries import Summary
from .terms import EVAL, integral

MAX_STEPS = 60_000  # operations a thread
MAX_TOTAL = 3_000_000  # operations of one search
MAX_THREADS = 1024


_EXACT: dict[str, Callable[[int, int], int]] = {  # without wrap-around
    "add": lambda a, b: a + b, "sub": lambda a, b: a - b, "mul": lambda a, b: a * b, "shl": lambda a, b: a << (b & 127)}


class _TooLong(Exception):
    pass


class _Impossible(Exception):
    """An ``assume`` is false: the launch would have refused these arguments."""


@dataclass(frozen=True, slots=True)
class Touch:
    """One access by one thread: to which element, when (barriers crossed), and whether data decided it."""

    op: Op
    array: Value
    index: tuple[int, ...]
    member: tuple[tuple[str, int], ...]
    kind: str
    interval: int
    on_data: bool
    wrapped: bool  # an integer had wrapped around in this thread before


@dataclass
class Launch:
    """Concrete arguments and a grid."""

    dims: dict[tuple[Value, int], int] = field(default_factory=dict)
    scalars: dict[Value, Any] = field(default_factory=dict)
    grid: tuple[int, int, int] = (1, 1, 1)
    loads: dict[tuple[Value, tuple[str, ...], tuple[int, ...]], int] = field(default_factory=dict)
    dim: int = 1024  # of arrays that are not in ``dims``
    subgroup: int = 32


Position = tuple[tuple[int, int, int], tuple[int, int, int]]  # of the block, and in the block


class _Thread:
    def __init__(self, kernel: Kernel, launch: Launch, at: Position):
        self.kernel, self.launch, (self.block, self.thread) = kernel, launch, at
        self.values: dict[Value, Any] = dict(launch.scalars)
        self.vars: dict[Value, Any] = {}
        self.touches: list[Touch] = []
        self.steps = self.interval = 0
        self.guessed = self.wrapped = False

    def run(self) -> list[Touch]:
        self.region(self.kernel.body)
        return self.touches

    def region(self, region: Region) -> object:
        """The jump that ends the region, or None."""
        for op in region.ops:
            self.steps += 1
            if self.steps > MAX_STEPS:
                raise _TooLong
            jump = self.op(op)
            if jump is not None:
                return jump
        return None

    def op(self, op: Op) -> object:
        code = op.code
        if code in ("break", "continue", "return"):
            return code
        if code == "leave":
            return op.attrs["id"]
        if code == "set":
            self.vars[op.operands[0]] = self.values.get(op.operands[1])  # a float is unknown
        elif code in ("load", "store", "atomic"):
            self.access(op)
        elif code == "if":
            return self.branch(op)
        elif code == "for":
            return self.for_(op)
        elif code == "while":
            return self.while_(op)
        elif code == "scope":
            jump = self.region(op.regions[0])
            return None if jump == op.attrs["id"] else jump
        elif code == "barrier":
            self.interval += 1
        elif code == "assume":
            if self.exactly(op.operands[0]) is False:
                raise _Impossible
        elif op.result is not None and isinstance(op.result.type, Scalar):
            self.values[op.result] = self.value(op)
        return None

    def value(self, op: Op) -> Any:
        code, axis = op.code, op.attrs.get("axis", 0)
        assert op.result is not None and isinstance(op.result.type, Scalar)
        if code == "const":
            return op.attrs["value"]
        if code == "get":
            return self.vars.get(op.operands[0])
        if code == "thread_idx":
            return self.thread[axis]
        if code == "block_idx":
            return self.block[axis]
        if code == "block_dim":
            return self.kernel.block[axis]
        if code == "grid_dim":
            return self.launch.grid[axis]
        if code == "global_idx":
            return self.block[axis] * self.kernel.block[axis] + self.thread[axis]
        if code == "dim":
            return self.dim(op.operands[0], axis)
        if code == "subgroup" and op.attrs["fn"] in ("size", "lane"):
            (x, y, z), (width, height, _) = self.thread, self.kernel.block
            linear = x + width * (y + height * z)
            return self.launch.subgroup if op.attrs["fn"] == "size" else linear % self.launch.subgroup
        if code == "bitcast" and isinstance(op.operands[0].type, Scalar) and op.operands[0].type.is_int:
            code = "cast"
        return self.compute(code, op.result.type, op.operands, [self.values.get(v) for v in op.operands])

    def compute(self, code: str, of: Scalar, operands: list[Value], args: list[Any]) -> Any:
        first = operands[0].type if operands else of
        if code not in EVAL or not isinstance(first, Scalar):
            return None
        if code == "select" and args[0] is not None:
            return args[1] if args[0] else args[2]
        if code in ("and", "or") and of == BOOL and None in args:
            return code == "or" if (code == "or") in args else None  # the value that decides alone, if it is there
        if None in args or not integral(of) or not integral(first):
            return None
        result = EVAL[code](first if of == BOOL and code != "cast" else of, *args)
        if code in _EXACT and of.is_int and result != _EXACT[code](*args):
            self.wrapped = True
        return result

    def exactly(self, value: Value) -> Any:
        """An ``assume``'s operand, in unbounded integers."""
        op = value.op
        if op is None or op.code in ("get", "load", "dim", "const"):
            return self.values.get(value)
        args: list[Any] = [self.exactly(v) if isinstance(v.type, Scalar) else None for v in op.operands]
        if op.code in ("add", "sub", "mul") and None not in args and integral(value.type):  # type: ignore[arg-type]
            return {"add": args[0] + args[1], "sub": args[0] - args[1], "mul": args[0] * args[1]}[op.code]
        if not op.operands:
            return self.values.get(value)
        assert isinstance(value.type, Scalar)
        return self.compute(op.code, value.type, op.operands, args)

    def dim(self, array: Value, axis: int) -> int:
        t = array.type
        assert isinstance(t, ArrayType)
        if t.shape is not None and t.shape[axis]:
            return t.shape[axis]
        return self.launch.dims.get((array, axis), self.launch.dim)

    def access(self, op: Op) -> None:
        array = op.operands[0]
        t = array.type
        assert isinstance(t, ArrayType)
        fields = op.attrs.get("field", ())
        counts = [f.count for f in fields if f.count]
        index: list[Any] = [self.values.get(v) for v in op.operands[1 : 1 + t.rank + len(counts)]]
        extent = [*(self.dim(array, a) for a in range(t.rank)), *counts]
        if op.result is not None:
            self.values[op.result] = None
        if None in index or not all(0 <= i < n for i, n in zip(index, extent, strict=True)):
            return
        if op.code == "load" and t.access == "read" and t.space == "global" and op.result is not None:
            if integral(op.result.type):  # type: ignore[arg-type]
                key = array, tuple(f.name for f in fields), tuple(index)
                self.values[op.result] = self.launch.loads.get(key, 0)
            return
        if t.space == "local" or "unsafe" in op.attrs:
            return
        extra = iter(index[t.rank :])
        member = tuple((f.name, next(extra) if f.count else -1) for f in fields)
        kind = {"load": "read", "store": "write", "atomic": "atomic"}[op.code]
        self.touches.append(Touch(op, array, tuple(index[: t.rank]), member, kind, self.interval, self.guessed,
                                  self.wrapped))

    def branch(self, op: Op) -> object:
        cond = self.values.get(op.operands[0])
        if cond is not None:
            return self.region(op.regions[0 if cond else 1])
        saved, self.guessed = self.guessed, True
        special = [any(o.code in ("break", "continue", "return", "leave", "barrier") for o in r.walk())
                   for r in op.regions]
        if any(special):
            jump = self.region(op.regions[1 if special[0] else 0])
            self.guessed = saved or jump is not None
            return jump
        before = dict(self.vars)
        self.region(op.regions[0])
        then, self.vars = self.vars, before
        self.region(op.regions[1])
        for v, x in then.items():
            if v not in self.vars or self.vars[v] != x:
                self.vars[v] = None
        self.guessed = saved
        return None

    def for_(self, op: Op) -> object:
        start, stop, step = (self.values.get(v) for v in op.operands)
        if start is None or stop is None or not step:
            return None
        for i in range(start, stop, step):
            self.values[op.regions[0].args[0]] = i
            jump = self.region(op.regions[0])
            if jump == "break":
                return None
            if jump is not None and jump != "continue":
                return jump
        return self.region(op.regions[1])

    def while_(self, op: Op) -> object:
        rounds = 0
        while True:
            self.region(op.regions[0])
            cond = self.values.get(op.regions[0].ops[-1].operands[0])
            if cond is None:
                cond, self.guessed = rounds == 0, True
            if not cond:
                return self.region(op.regions[2])
            rounds += 1
            jump = self.region(op.regions[1])
            if jump == "break":
                return None
            if jump is not None and jump != "continue":
                return jump


@dataclass(frozen=True)
class Race:
    """Two threads that meet."""

    first: Touch
    second: Touch
    one: Position
    two: Position
    launch: Launch


def _conflict(t: Touch, u: Touch, same_block: bool) -> bool:
    array = t.array.type
    assert isinstance(array, ArrayType)
    block_scope = not same_block and "block" in (t.op.attrs.get("scope"), u.op.attrs.get("scope"))
    if t.kind == u.kind and t.kind != "write" and not (t.kind == "atomic" and block_scope):
        return False
    if same_block:
        if t.interval != u.interval:
            return False
    elif array.space == "shared":
        return False
    if t.on_data and u.on_data and t.op is not u.op:
        return False  # the two conditions on data may exclude each other
    return t.index == u.index and all(f == g for f, g in zip(t.member, u.member, strict=False))


def _race_among(kernel: Kernel, launch: Launch, threads: Iterator[Position], wanted: Value | None,
                steps: int) -> tuple[Race | None, int]:
    """The first two threads that meet, and how many operations were run to know."""
    seen: dict[tuple[Value, tuple[int, ...]], list[tuple[Position, Touch]]] = {}
    total = 0
    for at in threads:
        thread = _Thread(kernel, launch, at)
        try:
            touches = thread.run()
        except _TooLong:
            touches = thread.touches
        total += thread.steps
        for t in dict.fromkeys(touches):
            if wanted is not None and t.array is not wanted:
                continue
            others = seen.setdefault((t.array, t.index), [])
            for where, u in others:
                if where != at and _conflict(u, t, where[0] == at[0]):
                    if u.kind == "read":  # tell of the write first
                        return Race(t, u, at, where, launch), total
                    return Race(u, t, where, at, launch), total
            if len(others) < 16:
                others.append((at, t))
        if total > steps:
            break
    return None, total


def _launch_of(summary: Summary, model: Model) -> tuple[Launch, list[Position]]:
    launch = Launch()
    grid = [1, 1, 1]
    for leaf, n in model.leaves.items():
        if leaf.data.kind == "dim":
            launch.dims[leaf.data.key] = n
        elif leaf.data.kind == "param":
            launch.scalars[leaf.data.key] = n
        elif leaf.data.key == "size":
            launch.subgroup = n
        elif leaf.data.kind == "gdim":
            grid[leaf.data.key] = n
    launch.loads = model.loads
    positions: list[Position] = []
    for own in model.threads:
        place = {"bid": [0, 0, 0], "tid": [0, 0, 0]}
        for leaf, n in (*model.leaves.items(), *own.items()):
            if leaf.data.kind in place:
                place[leaf.data.kind][leaf.data.key] = n
        grid = [max(g, b + 1) for g, b in zip(grid, place["bid"], strict=True)]
        positions.append((tuple(place["bid"]), tuple(place["tid"])))  # type: ignore[arg-type]
    launch.grid = tuple(grid)  # type: ignore[assignment]
    return launch, positions


def _everyone(kernel: Kernel, blocks: list[tuple[int, int, int]]) -> Iterator[Position]:
    for block in blocks:
        for z, y, x in product(*(range(n) for n in reversed(kernel.block))):
            yield block, (x, y, z)


def _attempts(summary: Summary, model: Model | None) -> Iterator[tuple[Launch, Iterator[Position]]]:
    """Launches in which the race may show, likeliest first."""
    kernel = summary.kernel
    if model is not None:
        launch, two = _launch_of(summary, model)
        _defaults(kernel, launch, (1,))
        yield launch, iter(two)
        if kernel.block[0] * kernel.block[1] * kernel.block[2] <= MAX_THREADS:
            yield launch, _everyone(kernel, list(dict.fromkeys(p[0] for p in two)))
    size = kernel.block[0] * kernel.block[1] * kernel.block[2]
    neighbours: list[tuple[int, int, int]] = [(0, 0, 0), (1, 0, 0)] + ([(0, 1, 0)] if kernel.domain > 1 else [])
    wide = 1 << 20
    tries: tuple[tuple[int, tuple[int, ...]], ...] = (
        (2 * size, (1,)), (2 * size, (2,)), (2 * size, (size,)), (wide, (64, 8)), (wide, (8, 64)), (64, (8,)),
        (2 * size, (2 * size,)), (wide, (16,)), (wide, (1 << 30,)))
    for extent, numbers in tries:
        launch = Launch(grid=(2, 2 if kernel.domain > 1 else 1, 2 if kernel.domain > 2 else 1), dim=extent)
        _defaults(kernel, launch, numbers)
        yield launch, _everyone(kernel, neighbours)


def _defaults(kernel: Kernel, launch: Launch, numbers: tuple[int, ...]) -> None:
    """Values for the scalars that have none yet: ``numbers`` in turn."""
    count = 0
    for p in kernel.params:
        t = p.type
        if isinstance(t, Scalar) and integral(t) and p.value not in launch.scalars:
            number = numbers[count % len(numbers)]
            launch.scalars[p.value] = bool(number) if t == BOOL else min(number, t.max)
            count += 1


def search(summary: Summary, model: Model | None, wanted: Value | None, steps: int = MAX_TOTAL) -> Race | None:
    """Two threads that really meet, if running a few finds them."""
    for launch, threads in _attempts(summary, model):
        try:
            race, used = _race_among(summary.kernel, launch, threads, wanted, steps)
        except _Impossible:
            continue
        if race is not None:
            return race
        steps -= used
        if steps <= 0:
            break
    return None


def find_race(summary: Summary, pair: Pair, model: Model | None, stage: int) -> None:
    """Raise RaceError if the suspected race shows in a run; a later stage runs more threads."""
    race = search(summary, model, pair.a.array, MAX_TOTAL // (60, 20, 1)[stage])
    if race is not None:
        raise RaceError(_message(summary, race), race.first.op.loc, _hint(summary, race))


def _who(kernel: Kernel, at: Position, in_block: bool) -> str:
    position = at[1] if in_block else tuple(b * n + t for b, n, t in zip(at[0], kernel.block, at[1], strict=True))
    axes = max([n + 1 for n in range(3) if kernel.block[n] > 1] + [1 if in_block else kernel.domain])
    return f"thread {position[0]}" if axes == 1 else f"thread {tuple(position[:axes])}".replace("'", "")


def _message(summary: Summary, race: Race) -> str:
    kernel, (a, b) = summary.kernel, (race.first, race.second)
    array = a.array.type
    assert isinstance(array, ArrayType)
    shared = array.space == "shared"
    one, two = _who(kernel, race.one, shared), _who(kernel, race.two, shared)
    members = "".join(f".{n}" + (f"[{i}]" if i >= 0 else "") for n, i in a.member)
    element = f"{summary.name(a.array)}[{', '.join(map(str, a.index))}]{members}"
    verbs = {"read": "read", "write": "write", "atomic": "update"}
    if a.kind == b.kind and (a.op.loc is None or b.op.loc is None or a.op.loc.line == b.op.loc.line):
        text = f"{one} and {two}{' of a block' if shared else ''} both {verbs[a.kind]} {element}"
    else:
        lines = [f" (line {t.op.loc.line})" if t.op.loc else "" for t in (a, b)]
        text = f"{one}{' of a block' if shared else ''} {verbs[a.kind]}s {element}{lines[0]} while {two} " \
               f"{verbs[b.kind]}s it{lines[1]}"
    told = _values(summary, race)
    return f"race: {text}{f', with {told}' if told else ''}"


def _values(summary: Summary, race: Race) -> str:
    """The arguments that the counterexample needs: those that the accesses depend on."""
    from .terms import leaves

    used: dict[str, int] = {}
    for access in summary.accesses:
        if access.op in (race.first.op, race.second.op):
            for term in (*access.index, *access.path):
                for leaf in leaves(term):
                    if leaf.code == "leaf" and leaf.data.kind == "param" and leaf.data.key in race.launch.scalars:
                        used[leaf.data.name] = race.launch.scalars[leaf.data.key]
                    elif leaf.code == "leaf" and leaf.data.kind == "dim" and leaf.data.key[0] is not race.first.array:
                        used[leaf.data.name] = race.launch.dims.get(leaf.data.key, race.launch.dim)
    for access in summary.accesses:
        if access.op in (race.first.op, race.second.op):
            for term in (*access.index, *access.path):
                for load in leaves(term):
                    if load.code == "load":
                        for (array, member, at), n in race.launch.loads.items():
                            if array is load.data[0] and member == load.data[1] and len(used) < 4:
                                used[f"{summary.name(array)}[{', '.join(map(str, at))}]"] = n
    return ", ".join(f"{name} = {n}" for name, n in list(used.items())[:4])


def _hint(summary: Summary, race: Race) -> str:
    array = race.first.array.type
    assert isinstance(array, ArrayType)
    if race.first.wrapped or race.second.wrapped:
        return "an integer wraps around on the way to this index: bound its parts, as with requires=lambda c, h, w: " \
               "len(c) >= h * w"
    if array.space == "shared" and race.first.op is not race.second.op:
        return "put barrier() between the two, or give each thread an element of its own"
    if array.space == "shared":
        return "give each thread an element of its own, or use atomic operations"
    return "give each thread an element of its own, or make the array an AtomicSlice"
