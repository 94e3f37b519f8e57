"""``with gw.unsafe("why this is sound"):`` permits, inside it only, what the compiler cannot prove."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def unsafe(reason: str) -> Iterator[None]:
    """State why the accesses inside are sound. The reason is required and is listed by ``gridwise check --report``."""
    if not isinstance(reason, str) or not reason.strip():
        raise ValueError("gw.unsafe needs the reason why the code inside is sound")
    yield
