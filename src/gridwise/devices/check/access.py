"""Loads, stores and atomics of the interpreter: bounds first, then memory, then the watch over it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from gridwise.ir.core import Op, Site, Value
from gridwise.ir.types import ArrayType, Scalar, VectorType

from . import atomics
from .arithmetic import unsigned_view
from .frame import Frame
from .memory import Member, Space, member, private_shape, private_space, read, write

if TYPE_CHECKING:
    from .interpret import Program

Array = np.ndarray[Any, Any]
Step = Callable[[Frame], None]

__all__ = ["Access", "Translator", "private", "private_shape"]


@dataclass(frozen=True, eq=False)
class Access:
    """One memory operation of the kernel, as findings name it."""

    number: int
    kind: str  # "read", "write", "atomic", "scoped" (an atomic of block scope)
    op: Op
    array: str
    member: Member


def private(name: str, array: Value) -> Callable[[Frame], Space]:
    """Makes a shared or local array at the start of each batch."""
    type = array.type
    assert isinstance(type, ArrayType)

    def make(f: Frame) -> Space:
        shape = private_shape(type, f.launch.shared_bytes)
        if type.space == "local":
            space = private_space(name, type, shape, f.n, np.arange(f.n))
        else:
            space = private_space(name, type, shape, len(f.blocks), f.owner())
            if f.launch.watch is not None:
                f.launch.watch.open(space, array)
        return space

    return make


class Translator:
    """Turns memory operations into steps; numbers them for the watch."""

    def __init__(self, program: Program):
        self.program = program
        self.accesses: list[Access] = []

    def declare(self, op: Op, kind: str) -> Access:
        array = op.operands[0]
        assert isinstance(array.type, ArrayType)
        m = member(array.type.elem, op.attrs.get("field", ()))
        name = self.program.names.get(array, array.name)
        self.accesses.append(Access(len(self.accesses), kind, op, name, m))
        return self.accesses[-1]

    def _locator(self, a: Access) -> Callable[[Frame], tuple[Space, Array, Array | None, list[Array]]]:
        """(array, positions, lanes, indices): active lanes whose indices are in range; lanes None means every lane."""
        op, m = a.op, a.member
        t = op.operands[0].type
        assert isinstance(t, ArrayType)
        rank = t.rank
        array = self.program.number(op.operands[0])
        numbers = [self.program.number(v) for v in op.operands[1 : 1 + rank + len(m.counts)]]
        sites = [Site("index", op.loc, a.array, axis) for axis in range(rank)]
        sites += [Site("index", op.loc, a.array + path, 0) for _, _, path in m.counts]
        counts = [count for count, _, _ in m.counts]

        def locate(f: Frame) -> tuple[Space, Array, Array | None, list[Array]]:
            space: Space = f.v[array]
            indices = [f.v[n] for n in numbers]
            extents = (*space.shape, *counts)
            good: Array | None = None
            for index, extent in zip(indices, extents, strict=True):
                # Read as unsigned, a negative index lies beyond any extent.
                ok = unsigned_view(np.ascontiguousarray(index)) < extent
                if np.count_nonzero(ok) != ok.size:
                    good = ok if good is None else good & ok
            if good is None and f.mask is None:
                return space, space.place(m, indices), None, indices
            if good is None:
                lanes = f.lanes()
            else:
                active = f.active()
                bad = active & ~good
                if bad.any():
                    self._out_of_range(f, bad, sites, indices, extents)
                lanes = np.flatnonzero(active & good)
            part = [i if i.shape[0] == 1 else i[lanes] for i in indices]
            at = space.place(m, part, lanes)
            return space, at if at.shape[0] == lanes.size else np.repeat(at, lanes.size), lanes, indices

        return locate

    def _out_of_range(
        self, f: Frame, bad: Array, sites: list[Site], indices: list[Array], extents: tuple[int, ...]
    ) -> None:
        for site, index, extent in zip(sites, indices, extents, strict=True):
            wrong = bad & (unsigned_view(np.ascontiguousarray(index)) >= extent)
            if wrong.any():
                f.fault(wrong, site, index, extent)
                bad = bad & ~wrong  # a thread's first wrong axis is its fault

    # -- operations --------------------------------------------------------------------------------------------
    def load(self, op: Op) -> Step:
        assert op.result is not None
        a = self.declare(op, "read")
        locate, to = self._locator(a), self.program.number(op.result)
        m = a.member

        def load(f: Frame) -> None:
            space, at, lanes, indices = locate(f)
            values = read(space.view(m)[0], at, m.type)
            if f.launch.watch is not None:
                f.launch.watch.access(f, a, space, at, lanes, indices)
            if lanes is not None:
                whole = np.zeros(f.n, values.dtype)
                whole[lanes] = values
                values = whole
            f.v[to] = values

        return load

    def store(self, op: Op) -> Step:
        a = self.declare(op, "write")
        locate, value = self._locator(a), self.program.number(op.operands[-1])
        m = a.member

        def store(f: Frame) -> None:
            space, at, lanes, indices = locate(f)
            values = f.v[value]
            if values.shape[0] > 1:
                if lanes is not None:
                    values = values[lanes]
                elif at.shape[0] == 1:
                    at = np.repeat(at, f.n)
            if f.launch.watch is not None:
                f.launch.watch.access(f, a, space, at, lanes, indices)
                if f.launch.random is not None and values.shape[0] > 1 and f.launch.random.integers(2):
                    at, values = at[::-1], values[::-1]  # another thread may well be the last
            write(space.view(m)[0], at, values)

        return store

    def atomic(self, op: Op) -> Step:
        assert op.result is not None
        a = self.declare(op, "scoped" if op.attrs["scope"] == "block" else "atomic")
        locate, to = self._locator(a), self.program.number(op.result)
        fn, m = op.attrs["fn"], a.member
        values = [self.program.number(v) for v in op.operands[-(2 if fn == "compare_exchange" else 1) :]]
        used = any(op.result in o.operands for o in self.program.kernel.body.walk())

        def atomic(f: Frame) -> None:
            space, at, lanes, indices = locate(f)
            if f.launch.watch is not None:
                f.launch.watch.access(f, a, space, at, lanes, indices)
            where = np.arange(f.n) if lanes is None else lanes
            if at.shape[0] == 1:
                at = np.repeat(at, where.size)
            operands = [f.all(f.v[n])[where] for n in values]
            if f.launch.random is not None:
                order = f.launch.random.permutation(where.size)
                where, at, operands = where[order], at[order], [o[order] for o in operands]
            old = atomics.update(space.view(m)[0], at, fn, m.type, operands, used)
            if old is not None:
                whole = np.zeros(f.n, old.dtype)
                whole[where] = old
                f.v[to] = whole

        return atomic

    # -- several consecutive elements a thread (made by passes/vectorise) ----------------------------------------
    def _vector(self, op: Op, kind: str, type: Any) -> tuple[Access, Callable[[Frame], Any], int]:
        assert isinstance(type, VectorType) and isinstance(type.elem, Scalar)
        a = self.declare(op, kind)
        return a, self._locator(a), type.lanes

    def vload(self, op: Op) -> Step:
        assert op.result is not None
        a, locate, width = self._vector(op, "read", op.result.type)
        to = self.program.number(op.result)
        steps = np.arange(width)

        def load(f: Frame) -> None:
            space, at, lanes, indices = locate(f)
            values = read(space.view(a.member)[0], at[:, None] + steps, a.member.type)
            if f.launch.watch is not None:
                for n in range(width):
                    f.launch.watch.access(f, a, space, at + n, lanes, indices, n)
            if lanes is not None:
                whole = np.zeros((f.n, width), values.dtype)
                whole[lanes] = values
                values = whole
            f.v[to] = values

        return load

    def vstore(self, op: Op) -> Step:
        a, locate, width = self._vector(op, "write", op.operands[-1].type)
        value = self.program.number(op.operands[-1])
        steps = np.arange(width)

        def store(f: Frame) -> None:
            space, at, lanes, indices = locate(f)
            values = f.all(f.v[value]) if lanes is None else f.all(f.v[value])[lanes]
            if at.shape[0] != values.shape[0]:
                at = np.repeat(at, values.shape[0])
            if f.launch.watch is not None:
                for n in range(width):
                    f.launch.watch.access(f, a, space, at + n, lanes, indices, n)
            write(space.view(a.member)[0], at[:, None] + steps, values)

        return store
