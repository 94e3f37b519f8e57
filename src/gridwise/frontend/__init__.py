"""Python function -> typed IR. ``signature`` reads annotations; ``compile_kernel`` lowers one specialisation."""

from .compile import Compiled, compile_kernel
from .dependencies import Dependencies
from .signature import ArgSpec, ArraySpec, ConstSpec, ParamSpec, ScalarSpec, Signature, leaf_paths, signature
from .types import NotAType, memory_type, resolve

__all__ = [
    "ArgSpec",
    "ArraySpec",
    "Compiled",
    "ConstSpec",
    "Dependencies",
    "NotAType",
    "ParamSpec",
    "ScalarSpec",
    "Signature",
    "compile_kernel",
    "leaf_paths",
    "memory_type",
    "resolve",
    "signature",
]
