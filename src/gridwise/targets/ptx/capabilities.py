"""What the PTX target can do, and where each limit comes from.

Sources: CUDA C++ Programming Guide, "Compute Capabilities" (limits per compute capability); PTX ISA, "Release
Notes" (which PTX version a driver takes, which architectures a version has). Limits that the driver reports for
the device in hand are asked of it (``devices/cuda.py``); here are those that the generated code relies on.
"""

from __future__ import annotations

from gridwise.lang.target import Cap

# Independent thread scheduling (the fault lock needs it), shfl/vote/match ``.sync``, f16 arithmetic: sm_70.
OLDEST = (7, 0)
SUBGROUP = 32  # threads of a warp, on every compute capability
SHARED_ALIGN = 16  # bytes: the widest access of one thread
STATIC_SHARED = 48 * 1024  # bytes of statically declared shared memory a block; more must be dynamic
MAX_BLOCK = 1024  # threads a block

# The PTX version each architecture first appears in (PTX ISA, "Release Notes"), times ten.
ARCHITECTURES: dict[int, int] = {
    70: 60, 72: 61, 75: 63, 80: 70, 86: 71, 87: 74, 89: 78, 90: 78, 100: 86, 101: 86, 103: 88, 120: 87, 121: 88,
}  # fmt: skip

# PTX version that a driver of each CUDA version takes (same table), times ten; later drivers take all of these.
DRIVER_PTX: dict[int, int] = {
    11000: 70, 11010: 71, 11020: 72, 11030: 73, 11040: 74, 11050: 75, 11060: 76, 11070: 77, 11080: 78,
    12000: 80, 12010: 81, 12020: 82, 12030: 83, 12040: 84, 12050: 85, 12060: 85, 12070: 86, 12080: 87, 12090: 88,
    13000: 90,
}  # fmt: skip

# Highest PTX version that the NVPTX back end of each LLVM release writes (llvm/lib/Target/NVPTX/NVPTX.td).
LLVM_PTX: dict[int, int] = {14: 75, 15: 75, 16: 78, 17: 81, 18: 83, 19: 85, 20: 87, 21: 88, 22: 90}


def capabilities(capability: tuple[int, int] = OLDEST) -> frozenset[Cap]:
    """What kernels may use on a device of this compute capability."""
    del capability  # all of it is there from OLDEST on
    return frozenset(
        {Cap.F64, Cap.F16, Cap.I64, Cap.ATOMIC_I64, Cap.ATOMIC_F32, Cap.SUBGROUP, Cap.TENSOR_CORES, Cap.PRINT}
    )


def _newest(table: dict[int, int], key: int) -> int:
    """The entry of the largest key up to ``key``."""
    known = [k for k in table if k <= key]
    return table[max(known)] if known else min(table.values())


def architecture(capability: tuple[int, int], driver: int, llvm: int) -> tuple[int, int]:
    """(architecture, PTX version times ten) to compile for: the newest that device, driver and LLVM all know.

    ``capability``: of the device, (major, minor). ``driver``: its CUDA version, as 1000 * major + 10 * minor.
    ``llvm``: major version of LLVM. PTX for an older architecture runs on every newer one.
    """
    version = min(_newest(DRIVER_PTX, driver), _newest(LLVM_PTX, llvm))
    number = capability[0] * 10 + capability[1]
    return max(a for a, first in ARCHITECTURES.items() if a <= number and first <= version), version
