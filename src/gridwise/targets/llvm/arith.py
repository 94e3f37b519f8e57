"""Every scalar operation of ``ir/ops.py`` as LLVM instructions, on one value or on a vector of lanes.

Operands and results are operand texts without their type. ``lanes`` is 1 for a scalar. Nothing here gives
poison for a defined input, so a lane that is masked off may hold anything. A target overrides single methods.
"""

from __future__ import annotations

from gridwise.ir import ops
from gridwise.ir.types import BOOL, F32, F64, I32, I64, U32, U64, Scalar

from . import small
from .text import Function, float_constant, scalar_text, splat, vector

FLAGS = frozenset("contract reassoc nnan ninf nsz arcp afn".split())  # fastmath= names that LLVM has

_INT = {"add": "add", "sub": "sub", "mul": "mul", "and": "and", "or": "or", "xor": "xor"}
_FLOAT = {"add": "fadd", "sub": "fsub", "mul": "fmul", "div": "fdiv"}
_COMPARE = {"eq": ("eq", "oeq"), "ne": ("ne", "une"), "lt": ("lt", "olt"), "le": ("le", "ole"), "gt": ("gt", "ogt"),
            "ge": ("ge", "oge")}
_ROUNDING = {"sqrt": "sqrt", "floor": "floor", "ceil": "ceil", "trunc": "trunc", "rint": "roundeven"}


def mangled(t: Scalar, lanes: int) -> str:
    """How LLVM spells a type inside an intrinsic's name."""
    base = f"i{t.bits}" if not t.is_float else {"f16": "f16", "bf16": "bf16"}.get(t.name, f"f{t.bits}")
    return base if lanes == 1 else f"v{lanes}{base}"


class Arith:
    """Writes into ``fn``. ``fastmath`` names extra LLVM flags for float arithmetic; contraction is always allowed."""

    def __init__(self, fn: Function, fastmath: frozenset[str] = frozenset()):
        self.fn = fn
        self.flags = " ".join(["contract", *sorted((fastmath & FLAGS) - {"contract"})]) + " "

    # -- types and constants -------------------------------------------------------------------------------
    @classmethod
    def scalar(cls, t: Scalar) -> str:
        """The LLVM type of one value of type ``t``."""
        return scalar_text(t)

    def type(self, t: Scalar, lanes: int = 1) -> str:
        return vector(self.scalar(t), lanes)

    def memory(self, t: Scalar) -> str:
        """The LLVM type of an element in memory: as the value, but a bool is a byte."""
        return "i8" if t == BOOL else self.scalar(t)

    def const(self, value: bool | int | float, t: Scalar, lanes: int = 1) -> str:
        if t == BOOL:
            text = "true" if value else "false"
        elif t.is_int:
            text = str(t.wrap(int(value)))
        elif t.bits >= 32:
            text = float_constant(float(value), t.bits)
        else:
            bits = small.bits(float(value), t)
            text = {"half": f"0xH{bits:04X}", "bfloat": f"0xR{bits:04X}"}.get(self.scalar(t), str(bits))
        return splat(self.scalar(t), text, lanes)

    def literal(self, text: str) -> int | None:
        """The integer in a constant operand, or None for a computed one."""
        if text.startswith("%"):
            return None
        word = text[text.rindex(" ") + 1 : -1] if text.startswith("splat") else text
        word = "0" if word == "zeroinitializer" else word
        return int(word) if word.lstrip("-").isdigit() else None

    def intrinsic(self, name: str, result: str, args: list[tuple[str, str]], hint: str = "v") -> str:
        """Call ``@name`` with (type, operand) arguments, declaring it."""
        self.fn.module.declare(name, f"{result} {{}}({', '.join(t for t, _ in args)})")
        return self.fn.value(f"call {result} @{name}({', '.join(f'{t} {a}' for t, a in args)})", hint)

    def _on_f32(self, t: Scalar) -> bool:
        """16-bit floats compute in f32: for + - * / sqrt rounding twice equals rounding once."""
        return t.is_float and t.bits < 32

    # -- one and two operands ------------------------------------------------------------------------------
    def binary(self, code: str, t: Scalar, a: str, b: str, lanes: int = 1, hint: str = "v") -> str:
        """Arithmetic and bits: operands and result of type ``t``."""
        if self._on_f32(t):
            wide = self.binary(code, F32, self.widen(t, a, lanes), self.widen(t, b, lanes), lanes)
            return self.narrow(t, wide, lanes)
        ty = self.type(t, lanes)
        if t.is_float:
            if code in ("min", "max"):
                return self.intrinsic(f"llvm.{code}imum.{mangled(t, lanes)}", ty, [(ty, a), (ty, b)], hint)
            flags = "" if code == "div" and self.flags == "contract " else self.flags
            return self.fn.value(f"{_FLOAT[code]} {flags}{ty} {a}, {b}", hint)
        if code in _INT:
            return self.fn.value(f"{_INT[code]} {ty} {a}, {b}", hint)
        if code in ("shl", "shr"):
            return self.shift(code, t, a, b, lanes)
        if code in ("min", "max"):
            sign = "s" if t.signed else "u"
            return self.intrinsic(f"llvm.{sign}{code}.{mangled(t, lanes)}", ty, [(ty, a), (ty, b)], hint)
        assert code in ("floordiv", "mod"), code
        return self.division(code, t, a, b, lanes)

    def unary(self, code: str, t: Scalar, a: str, lanes: int = 1, hint: str = "v") -> str:
        ty = self.type(t, lanes)
        if t.is_float:
            if self._on_f32(t):  # exact on the bits: the sign is the top one
                word = f"i{t.bits}"
                bits = a if self.scalar(t) == word else self.fn.value(f"bitcast {ty} {a} to {vector(word, lanes)}")
                top = 1 << (t.bits - 1)
                op, mask = ("xor", top) if code == "neg" else ("and", top - 1)
                bits = self.fn.value(f"{op} {vector(word, lanes)} {bits}, {splat(word, str(mask), lanes)}")
                if self.scalar(t) == word:
                    return bits
                return self.fn.value(f"bitcast {vector(word, lanes)} {bits} to {ty}")
            if code == "neg":
                return self.fn.value(f"fneg {ty} {a}", hint)
            return self.intrinsic(f"llvm.fabs.{mangled(t, lanes)}", ty, [(ty, a)], hint)
        if code == "neg":
            return self.fn.value(f"sub {ty} {self.const(0, t, lanes)}, {a}", hint)
        if code == "not":
            ones = splat(self.scalar(t), "true" if t == BOOL else "-1", lanes)
            return self.fn.value(f"xor {ty} {a}, {ones}", hint)
        if code == "popcount":
            return self.intrinsic(f"llvm.ctpop.{mangled(t, lanes)}", ty, [(ty, a)], hint)
        if code == "abs" and not t.signed:
            return a
        name = {"clz": "ctlz", "ctz": "cttz", "abs": "abs"}[code]
        return self.intrinsic(f"llvm.{name}.{mangled(t, lanes)}", ty, [(ty, a), ("i1", "false")], hint)

    def shift(self, code: str, t: Scalar, a: str, b: str, lanes: int = 1) -> str:
        """The count is unsigned; by the width or more gives 0, or the sign."""
        ty = self.type(t, lanes)
        op = "shl" if code == "shl" else "ashr" if t.signed else "lshr"
        count = self.literal(b)
        if count is not None:
            count &= (1 << t.bits) - 1
            if count >= t.bits:
                if op != "ashr":
                    return self.const(0, t, lanes)
                b = self.const(t.bits - 1, t, lanes)
            return self.fn.value(f"{op} {ty} {a}, {b}")
        if op == "ashr":
            last = self.const(t.bits - 1, t, lanes)
            b = self.intrinsic(f"llvm.umin.{mangled(t, lanes)}", ty, [(ty, b), (ty, last)])
            return self.fn.value(f"{op} {ty} {a}, {b}")
        ok = self.fn.value(f"icmp ult {ty} {b}, {self.const(t.bits, t, lanes)}")
        shifted = self.fn.value(f"{op} {ty} {a}, {b}")
        return self.select(ok, shifted, self.const(0, t, lanes), t, lanes)

    # -- integer division ----------------------------------------------------------------------------------
    def quotient(self, t: Scalar, a: str, b: str, lanes: int) -> str:
        """Toward zero; ``b`` is neither 0 nor, for signed types, -1."""
        return self.fn.value(f"{'sdiv' if t.signed else 'udiv'} {self.type(t, lanes)} {a}, {b}")

    def division(self, code: str, t: Scalar, a: str, b: str, lanes: int = 1) -> str:
        """Floor division and modulo of integers without branches; the divisor is not 0."""
        ty = self.type(t, lanes)
        known = self.literal(b)
        if known is not None and known > 0 and known & (known - 1) == 0:
            if code == "mod":
                return self.fn.value(f"and {ty} {a}, {self.const(known - 1, t, lanes)}")
            return self.shift("shr", t, a, self.const(known.bit_length() - 1, t, lanes), lanes)
        if not t.signed:
            q = self.quotient(t, a, b, lanes)
            return q if code == "floordiv" else self._rest(ty, a, b, q)
        if known == -1:
            return self.const(0, t, lanes) if code == "mod" else self.unary("neg", t, a, lanes)
        safe, minus = b, ""
        if known is None:
            minus = self.fn.value(f"icmp eq {ty} {b}, {self.const(-1, t, lanes)}")
            safe = self.select(minus, self.const(1, t, lanes), b, t, lanes)
        q = self.quotient(t, a, safe, lanes)
        r = self._rest(ty, a, safe, q)
        # The remainder has the sign of the dividend: step down once where that is not the divisor's.
        inexact = self.fn.value(f"icmp ne {ty} {r}, {self.const(0, t, lanes)}")
        signs = self.fn.value(f"xor {ty} {r}, {safe}")
        differ = self.fn.value(f"icmp slt {ty} {signs}, {self.const(0, t, lanes)}")
        step = self.fn.value(f"and {vector('i1', lanes)} {inexact}, {differ}")
        if code == "mod":
            return self.select(step, self.fn.value(f"add {ty} {r}, {safe}"), r, t, lanes)
        down = self.fn.value(f"sext {vector('i1', lanes)} {step} to {ty}")
        q = self.fn.value(f"add {ty} {q}, {down}")
        return self.select(minus, self.unary("neg", t, a, lanes), q, t, lanes) if minus else q

    def _rest(self, ty: str, a: str, b: str, q: str) -> str:
        product = self.fn.value(f"mul {ty} {q}, {b}")
        return self.fn.value(f"sub {ty} {a}, {product}")

    def trip_count(self, t: Scalar, start: str, stop: str, step: str, lanes: int = 1) -> str:
        """How often ``range(start, stop, step)`` runs, as an unsigned number of the same width. Exact."""
        unsigned, one = (U64 if t.bits == 64 else Scalar(f"u{t.bits}", "uint", t.bits)), self.const(1, t, lanes)
        known = self.literal(step)

        def count(low: str, high: str, size: str, unit: bool) -> str:
            trips = self.binary("sub", t, high, low, lanes)
            if not unit:
                trips = self.quotient(unsigned, self.binary("sub", t, trips, one, lanes), size, lanes)
                trips = self.binary("add", t, trips, one, lanes)
            some = self.compare("lt", t, low, high, lanes)
            return self.select(some, trips, self.const(0, t, lanes), t, lanes)

        if known is not None:
            low, high = (start, stop) if known > 0 else (stop, start)
            return count(low, high, self.const(abs(known), unsigned, lanes), abs(known) == 1)
        if not t.signed:
            return count(start, stop, step, False)
        up = self.compare("gt", t, step, self.const(0, t, lanes), lanes)
        size = self.unary("abs", t, step, lanes)  # abs(min), read as unsigned, is right
        return self.select(up, count(start, stop, size, False), count(stop, start, size, False), t, lanes)

    # -- comparison and choice -----------------------------------------------------------------------------
    def compare(self, code: str, t: Scalar, a: str, b: str, lanes: int = 1, hint: str = "v") -> str:
        if self._on_f32(t):
            return self.compare(code, F32, self.widen(t, a, lanes), self.widen(t, b, lanes), lanes, hint)
        word, ordered = _COMPARE[code]
        if t.is_float:
            return self.fn.value(f"fcmp {ordered} {self.type(t, lanes)} {a}, {b}", hint)
        sign = "" if word in ("eq", "ne") else "s" if t.signed else "u"
        return self.fn.value(f"icmp {sign}{word} {self.type(t, lanes)} {a}, {b}", hint)

    def select(self, cond: str, a: str, b: str, t: Scalar, lanes: int = 1, cond_lanes: int | None = None) -> str:
        ty, choice = self.type(t, lanes), vector("i1", lanes if cond_lanes is None else cond_lanes)
        return self.fn.value(f"select {choice} {cond}, {ty} {a}, {ty} {b}")

    def fma(self, t: Scalar, a: str, b: str, c: str, lanes: int = 1) -> str:
        if self._on_f32(t):
            x, y, z = (self.widen(t, v, lanes) for v in (a, b, c))
            return self.narrow(t, self.fma(F32, x, y, z, lanes), lanes)
        ty = self.type(t, lanes)
        return self.intrinsic(f"llvm.fma.{mangled(t, lanes)}", ty, [(ty, a), (ty, b), (ty, c)])

    # -- functions -----------------------------------------------------------------------------------------
    def math(self, fn: str, t: Scalar, args: list[str], lanes: int = 1) -> str:
        """The functions that ``lang.math.NATIVE`` leaves to targets; the predicates give a bool."""
        if self._on_f32(t):
            result = self.math(fn, F32, [self.widen(t, a, lanes) for a in args], lanes)
            return result if fn.startswith("is") else self.narrow(t, result, lanes)
        ty, name = self.type(t, lanes), mangled(t, lanes)
        if fn in _ROUNDING:
            return self.intrinsic(f"llvm.{_ROUNDING[fn]}.{name}", ty, [(ty, args[0])], fn)
        if fn in ("fmin", "fmax"):
            # llvm.minimumnum says this in one word, but LLVM 20 cannot select it on every target.
            both = self.binary(fn[1:], t, args[0], args[1], lanes)
            choice = vector("i1", lanes)
            for nan, other in ((args[0], args[1]), (args[1], args[0])):
                unordered = self.fn.value(f"fcmp uno {ty} {nan}, {nan}")
                both = self.fn.value(f"select {choice} {unordered}, {ty} {other}, {ty} {both}", fn)
            return both
        if fn == "copysign":
            return self.intrinsic(f"llvm.copysign.{name}", ty, [(ty, a) for a in args], fn)
        if fn == "isnan":
            return self.fn.value(f"fcmp uno {ty} {args[0]}, {args[0]}", fn)
        if fn in ("isinf", "isfinite"):
            size = self.unary("abs", t, args[0], lanes)
            code = "oeq" if fn == "isinf" else "olt"
            return self.fn.value(f"fcmp {code} {ty} {size}, {self.const(float('inf'), t, lanes)}", fn)
        raise NotImplementedError(f"math function {fn} must be expanded by passes/expand_math")

    # -- conversion ----------------------------------------------------------------------------------------
    def widen(self, t: Scalar, a: str, lanes: int = 1) -> str:
        """A float of 8 or 16 bits to f32, exactly."""
        if self.scalar(t) in ("half", "bfloat"):
            return self.fn.value(f"fpext {self.type(t, lanes)} {a} to {self.type(F32, lanes)}")
        return small.widen(self, t, a, lanes)

    def narrow(self, t: Scalar, a: str, lanes: int = 1) -> str:
        """An f32 to a float of 8 or 16 bits, to nearest even."""
        if self.scalar(t) in ("half", "bfloat"):
            return self.fn.value(f"fptrunc {self.type(F32, lanes)} {a} to {self.type(t, lanes)}")
        return small.narrow(self, t, a, lanes)

    def cast(self, src: Scalar, dst: Scalar, a: str, lanes: int = 1, hint: str = "v") -> str:
        if src == dst:
            return a
        if dst == BOOL:
            return self.compare("ne", src, a, self.const(0, src, lanes), lanes, hint)
        if self._on_f32(src):
            wide = self.widen(src, a, lanes)
            return wide if dst == F32 else self.cast(F32, dst, wide, lanes, hint)
        if self._on_f32(dst):
            return self.narrow(dst, self._to_f32(src, a, lanes), lanes)
        one, two = self.type(src, lanes), self.type(dst, lanes)
        if src.is_float and dst.is_float:
            return self.fn.value(f"{'fpext' if dst.bits > src.bits else 'fptrunc'} {one} {a} to {two}", hint)
        if src.is_float:
            name = f"llvm.fpto{'s' if dst.signed else 'u'}i.sat.{mangled(dst, lanes)}.{mangled(src, lanes)}"
            return self.intrinsic(name, two, [(one, a)], hint)
        if dst.is_float:
            return self.fn.value(f"{'sitofp' if src.signed else 'uitofp'} {one} {a} to {two}", hint)
        if src.bits == dst.bits:
            return a
        op = "trunc" if dst.bits < src.bits else "sext" if src.signed else "zext"
        return self.fn.value(f"{op} {one} {a} to {two}", hint)

    def _to_f32(self, src: Scalar, a: str, lanes: int) -> str:
        """To f32 on the way to a smaller float: what rounding drops stays visible in the last bit."""
        if src == F32:
            return a
        if src in (I64, U64):
            a = small.sticky(self, src, a, lanes)
        if src in (I32, U32, I64, U64):
            a, src = self.cast(src, F64, a, lanes), F64
        return small.round_to_odd(self, a, lanes) if src == F64 else self.cast(src, F32, a, lanes)

    def bitcast(self, src: Scalar, dst: Scalar, a: str, lanes: int = 1) -> str:
        one, two = self.type(src, lanes), self.type(dst, lanes)
        return a if one == two else self.fn.value(f"bitcast {one} {a} to {two}")

    # -- by table ------------------------------------------------------------------------------------------
    def emit(
        self, op_code: str, types: list[Scalar], result: Scalar, args: list[str], lanes: int, hint: str, fn: str = ""
    ) -> str:
        """Any pure operation whose operands all have ``lanes`` lanes (``select`` too)."""
        if op_code in ops.COMPARISON:
            return self.compare(op_code, types[0], args[0], args[1], lanes, hint)
        if op_code == "select":
            return self.select(args[0], args[1], args[2], result, lanes)
        if op_code == "cast":
            return self.cast(types[0], result, args[0], lanes, hint)
        if op_code == "bitcast":
            return self.bitcast(types[0], result, args[0], lanes)
        if op_code == "math":
            return self.math(fn, types[0], args, lanes)
        if op_code == "fma":
            return self.fma(result, args[0], args[1], args[2], lanes)
        if len(args) == 1:
            return self.unary(op_code, result, args[0], lanes, hint)
        return self.binary(op_code, result, args[0], args[1], lanes, hint)

