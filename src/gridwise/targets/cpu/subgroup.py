"""Subgroup operations: a subgroup is the gang itself, so each is an operation on one vector."""

from __future__ import annotations

from gridwise.ir import Op
from gridwise.ir.types import BOOL, F32, I32, U32, Scalar
from gridwise.targets.llvm.arith import mangled
from gridwise.targets.llvm.text import vector

from .control import Control
from .lanes import Val


def _neutral(fn: str, t: Scalar) -> bool | int | float:
    """What leaves a reduction as it is: the value of lanes that do not exist."""
    if t.is_float:
        return {"add": -0.0, "mul": 1.0, "min": float("inf"), "max": float("-inf")}[fn]
    return {"add": 0, "or": 0, "xor": 0, "mul": 1, "and": -1 if t.signed else t.max, "min": t.max, "max": t.min}[fn]


class Subgroups(Control):
    """A gang whose lanes see each other."""

    def op_subgroup(self, op: Op) -> None:
        assert op.result is not None and isinstance(op.result.type, Scalar)
        fn, t = op.attrs["fn"], op.result.type
        if fn == "size":
            result = Val(str(self.lanes))
        elif fn == "lane":
            result = Val("0", 1) if t.is_int else Val(self.steps(self.arith.scalar(t)), None)
            result = Val(self.vec(result, t), None)
        elif fn in ("ballot", "any", "all"):
            result = Val(self._vote(fn, self.use(op.operands[0])))
        elif fn.startswith("reduce_"):
            result = Val(self.reduce(fn.removeprefix("reduce_"), t, self.use(op.operands[0]), self.mask))
        elif fn.startswith("scan_"):
            result = Val(self._scan(t, self.use(op.operands[0]), "exclusive" in fn), None)
        elif fn == "broadcast" and self.val(op.operands[1]).stride == 0:
            lane = self._within(self.val(op.operands[1]).text)
            result = Val(self.at_lane(self.val(op.operands[0]), t, lane))
        else:
            result = Val(self._shuffle(fn, t, self.use(op.operands[0]), self.val(op.operands[1])), None)
            if fn == "broadcast":
                result = Val(self.at_lane(result, t, self.first(self.mask)))
        self.values[op.result] = result

    # -- votes -----------------------------------------------------------------------------------------------
    def _vote(self, fn: str, cond: str) -> str:
        if fn == "all":
            wrong = self.without(self.mask, cond)
            return self.fn.value(f"icmp eq i{self.lanes} {self.word(wrong)}, 0")
        chosen = self.both(self.mask, cond)
        if fn == "any":
            return self.any(chosen)
        word = self.word(chosen)
        return word if self.lanes == 32 else self.fn.value(f"zext i{self.lanes} {word} to i32")

    # -- reductions ------------------------------------------------------------------------------------------
    def reduce(self, fn: str, t: Scalar, value: str, mask: str | None) -> str:
        """All lanes of ``mask`` combined."""
        if t.is_float and t.bits < 32:
            wide = self.reduce(fn, F32, self.arith.widen(t, value, self.lanes), mask)
            return self.arith.narrow(t, wide)
        if mask is not None:
            neutral = self.arith.const(_neutral(fn, t), t, self.lanes)
            value = self.arith.select(mask, value, neutral, t, self.lanes)
        one, many, name = self.arith.scalar(t), self.arith.type(t, self.lanes), mangled(t, self.lanes)
        if not t.is_float:
            sign = ("s" if t.signed else "u") if fn in ("min", "max") else ""
            return self.arith.intrinsic(f"llvm.vector.reduce.{sign}{fn}.{name}", one, [(many, value)])
        if fn in ("min", "max"):
            return self.arith.intrinsic(f"llvm.vector.reduce.f{fn}imum.{name}", one, [(many, value)])
        start = self.arith.const(_neutral(fn, t), t)
        full = f"llvm.vector.reduce.f{fn}.{name}"
        self.fn.module.declare(full, f"{one} {{}}({one}, {many})")
        return self.fn.value(f"call reassoc {one} @{full}({one} {start}, {many} {value})")

    def _moved(self, t: Scalar, value: str, up: int, fill: str) -> str:
        """Every lane's value ``up`` lanes higher; ``fill`` comes in at the bottom."""
        many = self.arith.type(t, self.lanes)
        order = ", ".join(f"i32 {k - up if k >= up else self.lanes}" for k in range(self.lanes))
        return self.fn.value(f"shufflevector {many} {value}, {many} {fill}, {vector('i32', self.lanes)} <{order}>")

    def _scan(self, t: Scalar, value: str, exclusive: bool) -> str:
        """Running sums by doubling distances (Hillis and Steele)."""
        if t.is_float and t.bits < 32:
            wide = self._scan(F32, self.arith.widen(t, value, self.lanes), exclusive)
            return self.arith.narrow(t, wide, self.lanes)
        zero = self.arith.const(0.0 if t.is_float else 0, t, self.lanes)
        distance = 1
        while distance < self.lanes:
            value = self.arith.binary("add", t, value, self._moved(t, value, distance, zero), self.lanes)
            distance *= 2
        return self._moved(t, value, 1, zero) if exclusive else value

    # -- shuffles ----------------------------------------------------------------------------------------------
    def _count(self) -> str:
        """How many lanes exist: they are the lowest ones."""
        if self.mask is None:
            return str(self.lanes)
        word = f"i{self.lanes}"
        n = self.arith.intrinsic(f"llvm.ctpop.{word}", word, [(word, self.word(self.mask))])
        return n if self.lanes == 32 else self.fn.value(f"zext {word} {n} to i32")

    def _within(self, lane: str) -> str:
        """A uniform lane number, or lane 0 where there is no such lane."""
        ok = self.fn.value(f"icmp ult i32 {lane}, {self._count()}")
        return self.fn.value(f"select i1 {ok}, i32 {lane}, i32 0")

    def _shuffle(self, fn: str, t: Scalar, value: str, by: Val) -> str:
        """Each lane reads another; from outside the subgroup it keeps its own value."""
        f, many, ints = self.fn, self.arith.type(t, self.lanes), vector("i32", self.lanes)
        distance = self.arith.literal(by.text) if by.stride == 0 else None
        if distance is not None and self.mask is None:
            each = range(self.lanes)
            sources = {
                "shuffle_xor": [k ^ distance for k in each],
                "shuffle_up": [k - distance for k in each],
                "shuffle_down": [k + distance for k in each],
            }.get(fn, [distance for _ in each])
            order = ", ".join(f"i32 {s if 0 <= s < self.lanes else k}" for k, s in enumerate(sources))
            return f.value(f"shufflevector {many} {value}, {many} poison, {ints} <{order}>")
        own, other = self.steps("i32"), self.vec(by, I32)
        word = {"shuffle_xor": "xor", "shuffle_up": "sub", "shuffle_down": "add"}.get(fn)
        source = f.value(f"{word} {ints} {own}, {other}") if word else other
        inside = f.value(f"icmp ult {ints} {source}, {self.broadcast(self._count(), 'i32')}")
        source = self.arith.select(inside, source, own, U32, self.lanes)
        if t == BOOL:  # a vector of bits has no addresses
            wide = self.arith.cast(BOOL, U32, value, self.lanes)
            return self.arith.cast(U32, BOOL, self._permute(U32, wide, source), self.lanes)
        return self._permute(t, value, source)

    def _permute(self, t: Scalar, value: str, source: str) -> str:
        """Lanes in an order known only at run time, by way of memory."""
        slot = self.spill(Val(value, None), t, "shuffled")
        unit, ints = self.arith.scalar(t), vector("i32", self.lanes)
        at = self.fn.value(f"getelementptr {unit}, ptr {slot}, {ints} {source}", "at")
        many = self.arith.type(t, self.lanes)
        pointers = [(self.pointers, at)]
        return self._masked("gather", many, f"v{self.lanes}p0", pointers, t, self.ones, "shuffled")


