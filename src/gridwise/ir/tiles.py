"""The types of operations on tiles: what the verifier checks and the builder works out.

``fault(op)`` says what is wrong with one tile operation. ``reduced``, ``elementwise`` and the others give result types.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from .core import Op
from .types import BF16, BOOL, F8E4M3, F8E5M2, F16, F32, F64, I8, I32, U8, ArrayType, Scalar, TileType, Type, VarType

REDUCTIONS = ("sum", "prod", "max", "min", "and", "or", "xor", "argmax", "argmin", "custom")
SCANS = ("sum", "prod", "max", "min", "custom")
# The element types of a product's two sides, and of its sums.
PRODUCTS = {
    F16: (F32, F16), BF16: (F32,), F8E4M3: (F32,), F8E5M2: (F32,), F32: (F32,), F64: (F64,), I8: (I32,), U8: (I32,),
}  # fmt: skip


def element(t: Type) -> Scalar:
    """The scalar of a scalar or a tile."""
    elem = t.elem if isinstance(t, TileType) else t
    assert isinstance(elem, Scalar)
    return elem


def shape(t: Type) -> tuple[int, ...]:
    """() for a scalar."""
    return t.shape if isinstance(t, TileType) else ()


def of(elem: Scalar, sides: Sequence[int]) -> Scalar | TileType:
    """A tile of that shape; a plain scalar for ()."""
    return TileType(elem, tuple(sides)) if sides else elem


def like(t: Type, elem: Scalar) -> Scalar | TileType:
    """Of ``t``'s shape, with another element."""
    return of(elem, shape(t))


def without(sides: tuple[int, ...], axis: int) -> tuple[int, ...]:
    return sides[:axis] + sides[axis + 1 :]


def reduced(t: TileType, fn: str, axis: int) -> Scalar | TileType:
    """The type of ``tile_reduce``."""
    return of(I32 if fn in ("argmax", "argmin") else t.elem, without(t.shape, axis))


def broadcasts(small: tuple[int, ...], to: tuple[int, ...]) -> bool:
    """Whether NumPy would broadcast the first shape to the second."""
    if len(small) > len(to):
        return False
    return all(s in (1, t) for s, t in zip(small, to[len(to) - len(small) :], strict=True))


# ---- what is wrong with one operation: "" if nothing ------------------------------------------------------------
def _piece(op: Op) -> str:
    t = op.operands[0].type
    assert isinstance(t, ArrayType)
    if t.tile is None:
        return "the array is not a partition"
    turns = op.operands[1:]
    axis = op.attrs.get("axis", 0)
    return "" if len(turns) <= 1 and 0 <= axis < len(t.tile) else "one turn at most, and an axis of the partition"


def _coordinates(op: Op, first: int, count: int) -> str:
    given = op.operands[first : first + count]
    if len(given) < count or any(not (isinstance(v.type, Scalar) and v.type.is_int) for v in given):
        return f"{count} integer coordinates expected"
    return ""


def _array(op: Op) -> ArrayType:
    t = op.operands[0].type
    assert isinstance(t, ArrayType)
    return t


def _tiles(op: Op, first: int, count: int, elem: Scalar | None = None, sides: tuple[int, ...] | None = None) -> str:
    """Whether ``count`` operands from ``first`` are of one shape, and of ``elem`` (None: any integer)."""
    given = op.operands[first : first + count]
    if len(given) != count:
        return "operands are missing"
    for v in given:
        e = element(v.type)
        if shape(v.type) != (shape(given[0].type) if sides is None else sides):
            return "tiles of one shape expected"
        if not (e.is_int if elem is None else e == elem):
            return f"elements of {elem or 'an integer type'} expected, not {e}"
    return ""


def _load(op: Op) -> str:
    array, result = _array(op), op.result
    assert result is not None
    if not isinstance(result.type, TileType) or result.type.rank != array.rank or result.type.elem != array.elem:
        return "a tile of the array's rank and element expected"
    if len(op.operands) != 1 + array.rank:
        return f"{array.rank} coordinates expected"
    return _coordinates(op, 1, array.rank)


def _store(op: Op) -> str:
    array, value = _array(op), op.operands[-1].type
    if array.tile is None:
        return "the array is not a partition"
    if not isinstance(value, TileType) or value.rank != array.rank or value.elem != array.elem:
        return "a tile of the array's rank and element expected"
    sets = len(op.operands) - 2
    if sets not in (array.rank, 2 * array.rank):
        return "one or two sets of coordinates expected"
    if sets == array.rank and value.shape != array.tile:
        return f"a tile of the piece's shape {array.tile} expected"
    return _coordinates(op, 1, sets)


def _gather(op: Op) -> str:
    array, result = _array(op), op.result
    assert result is not None
    count = array.rank
    if len(op.operands) != 1 + count + op.attrs["masked"]:
        return f"{count} indices expected"
    sides = shape(result.type)
    wrong = _tiles(op, 1, count, None, sides)
    if not wrong and op.attrs["masked"]:
        wrong = _tiles(op, 1 + count, 1, BOOL, sides)
    return wrong or ("" if element(result.type) == array.elem else "the array's element expected")


def _scatter(op: Op, first: int) -> str:
    array = _array(op)
    assert isinstance(array.elem, Scalar)
    count = array.rank
    if len(op.operands) != first + count + 1 + op.attrs["masked"]:
        return f"{count} indices and a value expected"
    sides = shape(op.operands[first].type)
    wrong = _tiles(op, first, count, None, sides) or _tiles(op, first + count, 1, array.elem, sides)
    if not wrong and op.attrs["masked"]:
        wrong = _tiles(op, first + count + 1, 1, BOOL, sides)
    return wrong


def _scatter_piece(op: Op) -> str:
    array = _array(op)
    if array.tile is None:
        return "the array is not a partition"
    return _coordinates(op, 1, array.rank) or _scatter(op, 1 + array.rank)


def _atomic(op: Op) -> str:
    array, result = _array(op), op.result
    assert result is not None
    if array.access != "atomic":
        return "the array is not Atomic"
    wrong = _scatter(op, 1)
    return wrong or ("" if result.type == op.operands[1 + array.rank].type else "the value's type expected")


def _broadcast(op: Op) -> str:
    t, result = op.operands[0].type, op.result
    assert result is not None
    same = element(t) == element(result.type)
    return "" if same and broadcasts(shape(t), shape(result.type)) else f"{t} does not broadcast to {result.type}"


def _iota(op: Op) -> str:
    t = op.result.type if op.result else None
    return "" if isinstance(t, TileType) and t.rank == 1 and t.elem.is_int else "rank 1 of an integer type expected"


def _reshape(op: Op) -> str:
    t, result = op.operands[0].type, op.result
    assert result is not None
    same = element(t) == element(result.type)
    return "" if same and math.prod(shape(t)) == math.prod(shape(result.type)) else "as many elements expected"


def _permute(op: Op) -> str:
    t = op.operands[0].type
    assert isinstance(t, TileType) and op.result is not None
    axes = op.attrs["axes"]
    if sorted(axes) != list(range(t.rank)):
        return "a permutation of the axes expected"
    return _is(op, TileType(t.elem, tuple(t.shape[a] for a in axes)))


def _is(op: Op, want: Type) -> str:
    assert op.result is not None
    return "" if op.result.type == want else f"result {want} expected, not {op.result.type}"


def _cat(op: Op) -> str:
    first, axis = op.operands[0].type, op.attrs["axis"]
    assert isinstance(first, TileType)
    total = 0
    for v in op.operands:
        t = v.type
        if not isinstance(t, TileType) or t.elem != first.elem or without(t.shape, axis) != without(first.shape, axis):
            return "tiles of one shape but for the axis expected"
        total += t.shape[axis]
    return _is(op, TileType(first.elem, (*first.shape[:axis], total, *first.shape[axis + 1 :])))


def _slice(op: Op) -> str:
    t, result = op.operands[0].type, op.result
    assert isinstance(t, TileType) and result is not None
    sides = shape(result.type)
    if len(sides) != t.rank or element(result.type) != t.elem:
        return "a tile of the same rank and element expected"
    for start, step, count, side in zip(op.attrs["starts"], op.attrs["steps"], sides, t.shape, strict=True):
        if not (0 <= start < side and 0 <= start + (count - 1) * step < side):
            return "the slice leaves the tile"
    return ""


def _extract(op: Op) -> str:
    t, result = op.operands[0].type, op.result
    assert isinstance(t, TileType) and result is not None
    sides = shape(result.type)
    divides = len(sides) == t.rank and not any(a % b for a, b in zip(t.shape, sides, strict=True))
    if not divides or element(result.type) != t.elem:
        return "a sub-tile whose sides divide the tile's expected"
    return _coordinates(op, 1, t.rank)


def _region(op: Op, args: Sequence[Scalar], result: Scalar) -> str:
    region = op.regions[0]
    if [a.type for a in region.args] != list(args):
        return "the region's arguments have other types"
    ends = bool(region.ops) and region.ops[-1].code == "yield" and region.ops[-1].operands[0].type == result
    return "" if ends else f"the region must yield {result}"


def _fold(op: Op, known: tuple[str, ...], want: Callable[[TileType], Type]) -> str:
    t, fn = op.operands[0].type, op.attrs["fn"]
    if not isinstance(t, TileType) or not 0 <= op.attrs["axis"] < t.rank or fn not in known:
        return "a tile, an axis of it and a known function expected"
    if fn == "custom" and (wrong := _region(op, (t.elem, t.elem), t.elem)):
        return wrong
    return _is(op, want(t))


def _reduce(op: Op) -> str:
    return _fold(op, REDUCTIONS, lambda t: reduced(t, op.attrs["fn"], op.attrs["axis"]))


def _scan(op: Op) -> str:
    return _fold(op, SCANS, lambda t: t)


def _mma(op: Op) -> str:
    a, b, c = (v.type for v in op.operands)
    if not (isinstance(a, TileType) and isinstance(b, TileType) and isinstance(c, TileType)):
        return "tiles expected"
    if a.rank not in (2, 3) or b.rank != a.rank or c.rank != a.rank:
        return "rank 2, or 3 with a batch, expected"
    batch = a.shape[:-2]
    (m, k), n = a.shape[-2:], b.shape[-1]
    if b.shape != (*batch, k, n) or c.shape != (*batch, m, n):
        return "(M,K) (K,N) + (M,N) expected"
    if a.elem != b.elem or c.elem not in PRODUCTS.get(a.elem, ()):
        return f"no product of {a.elem} and {b.elem} summed in {c.elem}"
    return _is(op, c)


def _sort(op: Op) -> str:
    return _is(op, op.operands[0].type)


def _argsort(op: Op) -> str:
    return _is(op, like(op.operands[0].type, I32))


def _take(op: Op) -> str:
    t, index = (v.type for v in op.operands)
    if not (isinstance(t, TileType) and isinstance(index, TileType) and index.elem.is_int):
        return "a tile and a tile of integers expected"
    axis = op.attrs["axis"]
    if without(t.shape, axis) != without(index.shape, axis):
        return "tiles of one shape but for the axis expected"
    return _is(op, TileType(t.elem, index.shape))


def _histogram(op: Op) -> str:
    if not element(op.operands[0].type).is_int:
        return "integers expected"
    return _is(op, TileType(I32, (op.attrs["bins"],)))


def _map(op: Op) -> str:
    result = op.result
    assert result is not None
    sides = shape(result.type)
    if not sides or any(shape(v.type) != sides for v in op.operands):
        return "tiles of one shape expected"
    return _region(op, [element(v.type) for v in op.operands], element(result.type))


_RULES: dict[str, Callable[[Op], str]] = {
    "tile_index": _piece, "tile_count": _piece, "tile_load": _load, "tile_store": _store, "tile_gather": _gather,
    "tile_scatter": _scatter_piece, "tile_atomic": _atomic, "tile_broadcast": _broadcast, "tile_iota": _iota,
    "tile_reshape": _reshape, "tile_permute": _permute, "tile_cat": _cat, "tile_slice": _slice,
    "tile_extract": _extract, "tile_reduce": _reduce, "tile_scan": _scan, "tile_mma": _mma, "tile_sort": _sort,
    "tile_argsort": _argsort, "tile_take": _take, "tile_histogram": _histogram, "tile_map": _map,
}  # fmt: skip


def is_tile_op(op: Op) -> bool:
    return op.code in _RULES


def fault(op: Op) -> str:
    """What is wrong with the types of a tile operation; "" if nothing is."""
    return _RULES[op.code](op)


def elementwise_fault(op: Op) -> str:
    """What is wrong with the shapes of another operation with a tile among its values; "" if nothing is."""
    values = [*op.operands, *filter(None, (op.result,))]
    sides = {shape(v.type.elem if isinstance(v.type, VarType) else v.type) for v in values}
    return "" if len(sides) == 1 else "operands and result must be of one shape"
