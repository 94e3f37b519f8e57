"""The disk cache: what was proved and compiled by an earlier process is not proved and compiled again.

Two kinds of entry. A *proof* entry is found from what the launch can see without running the frontend: the
kernel's compiled code, its options and the types and constants of the call. It holds the kernel's IR after every
proof, and the list of everything outside it that was looked at (captured globals, called functions), each with
its digest; it counts only if all of them are still the same. A *code* entry is found from the proof entry and the
device, and holds the lowered kernel and what the device made of it.
"""

from __future__ import annotations

import pickle
import sys
import types
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from gridwise.devices.array import Trait
from gridwise.devices.base import Device, Module
from gridwise.frontend import ParamSpec
from gridwise.frontend.dependencies import Dependencies
from gridwise.ir.core import Kernel as IR
from gridwise.ir.types import Scalar
from gridwise.lang.target import Cap

from . import digest
from .sha import sha256
from .store import store

if TYPE_CHECKING:
    from .kernel import Kernel

Descriptor = tuple[Any, ...]


def _sha(*parts: str) -> str:
    return sha256("\0".join(parts).encode()).hexdigest()


def proof_key(
    kernel: Kernel,
    block: tuple[int, int, int],
    index: Scalar,
    caps: frozenset[Cap],
    specs: Sequence[ParamSpec],
    traits: Sequence[Any],
) -> str | None:
    """The name of a proof entry; None if the kernel cannot be told apart from others by what is visible.

    ``specs`` and ``traits`` are the parameters, and what the call specialises each on.
    """
    if store() is None:
        return None
    parts: list[str | None] = [digest.versions(), digest.code(kernel.fn)]
    parts.append(f"{block} {index} {sorted(c.name for c in caps)}")
    parts.append(f"{kernel.domain} {kernel.unchecked} {sorted(kernel.fastmath)}")
    for spec, trait in zip(specs, traits, strict=True):
        parts.append(digest.value(spec.elem))
        if isinstance(trait, Trait):
            parts.append(f"{trait.elem!r} {trait.rank} {trait.strided}")
        elif spec.kind == "const":
            parts.append(digest.value(trait[2]))
        else:
            parts.append(repr(trait))  # an IR type, or nothing
    parts += [digest.value(cell.cell_contents) for cell in kernel.fn.__closure__ or () if _filled(cell)]
    requires = kernel.requires
    for fn in requires if isinstance(requires, list | tuple) else (() if requires is None else (requires,)):
        plain = isinstance(fn, types.FunctionType) and not fn.__closure__
        parts.append(digest.code(fn) if plain else None)
    return None if None in parts else _sha(*[p for p in parts if p is not None])


def _filled(cell: types.CellType) -> bool:
    try:
        cell.cell_contents  # noqa: B018
    except ValueError:
        return False
    return True


# -- dependencies ----------------------------------------------------------------------------------------------


def describe(deps: Dependencies, kernel: Kernel) -> list[Descriptor] | None:
    """``deps`` as data that another process can hold against its own modules; None if that is not possible."""
    out: list[Descriptor] = []
    for space, name, then in deps.names.values():
        module = space.get("__name__")
        if not isinstance(module, str) or vars(sys.modules.get(module, types)) is not space:
            return None
        missing = name not in space
        held = "missing" if missing else digest.value(then)
        if held is None:
            return None
        out.append(("name", module, name, held))
    own = kernel.fn.__closure__ or ()
    for cell, then in deps.cells.values():
        at = next((n for n, c in enumerate(own) if c is cell), None)
        held = digest.value(then)
        if at is None or held is None:
            return None
        out.append(("cell", at, "", held))
    for obj, name, then in deps.attributes.values():
        where, held = digest.place(obj), digest.value(then)
        if where is None or held is None:
            return None
        out.append(("attribute", where, name, held))
    for fn, _, _ in deps.functions.values():
        where = ("", "") if fn is kernel.fn else digest.place(fn)
        held = digest.code(fn)
        if where is None or held is None or (fn.__closure__ and fn is not kernel.fn):
            return None
        out.append(("function", where, "", held))
    return out


def restore(descriptors: list[Descriptor], kernel: Kernel) -> Dependencies | None:
    """The dependencies in this process, or None if any has changed."""
    deps = Dependencies()
    for kind, where, name, held in descriptors:
        if kind == "name":
            module = sys.modules.get(where)
            if module is None:
                return None
            space = vars(module)
            if name not in space:
                if held != "missing":
                    return None
                deps.missing(space, name)
            elif digest.value(space[name]) != held:
                return None
            else:
                deps.name(space, name, space[name])
        elif kind == "cell":
            cell = (kernel.fn.__closure__ or ())[where]
            if not _filled(cell) or digest.value(cell.cell_contents) != held:
                return None
            deps.cell(cell, cell.cell_contents)
        elif kind == "attribute":
            obj = digest.find(where)
            now = getattr(obj, name, None)
            if obj is None or digest.value(now) != held:
                return None
            deps.attribute(obj, name, now)
        else:
            fn = kernel.fn if where == ("", "") else digest.find(where)
            if not isinstance(fn, types.FunctionType) or digest.code(fn) != held:
                return None
            deps.functions[id(fn)] = (fn, fn.__code__, fn.__defaults__)
    return deps


# -- proofs ------------------------------------------------------------------------------------------------------


def load_proof(key: str, kernel: Kernel) -> tuple[IR, Dependencies, int, str] | None:
    """The analysed kernel, its dependencies, its longest run and the name for its code entries."""
    held = store()
    raw = held.get(key) if held is not None else None
    if raw is None:
        return None
    descriptors, ir, longest_run = pickle.loads(raw)
    deps = restore(descriptors, kernel)
    return None if deps is None else (ir, deps, longest_run, _sha(key, repr(descriptors)))


def save_proof(key: str, kernel: Kernel, ir: IR, deps: Dependencies, longest_run: int) -> str | None:
    """Keep a proof; the name for its code entries, or None if it cannot be kept."""
    held = store()
    descriptors = describe(deps, kernel) if held is not None else None
    if held is None or descriptors is None:
        return None
    held.put(key, pickle.dumps((descriptors, ir, longest_run)))
    return _sha(key, repr(descriptors))


# -- code --------------------------------------------------------------------------------------------------------


def load_code(name: str | None, device: Device, version: str) -> Module | None:
    """The module of an earlier process, loaded on the device."""
    key = _code_key(name, device, version)
    held = store()
    raw = held.get(key) if held is not None and key is not None else None
    if raw is None:
        return None
    lowered, code = pickle.loads(raw)
    return device.load(lowered, code)


def save_code(name: str | None, device: Device, version: str, module: Module) -> None:
    key = _code_key(name, device, version)
    held = store()
    if held is not None and key is not None and module.code is not None:
        held.put(key, pickle.dumps((module.kernel, module.code)))


def _code_key(name: str | None, device: Device, version: str) -> str | None:
    made_for = device.code_key()
    return None if name is None or made_for is None else _sha(name, device.target, made_for, version)
