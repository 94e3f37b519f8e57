"""What the PTX must and must not say."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent.parent / "cuda"))

from cuda_kernels import Kern, array, lowered, shared

from gridwise.ir.types import F16, F32, F64, I16, I32, I64, U16, U32, U64
from gridwise.lang.errors import UnsupportedError
from gridwise.targets.ptx.capabilities import architecture
from gridwise.targets.ptx.compile import compile
from gridwise.targets.ptx.emit import emit


def ptx(kernel: Any, vector: bool = False, capability: tuple[int, int] = (9, 0)) -> str:
    return compile(emit(lowered(kernel, vector), capability).llvm, capability)[1]


def elementwise(t: Any, make: Any, vector: bool = False, index: Any = I32, **options: Any) -> str:
    k = Kern(
        "k", (128, 1, 1), index=index, a=array(t, index=index), c=array(t, "disjoint", index=index), **options
    )
    b = k.b
    i = b.identity("global_idx", 0)
    with b.into(b.if_(b.binary("lt", i, b.dim(k.c, 0))).regions[0]):
        b.store(k.c, [i], make(b, b.load(k.a, [i], check="launch")), check="proved")
    return ptx(k.kernel, vector)


def test_reads_go_through_the_read_only_cache_and_are_16_bytes_wide() -> None:
    text = elementwise(F32, lambda b, x: b.binary("add", x, x), vector=True)
    assert re.search(r"ld\.global\.nc\.v4\.[bf]32", text) and re.search(r"st\.global\.v4\.[bf]32", text)
    assert ".maxntid 128, 1, 1" in text
    assert re.search(r"\.target sm_90$", text, re.M)  # not ", debug", which turns the driver's optimiser off


def test_float_arithmetic_is_ieee() -> None:
    text = elementwise(F32, lambda b, x: b.math("sqrt", [b.binary("div", b.const(3.0, F32), x)]))
    assert "div.rn.f32" in text and "sqrt.rn.f32" in text
    text += elementwise(F64, lambda b, x: b.math("sqrt", [b.binary("div", b.const(3.0, F64), x)]))
    text += elementwise(F16, lambda b, x: b.binary("add", x, b.binary("mul", x, x)))
    text += elementwise(F32, lambda b, x: b.binary("add", x, b.binary("mul", x, x)))
    assert ".ftz" not in text and "approx" not in text and "div.full" not in text


def test_wide_indices_are_computed_wide() -> None:
    text = elementwise(F32, lambda b, x: x, index=I64)
    assert re.search(r"\.param \.u64 k_param_1", text)
    assert "mul.wide.u32" in text or "mad.wide.u32" in text
    narrow = elementwise(F32, lambda b, x: x)
    assert re.search(r"\.param \.u32 k_param_1", narrow)


@pytest.mark.parametrize(
    "order, scope, words",
    [
        ("relaxed", "device", ["atom"]),
        ("acquire", "device", ["atom", "fence.acquire.gpu|fence.acq_rel.gpu"]),
        ("release", "block", ["fence.release.cta|fence.acq_rel.cta", "atom"]),
        ("acq_rel", "device", ["fence.release.gpu|fence.acq_rel.gpu", "atom", "fence.acquire.gpu|fence.acq_rel.gpu"]),
    ],
)
@pytest.mark.parametrize("fn", ["add", "compare_exchange"])
def test_atomics_keep_order_and_scope(fn: str, order: str, scope: str, words: list[str]) -> None:
    k = Kern("k", c=array(U32, "atomic"))
    values = [k.b.const(n, U32) for n in ((1,) if fn == "add" else (1, 2))]
    k.b.atomic(fn, k.c, [k.b.const(0, I32)], values, order=order, scope=scope, check="proved")
    lines = [x for x in ptx(k.kernel).splitlines() if re.search(r"\b(atom|red|fence)\b", x)]
    assert len(lines) == len(words)
    for line, word in zip(lines, words, strict=True):
        assert re.search(word.replace("atom", "(atom|red)"), line), lines


@pytest.mark.parametrize("t", [I64, U64], ids=str)
def test_counts_of_64_bits_are_not_cut_before_they_are_judged(t: Any) -> None:
    """A shift by 2**32 + 3 is by 64 or more: 0, not a shift by 3."""
    k = Kern("k", a=array(t), by=array(t), c=array(t, "disjoint"))
    i = k.b.identity("global_idx", 0)
    x, n = (k.b.load(v, [i], check="proved") for v in (k.a, k.by))
    k.b.store(k.c, [i], k.b.binary("shl", x, n), check="proved")
    assert re.search(r"setp\.\w+\.u64", ptx(k.kernel))


def test_integer_abs_is_not_left_to_the_assembler() -> None:
    """ptxas takes ``abs`` for non-negative; abs(min) is min here."""
    for t, bits in ((I16, 16), (I32, 32), (I64, 64)):
        text = elementwise(t, lambda b, x: b.unary("abs", x))
        assert "abs.s" not in text and f"shr.s{bits} %sign" in text, text
        chosen = elementwise(t, lambda b, x, t=t: b.select(b.binary("lt", x, b.const(0, t)), b.unary("neg", x), x))
        assert "abs.s" not in chosen


def test_integer_warp_reductions_use_the_hardware_where_it_is() -> None:
    k = Kern("k", c=array(I32, "disjoint"))
    i = k.b.identity("global_idx", 0)
    total = k.b.value("subgroup", (i,), I32, fn="reduce_add")
    k.b.store(k.c, [i], total, check="proved")
    assert "redux.sync.add" in ptx(k.kernel, capability=(8, 0))
    older = ptx(k.kernel, capability=(7, 5))
    assert "redux" not in older and older.count("shfl.sync.bfly") == 5


def test_dynamic_shared_memory_beyond_48_kib() -> None:
    k = Kern("k", c=array(F32, "disjoint"))
    big = k.b.array("big", shared(F32, 20_000))
    i = k.b.identity("global_idx", 0)
    k.b.store(k.c, [i], k.b.load(big, [i], check="proved"), check="proved")
    emitted = emit(lowered(k.kernel))
    assert (emitted.static_shared, emitted.dynamic_shared) == (0, 80_000)
    assert ".extern .shared .align 16 .b8 gridwise_dynamic_shared[]" in compile(emitted.llvm)[1]


def test_what_no_gpu_can_do_names_the_line() -> None:
    k = Kern("k", c=array(F16, "atomic"))
    k.b.atomic("add", k.c, [k.b.const(0, I32)], [k.b.const(1.0, F16)], check="proved")
    with pytest.raises(UnsupportedError, match="atomic operations on f16 are not available") as e:
        emit(lowered(k.kernel))
    assert e.value.loc is not None
    k = Kern("k")
    for name in ("one", "two"):
        k.b.array(name, shared(I32, 0))
    with pytest.raises(UnsupportedError, match="only one shared array"):
        emit(k.kernel)


def test_names_are_valid_and_text_is_deterministic() -> None:
    k = Kern("Outer.<locals>.größe", c=array(I32, "disjoint"))
    i = k.b.identity("global_idx", 0)
    k.b.store(k.c, [i], i, check="proved")
    first, second = emit(lowered(k.kernel)), emit(lowered(k.kernel))
    assert first == second
    assert f".visible .entry {first.entry}(" in compile(first.llvm)[1]


@pytest.mark.parametrize(
    "capability, driver, llvm, want",
    [
        ((9, 0), 13000, 22, (90, 90)),
        ((9, 0), 12000, 20, (90, 80)),
        ((8, 6), 12040, 20, (86, 84)),
        ((10, 0), 12000, 22, (90, 80)),  # an old driver: PTX of an older architecture runs too
        ((12, 1), 13000, 22, (121, 90)),
        ((15, 0), 15000, 22, (121, 90)),  # a card that this LLVM does not know
        ((7, 5), 11040, 20, (75, 74)),
    ],
)
def test_architecture_and_version(
    capability: tuple[int, int], driver: int, llvm: int, want: tuple[int, int]
) -> None:
    assert architecture(capability, driver, llvm) == want


@pytest.mark.parametrize(("code", "t"), [("neg", I16), ("not", I16), ("not", U16)], ids=str)
def test_signs_of_16_bits_are_not_left_to_the_assembler(code: str, t: Any) -> None:
    """ptxas folds a 16-bit ``neg`` or ``not`` into its user and loses the sign."""
    text = elementwise(t, lambda b, x: b.binary("min", b.binary("min", x, b.const(3, t)), b.unary(code, x)))
    assert f"{code}.s16" not in text and f"{code}.b16" not in text
    assert re.search(rf"{code}\.[sb]32 %wide, %wide;", text), text


@pytest.mark.parametrize("extreme", ["min", "max"])
@pytest.mark.parametrize("sign", ["neg", "from zero", "times"])
def test_signs_of_32_bits_are_not_left_to_the_assembler(sign: str, extreme: str) -> None:
    """ptxas merges two signed extremes into one of three operands and loses the sign of a negated one."""

    def make(b: Any, x: Any) -> Any:
        if sign == "neg":
            turned = b.unary("neg", x)
        elif sign == "from zero":
            turned = b.binary("sub", b.const(0, I32), x)
        else:
            turned = b.binary("mul", x, b.const(-1, I32))
        byte = b.binary("and", b.binary("mul", x, x), b.const(255, I32))
        return b.binary(extreme, b.binary(extreme, byte, turned), b.binary("xor", x, b.const(77, I32)))

    text = elementwise(I32, make)
    assert text.count(f"{extreme}.s32") == 2, text
    assert "neg.s32" not in text and not re.search(r"sub\.s32\s+%\w+, 0,|mul\.lo\.s32\s+%\w+, %\w+, -1;", text), text
    assert "neg.s64 %pair, %pair;" in text, text
