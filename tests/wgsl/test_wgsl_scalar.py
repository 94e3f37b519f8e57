"""Every scalar operation and conversion on the edges of every type: the same bits as the check device."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from wgsl_kernels import Make, table

from gridwise.devices.webgpu import WebGpuDevice
from gridwise.ir.ops import COMPARISON
from gridwise.ir.types import (
    BF16,
    BOOL,
    F8E4M3,
    F8E5M2,
    F16,
    F32,
    F64,
    FLOATS,
    I8,
    I32,
    I64,
    INTEGERS,
    U8,
    U32,
    U64,
    Scalar,
)
from gridwise.lang.target import Cap
from gridwise.targets.wgsl.dialect import Numerics

RNG = np.random.default_rng(7)


def integers(t: Scalar) -> list[int]:
    edges = {0, 1, 2, 3, 7, 10, t.bits - 1, t.bits, t.bits + 1, t.max, t.max - 1, t.max // 2, t.max // 2 + 1, t.min}
    edges |= {t.wrap(0x5555_5555_5555_5555), t.wrap(0x9E37_79B9_7F4A_7C15), t.wrap(1 << 32), t.wrap((1 << 32) - 1)}
    if t.signed:
        edges |= {-1, -2, -3, -7, -10, t.min + 1, -t.bits, t.wrap(-(1 << 32))}
    return sorted(edges)


def random_bits(t: Scalar, n: int) -> np.ndarray:
    return RNG.integers(0, 256, n * t.size, dtype=np.uint8).view(t.dtype)


def floats(t: Scalar) -> np.ndarray:
    """Edges with and without sign: zeros, subnormals, halves, the largest, infinities, NaN, and random bits."""
    half = [0.0, 1.0, 1.5, 2.0, 3.0, 7.0, 0.5, 2.5, 1 / 3, 0.1, 100.0, 127.5, 255.5, 32767.5, 65504.0, 65520.0, 1e5]
    half += [2.0**31 - 1, 2.0**31, 2.0**32, 2.0**53, 2.0**63, 2.0**64, 1e-3, 1e-7, 6e-8, 1e-40, 1e30, 3e38, 1e300]
    half += [np.inf, np.nan]
    with np.errstate(over="ignore"):
        values = np.array([s * x for x in half for s in (1.0, -1.0)]).astype(t.dtype)
    return np.concatenate([values, random_bits(t, 30)])


def pairs(values: np.ndarray) -> list[np.ndarray]:
    both = list(itertools.product(range(len(values)), repeat=2))
    return [values[[a for a, _ in both]], values[[b for _, b in both]]]


def column(t: Scalar) -> np.ndarray:
    if t == BOOL:
        return np.array([False, True])
    if t.is_float:
        return floats(t)
    return np.concatenate([np.array(integers(t), t.dtype), random_bits(t, 12)])


def binary(code: str) -> Make:
    return lambda b, v: b.binary(code, v[0], v[1])


def unary(code: str) -> Make:
    return lambda b, v: b.unary(code, v[0])


def function(fn: str) -> Make:
    return lambda b, v: b.math(fn, list(v))


def needs(gpu: WebGpuDevice, *types: Scalar) -> None:
    if F64 in types and Cap.F64 not in gpu.caps:
        pytest.skip("this driver has no 64-bit floats; the refusal is tested elsewhere")


@pytest.mark.parametrize("t", INTEGERS, ids=str)
def test_integer_operations(gpu: WebGpuDevice, t: Scalar) -> None:
    makes = {code: binary(code) for code in "add sub mul min max and or xor shl shr".split()}
    makes |= {code: unary(code) for code in "neg abs not popcount clz ctz".split()}
    table(gpu, (t, t), t, makes, pairs(column(t)))


@pytest.mark.parametrize("t", INTEGERS, ids=str)
def test_integer_division(gpu: WebGpuDevice, t: Scalar) -> None:
    def proved(code: str) -> Make:
        return lambda b, v: b.value(code, (v[0], v[1]), t, check="proved")

    a, b = pairs(column(t))
    table(gpu, (t, t), t, {c: proved(c) for c in ("floordiv", "mod")}, [a[b != 0], b[b != 0]])


@pytest.mark.parametrize("t", INTEGERS, ids=str)
def test_operations_with_constants(gpu: WebGpuDevice, t: Scalar) -> None:
    makes: dict[str, Make] = {}
    for c in (0, 1, 3, 4, t.bits - 1, t.bits, t.max, t.wrap(-4)):
        for code in ("add", "mul", "shl", "shr", "min"):
            makes[f"{code} {c}"] = lambda b, v, code=code, c=c: b.binary(code, v[0], b.const(c, t))
        if c:
            for code in ("floordiv", "mod"):
                makes[f"{code} {c}"] = lambda b, v, code=code, c=c: b.value(
                    code, (v[0], b.const(c, t)), t, check="proved"
                )
    table(gpu, (t,), t, makes, [column(t)])


@pytest.mark.parametrize("t", [*INTEGERS, *FLOATS], ids=str)
def test_comparisons(gpu: WebGpuDevice, t: Scalar) -> None:
    needs(gpu, t)
    makes = {code: binary(code) for code in sorted(COMPARISON)}
    makes |= {f"not {c}": (lambda b, v, c=c: b.unary("not", b.binary(c, v[0], v[1]))) for c in sorted(COMPARISON)}
    makes["itself"] = lambda b, v: b.binary("ne", v[0], v[0])
    table(gpu, (t, t), BOOL, makes, pairs(column(t)))


def test_bools(gpu: WebGpuDevice) -> None:
    makes = {code: binary(code) for code in ("and", "or", "xor", "eq", "ne")} | {"not": unary("not")}
    table(gpu, (BOOL, BOOL), BOOL, makes, pairs(column(BOOL)))


@pytest.mark.parametrize("t", FLOATS, ids=str)
def test_float_operations(gpu: WebGpuDevice, t: Scalar) -> None:
    needs(gpu, t)
    makes = {code: binary(code) for code in "add sub mul div min max".split()}
    makes |= {code: unary(code) for code in "neg abs".split()}
    makes |= {fn: function(fn) for fn in ("copysign", "fmin", "fmax")}
    makes |= {fn: (lambda b, v, fn=fn: b.math(fn, [v[0]])) for fn in "sqrt floor ceil trunc rint".split()}
    table(gpu, (t, t), t, makes, pairs(column(t)))
    predicates = {fn: (lambda b, v, fn=fn: b.math(fn, [v[0]], BOOL)) for fn in ("isnan", "isinf", "isfinite")}
    table(gpu, (t,), BOOL, predicates, [column(t)])


@pytest.mark.parametrize("t", [F32, F16], ids=str)
def test_fma_rounds_once(gpu: WebGpuDevice, t: Scalar) -> None:
    n = 20_000
    a, b, c = (random_bits(t, n) for _ in range(3))
    with np.errstate(all="ignore"):
        c[: n // 2] = -(a[: n // 2] * b[: n // 2])  # what is left is the product's rounding error
        near = RNG.standard_normal((3, n // 4)).astype(t.dtype)
    a[-n // 4 :], b[-n // 4 :], c[-n // 4 :] = near
    table(gpu, (t, t, t), t, {"fma": lambda k, v: k.value("fma", v, t)}, [a, b, c])


def test_division_and_sqrt_on_random_operands(gpu: WebGpuDevice) -> None:
    a, b = random_bits(F32, 30_000), random_bits(F32, 30_000)
    makes = {"div": binary("div"), "sqrt": lambda k, v: k.math("sqrt", [v[0]])}
    table(gpu, (F32, F32), F32, makes, [a, b])


EVERY = [BOOL, *INTEGERS, *FLOATS]


@pytest.mark.parametrize("t", EVERY, ids=str)
def test_casts(gpu: WebGpuDevice, t: Scalar) -> None:
    needs(gpu, t)
    for to in EVERY:
        if to != F64 or Cap.F64 in gpu.caps:
            table(gpu, (t,), to, {f"{t} to {to}": lambda b, v, to=to: b.cast(v[0], to)}, [column(t)])


@pytest.mark.parametrize("t", [F8E4M3, F8E5M2], ids=str)
def test_fp8_conversions(gpu: WebGpuDevice, t: Scalar) -> None:
    every = np.arange(256, dtype=np.uint8).view(t.dtype)
    table(gpu, (t,), F32, {"load": lambda b, v: b.cast(v[0], F32)}, [every])
    some = np.concatenate([floats(F32), random_bits(F32, 500)])
    table(gpu, (F32,), t, {"store": lambda b, v: b.cast(v[0], t)}, [some])


BITS = [(F32, U32), (U32, F32), (F32, I32), (I32, U32), (I64, U64), (F16, Scalar("u16", "uint", 16)), (U8, I8)]


@pytest.mark.parametrize("t,to", [*BITS, (F64, U64), (U64, F64), (BF16, Scalar("i16", "int", 16))], ids=str)
def test_bitcasts(gpu: WebGpuDevice, t: Scalar, to: Scalar) -> None:
    needs(gpu, t, to)
    table(gpu, (t,), to, {"bitcast": lambda b, v: b.bitcast(v[0], to)}, [column(t)])


@pytest.mark.parametrize("t", [*INTEGERS, *FLOATS], ids=str)
def test_constants_and_select(gpu: WebGpuDevice, t: Scalar) -> None:
    needs(gpu, t)
    values = list(column(t).tolist())[:40]
    makes: dict[str, Make] = {}
    for n, c in enumerate(values):
        makes[f"constant {c}"] = lambda b, v, c=c: b.select(b.binary("eq", v[0], v[0]), b.const(c, t), v[0])
        if n % 4 == 0:
            makes[f"neg {c}"] = lambda b, v, c=c: b.unary("neg", b.const(c, t))
            makes[f"{c} + itself"] = lambda b, v, c=c: b.binary("add", b.const(c, t), b.const(c, t))
    table(gpu, (t,), t, makes, [column(t)[:3]])


def test_own_code_for_drivers_that_do_not_round_correctly(gpu: WebGpuDevice, monkeypatch: pytest.MonkeyPatch) -> None:
    """As if the driver had neither an exact division nor sqrt nor fma."""
    monkeypatch.setattr(gpu, "_numerics", Numerics(subnormals=gpu.numerics.subnormals))
    for t in (F16, BF16, F32):
        test_float_operations(gpu, t)
    test_fma_rounds_once(gpu, F32)
    test_division_and_sqrt_on_random_operands(gpu)
