"""The two WGSL front ends in use, naga (wgpu, Firefox) and Tint (Dawn, Chromium), and where they differ."""

from __future__ import annotations

from gridwise.lang.records import dataclass


@dataclass(frozen=True)
class Dialect:
    """What the emitter must know about a front end.

    enables      ``enable`` directive that each optional feature needs; a feature that is absent here needs none.
    f64, i64     types that the front end has at all (both are naga's own, behind device features).
    """

    name: str
    enables: dict[str, str]
    f64: bool
    i64: bool


NAGA = Dialect("naga", {}, f64=True, i64=True)  # `enable subgroups;` is a parse error there
TINT = Dialect("tint", {"subgroup": "subgroups"}, f64=False, i64=False)


@dataclass(frozen=True)
class Numerics:
    """Operations that a driver gets right by itself; for the others own integer code is emitted.

    WebGPU asks for 2.5 ulp in a division and lets ``fma`` round twice. ``devices/webgpu_probe.py`` measures what a
    driver does. ``subnormals``: f32 values below 2**-126 are kept, not flushed to zero; this one cannot be repaired,
    and is for people and tests.
    """

    division: bool = False
    sqrt: bool = False
    fma: bool = False
    subnormals: bool = False


PORTABLE = Numerics()
EXACT = Numerics(True, True, True, True)
