"""Tiles to and from arrays: exact about what lies outside, and watched element by element."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np

from gridwise.ir.core import Op, Value
from gridwise.ir.tiles import element, shape
from gridwise.ir.types import ArrayType, Scalar

from . import atomics
from .access import Access, Translator
from .control import Step
from .conversion import constant
from .findings import Finding
from .frame import Elements, Frame
from .memory import Space, read, write
from .tiles import Tiles, wide

Array = np.ndarray[Any, Any]
Place = tuple[Space, Array, Array, list[Array]]  # array, positions, whether inside, indices: each of the tile's shape


class TileMemory(Tiles):
    """Operations of tile kernels on arrays."""

    access: Translator

    # -- pieces --------------------------------------------------------------------------------------------
    def op_tile_index(self, op: Op) -> Step:
        array, axis, dtype = self.number(op.operands[0]), op.attrs["axis"], _index(op).dtype
        tile = _piece(op.operands[0])
        turn = self.number(op.operands[1]) if len(op.operands) > 1 else None

        def index(f: Frame) -> Array:
            counts = _counts(f.v[array], tile)
            number = f.identity("block_idx", 0) if turn is None else f.v[turn].astype(np.int64)
            return np.asarray(number // max(1, prod(counts[axis + 1 :])) % max(1, counts[axis])).astype(dtype)

        return self.put(op, index)

    def op_tile_count(self, op: Op) -> Step:
        array, tile, dtype = self.number(op.operands[0]), _piece(op.operands[0]), _index(op).dtype
        return self.put(op, lambda f: np.array([prod(_counts(f.v[array], tile))], dtype))

    # -- whole tiles -----------------------------------------------------------------------------------------
    def _starts(self, coordinates: list[int], sides: tuple[int, ...]) -> Callable[[Frame, Space], list[Array]]:
        """First elements, exactly: a coordinate beyond the array stays beyond it."""

        def starts(f: Frame, space: Space) -> list[Array]:
            limits = (max(1, extent) for extent in space.shape)
            return [
                np.clip(f.v[n].astype(np.int64), -1, limit) * side
                for n, limit, side in zip(coordinates, limits, sides, strict=True)
            ]

        return starts

    def op_tile_load(self, op: Op) -> Step:
        assert op.result is not None
        a = self.access.declare(op, "read")
        array, sides = self.number(op.operands[0]), shape(op.result.type)
        starts = self._starts([self.number(v) for v in op.operands[1:]], sides)
        pad = constant(op.attrs["pad"], element(op.result.type))

        def load(f: Frame) -> Array:
            space: Space = f.v[array]
            place = _place(a, space, _indices(starts(f, space), sides))
            return self._read(f, a, place, pad)

        return self.put(op, load)

    def op_tile_store(self, op: Op) -> Step:
        a = self.access.declare(op, "write")
        array, tile = self.number(op.operands[0]), _piece(op.operands[0])
        rank = len(tile)
        whole = self._starts([self.number(v) for v in op.operands[1 : 1 + rank]], tile)
        sides = shape(op.operands[-1].type)
        part = [self.number(v) for v in op.operands[1 + rank : -1]]
        value = self.number(op.operands[-1])

        def store(f: Frame) -> None:
            space: Space = f.v[array]
            inside: list[Array] = [np.zeros(1, np.int64)] * rank
            if part:
                inside = [
                    np.clip(f.v[n].astype(np.int64), -1, side) * mine
                    for n, side, mine in zip(part, tile, sides, strict=True)
                ]
            within = _indices(inside, sides)
            begin = [wide(s, x) for s, x in zip(whole(f, space), within, strict=True)]
            place = _place(a, space, [s + x for s, x in zip(begin, within, strict=True)])
            good = _within(within, tile)
            self._write(f, a, place, good, f.v[value])

        return store

    # -- single elements -------------------------------------------------------------------------------------
    def op_tile_gather(self, op: Op) -> Step:
        assert op.result is not None
        a = self.access.declare(op, "read")
        array, rank = self.number(op.operands[0]), _array(op.operands[0]).rank
        numbers = [self.number(v) for v in op.operands[1 : 1 + rank]]
        mask = self.number(op.operands[-1]) if op.attrs["masked"] else None
        pad = constant(op.attrs["pad"], element(op.result.type))

        def gather(f: Frame) -> Array:
            space, at, good, indices = _place(a, f.v[array], [f.v[n].astype(np.int64) for n in numbers])
            good = good if mask is None else good & f.v[mask]
            return self._read(f, a, (space, at, good, indices), pad)

        return self.put(op, gather)

    def op_tile_scatter(self, op: Op) -> Step:
        a = self.access.declare(op, "write")
        array, tile = self.number(op.operands[0]), _piece(op.operands[0])
        rank = len(tile)
        whole = self._starts([self.number(v) for v in op.operands[1 : 1 + rank]], tile)
        numbers = [self.number(v) for v in op.operands[1 + rank : 1 + 2 * rank]]
        value = self.number(op.operands[1 + 2 * rank])
        mask = self.number(op.operands[-1]) if op.attrs["masked"] else None

        def scatter(f: Frame) -> None:
            space: Space = f.v[array]
            within = [f.v[n].astype(np.int64) for n in numbers]
            good = _within(within, tile)
            # What lies outside the piece is left out; moved to its start, so that the sum cannot wrap.
            safe = [np.where(good, x, 0) for x in within]
            place = _place(a, space, [wide(s, x) + x for s, x in zip(whole(f, space), safe, strict=True)])
            good = good if mask is None else good & f.v[mask]
            self._write(f, a, place, good, f.v[value], scattered=True)

        return scatter

    def op_tile_atomic(self, op: Op) -> Step:
        assert op.result is not None
        a = self.access.declare(op, "scoped" if op.attrs["scope"] == "block" else "atomic")
        array, rank = self.number(op.operands[0]), _array(op.operands[0]).rank
        numbers = [self.number(v) for v in op.operands[1 : 1 + rank]]
        value = self.number(op.operands[1 + rank])
        mask = self.number(op.operands[-1]) if op.attrs["masked"] else None
        fn, t = op.attrs["fn"], element(op.result.type)

        def atomic(f: Frame) -> Array:
            space, at, good, indices = _place(a, f.v[array], [f.v[n].astype(np.int64) for n in numbers])
            good = good if mask is None else good & f.v[mask]
            shaped = (f.n, *f.v[value].shape[1:])
            active = np.broadcast_to(good & wide(f.active(), good), shaped)
            self._watch(f, a, space, at, active, indices)
            chosen = np.broadcast_to(at, shaped)[active]
            values = np.broadcast_to(f.v[value], shaped)[active]
            order = np.arange(chosen.size) if f.launch.random is None else f.launch.random.permutation(chosen.size)
            old = atomics.update(space.view(a.member)[0], chosen[order], fn, t, [values[order]], True)
            assert old is not None
            back, out = np.empty_like(old), np.zeros(shaped, old.dtype)
            back[order] = old
            out[active] = back
            return out

        return self.put(op, atomic)

    # -- bytes -----------------------------------------------------------------------------------------------
    def _read(self, f: Frame, a: Access, place: Place, pad: Array) -> Array:
        space, at, good, indices = place
        self._watch(f, a, space, at, good, indices)
        typed = space.view(a.member)[0]
        out = np.broadcast_to(pad.reshape(()), good.shape).copy()
        at = np.broadcast_to(at, good.shape)
        out[good] = read(typed, at[good], a.member.type)
        return out

    def _write(
        self, f: Frame, a: Access, place: Place, good: Array, values: Array, scattered: bool = False
    ) -> None:
        space, at, inside, indices = place
        shaped = (f.n, *values.shape[1:])
        good = np.broadcast_to(good & inside & wide(f.active(), inside), shaped)
        self._watch(f, a, space, at, good, indices)
        chosen = np.broadcast_to(at, shaped)[good]
        if scattered and f.launch.watch is not None:
            self._collision(f, a, chosen, good, indices)
        write(space.view(a.member)[0], chosen, np.broadcast_to(values, shaped)[good])

    def _watch(self, f: Frame, a: Access, space: Space, at: Array, good: Array, indices: list[Array]) -> None:
        """Tell the sanitizer of each element that an active block touches."""
        watch = f.launch.watch
        if watch is None:
            return
        shaped = (f.n, *good.shape[1:])
        active = np.broadcast_to(good & wide(f.active(), good), shaped).reshape(-1)
        lanes = np.flatnonzero(active)
        each = prod(shaped[1:])
        elements = Elements(f, each, [])
        elements.records = np.repeat(watch.records(f), each)
        flat = [np.broadcast_to(i, shaped).reshape(-1) for i in indices]
        watch.access(elements, a, space, np.broadcast_to(at, shaped).reshape(-1)[lanes], lanes, flat)

    def _collision(self, f: Frame, a: Access, chosen: Array, good: Array, indices: list[Array]) -> None:
        """Two elements of one scatter with one destination."""
        order = np.argsort(chosen, kind="stable")
        again = np.flatnonzero(chosen[order][1:] == chosen[order][:-1])
        watch = f.launch.watch
        assert watch is not None
        key = (self, "race", a.op)
        if again.size == 0 or watch.findings.seen(key):
            return
        k = int(np.flatnonzero(good.reshape(-1))[order[again[0] + 1]])
        lane = k // prod(good.shape[1:])
        at = tuple(int(np.broadcast_to(i, good.shape).reshape(-1)[k]) for i in indices)
        name = f.launch.kernel.name
        text = f"{name}: race on {a.array}[{', '.join(map(str, at))}]: block {lane} scatters two elements there"
        thread = f.thread(lane)
        watch.findings.add(key, Finding("race", text, a.op.loc, a.op.loc, (thread, thread), (a.array, at), name))


def _array(v: Value) -> ArrayType:
    assert isinstance(v.type, ArrayType)
    return v.type


def _piece(v: Value) -> tuple[int, ...]:
    tile = _array(v).tile
    assert tile is not None
    return tile


def _index(op: Op) -> Scalar:
    assert op.result is not None
    return element(op.result.type)


def _counts(space: Space, tile: tuple[int, ...]) -> list[int]:
    """Pieces along each axis."""
    return [-(-extent // side) for extent, side in zip(space.shape, tile, strict=True)]


def _indices(starts: list[Array], sides: tuple[int, ...]) -> list[Array]:
    """Along each axis the index of every element; arrays that broadcast to (lanes, *sides)."""
    rank = len(sides)
    out = []
    for axis, (start, side) in enumerate(zip(starts, sides, strict=True)):
        steps = np.arange(side).reshape((-1,) + (1,) * (rank - 1 - axis))
        out.append(start.reshape((-1,) + (1,) * rank) + steps)
    lanes = max(x.shape[0] for x in out)
    return [np.broadcast_to(x, (lanes, *sides)) for x in out]


def _within(indices: list[Array], extents: tuple[int, ...]) -> Array:
    good: Array = np.ones(1, np.bool_)
    for index, extent in zip(indices, extents, strict=True):
        good = wide(good, index) & (index >= 0) & (index < extent)
    return good


def _place(a: Access, space: Space, indices: list[Array]) -> Place:
    good = _within(indices, space.shape)
    at = space.place(a.member, [np.where(good, i, 0) for i in indices])
    return space, at, good, indices
