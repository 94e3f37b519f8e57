"""Folds constants, drops branches never taken and values never used.

Only what is exact on every target is folded: integers and bools by the language's rules, and selects and
branches on constants. Float arithmetic is left to run, so that a folded and a computed value cannot differ.
"""

from __future__ import annotations

from gridwise.ir import Builder, Kernel, Op, Region, Value, ops
from gridwise.ir.rewrite import KEEP, rewrite, uses
from gridwise.ir.types import BOOL, ArrayType, Scalar

Number = bool | int | float


def _shift(code: str, a: int, count: int, t: Scalar) -> int:
    count &= (1 << t.bits) - 1
    if code == "shl":
        return 0 if count >= t.bits else t.wrap(a << count)
    return (-1 if a < 0 else 0) if count >= t.bits else a >> count


def fold(code: str, values: list[Number], operand: Scalar, result: Scalar) -> Number | None:
    """The value of an operation on constants, or None where it is not folded."""
    if code == "cast" and operand.kind != "float" and (result.is_int or result == BOOL):
        return bool(values[0]) if result == BOOL else result.wrap(int(values[0]))
    if operand.is_float:
        return None
    a = values[0]
    if len(values) == 1:
        if operand == BOOL:
            return not a if code == "not" else None
        table = {"neg": -int(a), "not": ~int(a), "abs": abs(int(a))}
        return result.wrap(table[code]) if code in table else None
    if len(values) != 2:
        return None
    b = values[1]
    if code in ops.COMPARISON:
        table = {"eq": a == b, "ne": a != b, "lt": a < b, "le": a <= b, "gt": a > b, "ge": a >= b}
        return table[code]
    if operand == BOOL:
        logic = {"and": bool(a and b), "or": bool(a or b), "xor": bool(a) != bool(b)}
        return logic.get(code)
    a, b = int(a), int(b)
    if code in ("shl", "shr"):
        return _shift(code, a, b, operand)
    if code in ("floordiv", "mod"):
        if b == 0:
            return None  # a fault: left for the check to report
        return operand.wrap(a // b if code == "floordiv" else a % b)
    exact = {"add": a + b, "sub": a - b, "mul": a * b, "min": min(a, b), "max": max(a, b)}
    exact |= {"and": a & b, "or": a | b, "xor": a ^ b}
    return operand.wrap(exact[code]) if code in exact else None


def _constant(v: Value) -> Number | None:
    return v.op.attrs["value"] if v.op is not None and v.op.code == "const" else None


def _identity(op: Op) -> Value | None:
    """The operand that an operation on it twice, or on it and a neutral integer, leaves unchanged."""
    if len(op.operands) == 2 and op.operands[0] is op.operands[1] and op.code in ("min", "max", "and", "or"):
        return op.operands[0]
    if len(op.operands) != 2 or not isinstance(op.operands[0].type, Scalar) or op.operands[0].type.is_float:
        return None
    a, b = op.operands
    ca, cb = _constant(a), _constant(b)
    if op.operands[0].type == BOOL:
        if op.code == "and":
            return b if ca is True else a if cb is True else None
        if op.code == "or":
            return b if ca is False else a if cb is False else None
        return None
    if op.code in ("add", "or", "xor"):
        return b if ca == 0 else a if cb == 0 else None
    if op.code in ("sub", "shl", "shr"):
        return a if cb == 0 else None
    if op.code == "mul":
        return b if ca == 1 else a if cb == 1 else None
    return a if op.code == "floordiv" and cb == 1 else None


def _fold_ops(kernel: Kernel) -> bool:
    changed = False

    def visit(op: Op, b: Builder) -> object:
        nonlocal changed
        if op.result is None or not isinstance(op.result.type, Scalar) or op.code == "const":
            return KEEP
        t = op.result.type
        if op.code == "block_dim":
            changed = True
            return b.const(kernel.block[op.attrs["axis"]], t)
        if op.code == "dim" and isinstance(a := op.operands[0].type, ArrayType):
            if a.shape is None or a.shape[op.attrs["axis"]] == 0:
                return KEEP
            changed = True
            return b.const(a.shape[op.attrs["axis"]], t)
        if op.code == "select":
            cond = _constant(op.operands[0])
            if cond is None and op.operands[1] is not op.operands[2]:
                return KEEP
            changed = True
            return op.operands[1] if cond or cond is None else op.operands[2]
        values = [_constant(v) for v in op.operands]
        first = op.operands[0].type if op.operands else None
        if values and all(v is not None for v in values) and isinstance(first, Scalar):
            folded = fold(op.code, [v for v in values if v is not None], first, t)
            if folded is not None:
                changed = True
                return b.const(folded, t)
        same = _identity(op)
        if same is not None:
            changed = True
            return same
        return KEEP

    rewrite(kernel, visit)
    return changed


def _ends(region: Region) -> bool:
    return bool(region.ops) and region.ops[-1].code in ops.TERMINATORS


def _flatten(region: Region) -> bool:
    """Replace ``if`` on a constant by the branch taken."""
    changed, out = False, []
    for op in region.ops:
        for r in op.regions:
            changed |= _flatten(r)
        cond = _constant(op.operands[0]) if op.code == "if" else None
        if cond is None:
            out.append(op)
            continue
        changed = True
        taken = op.regions[0 if cond else 1]
        out += taken.ops
        if _ends(taken):
            break  # what follows is never reached
    region.ops = out
    return changed


_REMOVABLE = {code for code, spec in ops.TABLE.items() if spec.pure} | {"get", "shared", "local"}


def _drop_unused(kernel: Kernel) -> bool:
    count = uses(kernel)
    reads = {op.operands[0] for op in kernel.walk() if op.code == "get"}

    def dead(op: Op) -> bool:
        if op.code == "set":
            return op.operands[0] not in reads
        if op.code == "if":
            return not op.regions[0].ops and not op.regions[1].ops
        if op.result is None or count.get(op.result, 0):
            return False
        settled = op.attrs.get("check") == "proved"
        return op.code in _REMOVABLE or op.code == "var" or (op.code in ("load", "floordiv", "mod") and settled)

    changed = False

    def sweep(region: Region) -> None:
        nonlocal changed
        for op in region.ops:
            for r in op.regions:
                sweep(r)
        kept = [op for op in region.ops if not dead(op)]
        changed |= len(kept) != len(region.ops)
        region.ops = kept

    sweep(kernel.body)
    return changed


def simplify(kernel: Kernel) -> None:
    """Fold and sweep until nothing changes."""
    while _fold_ops(kernel) | _flatten(kernel.body) | _drop_unused(kernel):
        pass
