"""What the emitter hands on: the text, and what a launch must add to the kernel's own arguments."""

from __future__ import annotations

from gridwise.lang.records import dataclass


@dataclass(frozen=True)
class Emitted:
    """A kernel as LLVM IR for NVPTX.

    llvm            the module's text.
    entry           the kernel's name in it.
    faults, prints  it reports failed checks, it prints: the arguments after ``Kernel.slots()`` are then the address
                    of the fault buffer (u64), of the print buffer (u64), the module's tag (u32) if either, and the
                    serial number of the launch (u32) if it prints.
    static_shared   bytes of shared memory declared in the module.
    dynamic_shared  bytes of the kernel's own shared arrays that lie in dynamic shared memory, because a block may
                    declare only 48 KiB; what the launch asks for comes behind them.
    """

    llvm: str
    entry: str
    faults: bool
    prints: bool
    static_shared: int
    dynamic_shared: int
