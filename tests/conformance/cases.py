"""Cases of the conformance table: small programs, each filed under the rule (or the kind of trap) that it tests.

A case is a function of a device that asserts. It passes, or the device refuses it: raises ``UnsupportedError``
naming the line, for a capability that the case declares in ``needs`` and the device lacks. There is no third state.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gridwise as gw
from gridwise import Cap

sys.path.append(str(Path(__file__).parents[1] / "check"))  # exact.py and edges.py: expected values, edge values


@dataclass(frozen=True)
class Case:
    rule: str
    name: str
    run: Callable[[gw.Device], None]
    needs: tuple[Cap, ...]

    def __str__(self) -> str:
        return self.name


CASES: list[Case] = []


def case(rule: str, *, needs: Sequence[Cap] = ()) -> Callable[[Any], Any]:
    """File a function ``f(device)`` under a rule."""

    def declare(f: Callable[[gw.Device], None]) -> Callable[[gw.Device], None]:
        name = f.__name__.strip("_")
        assert all(c.name != name for c in CASES), name
        CASES.append(Case(rule, name, f, tuple(needs)))
        return f

    return declare


def each_type(rule: str, types: Sequence[Any], needs: dict[Any, Cap] | None = None) -> Callable[[Any], Any]:
    """File ``f(device, type)`` once for each scalar type."""

    def declare(f: Callable[[gw.Device, Any], None]) -> Callable[[gw.Device, Any], None]:
        for t in types:
            cap = (needs or CAPS).get(t)
            name = f"{f.__name__}[{t.__name__.rstrip('_')}]"
            CASES.append(Case(rule, name, lambda device, t=t: f(device, t), (cap,) if cap else ()))
        return f

    return declare


CAPS: dict[Any, Cap] = {gw.f64: Cap.F64, gw.f16: Cap.F16, gw.bf16: Cap.F16, gw.i64: Cap.I64, gw.u64: Cap.I64}


def run(device: gw.Device, kernel: Any, *args: Any, **options: Any) -> list[np.ndarray]:
    """Launch with NumPy arrays copied to the device; every array argument as it is afterwards."""
    given = [device.array(a) if isinstance(a, np.ndarray) else a for a in args]
    kernel(*given, **options)
    device.synchronize()
    return [g.numpy() for g in given if isinstance(g, gw.DeviceArray)]


def values(device: gw.Device, kernel: Any, count: int, dtype: Any, *args: Any) -> list[Any]:
    """One thread fills an array of ``count`` results, its first parameter."""
    return run(device, kernel, np.zeros(count, dtype), *args, grid=1)[0].tolist()


def refused(
    device: gw.Device, error: type[Exception], phrase: str, kernel: Any, *args: Any, **options: Any
) -> Exception:
    """The launch is refused: right error, the line marked HERE, the phrase, at most six lines."""
    with pytest.raises(error) as caught:
        run(device, kernel, *args, **options)
    text = str(caught.value)
    assert phrase in text, text
    assert len(text.splitlines()) <= 6, text
    lines, first = inspect.getsourcelines(getattr(kernel, "fn", kernel))
    marked = [first + n for n, line in enumerate(lines) if "# HERE" in line]
    if marked:
        assert f":{marked[0]}:" in text, text
    return caught.value


def faults(
    device: gw.Device, error: type[Exception], phrase: str, kernel: Any, *args: Any, **options: Any
) -> list[np.ndarray]:
    """The launch faults at the line marked HERE; the arrays afterwards, read from a device that goes on."""
    given = [device.array(a) if isinstance(a, np.ndarray) else a for a in args]
    kernel(*given, **options)
    with pytest.raises(error) as caught:
        device.synchronize()
    text = str(caught.value)
    assert phrase in text, text
    lines, first = inspect.getsourcelines(kernel.fn)
    marked = [first + n for n, line in enumerate(lines) if "# HERE" in line]
    assert f":{marked[0]}:" in text, text
    device.synchronize()
    return [g.numpy() for g in given if isinstance(g, gw.DeviceArray)]
