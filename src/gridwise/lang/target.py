"""What a target can do, by name, for ``target.has(Cap.X)`` in kernels and for refusals that name the lack."""

from __future__ import annotations

import enum


class Cap(enum.Enum):
    """A capability that not every target has. The value is the phrase used in messages."""

    F64 = "64-bit floats"
    F16 = "16-bit floats in arithmetic"
    I64 = "native 64-bit integers"
    ATOMIC_I64 = "64-bit integer atomics"
    ATOMIC_F32 = "native f32 atomics"
    SUBGROUP = "subgroup operations"
    TENSOR_CORES = "matrix units"
    PRINT = "print in kernels"


def has(cap: Cap) -> bool:
    """Whether the target that the kernel is compiled for has a capability: known at compile time.

    Every branch of ``if target.has(Cap.X): ... else: ...`` is type-checked on every target. A plain-Python run has
    every capability that NumPy gives.
    """
    return cap in (Cap.F64, Cap.F16, Cap.I64, Cap.ATOMIC_I64, Cap.ATOMIC_F32, Cap.PRINT)
