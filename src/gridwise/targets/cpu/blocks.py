"""Kernels whose threads work together: block by block, each block cut into runs of gangs (``cuts.py``).

All threads of a block run on one core, a gang at a time, so shared memory is plain memory and a barrier costs a
loop. Variables, values and local arrays that outlive a run live in context memory, a slot a gang.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from gridwise.ir import Op, Region, Value
from gridwise.ir.types import ArrayType, Scalar, VarType
from gridwise.targets.llvm.text import vector

from .ahead import ask, outputs
from .control import Target
from .cuts import Cuts, Run
from .emit import Emitted, Frame, Gang
from .lanes import Val
from .memory import ArrayRef
from .shapes import VARYING, Jump, Shape, Shapes

_LINE = 64  # bytes: what context and shared memory are aligned to
STRIP = 8  # rows of blocks


class BlockGang(Gang):
    """A gang inside a run: keeps what later runs and the block itself need."""

    def __init__(self, blocks: Blocks, number: str):
        super().__init__(blocks.frame, blocks.shapes)
        self.blocks, self.number = blocks, number
        self.arrays.update(blocks.arrays)
        self.slots = blocks.slots

    def op(self, op: Op) -> None:
        super().op(op)
        v = op.result
        if v is None or not isinstance(v.type, Scalar) or not self.fn.open:
            return
        if v in self.blocks.cuts.kept:
            self.blocks.keep(self, v, self.val(v))
        if v in self.blocks.decided:
            self.fn.do(f"store {self.arith.scalar(v.type)} {self.scalar(v)}, ptr {self.blocks.decided[v]}")

    def _jump(self, op: Op, label: str) -> None:
        jump = self.blocks.cuts.tracked.get(op)
        if jump is None:
            super()._jump(op, label)
            return
        slot = self.gone[jump]
        old = self.fn.value(f"load {self.bools}, ptr {slot}", "gone")
        now = self.fn.value(f"or {self.bools} {old}, {self.full(self.mask)}", "gone")
        self.fn.do(f"store {self.bools} {now}, ptr {slot}")
        if op not in self.shapes.masked:
            self.fn.jump(self.exit)

    def op_break(self, op: Op) -> None:
        self._jump(op, "" if op in self.blocks.cuts.tracked else self._loop().out)

    def op_continue(self, op: Op) -> None:
        self._jump(op, "" if op in self.blocks.cuts.tracked else self._loop().again)

    def op_leave(self, op: Op) -> None:
        if op in self.blocks.cuts.tracked:
            self._jump(op, "")
        else:
            super().op_leave(op)


class Blocks:
    """Emits a kernel block by block."""

    def __init__(self, frame: Frame):
        self.frame, self.fn, self.kernel, self.lanes = frame, frame.fn, frame.kernel, frame.lanes
        self.cuts = Cuts(frame.kernel)
        self.threads = math.prod(self.kernel.block)
        self.gangs = -(-self.threads // self.lanes)
        self.forms = self._positions()
        self.shapes = Shapes(self.kernel, self.lanes, self.forms, together=self.cuts.together)
        self.arrays: dict[Value, ArrayRef] = {}
        self.slots: dict[Value, str] = {}
        self.decided: dict[Value, str] = {}
        self.values: dict[Value, Val] = {}  # indices of the block's own loops
        self.context = self.shared = 0
        self.places: dict[object, tuple[int, int]] = {}  # offset and bytes a gang, in context memory
        self.targets: list[Target] = []
        top = [i for i in self.cuts.items[self.kernel.body] if isinstance(i, Run)]
        self.wanted = outputs(top) if top and top[0] is self.cuts.runs[0] else []
        self.inside: list[Jump] = []  # targets that enclose the code being written and that lanes may jump to

    # -- the place of a thread ---------------------------------------------------------------------------------
    def _positions(self) -> dict[tuple[str, int], Shape]:
        """Shapes of thread_idx and global_idx: linear along the first axis if gangs do not straddle its rows."""
        forms = {}
        line = next((a for a in range(3) if self.kernel.block[a] > 1), 0)
        straight = self.kernel.block[line] % self.lanes == 0
        for axis in range(3):
            shape = Shape(0)
            if axis == line and straight and self.lanes > 1:
                shape = Shape(1, self.lanes, True)
            elif not straight and self.kernel.block[axis] > 1:
                shape = VARYING
            forms["thread_idx", axis] = forms["global_idx", axis] = shape
        return forms

    def place(self, gang: Gang, first: str) -> None:
        """Say where a gang is, from the linear number of its first thread (an i64)."""
        f, index = self.fn, self.kernel.index
        ty, x = gang.arith.scalar(index), self.frame.index(first)
        lanes = [Val(x, 1)] * 3
        around, inside = 1, Val(x, 1)
        for axis in range(3):
            extent, shape = self.kernel.block[axis], self.forms["thread_idx", axis]
            many = ty if not shape.varying else vector(ty, self.lanes)
            text = x if not shape.varying else gang.vec(inside, index)
            if extent == 1:
                lanes[axis] = Val("0")
                continue
            if around > 1:
                text = f.value(f"udiv {many} {text}, {gang.arith.const(around, index, self._wide(shape))}")
            if around * extent < self.threads:
                text = f.value(f"urem {many} {text}, {gang.arith.const(extent, index, self._wide(shape))}")
            lanes[axis] = Val(text, shape.stride)
            around *= extent
        gang.position = []
        for axis in range(3):
            gang.identities["thread_idx", axis] = lanes[axis]
            gang.identities["block_idx", axis] = self.block[axis]
            start = gang.times(self.block[axis], Val(str(self.kernel.block[axis])), index)
            gang.identities["global_idx", axis] = gang.plus(start, lanes[axis], index)
            if axis < self.kernel.domain:
                gang.position.append(gang.identities["global_idx", axis])
        gang.extent = self.extent

    def _wide(self, shape: Shape) -> int:
        return self.lanes if shape.varying else 1

    # -- the whole -----------------------------------------------------------------------------------------------
    def emit(self) -> Emitted:
        f, frame = self.fn, self.frame
        self.extent = [frame.scaled("%grid.x", self.kernel.block[0]), frame.scaled("%grid.y", self.kernel.block[1])]
        self._declare()
        counter = f.alloca("i64", "block")
        f.do(f"store i64 %begin, ptr {counter}")
        head, body, done = f.label("blocks"), f.label("block"), f.label("endblocks")
        self.next = f.label("next.block")
        f.block(head)
        now = f.value(f"load i64, ptr {counter}", "block")
        f.branch(f.value(f"icmp ult i64 {now}, %end"), body, done)
        f.block(body)
        self.block = [Val(frame.index(b)) if b != "0" else Val("0") for b in self._block_index(now)]
        self._clear()
        self.region(self.kernel.body)
        f.block(self.next)
        f.do(f"store i64 {f.value(f'add i64 {now}, 1')}, ptr {counter}")
        f.jump(head)
        f.block(done)
        if self.lanes == 1 and frame.written - frame.read:
            f.do("fence seq_cst")  # lines written past the cache (``groups.py``) are ordered by nothing else
        f.end("ret void")
        return frame.finish("block", self.context, self.shared)

    def _block_index(self, now: str) -> list[str]:
        """Blocks of a plane go by strips of ``STRIP`` rows of blocks, down each column of a strip: neighbours along
        both axes are near in time, so that what they share is still in the cache."""
        f, z = self.fn, "0"
        if self.kernel.domain == 1:
            return [now, "0", "0"]
        if self.kernel.domain == 3:
            plane = f.value("mul i64 %grid.x, %grid.y")
            now, z = f.value(f"urem i64 {now}, {plane}"), f.value(f"udiv i64 {now}, {plane}")
        strip = f.value(f"mul i64 %grid.x, {STRIP}")
        inside = f.value(f"urem i64 {now}, {strip}")
        top = f.value(f"mul i64 {f.value(f'udiv i64 {now}, {strip}')}, {STRIP}")
        left = [("i64", f.value(f"sub i64 %grid.y, {top}")), ("i64", str(STRIP))]
        high = self.frame.arith.intrinsic("llvm.umin.i64", "i64", left, "high")
        y = f.value(f"add i64 {top}, {f.value(f'urem i64 {inside}, {high}')}")
        return [f.value(f"udiv i64 {inside}, {high}"), y, z]

    def _declare(self) -> None:
        """Variables, arrays, and room in context memory for all that outlives a run."""
        gang = Gang(self.frame, self.shapes)
        for op in self.kernel.body.ops:
            v = op.result
            if op.code == "var" and v is not None:
                gang.op_var(op)
            elif op.code == "shared" and v is not None and isinstance(v.type, ArrayType):
                self.arrays[v] = self._shared(v.type, op.attrs["name"])
            elif op.code == "local" and v is not None and isinstance(v.type, ArrayType):
                self._room(v, gang.local_bytes(v.type))
                assert v.type.shape is not None
                self.arrays[v] = ArrayRef(v.type, "", [str(n) for n in v.type.shape])
        self.slots = gang.slots
        for run in self.cuts.runs:
            for var in run.variables:
                assert isinstance(var.type, VarType)
                self._room(var, self._bytes(var.type.scalar, self.shapes.variable(var)))
        for v in sorted(self.cuts.kept, key=self._order()):
            assert isinstance(v.type, Scalar)
            self._room(v, self._bytes(v.type, self.shapes.of(v)))
        if self.cuts.cut:
            for run in self.cuts.runs:
                for jump in run.jumps:
                    self._room(jump, 8)
        for v in sorted(self.cuts.decided, key=self._order()):
            assert isinstance(v.type, Scalar)
            self.decided[v] = self.fn.alloca(self.frame.arith.scalar(v.type), v.name or "decided")

    def _order(self) -> Callable[[Value], int]:
        number = {op.result: n for n, op in enumerate(self.kernel.walk()) if op.result is not None}
        return lambda v: number[v]

    def _bytes(self, t: Scalar, shape: Shape) -> int:
        return 8 if not shape.varying else max(self.lanes * t.bits // 8, 8)

    def _room(self, key: object, size: int) -> None:
        if key not in self.places:
            size = size if size <= 8 else -(-size // _LINE) * _LINE
            self.places[key] = (self.context, size)
            self.context += -(-size * self.gangs // _LINE) * _LINE

    def _shared(self, t: ArrayType, name: str) -> ArrayRef:
        f = self.fn
        assert t.shape is not None
        pointer = f.value(f"getelementptr i8, ptr %shared, i64 {self.shared}", name)
        rest = t.elem.size * math.prod(t.shape[1:])
        dims = [str(n) for n in t.shape]
        if t.shape[0] == 0:  # from the launch
            dims[0] = self.frame.index(f.value(f"udiv i64 %shared.bytes, {rest}"))
        else:
            self.shared += -(-rest * t.shape[0] // _LINE) * _LINE
        return ArrayRef(t, pointer, dims)

    def _clear(self) -> None:
        """A block starts with zeroed shared and local arrays, and all its threads."""
        gang = Gang(self.frame, self.shapes)
        dynamic = any(a.type.space == "shared" and (a.type.shape or (1,))[0] == 0 for a in self.arrays.values())
        if self.shared:
            gang.zero("%shared", str(self.shared), _LINE)
        if dynamic:
            end = self.fn.value(f"getelementptr i8, ptr %shared, i64 {self.shared}", "rest")
            gang.zero(end, "%shared.bytes", _LINE)
        for key, array in self.arrays.items():
            if array.type.space == "local":
                self._zero_room(key)
        if ("return", None) in self.places:
            self._zero_room(("return", None))
            self.inside = [("return", None)]

    def _zero_room(self, key: object) -> None:
        offset, size = self.places[key]
        at = self.fn.value(f"getelementptr i8, ptr %context, i64 {offset}", "room")
        Gang(self.frame, self.shapes).zero(at, str(size * self.gangs), 8 if size < _LINE else _LINE)

    # -- context memory ------------------------------------------------------------------------------------------
    def room(self, gang: BlockGang, key: object) -> str:
        """The address of a gang's slot."""
        offset, size = self.places[key]
        step = self.fn.value(f"mul i64 {gang.number}, {size}")
        start = self.fn.value(f"add i64 {step}, {offset}")
        return self.fn.value(f"getelementptr i8, ptr %context, i64 {start}", "room")

    def _form(self, t: Scalar, shape: Shape) -> tuple[str, str]:
        """Types of a value in registers and in context memory: masks are packed."""
        form = self.frame.arith.type(t, self._wide(shape))
        return form, f"i{self.lanes}" if shape.varying and t.bits == 1 else form

    def _put(self, gang: BlockGang, key: object, form: str, packed: str, text: str) -> None:
        if packed != form:
            text = self.fn.value(f"bitcast {form} {text} to {packed}")
        self.fn.do(f"store {packed} {text}, ptr {self.room(gang, key)}, align 8")

    def _fetch(self, gang: BlockGang, key: object, form: str, packed: str, hint: str) -> str:
        text = self.fn.value(f"load {packed}, ptr {self.room(gang, key)}, align 8", hint)
        return text if packed == form else self.fn.value(f"bitcast {packed} {text} to {form}", hint)

    def keep(self, gang: BlockGang, v: Value, val: Val) -> None:
        """Store a value for later runs."""
        assert isinstance(v.type, Scalar)
        shape = self.shapes.of(v)
        form, packed = self._form(v.type, shape)
        self._put(gang, v, form, packed, gang.vec(val, v.type) if shape.varying else val.text)

    # -- runs ------------------------------------------------------------------------------------------------------
    def run(self, run: Run) -> None:
        """A loop over the gangs of the block."""
        f = self.fn
        first = f.alloca("i64", "first")
        f.do(f"store i64 0, ptr {first}")
        head, body, after, done = f.label("gangs"), f.label("gang"), f.label("next.gang"), f.label("endgangs")
        f.block(head)
        now = f.value(f"load i64, ptr {first}", "first")
        f.branch(f.value(f"icmp ult i64 {now}, {self.threads}"), body, done)
        f.block(body)
        number = f.value(f"udiv i64 {now}, {self.lanes}", "number")
        gang = BlockGang(self, number)
        gang.values.update(self.values)
        if self.threads % self.lanes:
            gang.mask = gang.up_to(f.value(f"sub i64 {self.threads}, {now}"))
        self.place(gang, now)
        for key, array in self.arrays.items():
            if array.type.space == "local":
                gang.arrays[key] = ArrayRef(array.type, self.room(gang, key), array.dims)
        gang.exit = after
        self._enter(gang, run)
        gang.exit = f.label("save")
        if run is self.cuts.runs[0]:
            ask(gang, self.wanted)
        gang.sequence(run.ops)
        with f.keeping_position():
            f.block(gang.exit)
            self._leave(gang, run)
            f.block(after)
            f.do(f"store i64 {f.value(f'add i64 {now}, {self.lanes}')}, ptr {first}")
            f.jump(head)
            f.block(done)

    def _enter(self, gang: BlockGang, run: Run) -> None:
        """Which lanes still run, and the values, variables and jumps that come from elsewhere."""
        f = self.fn
        for jump in self.inside:
            gang.gone[jump] = f.alloca(gang.bools, "gone")
            text = self._fetch(gang, jump, gang.bools, f"i{self.lanes}", "gone")
            f.do(f"store {gang.bools} {text}, ptr {gang.gone[jump]}")
            gang.mask = gang.without(gang.mask, text)
        if self.inside:
            go_on = f.label("go")
            f.branch(gang.any(gang.full(gang.mask)), go_on, gang.exit)
            f.block(go_on)
        if not self.cuts.cut and any(op.code == "return" for op in self.shapes.masked):
            gang._fresh_gone(("return", None), "returned")
        for var in run.variables:
            assert isinstance(var.type, VarType)
            form, packed = self._form(var.type.scalar, self.shapes.variable(var))
            f.do(f"store {form} {self._fetch(gang, var, form, packed, var.name)}, ptr {self.slots[var]}")
        for v in run.outside:
            if v in gang.values:
                continue
            if v in self.cuts.kept:
                assert isinstance(v.type, Scalar)
                shape = self.shapes.of(v)
                form, packed = self._form(v.type, shape)
                gang.values[v] = Val(self._fetch(gang, v, form, packed, v.name), shape.stride)
                continue
            for op in self.cuts.again(v) or []:
                if op.result not in gang.values:
                    Gang.op(gang, op)

    def _leave(self, gang: BlockGang, run: Run) -> None:
        f = self.fn
        for var, changed in run.variables.items():
            if changed:
                assert isinstance(var.type, VarType)
                form, packed = self._form(var.type.scalar, self.shapes.variable(var))
                self._put(gang, var, form, packed, f.value(f"load {form}, ptr {self.slots[var]}", var.name))
        for jump in run.jumps:
            text = f.value(f"load {gang.bools}, ptr {gang.gone[jump]}", "gone")
            self._put(gang, jump, gang.bools, f"i{self.lanes}", text)

    # -- control of the whole block ------------------------------------------------------------------------------
    def region(self, region: Region) -> None:
        for item in self.cuts.items[region]:
            if not self.fn.open:
                return
            if isinstance(item, Run):
                self.run(item)
            else:
                self.fn.at(item.loc)
                getattr(self, f"op_{item.code}")(item)

    def uniform(self, v: Value) -> str:
        """A value that all threads of the block agree on."""
        assert isinstance(v.type, Scalar)
        if v in self.decided:
            return self.fn.value(f"load {self.frame.arith.scalar(v.type)}, ptr {self.decided[v]}", v.name)
        gang = Gang(self.frame, self.shapes)
        gang.arrays.update(self.arrays)
        gang.values.update(self.values)
        gang.identities = {("block_idx", n): b for n, b in enumerate(self.block)}
        for op in self.cuts.settled(v) or []:
            if op.result not in gang.values:
                gang.op(op)
        return gang.val(v).text

    def _target(self, jump: Jump) -> list[Jump]:
        """Start a construct that lanes may jump out of; returns what it adds to ``inside``."""
        if jump not in self.places:
            return []
        self._zero_room(jump)
        return [jump]

    def op_if(self, op: Op) -> None:
        f = self.fn
        yes, no, after = f.label("then"), f.label("else"), f.label("endif")
        f.branch(self.uniform(op.operands[0]), yes, no)
        for label, region in ((yes, op.regions[0]), (no, op.regions[1])):
            f.block(label)
            self.region(region)
            f.jump(after)
        f.block(after)

    def op_for(self, op: Op) -> None:
        f, index = self.fn, op.regions[0].args[0]
        assert isinstance(index.type, Scalar)
        t, ty = index.type, self.frame.arith.scalar(index.type)
        start, stop, step = (self.uniform(v) for v in op.operands)
        trips = self.frame.arith.trip_count(t, start, stop, step)
        counter, place = f.alloca(ty, "trip"), f.alloca(ty, index.name or "i")
        f.do(f"store {ty} 0, ptr {counter}")
        f.do(f"store {ty} {start}, ptr {place}")
        saved = self.inside
        inside = saved + self._target(("loop", op))
        head, body, again, orelse, done = (f.label(n) for n in ("for", "do", "next", "for.else", "endfor"))
        f.block(head)
        n = f.value(f"load {ty}, ptr {counter}", "trip")
        f.branch(f.value(f"icmp ult {ty} {n}, {trips}"), body, orelse)
        f.block(body)
        now = f.value(f"load {ty}, ptr {place}", index.name or "i")
        self.values[index] = Val(now)
        self.inside = inside + self._target(("again", op))
        self.targets.append(Target(done, again))
        self.region(op.regions[0])
        self.targets.pop()
        f.block(again)
        exact = " nsw" if t.signed else ""  # as in Control.op_for
        f.do(f"store {ty} {f.value(f'add{exact} {ty} {now}, {step}')}, ptr {place}")
        f.do(f"store {ty} {f.value(f'add nuw {ty} {n}, 1')}, ptr {counter}")
        f.jump(head)
        del self.values[index]
        f.block(orelse)
        self.inside = inside
        self.region(op.regions[1])
        f.block(done)
        self.inside = saved

    def op_while(self, op: Op) -> None:
        f = self.fn
        cond, inner, otherwise = op.regions
        saved = self.inside
        inside = saved + self._target(("loop", op))
        head, body, orelse, done = (f.label(n) for n in ("while", "do", "while.else", "endwhile"))
        f.block(head)
        self.inside = inside
        self.region(cond)
        f.branch(self.uniform(cond.ops[-1].operands[0]), body, orelse)
        f.block(body)
        self.inside = inside + self._target(("again", op))
        self.targets.append(Target(done, head))
        self.region(inner)
        self.targets.pop()
        f.jump(head)
        f.block(orelse)
        self.inside = inside
        self.region(otherwise)
        f.block(done)
        self.inside = saved

    def op_scope(self, op: Op) -> None:
        after = self.fn.label("leave")
        saved = self.inside
        self.inside = saved + self._target(("scope", op.attrs["id"]))
        self.targets.append(Target(after, scope=op.attrs["id"]))
        self.region(op.regions[0])
        self.targets.pop()
        self.fn.block(after)
        self.inside = saved

    def op_break(self, op: Op) -> None:
        self.fn.jump(next(t for t in reversed(self.targets) if t.again).out)

    def op_continue(self, op: Op) -> None:
        self.fn.jump(next(t for t in reversed(self.targets) if t.again).again)

    def op_leave(self, op: Op) -> None:
        self.fn.jump(next(t for t in reversed(self.targets) if t.scope == op.attrs["id"]).out)

    def op_return(self, op: Op) -> None:
        self.fn.jump(self.next)


