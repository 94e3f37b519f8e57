"""Control flow of a gang: branches where all lanes agree, masks where they do not."""

from __future__ import annotations

from gridwise.ir import Op, Region, Value, ops
from gridwise.ir.types import BOOL, Scalar, VarType
from gridwise.lang.records import dataclass

from .groups import find_groups
from .lanes import Val
from .memory import Memory
from .shapes import Jump, Shape

FLAT_LIMIT = 24  # operations that are cheaper to run under a mask than to branch around


@dataclass
class Target:
    """Where branches out of a construct go."""

    out: str
    again: str = ""
    scope: int | None = None


class Control(Memory):
    """A gang that runs regions. ``exit`` is the label where the gang's work ends."""

    def __init__(self, *args: object):
        super().__init__(*args)
        self.targets: list[Target] = []
        self.gone: dict[Jump, str] = {}  # lanes that jumped, one alloca a target
        self.slots: dict[Value, str] = {}  # variables
        self.exit = ""

    # -- regions -------------------------------------------------------------------------------------------------
    def region(self, region: Region) -> None:
        self.sequence(region.ops)

    def sequence(self, body: list[Op]) -> None:
        """Operations in order. Once some lanes jump away, the rest runs for those that are left, if any."""
        entry, end = self.mask, ""
        self.groups.update(find_groups(body, self.shapes, self.lanes, self.written))
        for n, op in enumerate(body):
            if not self.fn.open:
                break
            self.fn.at(op.loc)
            self.op(op)
            leaving = self.shapes.escapes.get(op)
            if leaving and self.fn.open and n + 1 < len(body):
                self.mask = self.left(self.mask, leaving)  # those that jumped before stay away
                end = end or self.fn.label("rejoin")
                go_on = self.fn.label("go")
                self.fn.branch(self.any(self.mask), go_on, end)
                self.fn.block(go_on)
        if end:
            self.fn.block(end)
        self.mask = entry

    def left(self, mask: str | None, jumps: set[Jump]) -> str:
        """The lanes of ``mask`` that took none of the jumps."""
        for jump in sorted(jumps, key=lambda j: self.gone[j]):
            mask = self.without(mask, self.fn.value(f"load {self.bools}, ptr {self.gone[jump]}", "gone"))
        return self.full(mask)

    def op(self, op: Op) -> None:
        handler = getattr(self, f"op_{op.code}", None)
        if handler is not None:
            handler(op)
        elif op.result not in self.shapes.known:
            assert op.result is not None, f"no way to emit {op.code}"
            self.values[op.result] = self.pure(op)

    # -- constants, identities, variables --------------------------------------------------------------------------
    def op_const(self, op: Op) -> None:
        assert op.result is not None and isinstance(op.result.type, Scalar)
        self.values[op.result] = Val(self.arith.const(op.attrs["value"], op.result.type))

    def op_dim(self, op: Op) -> None:
        assert op.result is not None
        self.values[op.result] = Val(self.arrays[op.operands[0]].dims[op.attrs["axis"]])

    def op_assume(self, op: Op) -> None:
        pass

    def form(self, t: Scalar, shape: Shape) -> str:
        """The LLVM type that holds a value of this shape."""
        return self.arith.type(t, self.lanes if shape.varying else 1)

    def op_var(self, op: Op) -> None:
        assert op.result is not None and isinstance(op.result.type, VarType)
        form = self.form(op.result.type.scalar, self.shapes.variable(op.result))
        self.slots[op.result] = self.fn.alloca(form, op.attrs["name"])

    def op_get(self, op: Op) -> None:
        assert op.result is not None and isinstance(op.result.type, Scalar)
        var = op.operands[0]
        shape = self.shapes.variable(var)
        text = self.fn.value(f"load {self.form(op.result.type, shape)}, ptr {self.slots[var]}", var.name)
        self.values[op.result] = Val(text, shape.stride)

    def op_set(self, op: Op) -> None:
        var, value = op.operands
        assert isinstance(value.type, Scalar)
        self.assign(self.slots[var], value.type, self.shapes.variable(var), self.val(value), op in self.shapes.masked)

    def assign(self, slot: str, t: Scalar, shape: Shape, val: Val, masked: bool) -> None:
        """Store to a variable; lanes that do not run keep what they have if ``masked``."""
        form = self.form(t, shape)
        if not shape.varying:
            self.fn.do(f"store {form} {val.text}, ptr {slot}")
            return
        text = self.vec(val, t)
        if masked and self.mask is not None:
            old = self.fn.value(f"load {form}, ptr {slot}")
            text = self.arith.select(self.mask, text, old, t, self.lanes)
        self.fn.do(f"store {form} {text}, ptr {slot}")

    # -- if --------------------------------------------------------------------------------------------------------
    def op_if(self, op: Op) -> None:
        f, entry = self.fn, self.mask
        then, orelse = op.regions
        cond = op.operands[0]
        if self.val(cond).stride == 0:
            after, yes = f.label("endif"), f.label("then")
            no = f.label("else") if orelse.ops else after
            f.branch(self.val(cond).text, yes, no)
            f.block(yes)
            self.region(then)
            f.jump(after)
            if orelse.ops:
                f.block(no)
                self.region(orelse)
            f.block(after)
            return
        test = self.use(cond)
        inside = self.both(entry, test)
        outside = self.without(entry, test) if orelse.ops else ""
        flat = not op.attrs.get("rare") and self._flat_cost(op) <= FLAT_LIMIT
        for region, mask, hint in ((then, inside, "then"), (orelse, outside, "else")):
            if not region.ops:
                continue
            self.mask = mask
            if flat:
                self.region(region)
            else:
                body, after = f.label(hint), f.label("endif")
                f.branch(self.any(mask), body, after)
                f.block(body)
                self.region(region)
                f.block(after)
        self.mask = entry

    def _flat_cost(self, op: Op) -> int:
        """How many operations run under the mask if nothing branches; too many if any needs a lane that runs."""
        cost = 0
        for region in op.regions:
            for inner in region.ops:
                plain = ops.TABLE[inner.code].pure or inner.code in ("get", "set")
                jump = inner.code in ("break", "continue", "leave", "return") and inner in self.shapes.masked
                if inner.code == "if" and not inner.attrs.get("rare") and not self.shapes.escapes.get(inner):
                    cost += self._flat_cost(inner)
                elif plain or jump:
                    # Predicates that are uniform by proof only would read a lane that runs.
                    cost += 1
                else:
                    return FLAT_LIMIT + 1
        return cost

    # -- loops -----------------------------------------------------------------------------------------------------
    def _fresh_gone(self, jump: Jump, name: str) -> None:
        """An empty set of lanes for a target that some lanes will jump to."""
        slot = self.gone.get(jump) or self.fn.alloca(self.bools, name)
        self.gone[jump] = slot
        self.fn.do(f"store {self.bools} zeroinitializer, ptr {slot}")

    def _jumps(self, op: Op) -> set[Jump]:
        """Targets that masked jumps inside ``op`` reach, its own included."""
        own: set[Jump] = set()
        for region in op.regions:
            for inner in region.ops:
                own |= self.shapes.escapes.get(inner, set())
        return own

    def op_for(self, op: Op) -> None:
        f, entry = self.fn, self.mask
        index = op.regions[0].args[0]
        assert isinstance(index.type, Scalar)
        t, shape = index.type, self.shapes.of(index)
        jumps, shrinking = self._jumps(op), op in self.shapes.shrinking
        if ("loop", op) in jumps:
            self._fresh_gone(("loop", op), "broke")
        bounds = [self.val(v) for v in op.operands]
        apart = any(b.stride != 0 for b in bounds)
        start, step = bounds[0], bounds[2]
        wide = self.lanes if apart else 1
        if apart:
            texts = [self.vec(b, t) for b in bounds]
            if entry is not None and self.arith.literal(texts[2]) is None:
                texts[2] = self.arith.select(entry, texts[2], self.arith.const(1, t, wide), t, wide)
        else:
            texts = [b.text for b in bounds]
        trips = self.arith.trip_count(t, texts[0], texts[1], texts[2], wide)
        ty = self.arith.scalar(t)
        counter, place = f.alloca(ty, "trip"), f.alloca(self.form(t, shape), index.name or "i")
        f.do(f"store {ty} 0, ptr {counter}")
        first = self.vec(start, t) if shape.varying else start.text
        f.do(f"store {self.form(t, shape)} {first}, ptr {place}")
        head, body, again, done = f.label("for"), f.label("do"), f.label("next"), f.label("endfor")
        orelse = f.label("for.else") if op.regions[1].ops else done
        live = f.alloca(self.bools, "live") if shrinking else ""
        if live:
            f.do(f"store {self.bools} {self.full(entry)}, ptr {live}")
        f.block(head)
        n = f.value(f"load {ty}, ptr {counter}", "trip")
        if apart:
            more = f.value(f"icmp ult {self.arith.type(t, wide)} {self.broadcast(n, ty)}, {trips}")
            self.mask = self.both(f.value(f"load {self.bools}, ptr {live}", "live"), more)
            f.branch(self.any(self.mask), body, orelse)
        else:
            self.mask = f.value(f"load {self.bools}, ptr {live}", "live") if live else entry
            f.branch(f.value(f"icmp ult {ty} {n}, {trips}"), body, orelse)
        f.block(body)
        now = f.value(f"load {self.form(t, shape)}, ptr {place}", index.name or "i")
        self.values[index] = Val(now, shape.stride)
        self._body(op, op.regions[0], Target(done, again), jumps)
        f.block(again)
        by = self.vec(step, t) if shape.varying else step.text
        # The step past the last trip may wrap; that value is never used, so it may be poison - unless lanes that
        # are through go on beside others. A step down wraps an unsigned index by its very form.
        exact = " nsw" if t.signed and not apart else ""
        f.do(f"store {self.form(t, shape)} {f.value(f'add{exact} {self.form(t, shape)} {now}, {by}')}, ptr {place}")
        f.do(f"store {ty} {f.value(f'add nuw {ty} {n}, 1')}, ptr {counter}")
        self._repeat(live, jumps - {("again", op)}, head, orelse, self._hints(op))
        self._otherwise(op, orelse, done, entry, jumps)

    def op_while(self, op: Op) -> None:
        f, entry = self.fn, self.mask
        cond, body_region, _ = op.regions
        jumps, shrinking = self._jumps(op), op in self.shapes.shrinking
        if ("loop", op) in jumps:
            self._fresh_gone(("loop", op), "broke")
        head, body, again, done = f.label("while"), f.label("do"), f.label("next"), f.label("endwhile")
        orelse = f.label("while.else") if op.regions[2].ops else done
        live = f.alloca(self.bools, "live") if shrinking else ""
        if live:
            f.do(f"store {self.bools} {self.full(entry)}, ptr {live}")
        f.block(head)
        self.mask = f.value(f"load {self.bools}, ptr {live}", "live") if live else entry
        for inner in cond.ops[:-1]:
            f.at(inner.loc)
            self.op(inner)
        test = self.val(cond.ops[-1].operands[0])
        if test.stride == 0:
            f.branch(test.text, body, orelse)
        else:
            self.mask = self.both(self.mask, self.vec(test, BOOL))
            f.do(f"store {self.bools} {self.mask}, ptr {live}")
            f.branch(self.any(self.mask), body, orelse)
        f.block(body)
        self._body(op, body_region, Target(done, again), jumps)
        f.block(again)
        self._repeat(live, jumps - {("again", op)}, head, orelse, self._hints(op))
        self._otherwise(op, orelse, done, entry, jumps)

    def _body(self, op: Op, region: Region, target: Target, jumps: set[Jump]) -> None:
        if ("again", op) in jumps:
            self._fresh_gone(("again", op), "continued")
        self.targets.append(target)
        self.region(region)
        self.targets.pop()

    def _repeat(self, live: str, jumps: set[Jump], head: str, orelse: str, hints: str) -> None:
        """The end of an iteration: lanes that left for good stay out of the next one."""
        if live and jumps:
            rest = self.left(self.mask, jumps)
            self.fn.do(f"store {self.bools} {rest}, ptr {live}")
            self.fn.end(f"br i1 {self.any(rest)}, label %{head}, label %{orelse}{hints}")
        else:
            self.fn.end(f"br label %{head}{hints}")

    def _otherwise(self, op: Op, orelse: str, done: str, entry: str | None, jumps: set[Jump]) -> None:
        """The else part, for the lanes that did not break; then all come back."""
        f = self.fn
        away = jumps - {("again", op)}
        self.mask = entry
        if op.regions[-1].ops:
            f.block(orelse)
            if away:
                self.mask = self.left(entry, away)
                go_on = f.label("go")
                f.branch(self.any(self.mask), go_on, done)
                f.block(go_on)
            self.region(op.regions[-1])
        f.block(done)
        self.mask = entry

    def _hints(self, op: Op) -> str:
        unroll = op.attrs.get("unroll")
        if unroll is None:
            return ""
        hint = {0: '!"llvm.loop.unroll.full"', 1: '!"llvm.loop.unroll.disable"'}.get(
            unroll, f'!"llvm.loop.unroll.count", i32 {unroll}')
        return f", !llvm.loop {self.fn.module.self_node(self.fn.module.node(f'!{{{hint}}}'))}"

    # -- scopes and jumps --------------------------------------------------------------------------------------------
    def op_scope(self, op: Op) -> None:
        jump: Jump = ("scope", op.attrs["id"])
        if jump in self._jumps(op):
            self._fresh_gone(jump, "left")
        after = self.fn.label("leave")
        self.targets.append(Target(after, scope=op.attrs["id"]))
        self.region(op.regions[0])
        self.targets.pop()
        self.fn.block(after)

    def _jump(self, op: Op, label: str) -> None:
        if op in self.shapes.masked:
            (jump,) = self.shapes.escapes[op]
            slot = self.gone[jump]
            old = self.fn.value(f"load {self.bools}, ptr {slot}", "gone")
            now = self.fn.value(f"or {self.bools} {old}, {self.full(self.mask)}", "gone")
            self.fn.do(f"store {self.bools} {now}, ptr {slot}")
        else:
            self.fn.jump(label)

    def _loop(self) -> Target:
        return next(t for t in reversed(self.targets) if t.again)

    def op_break(self, op: Op) -> None:
        self._jump(op, self._loop().out)

    def op_continue(self, op: Op) -> None:
        self._jump(op, self._loop().again)

    def op_leave(self, op: Op) -> None:
        self._jump(op, next(t for t in reversed(self.targets) if t.scope == op.attrs["id"]).out)

    def op_return(self, op: Op) -> None:
        self._jump(op, self.exit)
