"""Digests of what a compilation looked at, so that another process can tell that it is the same.

A digest is text that is equal for equal things in every process of one Python version, and None for a thing
whose meaning cannot be told from outside the process: a kernel that depends on such a thing is not cached.
"""

from __future__ import annotations

import enum
import functools
import marshal
import os
import sys
import types
from pathlib import Path
from typing import Any, NewType, TypeVar

import numpy as np

from .sha import sha256

PACKAGE = Path(__file__).resolve().parent.parent


@functools.cache
def versions() -> str:
    """What every entry depends on: Python, LLVM's binding, NumPy, and the text of this package itself."""
    import llvmlite

    sources = sha256()
    for folder, folders, files in os.walk(PACKAGE):
        folders.sort()
        for name in sorted(files):
            if name.endswith(".py"):
                stat = os.stat(os.path.join(folder, name))
                sources.update(f"{folder}/{name} {stat.st_mtime_ns} {stat.st_size}\n".encode())
    return f"{sys.version} llvmlite {llvmlite.__version__} numpy {np.__version__} {sources.hexdigest()}"


def code(fn: types.FunctionType) -> str | None:
    """A function: its compiled code (lines and file name included, for reports), and its defaults."""
    defaults = value(fn.__defaults__)
    if defaults is None:
        return None
    body = sha256(marshal.dumps(fn.__code__, 0)).hexdigest()
    return f"{fn.__module__}.{fn.__qualname__} {body} {defaults}"


def value(v: Any) -> str | None:
    """A captured value."""
    if v is None or isinstance(v, bool | int | str | bytes):
        if isinstance(v, enum.Enum):
            held = kind(type(v))
            return held and f"{held}.{v.name}"
        return f"{type(v).__name__} {v!r}"
    if isinstance(v, float):
        return f"float {v.hex()}"
    if isinstance(v, np.generic):
        return f"{v.dtype} {v.tobytes().hex()}"
    if isinstance(v, tuple):
        parts = [value(x) for x in v]
        return None if None in parts else f"{type(v).__qualname__}({', '.join(p for p in parts if p)})"
    if isinstance(v, types.ModuleType):
        return f"module {v.__name__}"
    if isinstance(v, types.BuiltinFunctionType):
        return f"builtin {v.__module__}.{v.__qualname__}"
    if isinstance(v, type):
        return kind(v)
    module = type(v).__module__
    if isinstance(v, types.FunctionType):
        # A function of this package is known by its name: the package's text is part of ``versions``.
        return f"{v.__module__}.{v.__qualname__}" if v.__module__.startswith("gridwise.") else code(v)
    if isinstance(v, NewType):
        base = value(v.__supertype__)
        return base and f"newtype {v.__module__}.{v.__name__} {base}"
    if isinstance(v, TypeVar):
        bound = value(v.__bound__)
        return bound and f"typevar {v.__name__} {bound} {v.__constraints__!r}"
    if module == "gridwise.lang.operation":
        return f"operation {v.name} {v.code} {v.fn}"
    return None


def kind(cls: type) -> str | None:
    """A class: its members, so that an edit to a struct, an enum or a method is seen."""
    name = f"{cls.__module__}.{cls.__qualname__}"
    if cls.__module__.split(".")[0] in ("gridwise", "builtins", "numpy", "typing", "enum"):
        return name
    parts = [name]
    for member, held in sorted(vars(cls).items()):
        if member == "__annotations__":
            parts.append(repr({k: getattr(t, "__qualname__", repr(t)) for k, t in held.items()}))
            continue
        inner = getattr(held, "__func__", held)
        if isinstance(inner, types.FunctionType) and inner.__module__ == cls.__module__:
            body = code(inner)
            if body is None:
                return None
            parts.append(body)
        elif isinstance(held, enum.Enum | int | float | str | tuple) and not member.startswith("__"):
            parts.append(f"{member}={held!r}")
    return f"class {sha256(repr(parts).encode()).hexdigest()} {name}"


def place(obj: Any) -> tuple[str, str] | None:
    """Where a module, class or function of a module can be found again: (module, qualified name)."""
    if isinstance(obj, types.ModuleType):
        return (obj.__name__, "") if sys.modules.get(obj.__name__) is obj else None
    module, name = getattr(obj, "__module__", None), getattr(obj, "__qualname__", None)
    if not isinstance(module, str) or not isinstance(name, str):
        return None
    found = find((module, name))
    return (module, name) if found is obj else None


def find(where: tuple[str, str]) -> Any:
    """The object at a ``place``, or None. A kernel's place is its function's."""
    obj: Any = sys.modules.get(where[0])
    for part in where[1].split(".") if where[1] else ():
        obj = getattr(obj, part, None)
    fn = getattr(obj, "fn", None)  # a decorated kernel
    return fn if isinstance(fn, types.FunctionType) else obj
