"""How every check of the standard kernels is settled; the counts are frozen."""

from __future__ import annotations

from collections import Counter

import pytest
import standard
from build import K

from gridwise.analysis.bounds import settle_bounds
from gridwise.ir.types import I32

COUNTS = {  # proved, launch, inplace
    "vecadd": (1, 2, 0),
    "bitonic_step": (2, 0, 2),
    "bitonic_block": (10, 0, 0),
    "reduction": (8, 0, 0),
    "transpose": (4, 0, 0),
    "transpose_flat": (4, 0, 0),
    "scan": (9, 0, 0),
    "stencil": (8, 1, 1),
    "matmul": (8, 0, 0),
    "histogram": (4, 1, 0),
    "grid_stride": (1, 1, 0),
    "grid_stride_while": (1, 1, 0),
    "image": (1, 1, 0),
    "reverse": (0, 1, 0),
}


@pytest.mark.parametrize("make", standard.STANDARD, ids=lambda f: f.__name__)
def test_counts(make):
    if make.__name__ not in COUNTS:
        return  # its checks stay in place, and nothing rests on it
    how = Counter(c.how for c in settle_bounds(make()))
    assert (how["proved"], how["launch"], how["inplace"]) == COUNTS[make.__name__]


def test_launch_condition_is_told_and_evaluated():
    k = standard.vecadd()
    checks = settle_bounds(k)
    assert {c.detail for c in checks if c.how == "launch"} == {"len(a) >= len(c)", "len(b) >= len(c)"}
    slots = {s: n for n, s in enumerate((s.kind, s.param) for s in k.slots())}
    values = [0] * len(k.slots())
    for param, n in ((0, 10), (1, 10), (2, 10)):
        values[slots["dim", param]] = n
    assert all(c.holds(values) for c in k.conditions)
    values[slots["dim", 1]] = 9
    assert not all(c.holds(values) for c in k.conditions)


def test_the_attribute_is_written():
    k = standard.vecadd()
    settle_bounds(k)
    assert [op.attrs["check"] for op in k.walk() if "check" in op.attrs] == ["launch", "launch", "proved"]


def test_division_by_a_value_that_may_be_zero_stays():
    k = K()
    n = k.scalar("n")
    k.gid() // n
    with k.if_(n > 0):
        k.gid() % n
    k.gid() // 7
    assert [c.how for c in settle_bounds(k.done())] == ["inplace", "proved", "proved"]


def test_an_index_that_may_wrap_is_not_proved():
    """n - 1 wraps for the smallest n: i < n - 1 is then true of every i."""
    k = K()
    a, n = k.array("a"), k.scalar("n")
    i = k.gid()
    with k.if_(k.both(i < n - 1, n <= a.dim())):
        a[i]
    assert [c.how for c in settle_bounds(k.done())] == ["inplace"]


def test_requires_reaches_the_proof():
    k = K()
    a, c = k.array("a"), k.array("c", "disjoint")
    k.assume(a.dim() >= c.dim() * 2)
    i = k.gid()
    with k.if_(i < c.dim()):
        c[i] = a[2 * i + 1]
    assert [x.how for x in settle_bounds(k.done())] == ["proved", "proved"]


def test_the_faulting_access_is_no_fact_for_the_next():
    """An index out of range makes a fault and the thread goes on: a second access is not thereby in range."""
    k = K()
    a, b, where = k.shared("a", (8,)), k.shared("b", (8,)), k.array("where", elem=I32)
    n = where[k.tid() & 0]
    x = a[n]
    b[n] = x
    assert [c.how for c in settle_bounds(k.done())] == ["launch", "inplace", "inplace"]


def test_unsafe_waives_disjointness_and_keeps_the_index_checked():
    k = K()
    c = k.array("c", "disjoint")
    k.b.store(c.value, [k.gid().value], k.lift(1.0, c.value.type.elem).value)
    store = k.region.ops[-1]
    store.attrs["unsafe"] = "no two threads share an element"
    (check,) = settle_bounds(k.done())
    assert store.attrs["check"] == "inplace"
    assert check.how == "unsafe" and check.detail == "no two threads share an element (index: inplace)"
