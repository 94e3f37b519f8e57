"""``Option[T]`` outside kernels: a value that may be missing."""

from __future__ import annotations

from typing import Any

from .records import dataclass


@dataclass(frozen=True)
class OptionValue:
    """What ``some(x)`` and ``none(T)`` make. ``is_some`` tells; ``value`` is an error without one."""

    is_some: bool
    held: Any = None

    @property
    def is_none(self) -> bool:
        return not self.is_some

    @property
    def value(self) -> Any:
        if not self.is_some:
            raise AssertionError("the option holds no value")
        return self.held

    def unwrap(self) -> Any:
        """The value; a failed assertion (a fault in a kernel) if there is none."""
        return self.value

    def unwrap_or(self, other: Any) -> Any:
        """The value, or ``other`` if there is none."""
        return self.held if self.is_some else other


def some(value: Any) -> Any:
    """An option that holds ``value``."""
    return OptionValue(True, value)


def none(type: Any) -> Any:
    """An option of that type that holds nothing."""
    return OptionValue(False)
