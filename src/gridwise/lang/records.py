"""``dataclass``, made in a tenth of the time: the compiler has a hundred of them, and is loaded in many processes.

The library's own compiles up to six functions for a class, when the class is made. This one compiles ``__init__``
alone, when the first instance is made; the other methods are shared. It takes what this package uses (``eq``,
``frozen``, ``slots``, ``field(default=, default_factory=, compare=, repr=)``, bases that are records, too), and means
the same by it. ``dataclasses.fields``, ``asdict`` and ``replace`` do not know its classes: ``replace`` is here.
"""

from __future__ import annotations

from dataclasses import MISSING, Field, FrozenInstanceError, field
from inspect import get_annotations
from operator import attrgetter
from typing import TYPE_CHECKING, Any

__all__ = ["dataclass", "field", "replace"]


def _fields(cls: type) -> dict[str, tuple[Any, Any, bool, bool]]:
    """Name to (default, factory, compared, shown), in the order of ``__init__``."""
    out: dict[str, tuple[Any, Any, bool, bool]] = {}
    for base in reversed(cls.__mro__[1:]):
        out |= base.__dict__.get("__record__", {})
    for name, annotation in get_annotations(cls).items():
        if annotation.startswith("ClassVar"):
            continue
        given = cls.__dict__.get(name, MISSING)
        if isinstance(given, Field):
            out[name] = given.default, given.default_factory, given.compare, given.repr
            if given.default is MISSING:
                delattr(cls, name)
            else:
                setattr(cls, name, given.default)
        else:
            out[name] = given, MISSING, True, True
    return out


def _initialise(cls: Any, fields: dict[str, tuple[Any, Any, bool, bool]], frozen: bool) -> None:
    """Give ``cls`` an ``__init__`` that compiles itself when it is first called."""

    def first(self: Any, *args: Any, **named: Any) -> None:
        space: dict[str, Any] = {"MISSING": MISSING, "put": object.__setattr__}
        head, body = ["self"], []
        for name, (default, factory, _, _) in fields.items():
            value = name
            if factory is not MISSING:
                space[f"_{name}"] = factory
                head.append(f"{name}=MISSING")
                value = f"_{name}() if {name} is MISSING else {name}"
            elif default is not MISSING:
                space[f"_{name}"] = default
                head.append(f"{name}=_{name}")
            else:
                head.append(name)
            body.append(f"  put(self, {name!r}, {value})" if frozen else f"  self.{name} = {value}")
        if hasattr(cls, "__post_init__"):
            body.append("  self.__post_init__()")
        exec("\n".join([f"def __init__({', '.join(head)}):", *body, "  return None"]), space)
        made = space["__init__"]
        made.__qualname__ = f"{cls.__qualname__}.__init__"
        cls.__init__ = made
        made(self, *args, **named)

    cls.__init__ = first


def _key(names: list[str]) -> Any:
    """A function from an instance to the tuple of these attributes."""
    if len(names) > 1:
        return attrgetter(*names)
    one = names[0] if names else None
    return lambda self: () if one is None else (getattr(self, one),)


def _compared(cls: Any, key: Any, frozen: bool) -> None:
    """``__eq__`` and ``__hash__`` by value, where the class has none of its own."""
    own = cls.__dict__

    def __eq__(self: Any, other: Any) -> Any:
        return key(self) == key(other) if other.__class__ is self.__class__ else NotImplemented

    def __hash__(self: Any) -> int:
        return hash(key(self))

    hashed = "__hash__" in own and not (own["__hash__"] is None and "__eq__" in own)
    if "__eq__" not in own:
        cls.__eq__ = __eq__
    if not hashed:
        cls.__hash__ = __hash__ if frozen else None


def _show(self: Any) -> str:
    parts = (f"{name}={getattr(self, name)!r}" for name, (*_, shown) in self.__record__.items() if shown)
    return f"{self.__class__.__qualname__}({', '.join(parts)})"


def _refuse_set(self: Any, name: str, value: Any) -> None:
    raise FrozenInstanceError(f"cannot assign to field {name!r}")


def _refuse_del(self: Any, name: str) -> None:
    raise FrozenInstanceError(f"cannot delete field {name!r}")


def _state(self: Any) -> list[Any]:
    return [getattr(self, name) for name in self.__record__]


def _set_state(self: Any, state: list[Any]) -> None:
    for name, value in zip(self.__record__, state, strict=True):
        object.__setattr__(self, name, value)


def _slotted(cls: Any, names: list[str]) -> Any:
    """The class again, with slots for the fields that no base has."""
    space = {k: v for k, v in cls.__dict__.items() if k not in names and k not in ("__dict__", "__weakref__")}
    inherited = {name for base in cls.__mro__[1:] for name in base.__dict__.get("__slots__", ())}
    space["__slots__"] = tuple(name for name in names if name not in inherited)
    made = type(cls)(cls.__name__, cls.__bases__, space)
    made.__qualname__ = cls.__qualname__
    return made


def _make(cls: Any, eq: bool, frozen: bool, slots: bool) -> Any:
    fields = _fields(cls)
    names = list(fields)
    if slots:
        cls = _slotted(cls, names)
        if frozen:
            cls.__getstate__, cls.__setstate__ = _state, _set_state
    cls.__record__ = fields
    cls.__match_args__ = tuple(names)  # type: ignore[misc]
    if "__init__" not in cls.__dict__:
        _initialise(cls, fields, frozen)
    if "__repr__" not in cls.__dict__:
        cls.__repr__ = _show
    if eq:
        _compared(cls, _key([name for name, (_, _, compared, _) in fields.items() if compared]), frozen)
    if frozen:
        cls.__setattr__, cls.__delattr__ = _refuse_set, _refuse_del
    return cls


if TYPE_CHECKING:
    from dataclasses import dataclass, replace
else:

    def dataclass(cls: Any = None, /, *, eq: bool = True, frozen: bool = False, slots: bool = False) -> Any:
        """As ``dataclasses.dataclass``. The module's annotations must be text (``from __future__``)."""
        return (lambda c: _make(c, eq, frozen, slots)) if cls is None else _make(cls, eq, frozen, slots)

    def replace(record: Any, /, **changes: Any) -> Any:
        """A copy with some fields changed."""
        return record.__class__(**{name: getattr(record, name) for name in record.__record__} | changes)
