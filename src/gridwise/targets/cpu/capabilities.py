"""What the CPU can do, and what this machine's is like (asked of LLVM, which reads it from the processor)."""

from __future__ import annotations

import functools

from gridwise.lang.records import dataclass
from gridwise.lang.target import Cap

CAPS = frozenset({Cap.F64, Cap.F16, Cap.I64, Cap.ATOMIC_I64, Cap.ATOMIC_F32, Cap.SUBGROUP, Cap.PRINT})

MAX_THREADS_PER_BLOCK = 1024  # the portable limit of CUDA; nothing on a CPU asks for less or more
SHARED_BYTES = 1 << 20  # a worker's scratch: half of a common second-level cache


@dataclass(frozen=True)
class Machine:
    """``lanes``: threads of a gang, which is a subgroup too. Two vectors of floats where a vector is 256 bits:
    enough independent work to hide latencies with 16 registers; one where it is 512. ``registers``: how many f32
    values of a gang the vector registers hold."""

    triple: str
    datalayout: str
    cpu: str
    features: str
    lanes: int
    half_instructions: bool
    registers: int


@functools.cache
def host() -> Machine:
    """This machine."""
    import llvmlite.binding as llvm

    from .compile import target_machine

    cpu, features = llvm.get_host_cpu_name(), llvm.get_host_cpu_features()
    lanes = 16 if features.get("avx") or features.get("neon") else 8
    tm = target_machine()
    wide, arm = bool(features.get("avx512f")), bool(features.get("neon"))
    bits = 512 if wide else 256 if features.get("avx") else 128
    return Machine(
        llvm.get_process_triple(),
        str(tm.target_data),
        cpu,
        features.flatten(),
        lanes,
        bool(features.get("f16c")),
        (32 if wide or arm else 16) * bits // (32 * lanes),
    )
