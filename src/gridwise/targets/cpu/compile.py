"""LLVM IR text to object code, and object code to a callable address. The two halves meet at bytes, which a disk
cache may keep.

LLJIT links (never MCJIT: a missing symbol would end the process). Loaded code is never unloaded: see ``_LOADED``.
"""

from __future__ import annotations

import ctypes
import functools
from typing import Any

from gridwise.targets.llvm.lock import LLVM

_LOADED: list[Any] = []  # trackers: a finalizer may still launch a kernel when its owner is gone


@functools.cache
def _llvm() -> Any:
    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    return llvm


@functools.cache
def target_machine() -> Any:
    """Code for this processor, with everything it has."""
    llvm = _llvm()
    return llvm.Target.from_default_triple().create_target_machine(
        cpu=llvm.get_host_cpu_name(),
        features=llvm.get_host_cpu_features().flatten(),
        opt=3,
        reloc="pic",
        codemodel="small",
    )


@functools.cache
def _linker() -> Any:
    llvm = _llvm()
    # JITLink lays an object out in one piece. The older linker may put code and constants more than 2 GiB apart in
    # a crowded address space, which this code model cannot reach, and ends the process.
    return llvm.create_lljit_compiler(target_machine(), use_jit_link=True)


# For kernels without loops: what unmakes allocas, folds and merges, at a quarter of the cost of -O3.
SIMPLE = ("sroa", "instruction_combine", "simplify_cfg", "loop_simplify", "loop_rotate", "new_gvn",
          "instruction_combine", "dead_store_elimination", "simplify_cfg")


def optimised(text: str, simple: bool = False) -> Any:
    """Parse, verify and optimise; an ``llvmlite`` module. ``simple`` takes the short way, for code without loops."""
    llvm = _llvm()
    with LLVM:
        module = llvm.parse_assembly(text)
        module.verify()
        options = llvm.create_pipeline_tuning_options(speed_level=3)
        options.loop_vectorization = options.slp_vectorization = True
        builder = llvm.create_pass_builder(target_machine(), options)
        if simple:
            passes = llvm.create_new_module_pass_manager()
            for name in SIMPLE:
                getattr(passes, f"add_{name}_pass")()
        else:
            passes = builder.getModulePassManager()
        passes.run(module, builder)
        return module


def to_object(text: str, simple: bool = False) -> bytes:
    """Compile: relocatable machine code for this processor."""
    with LLVM:
        return bytes(target_machine().emit_object(optimised(text, simple)))


def to_assembly(text: str, simple: bool = False) -> str:
    """The machine code as assembly text, for people."""
    with LLVM:
        return str(target_machine().emit_assembly(optimised(text, simple)))


def load_object(code: bytes, symbol: str) -> int:
    """Link object code into this process; the address of ``symbol``."""
    llvm = _llvm()
    with LLVM:
        name = f"gridwise.{len(_LOADED)}"
        tracker = llvm.JITLibraryBuilder().add_object_img(code).add_current_process().export_symbol(symbol).link(
            _linker(), name)
        _LOADED.append(tracker)
        return int(tracker[symbol])


KERNEL = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p)
"""The signature of a loaded kernel: arguments, units a chunk, units in all, scratch. ctypes releases the GIL."""
