"""Several consecutive elements a thread, loaded and stored together: memory-bound kernels on a GPU need it.

A kernel of the shape

    i = global index                      t = global index
    if i < n:                             if t < n // L:            # a whole group: L elements, 16 bytes
        c[i] = f(a[i], b[i])    becomes       x = vload a[L*t], y = vload b[L*t]
                                              vstore c[L*t] = pack(f(x0, y0), ..., f(xL-1, yL-1))
                                          elif t == n // L:         # the one thread with what is left
                                              for i in range(L*t, n): c[i] = f(a[i], b[i])

and ``coarsen`` becomes L: the grid shrinks by it. Only kernels without loops, barriers, atomics and anything
that can fault are taken, so the result is the same, element for element. The arrays accessed at ``[i]`` must
start at a multiple of 16 bytes; the launch uses the plain kernel for views that do not, and for grids that
``Kernel.covers`` rejects.
"""

from __future__ import annotations

from gridwise.ir import Builder, Kernel, Op, Region, Value, ops
from gridwise.ir.rewrite import clone_region
from gridwise.ir.types import BOOL, ArrayType, Scalar, VectorType
from gridwise.lang.records import dataclass, field

GROUP_BYTES = 16
_WORD = 4  # bytes: a group of every array is at least a machine word, so that no store shares one
_MOST_OPS = 400  # in all L copies of the body: beyond this a kernel is bound by arithmetic

# What a thread may ask about its place: anything else would see the smaller grid.
_PLACE = frozenset({"thread_idx", "block_idx", "grid_dim"})
_REFUSED = frozenset(
    "for while break continue leave scope barrier subgroup atomic assert print fault shared local".split()
)


@dataclass
class _Shape:
    """A kernel taken apart: what runs for one element, and how far the elements go."""

    index: set[Value] = field(default_factory=set)  # the values that are the global index
    limits: list[Value] = field(default_factory=list)  # an element is handled if it is below each of them
    body: list[Op] = field(default_factory=list)
    slots: list[Op] = field(default_factory=list)  # var


def _limits(cond: Value, index: set[Value], holds: bool) -> list[Value] | None:
    """What ``cond`` being ``holds`` says about the index: values it is below. None if it says anything else."""
    op = cond.op
    if op is None:
        return None
    if op.code == "const":
        return [] if op.attrs["value"] is holds else None
    if op.code == "not":
        return _limits(op.operands[0], index, not holds)
    if op.code == ("and" if holds else "or"):
        a, b = (_limits(v, index, holds) for v in op.operands)
        return None if a is None or b is None else a + b
    if op.code not in ops.COMPARISON:
        return None
    x, y = op.operands
    code = op.code
    if y in index:  # turn it round, so that the index is on the left
        x, y = y, x
        code = {"lt": "gt", "le": "ge", "gt": "lt", "ge": "le"}.get(code, code)
    if x not in index:
        return None
    if code == ("lt" if holds else "ge"):
        return [y]
    zero = y.op is not None and y.op.code == "const" and y.op.attrs["value"] == 0
    return [] if zero and code == ("ge" if holds else "lt") else None  # an index is never negative


def _take_apart(kernel: Kernel) -> _Shape | None:
    shape = _Shape()
    region = kernel.body
    while True:
        following: Region | None = None
        for n, op in enumerate(region.ops):
            if op.code == "global_idx" and op.result is not None:
                if op.attrs["axis"] != 0:
                    return None
                shape.index.add(op.result)
            if op.code == "var":
                shape.slots.append(op)
            elif op.code == "if" and (found := _guard(region, n, shape)) is not None:
                following = found
                break
            elif op.code == "return" and n == len(region.ops) - 1:
                pass
            else:
                shape.body.append(op)
        if following is None:
            return shape if shape.limits else None
        if following is not region and any(op.code in ("load", "store") for op in shape.body):
            return None  # an access before the guard is not covered by it
        region = following


def _guard(region: Region, n: int, shape: _Shape) -> Region | None:
    """The operations under the guard that ``region.ops[n]`` is, if it is one: they end the kernel."""
    op, rest = region.ops[n], region.ops[n + 1 :]
    then, orelse = op.regions
    ends = [o.code for o in rest] in ([], ["return"])
    if ends and not orelse.ops:
        limits, found = _limits(op.operands[0], shape.index, True), then
    elif ends and not then.ops:
        limits, found = _limits(op.operands[0], shape.index, False), orelse
    elif [o.code for o in then.ops] == ["return"]:
        limits, found = _limits(op.operands[0], shape.index, False), Region(orelse.ops + rest)
    else:
        return None
    if limits is None or any(o.code == "return" for o in found.walk() if o is not found.ops[-1]):
        return None
    shape.limits += [v for v in limits if v not in shape.limits]
    return found


def _slot(kernel: Kernel, limit: Value) -> int | None:
    """The slot that a limit is the value of: a length, or a scalar parameter."""
    slots = kernel.slots()
    for n, s in enumerate(slots):
        param = kernel.params[s.param].value
        if s.kind == "scalar" and param is limit:
            return n
        op = limit.op
        length = op is not None and op.code == "dim" and op.operands[0] is param
        if s.kind == "dim" and length and op is not None and s.axis == op.attrs["axis"]:
            return n
    return None


def _grouped(shape: _Shape, settled: set[str]) -> list[Value] | None:
    """The arrays read or written at ``[i]``, or None if something in the body forbids the whole thing."""
    at_index: dict[Value, None] = {}
    elsewhere: set[Value] = set()
    written: set[Value] = set()
    top = set(map(id, shape.body))
    for op in Region(shape.body).walk():
        if op.code in _REFUSED or op.code in _PLACE or (op.code == "return" and op is not shape.body[-1]):
            return None
        if op.code == "global_idx" and op.attrs["axis"] != 0:
            return None
        check = op.attrs.get("check")
        if check is not None and check not in settled:
            if op.code not in ("floordiv", "mod"):
                return None
            t = op.operands[1].type
            if not (isinstance(t, Scalar) and t.is_float):
                return None  # could fault
        if op.code not in ops.MEMORY:
            continue
        array = op.operands[0]
        t = array.type
        assert isinstance(t, ArrayType)
        whole = t.space == "global" and t.rank == 1 and not t.strided and isinstance(t.elem, Scalar)
        if whole and id(op) in top and op.operands[1] in shape.index:
            at_index[array] = None
        else:
            elsewhere.add(array)
        if op.code == "store":
            written.add(array)
    if not at_index or (written & elsewhere):
        return None  # a mutable array touched elsewhere too: the order of a thread's accesses would matter
    return list(at_index)


class _Group:
    """Builds the group of ``lanes`` elements that starts at ``base``."""

    def __init__(self, shape: _Shape, arrays: list[Value], lanes: int):
        self.shape, self.arrays, self.lanes = shape, arrays, lanes

    def direct(self, op: Op) -> bool:
        """Whether ``op`` is one of the accesses at ``[i]`` that are grouped."""
        grouped = op.code in ("load", "store") and op.operands[0] in self.arrays
        return grouped and op.operands[1] in self.shape.index

    def one(self, b: Builder, i: Value, memory: dict[Value, Value] | None) -> None:
        """The body for element ``i``. With ``memory`` the grouped accesses go to its values."""
        mapping = dict.fromkeys(self.shape.index, i)
        for op in self.shape.body:
            if op.code in ("global_idx", "return"):
                continue
            if memory is not None and self.direct(op):
                if op.result is not None:
                    mapping[op.result] = memory[op.operands[0]]
                else:
                    memory[op.operands[0]] = mapping.get(op.operands[2], op.operands[2])
                continue
            b.region.ops += clone_region(Region([op]), mapping).ops

    def whole(self, b: Builder, base: Value) -> None:
        """Load what is read before it is written, run every lane, store what was written."""
        first: dict[Value, Op] = {}  # the first access of each array
        last: dict[Value, Op] = {}  # its last store
        for op in self.shape.body:
            if self.direct(op):
                first.setdefault(op.operands[0], op)
                if op.code == "store":
                    last[op.operands[0]] = op
        vectors: dict[Value, Value] = {}
        for array, op in first.items():
            if op.code == "load":
                b.loc = op.loc
                assert isinstance(array.type, ArrayType) and isinstance(array.type.elem, Scalar)
                vectors[array] = b.value("vload", (array, base), VectorType(array.type.elem, self.lanes))
        out: dict[Value, list[Value]] = {array: [] for array in last}
        index = base.type
        assert isinstance(index, Scalar)
        for k in range(self.lanes):
            memory = {array: b.lane(v, k) for array, v in vectors.items()}
            self.one(b, b.binary("add", base, b.const(k, index)) if k else base, memory)
            for array in last:
                out[array].append(memory[array])
        for array, values in out.items():
            assert isinstance(array.type, ArrayType) and isinstance(array.type.elem, Scalar)
            b.loc = last[array].loc
            packed = b.value("pack", values, VectorType(array.type.elem, self.lanes))
            b.emit("vstore", (array, base, packed))


def vectorise(kernel: Kernel, trust_launch: bool) -> None:
    """Rewrite in place if the kernel has the shape; else leave it as it is (``coarsen`` stays 1).

    ``trust_launch``: accesses that the launch's conditions settle are in range.
    """
    if kernel.domain != 1 or kernel.block[1:] != (1, 1) or kernel.coarsen != 1:
        return
    shape = _take_apart(kernel)
    if shape is None:
        return
    settled = {"proved"} | ({"launch"} if trust_launch else set())
    arrays = _grouped(shape, settled)
    guard = [_slot(kernel, limit) for limit in shape.limits]
    if arrays is None or None in guard or any(limit.type != kernel.index for limit in shape.limits):
        return
    sizes = [a.type.elem.size for a in arrays if isinstance(a.type, ArrayType)]
    lanes = GROUP_BYTES // max(sizes)
    if lanes < 2 or lanes * min(sizes) < _WORD or lanes * sum(1 for _ in Region(shape.body).walk()) > _MOST_OPS:
        return

    body = Region()
    b = Builder(body, kernel.index, kernel.loc)
    body.ops += shape.slots
    group = _Group(shape, arrays, lanes)
    shift = lanes.bit_length() - 1
    t = b.identity("global_idx", 0)
    mapping: dict[Value, Value] = {}
    ends = []
    for limit in shape.limits:  # a length is asked for again: its old place is in the body that is copied
        if limit.op is not None:
            body.ops += clone_region(Region([limit.op]), mapping).ops
        ends.append(mapping.get(limit, limit))
    end = ends[0]
    for other in ends[1:]:
        end = b.binary("min", end, other)
    groups = b.binary("shr", end, b.const(shift, kernel.index))
    branch = b.if_(b.binary("lt", t, groups))
    with b.into(branch.regions[0]):
        group.whole(b, b.binary("shl", t, b.const(shift, kernel.index)))
    with b.into(branch.regions[1]):
        last = b.if_(b.binary("eq", t, groups))
        with b.into(last.regions[0]):
            start = b.binary("shl", groups, b.const(shift, kernel.index))
            loop = b.for_(start, end, b.const(1, kernel.index))
            with b.into(loop.regions[0]):
                group.one(b, loop.regions[0].args[0], None)
    assert BOOL is not None
    kernel.body = body
    kernel.coarsen = lanes
    kernel.guard = tuple(n for n in guard if n is not None)
