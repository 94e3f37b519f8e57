"""Copying and rewriting IR: what passes are made of."""

from __future__ import annotations

from collections.abc import Callable

from gridwise.lang.records import replace

from .builder import Builder
from .core import Kernel, Op, Param, Region, Value


def clone(kernel: Kernel) -> Kernel:
    """A deep copy; the original stays as it is."""
    params = [Param(p.name, Value(p.value.type, None, p.value.name)) for p in kernel.params]
    mapping = {old.value: new.value for old, new in zip(kernel.params, params, strict=True)}
    return replace(
        kernel,
        params=params,
        body=clone_region(kernel.body, mapping),
        sites=list(kernel.sites),
        conditions=list(kernel.conditions),
    )


def clone_region(region: Region, mapping: dict[Value, Value]) -> Region:
    """A copy of ``region`` with operands replaced through ``mapping``, which gains every value copied."""
    copy = Region(args=[Value(a.type, None, a.name) for a in region.args])
    mapping.update(zip(region.args, copy.args, strict=True))
    for op in region.ops:
        new = Op(
            op.code,
            [mapping.get(v, v) for v in op.operands],
            dict(op.attrs),
            [clone_region(r, mapping) for r in op.regions],
            op.result.type if op.result else None,
            op.loc,
            op.result.name if op.result else "",
        )
        if op.result is not None and new.result is not None:
            mapping[op.result] = new.result
        copy.ops.append(new)
    return copy


KEEP = object()  # what a rewriter's function returns to leave an operation as it is


def rewrite(kernel: Kernel, fn: Callable[[Op, Builder], object]) -> None:
    """Rebuild every region in place.

    ``fn(op, builder)`` sees each operation with its operands already replaced, before its regions. It
    returns ``KEEP``, or builds a replacement with ``builder`` and returns the Value that stands for the
    old result (None if there was none). Variables made by ``builder.var`` go to the top of the body.
    """
    mapping: dict[Value, Value] = {}
    pending: list[Op] = []  # vars made while the body is being rebuilt

    def region(r: Region) -> None:
        old, r.ops = r.ops, []
        for op in old:
            op.operands = [mapping.get(v, v) for v in op.operands]
            builder = Builder(r, kernel.index, op.loc)
            top = Region()
            builder.top = top
            result = fn(op, builder)
            pending.extend(top.ops)
            if result is KEEP:
                for inner in op.regions:
                    region(inner)
                r.ops.append(op)
            elif op.result is not None:
                assert isinstance(result, Value), f"{op.code} needs a replacement value"
                mapping[op.result] = result

    region(kernel.body)
    kernel.body.ops[:0] = pending


def uses(kernel: Kernel) -> dict[Value, int]:
    """How many operands refer to each value."""
    count: dict[Value, int] = {}
    for op in kernel.walk():
        for v in op.operands:
            count[v] = count.get(v, 0) + 1
    return count
