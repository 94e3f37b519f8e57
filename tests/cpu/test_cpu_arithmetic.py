"""Every scalar operation on the edge values of every type, as vectors and as scalars, against the check device."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest
from both import Sketch, agree, on_cpu
from edges import column, floats, integers
from exact import round_to

from gridwise.ir import Kernel, Value
from gridwise.ir.ops import COMPARISON
from gridwise.ir.types import BF16, BOOL, F32, F64, FLOATS, I32, I64, INTEGERS, STORAGE_ONLY, U32, Scalar
from gridwise.lang.math import NATIVE

RNG = np.random.default_rng(2)
FORMS = ["vector", "scalar"]


def values(t: Scalar, extra: int = 0) -> np.ndarray:
    """The edges of a type, and some random bits."""
    if t == BOOL:
        return np.array([False, True])
    if t.bits == 8 and t.is_float:
        return np.arange(256, dtype=np.uint8).view(t.dtype)
    edges = column(integers(t) if t.is_int else floats(t), t)
    noise = RNG.integers(0, 256, extra * t.size, np.uint8).view(edges.dtype)
    return np.concatenate([edges, noise])


def pairs(t: Scalar) -> tuple[np.ndarray, np.ndarray]:
    v = values(t, 8)
    a, b = zip(*itertools.product(range(len(v)), repeat=2))
    return v[list(a)], v[list(b)]


def kernel(types: list[Scalar], results: list[Scalar], build, form: str) -> Kernel:
    """``build(b, *operands)`` gives one value for each result, stored to an array each.

    Vector: a thread an element. Scalar: one thread walks all elements, so that every index is uniform.
    """
    s = Sketch((64, 1, 1) if form == "vector" else (1, 1, 1))
    inputs = [s.array(f"x{n}", t, "read") for n, t in enumerate(types)]
    outputs = [s.array(f"out{n}", t) for n, t in enumerate(results)]
    b, size = s.b, s.b.dim(outputs[0], 0)
    if form == "vector":
        i = b.identity("global_idx", 0)
        region = b.if_(b.binary("lt", i, size)).regions[0]
    else:
        region = b.for_(b.const(0, I32), size, b.const(1, I32)).regions[0]
        i = region.args[0]
    with b.into(region):
        made = build(b, *(b.load(a, [i], check="proved") for a in inputs))
        for out, v in zip(outputs, made):
            b.store(out, [i], v, check="proved")
    return s.kernel()


def check(types: list[Scalar], results: list[Scalar], build, columns: list[np.ndarray], form: str) -> None:
    if form == "scalar":  # one thread walks them all, slowly on the check device: a sample
        keep = RNG.permutation(len(columns[0]))[:400]
        columns = [c[keep] for c in columns]
    n = len(columns[0])
    outputs = [np.zeros(n, t.dtype) for t in results]
    agree(kernel(types, results, build, form), -(-n // 64) if form == "vector" else 1, [*columns, *outputs])


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("t", [*INTEGERS, BOOL], ids=str)
def test_integers(t: Scalar, form: str) -> None:
    binary = "and or xor".split() if t == BOOL else "add sub mul min max and or xor shl shr floordiv mod".split()
    unary = ["not"] if t == BOOL else "neg abs not popcount clz ctz".split()
    compared = ["eq", "ne"] if t == BOOL else sorted(COMPARISON)

    def build(b, x: Value, y: Value) -> list[Value]:
        out = []
        for code in binary:
            if code in ("floordiv", "mod"):
                zero = b.binary("eq", y, b.const(0, t))
                y = b.select(zero, b.const(1, t), y)
            out.append(b.binary(code, x, y))
        out += [b.unary(code, x) for code in unary]
        out += [b.binary(code, x, y) for code in compared]
        return [*out, b.select(b.binary("eq", x, y), x, y)]

    results = [t] * (len(binary) + len(unary)) + [BOOL] * len(compared) + [t]
    a, c = pairs(t)
    check([t, t], results, build, [a, c], form)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("t", [t for t in INTEGERS if t.signed or t == U32], ids=str)
def test_constant_divisors_and_shifts(t: Scalar, form: str) -> None:
    divisors = [1, 2, 3, 7, 16, 64, t.max] + ([-1, -2, -5, t.min] if t.signed else [])
    counts = [0, 1, t.bits - 1, t.bits, t.max]

    def build(b, x: Value) -> list[Value]:
        out = [b.binary(code, x, b.const(d, t)) for d in divisors for code in ("floordiv", "mod")]
        return out + [b.binary(code, x, b.const(n, t)) for n in counts for code in ("shl", "shr")]

    check([t], [t] * (2 * len(divisors) + 2 * len(counts)), build, [values(t, 64)], form)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("t", FLOATS, ids=str)
def test_floats(t: Scalar, form: str) -> None:
    binary = "add sub mul div min max".split()
    maths = sorted(NATIVE)
    two = ("copysign", "fmin", "fmax")

    def build(b, x: Value, y: Value) -> list[Value]:
        out = [b.binary(code, x, y) for code in binary] + [b.unary(code, x) for code in ("neg", "abs")]
        out += [b.math(fn, [x, y] if fn in two else [x], BOOL if fn.startswith("is") else t) for fn in maths]
        return out + [b.binary(code, x, y) for code in sorted(COMPARISON)]

    results = [t] * 8 + [BOOL if fn.startswith("is") else t for fn in maths] + [BOOL] * len(COMPARISON)
    a, c = pairs(t)
    check([t, t], results, build, [a, c], form)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("source", [BOOL, *INTEGERS, *FLOATS, *STORAGE_ONLY], ids=str)
def test_casts(source: Scalar, form: str) -> None:
    targets = [BOOL, *INTEGERS, *FLOATS, *STORAGE_ONLY]
    small = [t for t in targets if t.is_float and t.bits < 32]
    # ml_dtypes, which the check device uses, rounds twice on the way from 64 bits: those are compared below.
    if source.bits == 64 or source in (I32, U32):
        targets = [t for t in targets if t not in small]
    with np.errstate(all="ignore"):
        column = values(source, 200) if source != BOOL else values(source)
    check([source], targets, lambda b, x: [b.cast(x, t) for t in targets], [column], form)


@pytest.mark.parametrize("form", FORMS)
def test_bitcasts(form: str) -> None:
    check([F32], [I32, U32], lambda b, x: [b.bitcast(x, I32), b.bitcast(x, U32)], [values(F32, 50)], form)
    check([I32], [F32], lambda b, x: [b.bitcast(x, F32)], [RNG.integers(0, 1 << 30, 50, np.int32)], form)


@pytest.mark.parametrize("source", [I64, I32, F32], ids=str)
def test_one_rounding_to_small_floats(source: Scalar) -> None:
    """Values just beside the middle of two bf16 numbers, closer than an f32 (or f64) can tell."""
    if source.is_int:
        top = source.bits - 2
        raw = [(1 << top) + (1 << (top - 8)) + d for d in (-1, 0, 1)]
        raw += [-x for x in raw]
        t, column = source, np.array(raw, source.dtype)
    else:
        raw = [1.0 + 2.0**-8 + d for d in (-(2.0**-40), 0.0, 2.0**-40)]
        t, column = F64, np.array(raw, np.float64)
    want = np.array([round_to(Fraction(x), BF16) for x in raw])
    for form in FORMS:
        out = np.zeros(len(raw), BF16.dtype)
        on_cpu(kernel([t], [BF16], lambda b, x: [b.cast(x, BF16)], form), 1, [column, out])
        np.testing.assert_array_equal(out.astype(np.float64), want)
