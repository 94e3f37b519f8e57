"""What a compilation looked at outside its arguments: rule 9 makes a change to any of it a new compilation."""

from __future__ import annotations

import types
from typing import Any

from gridwise.lang.records import dataclass, field

_MISSING = object()


def _same(now: Any, then: Any) -> bool:
    """The same constant: identity, or equality of type and value (1 is not True, 0.0 is not -0.0)."""
    if now is then:
        return True
    if type(now) is not type(then):
        return False
    if isinstance(now, int | str):
        return bool(now == then)
    if isinstance(now, float):
        return bool(now.hex() == then.hex())
    if isinstance(now, tuple):
        return len(now) == len(then) and all(map(_same, now, then))
    return False


@dataclass
class Dependencies:
    """Captured names and the code of every function that was lowered."""

    names: dict[tuple[int, str], tuple[dict[str, Any], str, Any]] = field(default_factory=dict)
    cells: dict[int, tuple[types.CellType, Any]] = field(default_factory=dict)
    attributes: dict[tuple[int, str], tuple[Any, str, Any]] = field(default_factory=dict)
    functions: dict[int, tuple[types.FunctionType, types.CodeType, tuple[Any, ...] | None]] = field(
        default_factory=dict
    )

    def name(self, space: dict[str, Any], name: str, value: Any) -> None:
        self.names[id(space), name] = (space, name, value)

    def missing(self, space: dict[str, Any], name: str) -> None:
        """A builtin was used because the module has no such name."""
        self.names[id(space), name] = (space, name, _MISSING)

    def cell(self, cell: types.CellType, value: Any) -> None:
        self.cells[id(cell)] = (cell, value)

    def attribute(self, obj: Any, name: str, value: Any) -> None:
        if not isinstance(value, types.MethodType):  # made anew on each look
            self.attributes[id(obj), name] = (obj, name, value)

    def function(self, fn: types.FunctionType) -> None:
        self.functions[id(fn)] = (fn, fn.__code__, fn.__defaults__)

    def valid(self) -> bool:
        """Whether everything is still as it was. Cheap: called on every launch that is not prepared."""
        for space, name, then in self.names.values():
            if (now := space.get(name, _MISSING)) is not then and not _same(now, then):
                return False
        for cell, then in self.cells.values():
            try:
                if (now := cell.cell_contents) is not then and not _same(now, then):
                    return False
            except ValueError:
                return False
        for obj, name, then in self.attributes.values():
            if (now := getattr(obj, name, _MISSING)) is not then and not _same(now, then):
                return False
        for fn, code, defaults in self.functions.values():
            if fn.__code__ is not code or fn.__defaults__ is not defaults:
                return False
        return True
