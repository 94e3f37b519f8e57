"""The meaning of operations on tiles. A lane is a block; a tile is an array whose first axis is the lanes.

As elsewhere a first axis of length 1 stands for "the same in every lane". Memory is in ``tile_memory.py``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gridwise.ir.core import Op, Region, Site
from gridwise.ir.tiles import element, shape
from gridwise.ir.types import I32, Scalar, TileType

from .arithmetic import function
from .control import Control, Step
from .conversion import from_wide, to_wide
from .frame import Elements, Frame

Array = np.ndarray[Any, Any]
Combine = Callable[[Array, Array], Array]


def wide(cond: Array, like: Array) -> Array:
    """A condition a lane, with axes to meet a tile (or a vector) a lane."""
    return cond.reshape(cond.shape + (1,) * (like.ndim - cond.ndim))


def by_lane(bad: Array) -> Array:
    """Whether any element of a lane's tile is true."""
    return bad if bad.ndim == 1 else np.asarray(bad.any(axis=tuple(range(1, bad.ndim))))


def order_key(x: Array, t: Scalar) -> Array:
    """Integers in the order of the values: -0.0 below +0.0, every NaN above the rest."""
    if t.kind == "bool":
        return x.astype(np.int8)
    if not t.is_float:
        return x
    size = x.dtype.itemsize
    bits = np.ascontiguousarray(x).view(np.dtype(f"i{size}"))
    key = np.where(bits < 0, bits ^ np.iinfo(bits.dtype).max, bits)
    return np.where(np.isnan(to_wide(x)), np.iinfo(bits.dtype).max, key)


def argsort(x: Array, t: Scalar, axis: int, descending: bool) -> Array:
    key = order_key(x, t)
    return np.argsort(~key if descending else key, axis=axis, kind="stable")


def fold(x: Array, axis: int, combine: Combine) -> Array:
    """Neighbours in pairs until one is left: any associative function, whether it commutes or not."""
    while x.shape[axis] > 1:
        n = x.shape[axis]
        pairs = combine(_part(x, axis, slice(0, n - n % 2, 2)), _part(x, axis, slice(1, n, 2)))
        x = np.concatenate((pairs, _part(x, axis, slice(n - 1, n))), axis) if n % 2 else pairs
    return np.asarray(np.squeeze(x, axis))


def scan(x: Array, axis: int, combine: Combine) -> Array:
    out = [_part(x, axis, slice(0, 1))]
    for n in range(1, x.shape[axis]):
        out.append(combine(out[-1], _part(x, axis, slice(n, n + 1))))
    return np.concatenate(out, axis)


def _part(x: Array, axis: int, at: slice) -> Array:
    return x[(slice(None),) * axis + (at,)]


class Tiles(Control):
    """Operations of tile kernels that touch no array."""

    def put(self, op: Op, f: Callable[[Frame], Any]) -> Step:
        raise NotImplementedError

    def _tile(self, op: Op, f: Callable[[Array], Any]) -> Step:
        """A function of one tile."""
        a = self.number(op.operands[0])
        return self.put(op, lambda frame: f(frame.v[a]))

    # -- shapes --------------------------------------------------------------------------------------------
    def op_tile_broadcast(self, op: Op) -> Step:
        assert op.result is not None
        to = shape(op.result.type)

        def broadcast(x: Array) -> Array:
            x = x.reshape(x.shape[:1] + (1,) * (1 + len(to) - x.ndim) + x.shape[1:])
            return np.broadcast_to(x, x.shape[:1] + to)

        return self._tile(op, broadcast)

    def op_tile_iota(self, op: Op) -> Step:
        assert op.result is not None
        (n,), elem = shape(op.result.type), element(op.result.type)
        value = np.arange(n).astype(elem.dtype)[None]
        return self.put(op, lambda f: value)

    def op_tile_reshape(self, op: Op) -> Step:
        assert op.result is not None
        to = shape(op.result.type)
        return self._tile(op, lambda x: x.reshape(x.shape[:1] + to))

    def op_tile_permute(self, op: Op) -> Step:
        axes = (0, *(a + 1 for a in op.attrs["axes"]))
        return self._tile(op, lambda x: x.transpose(axes))

    def op_tile_cat(self, op: Op) -> Step:
        of, axis = [self.number(v) for v in op.operands], op.attrs["axis"] + 1

        def cat(f: Frame) -> Array:
            tiles = [f.v[n] for n in of]
            lanes = max(x.shape[0] for x in tiles)
            return np.concatenate([np.broadcast_to(x, (lanes, *x.shape[1:])) for x in tiles], axis)

        return self.put(op, cat)

    def op_tile_slice(self, op: Op) -> Step:
        assert op.result is not None
        parts = zip(op.attrs["starts"], op.attrs["steps"], shape(op.result.type), strict=True)
        at = (slice(None), *np.ix_(*(start + step * np.arange(count) for start, step, count in parts)))
        return self._tile(op, lambda x: x[at])

    def op_tile_extract(self, op: Op) -> Step:
        assert op.result is not None
        t = op.operands[0].type
        assert isinstance(t, TileType)
        a, coordinates = self.number(op.operands[0]), [self.number(v) for v in op.operands[1:]]
        sides = shape(op.result.type)
        counts = [whole // side for whole, side in zip(t.shape, sides, strict=True)]
        sites = [Site("index", op.loc, "tile", axis) for axis in range(t.rank)]

        def extract(f: Frame) -> Array:
            x = f.all(f.v[a])
            good = np.ones(f.n, np.bool_)
            starts = []
            for n, count, side, site in zip(coordinates, counts, sides, sites, strict=True):
                at = f.all(f.v[n])
                ok = (at >= 0) & (at < count)
                bad = good & ~ok & f.active()
                if bad.any():
                    f.fault(bad, site, at, count)
                good &= ok
                starts.append(np.where(ok, at, 0).astype(np.int64) * side)
            lanes = np.arange(f.n).reshape((-1,) + (1,) * t.rank)
            where = tuple(
                wide(start, x) + np.arange(side).reshape((-1,) + (1,) * (t.rank - 1 - axis))
                for axis, (start, side) in enumerate(zip(starts, sides, strict=True))
            )
            found = x[(lanes, *where)]
            return np.where(wide(good, found), found, np.zeros((), x.dtype))

        return self.put(op, extract)

    # -- along an axis -------------------------------------------------------------------------------------
    def _combine(self, op: Op, fn: str, t: Scalar) -> Callable[[Frame], Combine]:
        if fn == "custom":
            body = self._scalar_function(op.regions[0])
            return lambda f: lambda a, b: body(f, [a, b])
        code = {"sum": "add", "prod": "mul"}.get(fn, fn)
        f = function(code, t)
        return lambda frame: f

    def op_tile_reduce(self, op: Op) -> Step:
        a, t = self.number(op.operands[0]), element(op.operands[0].type)
        fn, axis = op.attrs["fn"], op.attrs["axis"] + 1
        if fn in ("argmax", "argmin"):
            find = np.argmax if fn == "argmax" else np.argmin
            return self.put(op, lambda f: np.asarray(find(to_wide(f.v[a]), axis)).astype(np.int32))
        if fn == "sum" and t.is_float:
            sums = np.float64 if t.bits == 64 else np.float32
            return self.put(op, lambda f: from_wide(np.sum(f.v[a].astype(sums), axis, sums), t))
        if fn == "prod" and t.bits < 32 and t.is_float:
            return self.put(op, lambda f: from_wide(fold(to_wide(f.v[a]), axis, np.multiply), t))
        combine = self._combine(op, fn, t)
        return self.put(op, lambda f: fold(f.v[a], axis, combine(f)))

    def op_tile_scan(self, op: Op) -> Step:
        a, t = self.number(op.operands[0]), element(op.operands[0].type)
        fn, axis, reverse = op.attrs["fn"], op.attrs["axis"] + 1, op.attrs["reverse"]
        combine = self._combine(op, fn, t)
        narrow = t.is_float and t.bits < 32 and fn in ("sum", "prod")

        def run(f: Frame) -> Array:
            x = np.flip(f.v[a], axis) if reverse else f.v[a]
            if narrow:
                x = from_wide(scan(to_wide(x), axis, np.add if fn == "sum" else np.multiply), t)
            else:
                x = scan(x, axis, combine(f))
            return np.flip(x, axis) if reverse else x

        return self.put(op, run)

    def op_tile_sort(self, op: Op) -> Step:
        t, axis, down = element(op.operands[0].type), op.attrs["axis"] + 1, op.attrs["descending"]
        return self._tile(op, lambda x: np.take_along_axis(x, argsort(x, t, axis, down), axis))

    def op_tile_argsort(self, op: Op) -> Step:
        t, axis, down = element(op.operands[0].type), op.attrs["axis"] + 1, op.attrs["descending"]
        return self._tile(op, lambda x: argsort(x, t, axis, down).astype(np.int32))

    def op_tile_take(self, op: Op) -> Step:
        a, index = (self.number(v) for v in op.operands)
        t, axis = op.operands[0].type, op.attrs["axis"]
        assert isinstance(t, TileType)
        side, site = t.shape[axis], Site("index", op.loc, "tile", axis)

        def take(f: Frame) -> Array:
            x, at = f.all(f.v[a]), f.all(f.v[index])
            good = (at >= 0) & (at < side)
            bad = by_lane(~good) & f.active()
            if bad.any():
                first = np.argmax(~good.reshape(f.n, -1), axis=1)
                f.fault(bad, site, at.reshape(f.n, -1)[np.arange(f.n), first], side)
            found = np.take_along_axis(x, np.where(good, at, 0).astype(np.int64), axis + 1)
            return np.where(good, found, np.zeros((), x.dtype))

        return self.put(op, take)

    def op_tile_histogram(self, op: Op) -> Step:
        bins = op.attrs["bins"]

        def count(x: Array) -> Array:
            rows = x.reshape(x.shape[0], -1)
            counts = [np.bincount(r[(r >= 0) & (r < bins)].astype(np.int64), minlength=bins) for r in rows]
            return np.stack(counts)

        return self._tile(op, lambda x: count(x).astype(I32.dtype))

    # -- products and functions ------------------------------------------------------------------------------
    def op_tile_mma(self, op: Op) -> Step:
        assert op.result is not None
        of, t = [self.number(v) for v in op.operands], element(op.result.type)

        def product(f: Frame) -> Array:
            a, b, c = (f.v[n] for n in of)
            if not t.is_float:
                return np.asarray(np.matmul(a.astype(np.int32), b.astype(np.int32)) + c)
            # In f64, and rounded once: every order of the sums is near this.
            exact = np.matmul(_f64(a), _f64(b)) + _f64(c)
            return from_wide(exact, t)

        return self.put(op, product)

    def op_tile_map(self, op: Op) -> Step:
        of, body = [self.number(v) for v in op.operands], self._scalar_function(op.regions[0])
        return self.put(op, lambda f: body(f, [f.v[n] for n in of]))

    def _scalar_function(self, region: Region) -> Callable[[Frame, list[Array]], Array]:
        """A region of scalars as a function of tiles: each element is a lane of its own."""
        args, step = [self.number(a) for a in region.args], self.region(region)
        result = self.number(region.ops[-1].operands[0])
        inside = {r for op in region.walk() for r in (op.result, *(a for g in op.regions for a in g.args))}
        used = {v for op in region.walk() for v in op.operands}
        outer = [self.number(v) for v in used - inside - set(region.args)]

        def run(f: Frame, tiles: list[Array]) -> Array:
            sides = np.broadcast_shapes(*(x.shape for x in tiles))
            each = int(np.prod(sides[1:]))
            whole = (f.n, *sides[1:])
            inner = Elements(f, each, outer)
            for n, x in zip(args, tiles, strict=True):
                inner.v[n] = np.broadcast_to(x, whole).reshape(-1)
            step(inner)
            return np.asarray(inner.all(inner.v[result]).reshape(whole))

        return run


def _f64(x: Array) -> Array:
    return to_wide(x).astype(np.float64)

