"""Common subexpressions: one operation for each value computed twice where the first is in scope.

Only pure operations are merged, so no effect moves. Constants are merged too, which keeps emitted text short.
"""

from __future__ import annotations

from gridwise.ir import Kernel, Op, Region, Value, ops

Key = tuple[object, ...]


def _key(op: Op) -> Key | None:
    if op.result is None or op.regions or not ops.TABLE[op.code].pure:
        return None
    # repr keeps -0.0 apart from 0.0, True from 1, and a NaN equal to itself.
    attrs = tuple(sorted((k, repr(v)) for k, v in op.attrs.items()))
    return (op.code, op.result.type, tuple(id(v) for v in op.operands), attrs)


def cse(kernel: Kernel) -> None:
    """Rewrite in place."""
    mapping: dict[Value, Value] = {}
    # A value made inside a loop's condition is not in scope in its body, so each region sees only what
    # encloses it.

    def visit(region: Region, seen: dict[Key, Value]) -> None:
        known = dict(seen)
        kept = []
        for op in region.ops:
            op.operands = [mapping.get(v, v) for v in op.operands]
            key = _key(op)
            if key is not None and op.result is not None:
                if key in known:
                    mapping[op.result] = known[key]
                    continue
                known[key] = op.result
            for inner in op.regions:
                visit(inner, known)
            kept.append(op)
        region.ops = kept

    visit(kernel.body, {})
