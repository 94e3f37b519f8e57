"""Checks that a kernel obeys ``ops.TABLE``: run after every pass in tests, and once before emission always.

A failure here is a bug of ours, never of the user: it raises ``InvalidIR`` with the printed operation.
"""

from __future__ import annotations

from . import ops, tiles
from .core import Kernel, Op, Region, Value
from .types import BOOL, ArrayType, Scalar, TileType, VarType, VectorType

_REGIONS_THAT_YIELD = frozenset({"while", "tile_reduce", "tile_scan", "tile_map"})


class InvalidIR(AssertionError):
    """The IR is malformed; names the operation and what is wrong with it."""


class _Verifier:
    def __init__(self, kernel: Kernel):
        self.kernel = kernel
        self.defined: set[Value] = {p.value for p in kernel.params}

    def fail(self, op: Op, why: str) -> None:
        raise InvalidIR(f"{self.kernel.name}: {op.code} at {op.loc}: {why}")

    def region(self, region: Region, owner: Op | None, loops: int, scopes: tuple[int, ...]) -> None:
        outer = set(self.defined)
        self.defined.update(region.args)
        for n, op in enumerate(region.ops):
            if op.code not in ops.TABLE:
                self.fail(op, "unknown operation")
            if op.code in ("var", "shared", "local") and region is not self.kernel.body:
                self.fail(op, "only at the top of the kernel body")
            if op.code in ops.TERMINATORS and n != len(region.ops) - 1:
                self.fail(op, "must end its region")
            self.op(op, owner, loops, scopes)
            if op.result is not None:
                self.defined.add(op.result)
        self.defined = outer

    def op(self, op: Op, owner: Op | None, loops: int, scopes: tuple[int, ...]) -> None:
        spec = ops.TABLE[op.code]
        for v in op.operands:
            if v not in self.defined:
                self.fail(op, f"operand {v!r} is not defined here")
        for a in spec.attrs:
            if a not in op.attrs:
                self.fail(op, f"attribute {a!r} is missing")
        if (op.result is None) != (spec.result == "-"):
            self.fail(op, "result expected" if op.result is None else "no result expected")
        if len(op.regions) != len(spec.regions):
            self.fail(op, f"{len(spec.regions)} regions expected")
        self.operands(op, spec)
        if op.code in ("break", "continue") and loops == 0:
            self.fail(op, "outside a loop")
        if op.code == "leave" and op.attrs["id"] not in scopes:
            self.fail(op, "no enclosing scope of that id")
        if op.code == "while" and (not op.regions[0].ops or op.regions[0].ops[-1].code != "yield"):
            self.fail(op, "cond must end in yield")
        if op.code == "yield" and (owner is None or owner.code not in _REGIONS_THAT_YIELD):
            self.fail(op, "only at the end of a region with a result")
        if op.code == "yield" and owner is not None and owner.code == "while" and op.operands[0].type != BOOL:
            self.fail(op, "a while's cond yields a bool")
        for name, region in zip(spec.regions, op.regions, strict=True):
            inner = loops + 1 if op.code in ("for", "while") and name == "body" else loops
            inside = (*scopes, op.attrs["id"]) if op.code == "scope" else scopes
            # A scope is a function body: its breaks cannot reach the caller's loops.
            self.region(region, op, 0 if op.code == "scope" else inner, inside)

    def operands(self, op: Op, spec: ops.Spec) -> None:
        if op.code in ops.MEMORY:
            self.memory(op)
            return
        wide = [v.type for v in (*op.operands, *filter(None, (op.result,))) if isinstance(v.type, TileType)]
        if (wide or tiles.is_tile_op(op)) and not self.kernel.tiled:
            self.fail(op, "only in a tile kernel")
        wrong = tiles.fault(op) if tiles.is_tile_op(op) else tiles.elementwise_fault(op) if wide else ""
        if wrong:
            self.fail(op, wrong)
        if not tiles.is_tile_op(op):
            self.letters(op, spec)

    def letters(self, op: Op, spec: ops.Spec) -> None:
        """Operands and result against the row's notation; of a tile its element's type."""
        types = [v.type.elem if isinstance(v.type, TileType) else v.type for v in op.operands]
        letters = spec.operands
        if letters.endswith("*"):
            fixed, last = letters[:-2], letters[-2]
            letters = fixed + last * (len(types) - len(fixed))
        if len(letters) != len(types):
            self.fail(op, f"{len(letters)} operands expected, {len(types)} given")
        shared = next((t for c, t in zip(letters, types, strict=True) if c == "T"), None)
        if op.code == "set":
            assert isinstance(types[0], VarType)
            shared = tiles.element(types[0].elem)
        for c, t in zip(letters, types, strict=True):
            good = {
                "A": isinstance(t, ArrayType),
                "V": isinstance(t, VarType),
                "B": t == BOOL,
                "X": isinstance(t, Scalar) and t.is_int,
                "I": isinstance(t, Scalar) and t.is_int,
                "N": isinstance(t, Scalar),
                "T": isinstance(t, Scalar | VectorType) and (t == shared or op.code in ("subgroup", "vstore")),
            }[c]
            if not good:
                self.fail(op, f"operand of type {t} does not fit {c!r} of {spec.operands!r}")
        if op.result is not None and spec.result in ("T", "B"):
            want = BOOL if spec.result == "B" else shared
            got = op.result.type.elem if isinstance(op.result.type, TileType) else op.result.type
            if got != want:
                self.fail(op, f"result type {got}, expected {want}")
        if op.code == "for" and len({v.type for v in op.operands} | {a.type for a in op.regions[0].args}) != 1:
            self.fail(op, "bounds, step and index must have one type")

    def memory(self, op: Op) -> None:
        array = op.operands[0].type
        if not isinstance(array, ArrayType):
            self.fail(op, "the first operand must be an array")
            return
        field = op.attrs.get("field", ())
        indices = array.rank + sum(1 for f in field if f.count)
        values = {"load": 0, "store": 1, "atomic": 1}[op.code] + (op.attrs.get("fn") == "compare_exchange")
        if len(op.operands) != 1 + indices + values:
            self.fail(op, f"{indices} indices and {values} values expected")
        if any(v.type != array.index for v in op.operands[1 : 1 + indices]):
            self.fail(op, f"indices must be {array.index}")
        elem = field[-1].type if field else array.elem
        for v in [*op.operands[1 + indices :], *([op.result] if op.result else [])]:
            if v.type != elem:
                self.fail(op, f"element type {elem}, got {v.type}")


def verify(kernel: Kernel) -> Kernel:
    """Raise ``InvalidIR`` unless the kernel is well formed; returns it."""
    _Verifier(kernel).region(kernel.body, None, 0, ())
    return kernel
