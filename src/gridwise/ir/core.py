"""The nodes of the IR: values, operations, regions, kernels.

Control flow is structured (``if``, ``for``, ``while`` hold regions), expressions are SSA values, and a
Python local name is a ``var`` slot read by ``get`` and written by ``set``, as function variables are in
SPIR-V and WGSL. Device functions are inlined by the frontend, so a kernel is one tree.
``ops.py`` lists every operation with its meaning.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from gridwise.lang.errors import Loc
from gridwise.lang.records import dataclass, field

from .types import ArrayType, Scalar, Type


class Value:
    """The result of one operation, a kernel parameter, or a loop's induction value."""

    __slots__ = ("name", "op", "type")

    def __init__(self, type: Type, op: Op | None = None, name: str = ""):
        self.type = type
        self.op = op  # None for parameters and region arguments
        self.name = name  # a hint for the printer

    def __repr__(self) -> str:
        return f"<{self.name or 'value'}: {self.type}>"


class Region:
    """A sequence of operations; ``args`` are the values its owner defines for it (a loop's index)."""

    __slots__ = ("args", "ops")

    def __init__(self, ops: list[Op] | None = None, args: list[Value] | None = None):
        self.ops: list[Op] = ops if ops is not None else []
        self.args: list[Value] = args if args is not None else []

    def walk(self) -> Iterator[Op]:
        """Every operation below here, outer before inner, in program order."""
        for op in self.ops:
            yield op
            for region in op.regions:
                yield from region.walk()


class Op:
    """One operation. ``code`` names a row of ``ops.TABLE``."""

    __slots__ = ("attrs", "code", "loc", "operands", "regions", "result")

    def __init__(
        self,
        code: str,
        operands: list[Value] | tuple[Value, ...] = (),
        attrs: dict[str, Any] | None = None,
        regions: list[Region] | None = None,
        result: Type | None = None,
        loc: Loc | None = None,
        name: str = "",
    ):
        self.code = code
        self.operands = list(operands)
        self.attrs = attrs if attrs is not None else {}
        self.regions = regions if regions is not None else []
        self.result = Value(result, self, name) if result is not None else None
        self.loc = loc

    def __repr__(self) -> str:
        return f"<op {self.code}>"


@dataclass
class Param:
    """A kernel parameter: an array, or a scalar passed by value.

    ``name`` is a dotted path when the user's parameter was taken apart (``camera.origin.x``).
    """

    name: str
    value: Value

    @property
    def type(self) -> ArrayType | Scalar:
        assert isinstance(self.value.type, ArrayType | Scalar)
        return self.value.type

    @property
    def is_array(self) -> bool:
        return isinstance(self.value.type, ArrayType)


@dataclass(frozen=True)
class Slot:
    """One machine argument. Every target passes exactly these, in this order.

    kind  "ptr" (address of element 0), "dim" (extent of ``axis``), "stride" (elements, of ``axis``),
          "scalar".
    """

    kind: str
    param: int
    axis: int
    type: Scalar | None


@dataclass(frozen=True)
class Site:
    """A place in the source where a check can fail. ``detail`` is the array's name, or the assert's message."""

    kind: str  # "index", "zero_division", "assertion"
    loc: Loc | None
    detail: str = ""
    axis: int = 0


@dataclass(frozen=True)
class Condition:
    """A relation between arguments that the fast version of a kernel relies on: sum of terms + const >= 0.

    ``terms`` maps a slot number (of ``Kernel.slots()``; "dim", "stride" or integer "scalar" slots only) to its
    coefficient. The launch evaluates it in exact integers; where it fails, the checked version runs.
    """

    terms: tuple[tuple[int, int], ...]
    const: int
    text: str  # for people: "len(a) >= len(c)"
    loc: Loc | None = None

    def holds(self, slots: Sequence[int]) -> bool:
        return sum(slots[n] * k for n, k in self.terms) + self.const >= 0


@dataclass
class Kernel:
    """A typed, fully inlined kernel, specialised to its argument types, constants and block.

    block     threads a block, (x, y, z).
    domain    1, 2 or 3: how many axes of the grid the kernel uses.
    index     I32 or I64.
    requires  relations among arguments that the launch checks; each a region-free Python callable kept
              by the launch layer, so here only their source text (for proofs: see ``assume`` operations).
    unchecked the author waived the checks that are not proved away.
    """

    name: str
    params: list[Param]
    body: Region
    block: tuple[int, int, int]
    domain: int
    index: Scalar
    loc: Loc
    requires: list[str] = field(default_factory=list)
    unchecked: bool = False
    fastmath: frozenset[str] = frozenset()
    sites: list[Site] = field(default_factory=list)  # filled by passes/lower_checks
    conditions: list[Condition] = field(default_factory=list)  # filled by analysis/bounds
    coarsen: int = 1  # elements a thread handles along x, set by passes/vectorise: the grid shrinks by it
    aligned: bool = False  # set by lower: every array starts at a multiple of 16 bytes
    reach: int = 1  # set by analysis: the launch keeps threads along x * reach <= extent_limit(index), or takes I64
    tiled: bool = False  # a tile kernel: values may be tiles, one "thread" is one block (docs/internals.md)
    guard: tuple[int, ...] = ()  # of a coarsened kernel: slots whose least value ends the elements it handles

    def covers(self, grid_x: int, slots: Sequence[int]) -> bool:
        """Whether this coarsened kernel does exactly what ``grid_x`` blocks of the plain one would do.

        A grid that is no multiple of ``coarsen`` is rounded up: that adds no element if it already reached the
        last one. Where this is false the launch takes the kernel lowered with ``vector=False``.
        """
        if self.coarsen == 1 or grid_x % self.coarsen == 0:
            return True
        return grid_x * self.block[0] >= min(slots[n] for n in self.guard)

    def slots(self) -> list[Slot]:
        """The machine arguments, in order (see ``Slot``)."""
        out: list[Slot] = []
        for n, p in enumerate(self.params):
            t = p.type
            if isinstance(t, ArrayType):
                out.append(Slot("ptr", n, 0, None))
                out += [Slot("dim", n, a, t.index) for a in range(t.rank)]
                if t.strided:
                    out += [Slot("stride", n, a, t.index) for a in range(t.rank)]
            else:
                out.append(Slot("scalar", n, 0, t))
        return out

    def walk(self) -> Iterator[Op]:
        return self.body.walk()
