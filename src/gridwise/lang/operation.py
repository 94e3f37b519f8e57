"""How an operation of the language is declared: once, with its types, meaning and documentation.

A declared operation is what a kernel's author imports and calls. Inside a kernel the frontend turns the
call into the IR operation that it names; outside, calling it runs the reference meaning on NumPy values,
which is also what the check device does for every thread at once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .records import dataclass, field


@dataclass(frozen=True, eq=False)
class Operation:
    """One operation of the language.

    name       as written after its module: ``sqrt``, ``shuffle_xor``.
    code       the IR operation; ``fn`` its ``fn`` attribute, if that operation has one.
    signature  one letter an argument and one for the result, as ``"TT->T"``: T the common type,
               B bool, I integer, U u32, X index.
    types      names of the kinds allowed for T: ``"float"``, ``"int"``, ``"number"``, ``"any"``.
    reference  the meaning, on NumPy arrays or scalars of the right dtype.
    ulp        documented bound per target in units in the last place, {target: {type name: bound}}.
    """

    name: str
    code: str
    signature: str
    types: str
    reference: Callable[..., Any]
    fn: str = ""
    doc: str = ""
    ulp: dict[str, dict[str, float]] = field(default_factory=dict)

    def __call__(self, *args: Any, **options: Any) -> Any:
        return self.reference(*args, **options)
