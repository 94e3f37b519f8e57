"""Every scalar operation on the edge values of every type, against exact arithmetic."""

from __future__ import annotations

import itertools
import math

import exact
import numpy as np
import pytest
from edges import column, floats, integers
from hypothesis import given, settings
from hypothesis import strategies as st
from running import evaluate, same

from gridwise.devices.check import CheckDevice
from gridwise.ir.ops import COMPARISON
from gridwise.ir.types import BF16, BOOL, F16, F32, F64, FLOATS, I32, INTEGERS, U32, Scalar
from gridwise.lang.errors import DeviceZeroDivisionError


def pairs(values: list) -> tuple[list, list]:
    both = list(itertools.product(values, values))
    return [a for a, _ in both], [b for _, b in both]


def binary(code: str, t: Scalar, a: list, b: list) -> np.ndarray:
    result = BOOL if code in COMPARISON else t
    device = CheckDevice(sanitize=False)
    try:
        return evaluate(lambda k, x, y: k.binary(code, x, y), (t, t), (column(a, t), column(b, t)), result, device)
    except DeviceZeroDivisionError:
        raise AssertionError("divide by zero in the operands") from None


INT_BINARY = "add sub mul min max and or xor shl shr".split()


@pytest.mark.parametrize("t", INTEGERS, ids=str)
@pytest.mark.parametrize("code", INT_BINARY)
def test_integer_operation(code: str, t: Scalar) -> None:
    a, b = pairs(integers(t))
    for x, y, r in zip(a, b, binary(code, t, a, b).tolist()):
        assert r == exact.integer(code, x, y, t), (x, code, y)


@pytest.mark.parametrize("t", INTEGERS, ids=str)
@pytest.mark.parametrize("code", ["floordiv", "mod"])
def test_integer_division(code: str, t: Scalar) -> None:
    a, b = pairs(integers(t))
    kept = [(x, y) for x, y in zip(a, b) if y != 0]
    a, b = [x for x, _ in kept], [y for _, y in kept]
    for x, y, r in zip(a, b, binary(code, t, a, b).tolist()):
        assert r == exact.integer(code, x, y, t), (x, code, y)


@pytest.mark.parametrize("t", INTEGERS, ids=str)
@pytest.mark.parametrize("code", "neg abs not popcount clz ctz".split())
def test_integer_unary(code: str, t: Scalar) -> None:
    a = integers(t)
    result = evaluate(lambda k, x: k.unary(code, x), (t,), (column(a, t),), t)
    assert result.tolist() == [exact.integer(code, x, 0, t) for x in a]


@pytest.mark.parametrize("t", [*INTEGERS, *FLOATS], ids=str)
@pytest.mark.parametrize("code", sorted(COMPARISON))
def test_comparison(code: str, t: Scalar) -> None:
    a, b = pairs(integers(t) if t.is_int else floats(t))
    python = {"eq": "__eq__", "ne": "__ne__", "lt": "__lt__", "le": "__le__", "gt": "__gt__", "ge": "__ge__"}[code]
    assert binary(code, t, a, b).tolist() == [getattr(x, python)(y) for x, y in zip(a, b)]


@pytest.mark.parametrize("code", ["and", "or", "xor"])
def test_bool_operation(code: str) -> None:
    a, b = pairs([False, True])
    result = evaluate(lambda k, x, y: k.binary(code, x, y), (BOOL, BOOL), (np.array(a), np.array(b)), BOOL)
    python = {"and": lambda x, y: x and y, "or": lambda x, y: x or y, "xor": lambda x, y: x != y}[code]
    assert result.tolist() == [python(x, y) for x, y in zip(a, b)]


def test_bool_not() -> None:
    assert evaluate(lambda k, x: k.unary("not", x), (BOOL,), (np.array([False, True]),), BOOL).tolist() == [True, False]


FLOAT_BINARY = {
    "add": exact.add,
    "sub": lambda a, b, t: exact.add(a, -b, t),
    "mul": exact.mul,
    "div": exact.div,
    "min": lambda a, b, t: exact.minimum(a, b),
    "max": lambda a, b, t: exact.maximum(a, b),
}


@pytest.mark.parametrize("t", FLOATS, ids=str)
@pytest.mark.parametrize("code", list(FLOAT_BINARY))
def test_float_operation(code: str, t: Scalar) -> None:
    a, b = pairs(floats(t))
    for x, y, r in zip(a, b, binary(code, t, a, b)):
        assert same(r, FLOAT_BINARY[code](x, y, t)), (x, code, y, r)


@pytest.mark.parametrize("t", FLOATS, ids=str)
@pytest.mark.parametrize("code", ["floordiv", "mod"])
def test_float_division(code: str, t: Scalar) -> None:
    """Python's // and %; a quotient too long for the type may be off in its last bit, as Python's own is."""
    a, b = pairs(floats(t))
    precision = exact.FORMATS[t][0]
    for x, y, r in zip(a, b, binary(code, t, a, b)):
        want = getattr(exact, code)(x, y, t)
        long = math.isfinite(want) and code == "floordiv" and abs(want) >= 2.0**precision
        close = long and abs(float(r) - want) <= abs(want) * 2.0 ** (1 - precision)
        assert close or same(r, want) or (math.isinf(want) and abs(float(r)) >= 2.0**precision), (x, code, y, r, want)


@pytest.mark.parametrize("t", FLOATS, ids=str)
def test_float_signs(t: Scalar) -> None:
    a = floats(t)
    for code, f in (("neg", lambda x: -x), ("abs", abs)):
        result = evaluate(lambda k, x, code=code: k.unary(code, x), (t,), (column(a, t),), t)
        for x, r in zip(a, result):
            assert same(r, f(x)), (code, x)
    negated = evaluate(lambda k, x: k.unary("neg", x), (t,), (column([math.nan], t),), t)
    assert np.signbit(negated[0]) != np.signbit(column([math.nan], t)[0])


@pytest.mark.parametrize("t", FLOATS, ids=str)
def test_fma_edges(t: Scalar) -> None:
    values = floats(t)
    picked = [values[n] for n in range(0, len(values), 2)] + [math.nan, -1.0, -0.0, -values[20]]
    rows = list(itertools.product(picked, picked, picked))
    columns = [column([r[n] for r in rows], t) for n in range(3)]
    got = evaluate(lambda k, x, y, z: k.value("fma", (x, y, z), t), (t, t, t), columns, t)
    for row, r in zip(rows, got):
        assert same(r, exact.fma(*row, t)), (row, r)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(*[st.floats(width=64)] * 3), min_size=8, max_size=64))
def test_fma_rounds_once(rows: list[tuple[float, float, float]]) -> None:
    for t in (F64, F32, F16, BF16):
        with np.errstate(all="ignore"):
            columns = [np.array([r[n] for r in rows]).astype(t.dtype) for n in range(3)]
        got = evaluate(lambda k, x, y, z, t=t: k.value("fma", (x, y, z), t), (t, t, t), columns, t)
        for x, y, z, r in zip(*columns, got):
            assert same(r, exact.fma(float(x), float(y), float(z), t)), (t, x, y, z, r)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 2**64 - 1), st.integers(0, 2**64 - 1)), min_size=8, max_size=64))
def test_float_operations_on_random_bits(rows: list[tuple[int, int]]) -> None:
    for t in FLOATS:
        words = [np.array([r[n] % (1 << t.bits) for r in rows], f"u{t.size}").view(t.dtype) for n in range(2)]
        for code, f in FLOAT_BINARY.items():
            got = evaluate(lambda k, x, y, code=code: k.binary(code, x, y), (t, t), words, t)
            for x, y, r in zip(*words, got):
                assert same(r, f(float(x), float(y), t)), (t, x, code, y, r)


def test_select() -> None:
    c, a, b = np.array([True, False, True]), np.array([1, 2, 3], np.int32), np.array([4, 5, 6], np.int32)
    assert evaluate(lambda k, c, x, y: k.select(c, x, y), (BOOL, I32, I32), (c, a, b), I32).tolist() == [1, 5, 3]


@pytest.mark.parametrize("t", [*INTEGERS, *FLOATS, BOOL], ids=str)
def test_constants(t: Scalar) -> None:
    for value in [True, False] if t == BOOL else integers(t) if t.is_int else floats(t):
        got = evaluate(lambda k, x, value=value: k.const(value, t), (U32,), (np.zeros(1, np.uint32),), t)
        assert same(got[0], value) if t.is_float else int(got[0]) == int(value)
