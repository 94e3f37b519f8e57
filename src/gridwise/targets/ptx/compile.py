"""LLVM IR text to PTX text, with the NVPTX back end that llvmlite carries. The driver turns PTX into machine code."""

from __future__ import annotations

import functools
import re
from typing import Any

from gridwise.targets.llvm.lock import LLVM

from .capabilities import architecture

TRIPLE = "nvptx64-nvidia-cuda"


@functools.cache
def _binding() -> Any:
    import llvmlite.binding as llvm

    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    return llvm


@functools.cache
def _machine(capability: tuple[int, int], driver: int) -> Any:
    llvm = _binding()
    arch, version = architecture(capability, driver, llvm.llvm_version_info[0])
    target = llvm.Target.from_triple(TRIPLE)
    return target.create_target_machine(cpu=f"sm_{arch}", features=f"+ptx{version}", opt=3)


def start() -> None:
    """Load LLVM and run it once, on nothing: its own start then does not come on top of the first kernel."""
    compile("define ptx_kernel void @nothing() { ret void }\n")


def optimise(text: str, capability: tuple[int, int] = (9, 0), driver: int = 13000) -> Any:
    """Parse, verify and optimise LLVM IR; an llvmlite module. The caller holds ``LLVM``."""
    llvm = _binding()
    machine = _machine(capability, driver)
    module = llvm.parse_assembly(text)
    module.triple = TRIPLE
    module.data_layout = str(machine.target_data)
    module.verify()
    options = llvm.create_pipeline_tuning_options(speed_level=3)
    # The loop vectoriser is for CPUs; here threads are the lanes, and adjacent accesses are merged by SLP.
    options.loop_vectorization = False
    options.slp_vectorization = True
    builder = llvm.create_pass_builder(machine, options)
    builder.getModulePassManager().run(module, builder)
    return module


_ABS = re.compile(r"\babs\.s(16|32|64)\s+(%\w+), (%\w+);")


def _wrapping_abs(ptx: str) -> str:
    """Integer ``abs`` by shift, xor and subtraction: ptxas takes the result of ``abs`` for non-negative, and builds on
    that, where the language has abs(min) == min. LLVM would turn any such form in its own IR back into ``abs``.
    """

    def spelled(m: re.Match[str]) -> str:
        bits, to, x = m.groups()
        return (
            f"{{ .reg .b{bits} %sign; shr.s{bits} %sign, {x}, {int(bits) - 1}; "
            f"xor.b{bits} {to}, {x}, %sign; sub.s{bits} {to}, {to}, %sign; }}"
        )

    return _ABS.sub(spelled, ptx)


_TURN = re.compile(r"\b(neg|not)\.[sb]16\s+(%\w+), (%\w+);")


def _packed_turns(ptx: str) -> str:
    """``neg`` and ``not`` of 16 bits in 32, between a packing and an unpacking: ptxas of CUDA 13.0 folds the short
    forms into their users without their sign (min(min(x, 0), -y) gave 0 for a negative -y).
    """

    def spelled(m: re.Match[str]) -> str:
        fn, to, x = m.groups()
        return (
            f"{{ .reg .b32 %wide; .reg .b16 %none; mov.b16 %none, 0; mov.b32 %wide, {{{x}, %none}}; "
            f"{fn}.{'s' if fn == 'neg' else 'b'}32 %wide, %wide; mov.b32 {{{to}, %none}}, %wide; }}"
        )

    return _TURN.sub(spelled, ptx)


_NEGATION = re.compile(r"\bneg\.s32\s+(%\w+), (%\w+);")


def _wide_negations(ptx: str) -> str:
    """``neg`` of 32 bits as the low word of one of 64, which ptxas makes a single IADD3 again.

    ptxas of CUDA 13.0 merges max(max(x, -y), z), and min, of signed integers into VIMNMX3, which has no sign for -y:
    y went in. It sees through 0 - y, y * -1 and the carry forms as well, but not through a word of a pair.
    """

    def spelled(m: re.Match[str]) -> str:
        to, x = m.groups()
        return (
            f"{{ .reg .b64 %pair; .reg .b32 %high; mov.b64 %pair, {{{x}, {x}}}; "
            f"neg.s64 %pair, %pair; mov.b64 {{{to}, %high}}, %pair; }}"
        )

    return _NEGATION.sub(spelled, ptx)


def compile(text: str, capability: tuple[int, int] = (9, 0), driver: int = 13000) -> tuple[str, str]:
    """(optimised LLVM IR, PTX) for a device of ``capability`` under a driver of CUDA version ``driver``.

    Raises RuntimeError if the IR is not valid: that is a bug of the emitter, never of a kernel's author.
    """
    with LLVM:
        module = optimise(text, capability, driver)
        ptx = str(_machine(capability, driver).emit_assembly(module))
        # Negations of words first: the turns of 16 bits are spelled with one, whose sign an unpacking keeps.
        return str(module), _packed_turns(_wide_negations(_wrapping_abs(ptx)))
