"""Formulas over the IR: ``E`` is a value with Python's operators, so that a polynomial reads as one.

Rules for code written with it, which make the results right on every target:

* A product may be fused into a following sum, or not. Where a product must be exact its factors are cut to
  half the precision with ``high`` first, on the bits.
* Some GPU compilers simplify ``(a + b) - a`` to ``b``, so error terms are taken against a value cut by
  ``high``, never by the classic two-sum.
* NaN and infinity are recognised on the bits, since WGSL lets a compiler assume that there are none.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager

from gridwise.ir import Builder, Region, Value
from gridwise.ir.types import BF16, BOOL, F16, F32, F64, I16, I32, I64, U16, U32, U64, Scalar
from gridwise.lang.records import dataclass

from .coefficients import TABLE

Number = int | float


@dataclass(frozen=True)
class Format:
    """An IEEE format and the integers of its width."""

    type: Scalar
    uint: Scalar
    sint: Scalar
    mantissa: int  # stored bits
    bias: int

    @property
    def bits(self) -> int:
        return self.type.bits

    @property
    def half(self) -> int:
        """Low bits cut by ``high``: what is left has at most half the precision, so products are exact."""
        return (self.mantissa + 2) // 2

    @property
    def short(self) -> int:
        """Bits of a constant whose product with any exponent of the format is exact."""
        return 2 * self.mantissa + 2 - self.bits

    @property
    def infinity(self) -> int:
        return (2 * self.bias + 1) << self.mantissa

    @property
    def sign(self) -> int:
        return 1 << (self.bits - 1)

    def pick(self, single: float, double: float) -> float:
        """A constant that depends on the format."""
        return single if self.bits == 32 else double


FORMATS = {
    F16: Format(F16, U16, I16, 10, 15),
    BF16: Format(BF16, U16, I16, 7, 127),
    F32: Format(F32, U32, I32, 23, 127),
    F64: Format(F64, U64, I64, 52, 1023),
}


class E:
    """An IR scalar that is being computed with."""

    __slots__ = ("b", "v")

    def __init__(self, b: Builder, v: Value):
        self.b, self.v = b, v

    @property
    def type(self) -> Scalar:
        assert isinstance(self.v.type, Scalar)
        return self.v.type

    @property
    def fmt(self) -> Format:
        return FORMATS[self.type]

    def const(self, value: Number | bool) -> E:
        """A constant of this value's type."""
        if self.type.is_float:
            return E(self.b, self.b.const(float(value), self.type))
        return E(self.b, self.b.const(value if self.type == BOOL else self.type.wrap(int(value)), self.type))

    def _lift(self, other: E | Number) -> E:
        return other if isinstance(other, E) else self.const(other)

    def _op(self, code: str, other: E | Number, swap: bool = False) -> E:
        a, c = self, self._lift(other)
        if swap:
            a, c = c, a
        return E(self.b, self.b.binary(code, a.v, c.v))

    # ---- arithmetic ------------------------------------------------------------------------------
    def __add__(self, o: E | Number) -> E:
        return self._op("add", o)

    def __radd__(self, o: Number) -> E:
        return self._op("add", o, True)

    def __sub__(self, o: E | Number) -> E:
        return self._op("sub", o)

    def __rsub__(self, o: Number) -> E:
        return self._op("sub", o, True)

    def __mul__(self, o: E | Number) -> E:
        return self._op("mul", o)

    def __rmul__(self, o: Number) -> E:
        return self._op("mul", o, True)

    def __truediv__(self, o: E | Number) -> E:
        return self._op("div", o)

    def __rtruediv__(self, o: Number) -> E:
        return self._op("div", o, True)

    def __mod__(self, o: E) -> E:
        """Unsigned integers only; the divisor is known not to be zero."""
        return E(self.b, self.b.value("mod", (self.v, o.v), self.type, check="proved"))

    def __neg__(self) -> E:
        return E(self.b, self.b.unary("neg", self.v))

    def __abs__(self) -> E:
        return E(self.b, self.b.unary("abs", self.v))

    # ---- bits ------------------------------------------------------------------------------------
    def __and__(self, o: E | Number) -> E:
        return self._op("and", o)

    def __or__(self, o: E | Number) -> E:
        return self._op("or", o)

    def __xor__(self, o: E | Number) -> E:
        return self._op("xor", o)

    def __lshift__(self, o: E | Number) -> E:
        return self._op("shl", o)

    def __rshift__(self, o: E | Number) -> E:
        return self._op("shr", o)

    def __invert__(self) -> E:
        return E(self.b, self.b.unary("not", self.v))

    def clz(self) -> E:
        return E(self.b, self.b.unary("clz", self.v))

    # ---- comparison ------------------------------------------------------------------------------
    def __lt__(self, o: E | Number) -> E:
        return self._op("lt", o)

    def __le__(self, o: E | Number) -> E:
        return self._op("le", o)

    def __gt__(self, o: E | Number) -> E:
        return self._op("gt", o)

    def __ge__(self, o: E | Number) -> E:
        return self._op("ge", o)

    def eq(self, o: E | Number) -> E:
        return self._op("eq", o)

    def ne(self, o: E | Number) -> E:
        return self._op("ne", o)

    # ---- conversion ------------------------------------------------------------------------------
    def to(self, type: Scalar) -> E:
        return E(self.b, self.b.cast(self.v, type))

    def as_(self, type: Scalar) -> E:
        """The same bits as another type."""
        return E(self.b, self.b.bitcast(self.v, type))

    def bits(self) -> E:
        return self.as_(self.fmt.uint)

    def sbits(self) -> E:
        return self.as_(self.fmt.sint)

    # ---- native functions ------------------------------------------------------------------------
    def _native(self, fn: str, *more: E) -> E:
        return E(self.b, self.b.math(fn, [self.v, *(m.v for m in more)]))

    def rint(self) -> E:
        return self._native("rint")

    def floor(self) -> E:
        return self._native("floor")

    def trunc(self) -> E:
        return self._native("trunc")

    def sqrt(self) -> E:
        return self._native("sqrt")

    def copysign(self, sign: E) -> E:
        return self._native("copysign", sign)

    # ---- classification, on the bits -----------------------------------------------------------------
    def magnitude(self) -> E:
        """The bits without the sign, as an unsigned integer: ordered as the absolute values are."""
        return self.bits() & (self.fmt.sign - 1)

    def isnan(self) -> E:
        return self.magnitude() > self.fmt.infinity

    def isinf(self) -> E:
        return self.magnitude().eq(self.fmt.infinity)

    def finite(self) -> E:
        return self.magnitude() < self.fmt.infinity

    def negative(self) -> E:
        """Whether the sign bit is set."""
        return self.sbits() < 0

    # ---- choice and control --------------------------------------------------------------------------
    def where(self, cond: E, other: E | Number) -> E:
        """This value where ``cond`` holds, else the other."""
        return E(self.b, self.b.select(cond.v, self.v, self._lift(other).v))

    def replace(self, cond: E, by: E | Number) -> E:
        """This value, or ``by`` where ``cond`` holds."""
        return E(self.b, self.b.select(cond.v, self._lift(by).v, self.v))

    def clip(self, low: float, high: float) -> E:
        """Between two constants; NaN passes through."""
        return self.replace(self < low, low).replace(self > high, high)

    # ---- floats as pairs -----------------------------------------------------------------------------
    def high(self) -> E:
        """The value cut (towards zero) to half the precision: the product of two such is exact."""
        return (self.bits() & -(1 << self.fmt.half)).as_(self.type)

    def infinite(self) -> E:
        return self.const(float("inf"))

    def nan(self) -> E:
        return self.const(float("nan"))


def poly(name: str, x: E) -> E:
    """A polynomial of ``coefficients.TABLE`` by Horner's rule."""
    return horner(TABLE[name][x.fmt.bits], x)


def horner(coefficients: tuple[float, ...], x: E) -> E:
    total = x.const(coefficients[-1])
    for c in reversed(coefficients[:-1]):
        total = total * x + c
    return total


def pow2(n: E, like: E) -> E:
    """2**n for an integer n from 1 - bias to bias."""
    f = like.fmt
    return ((n + f.bias) << f.mantissa).as_(f.type)


def scale(x: E, n: E) -> E:
    """x * 2**n in two steps, for n within twice the exponent range: overflows and underflows with one rounding."""
    half = n >> 1
    return x * pow2(half, x) * pow2(n - half, x)


def branch(cond: E, b: Builder) -> AbstractContextManager[Region]:
    """Build into the body of an ``if`` that is seldom taken: a real branch, skipped when no lane takes it."""
    op = b.if_(cond.v)
    op.attrs["rare"] = True
    return b.into(op.regions[0])


class Variable:
    """A mutable scalar, for the rare control flow in this library."""

    def __init__(self, name: str, start: E):
        self.b, self.var = start.b, start.b.var(name, start.type)
        self.set(start)

    def set(self, value: E) -> None:
        self.b.set(self.var, value.v)

    def get(self) -> E:
        return E(self.b, self.b.get(self.var))


Function = Callable[..., E]
