"""Scalar operations of the IR as WGSL expressions, exact for every type (see ``text.py`` for how each is held)."""

from __future__ import annotations

from collections.abc import Sequence

from gridwise.ir.types import BF16, BOOL, F16, F32, F64, I32, STORAGE_ONLY, U32, Scalar

from .dialect import Numerics
from .library import Library
from .text import ZERO, Expr, atom, call, held, infix, is_small, is_wide, literal, u32

_INFIX = {"add": "+", "sub": "-", "mul": "*", "and": "&", "or": "|", "xor": "^"}
_COMPARE = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}
_PREDICATE = {"isnan": ">", "isinf": "==", "isfinite": "<"}  # of the bits without sign against infinity's


def _suffix(t: Scalar) -> str:
    return f"{'i' if t.signed else 'u'}64"


class Numeric:
    """Makes expressions; notes the library functions that they call."""

    def __init__(self, library: Library, numerics: Numerics):
        self.library, self.numerics = library, numerics

    def call(self, name: str, *args: str) -> Expr:
        return call(self.library.use(name), *args)

    # -- dispatch --------------------------------------------------------------------------------------
    def operation(self, code: str, t: Scalar, args: Sequence[Expr], constants: Sequence[int | None]) -> Expr:
        """``code`` on operands of type ``t``. ``constants``: the integer that each operand is known to be, or None."""
        if code in _COMPARE:
            return self.compare(code, t, args[0], args[1])
        if t == BOOL:
            return self.logic(code, args)
        if is_wide(t):
            return self.wide(code, t, args, constants)
        if t.is_int:
            return self.integer(code, t, args, constants)
        return self.round(self.real(code, t, args), t, code)

    def select(self, cond: Expr, a: Expr, b: Expr) -> Expr:
        return call("select", b, a, cond)

    def logic(self, code: str, args: Sequence[Expr]) -> Expr:
        if code == "not":
            return Expr(f"!{args[0].operand}")
        return infix({"and": "&&", "or": "||", "xor": "!="}[code], args[0], args[1])

    def compare(self, code: str, t: Scalar, a: Expr, b: Expr) -> Expr:
        if t == BOOL:
            return infix("==", a, b) if code == "eq" else infix("!=", a, b)
        if is_wide(t):
            if code in ("eq", "ne"):
                return call("all" if code == "eq" else "any", infix(_COMPARE[code], a, b))
            less = f"gw_lt_{_suffix(t)}"
            x, y = (a, b) if code in ("lt", "ge") else (b, a)
            test = self.call(less, x, y)
            return test if code in ("lt", "gt") else Expr(f"!{test}")
        if t.is_float and code == "ne":
            return Expr(f"!{infix('==', a, b).operand}")  # `!=` may be the ordered comparison, false for NaN
        return infix(_COMPARE[code], a, b)

    # -- integers --------------------------------------------------------------------------------------
    def wrap(self, x: Expr, t: Scalar) -> Expr:
        """An i32 or u32 reduced to a narrower type."""
        if not is_small(t):
            return x
        if t.signed:
            n = u32(32 - t.bits)
            return infix(">>", infix("<<", x, n), n)
        return infix("&", x, u32(t.max))

    def integer(self, code: str, t: Scalar, args: Sequence[Expr], constants: Sequence[int | None]) -> Expr:
        a = args[0]
        if code in ("add", "sub", "mul"):
            return self.wrap(infix(_INFIX[code], a, args[1]), t)
        if code in _INFIX:
            return infix(_INFIX[code], a, args[1])
        if code in ("min", "max"):
            return call(code, *args)
        if code in ("floordiv", "mod"):
            return self.division(code, t, a, args[1], constants[1])
        if code in ("shl", "shr"):
            return self.shift(code, t, a, args[1], constants[1])
        if code == "neg":
            return self.wrap(Expr(f"-{a.operand}") if t.signed else infix("-", u32(0), a), t)
        if code == "abs":
            return self.wrap(call("abs", a), t) if t.signed else a
        if code == "not":
            return self.wrap(Expr(f"~{a.operand}"), t) if not t.signed else Expr(f"~{a.operand}")
        bits = infix("&", Expr(f"bitcast<u32>({a})", True), u32((1 << t.bits) - 1)) if is_small(t) and t.signed else a
        if code == "popcount":
            out = call("countOneBits", bits)
        elif code == "clz":
            out = call("countLeadingZeros", bits)
            out = infix("-", out, atom(f"{32 - t.bits}{'i' if held_signed(bits, t) else 'u'}")) if t.bits < 32 else out
        else:
            assert code == "ctz", code
            if t.bits < 32:
                bits = infix("|", bits, u32(1 << t.bits))
            out = call("countTrailingZeros", bits)
        return call("i32", out) if t.signed and is_small(t) else out

    def division(self, code: str, t: Scalar, a: Expr, b: Expr, by: int | None) -> Expr:
        if by is not None and by > 0 and by & (by - 1) == 0:
            if code == "mod":
                return infix("&", a, literal(by - 1, t))
            return infix(">>", a, u32(by.bit_length() - 1))
        if not t.signed:
            return infix("/" if code == "floordiv" else "%", a, b)
        return self.wrap(self.call(f"gw_{code}_i32", a, b), t)

    def shift(self, code: str, t: Scalar, a: Expr, n: Expr, by: int | None) -> Expr:
        if by is not None:
            by &= (1 << t.bits) - 1
            if code == "shl":
                return self.wrap(infix("<<", a, u32(by)), t) if by < t.bits else literal(0, t)
            if t.signed:
                return infix(">>", a, u32(min(by, 31)))
            return infix(">>", a, u32(by)) if by < t.bits else literal(0, t)
        count = n if not t.signed else call("bitcast<u32>", n)
        if is_small(t) and t.signed:
            count = infix("&", count, u32((1 << t.bits) - 1))
        if code == "shr" and t.signed:
            return infix(">>", a, call("min", count, "31u"))
        moved = self.wrap(infix("<<" if code == "shl" else ">>", a, infix("&", count, u32(31))), t)
        return call("select", literal(0, t), moved, infix("<", count, u32(t.bits)))

    def wide(self, code: str, t: Scalar, args: Sequence[Expr], constants: Sequence[int | None]) -> Expr:
        a, s = args[0], _suffix(t)
        if code in ("add", "sub", "mul"):
            return self.call(f"gw_{code}64", a, args[1])
        if code in _INFIX:
            return infix(_INFIX[code], a, args[1])
        if code == "not":
            return Expr(f"~{a.operand}")
        if code == "neg":
            return self.call("gw_neg64", a)
        if code == "abs":
            return self.call("gw_abs64", a) if t.signed else a
        if code in ("floordiv", "mod"):
            by = constants[1]
            if by is not None and by > 0 and by & (by - 1) == 0:
                if code == "mod":
                    return infix("&", a, literal(by - 1, t))
                return self.call(f"gw_shr_{s}", a, u32(by.bit_length() - 1))
            return self.call(f"gw_{code}_{s}", a, args[1])
        if code in ("shl", "shr"):
            by = constants[1]
            count: Expr = self.call("gw_count64", args[1]) if by is None else u32(min(by & ((1 << 64) - 1), 64))
            return self.call("gw_shl64" if code == "shl" else f"gw_shr_{s}", a, count)
        if code in ("min", "max"):
            x, y = (a, args[1]) if code == "min" else (args[1], a)
            return call("select", args[1], a, self.call(f"gw_lt_{s}", x, y))
        if code == "popcount":
            ones = call("countOneBits", a)
            return call("vec2<u32>", f"{ones}.x + {ones}.y", "0u")
        return call("vec2<u32>", self.call(f"gw_{code}64", a), "0u")

    # -- floats ----------------------------------------------------------------------------------------
    def round(self, x: Expr, t: Scalar, code: str) -> Expr:
        """A result in f32 rounded to f16 or bf16, where the operation does not already give such a value."""
        exact = ("neg", "abs", "min", "max", "floor", "ceil", "trunc", "rint", "copysign", "fmin", "fmax")
        return self.call(f"gw_{t}_round", x) if t in (F16, BF16) and code not in exact else x

    def opaque(self, x: Expr, t: Scalar) -> Expr:
        """The same float, out of reach of the driver's algebra."""
        return self.call("gw_exact_f64" if t == F64 else "gw_exact", x)

    def real(self, code: str, t: Scalar, args: Sequence[Expr]) -> Expr:
        a, kind = args[0], "f64" if t == F64 else "f32"
        if code in ("add", "sub", "mul"):
            return infix(_INFIX[code], a, args[1])
        if code == "div":
            native = self.numerics.division or t == F64
            return infix("/", a, args[1]) if native else self.call("gw_div_f32", a, args[1])
        if code in ("min", "max"):
            return self.call(f"gw_{code}_{kind}", a, args[1])
        if code == "neg":
            return Expr(f"-{a.operand}")
        if code == "abs":
            return call("abs", a)
        assert code == "fma", code
        native = self.numerics.fma or t == F64
        return call("fma", *args) if native else self.call("gw_fma_f32", *args)

    def function(self, fn: str, t: Scalar, args: Sequence[Expr]) -> Expr:
        """``math`` with one of the functions that stay native (``lang.math.NATIVE``)."""
        if fn in _PREDICATE:
            return self.predicate(fn, t, args[0])
        kind = "f64" if t == F64 else "f32"
        if fn in ("fmin", "fmax"):
            return self.call(f"gw_{fn}_{kind}", *args)
        if fn == "copysign":
            return self.copysign(t, args[0], args[1])
        if fn == "sqrt" and t != F64 and not self.numerics.sqrt:
            return self.round(self.call("gw_sqrt_f32", args[0]), t, fn)
        return self.round(call({"rint": "round"}.get(fn, fn), args[0]), t, fn)

    def predicate(self, fn: str, t: Scalar, x: Expr) -> Expr:
        if t != F64:
            magnitude = infix("&", call("bitcast<u32>", x), atom("0x7fffffffu"))
            return infix(_PREDICATE[fn], magnitude, atom("0x7f800000u"))
        if fn == "isnan":
            return self.call("gw_isnan_f64", x)
        high = infix("&", atom(f"{self.call('gw_bits_f64', x)}.y"), atom("0x7fffffffu"))
        if fn == "isfinite":
            return infix("<", high, atom("0x7ff00000u"))
        return infix("&&", infix("==", high, atom("0x7ff00000u")), Expr(f"!{self.call('gw_isnan_f64', x)}"))

    def copysign(self, t: Scalar, x: Expr, y: Expr) -> Expr:
        if t != F64:
            magnitude = infix("&", call("bitcast<u32>", x), atom("0x7fffffffu"))
            sign = infix("&", call("bitcast<u32>", y), atom("0x80000000u"))
            return call("bitcast<f32>", infix("|", magnitude, sign))
        mask = "vec2<u32>(0xffffffffu, 0x7fffffffu)"
        magnitude = infix("&", self.call("gw_bits_f64", x), atom(mask))
        sign = infix("&", self.call("gw_bits_f64", y), atom("vec2<u32>(0u, 0x80000000u)"))
        return self.call("gw_f64", infix("|", magnitude, sign))

    # -- conversions -----------------------------------------------------------------------------------
    def cast(self, x: Expr, t: Scalar, to: Scalar) -> Expr:
        """Numeric conversion, by the rules of the IR's ``cast``."""
        if t == to:
            return x
        if t in STORAGE_ONLY:
            return self.cast(self.call(f"gw_{t}_value", x), F32, to)
        if to in STORAGE_ONLY:
            single = self.to_single(x, t, odd=True)
            return self.call(f"gw_{to}_bits", single)
        if to == BOOL:
            return self.truth(x, t)
        if t == BOOL:
            return self.cast(call("select", "0u", "1u", x), U32, to)
        if to.is_int:
            return self.to_integer(x, t, to)
        if to == F64:
            if is_wide(t):
                return self.call(f"gw_f64_{_suffix(t)}", x)
            return call("f64", x)
        if to == F32:
            return self.to_single(x, t, odd=False)
        if is_small(t) or t == F32 or (to == F16 and not is_wide(t) and t != F64):
            # Exact in f32 (or, for 32-bit integers and f16, exact wherever f16 does not overflow).
            return self.call(f"gw_{to}_round", self.to_single(x, t, odd=False))
        return self.call(f"gw_{to}_round", self.to_single(x, t, odd=True))

    def truth(self, x: Expr, t: Scalar) -> Expr:
        if is_wide(t):
            return call("any", infix("!=", x, literal(0, t)))
        if t == F64:
            return Expr(f"!{infix('==', x, literal(0.0, t)).operand}")
        if t.is_float:
            return infix("!=", infix("&", call("bitcast<u32>", x), atom("0x7fffffffu")), u32(0))
        return infix("!=", x, literal(0, t))

    def to_integer(self, x: Expr, t: Scalar, to: Scalar) -> Expr:
        if t.is_float:
            kind = "f64" if t == F64 else "f32"
            if is_wide(to):
                return self.call(f"gw_{_suffix(to)}_{kind}", x)
            word = I32 if to.signed else U32
            if t == F64:
                x = self.saturate64(x, word)
            else:
                x = self.call(f"gw_{word}_{kind}", x)
            if is_small(to):
                x = call("clamp", x, literal(to.min, word), literal(to.max, word))
            return x
        if is_wide(to):
            if is_wide(t):
                return x
            if t.signed:
                return call("vec2<u32>", call("bitcast<u32>", x), call("bitcast<u32>", infix(">>", x, u32(31))))
            return call("vec2<u32>", x, "0u")
        if is_wide(t):
            x, t = atom(f"{x.operand}.x"), U32
        if held(t) != held(to):
            x = call(f"bitcast<{held(to)}>", x)
        fits = to.bits == 32 or (t.min >= to.min and t.max <= to.max)
        return x if fits else self.wrap(x, to)

    def saturate64(self, x: Expr, word: Scalar) -> Expr:
        """A double to a 32-bit integer, through the 64-bit one."""
        if not word.signed:
            pair = self.call("gw_u64_f64", x)
            return call("select", f"{pair}.x", "0xffffffffu", f"{pair}.y != 0u")
        inside = call("clamp", x, "-2147483648.0lf", "2147483647.0lf")
        pair = self.call("gw_i64_f64", self.select(self.call("gw_isnan_f64", x), atom("0.0lf"), inside))
        return call("bitcast<i32>", f"{pair}.x")

    def to_single(self, x: Expr, t: Scalar, odd: bool) -> Expr:
        """To f32: nearest even, or (``odd``) so that rounding once more gives what one rounding would."""
        if t == F64:
            return self.call("gw_odd_f64", x) if odd else call("f32", x)
        if t.is_float:
            return x
        if is_wide(t):
            return self.call(f"gw_{'odd' if odd else 'f32'}_{_suffix(t)}", x)
        if odd and t.bits == 32:
            wide = self.to_integer(x, t, Scalar("i64", "int", 64) if t.signed else Scalar("u64", "uint", 64))
            return self.call(f"gw_odd_{'i64' if t.signed else 'u64'}", wide)
        return self.call("gw_f32_u32", x) if t == U32 else call("f32", x)

    def bitcast(self, x: Expr, t: Scalar, to: Scalar) -> Expr:
        if t == to:
            return x
        if t.bits < 32 or t == BOOL:
            return self.from_bits(self.to_bits(x, t), to)
        if t.bits == 64:
            if t == F64:
                return self.call("gw_bits_f64", x)
            return self.call("gw_f64", x) if to == F64 else x
        return call(f"bitcast<{held(to)}>", x)

    def to_bits(self, x: Expr, t: Scalar) -> Expr:
        """The bits of a value of at most 32 bits, in a u32 (zero-extended)."""
        if t == BOOL:
            return call("select", "0u", "1u", x)
        if t in STORAGE_ONLY:
            return x
        if t in (F16, BF16):
            return self.call(f"gw_{t}_bits", x)
        if t.is_float or t.signed:
            x = call("bitcast<u32>", x)
            return infix("&", x, u32((1 << t.bits) - 1)) if t.bits < 32 else x
        return x

    def from_bits(self, x: Expr, t: Scalar) -> Expr:
        """A value of at most 32 bits from its bits in a u32 whose higher bits are 0."""
        if t == BOOL:
            return infix("!=", x, u32(0))
        if t in STORAGE_ONLY:
            return x
        if t in (F16, BF16):
            return self.call(f"gw_{t}_value", x)
        if t.is_float:
            return call("bitcast<f32>", x)
        if t.signed:
            return self.wrap(call("bitcast<i32>", x), t)
        return x


def held_signed(bits: Expr, t: Scalar) -> bool:
    """Whether the bits of an integer whose leading zeros are counted are still held as i32."""
    return t.signed and not is_small(t)


def opaque_constant(x: Expr, t: Scalar) -> Expr:
    """An integer constant that no front end can fold."""
    if is_wide(t):
        return infix("|", x, Expr(f"vec2<u32>({ZERO}, {ZERO})", True))
    return infix("|", x, atom(f"i32({ZERO})" if t.signed else ZERO))
