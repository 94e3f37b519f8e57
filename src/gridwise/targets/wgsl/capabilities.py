"""What WebGPU can do: the limits that every implementation offers, and the capabilities behind features.

Source of the numbers: the default limits of the WebGPU specification (section "Limits").
"""

from __future__ import annotations

from gridwise.ir import Kernel, Value
from gridwise.ir.types import F64, I64, U64, ArrayType, Scalar, Struct
from gridwise.lang.errors import UnsupportedError
from gridwise.lang.target import Cap

STORAGE_BUFFERS = 8  # a shader stage
THREADS = 256  # a block
BLOCK = (256, 256, 64)
BLOCKS_PER_AXIS = 65_535  # of one dispatch; larger grids are folded
SHARED_BYTES = 16 * 1024
BINDING_BYTES = 128 << 20
BUFFER_BYTES = 256 << 20
OFFSET_ALIGNMENT = 256
UNIFORM_BYTES = 64 * 1024

# What a device is asked for, by wgpu's names: without this wgpu-py asks for all that the adapter has, and a kernel
# that runs here would be refused elsewhere.
LIMITS = {
    "max-bind-groups": 4,
    "max-storage-buffers-per-shader-stage": STORAGE_BUFFERS,
    "max-uniform-buffer-binding-size": UNIFORM_BYTES,
    "max-dynamic-uniform-buffers-per-pipeline-layout": 8,
    "max-dynamic-storage-buffers-per-pipeline-layout": 4,
    "min-storage-buffer-offset-alignment": OFFSET_ALIGNMENT,
    "min-uniform-buffer-offset-alignment": OFFSET_ALIGNMENT,
    "max-compute-workgroup-storage-size": SHARED_BYTES,
    "max-compute-invocations-per-workgroup": THREADS,
    "max-compute-workgroup-size-x": BLOCK[0],
    "max-compute-workgroup-size-y": BLOCK[1],
    "max-compute-workgroup-size-z": BLOCK[2],
    "max-compute-workgroups-per-dimension": BLOCKS_PER_AXIS,
}

# 64-bit integers, f16 and bf16 are emulated and so always there; i64 is "native" nowhere by default.
ALWAYS = frozenset({Cap.F16, Cap.PRINT})


def caps(features: frozenset[str]) -> frozenset[Cap]:
    """The capabilities of a device with these WebGPU features (wgpu's names)."""
    found = set(ALWAYS)
    if {"shader-f64", "shader-int64"} <= features:  # 64-bit integers carry the bits of a double
        found.add(Cap.F64)
    if {"shader-int64", "shader-int64-atomic-all-ops"} <= features:
        found.add(Cap.ATOMIC_I64)
    if "subgroup" in features or "subgroups" in features:
        found.add(Cap.SUBGROUP)
    return frozenset(found)


def _double(value: Value) -> bool:
    t = value.type
    elem = t.elem if isinstance(t, ArrayType) else t
    if isinstance(elem, Struct):
        return any(_double_in(f.type) for f in elem.fields)
    return elem == F64


def _double_in(t: Scalar | Struct) -> bool:
    return any(_double_in(f.type) for f in t.fields) if isinstance(t, Struct) else t == F64


def check(kernel: Kernel, available: frozenset[Cap]) -> None:
    """Refuse what the target cannot do, at its line. Raises UnsupportedError."""
    threads = kernel.block[0] * kernel.block[1] * kernel.block[2]
    if threads > THREADS or any(b > most for b, most in zip(kernel.block, BLOCK, strict=True)):
        raise UnsupportedError(
            f"{kernel.name}: a block of {kernel.block} has {threads} threads; WebGPU allows {THREADS} (axes {BLOCK})",
            kernel.loc,
            f"use block={THREADS} or less",
        )
    arrays = sum(1 for p in kernel.params if p.is_array)
    hidden = int(bool(kernel.sites)) + int(any(op.code == "print" for op in kernel.walk()))
    if arrays + hidden > STORAGE_BUFFERS:
        extra = f" (checks that are left, or print, take {hidden})" if hidden else ""
        raise UnsupportedError(
            f"{kernel.name}: {arrays} array parameters; WebGPU binds {STORAGE_BUFFERS - hidden} at once{extra}",
            kernel.loc,
            "put several arrays into one with a struct element type, or split the kernel",
        )
    if Cap.F64 not in available:
        refuse_doubles(kernel)
    for op in kernel.walk():
        if op.code == "subgroup" and Cap.SUBGROUP not in available:
            raise UnsupportedError(
                f"{kernel.name}: {Cap.SUBGROUP.value} are not available on this WebGPU device",
                op.loc or kernel.loc,
                "choose another way under `if target.has(Cap.SUBGROUP): ... else: ...`",
            )
    if Cap.ATOMIC_I64 not in available:
        refuse_wide_atomics(kernel)
    refuse_ordered_atomics(kernel)


def refuse_doubles(kernel: Kernel) -> None:
    """Raise UnsupportedError at the first line that uses a 64-bit float."""
    for op in kernel.walk():
        values = [*op.operands, *([op.result] if op.result is not None else [])]
        if any(_double(v) for v in values):
            raise UnsupportedError(
                f"{kernel.name}: {Cap.F64.value} are not available on this WebGPU device",
                op.loc or kernel.loc,
                "use f32",
            )


def refuse_wide_atomics(kernel: Kernel) -> None:
    """Raise UnsupportedError at the first atomic of 64 bits."""
    for op in kernel.walk():
        if op.code == "atomic" and (t := op.operands[-1].type) in (I64, U64, F64):
            raise UnsupportedError(
                f"{kernel.name}: atomic.{op.attrs['fn']} on {t}: this WebGPU device has atomics of 32 bits only",
                op.loc,
                "use i32, u32 or f32, or two 32-bit counters",
            )


def refuse_ordered_atomics(kernel: Kernel) -> None:
    """Raise UnsupportedError at the first atomic that orders other accesses."""
    for op in kernel.walk():
        if op.code == "atomic" and op.attrs["order"] != "relaxed":
            raise UnsupportedError(
                f"{kernel.name}: order {op.attrs['order']!r}: WebGPU has relaxed atomics only",
                op.loc,
                "order within a block with barrier(), or between blocks with two launches",
            )
