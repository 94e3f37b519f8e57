"""What a shader is given: the launch block, the bindings, and the variants of one kernel.

The launch block is one uniform buffer of 32-bit words: blocks of the grid (x, y, z), a zero, in kernels that print
the module's tag and the launch's number, then one entry a machine argument (``Kernel.slots()``): for an array its
start within the binding, its dims and, if strided, its strides; for a scalar its value. A 64-bit entry takes two
words, low first; narrow integers and bools take one, extended; f16 and bf16 are given as f32.

Group 0 binds one storage buffer an array. Group 1 binds the launch block (0), the fault records (1) and the
print records (2) where the kernel has any: their place moves from launch to launch by dynamic offsets.
"""

from __future__ import annotations

from collections.abc import Sequence

from gridwise.ir import Kernel
from gridwise.ir.types import BOOL, F64, ArrayType, Scalar
from gridwise.lang.records import dataclass

from .text import Names, is_wide

HEADER = ("grid_x", "grid_y", "grid_z", "zero")
PRINT_HEADER = ("print_tag", "print_serial")  # follow it in kernels that print


@dataclass(frozen=True)
class Variant:
    """What else than the kernel decides the text. The common launch has every default.

    starts         arrays may begin anywhere in their binding (else at its first byte).
    folded         the grid does not fit the dispatch limits: blocks are numbered in one and taken apart.
    binding        for each array parameter, in order, the number of the array whose binding it shares. Arrays of
                   one buffer of which one is written must share, because WebGPU allows a buffer one use a launch.
    shared_bytes   of the launch-sized shared array.
    """

    starts: bool = False
    folded: bool = False
    binding: tuple[int, ...] = ()
    shared_bytes: int = 0


@dataclass(frozen=True)
class Member:
    """One entry of the launch block: its name in the shader, WGSL type, place in words, and struct format."""

    name: str
    type: str
    word: int
    format: str
    wide: bool = False


@dataclass(frozen=True)
class Layout:
    """The launch block of a kernel: one member a slot, in slot order, after the header."""

    header: tuple[str, ...]
    members: tuple[Member, ...]
    words: int
    format: str  # of struct.pack_into, header included

    def declaration(self, indent: str = "    ") -> list[str]:
        out = ["struct Launch {", *(f"{indent}{h}: u32," for h in self.header)]
        for m in self.members:
            if m.wide:
                out += [f"{indent}{m.name}_low_word: u32,", f"{indent}{m.name}_high_word: u32,"]
            else:
                out.append(f"{indent}{m.name}: {m.type},")
        return [*out, "}"]


def _entry(t: Scalar) -> tuple[str, str, bool]:
    """(WGSL type, struct format, two words?) of a scalar in the block."""
    if t == BOOL:
        return "u32", "I", False
    if t == F64:
        return "u32", "d", True
    if is_wide(t):
        return "u32", "q" if t.signed else "Q", True
    if t.is_float:
        return "f32", "f", False
    return ("i32", "i", False) if t.signed else ("u32", "I", False)


def layout(kernel: Kernel, names: Sequence[str], prints: bool) -> Layout:
    """``names``: what each parameter is called in the shader; ``prints``: whether the kernel prints."""
    header = HEADER + PRINT_HEADER if prints else HEADER
    free = Names()
    free.taken |= set(header)
    members, word, fmt = [], len(header), "<" + "I" * len(header)
    for slot in kernel.slots():
        name = names[slot.param]
        param = kernel.params[slot.param].type
        if slot.kind == "ptr":
            type_, code, wide = "u32", "I", False
            name += "_start"
        else:
            assert slot.type is not None
            type_, code, wide = _entry(slot.type)
            if slot.kind == "dim":
                assert isinstance(param, ArrayType)
                name += "_len" if param.rank == 1 else f"_dim{slot.axis}"
            elif slot.kind == "stride":
                name += f"_stride{slot.axis}"
        members.append(Member(free(name), type_, word, code, wide))
        word += 2 if wide else 1
        fmt += code
    return Layout(header, tuple(members), word, fmt)
