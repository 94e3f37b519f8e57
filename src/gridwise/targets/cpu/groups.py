"""Accesses that are read or written together.

A thread that takes elements ``s * i`` to ``s * i + s - 1`` leaves its gang with ``s`` accesses at every ``s``-th
element. Together they cover a stretch of memory: ``s`` whole vectors, whose elements a few shuffles bring to where
they belong, instead of a gather for each. A thread that runs alone (a gang of one lane) and stores a whole cache
line writes it as one vector, and past the cache if the array is large: its threads then write to many places in
turn, and each line would be read before it is overwritten.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gridwise.ir import Op, Value, ops
from gridwise.ir.types import BOOL, ArrayType, Scalar
from gridwise.lang.records import dataclass, field
from gridwise.targets.llvm.text import vector

from .cuts import JUMPS
from .lanes import Val
from .shapes import Shapes, constant

if TYPE_CHECKING:
    from .memory import Memory

LINE = 64  # bytes
LARGE = 1 << 21  # bytes of an array above which a core's own cache does not hold it
WIDEST = 16  # elements a thread
_TRANSPARENT = frozenset({"get", "set", "var", "assume", "fault", "floordiv", "mod"})
Key = tuple[str, Value, tuple[Value, ...], Value | None, int]


@dataclass(eq=False)
class Group:
    """Accesses of one array at ``root + low``, ``root + low + 1``, ...: in this order in ``members``."""

    members: list[Op]
    low: int
    loaded: bool = False
    waiting: set[Op] = field(default_factory=set)  # stores not met yet

    @property
    def code(self) -> str:
        return self.members[0].code


def root(v: Value) -> tuple[Value | None, int]:
    """``v`` as a value and what is added to it; a constant alone has no value."""
    total = 0
    while (op := v.op) is not None and op.code in ("add", "sub"):
        a, b = op.operands
        known, other = constant(b), constant(a)
        if known is not None:
            v, total = a, total + (known if op.code == "add" else -known)
        elif op.code == "add" and other is not None:
            v, total = b, total + other
        else:
            break
    known = constant(v)
    return (None, total + known) if known is not None else (v, total)


def find_groups(body: list[Op], shapes: Shapes, lanes: int, written: frozenset[Value]) -> dict[Op, Group]:
    """Groups among the operations of one region. ``written`` are the arrays that the kernel writes to."""
    found: dict[Op, Group] = {}
    pending: dict[Key, list[tuple[int, Op]]] = {}

    def close(keys: list[Key]) -> None:
        for key in keys:
            group = _whole(pending.pop(key), key[-1])
            if group is not None:
                found.update(dict.fromkeys(group.members, group))

    def meets(key: Key, code: str, array: Value | None) -> bool:
        """May an access of ``array`` (None: anything) not pass this group?"""
        member = pending[key][0][1]
        mine = member.operands[0]
        if member.code == "load" and mine not in written:
            return False
        return array is None or (array is mine and not (code == member.code == "load"))

    for op in body:
        array = op.operands[0] if op.code in ("load", "store") else None
        key = _key(op, shapes, lanes, written) if array is not None else None
        if key is None and (ops.TABLE[op.code].pure or op.code in _TRANSPARENT):
            continue
        if op in shapes.escapes or any(o.code in JUMPS for r in op.regions for o in r.walk()):
            close(list(pending))  # what comes after a jump, even one that all lanes take, may not happen
            continue
        close([k for k in pending if k != key and meets(k, op.code, array)])
        if key is not None:
            at = root(op.operands[array.type.rank])[1]  # type: ignore[union-attr]
            if any(at == other for other, _ in pending.get(key, ())):
                close([key])
            pending.setdefault(key, []).append((at, op))
    close(list(pending))
    return found


def _key(op: Op, shapes: Shapes, lanes: int, written: frozenset[Value]) -> Key | None:
    """What accesses of one group have in common, or None if this one has no part in any."""
    t = op.operands[0].type
    assert isinstance(t, ArrayType)
    if not isinstance(t.elem, Scalar) or t.elem == BOOL or t.strided or t.space == "local":
        return None
    *outer, last = op.operands[1 : 1 + t.rank]
    if not all(shapes.of(v).uniform for v in outer):
        return None
    stride = shapes.of(last).stride
    if lanes == 1:
        if op.code == "load" or t.space != "global":
            return None
        stride = LINE // t.elem.size
    if stride is None or not 2 <= stride <= WIDEST:
        return None
    return op.code, op.operands[0], tuple(outer), root(last)[0], stride


def _whole(members: list[tuple[int, Op]], count: int) -> Group | None:
    """The group, if its accesses leave nothing out."""
    members = sorted(members, key=lambda m: m[0])
    low = members[0][0]
    if [at for at, _ in members] != list(range(low, low + count)):
        return None
    every = [op for _, op in members]
    return Group(every, low, waiting=set(every))


# -- what a gang does with them ----------------------------------------------------------------------------------
def start(gang: Memory, op: Op, group: Group) -> tuple[str, Scalar]:
    """The address of the gang's first element, reckoned from one of its accesses, and the elements' type."""
    place = gang.place(op)
    back = group.low - root(op.operands[op.operands[0].type.rank])[1]  # type: ignore[union-attr]
    one = gang.arith.memory(place.elem)
    pointer = place.pointer
    if back:
        pointer = gang.fn.value(f"getelementptr {one}, ptr {pointer}, i64 {back}", "start")
    return pointer, place.elem


def load(gang: Memory, op: Op, group: Group) -> None:
    """Every member's value, at the first of them."""
    pointer, elem = start(gang, op, group)
    one, many = gang.arith.memory(elem), vector(gang.arith.memory(elem), gang.lanes)
    count, pieces = len(group.members), []
    for n in range(count):
        at = pointer if n == 0 else gang.fn.value(f"getelementptr {one}, ptr {pointer}, i64 {n * gang.lanes}", "at")
        if gang.mask is None:
            pieces.append(gang.fn.value(f"load {many}, ptr {at}, align {elem.size}", "piece"))
        else:
            mask = _spread(gang, gang.mask, n, count)
            pieces.append(gang._masked("load", many, "p0", [("ptr", at)], elem, mask, "piece"))
    for member, text in zip(group.members, _apart(gang, pieces, many), strict=True):
        assert member.result is not None
        gang.values[member.result] = Val(text, None)


def store(gang: Memory, op: Op, group: Group) -> None:
    """Every member's value, at the last of them."""
    pointer, elem = start(gang, op, group)
    if gang.lanes == 1:
        _store_line(gang, pointer, elem, [gang.scalar(m.operands[-1]) for m in group.members], op)
        return
    one, many = gang.arith.memory(elem), vector(gang.arith.memory(elem), gang.lanes)
    count = len(group.members)
    pieces = _mixed(gang, [gang.use(m.operands[-1]) for m in group.members], many)
    for n, text in enumerate(pieces):
        at = pointer if n == 0 else gang.fn.value(f"getelementptr {one}, ptr {pointer}, i64 {n * gang.lanes}", "at")
        if gang.mask is None:
            gang.fn.do(f"store {many} {text}, ptr {at}, align {elem.size}")
        else:
            where = [("ptr", at), ("i32", str(elem.size)), (gang.bools, _spread(gang, gang.mask, n, count))]
            gang.effect(f"llvm.masked.store.{gang._mangled(elem)}.p0", [(many, text), *where])


def _shuffle(gang: Memory, many: str, a: str, b: str, order: list[int]) -> str:
    text = ", ".join(f"i32 {k}" for k in order)
    return gang.fn.value(f"shufflevector {many} {a}, {many} {b}, <{len(order)} x i32> <{text}>")


def _spread(gang: Memory, mask: str, piece: int, count: int) -> str:
    """The lanes whose elements are in a piece of the stretch, as a mask of its elements."""
    order = [(piece * gang.lanes + k) // count for k in range(gang.lanes)]
    return _shuffle(gang, gang.bools, mask, mask, order)


def _apart(gang: Memory, pieces: list[str], many: str) -> list[str]:
    """From whole vectors to one vector a member: the even elements and the odd ones, again and again."""
    count, lanes = len(pieces), gang.lanes
    if count == 1:
        return pieces
    if count % 2:
        return [_pick(gang, pieces, many, [k * count + c for k in range(lanes)]) for c in range(count)]
    halves = []
    for odd in (0, 1):
        order = list(range(odd, 2 * lanes, 2))
        half = [_shuffle(gang, many, a, b, order) for a, b in zip(pieces[::2], pieces[1::2], strict=True)]
        halves.append(_apart(gang, half, many))
    return [v for pair in zip(*halves, strict=True) for v in pair]


def _mixed(gang: Memory, values: list[str], many: str) -> list[str]:
    """The inverse of ``_apart``."""
    count, lanes = len(values), gang.lanes
    if count == 1:
        return values
    if count % 2:
        wide = [(at % count) * lanes + at // count for at in range(count * lanes)]
        return [_pick(gang, values, many, wide[n * lanes : (n + 1) * lanes]) for n in range(count)]
    even, odd = _mixed(gang, values[::2], many), _mixed(gang, values[1::2], many)
    out = []
    for a, b in zip(even, odd, strict=True):
        zipped = [k for pair in zip(range(lanes), range(lanes, 2 * lanes), strict=True) for k in pair]
        out += [_shuffle(gang, many, a, b, zipped[:lanes]), _shuffle(gang, many, a, b, zipped[lanes:])]
    return out


def _pick(gang: Memory, vectors: list[str], many: str, order: list[int]) -> str:
    """A vector of chosen elements of all ``vectors`` in a row."""
    lanes, result = gang.lanes, ""
    for n, text in enumerate(vectors):
        mine = [k - n * lanes if k // lanes == n else -1 for k in order]
        if n == 0:
            result = _shuffle(gang, many, text, "poison", [max(k, 0) for k in mine])
        else:
            result = _shuffle(gang, many, result, text, [lanes + k if k >= 0 else at for at, k in enumerate(mine)])
    return result


def _store_line(gang: Memory, pointer: str, elem: Scalar, values: list[str], op: Op) -> None:
    """One thread's whole cache line; past the cache if it is one, of an array that nothing reads and that is large."""
    f, one, many = gang.fn, gang.arith.memory(elem), vector(gang.arith.memory(elem), len(values))
    text = "poison"
    for n, value in enumerate(values):
        text = f.value(f"insertelement {many} {text}, {one} {value}, i64 {n}")
    if op.operands[0] in gang.read_too:
        f.do(f"store {many} {text}, ptr {pointer}, align {elem.size}")
        return
    past, plain, after = f.label("past"), f.label("plain"), f.label("stored")
    off = f.value(f"and i64 {f.value(f'ptrtoint ptr {pointer} to i64')}, {LINE - 1}", "off")
    array = gang.arrays[op.operands[0]]
    size = str(elem.size)
    for extent in array.dims:
        size = f.value(f"mul i64 {size}, {gang.extend(Val(extent), array.type.index).text}")
    go = f.value(f"and i1 {f.value(f'icmp eq i64 {off}, 0')}, {f.value(f'icmp uge i64 {size}, {LARGE}')}", "go")
    f.branch(go, past, plain)
    f.block(past)
    f.do(f"store {many} {text}, ptr {pointer}, align {LINE}, !nontemporal {f.module.node('!{i32 1}')}")
    f.jump(after)
    f.block(plain)
    f.do(f"store {many} {text}, ptr {pointer}, align {elem.size}")
    f.jump(after)
    f.block(after)
