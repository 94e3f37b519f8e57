"""cast and bitcast between every pair of types, against exact arithmetic."""

from __future__ import annotations

import math
import struct
from fractions import Fraction

import exact
import numpy as np
import pytest
from edges import column, floats, integers
from hypothesis import given, settings
from hypothesis import strategies as st
from running import evaluate, same

from gridwise.ir.types import BF16, BOOL, F16, F32, F64, FLOATS, I32, I64, INTEGERS, U8, U32, U64, Scalar

NUMBERS = (*INTEGERS, *FLOATS)


def samples(of: Scalar, to: Scalar) -> list:
    """Edge values of the source, and those around the edges of the destination."""
    if of.is_int:
        values = set(integers(of))
        if to.is_int:
            values |= {v for e in (to.min, to.max) for v in (e - 1, e, e + 1) if of.min <= v <= of.max}
        else:
            p = exact.FORMATS[to][0]
            odd = {s * ((1 << n) + d) for n in range(p - 1, 64) for d in (-1, 0, 1) for s in (1, -1)}
            odd |= {(1 << n) + (1 << (n - p)) + d for n in range(p, 63) for d in (-1, 0, 1)}
            values |= {v for v in odd if of.min <= v <= of.max}
        return sorted(values)
    values_f = floats(of)
    if to.is_int:
        near = [float(e + d) for e in (to.min, to.max) for d in (-1, 0, 1)] + [0.99, -0.99, 1e6, 3e9, -3e9, 1e19, 2e19]
        values_f += [exact.round_to(Fraction(v), of, v) for v in near]
    else:
        values_f += [exact.round_to(Fraction(v), of, v) for v in floats(to) if math.isfinite(v)]
    return values_f


def expected(x: float | int, of: Scalar, to: Scalar) -> float | int | bool:
    if to == BOOL:
        return x != 0
    if of.is_int and to.is_int:
        return exact.wrap(int(x), to)
    if to.is_int:
        return exact.to_int(float(x), to)
    if of.is_float and not math.isfinite(x):
        return x
    return exact.round_to(Fraction(x), to, float(x) if x == 0 else 0.0)


@pytest.mark.parametrize("to", [*NUMBERS, BOOL], ids=str)
@pytest.mark.parametrize("of", NUMBERS, ids=str)
def test_cast(of: Scalar, to: Scalar) -> None:
    values = samples(of, to if to != BOOL else U8)
    got = evaluate(lambda k, x: k.cast(x, to), (of,), (column(values, of),), to)
    for x, r in zip(values, got):
        want = expected(x, of, to)
        assert same(r, want) if to.is_float else r.item() == want, (x, r, want)


@pytest.mark.parametrize("to", NUMBERS, ids=str)
def test_cast_from_bool(to: Scalar) -> None:
    got = evaluate(lambda k, x: k.cast(x, to), (BOOL,), (np.array([False, True]),), to)
    assert [float(v) for v in got] == [0.0, 1.0]


@settings(max_examples=200, deadline=None)
@given(st.lists(st.floats(width=64), min_size=16, max_size=64))
def test_f64_rounds_once(values: list[float]) -> None:
    # Values just beside the midpoints of bf16: rounding by way of f32 would get these wrong.
    beside = [1.0 + 2.0**-8 + 2.0**-40, 1.0 + 2.0**-8 - 2.0**-40, 1.0 + 3 * 2.0**-8 + 2.0**-33]
    host = np.array([*values, *beside])
    for to in (F32, F16, BF16):
        got = evaluate(lambda k, x, to=to: k.cast(x, to), (F64,), (host,), to)
        for x, r in zip(host.tolist(), got):
            assert same(r, expected(x, F64, to)), (x, to, r)


def test_narrow_floats_of_storage() -> None:
    """fp8: every value survives a round trip through f32."""
    from gridwise.ir.types import F8E4M3, F8E5M2

    for t in (F8E4M3, F8E5M2):
        host = np.arange(256, dtype=np.uint8).view(t.dtype)
        wide = evaluate(lambda k, x: k.cast(x, F32), (t,), (host,), F32)
        back = evaluate(lambda k, x, t=t: k.cast(x, t), (F32,), (wide,), t)
        assert all(same(a, b) for a, b in zip(host, back))
    for t, bits, largest in ((F8E4M3, 0x7E, 448), (F8E5M2, 0x7B, 57344)):
        host = np.array([bits], np.uint8).view(t.dtype)
        assert evaluate(lambda k, x: k.cast(x, F32), (t,), (host,), F32) == [largest]


@pytest.mark.parametrize(
    ("of", "to", "pack", "unpack"),
    [(F32, U32, "f", "I"), (F32, I32, "f", "i"), (U32, F32, "I", "f"), (F64, U64, "d", "Q"), (I64, F64, "q", "d"),
     (F16, exact.Scalar("u16", "uint", 16), "e", "H"), (I32, U32, "i", "I"), (U64, I64, "Q", "q")],
    ids=str,
)  # fmt: skip
def test_bitcast(of: Scalar, to: Scalar, pack: str, unpack: str) -> None:
    values = [v for v in (integers(of) if of.is_int else floats(of)) if v == v]
    got = evaluate(lambda k, x: k.bitcast(x, to), (of,), (column(values, of),), to)
    for x, r in zip(values, got):
        (want,) = struct.unpack(unpack, struct.pack(pack, x))
        assert same(r, want) if to.is_float else int(r) == want
