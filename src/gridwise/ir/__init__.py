"""The intermediate representation. ``ops.py`` is its reference manual."""

from .builder import Builder
from .core import Kernel, Op, Param, Region, Slot, Value
from .printer import to_text
from .verify import InvalidIR, verify

__all__ = ["Builder", "InvalidIR", "Kernel", "Op", "Param", "Region", "Slot", "Value", "to_text", "verify"]
