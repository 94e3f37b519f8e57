"""Subgroup operations on a warp of 32 threads: ``shfl.sync``, ``vote.sync`` and, for 32-bit integers, ``redux.sync``.

They stand in uniform control flow (analysis sees to it), so all threads of a warp arrive together and the member
mask is every thread that the warp has: all 32, except in the last warp of a block whose size is no multiple of 32.
"""

from __future__ import annotations

from gridwise.ir.types import BOOL, I32, U8, U16, U32, U64, Scalar
from gridwise.targets.llvm.arith import Arith

from .capabilities import SUBGROUP

_REDUX = frozenset("add min max and or xor".split())
_IDENTITY = {"add": 0, "or": 0, "xor": 0, "mul": 1}


class Subgroups:
    """Emits into ``arith``'s function. ``threads``: of a block; ``lane`` and ``linear``: the thread in its warp and in
    its block, as i32 operands; ``redux``: the device has ``redux.sync``."""

    def __init__(self, arith: Arith, threads: int, lane: str, linear: str, redux: bool):
        self.a, self.fn = arith, arith.fn
        self.lane = lane
        self.redux = redux
        self.partial = threads % SUBGROUP != 0
        if not self.partial:
            self.lanes, self.mask = str(SUBGROUP), "-1"
            return
        first = self.fn.value(f"and i32 {linear}, {-SUBGROUP}")
        rest = self.fn.value(f"sub i32 {threads}, {first}")
        self.lanes = self._umin(rest, str(SUBGROUP))
        missing = self.fn.value(f"sub i32 {SUBGROUP}, {self.lanes}")
        self.mask = self.fn.value(f"lshr i32 -1, {missing}")  # at least one thread exists, so never by 32

    def _umin(self, x: str, y: str) -> str:
        return self.a.intrinsic("llvm.umin.i32", "i32", [("i32", x), ("i32", y)])

    # -- words -------------------------------------------------------------------------------------------
    def _words(self, t: Scalar, value: str) -> list[str]:
        """The bits of a value as one or two i32."""
        if t == BOOL:
            return [self.fn.value(f"zext i1 {value} to i32")]
        bits = {8: U8, 16: U16, 32: U32, 64: U64}[t.bits]
        word = self.a.bitcast(t, bits, value)
        if t.bits < 32:
            return [self.fn.value(f"zext i{t.bits} {word} to i32")]
        if t.bits == 32:
            return [word]
        high = self.fn.value(f"lshr i64 {word}, 32")
        return [self.fn.value(f"trunc i64 {word} to i32"), self.fn.value(f"trunc i64 {high} to i32")]

    def _value(self, t: Scalar, words: list[str]) -> str:
        """The mirror of ``_words``."""
        if t == BOOL:
            return self.fn.value(f"trunc i32 {words[0]} to i1")
        bits = {8: U8, 16: U16, 32: U32, 64: U64}[t.bits]
        word = words[0]
        if t.bits < 32:
            word = self.fn.value(f"trunc i32 {word} to i{t.bits}")
        elif t.bits == 64:
            low, high = (self.fn.value(f"zext i32 {w} to i64") for w in words)
            word = self.fn.value(f"or i64 {low}, {self.fn.value(f'shl i64 {high}, 32')}")
        return self.a.bitcast(bits, t, word)

    def _shfl(self, mode: str, t: Scalar, value: str, operand: str, clamp: int) -> str:
        """``shfl.sync``; its lanes out of range keep their own value."""
        moved = [
            self.a.intrinsic(
                f"llvm.nvvm.shfl.sync.{mode}.i32",
                "i32",
                [("i32", self.mask), ("i32", w), ("i32", operand), ("i32", str(clamp))],
            )
            for w in self._words(t, value)
        ]
        return self._value(t, moved)

    # -- shuffles ----------------------------------------------------------------------------------------
    def shuffle(self, fn: str, t: Scalar, value: str, operand: str) -> str:
        """``operand`` (i32): a lane, a lane mask, or a distance. Own value where the source is not in the subgroup."""
        distance = self.a.literal(operand)
        if distance is not None and 0 <= distance < SUBGROUP and not self.partial:
            mode = {"shuffle": "idx", "broadcast": "idx", "shuffle_xor": "bfly", "shuffle_up": "up"}.get(fn, "down")
            return self._shfl(mode, t, value, operand, 0 if mode == "up" else SUBGROUP - 1)
        if fn in ("shuffle", "broadcast"):
            source = operand
        elif fn == "shuffle_xor":
            source = self.fn.value(f"xor i32 {self.lane}, {operand}")
        else:
            source = self.fn.value(f"{'sub' if fn == 'shuffle_up' else 'add'} i32 {self.lane}, {operand}")
        inside = self.fn.value(f"icmp ult i32 {source}, {self.lanes}")
        source = self.fn.value(f"select i1 {inside}, i32 {source}, i32 {self.lane}")
        return self._shfl("idx", t, value, source, SUBGROUP - 1)

    # -- votes -------------------------------------------------------------------------------------------
    def vote(self, fn: str, condition: str) -> str:
        """``any`` and ``all`` give i1, ``ballot`` an i32 with one bit a lane."""
        result = "i32" if fn == "ballot" else "i1"
        return self.a.intrinsic(f"llvm.nvvm.vote.{fn}.sync", result, [("i32", self.mask), ("i1", condition)])

    # -- reductions and scans ----------------------------------------------------------------------------
    def reduce(self, op: str, t: Scalar, value: str) -> str:
        """All lanes get the same result."""
        if self.redux and t in (I32, U32) and op in _REDUX:
            name = f"u{op}" if op in ("min", "max") and not t.signed else op
            return self.a.intrinsic(f"llvm.nvvm.redux.sync.{name}", "i32", [("i32", value), ("i32", self.mask)])
        step = SUBGROUP // 2
        while step:
            if self.partial:  # a tree toward lane 0, leaving out lanes that do not exist
                source = self.fn.value(f"add i32 {self.lane}, {step}")
                there = self.fn.value(f"icmp ult i32 {source}, {self.lanes}")
                other = self.shuffle("shuffle_down", t, value, str(step))
                value = self.a.select(there, self.a.binary(op, t, value, other), value, t)
            else:
                value = self.a.binary(op, t, value, self._shfl("bfly", t, value, str(step), SUBGROUP - 1))
            step //= 2
        return self._shfl("idx", t, value, "0", SUBGROUP - 1) if self.partial else value

    def scan(self, op: str, t: Scalar, value: str, exclusive: bool) -> str:
        """Running totals in lane order, with or without the lane's own value."""
        step = 1
        while step < SUBGROUP:
            other = self._shfl("up", t, value, str(step), 0)
            there = self.fn.value(f"icmp uge i32 {self.lane}, {step}")
            value = self.a.select(there, self.a.binary(op, t, other, value), value, t)
            step *= 2
        if not exclusive:
            return value
        before = self._shfl("up", t, value, "1", 0)
        first = self.fn.value(f"icmp eq i32 {self.lane}, 0")
        return self.a.select(first, self.a.const(_IDENTITY[op], t), before, t)

