"""Memory-safe GPU kernels in typed Python: one source for every GPU and the CPU."""

from __future__ import annotations

from .devices.array import Array as DeviceArray
from .devices.base import Device, Event, Stream
from .devices.registry import default_device, device, devices
from .lang import atomic, math, subgroup, target, thread
from .lang.errors import (
    DeviceAssertionError,
    DeviceError,
    DeviceFault,
    DeviceIndexError,
    DeviceUnavailableError,
    DeviceZeroDivisionError,
    DivergenceError,
    GridwiseError,
    KernelAttributeError,
    KernelError,
    KernelNameError,
    KernelSyntaxError,
    KernelTypeError,
    KernelValueError,
    LaunchError,
    LaunchTypeError,
    LaunchValueError,
    OutOfMemoryError,
    RaceError,
    SanitizerError,
    UnprovedError,
    UnsupportedError,
)
from .lang.memory import barrier, local, shared
from .lang.slices import AtomicSlice, DisjointSlice, Slice
from .lang.structs import Array, enum, struct
from .lang.target import Cap
from .lang.thread import ThreadIndex
from .lang.types import (
    Const,
    Option,
    bf16,
    bool_,
    f8e4m3,
    f8e5m2,
    f16,
    f32,
    f64,
    i8,
    i16,
    i32,
    i64,
    index,
    u8,
    u16,
    u32,
    u64,
    vec2,
    vec3,
    vec4,
)
from .lang.unsafe import unsafe
from .launch import Kernel, Prepared, kernel

__version__ = "0.1.0"
