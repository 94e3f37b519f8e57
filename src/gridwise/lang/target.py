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
