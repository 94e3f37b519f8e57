"""Loads and stores of a gang: one vector access where lanes are neighbours, gathers and scatters elsewhere."""

from __future__ import annotations

from gridwise.ir import Op, Value, ops
from gridwise.ir.types import BOOL, I64, ArrayType, Scalar
from gridwise.lang.records import dataclass, field
from gridwise.targets.llvm.text import splat, vector

from . import groups
from .lanes import Lanes, Val


@dataclass
class ArrayRef:
    """An array: operand texts of its pointer, extents and strides (empty: C-contiguous).

    A local array interleaves its lanes, so that equal indices are neighbours in memory.
    """

    type: ArrayType
    pointer: str
    dims: list[str]
    strides: list[str] = field(default_factory=list)


@dataclass
class Place:
    """Where an access goes: ``pointer`` of lane 0 and the distance between lanes in elements, or many pointers.

    Many pointers are also ``base`` plus a vector of offsets, of type ``index``, counted in ``unit``.
    """

    pointer: str
    stride: int | None
    elem: Scalar
    used: int  # operands of the operation that led here
    base: str = ""
    offsets: str = ""
    index: Scalar = I64
    unit: str = ""


class Memory(Lanes):
    """Lanes that can reach memory."""

    def __init__(self, *args: object):
        super().__init__(*args)  # type: ignore[arg-type]
        self.arrays: dict[Value, ArrayRef] = {}
        self.pointers = vector("ptr", self.lanes)
        self.loaded: dict[Value, Place] = {}  # neighbours read from memory that nothing writes
        self.streamed: frozenset[Op] = frozenset()  # stores of whole cache lines that go past the cache
        self.groups: dict[Op, groups.Group] = {}  # accesses made together
        self.written: frozenset[Value] = frozenset()  # arrays that the kernel writes to
        self.read_too: frozenset[Value] = frozenset()  # arrays that it reads

    # -- addresses -------------------------------------------------------------------------------------------
    def offset(self, op: Op, array: ArrayRef) -> tuple[Val, Scalar]:
        """The element's number counted from element 0, and the type it is counted in."""
        t = array.type
        indices = [self.val(v) for v in op.operands[1 : 1 + t.rank]]
        if array.strides:  # a view's offset may pass 2**31 though no index does
            total = Val("0")
            for i, s in zip(indices, array.strides, strict=True):
                step = self.times(self.extend(i, t.index), self.extend(Val(s), t.index), I64)
                total = self.plus(total, step, I64)
            return total, I64
        total = indices[0]
        for i, extent in zip(indices[1:], array.dims[1:], strict=True):
            total = self.plus(self.times(total, Val(extent), t.index), i, t.index)
        return total, t.index

    def place(self, op: Op) -> Place:
        array = self.arrays[op.operands[0]]
        t = array.type
        offset, index = self.offset(op, array)
        if t.space == "local" and self.lanes > 1:
            offset = self.plus(self.times(offset, Val(str(self.lanes)), index), Val("0", 1), index)
        if isinstance(t.elem, Scalar):
            return self._pointer(self.arith.memory(t.elem), array.pointer, offset, index, t.elem, 1 + t.rank)
        where = self.times(self.extend(offset, index), Val(str(t.elem.size)), I64)
        used, constant, elem = 1 + t.rank, 0, None
        for f in op.attrs["field"]:
            constant += f.offset
            if f.count:
                step = self.times(self.extend(self.val(op.operands[used]), t.index), Val(str(f.type.size)), I64)
                where, used = self.plus(where, step, I64), used + 1
            elem = f.type
        assert isinstance(elem, Scalar)
        if constant:
            where = self.plus(where, Val(str(constant)), I64)
        if where.stride and where.stride % elem.size == 0:
            place = self._pointer("i8", array.pointer, where, I64, elem, used)
            place.stride = where.stride // elem.size
            return place
        return self._pointer("i8", array.pointer, where, I64, elem, used)

    def _pointer(self, unit: str, base: str, offset: Val, index: Scalar, elem: Scalar, used: int) -> Place:
        if offset.stride is None:
            ty = self.arith.type(index, self.lanes)
            many = self.fn.value(f"getelementptr {unit}, ptr {base}, {ty} {offset.text}", "at")
            return Place(many, None, elem, used, base, offset.text, index, unit)
        wide = self.extend(offset, index)
        pointer = self.fn.value(f"getelementptr {unit}, ptr {base}, i64 {wide.text}", "at")
        return Place(pointer, offset.stride, elem, used)

    def many(self, place: Place) -> str:
        """A vector of pointers to every lane's element."""
        if place.stride is None:
            return place.pointer
        unit = self.arith.memory(place.elem)
        offsets = f"{vector('i64', self.lanes)} {self.steps('i64', place.stride)}"
        return self.fn.value(f"getelementptr {unit}, ptr {place.pointer}, {offsets}", "at")

    def _backwards(self, many: str, text: str) -> str:
        order = ", ".join(f"i32 {k}" for k in reversed(range(self.lanes)))
        return self.fn.value(f"shufflevector {many} {text}, {many} poison, <{self.lanes} x i32> <{order}>")

    # -- loads -------------------------------------------------------------------------------------------------
    def op_load(self, op: Op) -> None:
        assert op.result is not None
        group = self.groups.get(op)
        if group is not None:
            if not group.loaded:
                group.loaded = True
                groups.load(self, op, group)
            return
        place = self.place(op)
        hint = op.result.name or self.arrays[op.operands[0]].pointer.strip("%").removeprefix("arg.")
        val = self.read(place, hint)
        if place.stride == 1 and place.elem != BOOL and self.arrays[op.operands[0]].type.access == "read":
            self.loaded[op.result] = place
        if place.elem == BOOL:
            lanes = 1 if val.stride == 0 else self.lanes
            val = Val(self.fn.value(f"icmp ne {vector('i8', lanes)} {val.text}, {splat('i8', '0', lanes)}"), val.stride)
        self.values[op.result] = val

    def read(self, place: Place, hint: str) -> Val:
        """The elements as memory holds them (a bool is a byte)."""
        t = place.elem
        one, many = self.arith.memory(t), vector(self.arith.memory(t), self.lanes)
        if place.stride == 0:
            return Val(self.fn.value(f"load {one}, ptr {place.pointer}, align {t.size}", hint))
        if place.stride in (1, -1):
            pointer, mask = place.pointer, self.mask
            if place.stride == -1:
                pointer = self.fn.value(f"getelementptr {one}, ptr {pointer}, i64 {1 - self.lanes}", "at")
                mask = self._backwards(self.bools, mask) if mask is not None else None
            if mask is None:
                text = self.fn.value(f"load {many}, ptr {pointer}, align {t.size}", hint)
            else:
                text = self._masked("load", many, "p0", [("ptr", pointer)], t, mask, hint)
            return Val(self._backwards(many, text) if place.stride == -1 else text, None)
        pointers = [(self.pointers, self.many(place))]
        return Val(self._masked("gather", many, f"v{self.lanes}p0", pointers, t, self.full(self.mask), hint), None)

    def _mangled(self, t: Scalar) -> str:
        name = {"float": "f32", "double": "f64"}.get(self.arith.memory(t), self.arith.memory(t))
        return f"v{self.lanes}{name}"

    def _masked(
        self, what: str, many: str, where: str, address: list[tuple[str, str]], t: Scalar, mask: str, hint: str
    ) -> str:
        args = [*address, ("i32", str(t.size)), (self.bools, mask), (many, "zeroinitializer")]
        return self.arith.intrinsic(f"llvm.masked.{what}.{self._mangled(t)}.{where}", many, args, hint)

    # -- stores ------------------------------------------------------------------------------------------------
    def op_store(self, op: Op) -> None:
        group = self.groups.get(op)
        if group is not None:
            group.waiting.remove(op)
            if not group.waiting:
                groups.store(self, op, group)
            return
        place = self.place(op)
        value, t = op.operands[-1], place.elem
        one, many = self.arith.memory(t), vector(self.arith.memory(t), self.lanes)
        if place.stride == 0:
            lane = self.first(self.mask) if self.val(value).stride != 0 else "0"
            text = self.at_lane(self.val(value), t, lane)
            text = self.fn.value(f"zext i1 {text} to i8") if t == BOOL else text
            self.fn.do(f"store {one} {text}, ptr {place.pointer}, align {t.size}")
            return
        text = self.use(value)
        if t == BOOL:
            text = self.fn.value(f"zext {self.bools} {text} to {many}")
        if place.stride in (1, -1):
            pointer, mask = place.pointer, self.mask
            if place.stride == -1:
                pointer = self.fn.value(f"getelementptr {one}, ptr {pointer}, i64 {1 - self.lanes}", "at")
                text = self._backwards(many, text)
                mask = self._backwards(self.bools, mask) if mask is not None else None
            if mask is None:
                align, hint = t.size, ""
                if op in self.streamed:
                    align = min(64, t.size * self.lanes)
                    hint = f", !nontemporal {self.fn.module.node('!{i32 1}')}"
                self.fn.do(f"store {many} {text}, ptr {pointer}, align {align}{hint}")
                return
            name, where = f"llvm.masked.store.{self._mangled(t)}.p0", ("ptr", pointer)
        else:
            mask = self.full(self.mask)
            name = f"llvm.masked.scatter.{self._mangled(t)}.v{self.lanes}p0"
            where = (self.pointers, self.many(place))
        self.effect(name, [(many, text), where, ("i32", str(t.size)), (self.bools, mask)])

    def effect(self, name: str, args: list[tuple[str, str]]) -> None:
        """Call an intrinsic that returns nothing."""
        self.fn.module.declare(name, f"void {{}}({', '.join(ty for ty, _ in args)})")
        self.fn.do(f"call void @{name}({', '.join(f'{ty} {a}' for ty, a in args)})")

    # -- arrays of a thread --------------------------------------------------------------------------------------
    def zero(self, pointer: str, size: str, align: int) -> None:
        self.fn.module.declare("llvm.memset.p0.i64", "void {}(ptr, i8, i64, i1)")
        self.fn.do(f"call void @llvm.memset.p0.i64(ptr align {align} {pointer}, i8 0, i64 {size}, i1 false)")

    def local_bytes(self, t: ArrayType) -> int:
        """What a local array takes for a whole gang."""
        assert t.shape is not None
        count = 1
        for extent in t.shape:
            count *= extent
        return -(-count * t.elem.size * self.lanes // 64) * 64

    def piece(self, v: Value, lane: int, depth: int = 4) -> str | None:
        """One lane of a value, computed anew by scalar operations from memory, if that is a short way to it."""
        val = self.values.get(v)
        if val is None or not isinstance(v.type, Scalar):
            return None
        if val.stride is not None:
            return self.at_lane(val, v.type, str(lane))
        if v in self.loaded:
            ty = self.arith.memory(v.type)
            at = self.fn.value(f"getelementptr {ty}, ptr {self.loaded[v].pointer}, i64 {lane}", "at")
            return self.fn.value(f"load {ty}, ptr {at}, align {v.type.size}")
        op = v.op
        if op is None or op.result is None or depth == 0 or not ops.TABLE[op.code].pure or not op.operands:
            return None
        parts = [self.piece(o, lane, depth - 1) for o in op.operands]
        if any(p is None for p in parts):
            return None
        types = [o.type for o in op.operands]
        return self.arith.emit(op.code, types, v.type, parts, 1, "", op.attrs.get("fn", ""))  # type: ignore[arg-type]

    # -- lane by lane --------------------------------------------------------------------------------------------
    def spill(self, val: Val, t: Scalar, hint: str) -> str:
        """A vector in memory, so that a lane chosen at run time is one load. Returns its address."""
        ty = self.arith.type(t, self.lanes)
        slot = self.fn.alloca(f"[{self.lanes} x {self.arith.scalar(t)}]", hint, 64)
        self.fn.do(f"store {ty} {self.vec(val, t)}, ptr {slot}, align {min(64, t.size * self.lanes)}")
        return slot

    def lane_of(self, slot: str, t: Scalar, lane: str) -> str:
        """Load one lane of a spilled vector; ``lane`` is an i64 operand."""
        ty = self.arith.scalar(t)
        at = self.fn.value(f"getelementptr {ty}, ptr {slot}, i64 {lane}", "at")
        return self.fn.value(f"load {ty}, ptr {at}")

    def each_lane(self, hint: str) -> LaneLoop:
        """A loop over the lanes that run, lowest first."""
        return LaneLoop(self, hint)


class LaneLoop:
    """``with gang.each_lane("x") as lane:`` writes the body once; ``lane`` is an i64 operand."""

    def __init__(self, gang: Memory, hint: str):
        self.gang, self.hint = gang, hint

    def __enter__(self) -> str:
        g, f = self.gang, self.gang.fn
        word = f"i{g.lanes}"
        self.bits = f.alloca(word, "bits")
        f.do(f"store {word} {g.word(g.full(g.mask))}, ptr {self.bits}")
        self.body, self.after = f.label(self.hint), f.label(f"end{self.hint}")
        f.jump(self.body)
        f.block(self.body)
        self.now = f.value(f"load {word}, ptr {self.bits}", "bits")
        lane = g.arith.intrinsic(f"llvm.cttz.{word}", word, [(word, self.now), ("i1", "true")], "lane")
        return f.value(f"zext {word} {lane} to i64", "lane")

    def __exit__(self, *_: object) -> None:
        g, f = self.gang, self.gang.fn
        word = f"i{g.lanes}"
        less = f.value(f"sub {word} {self.now}, 1")
        rest = f.value(f"and {word} {self.now}, {less}", "bits")
        f.do(f"store {word} {rest}, ptr {self.bits}")
        f.branch(f.value(f"icmp ne {word} {rest}, 0"), self.body, self.after)
        f.block(self.after)
