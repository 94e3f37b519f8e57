"""One thread of a kernel as one LLVM function: structured IR to basic blocks.

``ThreadEmitter`` walks a lowered kernel (checks explicit, math expanded). What differs between targets is a
method each, at the top of the class; the rest is the same everywhere. Variable slots become allocas that
mem2reg turns into SSA form.
"""

from __future__ import annotations

from collections.abc import Sequence

from gridwise.ir import Kernel, Op, Region, Value
from gridwise.ir.core import Slot
from gridwise.ir.types import BOOL, I64, ArrayType, Scalar, VarType, VectorType
from gridwise.lang.records import dataclass, field

from .arith import Arith
from .text import Function, Module, identifier, memory_text, splat, vector


@dataclass
class ArrayRef:
    """An array as the emitter knows it: operand texts of its pointer, extents and strides."""

    type: ArrayType
    pointer: str
    dims: list[str]
    strides: list[str] = field(default_factory=list)  # empty: C-contiguous


@dataclass
class _Target:
    """Where jumps out of a structured operation go."""

    out: str
    again: str = ""  # `continue`, for loops
    scope: int | None = None


class ThreadEmitter:
    """Emits ``kernel`` into ``module``. Use: ``ThreadEmitter(kernel, module).emit()``."""

    arith_class: type[Arith] = Arith

    def __init__(self, kernel: Kernel, module: Module):
        self.kernel, self.module = kernel, module
        self.fn = Function(module, self.header())
        self.fn.describe(kernel.name, kernel.loc)
        self.arith = self.arith_class(self.fn, kernel.fastmath)
        self.values: dict[Value, str] = {}
        self.arrays: dict[Value, ArrayRef] = {}
        self.vars: dict[Value, str] = {}
        self.targets: list[_Target] = []

    # ---- what targets override -----------------------------------------------------------------------
    def header(self) -> str:
        """The function's line up to its brace: linkage, convention, name and ``parameters``."""
        return f"void @{identifier(self.kernel.name)}({', '.join(self.parameters())})"

    def parameters(self) -> list[str]:
        return [f"{self.slot_type(s)} {self.slot_attributes(s)}{self.slot_name(n)}".replace("  ", " ")
                for n, s in enumerate(self.kernel.slots())]

    def slot_type(self, slot: Slot) -> str:
        if slot.type is None:
            return self.pointer_type("global")
        return memory_text(slot.type)

    def slot_attributes(self, slot: Slot) -> str:
        """Parameter attributes, each followed by a space. A mutable array never overlaps another argument."""
        if slot.kind != "ptr":
            return ""
        t = self.kernel.params[slot.param].type
        assert isinstance(t, ArrayType)
        return "noalias readonly " if t.access == "read" else "noalias "

    def space(self, space: str) -> int:
        """The address space of global, shared and local arrays."""
        return 0

    def prologue(self) -> None:
        """Before the body: whatever the target sets up."""

    def epilogue(self) -> None:
        """After the body; ``return`` jumps here too."""
        self.fn.end("ret void")

    def identity(self, code: str, axis: int) -> str:
        """thread_idx, block_idx, grid_dim or global_idx along an axis, of type ``kernel.index``."""
        raise NotImplementedError

    def shared(self, op: Op, t: ArrayType) -> ArrayRef:
        """Declare and zero one shared array; extents that come from the launch are the target's to find."""
        raise NotImplementedError

    def barrier(self, op: Op) -> None:
        raise NotImplementedError

    def atomic(self, op: Op, pointer: str, t: Scalar, values: list[str]) -> str:
        """One read-modify-write; gives the old value."""
        raise NotImplementedError

    def subgroup(self, op: Op, args: list[str]) -> str:
        raise NotImplementedError

    def fault(self, op: Op, cond: str, detail: list[str]) -> None:
        """Record fault ``op.attrs['site']`` if ``cond``; ``detail`` is empty or (index, length)."""
        raise NotImplementedError

    def print(self, op: Op, args: list[str]) -> None:
        raise NotImplementedError

    def load(self, op: Op, pointer: str, t: Scalar, array: ArrayRef) -> str:
        """Read one scalar; ``t`` is its type."""
        ty = self.arith.memory(t)
        hint = op.result.name if op.result and op.result.name else array.pointer.strip("%@").removeprefix("arg.")
        raw = self.fn.value(f"load {ty}, {self.pointer_type(array.type.space)} {pointer}, align {t.size}", hint)
        return self.fn.value(f"icmp ne i8 {raw}, 0") if t == BOOL else raw

    def store(self, op: Op, pointer: str, t: Scalar, value: str, array: ArrayRef) -> None:
        if t == BOOL:
            value = self.fn.value(f"zext i1 {value} to i8")
        ty = self.arith.memory(t)
        self.fn.do(f"store {ty} {value}, {self.pointer_type(array.type.space)} {pointer}, align {t.size}")

    def loop_hints(self, op: Op) -> str:
        """Metadata on a loop's back branch (", !llvm.loop !3"), from its ``unroll`` attribute."""
        unroll = op.attrs.get("unroll")
        if unroll is None:
            return ""
        hint = '!"llvm.loop.unroll.full"' if unroll == 0 else f'!"llvm.loop.unroll.count", i32 {unroll}'
        if unroll == 1:
            hint = '!"llvm.loop.unroll.disable"'
        return f", !llvm.loop {self.module.self_node(self.module.node(f'!{{{hint}}}'))}"

    # ---- the walk ------------------------------------------------------------------------------------
    def emit(self) -> Function:
        self.bind_parameters()
        self.prologue()
        self.exit = self.fn.label("exit")
        self.region(self.kernel.body)
        with self.fn.keeping_position():
            self.fn.block(self.exit)
            self.epilogue()
        return self.fn

    def pointer_type(self, space: str) -> str:
        n = self.space(space)
        return f"ptr addrspace({n})" if n else "ptr"

    def slot_name(self, n: int) -> str:
        slot = self.kernel.slots()[n]
        name = identifier(self.kernel.params[slot.param].name)
        return "%arg." + (name if slot.kind in ("ptr", "scalar") else f"{name}.{slot.kind}{slot.axis}")

    def bind_parameters(self) -> None:
        """Give every parameter its operands from the function's arguments."""
        for n, slot in enumerate(self.kernel.slots()):
            param, name = self.kernel.params[slot.param], self.slot_name(n)
            if slot.kind == "scalar":
                assert slot.type is not None
                self.values[param.value] = self.fn.value(f"icmp ne i8 {name}, 0") if slot.type == BOOL else name
            elif slot.kind == "ptr":
                assert isinstance(param.type, ArrayType)
                self.arrays[param.value] = ArrayRef(param.type, name, [], [])
            else:
                array = self.arrays[param.value]
                (array.dims if slot.kind == "dim" else array.strides).append(name)

    def region(self, region: Region) -> None:
        for op in region.ops:
            if not self.fn.open:
                return  # unreachable
            self.fn.at(op.loc)
            self.op(op)

    def op(self, op: Op) -> None:
        handler = getattr(self, f"op_{op.code}", None)
        if handler is not None:
            handler(op)
            return
        assert op.result is not None, f"no way to emit {op.code}"
        result, types = op.result.type, [v.type for v in op.operands]
        if isinstance(result, VectorType) or any(isinstance(t, VectorType) for t in types):
            self.lanewise(op)
            return
        self.values[op.result] = self.arith.emit(
            op.code, types, result, [self.use(v) for v in op.operands], 1, op.result.name, op.attrs.get("fn", "")  # type: ignore[arg-type]
        )

    def use(self, v: Value) -> str:
        return self.values[v]

    def lanewise(self, op: Op) -> None:
        """Arithmetic on the vectors that passes/vectorise makes: LLVM has it as it is."""
        assert op.result is not None
        t = op.result.type
        lanes = next(x.lanes for x in [t, *(v.type for v in op.operands)] if isinstance(x, VectorType))
        scalars = [v.type.elem if isinstance(v.type, VectorType) else v.type for v in op.operands]
        elem = t.elem if isinstance(t, VectorType) else t
        args = [self.use(v) for v in op.operands]
        self.values[op.result] = self.arith.emit(
            op.code, scalars, elem, args, lanes, op.result.name, op.attrs.get("fn", "")  # type: ignore[arg-type]
        )

    # ---- constants, identities, extents ----------------------------------------------------------------
    def op_const(self, op: Op) -> None:
        assert op.result is not None and isinstance(op.result.type, Scalar)
        self.values[op.result] = self.arith.const(op.attrs["value"], op.result.type)

    def _identity(self, op: Op) -> None:
        assert op.result is not None
        if op.code == "block_dim":
            self.values[op.result] = str(self.kernel.block[op.attrs["axis"]])
        else:
            self.values[op.result] = self.identity(op.code, op.attrs["axis"])

    op_thread_idx = op_block_idx = op_block_dim = op_grid_dim = op_global_idx = _identity

    def op_dim(self, op: Op) -> None:
        assert op.result is not None
        self.values[op.result] = self.arrays[op.operands[0]].dims[op.attrs["axis"]]

    # ---- variables -------------------------------------------------------------------------------------
    def op_var(self, op: Op) -> None:
        assert op.result is not None and isinstance(op.result.type, VarType)
        self.vars[op.result] = self.fn.alloca(self.arith.type(op.result.type.scalar), op.attrs["name"])

    def op_get(self, op: Op) -> None:
        assert op.result is not None
        t: Scalar = op.result.type  # type: ignore[assignment]
        var = op.operands[0]
        self.values[op.result] = self.fn.value(f"load {self.arith.type(t)}, ptr {self.vars[var]}", var.name)

    def op_set(self, op: Op) -> None:
        var, value = op.operands
        assert isinstance(value.type, Scalar)
        self.fn.do(f"store {self.arith.type(value.type)} {self.use(value)}, ptr {self.vars[var]}")

    # ---- memory ----------------------------------------------------------------------------------------
    def op_shared(self, op: Op) -> None:
        assert op.result is not None and isinstance(op.result.type, ArrayType)
        self.arrays[op.result] = self.shared(op, op.result.type)

    def op_local(self, op: Op) -> None:
        assert op.result is not None and isinstance(op.result.type, ArrayType)
        t = op.result.type
        assert t.shape is not None
        count = 1
        for extent in t.shape:
            count *= extent
        size = count * t.elem.size
        align = max(8, t.elem.align if not isinstance(t.elem, Scalar) else t.elem.size)
        pointer = self.fn.alloca(f"[{size} x i8]", op.attrs["name"], align)
        self.module.declare("llvm.memset.p0.i64", "void {}(ptr, i8, i64, i1)")
        self.fn.do(f"call void @llvm.memset.p0.i64(ptr align {align} {pointer}, i8 0, i64 {size}, i1 false)")
        self.arrays[op.result] = ArrayRef(t, pointer, [str(n) for n in t.shape])

    def offset(self, array: ArrayRef, at: Sequence[Value]) -> str:
        """Elements from the array's start to the one at these indices, as i64."""
        t, indices = array.type, [self.use(v) for v in at]
        ix = self.arith.type(t.index)
        if array.strides:  # a view's offset may pass 2**31 though no index does
            offset = ""
            for i, s in zip(indices, array.strides, strict=True):
                wide = [x if t.index == I64 else self.fn.value(f"sext {ix} {x} to i64") for x in (i, s)]
                step = self.fn.value(f"mul nsw i64 {wide[0]}, {wide[1]}")
                offset = self.fn.value(f"add nsw i64 {offset}, {step}") if offset else step
            return offset
        offset = indices[0]
        for i, extent in zip(indices[1:], array.dims[1:], strict=True):
            row = self.fn.value(f"mul nuw nsw {ix} {offset}, {extent}")
            offset = self.fn.value(f"add nuw nsw {ix} {row}, {i}")
        return offset if t.index == I64 else self.fn.value(f"zext {ix} {offset} to i64")

    def element(self, v: Value, at: Sequence[Value]) -> str:
        """Pointer to an element of an array of scalars."""
        array = self.arrays[v]
        assert isinstance(array.type.elem, Scalar)
        ty, ptr = self.arith.memory(array.type.elem), self.pointer_type(array.type.space)
        offset = self.offset(array, at)
        return self.fn.value(f"getelementptr inbounds {ty}, {ptr} {array.pointer}, i64 {offset}", "at")

    def address(self, op: Op) -> tuple[str, Scalar, int]:
        """Pointer to the scalar that a load, store or atomic touches, its type, and how many operands led there.

        Indices are in range, so element offsets of contiguous arrays fit the index type.
        """
        array = self.arrays[op.operands[0]]
        t = array.type
        used, ix = 1 + t.rank, self.arith.type(t.index)
        if isinstance(t.elem, Scalar):
            return self.element(op.operands[0], op.operands[1:used]), t.elem, used
        ptr, offset = self.pointer_type(t.space), self.offset(array, op.operands[1:used])
        offset = self.fn.value(f"mul nsw i64 {offset}, {t.elem.size}")
        elem: Scalar | None = None
        constant = 0
        for f in op.attrs["field"]:
            constant += f.offset
            if f.count:
                i = self.use(op.operands[used])
                i = i if t.index == I64 else self.fn.value(f"zext {ix} {i} to i64")
                offset = self.fn.value(f"add nsw i64 {offset}, {self.fn.value(f'mul nsw i64 {i}, {f.type.size}')}")
                used += 1
            elem = f.type
        assert isinstance(elem, Scalar)
        if constant:
            offset = self.fn.value(f"add nsw i64 {offset}, {constant}")
        return self.fn.value(f"getelementptr inbounds i8, {ptr} {array.pointer}, i64 {offset}", "at"), elem, used

    def op_load(self, op: Op) -> None:
        assert op.result is not None
        pointer, t, _ = self.address(op)
        self.values[op.result] = self.load(op, pointer, t, self.arrays[op.operands[0]])

    def op_store(self, op: Op) -> None:
        pointer, t, _ = self.address(op)
        self.store(op, pointer, t, self.use(op.operands[-1]), self.arrays[op.operands[0]])

    def op_atomic(self, op: Op) -> None:
        assert op.result is not None
        pointer, t, used = self.address(op)
        self.values[op.result] = self.atomic(op, pointer, t, [self.use(v) for v in op.operands[used:]])

    def _vector_address(self, op: Op) -> tuple[str, Scalar, ArrayRef]:
        array = self.arrays[op.operands[0]]
        assert isinstance(array.type.elem, Scalar)
        pointer, elem, _ = self.address(op)
        return pointer, elem, array

    def op_vload(self, op: Op) -> None:
        assert op.result is not None and isinstance(op.result.type, VectorType)
        pointer, elem, array = self._vector_address(op)
        lanes = op.result.type.lanes
        ty = vector(self.arith.memory(elem), lanes)
        ptr = self.pointer_type(array.type.space)
        raw = self.fn.value(f"load {ty}, {ptr} {pointer}, align {elem.size * lanes}")
        if elem == BOOL:
            raw = self.fn.value(f"icmp ne {ty} {raw}, zeroinitializer")
        self.values[op.result] = raw

    def op_vstore(self, op: Op) -> None:
        pointer, elem, array = self._vector_address(op)
        value = op.operands[-1]
        assert isinstance(value.type, VectorType)
        text, lanes = self.use(value), value.type.lanes
        if elem == BOOL:
            text = self.fn.value(f"zext {vector('i1', lanes)} {text} to {vector('i8', lanes)}")
        ptr = self.pointer_type(array.type.space)
        ty = vector(self.arith.memory(elem), lanes)
        self.fn.do(f"store {ty} {text}, {ptr} {pointer}, align {elem.size * lanes}")

    def op_lane(self, op: Op) -> None:
        assert op.result is not None
        v = op.operands[0]
        assert isinstance(v.type, VectorType)
        ty = self.arith.type(v.type.elem, v.type.lanes)
        self.values[op.result] = self.fn.value(f"extractelement {ty} {self.use(v)}, i32 {op.attrs['index']}")

    def op_pack(self, op: Op) -> None:
        assert op.result is not None and isinstance(op.result.type, VectorType)
        t = op.result.type
        elem, ty = self.arith.type(t.elem), self.arith.type(t.elem, t.lanes)
        if all(v is op.operands[0] for v in op.operands) and not self.use(op.operands[0]).startswith("%"):
            self.values[op.result] = splat(elem, self.use(op.operands[0]), t.lanes)
            return
        text = "poison"
        for n, v in enumerate(op.operands):
            text = self.fn.value(f"insertelement {ty} {text}, {elem} {self.use(v)}, i32 {n}")
        self.values[op.result] = text

    # ---- cooperation, faults -----------------------------------------------------------------------------
    def op_barrier(self, op: Op) -> None:
        self.barrier(op)

    def op_subgroup(self, op: Op) -> None:
        assert op.result is not None
        self.values[op.result] = self.subgroup(op, [self.use(v) for v in op.operands])

    def op_fault(self, op: Op) -> None:
        self.fault(op, self.use(op.operands[0]), [self.use(v) for v in op.operands[1:]])

    def op_print(self, op: Op) -> None:
        self.print(op, [self.use(v) for v in op.operands])

    def op_assume(self, op: Op) -> None:
        pass

    # ---- control -----------------------------------------------------------------------------------------
    def op_if(self, op: Op) -> None:
        then, orelse = op.regions
        after = self.fn.label("endif")
        yes = self.fn.label("then")
        no = self.fn.label("else") if orelse.ops else after
        self.fn.branch(self.use(op.operands[0]), yes, no)
        self.fn.block(yes)
        self.region(then)
        self.fn.jump(after)
        if orelse.ops:
            self.fn.block(no)
            self.region(orelse)
        self.fn.block(after)

    def op_for(self, op: Op) -> None:
        f = self.fn
        index = op.regions[0].args[0]
        assert isinstance(index.type, Scalar)
        t, ty = index.type, self.arith.type(index.type)
        start, stop, step = (self.use(v) for v in op.operands)
        trips = self.arith.trip_count(t, start, stop, step)
        counter, place = f.alloca(ty, "trip"), f.alloca(ty, index.name or "i")
        f.do(f"store {ty} 0, ptr {counter}")
        f.do(f"store {ty} {start}, ptr {place}")
        body, again, done = f.label("for"), f.label("next"), f.label("endfor")
        orelse = f.label("for.else") if op.regions[1].ops else done
        f.branch(f.value(f"icmp ne {ty} {trips}, 0"), body, orelse)
        f.block(body)
        self.values[index] = f.value(f"load {ty}, ptr {place}", index.name or "i")
        self.targets.append(_Target(done, again))
        self.region(op.regions[0])
        self.targets.pop()
        f.block(again)
        # The step past the last trip may wrap; that value is never used.
        f.do(f"store {ty} {f.value(f'add {ty} {self.values[index]}, {step}')}, ptr {place}")
        n = f.value(f"add nuw {ty} {f.value(f'load {ty}, ptr {counter}', 'trip')}, 1")
        f.do(f"store {ty} {n}, ptr {counter}")
        more = f.value(f"icmp ult {ty} {n}, {trips}")
        f.end(f"br i1 {more}, label %{body}, label %{orelse}{self.loop_hints(op)}")
        if op.regions[1].ops:
            f.block(orelse)
            self.region(op.regions[1])
        f.block(done)

    def op_while(self, op: Op) -> None:
        f = self.fn
        cond, body, otherwise = op.regions
        head, inside, done = f.label("while"), f.label("do"), f.label("endwhile")
        orelse = f.label("while.else") if otherwise.ops else done
        f.block(head)
        for inner in cond.ops[:-1]:
            f.at(inner.loc)
            self.op(inner)
        f.branch(self.use(cond.ops[-1].operands[0]), inside, orelse)
        f.block(inside)
        self.targets.append(_Target(done, head))
        self.region(body)
        self.targets.pop()
        f.jump(head)
        if otherwise.ops:
            f.block(orelse)
            self.region(otherwise)
        f.block(done)

    def op_scope(self, op: Op) -> None:
        after = self.fn.label("leave")
        self.targets.append(_Target(after, scope=op.attrs["id"]))
        self.region(op.regions[0])
        self.targets.pop()
        self.fn.block(after)

    def _loop(self) -> _Target:
        return next(t for t in reversed(self.targets) if t.again)

    def op_break(self, op: Op) -> None:
        self.fn.jump(self._loop().out)

    def op_continue(self, op: Op) -> None:
        self.fn.jump(self._loop().again)

    def op_leave(self, op: Op) -> None:
        self.fn.jump(next(t for t in reversed(self.targets) if t.scope == op.attrs["id"]).out)

    def op_return(self, op: Op) -> None:
        self.fn.jump(self.exit)
