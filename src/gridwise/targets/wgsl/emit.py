"""A lowered kernel to WGSL text: structured control flow, names as the author wrote them, a source place a line."""

from __future__ import annotations

import re
from pathlib import PurePath

from gridwise.ir import Kernel, Op, Region, Value, verify
from gridwise.ir.types import BOOL, I64, ArrayType, Scalar, VarType
from gridwise.lang.errors import Loc
from gridwise.lang.records import dataclass

from .access import Access
from .algebra import Fragile
from .body import NOTHING, Body
from .capabilities import SHARED_BYTES, refuse_doubles, refuse_wide_atomics
from .control import ControlFlow
from .dialect import NAGA, PORTABLE, Dialect, Numerics
from .layout import Layout, Variant, layout
from .library import Library
from .numeric import Numeric, opaque_constant
from .output import atomic, print_record, subgroup
from .text import Expr, atom, call, held, infix, is_wide, literal, u32


@dataclass(frozen=True)
class Binding:
    """One storage buffer of group 0: the parameters that live in it, and whether any is written."""

    params: tuple[int, ...]
    writable: bool


@dataclass(frozen=True)
class Shader:
    """WGSL text, with the Python place of each line and all that a launch must provide."""

    text: str
    lines: tuple[Loc | None, ...]
    entry: str
    layout: Layout
    bindings: tuple[Binding, ...]
    units: tuple[int, ...]  # bytes that one step of an array parameter's start stands for
    faults: bool
    prints: bool

    def loc(self, line: int) -> Loc | None:
        """The Python place of a line of the text (counted from 1), or of the nearest one before it."""
        for n in range(min(line, len(self.lines)) - 1, -1, -1):
            if self.lines[n] is not None:
                return self.lines[n]
        return None


class Emitter(ControlFlow):
    """Writes one kernel: a method for each operation with an effect or an address; the rest is ``numeric``'s."""

    def __init__(self, kernel: Kernel, dialect: Dialect, numerics: Numerics, variant: Variant):
        self.kernel, self.dialect, self.variant = kernel, dialect, variant
        self.library = Library()
        self.numeric = Numeric(self.library, numerics)
        self.body = Body(kernel)
        self.fragile = Fragile(kernel)
        names = self.body.names
        self.entry = names(kernel.name)
        self.thread, self.block, self.number = names("thread"), names("block"), names("global_id")
        self.lane_builtin, self.size_builtin = names("subgroup_lane"), names("subgroup_size")
        self.flat = names("thread_in_block")
        # naga has lanes in one-dimensional blocks only: a block of more is laid out in a row, x fastest.
        self.flattened = kernel.block[1:] != (1, 1) and self.uses("subgroup")
        self.params = [names(p.name.replace(".", "_")) for p in kernel.params]
        self.prints = [op for op in kernel.walk() if op.code == "print"]
        self.layout = layout(kernel, self.params, bool(self.prints))
        self.access = Access(kernel, self.params, self.layout, variant, self.numeric, names)
        self.tail: set[int] = set()  # leaves that are the end of their scope anyway
        self.scalars()

    # -- parameters and values -------------------------------------------------------------------------
    def scalars(self) -> None:
        for slot, member in zip(self.kernel.slots(), self.layout.members, strict=True):
            if slot.kind != "scalar":
                continue
            assert slot.type is not None
            text = atom(f"args.{member.name}")
            if member.wide:
                text = call("vec2<u32>", f"args.{member.name}_low_word", f"args.{member.name}_high_word")
                if slot.type.is_float:
                    text = self.numeric.call("gw_f64", text)
            elif slot.type == BOOL:
                text = infix("!=", text, u32(0))
            self.body.known[self.kernel.params[slot.param].value] = text

    def value(self, v: Value) -> tuple[Expr, frozenset[Value]]:
        if v.op is not None and v.op.code == "const":
            assert isinstance(v.type, Scalar)
            return literal(v.op.attrs["value"], v.type), NOTHING
        return self.body.take(v)

    def text(self, v: Value) -> Expr:
        return self.value(v)[0]

    def operands(self, op: Op) -> tuple[list[Expr], frozenset[Value]]:
        """The operands' texts. Constants are hidden where an operation on constants alone would be folded."""
        pairs = [self.value(v) for v in op.operands]
        texts = [p[0] for p in pairs]
        constants = [v.op is not None and v.op.code == "const" for v in op.operands]
        for n, v in enumerate(op.operands):
            t = v.type
            if not constants[n] or not isinstance(t, Scalar) or t == BOOL or v.op is None:
                continue
            zero = t.is_float and id(op) in self.fragile.opaque_zeros and v.op.attrs["value"] == 0
            if zero or (n == 0 and all(constants) and op.code != "select"):
                texts[n] = self.numeric.opaque(texts[n], t) if t.is_float else opaque_constant(texts[n], t)
        if id(op) in self.fragile.first_operand:
            t = op.operands[0].type
            assert isinstance(t, Scalar)
            texts[0] = self.numeric.opaque(texts[0], t)
        return texts, frozenset().union(*(p[1] for p in pairs))

    # -- the whole -------------------------------------------------------------------------------------
    def shader(self) -> Shader:
        self.access.refuse_more_shared_than(SHARED_BYTES)
        self.prologue()
        self.region(self.kernel.body)
        head: list[str] = [f"// {self.kernel.name}, from {PurePath(self.kernel.loc.file).name}:{self.kernel.loc.line}"]
        if self.uses("subgroup") and "subgroup" in self.dialect.enables:
            head.insert(0, f"enable {self.dialect.enables['subgroup']};")
        head += ["", *self.layout.declaration(), ""]
        head += self.access.declarations()
        head.append("@group(1) @binding(0) var<uniform> args: Launch;")
        if self.kernel.sites:
            head.append("@group(1) @binding(1) var<storage, read_write> faults: array<atomic<u32>>;")
        if self.prints:
            head.append("@group(1) @binding(2) var<storage, read_write> prints: array<atomic<u32>>;")
        head += [*self.access.workgroup(), *self.library.text(), ""]
        x, y, z = self.kernel.block
        size = f"{x * y * z}" if self.flattened else f"{x}, {y}, {z}"
        signature = f"@compute @workgroup_size({size})"
        lines: list[tuple[str, Loc | None]] = [(h, None) for h in head]
        lines += [(signature, self.kernel.loc), (f"fn {self.entry}({self.builtins()}) {{", self.kernel.loc)]
        lines += [*self.body.lines, ("}", self.kernel.loc)]
        return Shader(
            "\n".join(text for text, _ in lines) + "\n",
            tuple(loc for _, loc in lines),
            self.entry,
            self.layout,
            tuple(Binding(*b) for b in self.access.bindings()),
            self.access.units(),
            bool(self.kernel.sites),
            bool(self.prints),
        )

    def uses(self, *codes: str) -> bool:
        return any(op.code in codes for op in self.kernel.walk())

    def builtins(self) -> str:
        given = [] if self.flattened else [("local_invocation_id", self.thread, "vec3<u32>")]
        if self.variant.folded:
            given += [("workgroup_id", "gw_group", "vec3<u32>"), ("num_workgroups", "gw_groups", "vec3<u32>")]
        else:
            given.append(("workgroup_id", self.block, "vec3<u32>"))
        if not self.variant.folded and not self.flattened:
            given.append(("global_invocation_id", self.number, "vec3<u32>"))
        if self.access.zeroed() or self.flattened:
            given.append(("local_invocation_index", self.flat, "u32"))
        if self.uses("subgroup"):
            given += [("subgroup_invocation_id", self.lane_builtin, "u32"), ("subgroup_size", self.size_builtin, "u32")]
        text = "\n".join(line for line, _ in self.body.lines)
        used = [g for g in given if re.search(rf"\b{g[1]}\b", text)]
        return ", ".join(f"@builtin({b}) {name}: {t}" for b, name, t in used)

    def prologue(self) -> None:
        line, loc = self.body.line, self.kernel.loc
        if self.variant.folded:
            line("let gw_place = gw_group.x + gw_groups.x * (gw_group.y + gw_groups.y * gw_group.z);", loc)
            line("if (gw_place >= args.grid_x * args.grid_y * args.grid_z) { return; }", loc)
            place = "gw_place, 0u, 0u"  # no division where the grid is a row
            if self.kernel.domain > 1:
                place = "gw_place % args.grid_x, gw_place / args.grid_x % args.grid_y"
                place += ", gw_place / args.grid_x / args.grid_y" if self.kernel.domain > 2 else ", 0u"
            line(f"let {self.block} = vec3<u32>({place});", loc)
        x, y, z = self.kernel.block
        if self.flattened:
            place = f"{self.flat} % {x}u, {self.flat} / {x}u % {y}u, {self.flat} / {x * y}u"
            line(f"let {self.thread} = vec3<u32>({place});", loc)
        if self.variant.folded or self.flattened:
            line(f"let {self.number} = {self.block} * vec3<u32>({x}u, {y}u, {z}u) + {self.thread};", loc)
        threads = self.kernel.block[0] * self.kernel.block[1] * self.kernel.block[2]
        for name, length, zero in self.access.zeroed():
            line(f"for (var gw_n = {self.flat}; gw_n < {length}u; gw_n += {threads}u) {{ {zero.format(name)} }}", loc)
        if self.access.zeroed():
            line("workgroupBarrier();", loc)
        if self.kernel.sites or self.prints:
            b = self.kernel.block
            if self.kernel.domain == 1:
                line(f"let gw_thread = {self.number}.x;", loc)
            else:
                self.library.use("gw_linear")
                line(f"let gw_thread = gw_linear({self.number}, args.grid_x * {b[0]}u, args.grid_y * {b[1]}u);", loc)

    # -- statements ------------------------------------------------------------------------------------
    def region(self, region: Region) -> None:
        for op in region.ops:
            method = getattr(self, f"op_{op.code}", None)
            if method is not None:
                method(op)
            else:
                self.scalar(op)

    def scalar(self, op: Op) -> None:
        """An operation on scalars, with no effect."""
        assert op.result is not None and isinstance(op.result.type, Scalar), op.code
        t = op.operands[0].type
        assert isinstance(t, Scalar)
        args, reads = self.operands(op)
        constants = [v.op.attrs["value"] if v.op is not None and v.op.code == "const" else None for v in op.operands]
        text = self.numeric.operation(op.code, t, args, constants)
        self.define(op, text, reads)

    def define(self, op: Op, text: Expr, reads: frozenset[Value] = NOTHING) -> None:
        if op.result in self.fragile.protected:
            assert isinstance(op.result.type, Scalar)
            text = self.numeric.opaque(text, op.result.type)
        self.body.define(op, text, reads)

    def op_const(self, op: Op) -> None:
        """Written where it is used."""

    def op_select(self, op: Op) -> None:
        (cond, a, b), reads = self.operands(op)
        self.define(op, self.numeric.select(cond, a, b), reads)

    def op_cast(self, op: Op) -> None:
        (x,), reads = self.operands(op)
        t = op.operands[0].type
        assert op.result is not None and isinstance(t, Scalar) and isinstance(op.result.type, Scalar)
        self.define(op, self.numeric.cast(x, t, op.result.type), reads)

    def op_bitcast(self, op: Op) -> None:
        (x,), reads = self.operands(op)
        t = op.operands[0].type
        assert op.result is not None and isinstance(t, Scalar) and isinstance(op.result.type, Scalar)
        self.define(op, self.numeric.bitcast(x, t, op.result.type), reads)

    def op_math(self, op: Op) -> None:
        args, reads = self.operands(op)
        t = op.operands[0].type
        assert isinstance(t, Scalar)
        self.define(op, self.numeric.function(op.attrs["fn"], t, args), reads)

    # -- place in the grid -----------------------------------------------------------------------------
    def position(self, op: Op, text: str) -> None:
        assert op.result is not None
        if op.result.type == I64:
            self.define(op, call("vec2<u32>", text, "0u"))
        else:
            self.define(op, call("i32", text))

    def op_thread_idx(self, op: Op) -> None:
        self.position(op, f"{self.thread}.{'xyz'[op.attrs['axis']]}")

    def op_block_idx(self, op: Op) -> None:
        self.position(op, f"{self.block}.{'xyz'[op.attrs['axis']]}")

    def op_global_idx(self, op: Op) -> None:
        self.position(op, f"{self.number}.{'xyz'[op.attrs['axis']]}")

    def op_grid_dim(self, op: Op) -> None:
        self.position(op, f"args.grid_{'xyz'[op.attrs['axis']]}")

    def op_block_dim(self, op: Op) -> None:
        self.position(op, f"{self.kernel.block[op.attrs['axis']]}u")

    def op_dim(self, op: Op) -> None:
        self.define(op, self.access.dim(op.operands[0], op.attrs["axis"]))

    # -- variables -------------------------------------------------------------------------------------
    def op_var(self, op: Op) -> None:
        assert op.result is not None and isinstance(op.result.type, VarType)
        name = self.body.names(op.attrs["name"] or "v")
        self.body.known[op.result] = atom(name)
        self.body.line(f"var {name}: {held(op.result.type.scalar)};", op.loc)

    def op_get(self, op: Op) -> None:
        slot = op.operands[0]
        self.define(op, self.body.known[slot], frozenset({slot}))

    def op_set(self, op: Op) -> None:
        slot, v = op.operands
        text = self.text(v)
        self.body.settle([slot])
        self.body.line(f"{self.body.known[slot]} = {text};", op.loc)

    # -- memory ----------------------------------------------------------------------------------------
    def op_shared(self, op: Op) -> None:
        """Declared at module scope (``access.workgroup``)."""

    def op_local(self, op: Op) -> None:
        assert op.result is not None
        self.body.line(self.access.local(op.result), op.loc)

    def op_load(self, op: Op) -> None:
        array = op.operands[0]
        assert isinstance(array.type, ArrayType)
        pairs = [self.value(v) for v in op.operands[1:]]
        place = self.access.place(op, [p[0] for p in pairs])
        reads = frozenset().union(*(p[1] for p in pairs))
        mutable = array.type.space != "global" or array.type.access != "read"
        self.define(op, self.access.memory[array].load(place), reads | {array} if mutable else reads)

    def op_store(self, op: Op) -> None:
        array = op.operands[0]
        indices = [self.text(v) for v in op.operands[1:-1]]
        value = self.text(op.operands[-1])
        self.body.settle([array])
        memory = self.access.memory[array]
        if memory.repeats and not (value.atom and "(" not in value):
            value = self.named(value, "value", op)
        place = self.access.place(op, indices)
        for text in memory.store(place, value):
            self.body.line(text, op.loc)

    def op_atomic(self, op: Op) -> None:
        count = 1 + (op.attrs["fn"] == "compare_exchange")
        indices = [self.text(v) for v in op.operands[1:-count]]
        values = [self.text(v) for v in op.operands[-count:]]
        self.body.settle()
        reference, word = self.access.memory[op.operands[0]].atomic_at(self.access.place(op, indices))
        atomic(self, op, reference, word, values)

    def op_barrier(self, op: Op) -> None:
        self.body.settle()
        if self.access.written:
            self.body.line("storageBarrier();", op.loc)
        self.body.line("workgroupBarrier();", op.loc)

    def group(self, array: Value, v: Value) -> Expr:
        """The number in the binding of the group of ``array`` that starts at ``v``, a multiple of its length."""
        number = self.group_number(v)
        start = self.access.group_start(array)
        return number if start is None else infix("+", call("u32", number), start)

    def group_number(self, v: Value) -> Expr:
        shift = self.kernel.coarsen.bit_length() - 1
        wide, op = is_wide(self.kernel.index), v.op
        by = op.operands[1].op if op is not None and op.code == "shl" else None
        if op is not None and by is not None and by.code == "const" and by.attrs["value"] == shift:
            number = self.text(op.operands[0])
            return atom(f"{number.operand}.x") if wide else number
        text = self.text(v)
        return infix(">>", atom(f"{text.operand}.x") if wide else text, u32(shift))

    def op_vload(self, op: Op) -> None:
        assert op.result is not None
        array = op.operands[0]
        group = self.group(array, op.operands[1])
        self.body.let(op, Expr(self.access.memory[array].vload(group)))  # type: ignore[attr-defined]

    def op_lane(self, op: Op) -> None:
        vector = op.operands[0]
        assert vector.op is not None
        memory = self.access.memory[vector.op.operands[0]]
        self.define(op, memory.lane(self.body.known[vector], op.attrs["index"]))  # type: ignore[attr-defined]

    def op_pack(self, op: Op) -> None:
        """Its operands are written by the vstore."""

    def op_vstore(self, op: Op) -> None:
        array, index, vector = op.operands
        assert vector.op is not None
        values = [self.text(v) for v in vector.op.operands]
        group = self.group(array, index)
        self.body.settle([array])
        for text in self.access.memory[array].vstore(group, values):  # type: ignore[attr-defined]
            self.body.line(text, op.loc)

    # -- faults and output -----------------------------------------------------------------------------
    def op_fault(self, op: Op) -> None:
        cond = op.operands[0]
        details = []
        for v in op.operands[1:]:
            assert isinstance(v.type, Scalar)
            details.append(self.numeric.cast(self.text(v), v.type, I64))
        details += [Expr("vec2<u32>(0u, 0u)", True)] * (2 - len(details))
        self.library.use("gw_fault")
        report = f"gw_fault(gw_thread, {op.attrs['site']}u, {details[0]}, {details[1]});"
        if cond.op is not None and cond.op.code == "const" and cond.op.attrs["value"]:
            self.body.line(report, op.loc)
        else:
            self.body.line(f"if ({self.text(cond)}) {{ {report} }}", op.loc)

    def op_print(self, op: Op) -> None:
        print_record(self, op, self.prints.index(op))

    def op_assume(self, op: Op) -> None:
        """For analysis only."""

    def op_subgroup(self, op: Op) -> None:
        args, _ = self.operands(op)
        self.body.settle()
        subgroup(self, op, args)


def emit(
    kernel: Kernel, dialect: Dialect = NAGA, numerics: Numerics = PORTABLE, variant: Variant | None = None
) -> Shader:
    """WGSL of a lowered kernel. Raises UnsupportedError, at its line, for what WGSL cannot do."""
    if not dialect.f64:
        refuse_doubles(kernel)
    if not dialect.i64:
        refuse_wide_atomics(kernel)
    arrays = [n for n, p in enumerate(kernel.params) if p.is_array]
    chosen = variant or Variant()
    if not chosen.binding:
        chosen = Variant(chosen.starts, chosen.folded, tuple(range(len(arrays))), chosen.shared_bytes)
    return Emitter(verify(kernel), dialect, numerics, chosen).shader()
