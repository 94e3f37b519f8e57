"""Finds the condition that guards a whole kernel (``if i in c:``) and turns it into bounds of the thread loop.

Threads outside the bounds do nothing, so the loop need not visit them and the hot loop needs no test.
"""

from __future__ import annotations

from gridwise.ir import Kernel, Op, Value, ops
from gridwise.ir.types import Scalar
from gridwise.lang.records import dataclass, field

_HARMLESS = frozenset({"var", "local", "get", "set", "assume"})
_FLIPPED = {"lt": "gt", "le": "ge", "gt": "lt", "ge": "le"}
_NEGATED = {"lt": "ge", "le": "gt", "gt": "le", "ge": "lt"}


@dataclass
class Bound:
    """x < value + extra (``upper``) or x >= value + extra, for the global x of every thread that does anything."""

    upper: bool
    value: Value
    extra: int


@dataclass
class Guards:
    """``known``: conditions with the truth that they have for every thread in bounds."""

    bounds: list[Bound] = field(default_factory=list)
    known: dict[Value, bool] = field(default_factory=dict)


def find_guards(kernel: Kernel) -> Guards:
    """The guards at the start of ``kernel``, as far as they bound the global x."""
    guards = Guards()
    body = kernel.body.ops
    at = 0
    while at < len(body):
        op = body[at]
        if op.code == "if" and not op.regions[1].ops:
            inside = op.regions[0].ops
            if at == len(body) - 1:
                _collect(op.operands[0], True, guards)
                body, at = inside, 0
                continue
            if len(inside) == 1 and inside[0].code == "return":
                _collect(op.operands[0], False, guards)
                at += 1
                continue
            break
        if not (ops.TABLE[op.code].pure or op.code in _HARMLESS):
            break
        at += 1
    return guards


def _collect(cond: Value, truth: bool, guards: Guards) -> None:
    """Every part of ``cond`` that must be ``truth`` for a thread to do anything."""
    op = cond.op
    if op is None:
        return
    if op.code == ("and" if truth else "or"):
        for v in op.operands:
            _collect(v, truth, guards)
        return
    if op.code == "not":
        _collect(op.operands[0], not truth, guards)
        return
    if op.code not in _FLIPPED:
        return
    code, (a, b) = op.code, op.operands
    if not _is_x(a):
        code, a, b = _FLIPPED[code], b, a
    if not _is_x(a) or not _is_settled(b):
        return
    code = code if truth else _NEGATED[code]
    guards.bounds.append(Bound(code in ("lt", "le"), b, int(code in ("le", "gt"))))
    guards.known[cond] = truth


def _is_x(v: Value) -> bool:
    """The global x itself, or a conversion that keeps its value (it is below 2**62, or 2**30 if 32 bits wide)."""
    op = v.op
    while op is not None and op.code in ("cast", "bitcast"):
        source, target = op.operands[0].type, v.type
        if not (isinstance(source, Scalar) and isinstance(target, Scalar)):
            return False
        if not (source.is_int and target.is_int and target.bits >= source.bits):
            return False
        v = op.operands[0]
        op = v.op
    return op is not None and op.code == "global_idx" and op.attrs["axis"] == 0


def closure(v: Value, limit: int = 24) -> list[Op] | None:
    """The pure operations that ``v`` comes from, in order, or None if it is not made of such alone."""
    out: dict[Op, None] = {}

    def visit(v: Value) -> bool:
        op = v.op
        if op is None:
            return True  # a parameter or a loop's index
        if op in out:
            return True
        if not ops.TABLE[op.code].pure or len(out) >= limit:
            return False
        if op.code != "dim" and not all(visit(o) for o in op.operands):
            return False
        out[op] = None
        return True

    return list(out) if visit(v) else None


def _is_settled(v: Value) -> bool:
    """Is ``v`` the same for all threads of a row, and known before any of them starts? (No guard is in a loop.)"""
    found = closure(v)
    return found is not None and not any(
        op.code in ("thread_idx", "block_idx") or (op.code == "global_idx" and op.attrs["axis"] == 0) for op in found
    )
