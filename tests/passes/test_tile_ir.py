"""The verifier on operations of tiles: each rule with an operation that keeps it and one that breaks it."""

from __future__ import annotations

import pytest

from gridwise.ir.builder import Builder
from gridwise.ir.core import Kernel, Param, Region, Value
from gridwise.ir.types import BOOL, F16, F32, I32, ArrayType, TileType
from gridwise.ir.verify import InvalidIR, verify
from gridwise.lang.errors import Loc

A = ArrayType(F32, 2)
C = ArrayType(F32, 2, access="disjoint", tile=(4, 8))


def build(fill, tiled: bool = True) -> Kernel:
    a, c = Value(A, None, "a"), Value(C, None, "c")
    body = Region()
    fill(Builder(body, I32), a, c)
    loc = Loc("k.py", 1, 0, 1, "")
    return Kernel("k", [Param("a", a), Param("c", c)], body, (1, 1, 1), 1, I32, loc, tiled=tiled)


def t(b: Builder, *shape: int, elem=F32) -> Value:
    return b.broadcast(b.const(0, elem), shape)


def add_one(b: Builder, a: Value, c: Value) -> None:
    at = [b.value("tile_index", (c,), I32, axis=n) for n in (0, 1)]
    x = b.value("tile_load", (a, *at), TileType(F32, (4, 8)), pad=0)
    b.emit("tile_store", (c, *at, b.binary("add", x, t(b, 4, 8))))


def test_a_kernel_of_tiles() -> None:
    verify(build(add_one))


def test_tiles_only_in_tile_kernels() -> None:
    with pytest.raises(InvalidIR, match="only in a tile kernel"):
        verify(build(add_one, tiled=False))


def test_variables_hold_tiles() -> None:
    def fill(b: Builder, a: Value, c: Value) -> None:
        v = b.var("v", TileType(F32, (4, 8)))
        b.set(v, t(b, 4, 8))
        assert b.get(v).type == TileType(F32, (4, 8))

    verify(build(fill))


def test_comparison_and_choice() -> None:
    def fill(b: Builder, a: Value, c: Value) -> None:
        x = t(b, 3)
        less = b.binary("lt", x, x)
        assert less.type == TileType(BOOL, (3,))
        assert b.cast(b.select(less, x, x), F16).type == TileType(F16, (3,))

    verify(build(fill))


def _yielding(b: Builder, elem) -> Region:
    region = Region(args=[Value(F32), Value(F32)])
    with b.into(region):
        b.emit("yield", (b.const(0, elem),))
    return region


GOOD = {
    "reduce": lambda b, a, c: b.reduce("argmax", t(b, 4, 8), 1),
    "custom reduce": lambda b, a, c: b.reduce("custom", t(b, 4, 8), 0, _yielding(b, F32)),
    "scalar of one element": lambda b, a, c: b.reshape(t(b, 1, 1), ()),
    "product": lambda b, a, c: b.value("tile_mma", (t(b, 2, 3, elem=F16), t(b, 3, 5, elem=F16), t(b, 2, 5)),
                                       TileType(F32, (2, 5)), precision="ieee"),
    "backwards": lambda b, a, c: b.value("tile_slice", (t(b, 8),), TileType(F32, (3,)), starts=(6,), steps=(-3,)),
    "map": lambda b, a, c: b.map([t(b, 3), t(b, 3)], F32)[1].ops.extend(_yielding(b, F32).ops),
}  # fmt: skip

BAD = {
    "shapes": (lambda b, a, c: b.binary("add", t(b, 4), t(b, 5)), "one shape"),
    "tile and scalar": (lambda b, a, c: b.binary("add", t(b, 4), b.const(0, F32)), "one shape"),
    "elements": (lambda b, a, c: b.binary("add", t(b, 4), t(b, 4, elem=F16)), "does not fit"),
    "rank of a load": (lambda b, a, c: b.value("tile_load", (a, b.const(0, I32)), TileType(F32, (4,)), pad=0), "rank"),
    "store to a plain array": (lambda b, a, c: b.emit("tile_store", (a, b.const(0, I32), b.const(0, I32), t(b, 4, 8))),
                               "not a partition"),
    "store of another shape": (lambda b, a, c: b.emit("tile_store", (c, b.const(0, I32), b.const(0, I32), t(b, 4, 4))),
                               "piece's shape"),
    "broadcast": (lambda b, a, c: b.value("tile_broadcast", (t(b, 3),), TileType(F32, (4,))), "does not broadcast"),
    "reshape": (lambda b, a, c: b.reshape(t(b, 3), (2, 2)), "as many"),
    "permutation": (lambda b, a, c: b.value("tile_permute", (t(b, 3, 4),), TileType(F32, (3, 4)), axes=(1, 0)),
                    "expected"),
    "joined": (lambda b, a, c: b.value("tile_cat", (t(b, 3), t(b, 4)), TileType(F32, (8,)), axis=0), "expected"),
    "slice": (lambda b, a, c: b.value("tile_slice", (t(b, 8),), TileType(F32, (3,)), starts=(6,), steps=(1,)),
              "leaves"),
    "axis": (lambda b, a, c: b.value("tile_reduce", (t(b, 8),), F32, fn="sum", axis=1), "regions"),
    "custom without a body": (lambda b, a, c: b.reduce("custom", t(b, 8), 0), "arguments"),
    "custom of another type": (lambda b, a, c: b.reduce("custom", t(b, 8), 0, _yielding(b, I32)), "yield"),
    "sums in f16 of f32": (lambda b, a, c: b.value("tile_mma", (t(b, 2, 2), t(b, 2, 2), t(b, 2, 2, elem=F16)),
                                                   TileType(F16, (2, 2)), precision="ieee"), "no product"),
    "inner sides": (lambda b, a, c: b.value("tile_mma", (t(b, 2, 3), t(b, 2, 3), t(b, 2, 3)), TileType(F32, (2, 3)),
                                            precision="ieee"), "expected"),
    "yield outside": (lambda b, a, c: b.emit("yield", (b.const(0, F32),)), "only at the end"),
}  # fmt: skip


@pytest.mark.parametrize("case", GOOD)
def test_well_formed(case: str) -> None:
    verify(build(GOOD[case]))


@pytest.mark.parametrize("case", BAD)
def test_malformed(case: str) -> None:
    fill, why = BAD[case]
    with pytest.raises(InvalidIR, match=why):
        verify(build(fill))
