"""After lowering, no access is left that could fail; each failure has one site at the user's line."""

from gridwise.ir import Builder, Kernel, Param, Region, Value, verify
from gridwise.ir.types import BOOL, I32, ArrayType
from gridwise.lang.errors import Loc
from gridwise.passes.lower_checks import lower_checks


def kernel(build, rank: int = 1, unchecked: bool = False) -> Kernel:
    out = Param("out", Value(ArrayType(I32, rank, access="disjoint"), None, "out"))
    body = Region()
    build(Builder(body, I32, Loc("k.py", 7)), out.value)
    return verify(Kernel("k", [out], body, (32, 1, 1), 1, I32, Loc("k.py", 1), unchecked=unchecked))


def store(check):
    def build(b, out):
        i = b.identity("global_idx", 0)
        b.store(out, [i] * out.type.rank, b.const(1, I32), check=check)

    return build


def faults(k):
    return [op for op in k.walk() if op.code == "fault"]


def test_each_axis_has_a_site():
    k = kernel(store("inplace"), rank=2)
    lower_checks(k, trust_launch=True)
    verify(k)
    assert [(s.kind, s.detail, s.axis, s.loc.line) for s in k.sites] == [("index", "out", 0, 7), ("index", "out", 1, 7)]
    assert all(op.attrs["check"] == "proved" for op in k.walk() if op.code == "store")


def test_proved_costs_nothing():
    k = kernel(store("proved"))
    lower_checks(k, trust_launch=True)
    assert not faults(k) and not k.sites


def test_a_launch_condition_is_trusted_only_in_the_fast_version():
    fast, checked = kernel(store("launch")), kernel(store("launch"))
    lower_checks(fast, trust_launch=True)
    lower_checks(checked, trust_launch=False)
    assert not faults(fast) and len(faults(checked)) == 1


def test_unchecked_drops_every_check():
    k = kernel(store("inplace"), unchecked=True)
    lower_checks(k, trust_launch=True)
    assert not faults(k)


def test_division_gets_a_safe_divisor():
    def build(b, out):
        i = b.identity("global_idx", 0)
        b.store(out, [i], b.binary("floordiv", i, i), check="proved")

    k = kernel(build)
    lower_checks(k, trust_launch=True)
    verify(k)
    assert [s.kind for s in k.sites] == ["zero_division"]
    division = next(op for op in k.walk() if op.code == "floordiv")
    assert division.operands[1].op.code == "select"


def test_assert_becomes_a_fault_with_its_message():
    k = kernel(lambda b, out: b.emit("assert", (b.const(False, BOOL),), message="n is odd"))
    lower_checks(k, trust_launch=True)
    verify(k)
    assert k.sites[0].kind == "assertion" and k.sites[0].detail == "n is odd"
