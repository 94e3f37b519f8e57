"""Where a block's program is cut: at barriers, and wherever control that leads to a barrier is decided.

(Loops that walk memory side by side count too: ``lockstep.py``.)
Operations that lead to no barrier are gathered into *runs*; a run is executed by one gang after another. What is
left - loops and branches with barriers inside - is executed once for the whole block; analysis has proved that
all threads agree on it. A value that one run makes and another uses is computed again if it is cheap, else it
waits in the block's context memory.
"""

from __future__ import annotations

from collections.abc import Iterator

from gridwise.analysis.uniformity import uniformity
from gridwise.ir import Kernel, Op, Region, Value
from gridwise.lang.records import dataclass, field

from .guards import closure
from .shapes import Jump

_DECLARED = ("var", "shared", "local")
JUMPS = ("break", "continue", "leave", "return")
_POSITION = ("thread_idx", "global_idx")


@dataclass(eq=False)
class Run:
    """Operations between two cuts, and what they take from and give to others.

    ``outside`` values are made elsewhere; ``variables`` are slots that other runs use too (True: set here);
    ``jumps`` are the targets, outside the run, that some of its operations jump to.
    """

    ops: list[Op]
    outside: list[Value] = field(default_factory=list)
    variables: dict[Value, bool] = field(default_factory=dict)
    jumps: dict[Jump, None] = field(default_factory=dict)

    def walk(self) -> Iterator[Op]:
        yield from Region(self.ops).walk()


Item = Run | Op


class Cuts:
    """The plan: ``items[region]`` for every region that the block executes as a whole.

    ``together`` are the control operations executed once a block; ``kept`` values wait in context memory;
    ``decided`` values decide the block's control; ``tracked`` jumps leave their run.
    """

    def __init__(self, kernel: Kernel):
        self.kernel = kernel
        self.cut = any(op.code == "barrier" or op.attrs.get("lockstep") for op in kernel.walk())
        self.together: frozenset[Op] = frozenset()
        self.tracked: dict[Op, Jump] = {}
        self.items: dict[Region, list[Item]] = {}
        self.runs: list[Run] = []
        self.kept: set[Value] = set()
        self.decided: set[Value] = set()
        self._owner = {r: op for op in kernel.walk() for r in op.regions}
        self._region = {op: r for r in [kernel.body, *self._owner] for op in r.ops}
        self._uniform = uniformity(kernel) if self.cut else None
        self._find_together()
        self._region_items(kernel.body)
        self._find_flow()

    # -- control that the block decides as a whole -----------------------------------------------------------
    def _find_together(self) -> None:
        found = {
            op
            for op in self.kernel.walk()
            if op.attrs.get("lockstep") or any(o.code == "barrier" for r in op.regions for o in r.walk())
        }
        jumps = [op for op in self.kernel.walk() if op.code in JUMPS] if self.cut else []
        while True:
            before = len(found)
            for jump in jumps:
                path, target = self._path(jump)
                if (target is None or target in found) and self._agreed(jump):
                    found.update(path)
            if len(found) == before:
                break
        self.together = frozenset(found)
        for jump in jumps:
            path, target = self._path(jump)
            if (target is None or target in found) and not (self._agreed(jump) and all(p in found for p in path)):
                key: Jump = ("return", None)
                if target is not None:
                    key = ("scope", jump.attrs["id"]) if jump.code == "leave" else (
                        "loop" if jump.code == "break" else "again", target)
                self.tracked[jump] = key

    def _agreed(self, jump: Op) -> bool:
        assert self._uniform is not None
        return self._uniform.uniform_control(jump)

    def _path(self, jump: Op) -> tuple[list[Op], Op | None]:
        """The operations around a jump, inner first, up to its target, and the target (None: the kernel)."""
        path: list[Op] = []
        region = self._region[jump]
        while region in self._owner:
            op = self._owner[region]
            loop_body = op.code in ("for", "while") and region is op.regions[1 if op.code == "while" else 0]
            if jump.code in ("break", "continue") and loop_body:
                return path, op
            if jump.code == "leave" and op.code == "scope" and op.attrs["id"] == jump.attrs["id"]:
                return path, op
            path.append(op)
            region = self._region[op]
        return path, None

    # -- runs ------------------------------------------------------------------------------------------------
    def _region_items(self, region: Region) -> None:
        items: list[Item] = []
        pending: list[Op] = []

        def flush() -> None:
            if pending:
                items.append(Run(list(pending)))
                pending.clear()

        for op in region.ops:
            if op.code in (*_DECLARED, "yield", "assume"):
                continue
            if op.code == "barrier":
                flush()
            elif op in self.together or (op.code in JUMPS and self.cut and op not in self.tracked):
                flush()
                items.append(op)
            else:
                pending.append(op)
        flush()
        self.items[region] = items
        for op in region.ops:
            if op in self.together:
                for inner in op.regions:
                    self._region_items(inner)

    def _deciding(self) -> Iterator[Value]:
        """The operands of control that the block executes as a whole."""
        for op in self.together:
            if op.code in ("if", "for"):
                yield from op.operands
            elif op.code == "while":
                yield op.regions[0].ops[-1].operands[0]

    def again(self, v: Value) -> list[Op] | None:
        """The operations that compute ``v`` anew anywhere in the block, or None."""
        return closure(v)

    def settled(self, v: Value) -> list[Op] | None:
        """The operations that compute ``v`` for the whole block, or None if it needs a thread."""
        ops = closure(v)
        return None if ops is None or any(op.code in _POSITION for op in ops) else ops

    def _find_flow(self) -> None:
        for v in self._deciding():
            if v.op is not None and self.settled(v) is None:
                self.decided.add(v)
        for items in self.items.values():
            # A run of nothing but values that others compute anew has no work of its own.
            items[:] = [i for i in items if not (isinstance(i, Run) and self._idle(i))]
        self.runs = [i for items in self.items.values() for i in items if isinstance(i, Run)]
        made: dict[Value, Run] = {}
        slots: dict[Value, set[int]] = {}
        for n, run in enumerate(self.runs):
            for op in run.walk():
                if op.result is not None:
                    made[op.result] = run
                for region in op.regions:
                    made.update(dict.fromkeys(region.args, run))
                if op.code in ("get", "set"):
                    slots.setdefault(op.operands[0], set()).add(n)
        known = {p.value for p in self.kernel.params} | {
            op.result for op in self.kernel.body.ops if op.code in _DECLARED}
        for run in self.runs:
            outside: dict[Value, None] = {}
            for op in run.walk():
                if op in self.tracked:
                    run.jumps[self.tracked[op]] = None
                for v in op.operands:
                    if v not in known and made.get(v) is not run:
                        outside[v] = None
                if op.code in ("get", "set") and len(slots[op.operands[0]]) > 1:
                    var = op.operands[0]
                    run.variables[var] = run.variables.get(var, False) or op.code == "set"
            run.outside = list(outside)
            self.kept.update(v for v in outside if v in made and self.again(v) is None)

    def _idle(self, run: Run) -> bool:
        return all(
            op.result is not None and op.result not in self.decided and self.again(op.result) is not None
            for op in run.ops
        )
