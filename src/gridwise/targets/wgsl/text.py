"""Pieces of WGSL text: expressions with just enough parentheses, literals, and how each IR type is held.

Values are held in registers as

    bool                    bool
    i8 i16 i32              i32, sign-extended          f16 bf16 f32    f32, rounded to the type after each operation
    u8 u16 u32, fp8 bits    u32, zero-extended          f64             f64 (naga only)
    i64 u64                 vec2<u32>, low word first
"""

from __future__ import annotations

import math
import struct

import numpy as np

from gridwise.ir.types import BF16, BOOL, F16, F32, F64, STORAGE_ONLY, Scalar

ZERO = "args.zero"  # a member of the launch block that is always 0, so that drivers cannot fold what it is mixed with


class Expr(str):
    """WGSL text of a value. ``atom``: it needs no parentheses as an operand."""

    atom: bool

    def __new__(cls, text: str, atom: bool = False) -> Expr:
        self = super().__new__(cls, text)
        self.atom = atom
        return self

    @property
    def operand(self) -> str:
        return str(self) if self.atom else f"({self})"


def atom(text: str) -> Expr:
    return Expr(text, True)


def call(name: str, *args: str) -> Expr:
    # A `<` in one argument and a `>` in a later one would be read as a template list.
    shown = [a.operand if isinstance(a, Expr) and " < " in a else a for a in args]
    return Expr(f"{name}({', '.join(shown)})", True)


def infix(op: str, a: Expr, b: Expr) -> Expr:
    return Expr(f"{a.operand} {op} {b.operand}")


def is_wide(t: Scalar) -> bool:
    """Whether the type is held as a pair of words."""
    return t.is_int and t.bits == 64


def is_small(t: Scalar) -> bool:
    """Whether a value must be wrapped or rounded back to its type after arithmetic."""
    return t.bits < 32 and t != BOOL


def held(t: Scalar) -> str:
    """The WGSL type that holds a value of ``t``."""
    if t == BOOL:
        return "bool"
    if is_wide(t):
        return "vec2<u32>"
    if t in STORAGE_ONLY:
        return "u32"
    if t == F64:
        return "f64"
    return "f32" if t.is_float else "i32" if t.signed else "u32"


def bits_of(value: float, t: Scalar) -> int:
    """The bit pattern of a float constant rounded to ``t``."""
    with np.errstate(over="ignore"):
        raw = np.asarray(value, np.float64).astype(t.dtype).tobytes()
    return int.from_bytes(raw, "little")


def u32(value: int) -> Expr:
    return atom(f"{value & 0xFFFFFFFF}u")


def literal(value: bool | int | float, t: Scalar) -> Expr:
    """A constant. Infinities and NaN are made at run time: WGSL refuses them as constants, and drivers fold them."""
    if t == BOOL:
        return atom("true" if value else "false")
    if t in STORAGE_ONLY:
        return u32(bits_of(float(value), t))
    if is_wide(t):
        word = int(value) & 0xFFFFFFFFFFFFFFFF
        return call("vec2<u32>", u32(word), u32(word >> 32))
    if t.is_int:
        if t.signed:
            n = int(value)
            return atom(f"{n}i") if n >= 0 else atom("i32(-2147483648)") if n == -(2**31) else Expr(f"{n}i")
        return u32(int(value))
    if t == F64:
        return _double(float(value))
    if t in (F16, BF16):
        value = float(np.asarray(float(value)).astype(t.dtype).astype(np.float32))
    return _single(float(value))


def _single(value: float) -> Expr:
    with np.errstate(over="ignore"):
        x = np.float32(value)
    bits = bits_of(value, F32)
    subnormal = bits & 0x7F800000 == 0 and bits & 0x7FFFFFFF != 0
    if not np.isfinite(x) or subnormal or bits == 0x80000000:  # drivers may flush a subnormal, or lose a zero's sign
        return call("bitcast<f32>", f"0x{bits:08x}u | {ZERO}")
    text = np.format_float_positional(x, unique=True, trim="0") if 1e-4 <= abs(x) < 1e7 or x == 0 else f"{x!s}"
    if np.float32(float(text)) != x or abs(float(text) - float(x)) > np.spacing(x) / 4:
        text = f"{float(x):.9e}"  # far from the middle of two floats, so that any way of reading it agrees
    return Expr(text + "f", not text.startswith("-"))


def _double(value: float) -> Expr:
    low, high = struct.unpack("<II", struct.pack("<d", value))
    if not math.isfinite(value) or (high & 0x7FF00000 == 0 and (value != 0 or high)):
        return call("gw_f64", f"vec2<u32>({low}u | {ZERO}, 0x{high:08x}u)")
    return Expr(f"{value!r}lf", math.copysign(1, value) > 0)


RESERVED = frozenset(
    "alias break case const const_assert continue continuing default diagnostic discard else enable false fn for if "
    "let loop override requires return struct switch true var while array atomic bool f16 f32 f64 i32 i64 u32 u64 "
    "mat2x2 mat3x3 mat4x4 ptr sampler texture vec2 vec3 vec4 vec2f vec2i vec2u vec3f vec3i vec3u vec4f vec4i vec4u "
    "NULL Self abstract active alignas alignof as asm asm_fragment async attribute auto await become binding_array "
    "cast catch class co_await co_return co_yield coherent column_major common compile compile_fragment concept "
    "const_cast consteval constexpr constinit crate debugger decltype delete demote demote_to_helper do dynamic_cast "
    "enum explicit export extends extern external fallthrough filter final finally friend from fxgroup get goto "
    "groupshared highp impl implements import inline instanceof interface layout lowp macro macro_rules match "
    "mediump meta mod module move mut mutable namespace new nil noexcept noinline nointerpolation non_coherent "
    "noncoherent noperspective null nullptr of operator package packoffset partition pass patch pixelfragment "
    "precise precision premerge priv protected pub public readonly ref regardless register reinterpret_cast require "
    "resource restrict self set shared sizeof smooth snorm static static_assert static_cast std subroutine super "
    "target template this thread_local throw trait try type typedef typeid typename typeof union unless unorm "
    "unsafe unsized use using varying virtual volatile wgsl where with writeonly yield args faults prints Launch main "
    # Builtin functions: shadowing one is legal, but it would hide it from the rest of the shader.
    "abs acos all any asin atan bitcast ceil clamp cos cross distance dot exp exp2 extractBits firstLeadingBit "
    "floor fma fract insertBits length log log2 max min mix modf normalize pow reverseBits round select sign sin "
    "sinh smoothstep sqrt step tan tanh transpose trunc countOneBits countLeadingZeros countTrailingZeros "
    "arrayLength workgroupBarrier storageBarrier atomicLoad atomicStore atomicAdd".split()
)


class Names:
    """Names that are free in the shader, as near to the wanted ones as WGSL allows."""

    def __init__(self) -> None:
        self.taken: set[str] = set()

    def __call__(self, wanted: str) -> str:
        base = "".join(c if c.isascii() and (c.isalnum() or c == "_") else "_" for c in wanted).strip("_") or "t"
        base = base if base[0].isalpha() else f"t{base}"
        if base in RESERVED or base.startswith("gw_"):
            base += "_v"
        name, n = base, 1
        while name in self.taken:
            n += 1
            name = f"{base}_{n}"
        self.taken.add(name)
        return name
