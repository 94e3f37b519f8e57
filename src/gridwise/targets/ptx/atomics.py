"""Atomic operations with the order and scope that the program asks for.

LLVM's NVPTX back end drops the order and scope of ``atomicrmw``, and before LLVM 21 those of ``cmpxchg`` too (it writes
a relaxed ``atom`` at device scope), but keeps those of ``fence``. So every read-modify-write here is relaxed, between
fences of its scope where it is ordered: that is how the PTX memory model builds release and acquire.
"""

from __future__ import annotations

from gridwise.ir.types import F32, F64, U32, U64, Scalar
from gridwise.targets.llvm.arith import Arith

_RMW = {"add": "add", "sub": "sub", "and": "and", "or": "or", "xor": "xor", "exchange": "xchg"}
SCOPES = {"block": "block", "device": "device"}


def _fence(arith: Arith, scope: str, order: str) -> None:
    arith.fn.do(f'fence syncscope("{SCOPES[scope]}") {order}')


def atomic(
    arith: Arith, fn: str, t: Scalar, pointer: tuple[str, str], values: list[str], order: str, scope: str
) -> str:
    """One atomic on ``pointer`` (type, operand); returns the old value.

    ``t``: i32 u32 i64 u64 f32 f64. ``values``: the operand, or expected and desired.
    """
    if order in ("release", "acq_rel"):
        _fence(arith, scope, "release")
    if fn == "add" and order in ("relaxed", "acquire") and not t.is_float and arith.literal(values[0]) == 0:
        old = _read(arith, t, pointer, scope)
    elif fn == "compare_exchange":
        old = _compare_exchange(arith, t, pointer, values, scope)
    elif t.is_float and fn in ("min", "max"):
        old = _float_extreme(arith, fn, t, pointer, values[0], order, scope)
    else:
        old = _rmw(arith, fn, t, pointer, values[0], scope)
    if order in ("acquire", "acq_rel"):
        _fence(arith, scope, "acquire")
    return old


def _read(arith: Arith, t: Scalar, pointer: tuple[str, str], scope: str) -> str:
    """Adding 0 without release changes nothing that another thread can see: a load, of which many go at once."""
    kind, at = pointer
    return arith.fn.value(
        f'load atomic {arith.type(t)}, {kind} {at} syncscope("{SCOPES[scope]}") monotonic, align {t.size}'
    )


def _rmw(arith: Arith, fn: str, t: Scalar, pointer: tuple[str, str], value: str, scope: str) -> str:
    kind, at = pointer
    word = t
    if t.is_float and fn == "exchange":  # bits travel, whatever they mean
        word = U32 if t == F32 else U64
        value = arith.bitcast(t, word, value)
    if fn in ("min", "max"):
        op = fn if t.signed else f"u{fn}"
    elif word.is_float:
        op = f"f{fn}"
    else:
        op = _RMW[fn]
    if op == "fsub":  # the hardware adds
        op, value = "fadd", arith.unary("neg", t, value)
    old = arith.fn.value(
        f'atomicrmw {op} {kind} {at}, {arith.type(word)} {value} syncscope("{SCOPES[scope]}") monotonic'
    )
    return arith.bitcast(word, t, old)


def _compare_exchange(arith: Arith, t: Scalar, pointer: tuple[str, str], values: list[str], scope: str) -> str:
    kind, at = pointer
    word = (U32 if t == F32 else U64) if t.is_float else t
    expected, desired = (arith.bitcast(t, word, v) for v in values)
    ty = arith.type(word)
    pair = arith.fn.value(
        f"cmpxchg {kind} {at}, {ty} {expected}, {ty} {desired} "
        f'syncscope("{SCOPES[scope]}") monotonic monotonic'
    )
    return arith.bitcast(word, t, arith.fn.value(f"extractvalue {{ {ty}, i1 }} {pair}, 0"))


def _float_extreme(
    arith: Arith, fn: str, t: Scalar, pointer: tuple[str, str], value: str, order: str, scope: str
) -> str:
    """Minimum and maximum of floats by compare and swap, on their bits. NaN is ignored, -0.0 is below 0.0."""
    assert t in (F32, F64)
    f, (kind, at) = arith.fn, pointer
    word = U32 if t == F32 else U64
    wt = arith.type(word)
    sync = f'syncscope("{SCOPES[scope]}")'
    slot = f.alloca(wt, "seen")
    first = f.value(f"load atomic {wt}, {kind} {at} {sync} monotonic, align {t.size}")
    f.do(f"store {wt} {first}, ptr {slot}")
    loop, swap, done = f.label("extreme"), f.label("swap"), f.label("extreme_done")
    f.block(loop)
    seen = f.value(f"load {wt}, ptr {slot}")
    old = arith.bitcast(word, t, seen)
    best = arith.bitcast(t, word, arith.math(f"f{fn}", t, [old, value]))
    if order in ("relaxed", "acquire"):  # nothing to change, and no write that others must see: done
        f.branch(f.value(f"icmp eq {wt} {best}, {seen}"), done, swap)
        f.block(swap)
    pair = f.value(f"cmpxchg {kind} {at}, {wt} {seen}, {wt} {best} {sync} monotonic monotonic")
    now = f.value(f"extractvalue {{ {wt}, i1 }} {pair}, 0")
    f.do(f"store {wt} {now}, ptr {slot}")
    f.branch(f.value(f"extractvalue {{ {wt}, i1 }} {pair}, 1"), done, loop)
    f.block(done)
    return arith.bitcast(word, t, f.value(f"load {wt}, ptr {slot}"))
