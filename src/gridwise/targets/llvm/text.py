"""LLVM IR as text: functions, blocks, names, constants and debug locations.

We print LLVM IR ourselves because ``llvmlite.ir`` lacks bf16, string function attributes and scopes of
atomics. Text is deterministic: equal kernels give equal text, so that compiled code can be cached by it.
"""

from __future__ import annotations

import os
import re
import struct
from collections.abc import Iterator
from contextlib import contextmanager

from gridwise.ir.types import Scalar
from gridwise.lang.errors import Loc

_UNSAFE = re.compile(r"[^A-Za-z0-9_.$-]")


def identifier(name: str) -> str:
    """``name`` with the characters that LLVM identifiers lack replaced."""
    return _UNSAFE.sub("_", name) or "_"


def float_constant(value: float, bits: int) -> str:
    """A float constant of 32 or 64 bits: LLVM writes both as the hex pattern of the double of equal value."""
    try:
        narrow = struct.unpack("<f", struct.pack("<f", value))[0] if bits == 32 else value
    except OverflowError:
        narrow = float("inf") if value > 0 else float("-inf")
    return f"0x{struct.unpack('<Q', struct.pack('<d', narrow))[0]:016X}"


def vector(type_text: str, lanes: int) -> str:
    """``type_text`` itself, or a vector of that many lanes."""
    return type_text if lanes == 1 else f"<{lanes} x {type_text}>"


def splat(type_text: str, constant: str, lanes: int) -> str:
    """A constant in every lane, without its type."""
    if lanes == 1:
        return constant
    if constant in ("0", "false", "zeroinitializer"):
        return "zeroinitializer"
    return f"splat ({type_text} {constant})"


class Module:
    """One LLVM module: declarations, globals, functions and metadata."""

    def __init__(self, triple: str, datalayout: str, debug: bool = True):
        self.triple, self.datalayout = triple, datalayout
        self.debug = debug
        self.debug_kind = "LineTablesOnly"  # what the compile unit of a described function asks for
        self.declarations: dict[str, str] = {}
        self.globals: list[str] = []
        self.functions: list[Function] = []
        self.attributes: list[str] = []
        self.metadata: list[str] = []
        self.named: dict[str, str] = {}
        self._nodes: dict[str, int] = {}

    def declare(self, name: str, signature: str) -> str:
        """Declare a function once; ``signature`` has ``{}`` for ``@name``. Returns ``@name``."""
        self.declarations.setdefault(name, "declare " + signature.format("@" + name))
        return "@" + name

    def attribute_group(self, text: str) -> str:
        """A function attribute group; returns its reference."""
        if text not in self.attributes:
            self.attributes.append(text)
        return f"#{self.attributes.index(text)}"

    def node(self, text: str, distinct: bool = False) -> str:
        """A metadata node; equal ones are shared. Returns its reference."""
        if not distinct and text in self._nodes:
            return f"!{self._nodes[text]}"
        n = len(self.metadata)
        self.metadata.append(("distinct " if distinct else "") + text)
        self._nodes[text] = n
        return f"!{n}"

    def self_node(self, *rest: str) -> str:
        """A distinct node whose first operand is itself: what loop hints hang on."""
        n = len(self.metadata)
        self.metadata.append(f"distinct !{{{', '.join((f'!{n}', *rest))}}}")
        return f"!{n}"

    def text(self) -> str:
        out = [f'target datalayout = "{self.datalayout}"', f'target triple = "{self.triple}"', ""]
        out += self.globals
        for f in self.functions:
            out += ["", *f.text()]
        out += ["", *self.declarations.values()]
        out += ["", *(f"attributes #{n} = {{ {a} }}" for n, a in enumerate(self.attributes))]
        out += ["", *(f"!{name} = {value}" for name, value in self.named.items())]
        out += [f"!{n} = {m}" for n, m in enumerate(self.metadata)]
        return "\n".join(out) + "\n"


class Function:
    """One function being written. Blocks are in the order they were started; allocas gather in the entry."""

    def __init__(self, module: Module, header: str, tail: str = ""):
        self.module, self.header, self.tail = module, header, tail
        self.entry: list[str] = []
        self.lines: list[str] = []
        taken = ["entry", "start", *re.findall(r"%([A-Za-z0-9_.$-]+)", header)]
        self.used: dict[str, int] = dict.fromkeys(taken, 1)
        self.open = True  # the current block still lacks its terminator
        self.position = ""  # ", !dbg !7" for the lines being written
        self._subprogram = ""
        module.functions.append(self)

    # -- names -------------------------------------------------------------------------------------------
    def fresh(self, hint: str = "v") -> str:
        """A name not used before in this function, without its sigil."""
        base = identifier(hint) if hint else "v"
        if base[-1].isdigit():
            base += "."
        n = self.used.get(base, 0)
        self.used[base] = n + 1
        return base if n == 0 else f"{base}{n}"

    # -- instructions ------------------------------------------------------------------------------------
    def value(self, text: str, hint: str = "v") -> str:
        """An instruction with a result; returns the result's name with its sigil."""
        name = "%" + self.fresh(hint)
        self.do(f"{name} = {text}")
        return name

    def do(self, text: str) -> None:
        """An instruction without a result. After a terminator nothing can be reached, so it is dropped."""
        if self.open:
            self.lines.append(f"  {text}{self.position}")

    def end(self, text: str) -> None:
        """A terminator."""
        if self.open:
            self.lines.append(f"  {text}{self.position}")
            self.open = False

    def alloca(self, type_text: str, hint: str, align: int = 0, initial: str = "") -> str:
        """A stack slot in the entry block, with an optional initial constant."""
        name = "%" + self.fresh(hint)
        self.entry.append(f"  {name} = alloca {type_text}" + (f", align {align}" if align else ""))
        if initial:
            self.entry.append(f"  store {type_text} {initial}, ptr {name}")
        return name

    # -- blocks ------------------------------------------------------------------------------------------
    def label(self, hint: str) -> str:
        return self.fresh(hint)

    def jump(self, label: str) -> None:
        self.end(f"br label %{label}")

    def branch(self, cond: str, then: str, otherwise: str) -> None:
        self.end(f"br i1 {cond}, label %{then}, label %{otherwise}")

    def block(self, label: str) -> None:
        """Start a block; falls into it if the one before is open."""
        self.jump(label)
        self.lines.append(f"{label}:")
        self.open = True

    # -- positions ---------------------------------------------------------------------------------------
    def describe(self, name: str, loc: Loc) -> None:
        """Give this function debug information: it comes from ``loc``."""
        m = self.module
        if not m.debug:
            return
        unit = m.node(
            f'!DICompileUnit(language: DW_LANG_C99, file: {self._file(loc.file)}, producer: "gridwise", '
            f"isOptimized: true, runtimeVersion: 0, emissionKind: {m.debug_kind})",
            distinct=True,
        )
        types = m.node("!DISubroutineType(types: null)")
        self._subprogram = m.node(
            f'!DISubprogram(name: "{identifier(name)}", scope: {self._file(loc.file)}, file: {self._file(loc.file)}, '
            f"line: {loc.line}, type: {types}, scopeLine: {loc.line}, spFlags: DISPFlagDefinition, unit: {unit})",
            distinct=True,
        )
        self._home = loc.file
        self.tail += f" !dbg {self._subprogram}"
        version, dwarf = m.node('!{i32 2, !"Debug Info Version", i32 3}'), m.node('!{i32 7, !"Dwarf Version", i32 4}')
        m.named["llvm.dbg.cu"] = f"!{{{unit}}}"
        m.named["llvm.module.flags"] = f"!{{{version}, {dwarf}}}"
        self.at(loc)

    def _file(self, path: str) -> str:
        folder, name = os.path.split(path)
        name, folder = (s.replace("\\", "\\5C").replace('"', "\\22") for s in (name, folder))
        return self.module.node(f'!DIFile(filename: "{name}", directory: "{folder}")')

    def at(self, loc: Loc | None) -> None:
        """Instructions from here on come from ``loc``. Where code was inlined this is the inner place."""
        if loc is None or not self._subprogram:
            return
        scope = self._subprogram
        if loc.file != self._home:
            scope = self.module.node(
                f"!DILexicalBlockFile(scope: {scope}, file: {self._file(loc.file)}, discriminator: 0)"
            )
        place = self.module.node(f"!DILocation(line: {loc.line}, column: {loc.col + 1}, scope: {scope})")
        self.position = f", !dbg {place}"

    @contextmanager
    def keeping_position(self) -> Iterator[None]:
        saved = self.position
        try:
            yield
        finally:
            self.position = saved

    def text(self) -> list[str]:
        return [f"define {self.header}{self.tail} {{", "entry:", *self.entry, "  br label %start", "start:",
                *self.lines, "}"]


def scalar_text(t: Scalar) -> str:
    """The LLVM type of a value: bools are i1 (one byte only in memory), 8-bit floats travel as i8."""
    if t.kind == "bool":
        return "i1"
    if t.kind != "float":
        return f"i{t.bits}"
    return {"f16": "half", "bf16": "bfloat", "f32": "float", "f64": "double"}.get(t.name, "i8")


def memory_text(t: Scalar) -> str:
    """The LLVM type of an element in memory."""
    return "i8" if t.kind == "bool" else scalar_text(t)
