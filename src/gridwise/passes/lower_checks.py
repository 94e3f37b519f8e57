"""Makes every check explicit, so that what is left cannot fail (rule 7 of the language).

An access that analysis could not settle becomes ``if in range: access, else: fault``; a division becomes a
test of its divisor. Afterwards every load, store and atomic is in range, and no integer divides by zero.
"""

from __future__ import annotations

from gridwise.ir import Builder, Kernel, Op, Value
from gridwise.ir.core import Site
from gridwise.ir.rewrite import KEEP, rewrite
from gridwise.ir.types import BOOL, I32, I64, U32, U64, ArrayType, Scalar

UNSIGNED_OF = {I32: U32, I64: U64}


class _Lowering:
    def __init__(self, kernel: Kernel, trust_launch: bool):
        self.kernel = kernel
        self.settled = {"proved"} | ({"launch"} if trust_launch else set())
        self.arrays = {p.value: p.name for p in kernel.params}
        self.sites: dict[Site, int] = {}

    def __call__(self, op: Op, b: Builder) -> object:
        if op.code in ("shared", "local") and op.result is not None:
            self.arrays[op.result] = op.attrs["name"]
        if op.code == "assert":
            bad = b.unary("not", op.operands[0])
            with b.into(b.if_(bad).regions[0]):
                self.fault(b, Site("assertion", op.loc, op.attrs["message"]), b.const(True, BOOL))
            return None
        if op.code == "assume":
            return None
        if op.attrs.get("check") in (None, *self.settled) or self.kernel.unchecked:
            if "check" in op.attrs:
                op.attrs["check"] = "proved"
            return KEEP
        if op.code in ("floordiv", "mod"):
            return self.division(op, b)
        if op.code in ("load", "store", "atomic"):
            return self.access(op, b)
        return KEEP

    def fault(self, b: Builder, site: Site, cond: Value, *detail: Value) -> None:
        n = self.sites.setdefault(site, len(self.sites))
        b.emit("fault", (cond, *detail), kind=site.kind, site=n)

    def division(self, op: Op, b: Builder) -> object:
        x, y = op.operands
        if not (isinstance(y.type, Scalar) and y.type.is_int):
            op.attrs["check"] = "proved"  # floats never fault
            return KEEP
        zero = b.binary("eq", y, b.const(0, y.type))
        with b.into(b.if_(zero).regions[0]):
            self.fault(b, Site("zero_division", op.loc), b.const(True, BOOL))
        safe = b.value(op.code, (x, b.select(zero, b.const(1, y.type), y)), y.type, check="proved")
        return b.select(zero, b.const(0, y.type), safe)

    def access(self, op: Op, b: Builder) -> object:
        parts = extents(op, b, self.arrays.get(op.operands[0], op.operands[0].name))
        goods = []
        for index, extent, _, _ in parts:
            assert isinstance(index.type, Scalar)
            unsigned = UNSIGNED_OF[index.type]
            goods.append(b.binary("lt", b.bitcast(index, unsigned), b.bitcast(extent, unsigned)))
        ok = goods[0]
        for g in goods[1:]:
            ok = b.binary("and", ok, g)
        result = b.var("checked", op.result.type) if op.result is not None else None  # type: ignore[arg-type]
        branch = b.if_(ok)
        with b.into(branch.regions[0]):
            done = b.emit(
                op.code, op.operands, op.result.type if op.result else None, **{**op.attrs, "check": "proved"}
            )
            if result is not None and done.result is not None:
                b.set(result, done.result)
        with b.into(branch.regions[1]):
            for good, (index, extent, name, axis) in zip(goods, parts, strict=True):
                bad = b.const(True, BOOL) if len(goods) == 1 else b.unary("not", good)
                self.fault(b, Site("index", op.loc, name, axis), bad, index, extent)
            if result is not None:
                assert op.result is not None and isinstance(op.result.type, Scalar)
                zero = False if op.result.type == BOOL else 0.0 if op.result.type.is_float else 0
                b.set(result, b.const(zero, op.result.type))
        return b.get(result) if result is not None else None


def extents(op: Op, b: Builder, name: str) -> list[tuple[Value, Value, str, int]]:
    """(index, extent, name, axis) of every index operand of an access to the array ``name``, array axes first."""
    array = op.operands[0]
    t = array.type
    assert isinstance(t, ArrayType)
    out = []
    for axis in range(t.rank):
        extent = b.const(t.shape[axis], t.index) if t.shape is not None and t.shape[axis] else b.dim(array, axis)
        out.append((op.operands[1 + axis], extent, name, axis))
    at = 1 + t.rank
    for f in op.attrs.get("field", ()):
        name = f"{name}.{f.name}"
        if f.count:
            out.append((op.operands[at], b.const(f.count, t.index), name, 0))
            at += 1
    return out


def lower_checks(kernel: Kernel, trust_launch: bool) -> None:
    """Rewrite in place and fill ``kernel.sites``. ``trust_launch``: ``kernel.conditions`` are known to hold."""
    lowering = _Lowering(kernel, trust_launch)
    rewrite(kernel, lowering)
    kernel.sites = list(lowering.sites)
