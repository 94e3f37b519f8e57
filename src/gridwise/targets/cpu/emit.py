"""A lowered kernel as LLVM IR for the CPU.

Two functions come out. ``@NAME.body`` does the work, for the units from ``begin`` up to ``end``. The host calls
``@NAME(ptr args, i64 chunk, i64 total, ptr scratch)`` once a worker: workers share the units by taking ``chunk`` at
a time from a counter in the arguments until all ``total`` are taken. Arguments are cells of 8 bytes: grid x, y, z,
fault buffer, print buffer, launch-sized shared bytes, the counter, one unused, then ``Kernel.slots()``.

A kernel that asks only for its global index is run row by row (unit: a block of a 1-d grid, else a row of threads):
blocks do not matter, and all accesses at the index are contiguous. Every other kernel is run block by block
(``blocks.py``). Either way a gang of ``lanes`` threads runs at a time, a thread a vector lane.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from gridwise.ir import Kernel, Op, verify
from gridwise.ir.core import Slot
from gridwise.ir.ops import MEMORY
from gridwise.ir.types import BOOL, I64, ArrayType
from gridwise.lang.records import dataclass
from gridwise.targets.llvm.text import Function, Module, identifier

from . import runtime
from .arith import CpuArith, F16cArith
from .capabilities import Machine
from .effects import Effects
from .guards import closure, find_guards
from .lanes import Val
from .lockstep import side_by_side
from .memory import ArrayRef
from .shapes import Shape, Shapes
from .streaming import start_line, streamed

HEADER_CELLS, COUNTER_CELL = 8, 6
COPY_LIMIT = 400  # operations above which a kernel is not written twice, masked and unmasked


@dataclass(frozen=True)
class Emitted:
    """``unit``: "block" (of the grid, counted x first) or "row" (of threads). ``context`` and ``shared`` are the
    bytes that a worker's scratch memory needs, launch-sized shared memory not included."""

    text: str
    name: str
    unit: str
    context: int = 0
    shared: int = 0
    simple: bool = False  # no loops: little is to be gained by optimising at length


def uses_blocks(kernel: Kernel) -> bool:
    """Does it matter to the kernel which block a thread is in?"""
    return any(op.code in ("thread_idx", "block_idx", "barrier", "shared", "subgroup") for op in kernel.walk())


def gang_size(kernel: Kernel, machine: Machine) -> int:
    """How many lanes a gang has: as many as the block has threads, if those are few and a power of two.

    A gang of one lane is scalar code. Where subgroups are asked for, a gang is one, whatever the block.
    """
    threads = math.prod(kernel.block)
    few = threads < machine.lanes and threads & (threads - 1) == 0
    return threads if few and uses_blocks(kernel) and not any(op.code == "subgroup" for op in kernel.walk()) else (
        machine.lanes)


class Frame:
    """The functions of a kernel, their parameters, and what a gang needs to know about the launch."""

    def __init__(self, kernel: Kernel, machine: Machine, debug: bool = True):
        self.kernel, self.machine, self.lanes = kernel, machine, gang_size(kernel, machine)
        self.module = Module(machine.triple, machine.datalayout, debug)
        self.name = identifier(kernel.name)
        self.arith_class = F16cArith if machine.half_instructions else CpuArith
        fixed = ["i64 %begin", "i64 %end", "i64 %grid.x", "i64 %grid.y", "i64 %grid.z", "ptr noalias %faults",
                 "ptr noalias %prints", "i64 %shared.bytes", "ptr noalias %context", "ptr noalias %shared"]
        self.slots = kernel.slots()
        params = [*fixed, *(f"{self.slot_type(s)} {self.attributes(s)}{self.slot_name(s)}" for s in self.slots)]
        group = self.module.attribute_group("noinline nounwind")
        self.fn = Function(self.module, f"internal void @{self.name}.body({', '.join(params)})", f" {group}")
        self.fn.describe(kernel.name, kernel.loc)
        self.entry()
        self.arith = self.arith_class(self.fn, kernel.fastmath)
        self.dims: dict[str, str] = {}
        touched = [(op.code, op.operands[0]) for op in kernel.walk() if op.code in MEMORY]
        self.written = frozenset(a for code, a in touched if code != "load")
        self.read = frozenset(a for code, a in touched if code != "store")

    # -- parameters ------------------------------------------------------------------------------------------
    def slot_type(self, slot: Slot) -> str:
        if slot.type is None:
            return "ptr"
        return "i8" if slot.type == BOOL else self.arith_class.scalar(slot.type)

    def attributes(self, slot: Slot) -> str:
        """A mutable array never overlaps another argument: the launch refuses it."""
        t = self.kernel.params[slot.param].type
        if slot.kind != "ptr" or not isinstance(t, ArrayType):
            return ""
        return "noalias readonly " if t.access == "read" else "noalias "

    def slot_name(self, slot: Slot) -> str:
        name = identifier(self.kernel.params[slot.param].name)
        return "%arg." + (name if slot.kind in ("ptr", "scalar") else f"{name}.{slot.kind}{slot.axis}")

    def entry(self) -> None:
        """The function that the host calls. It runs once a piece of work: compiled without care, for a sixth of the
        time that a small kernel takes."""
        group = self.module.attribute_group("noinline optnone")
        f = Function(self.module, f"void @{self.name}(ptr %args, i64 %chunk, i64 %total, ptr %scratch)", f" {group}")

        def cell(n: int, ty: str) -> str:
            at = f.value(f"getelementptr i64, ptr %args, i64 {n}", "at")
            return f"{ty} " + f.value(f"load {ty}, ptr {at}, align 8", "arg")

        shared = f.value(f"getelementptr i8, ptr %scratch, i64 @{self.name}.context", "shared")
        args = [cell(0, "i64"), cell(1, "i64"), cell(2, "i64"), cell(3, "ptr"), cell(4, "ptr"), cell(5, "i64"),
                "ptr %scratch", f"ptr {shared}"]
        args += [cell(HEADER_CELLS + n, self.slot_type(s)) for n, s in enumerate(self.slots)]
        counter = f.value(f"getelementptr i64, ptr %args, i64 {COUNTER_CELL}", "counter")
        take, some, none = f.label("take"), f.label("some"), f.label("none")
        f.block(take)
        begin = f.value(f"atomicrmw add ptr {counter}, i64 %chunk monotonic", "begin")
        f.branch(f.value(f"icmp ult i64 {begin}, %total"), some, none)
        f.block(some)
        end = f.value(f"add i64 {begin}, %chunk")
        short = f.value(f"icmp ult i64 {end}, %total")
        end = f.value(f"select i1 {short}, i64 {end}, i64 %total", "end")
        f.do(f"call void @{self.name}.body(i64 {begin}, i64 {end}, {', '.join(args)})")
        f.jump(take)
        f.block(none)
        f.end("ret void")

    def bind(self, gang: Effects) -> None:
        """Give a gang the parameters and the buffers."""
        for slot in self.slots:
            param, name = self.kernel.params[slot.param], self.slot_name(slot)
            if slot.kind == "scalar":
                gang.values[param.value] = Val(self.scalar_text(name) if slot.type == BOOL else name)
            elif slot.kind == "ptr":
                assert isinstance(param.type, ArrayType)
                gang.arrays[param.value] = ArrayRef(param.type, name, [])
            else:
                array = gang.arrays[param.value]
                (array.dims if slot.kind == "dim" else array.strides).append(name)
        gang.faults, gang.prints = "%faults", "%prints"
        gang.index = self.kernel.index
        gang.print_number = {op: n for n, op in enumerate(o for o in self.kernel.walk() if o.code == "print")}
        gang.written, gang.read_too = self.written, self.read
        read = {v for op in self.kernel.walk() for v in op.operands}
        gang.unused = {op.result for op in self.kernel.walk() if op.code == "atomic" and op.result not in read}

    def scalar_text(self, name: str) -> str:
        """A bool parameter as a bit; made once, where everything sees it."""
        if name not in self.dims:
            bit = "%" + self.fn.fresh(name.removeprefix("%arg."))
            self.fn.entry.append(f"  {bit} = icmp ne i8 {name}, 0")
            self.dims[name] = bit
        return self.dims[name]

    def index(self, wide: str) -> str:
        """An i64 as the kernel's index type."""
        return wide if self.kernel.index == I64 else self.fn.value(f"trunc nsw i64 {wide} to i32")

    def scaled(self, wide: str, factor: int) -> str:
        return wide if factor == 1 else self.fn.value(f"mul i64 {wide}, {factor}")

    def finish(self, unit: str, context: int = 0, shared: int = 0) -> Emitted:
        codes = {op.code for op in self.kernel.walk()}
        text = self.module.text().replace(f"@{self.name}.context", str(context))
        text += runtime.fault() if "fault" in codes else ""
        text += runtime.claim() if "print" in codes else ""
        simple = not codes & {"for", "while", "barrier"}
        return Emitted(text, self.name, unit, context, shared, simple)


class Gang(Effects):
    """A gang whose place in the launch is known: ``identities`` gives thread_idx and the like."""

    def __init__(self, frame: Frame, shapes: Shapes):
        super().__init__(frame.fn, frame.arith, shapes, frame.lanes)
        self.frame = frame
        self.identities: dict[tuple[str, int], Val] = {}
        frame.bind(self)

    def twin(self) -> Gang:
        """Another gang at the same place, which has computed nothing yet."""
        other = Gang(self.frame, self.shapes)
        other.arrays, other.identities = self.arrays, self.identities
        return other

    def _identity(self, op: Op) -> None:
        assert op.result is not None
        axis = op.attrs["axis"]
        if op.code == "block_dim":
            val = Val(str(self.frame.kernel.block[axis]))
        elif op.code == "grid_dim":
            val = Val(self.frame.index(f"%grid.{'xyz'[axis]}"))
        else:
            val = self.identities.get((op.code, axis), Val("0"))
        self.values[op.result] = val

    op_thread_idx = op_block_idx = op_block_dim = op_grid_dim = op_global_idx = _identity

    def op_local(self, op: Op) -> None:
        assert op.result is not None and isinstance(op.result.type, ArrayType)
        t = op.result.type
        size = self.local_bytes(t)
        pointer = self.fn.alloca(f"[{size} x i8]", op.attrs["name"], 64)
        self.zero(pointer, str(size), 64)
        assert t.shape is not None
        self.arrays[op.result] = ArrayRef(t, pointer, [str(n) for n in t.shape])

    def run(self) -> None:
        """The whole kernel, for this gang. Goes on after it."""
        self.exit = self.fn.label("done")
        if any(op.code == "return" for op in self.shapes.masked):
            self._fresh_gone(("return", None), "returned")
        self.region(self.frame.kernel.body)
        with self.fn.keeping_position():
            self.fn.block(self.exit)


class Rows:
    """All threads of a row (of a range of blocks, in a 1-d grid) in one loop of gangs."""

    def __init__(self, frame: Frame):
        self.frame, self.fn, kernel = frame, frame.fn, frame.kernel
        self.guards = find_guards(kernel)
        aligned = kernel.block[0] % frame.lanes == 0 and not any(not b.upper for b in self.guards.bounds)
        self.x = Shape(1, frame.lanes if aligned else 1, True)
        self.shapes = Shapes(kernel, frame.lanes, {("global_idx", 0): self.x}, frozenset(self.guards.known))

    def emit(self) -> Emitted:
        f, frame, kernel = self.fn, self.frame, self.frame.kernel
        width = frame.scaled("%grid.x", kernel.block[0])
        height = frame.scaled("%grid.y", kernel.block[1])
        self.extent = [width, height]
        self.threads = width if kernel.domain == 1 else f.value(f"mul i64 {width}, {height}", "threads")
        if kernel.domain == 1:
            self.others: list[Val] = []
            self.gangs(frame.scaled("%begin", kernel.block[0]), frame.scaled("%end", kernel.block[0]))
        else:
            row = f.alloca("i64", "row")
            f.do(f"store i64 %begin, ptr {row}")
            head, body, done = f.label("rows"), f.label("row"), f.label("endrows")
            f.block(head)
            now = f.value(f"load i64, ptr {row}", "row")
            f.branch(f.value(f"icmp ult i64 {now}, %end"), body, done)
            f.block(body)
            self.others = [Val(frame.index(now))]
            if kernel.domain == 3:
                self.others = [Val(frame.index(f.value(f"urem i64 {now}, {height}"))),
                               Val(frame.index(f.value(f"udiv i64 {now}, {height}")))]
            self.gangs("0", width)
            f.do(f"store i64 {f.value(f'add i64 {now}, 1')}, ptr {row}")
            f.jump(head)
            f.block(done)
        f.end("ret void")
        return frame.finish("block" if kernel.domain == 1 else "row")

    def gang(self, x: str, mask: str | None) -> Gang:
        gang = Gang(self.frame, self.shapes)
        gang.mask = mask
        gang.position = [Val(x, 1), *self.others]
        gang.extent = self.extent
        gang.identities = {("global_idx", n): p for n, p in enumerate(gang.position)}
        gang.values.update({v: Val("true" if truth else "false") for v, truth in self.guards.known.items()})
        return gang

    def limits(self, low: str, high: str) -> tuple[str, str]:
        """The range of x cut to the kernel's guards, as i64."""
        f = self.fn
        if self.guards.bounds:
            gang = self.gang("0", None)
            for bound in self.guards.bounds:
                for op in closure(bound.value) or []:
                    if op.result not in gang.values:
                        gang.op(op)
                t = bound.value.type
                text = gang.arith.cast(t, I64, gang.val(bound.value).text)  # type: ignore[arg-type]
                text = f.value(f"add i64 {text}, 1") if bound.extra else text
                which = "smin" if bound.upper else "smax"
                args = [("i64", high if bound.upper else low), ("i64", text)]
                cut = gang.arith.intrinsic(f"llvm.{which}.i64", "i64", args, "limit")
                low, high = (low, cut) if bound.upper else (cut, high)
        return low, high

    def gangs(self, low: str, high: str) -> None:
        """Full gangs without a mask, then the rest under one. What is written on a large scale goes past the cache
        (``streaming.py``): then the first threads run under the mask too, up to the first whole cache line."""
        f, frame = self.fn, self.frame
        low, high = self.limits(low, high)
        if sum(1 for _ in frame.kernel.walk()) > COPY_LIMIT:
            self.gangs_once(low, high)
            return
        place, until, back = f.alloca("i64", "x"), f.alloca("i64", "until"), f.alloca("i1", "back")
        f.do(f"store i64 {low}, ptr {place}")
        f.do(f"store i64 {high}, ptr {until}")
        f.do(f"store i1 false, ptr {back}")
        stores = streamed(frame.kernel, self.guards.known)
        full, rest, some, done = f.label("full"), f.label("rest"), f.label("some"), f.label("endgangs")
        if stores:
            go, ahead = start_line(self.gang(frame.index(low), None), stores, self.threads)
            stream, begin, first = f.label("stream"), f.label("begin"), f.label("first")
            f.branch(go, begin, full)
            f.block(begin)
            line = f.value(f"add i64 {low}, {ahead}", "line")
            f.do(f"store i64 {self.least(line, high)}, ptr {until}")
            f.do(f"store i1 true, ptr {back}")
            f.branch(f.value(f"icmp eq i64 {ahead}, 0"), stream, first)
            f.block(first)
            f.branch(f.value(f"icmp slt i64 {low}, {high}"), some, done)
            drain = f.label("drain")
            self.whole(stream, place, high, drain, stores)
            f.block(drain)
            f.do("fence seq_cst")  # stores past the cache are ordered by nothing else
            f.jump(rest)
        self.whole(full, place, high, rest)
        f.block(rest)
        f.do(f"store i64 {high}, ptr {until}")
        f.do(f"store i1 false, ptr {back}")
        left = f.value(f"load i64, ptr {place}", "x")
        f.branch(f.value(f"icmp slt i64 {left}, {high}"), some, done)
        f.block(some)
        now, end = f.value(f"load i64, ptr {place}", "x"), f.value(f"load i64, ptr {until}", "until")
        gang = self.gang(frame.index(now), None)
        gang.mask = gang.up_to(f.value(f"sub i64 {end}, {now}"))
        gang.run()
        f.do(f"store i64 {end}, ptr {place}")
        if stores:
            f.branch(f.value(f"load i1, ptr {back}", "back"), stream, done)
        f.block(done)

    def least(self, a: str, b: str) -> str:
        return self.frame.arith.intrinsic("llvm.smin.i64", "i64", [("i64", a), ("i64", b)])

    def whole(self, head: str, place: str, high: str, after: str, stores: Iterable[Op] = ()) -> None:
        """The loop over gangs that are all within bounds; goes to ``after``."""
        f, frame = self.fn, self.frame
        body = f.label("gang")
        f.block(head)
        now = f.value(f"load i64, ptr {place}", "x")
        past = f.value(f"add i64 {now}, {frame.lanes}", "past")
        f.branch(f.value(f"icmp sle i64 {past}, {high}"), body, after)
        f.block(body)
        gang = self.gang(frame.index(now), None)
        gang.streamed = frozenset(stores)
        gang.run()
        f.do(f"store i64 {past}, ptr {place}")
        f.jump(head)

    def gangs_once(self, low: str, high: str) -> None:
        """The body written once, always under a mask: for long kernels."""
        f, frame = self.fn, self.frame
        place = f.alloca("i64", "x")
        f.do(f"store i64 {low}, ptr {place}")
        head, body, done = f.label("gangs"), f.label("gang"), f.label("endgangs")
        f.block(head)
        now = f.value(f"load i64, ptr {place}", "x")
        f.branch(f.value(f"icmp slt i64 {now}, {high}"), body, done)
        f.block(body)
        gang = self.gang(frame.index(now), None)
        gang.mask = gang.up_to(f.value(f"sub i64 {high}, {now}"))
        gang.run()
        f.do(f"store i64 {f.value(f'add i64 {now}, {frame.lanes}')}, ptr {place}")
        f.jump(head)
        f.block(done)


def emit(kernel: Kernel, machine: Machine, debug: bool = True) -> Emitted:
    """``kernel`` must have been through ``passes.pipeline.lower(kernel, "cpu")``."""
    kernel = verify(side_by_side(kernel))
    frame = Frame(kernel, machine, debug)
    if not uses_blocks(kernel):
        return Rows(frame).emit()
    from .blocks import Blocks  # which builds on this module

    return Blocks(frame).emit()
