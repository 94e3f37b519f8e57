"""WGSL functions that give the language's exact meaning where WGSL's own operation does not.

Each is emitted only into shaders that use it, after those it calls. Names: ``gw_`` + operation + type.
"""

from __future__ import annotations

import re

from .library_float import FLOAT
from .library_wide import WIDE

INTEGER = """
// The magnitude of an integer; that of the least one too.
fn gw_magnitude(a: i32) -> u32 {
    return select(bitcast<u32>(a), 0u - bitcast<u32>(a), a < 0i);
}

// a // b for a divisor that is not 0: rounds down. (On magnitudes: NVIDIA's signed division is wrong at the least.)
fn gw_floordiv_i32(a: i32, b: i32) -> i32 {
    let q = gw_magnitude(a) / gw_magnitude(b);
    let r = gw_magnitude(a) - q * gw_magnitude(b);
    return bitcast<i32>(select(q, ~q + select(1u, 0u, r != 0u), (a ^ b) < 0i));
}

// a % b for a divisor that is not 0: the sign of b.
fn gw_mod_i32(a: i32, b: i32) -> i32 {
    let m = gw_magnitude(a) % gw_magnitude(b);
    let r = bitcast<i32>(select(m, 0u - m, a < 0i));
    return select(r, r + b, (m != 0u) && ((a ^ b) < 0i));
}

// The number of steps of range(start, stop, step).
fn gw_trips_i32(start: i32, stop: i32, step: i32) -> u32 {
    if (step > 0i) {
        if (start >= stop) { return 0u; }
        return (bitcast<u32>(stop) - bitcast<u32>(start) - 1u) / bitcast<u32>(step) + 1u;
    }
    if (start <= stop) { return 0u; }
    return (bitcast<u32>(start) - bitcast<u32>(stop) - 1u) / (0u - bitcast<u32>(step)) + 1u;
}

fn gw_trips_u32(start: u32, stop: u32, step: u32) -> u32 {
    if (start >= stop) { return 0u; }
    return (stop - start - 1u) / step + 1u;
}

// The linear id of a thread of a 2-d or 3-d grid; ids beyond 32 bits saturate.
fn gw_linear(id: vec3<u32>, width: u32, height: u32) -> u32 {
    let row = gw_mul32(id.z, height);
    let y = gw_add64(row, vec2<u32>(id.y, 0u));
    let low = gw_mul32(y.x, width);
    let sum = gw_add64(low, vec2<u32>(id.x, 0u));
    return select(min(sum.x, 0xfffffffeu), 0xfffffffeu, (y.y != 0u) || (sum.y != 0u));
}
"""

FAULTS = """
// Record fault `site` of a thread: the first of the smallest thread id is the one that is reported.
fn gw_fault(thread: u32, site: u32, index: vec2<u32>, length: vec2<u32>) {
    let before = atomicMin(&faults[0], thread);
    if (thread < before) {
        let at = 8u + (thread % 32u) * 8u;
        atomicStore(&faults[at], thread);
        atomicStore(&faults[at + 1u], site);
        atomicStore(&faults[at + 2u], index.x);
        atomicStore(&faults[at + 3u], index.y);
        atomicStore(&faults[at + 4u], length.x);
        atomicStore(&faults[at + 5u], length.y);
    }
}
"""


def _split(text: str) -> dict[str, str]:
    """Function name -> its text, comment included."""
    parts = [p.strip("\n") for p in text.strip("\n").split("\n\n")]
    found = {}
    for part in parts:
        name = re.search(r"^fn (gw_\w+)", part, re.M)
        assert name is not None, part
        found[name[1]] = part
    return found


FUNCTIONS = {**_split(INTEGER), **_split(FAULTS), **_split(FLOAT), **_split(WIDE)}
_USES = {name: sorted(set(re.findall(r"\bgw_\w+", body)) - {name}) for name, body in FUNCTIONS.items()}


class Library:
    """The functions that one shader uses."""

    def __init__(self) -> None:
        self.used: set[str] = set()

    def use(self, name: str) -> str:
        """Note that ``name`` is called; returns it."""
        if name not in self.used:
            self.used.add(name)
            for inner in _USES[name]:
                self.use(inner)
        return name

    def text(self) -> list[str]:
        """The used functions, in a fixed order (WGSL does not ask for callees first)."""
        lines: list[str] = []
        for name, body in FUNCTIONS.items():
            if name in self.used:
                lines += ["", *body.split("\n")]
        return lines
