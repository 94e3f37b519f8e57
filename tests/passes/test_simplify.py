"""Folding follows the language's integer rules, and never touches what could fault or round."""

import pytest

from gridwise.ir import Builder, Kernel, Param, Region, Value, verify
from gridwise.ir.types import BOOL, F32, I8, I32, I64, U8, U32, ArrayType, Scalar
from gridwise.lang.errors import Loc
from gridwise.passes.cse import cse
from gridwise.passes.simplify import fold, simplify


def kernel(build, elem: Scalar = I32) -> Kernel:
    """A kernel of one output array; ``build(b, out)`` fills its body."""
    out = Param("out", Value(ArrayType(elem, 1, access="disjoint"), None, "out"))
    body = Region()
    build(Builder(body, I32, Loc("k.py", 1)), out.value)
    return verify(Kernel("k", [out], body, (32, 1, 1), 1, I32, Loc("k.py", 1)))


def codes(k: Kernel) -> list[str]:
    return [op.code for op in k.walk()]


@pytest.mark.parametrize(
    ("code", "values", "type", "want"),
    [
        ("add", [2**31 - 1, 1], I32, -(2**31)),
        ("sub", [0, 1], U8, 255),
        ("mul", [2**16, 2**16], U32, 0),
        ("floordiv", [-7, 2], I32, -4),
        ("mod", [-7, 2], I32, 1),
        ("mod", [7, -2], I32, -1),
        ("floordiv", [-128, -1], I8, -128),
        ("shl", [1, 32], I32, 0),
        ("shl", [1, -1], I32, 0),
        ("shr", [-8, 200], I64, -1),
        ("shr", [8, 200], U8, 0),
        ("neg", [-128], I8, -128),
        ("abs", [-128], I8, -128),
        ("not", [0], U8, 255),
        ("xor", [True, True], BOOL, False),
        ("lt", [-1, 0], I32, True),
    ],
)
def test_fold_follows_the_language(code, values, type, want):
    result = BOOL if code == "lt" else type
    assert fold(code, values, type, result) == want


def test_division_by_zero_is_left_to_fault():
    assert fold("floordiv", [1, 0], I32, I32) is None
    assert fold("mod", [1, 0], I32, I32) is None


def test_float_arithmetic_is_left_to_run():
    assert fold("add", [1.0, 2.0], F32, F32) is None


def test_narrowing_cast_wraps():
    assert fold("cast", [300], I32, U8) == 44
    assert fold("cast", [2], I32, BOOL) is True


def test_a_branch_on_a_constant_goes():
    def build(b, out):
        branch = b.if_(b.binary("lt", b.const(3, I32), b.const(2, I32)))
        with b.into(branch.regions[0]):
            b.store(out, [b.const(0, I32)], b.const(1, I32))
        with b.into(branch.regions[1]):
            b.store(out, [b.const(0, I32)], b.const(2, I32))

    k = kernel(build)
    simplify(k)
    verify(k)
    assert "if" not in codes(k)
    assert [op.operands[-1].op.attrs["value"] for op in k.walk() if op.code == "store"] == [2]


def test_code_after_a_taken_return_goes():
    def build(b, out):
        branch = b.if_(b.const(True, BOOL))
        with b.into(branch.regions[0]):
            b.emit("return")
        b.store(out, [b.const(0, I32)], b.const(1, I32))

    k = kernel(build)
    simplify(k)
    verify(k)
    assert codes(k) == ["return"]


def test_an_unchecked_load_that_nobody_reads_goes_but_a_checked_one_stays():
    def build(check):
        return lambda b, out: b.load(out, [b.const(0, I32)], check=check)

    proved, inplace = kernel(build("proved")), kernel(build("inplace"))
    simplify(proved)
    simplify(inplace)
    assert "load" not in codes(proved)
    assert "load" in codes(inplace)  # it may fault, and a fault is an effect


def test_the_greater_of_a_value_and_itself_is_the_value():
    def build(b, out):
        x = b.load(out, [b.const(0, I32)])
        b.store(out, [b.const(0, I32)], b.binary("max", x, x))

    k = kernel(build, F32)
    simplify(k)
    verify(k)
    assert "max" not in codes(k)


def test_cse_keeps_signed_zeros_apart():
    def build(b, out):
        for value in (0.0, -0.0, 0.0):
            b.store(out, [b.const(0, I32)], b.const(value, F32))

    k = kernel(build, F32)
    cse(k)
    verify(k)
    values = [str(op.attrs["value"]) for op in k.walk() if op.code == "const"]
    assert sorted(values) == ["-0.0", "0", "0.0"]


def test_cse_does_not_reach_from_one_branch_to_the_other():
    def build(b, out):
        i = b.identity("global_idx", 0)
        branch = b.if_(b.binary("lt", i, b.const(5, I32)))
        for region in branch.regions:
            with b.into(region):
                b.store(out, [i], b.binary("mul", i, i))

    k = kernel(build)
    cse(k)
    verify(k)
    assert codes(k).count("mul") == 2
