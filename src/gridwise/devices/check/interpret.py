"""The IR, executed: each operation becomes a Python closure over NumPy arrays, once a kernel.

Threads run in lockstep under masks, a batch of blocks at a time. ``if`` narrows the mask; ``break``, ``continue``,
``leave`` and ``return`` take lanes out of it until the construct that they end gives them back. A batch runs whole
blocks, so that a barrier is a point that all its lanes have reached.

Faults are recorded as ``ir/ops.py`` says: the access does not happen, the thread goes on, and the launch keeps the
first fault of the smallest thread.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np

from gridwise.ir.core import Kernel, Op, Region, Site, Value
from gridwise.ir.tiles import shape
from gridwise.ir.types import ArrayType, Scalar, TileType, VectorType

from .. import printing
from . import access
from .arithmetic import CODES, function
from .control import CONTROL, Step
from .conversion import bitcast, cast, constant
from .frame import NOTHING, Frame, Launch
from .functions import call
from .tile_memory import TileMemory
from .tiles import by_lane, wide

Array = np.ndarray[Any, Any]

LANES = 1 << 16  # threads a batch
PRIVATE_BYTES = 1 << 28  # shared and local memory a batch


class Program(TileMemory):
    """A kernel translated once; ``run`` executes a launch."""

    def __init__(self, kernel: Kernel, coverage: bool = False):
        self.kernel, self.coverage = kernel, coverage
        self.numbers: dict[Value, int] = {}
        self.names: dict[Value, str] = {p.value: p.name for p in kernel.params}
        self.access = access.Translator(self)
        for p in kernel.params:
            self.number(p.value)
        self.body = self.region(kernel.body)
        self.private = [op.result.type for op in kernel.body.ops if op.code in ("shared", "local") and op.result]

    def number(self, value: Value) -> int:
        return self.numbers.setdefault(value, len(self.numbers))

    # -- running -------------------------------------------------------------------------------------------
    def run(self, launch: Launch) -> None:
        """Execute every block of the launch."""
        total = prod(launch.grid)
        if total == 0:
            return
        order = np.arange(total) if launch.random is None else launch.random.permutation(total)
        step = self.batch(launch)
        with np.errstate(all="ignore"):
            for at in range(0, total, step):
                frame = Frame(launch, order[at : at + step], len(self.numbers))
                for p, argument in zip(self.kernel.params, launch.arguments, strict=True):
                    frame.v[self.numbers[p.value]] = argument
                self.body(frame)

    def batch(self, launch: Launch) -> int:
        """Blocks that run together."""
        threads = prod(self.kernel.block)
        if self.kernel.tiled:
            types = [op.result.type for op in self.kernel.walk() if op.result]
            return max(1, LANES // max((t.size for t in types if isinstance(t, TileType)), default=1))
        each = 0
        for t in self.private:
            assert isinstance(t, ArrayType)
            size = prod(access.private_shape(t, launch.shared_bytes)) * t.elem.size
            each += size * (threads if t.space == "local" else 1)
        return max(1, min(LANES // threads, PRIVATE_BYTES // each if each else LANES))

    # -- translation ---------------------------------------------------------------------------------------
    def region(self, region: Region) -> Step:
        """The operations of a region, as one step."""
        steps: list[tuple[Step, bool]] = []
        at: tuple[str, int] | None = None
        for arg in region.args:
            self.number(arg)
        for op in region.ops:
            if self.coverage and op.loc is not None and (op.loc.file, op.loc.line) != at:
                at = (op.loc.file, op.loc.line)
                steps.append((_mark(op), False))
            steps.append((self.op(op), op.code in CONTROL))

        def run(f: Frame) -> None:
            for step, control in steps:
                step(f)
                if control and f.mask is NOTHING:
                    return

        return run

    def op(self, op: Op) -> Step:
        if op.code in CODES:
            return self.compute(op, function(op.code, _scalar(op.operands[0])))
        step: Step = getattr(self, f"op_{op.code}")(op)
        return step

    def compute(self, op: Op, f: Callable[..., Array]) -> Step:
        """A pure operation: ``f`` of its operands, on all lanes whether active or not."""
        assert op.result is not None
        to, of = self.number(op.result), [self.number(v) for v in op.operands]
        if op.code in ("floordiv", "mod") and _scalar(op.operands[0]).is_int:
            return self.division(op, f)
        if len(of) == 1:
            (a,) = of

            def unary(frame: Frame) -> None:
                frame.v[to] = f(frame.v[a])

            return unary
        if len(of) == 2:
            a, b = of

            def binary(frame: Frame) -> None:
                frame.v[to] = f(frame.v[a], frame.v[b])

            return binary

        def general(frame: Frame) -> None:
            frame.v[to] = f(*(frame.v[n] for n in of))

        return general

    def division(self, op: Op, f: Callable[..., Array]) -> Step:
        assert op.result is not None
        to, a, b = self.number(op.result), self.number(op.operands[0]), self.number(op.operands[1])
        site = Site("zero_division", op.loc)

        def divide(frame: Frame) -> None:
            zero = frame.v[b] == 0
            if zero.any():
                zero = by_lane(zero)
                bad = zero if frame.mask is None else zero & frame.mask
                if bad.any():
                    frame.fault(bad, site)
            frame.v[to] = f(frame.v[a], frame.v[b])

        return divide

    # -- constants, identities, conversions ------------------------------------------------------------------
    def put(self, op: Op, f: Callable[[Frame], Any]) -> Step:
        assert op.result is not None
        to = self.number(op.result)

        def put(frame: Frame) -> None:
            frame.v[to] = f(frame)

        return put

    def op_const(self, op: Op) -> Step:
        with np.errstate(all="ignore"):
            value = constant(op.attrs["value"], _result(op))
        return self.put(op, lambda f: value)

    def _identity(self, op: Op) -> Step:
        code, axis, dtype = op.code, op.attrs["axis"], _result(op).dtype
        return self.put(op, lambda f: f.identity(code, axis).astype(dtype))

    op_thread_idx = op_block_idx = op_global_idx = _identity

    def op_block_dim(self, op: Op) -> Step:
        value = np.array([self.kernel.block[op.attrs["axis"]]], _result(op).dtype)
        return self.put(op, lambda f: value)

    def op_grid_dim(self, op: Op) -> Step:
        axis, dtype = op.attrs["axis"], _result(op).dtype
        return self.put(op, lambda f: np.array([f.launch.grid[axis]], dtype))

    def op_dim(self, op: Op) -> Step:
        array, axis, dtype = self.number(op.operands[0]), op.attrs["axis"], _result(op).dtype
        return self.put(op, lambda f: np.array([f.v[array].shape[axis]], dtype))

    def op_select(self, op: Op) -> Step:
        c, a, b = (self.number(v) for v in op.operands)

        def choose(f: Frame) -> Array:
            cond, x, y = f.v[c], f.v[a], f.v[b]
            return np.asarray(np.where(wide(cond, x), x, y))

        return self.put(op, choose)

    def op_cast(self, op: Op) -> Step:
        a, of, to = self.number(op.operands[0]), _scalar(op.operands[0]), _result(op)
        return self.put(op, lambda f: cast(f.v[a], of, to))

    def op_bitcast(self, op: Op) -> Step:
        a, to = self.number(op.operands[0]), _result(op)
        return self.put(op, lambda f: bitcast(f.v[a], to))

    def op_math(self, op: Op) -> Step:
        return self.compute(op, call(op.attrs["fn"], _scalar(op.operands[0]), _result(op)))

    def op_lane(self, op: Op) -> Step:
        a, n = self.number(op.operands[0]), op.attrs["index"]
        return self.put(op, lambda f: f.v[a][:, n])

    def op_pack(self, op: Op) -> Step:
        of = [self.number(v) for v in op.operands]
        return self.put(op, lambda f: np.stack(np.broadcast_arrays(*(f.v[n] for n in of)), axis=1))

    # -- variables -------------------------------------------------------------------------------------------
    def op_var(self, op: Op) -> Step:
        return self.put(op, lambda f: None)

    def op_get(self, op: Op) -> Step:
        assert op.result is not None
        var, zero = self.number(op.operands[0]), np.zeros((1, *shape(op.result.type)), _result(op).dtype)

        def get(f: Frame) -> Array:
            value = f.v[var]
            return np.asarray(zero if value is None else value)  # unspecified: the frontend proves that nobody looks

        return self.put(op, get)

    def op_set(self, op: Op) -> Step:
        var, new = self.number(op.operands[0]), self.number(op.operands[1])

        def set(f: Frame) -> None:
            old, value = f.v[var], f.v[new]
            whole = f.mask is None or old is None
            f.v[var] = value if whole else np.where(wide(f.active(), value), value, old)

        return set

    # -- memory: see access.py ---------------------------------------------------------------------------------
    def op_shared(self, op: Op) -> Step:
        assert op.result is not None
        self.names[op.result] = op.attrs["name"]
        return self.put(op, access.private(op.attrs["name"], op.result))

    op_local = op_shared

    def op_load(self, op: Op) -> Step:
        return self.access.load(op)

    def op_store(self, op: Op) -> Step:
        return self.access.store(op)

    def op_atomic(self, op: Op) -> Step:
        return self.access.atomic(op)

    def op_vload(self, op: Op) -> Step:
        return self.access.vload(op)

    def op_vstore(self, op: Op) -> Step:
        return self.access.vstore(op)

    # -- cooperation -------------------------------------------------------------------------------------------
    def op_barrier(self, op: Op) -> Step:
        def barrier(f: Frame) -> None:
            if f.launch.watch is not None:
                f.launch.watch.barrier(f, op)
            f.epoch = f.epoch + 1 if f.mask is None else np.where(f.active(), f.epoch + 1, f.epoch)

        return barrier

    def op_subgroup(self, op: Op) -> Step:
        fn, to = op.attrs["fn"], _result(op)
        of = [self.number(v) for v in op.operands]
        type = _scalar(op.operands[0]) if op.operands else to

        def subgroup(f: Frame) -> Array:
            groups = f.subgroups()
            if fn == "size":
                return np.array([groups.size], to.dtype)
            if fn == "lane":
                return groups.rank.astype(to.dtype)
            active = f.active()
            if f.launch.watch is not None:
                f.launch.watch.subgroup(f, op)
            args = [f.all(f.v[n]) for n in of]
            if fn == "ballot":
                return groups.ballot(args[0], active).astype(to.dtype)
            if fn in ("any", "all"):
                return groups.vote(fn, args[0], active)
            if fn.startswith("reduce_"):
                return groups.reduce(fn.removeprefix("reduce_"), args[0], active, type)
            if fn.startswith("scan_"):
                return groups.scan(args[0], active, type, inclusive=fn == "scan_add")
            return groups.shuffle(fn, args[0], args[1], active)

        return self.put(op, subgroup)

    # -- faults, facts, output -----------------------------------------------------------------------------------
    def op_assert(self, op: Op) -> Step:
        cond, site = self.number(op.operands[0]), Site("assertion", op.loc, op.attrs["message"])

        def check(f: Frame) -> None:
            bad = by_lane(~f.v[cond])
            bad = bad if f.mask is None else bad & f.mask
            if bad.any():
                f.fault(bad, site)

        return check

    def op_assume(self, op: Op) -> Step:
        cond = self.number(op.operands[0])

        def check(f: Frame) -> None:
            if f.launch.watch is not None:
                bad = ~f.v[cond] if f.mask is None else ~f.v[cond] & f.mask
                if bad.any():
                    f.launch.watch.assumption(f, op, bad)

        return check

    def op_fault(self, op: Op) -> Step:
        cond, *detail = (self.number(v) for v in op.operands)
        site = self.kernel.sites

        def record(f: Frame) -> None:
            bad = f.v[cond] if f.mask is None else f.v[cond] & f.mask
            if bad.any():
                f.fault(bad, site[op.attrs["site"]], *(f.v[n] for n in detail))

        return record

    def op_print(self, op: Op) -> Step:
        of = [self.number(v) for v in op.operands]

        def write(f: Frame) -> None:
            lanes = np.flatnonzero(f.active())
            columns = [f.all(f.v[n])[lanes] for n in of]
            for row, thread in enumerate(f.linear()[lanes].tolist()):
                f.launch.printed.append((thread, len(f.launch.printed), printing.line(op, [c[row] for c in columns])))

        return write


def _mark(op: Op) -> Step:
    assert op.loc is not None
    file, line = op.loc.file, op.loc.line

    def mark(f: Frame) -> None:
        if f.launch.lines is not None:
            f.launch.lines.setdefault(file, set()).add(line)

    return mark


def _scalar(value: Value) -> Scalar:
    """The scalar type of a value, or of the elements of a vector or tile."""
    t = value.type
    assert isinstance(t, Scalar | VectorType | TileType)
    return t if isinstance(t, Scalar) else t.elem


def _result(op: Op) -> Scalar:
    assert op.result is not None
    return _scalar(op.result)
