"""Values of a gang: uniform and linear ones in scalar registers, varying ones in vectors, and lane masks."""

from __future__ import annotations

from gridwise.ir import Op, Value
from gridwise.ir.types import I64, U32, Scalar
from gridwise.lang.records import dataclass
from gridwise.targets.llvm.arith import Arith
from gridwise.targets.llvm.text import Function, splat, vector

from .shapes import Shapes


@dataclass(slots=True)
class Val:
    """``stride`` 0: ``text`` is every lane's value; None: a vector; else lane k has ``text`` + k * stride."""

    text: str
    stride: int | None = 0


class Lanes:
    """Writes a gang's values into ``fn``. ``mask`` is the lanes that run now; None means all of them."""

    def __init__(self, fn: Function, arith: Arith, shapes: Shapes, lanes: int):
        self.fn, self.arith, self.shapes, self.lanes = fn, arith, shapes, lanes
        self.values: dict[Value, Val] = {}
        self.mask: str | None = None
        self.bools = vector("i1", lanes)
        self.ones = splat("i1", "true", lanes)

    # -- forms of a value ------------------------------------------------------------------------------------
    def val(self, v: Value) -> Val:
        return self.values[v]

    def broadcast(self, text: str, type_text: str) -> str:
        """A scalar operand in every lane."""
        if not text.startswith("%"):
            return splat(type_text, text, self.lanes)
        many = vector(type_text, self.lanes)
        one = self.fn.value(f"insertelement {many} poison, {type_text} {text}, i64 0")
        return self.fn.value(
            f"shufflevector {many} {one}, {many} poison, {vector('i32', self.lanes)} zeroinitializer"
        )

    def steps(self, type_text: str, stride: int = 1) -> str:
        """The constant <0, stride, 2 * stride, ...>."""
        return f"<{', '.join(f'{type_text} {k * stride}' for k in range(self.lanes))}>"

    def vec(self, val: Val, t: Scalar) -> str:
        """As a vector operand."""
        if val.stride is None:
            return val.text
        ty = self.arith.scalar(t)
        many = self.broadcast(val.text, ty)
        if val.stride == 0:
            return many
        return self.fn.value(f"add {vector(ty, self.lanes)} {many}, {self.steps(ty, val.stride)}")

    def use(self, v: Value) -> str:
        """The vector operand of an IR value."""
        assert isinstance(v.type, Scalar)
        return self.vec(self.val(v), v.type)

    def at_lane(self, val: Val, t: Scalar, lane: str) -> str:
        """One lane's value; ``lane`` is an i32 operand."""
        ty = self.arith.scalar(t)
        if val.stride is None:
            return self.fn.value(f"extractelement {vector(ty, self.lanes)} {val.text}, i32 {lane}")
        if val.stride == 0:
            return val.text
        k = lane if ty == "i32" else self.arith.cast(U32, t, lane)
        step = self.fn.value(f"mul {ty} {k}, {val.stride}") if val.stride != 1 else k
        return self.fn.value(f"add {ty} {val.text}, {step}")

    def scalar(self, v: Value) -> str:
        """The value of a lane that runs, where all lanes agree."""
        assert isinstance(v.type, Scalar)
        val = self.val(v)
        return val.text if val.stride == 0 else self.at_lane(val, v.type, self.first(self.mask))

    # -- arithmetic on index values ------------------------------------------------------------------------
    def plus(self, a: Val, b: Val, t: Scalar) -> Val:
        ty = self.arith.scalar(t)
        if a.stride is None or b.stride is None:
            return Val(self.fn.value(f"add {vector(ty, self.lanes)} {self.vec(a, t)}, {self.vec(b, t)}"), None)
        if a.text == "0":
            text = b.text
        elif b.text == "0":
            text = a.text
        else:
            text = self.fn.value(f"add {ty} {a.text}, {b.text}")
        return Val(text, a.stride + b.stride)

    def times(self, a: Val, b: Val, t: Scalar) -> Val:
        ty = self.arith.scalar(t)
        factor = self.arith.literal(b.text) if b.stride == 0 else None
        if factor == 1:
            return a
        if a.stride == 0 and b.stride == 0:
            return Val(self.fn.value(f"mul {ty} {a.text}, {b.text}"))
        if a.stride is not None and factor is not None:
            return Val(self.fn.value(f"mul {ty} {a.text}, {factor}"), a.stride * factor)
        return Val(self.fn.value(f"mul {vector(ty, self.lanes)} {self.vec(a, t)}, {self.vec(b, t)}"), None)

    def extend(self, a: Val, t: Scalar) -> Val:
        """An index in range, as i64. A linear one stays so: no lane that runs is near wrapping."""
        if t == I64:
            return a
        return Val(self.arith.cast(t, I64, a.text, 1 if a.stride is not None else self.lanes), a.stride)

    # -- masks -------------------------------------------------------------------------------------------------
    def full(self, mask: str | None) -> str:
        return self.ones if mask is None else mask

    def both(self, mask: str | None, cond: str) -> str:
        """The lanes of ``mask`` where ``cond`` (a vector) holds."""
        return cond if mask is None else self.fn.value(f"and {self.bools} {mask}, {cond}", "mask")

    def without(self, mask: str | None, cond: str) -> str:
        flipped = self.fn.value(f"xor {self.bools} {cond}, {self.ones}", "mask")
        return flipped if mask is None else self.fn.value(f"and {self.bools} {mask}, {flipped}", "mask")

    def word(self, mask: str) -> str:
        """A mask as the bits of an integer."""
        return self.fn.value(f"bitcast {self.bools} {mask} to i{self.lanes}", "bits")

    def any(self, mask: str) -> str:
        return self.fn.value(f"icmp ne i{self.lanes} {self.word(mask)}, 0", "any")

    def first(self, mask: str | None) -> str:
        """The lowest lane of a mask that is not empty, as i32."""
        if mask is None:
            return "0"
        word = f"i{self.lanes}"
        lane = self.arith.intrinsic(f"llvm.cttz.{word}", word, [(word, self.word(mask)), ("i1", "true")], "lane")
        return self._to_i32(lane)

    def _to_i32(self, text: str) -> str:
        return text if self.lanes == 32 else self.fn.value(f"zext i{self.lanes} {text} to i32", "lane")

    def up_to(self, count: str) -> str:
        """The mask of the first ``count`` (an i64 operand, not negative) lanes."""
        few = self.arith.intrinsic("llvm.umin.i64", "i64", [("i64", count), ("i64", str(self.lanes))])
        byte = self.fn.value(f"trunc i64 {few} to i8", "count")
        many = vector("i8", self.lanes)
        return self.fn.value(f"icmp ult {many} {self.steps('i8')}, {self.broadcast(byte, 'i8')}", "mask")

    # -- pure operations -----------------------------------------------------------------------------------------
    def pure(self, op: Op) -> Val:
        """Arithmetic, comparison, choice and conversion, in the narrowest form that its shape allows."""
        assert op.result is not None and isinstance(op.result.type, Scalar)
        result, fn = op.result.type, op.attrs.get("fn", "")
        types = [v.type for v in op.operands]
        shape = self.shapes.of(op.result)
        vals = [self.val(v) for v in op.operands]
        hint = op.result.name
        if all(x.stride is not None for x in vals) and (shape.uniform or shape.linear):
            # On lane 0's values: that is what the shape says is enough.
            text = self.arith.emit(op.code, types, result, [x.text for x in vals], 1, hint, fn)  # type: ignore[arg-type]
            return Val(text, shape.stride)
        if shape.uniform:  # by proof, though not by form
            lane = self.first(self.mask)
            args = [self.at_lane(x, t, lane) for x, t in zip(vals, types, strict=True)]  # type: ignore[arg-type]
            return Val(self.arith.emit(op.code, types, result, args, 1, hint, fn))  # type: ignore[arg-type]
        if op.code == "select" and vals[0].stride == 0:
            a, b = (self.vec(x, result) for x in vals[1:])
            return Val(self.arith.select(vals[0].text, a, b, result, self.lanes, 1), None)
        args = [self.vec(x, t) for x, t in zip(vals, types, strict=True)]  # type: ignore[arg-type]
        if op.code in ("floordiv", "mod") and self.mask is not None and self.arith.literal(args[1]) is None:
            one = self.arith.const(1, result, self.lanes)
            args[1] = self.arith.select(self.mask, args[1], one, result, self.lanes)
        return Val(self.arith.emit(op.code, types, result, args, self.lanes, hint, fn), None)  # type: ignore[arg-type]


