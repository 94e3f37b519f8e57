"""Scalar operations as an x86 or ARM core does them well on vectors."""

from __future__ import annotations

from gridwise.ir.types import BF16, BOOL, F16, F32, F64, I32, Scalar
from gridwise.targets.llvm.arith import Arith


class CpuArith(Arith):
    """16-bit floats travel as their bits, so that no conversion becomes a call into compiler-rt."""

    half_instructions = False  # the machine converts f16 (F16C, or ARMv8)

    @classmethod
    def scalar(cls, t: Scalar) -> str:
        return "i16" if t in (F16, BF16) else super().scalar(t)

    def widen(self, t: Scalar, a: str, lanes: int = 1) -> str:
        if t == F16 and self.half_instructions:
            half = "half" if lanes == 1 else f"<{lanes} x half>"
            bits = self.fn.value(f"bitcast {self.type(t, lanes)} {a} to {half}")
            return self.fn.value(f"fpext {half} {bits} to {self.type(F32, lanes)}")
        return super().widen(t, a, lanes)

    def narrow(self, t: Scalar, a: str, lanes: int = 1) -> str:
        if t == F16 and self.half_instructions:
            half = "half" if lanes == 1 else f"<{lanes} x half>"
            rounded = self.fn.value(f"fptrunc {self.type(F32, lanes)} {a} to {half}")
            return self.fn.value(f"bitcast {half} {rounded} to {self.type(t, lanes)}")
        return super().narrow(t, a, lanes)

    def quotient(self, t: Scalar, a: str, b: str, lanes: int) -> str:
        """No vector unit divides integers: up to 32 bits a float quotient, cut off, is exact.

        The distance from a quotient to the next whole number is at least 2**-bits of it, far above the rounding
        error of a float with more than twice as many mantissa bits (one and a half times, for 16 bits).
        """
        if lanes == 1 or t.bits == 64 or self.literal(b) is not None:
            return super().quotient(t, a, b, lanes)
        wide = F32 if t.bits <= 16 else F64
        x, y = self.cast(t, wide, a, lanes), self.cast(t, wide, b, lanes)
        ty = self.type(wide, lanes)
        q = self.fn.value(f"fdiv {ty} {x}, {y}")
        to = t if t.bits == 32 else I32
        op = "fptosi" if to.signed else "fptoui"
        return self.cast(to, t, self.fn.value(f"{op} {ty} {q} to {self.type(to, lanes)}"), lanes)

    def cast(self, src: Scalar, dst: Scalar, a: str, lanes: int = 1, hint: str = "v") -> str:
        if lanes > 1 and src in (F32, F64) and dst.is_int:
            return self._saturate(src, dst, a, lanes)
        return super().cast(src, dst, a, lanes, hint)

    def _saturate(self, src: Scalar, dst: Scalar, a: str, lanes: int) -> str:
        """LLVM's saturating conversion takes vectors apart on x86; comparisons and blends do not."""
        ty = self.type(src, lanes)
        top, bottom = float(dst.max + 1) if dst.bits == 64 else float(dst.max) + 1.0, float(dst.min)
        over = self.fn.value(f"fcmp oge {ty} {a}, {self.const(top, src, lanes)}")
        under = self.fn.value(f"fcmp olt {ty} {a}, {self.const(bottom, src, lanes)}")
        inside = self.fn.value(f"fcmp ord {ty} {a}, {a}")
        for outside in (over, under):
            inside = self.binary("and", BOOL, inside, self.unary("not", BOOL, outside, lanes), lanes)
        safe = self.select(inside, a, self.const(0.0, src, lanes), src, lanes)
        through = I32 if dst.bits < 32 else dst
        op = "fptosi" if through.signed else "fptoui"
        whole = self.fn.value(f"{op} {ty} {safe} to {self.type(through, lanes)}")
        whole = self.cast(through, dst, whole, lanes)
        whole = self.select(over, self.const(dst.max, dst, lanes), whole, dst, lanes)
        return self.select(under, self.const(dst.min, dst, lanes), whole, dst, lanes)


class F16cArith(CpuArith):
    """For machines that convert f16 in hardware."""

    half_instructions = True


