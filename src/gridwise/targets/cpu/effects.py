"""What a gang does to the world: atomics, faults and print."""

from __future__ import annotations

from gridwise.ir import Op
from gridwise.ir.types import BOOL, I64, U32, U64, Scalar

from . import runtime
from .lanes import Val
from .memory import Place
from .subgroup import Subgroups

ORDERS = {"relaxed": "monotonic", "acquire": "acquire", "release": "release", "acq_rel": "acq_rel"}
_RMW = {"add": "add", "sub": "sub", "and": "and", "or": "or", "xor": "xor", "exchange": "xchg"}
_MERGED = frozenset("add sub and or xor min max".split())  # of integers: their order does not show


class Effects(Subgroups):
    """The whole gang. ``faults`` and ``prints`` are the buffers; ``position`` the global index along each axis."""

    def __init__(self, *args: object):
        super().__init__(*args)
        self.faults = self.prints = "null"
        self.tag = self.serial = "0"  # of the print records
        self.position: list[Val] = []
        self.extent: list[str] = []  # threads of the grid along x and y, i64
        self.index: Scalar = I64
        self.unused: set[object] = set()  # results that nothing reads
        self.print_number: dict[Op, int] = {}

    # -- atomics -----------------------------------------------------------------------------------------------
    def op_atomic(self, op: Op) -> None:
        assert op.result is not None
        place = self.place(op)
        t, fn = place.elem, op.attrs["fn"]
        values = [self.val(v) for v in op.operands[place.used :]]
        alone = self.arrays[op.operands[0]].type.space != "global"  # a block runs on one core
        order = "" if alone else ORDERS[op.attrs["order"]]
        ignored = op.result in self.unused
        if self.lanes > 1 and place.stride == 0 and ignored and fn in _MERGED and t.is_int and t.bits >= 32:
            total = self.reduce("add" if fn == "sub" else fn, t, self.vec(values[0], t), self.mask)
            self._one(fn, place.pointer, t, [total], order)
            self.values[op.result] = Val(self.arith.const(0, t, self.lanes), None)
            return
        operands = [v.text if v.stride == 0 else self.spill(v, t, "operand") for v in values]
        offsets = self.spill(Val(place.offsets, None), place.index, "offsets") if place.stride is None else ""
        unit = self.arith.memory(t)
        old = "" if ignored else self.fn.alloca(f"[{self.lanes} x {self.arith.scalar(t)}]", "old", 64)

        def once(lane: str, index: str | None = None) -> None:
            if index is not None:
                ty = self.arith.scalar(place.index)
                pointer = self.fn.value(f"getelementptr {place.unit}, ptr {place.base}, {ty} {index}", "target")
            else:
                pointer = self._lane_pointer(place, offsets, unit, lane)
            given = [o if v.stride == 0 else self.lane_of(o, t, lane) for o, v in zip(operands, values, strict=True)]
            result = self._one(fn, pointer, t, given, order)
            if old:
                at = self.fn.value(f"getelementptr {unit}, ptr {old}, i64 {lane}", "at")
                self.fn.do(f"store {unit} {result}, ptr {at}")

        if alone and self.mask is None:
            array = self.arrays[op.operands[0]]
            direct = array.type.rank == 1 and isinstance(array.type.elem, Scalar) and array.type.space == "shared"
            for lane in range(self.lanes):
                index = self.piece(op.operands[1], lane) if direct and place.stride is None else None
                once(str(lane), index)
        else:
            with self.each_lane("atomic") as lane_:
                once(lane_)
        many = self.arith.type(t, self.lanes)
        text = self.fn.value(f"load {many}, ptr {old}, align 64") if old else self.arith.const(0, t, self.lanes)
        self.values[op.result] = Val(text, None if self.lanes > 1 else 0)

    def _lane_pointer(self, place: Place, offsets: str, unit: str, lane: str) -> str:
        if place.stride is None:
            offset = self.lane_of(offsets, place.index, lane)
            ty = self.arith.scalar(place.index)
            return self.fn.value(f"getelementptr {place.unit}, ptr {place.base}, {ty} {offset}", "target")
        if place.stride == 0:
            return place.pointer
        step = lane if place.stride == 1 else self.fn.value(f"mul i64 {lane}, {place.stride}")
        return self.fn.value(f"getelementptr {unit}, ptr {place.pointer}, i64 {step}", "target")

    def _one(self, fn: str, pointer: str, t: Scalar, values: list[str], order: str) -> str:
        """One lane's read-modify-write; without an order nothing else can touch the element meanwhile."""
        f, ty = self.fn, self.arith.scalar(t)
        if not order:
            old = f.value(f"load {ty}, ptr {pointer}, align {t.size}", "old")
            f.do(f"store {ty} {self._combined(fn, t, old, values)}, ptr {pointer}, align {t.size}")
            return old
        if fn == "compare_exchange":
            failure = "acquire" if order in ("acquire", "acq_rel") else "monotonic"
            word = f"i{t.bits}"
            args = [v if not t.is_float else f.value(f"bitcast {ty} {v} to {word}") for v in values]
            swap = f"{word} {args[0]}, {word} {args[1]} {order} {failure}, align {t.size}"
            pair = f.value(f"cmpxchg ptr {pointer}, {swap}")
            old = f.value(f"extractvalue {{ {word}, i1 }} {pair}, 0", "old")
            return f.value(f"bitcast {word} {old} to {ty}") if t.is_float else old
        if t.is_float and fn != "exchange":
            return self._by_exchange(fn, pointer, t, values, order)
        word = _RMW.get(fn) or (("" if t.signed else "u") + fn)
        return f.value(f"atomicrmw {word} ptr {pointer}, {ty} {values[0]} {order}, align {t.size}", "old")

    def _combined(self, fn: str, t: Scalar, old: str, values: list[str]) -> str:
        if fn == "exchange":
            return values[0]
        if fn == "compare_exchange":
            return self.arith.select(self.arith.compare("eq", t, old, values[0]), values[1], old, t)
        if t.is_float and fn in ("min", "max"):  # -0.0 below 0.0, a NaN gives way
            return self.arith.math(f"f{fn}", t, [old, values[0]])
        return self.arith.binary(fn, t, old, values[0])

    def _by_exchange(self, fn: str, pointer: str, t: Scalar, values: list[str], order: str) -> str:
        """Float arithmetic that no instruction has: try until no other thread came between."""
        f, ty, word = self.fn, self.arith.scalar(t), f"i{t.bits}"
        slot = f.alloca(word, "seen")
        f.do(f"store {word} {f.value(f'load atomic {word}, ptr {pointer} monotonic, align {t.size}')}, ptr {slot}")
        again, done = f.label("retry"), f.label("done")
        f.block(again)
        seen = f.value(f"load {word}, ptr {slot}", "seen")
        old = f.value(f"bitcast {word} {seen} to {ty}", "old")
        new = f.value(f"bitcast {ty} {self._combined(fn, t, old, values)} to {word}")
        pair = f.value(f"cmpxchg ptr {pointer}, {word} {seen}, {word} {new} {order} monotonic, align {t.size}")
        f.do(f"store {word} {f.value(f'extractvalue {{ {word}, i1 }} {pair}, 0')}, ptr {slot}")
        f.branch(f.value(f"extractvalue {{ {word}, i1 }} {pair}, 1"), done, again)
        f.block(done)
        return old

    # -- who runs ------------------------------------------------------------------------------------------------
    def thread(self, lane: str) -> str:
        """The linear global thread id of a lane (an i32 operand), as i64."""
        f = self.fn
        x, *rest = (self.arith.cast(self.index, I64, self.at_lane(p, self.index, lane)) for p in self.position)
        for coordinate, extent in reversed(list(zip(rest, self._areas(), strict=False))):
            x = f.value(f"add i64 {x}, {f.value(f'mul i64 {coordinate}, {extent}')}")
        return x

    def _areas(self) -> list[str]:
        """Threads of a row, and of a plane of rows."""
        if len(self.position) < 3:
            return self.extent[:1]
        return [self.extent[0], self.fn.value(f"mul i64 {self.extent[0]}, {self.extent[1]}")]

    # -- faults ----------------------------------------------------------------------------------------------------
    def op_fault(self, op: Op) -> None:
        """The lowest lane is reported: lanes are in the order of thread ids, and only the first thread counts."""
        f, cond = self.fn, self.val(op.operands[0])
        if cond.stride == 0:
            test, mask = cond.text, self.mask
        else:
            mask = self.both(self.mask, self.vec(cond, BOOL))
            test = self.any(mask)
        bad, after = f.label("fault"), f.label("fine")
        weights = f.module.node('!{!"branch_weights", i32 1, i32 1048575}')
        f.end(f"br i1 {test}, label %{bad}, label %{after}, !prof {weights}")
        f.block(bad)
        lane = self.first(mask)
        detail = []
        for v in op.operands[1:]:
            assert isinstance(v.type, Scalar)
            detail.append(self.arith.cast(v.type, I64, self.at_lane(self.val(v), v.type, lane)))
        index, length = detail or ["0", "0"]
        f.do(f"call void @{runtime.FAULT}(ptr {self.faults}, i64 {self.thread(lane)}, i32 {op.attrs['site']}, "
             f"i64 {index}, i64 {length})")
        f.jump(after)
        f.block(after)

    # -- print -----------------------------------------------------------------------------------------------------
    def op_print(self, op: Op) -> None:
        f = self.fn
        types: list[Scalar] = [v.type for v in op.operands]  # type: ignore[misc]
        length = runtime.PRINT_PREFIX + sum(2 if t.bits == 64 else 1 for t in types)
        with self.each_lane("print") as lane:
            narrow = f.value(f"trunc i64 {lane} to i32", "lane")
            thread = f.value(f"trunc i64 {self.thread(narrow)} to i32", "thread")
            words = [str(length), self.tag, self.serial, str(self.print_number[op]), thread]
            for v, t in zip(op.operands, types, strict=True):
                words += self._words(self.at_lane(self.val(v), t, narrow), t)
            place = f.value(f"call i64 @{runtime.CLAIM}(ptr {self.prints}, i32 {length})", "place")
            write, full = f.label("write"), f.label("written")
            f.branch(f.value(f"icmp ne i64 {place}, 0"), write, full)
            f.block(write)
            record = f.value(f"getelementptr i32, ptr {self.prints}, i64 {place}", "record")
            for n, word in enumerate(words):
                at = f.value(f"getelementptr i32, ptr {record}, i64 {n}", "at")
                f.do(f"store i32 {word}, ptr {at}, align 4")
            f.block(full)

    def _words(self, text: str, t: Scalar) -> list[str]:
        """An operand as u32 words, low first."""
        if t.is_float and t.bits >= 32:
            text = self.fn.value(f"bitcast {self.arith.scalar(t)} {text} to i{t.bits}")
        bits = Scalar(f"u{t.bits}", "uint", t.bits) if t != BOOL else BOOL
        if t.bits == 64:
            high = self.fn.value(f"lshr i64 {text}, 32")
            return [self.arith.cast(U64, U32, text), self.arith.cast(U64, U32, high)]
        return [self.arith.cast(bits, U32, text)]


