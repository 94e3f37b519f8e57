"""Appends operations to a region, working out result types, so that no caller assembles an Op by hand."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from gridwise.lang.errors import Loc

from . import ops, tiles
from .core import Op, Region, Value
from .types import BOOL, ArrayType, Field, Scalar, TileType, VarType, VectorType


class Builder:
    """Builds into ``region``; ``loc`` is given to every operation until it changes."""

    def __init__(self, region: Region, index: Scalar, loc: Loc | None = None):
        self.region = region
        self.index = index
        self.loc = loc
        self.top = region  # where var, shared and local go

    # -- placing ---------------------------------------------------------------------------------------
    def emit(
        self,
        code: str,
        operands: list[Value] | tuple[Value, ...] = (),
        result: Any = None,
        regions: list[Region] | None = None,
        name: str = "",
        **attrs: Any,
    ) -> Op:
        op = Op(code, operands, attrs, regions, result, self.loc, name)
        self.region.ops.append(op)
        return op

    def value(self, code: str, operands: list[Value] | tuple[Value, ...], result: Any, **attrs: Any) -> Value:
        op = self.emit(code, operands, result, **attrs)
        assert op.result is not None
        return op.result

    @contextmanager
    def into(self, region: Region) -> Iterator[Region]:
        """Build into another region for the length of a ``with``."""
        saved, self.region = self.region, region
        try:
            yield region
        finally:
            self.region = saved

    # -- values ----------------------------------------------------------------------------------------
    def const(self, value: bool | int | float, type: Scalar) -> Value:
        return self.value("const", (), type, value=value)

    def identity(self, code: str, axis: int) -> Value:
        """thread_idx, block_idx, block_dim, grid_dim or global_idx."""
        return self.value(code, (), self.index, axis=axis)

    def dim(self, array: Value, axis: int) -> Value:
        assert isinstance(array.type, ArrayType)
        return self.value("dim", (array,), array.type.index, axis=axis)

    def binary(self, code: str, a: Value, b: Value) -> Value:
        """Arithmetic, bitwise or comparison on two values of one type."""
        result = tiles.like(a.type, BOOL) if code in ops.COMPARISON else a.type
        attrs = {"check": "inplace"} if code in ("floordiv", "mod") else {}
        return self.value(code, (a, b), result, **attrs)

    def unary(self, code: str, a: Value) -> Value:
        return self.value(code, (a,), a.type)

    def select(self, cond: Value, a: Value, b: Value) -> Value:
        return self.value("select", (cond, a, b), a.type)

    def cast(self, a: Value, to: Scalar) -> Value:
        return a if tiles.element(a.type) == to else self.value("cast", (a,), tiles.like(a.type, to))

    def bitcast(self, a: Value, to: Scalar) -> Value:
        return a if tiles.element(a.type) == to else self.value("bitcast", (a,), tiles.like(a.type, to))

    def math(self, fn: str, args: list[Value], result: Scalar | None = None) -> Value:
        """``result``: the element type, if not the first argument's."""
        return self.value("math", args, tiles.like(args[0].type, result) if result else args[0].type, fn=fn)

    # -- tiles -------------------------------------------------------------------------------------------
    def broadcast(self, a: Value, shape: tuple[int, ...]) -> Value:
        """A scalar or tile as a tile of ``shape``."""
        if tiles.shape(a.type) == shape:
            return a
        return self.value("tile_broadcast", (a,), TileType(tiles.element(a.type), shape))

    def reshape(self, a: Value, shape: tuple[int, ...]) -> Value:
        """In row-major order; () gives the scalar of a tile of one element."""
        same = tiles.shape(a.type) == shape
        return a if same else self.value("tile_reshape", (a,), tiles.of(tiles.element(a.type), shape))

    def reduce(self, fn: str, a: Value, axis: int, combine: Region | None = None) -> Value:
        """``axis`` is dropped."""
        assert isinstance(a.type, TileType)
        op = self.emit("tile_reduce", (a,), tiles.reduced(a.type, fn, axis), [combine or Region()], fn=fn, axis=axis)
        assert op.result is not None
        return op.result

    def map(self, args: list[Value], result: Scalar) -> tuple[Value, Region]:
        """A map with an empty body to build into, with its arguments; end it with ``yield``."""
        body = Region(args=[Value(tiles.element(a.type)) for a in args])
        op = self.emit("tile_map", args, tiles.like(args[0].type, result), [body])
        assert op.result is not None
        return op.result, body

    # -- variables and memory ----------------------------------------------------------------------------
    def _at_top(self, code: str, result: Any, name: str) -> Value:
        op = Op(code, (), {"name": name}, None, result, self.loc, name)
        slots = ("var", "shared", "local")
        at = next((n for n, o in enumerate(self.top.ops) if o.code not in slots), len(self.top.ops))
        self.top.ops.insert(at, op)
        assert op.result is not None
        return op.result

    def var(self, name: str, type: Scalar | TileType) -> Value:
        return self._at_top("var", VarType(type), name)

    def array(self, name: str, type: ArrayType) -> Value:
        """A shared or local array, by ``type.space``."""
        return self._at_top(type.space, type, name)

    def get(self, var: Value) -> Value:
        assert isinstance(var.type, VarType)
        return self.value("get", (var,), var.type.elem)

    def set(self, var: Value, value: Value) -> None:
        self.emit("set", (var, value))

    def load(
        self, array: Value, indices: list[Value], field: tuple[Field, ...] = (), check: str = "inplace"
    ) -> Value:
        assert isinstance(array.type, ArrayType)
        elem = field[-1].type if field else array.type.elem
        assert isinstance(elem, Scalar), "load one scalar member at a time"
        return self.value("load", (array, *indices), elem, field=field, check=check)

    def store(
        self, array: Value, indices: list[Value], value: Value, field: tuple[Field, ...] = (), check: str = "inplace"
    ) -> None:
        self.emit("store", (array, *indices, value), field=field, check=check)

    def atomic(
        self,
        fn: str,
        array: Value,
        indices: list[Value],
        values: list[Value],
        order: str = "relaxed",
        scope: str = "device",
        check: str = "inplace",
    ) -> Value:
        return self.value(
            "atomic", (array, *indices, *values), values[0].type, fn=fn, order=order, scope=scope, check=check, field=()
        )

    def lane(self, vector: Value, index: int) -> Value:
        assert isinstance(vector.type, VectorType)
        return self.value("lane", (vector,), vector.type.elem, index=index)

    # -- control -----------------------------------------------------------------------------------------
    def if_(self, cond: Value) -> Op:
        """An ``if`` with two empty regions to build into."""
        return self.emit("if", (cond,), regions=[Region(), Region()])

    def for_(self, start: Value, stop: Value, step: Value, name: str = "i", unroll: int | None = None) -> Op:
        body = Region(args=[Value(start.type, None, name)])
        return self.emit("for", (start, stop, step), regions=[body, Region()], unroll=unroll)

    def while_(self) -> Op:
        """A ``while`` with empty cond, body and orelse regions; end cond with ``yield``."""
        return self.emit("while", (), regions=[Region(), Region(), Region()])

    def scope(self, id: int) -> Op:
        return self.emit("scope", (), regions=[Region()], id=id)
