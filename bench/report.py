"""What is made of the figures of a run: one table, ratios, a plot, and what got slower.

A benchmark writes JSON, nested as it likes; a dict in it that has ``gridwise`` is one program: milliseconds of each
system by name, and ``ratio``, the time of the fastest peer over ours (above 1: faster than every peer). ``of limit``
is the bandwidth over that of this machine's fastest copy. A number named ``ratio`` anywhere is watched.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any
from xml.sax.saxutils import escape

TOLERANCE = 0.10  # of a stored ratio, that a run may be below it
SPECIAL = ("ratio", "of limit")


def compared(times: Mapping[str, float]) -> dict[str, float]:
    """A program's times by system, with the ratio to the fastest peer that was measured."""
    peers = [t for n, t in times.items() if n != "gridwise" and t == t]
    return {**times, **({"ratio": min(peers) / times["gridwise"]} if peers else {})}


def programs(table: Any, path: str = "") -> Iterator[tuple[str, dict[str, float]]]:
    """Every program of a benchmark's JSON, by the path to it."""
    if isinstance(table, dict):
        if isinstance(table.get("gridwise"), int | float):
            yield path.strip("/"), table
        else:
            for name, value in table.items():
                yield from programs(value, f"{path}/{name}")


def ratios(table: Any, path: str = "") -> Iterator[tuple[str, float]]:
    """Every number named ``ratio``, by the path to it."""
    if isinstance(table, dict):
        for name, value in table.items():
            if name == "ratio" and isinstance(value, int | float):
                yield path.strip("/"), float(value)
            else:
                yield from ratios(value, f"{path}/{name}")


def lines(rows: Mapping[str, Mapping[str, float]]) -> list[str]:
    """One table of programs: milliseconds of each system, the ratio, and the share of the limit where it is known."""
    systems = list(dict.fromkeys(n for row in rows.values() for n in row if n not in SPECIAL))
    width = max([len("milliseconds"), *map(len, rows)])
    out = [f"{'milliseconds':<{width}}" + "".join(f"{s:>11}" for s in systems) + f"{'ratio':>8}{'of limit':>10}"]
    for name, row in rows.items():
        times = "".join(f"{row[s]:>11.3f}" if row.get(s, math.nan) == row.get(s) else f"{'-':>11}" for s in systems)
        special = f"{row['ratio']:>8.2f}" if "ratio" in row else f"{'':>8}"
        special += f"{row['of limit']:>10.2f}" if "of limit" in row else ""
        out.append(f"{name:<{width}}{times}{special}".rstrip())
    return out


def regressions(now: Mapping[str, float], before: Mapping[str, float]) -> dict[str, str]:
    """Ratios more than TOLERANCE below the stored ones: a sentence for each. Programs of one side only do not count."""
    return {
        name: f"{name}: {ratio:.2f}, was {before[name]:.2f}"
        for name, ratio in now.items()
        if name in before and ratio < before[name] * (1 - TOLERANCE)
    }


LEFT, WIDTH, HIGH = 300, 620, 18  # pixels: labels, bars, a line
LOW, MOST = 1 / 8, 64.0  # ratios at the ends of the axis
FAST, SLOW, MARK = "#2b7a4b", "#b5452c", "#444"


def _x(ratio: float) -> float:
    """Where a ratio is along the axis: its logarithm counts, so that twice and half are as long."""
    kept = min(max(ratio, LOW), MOST)
    return LEFT + WIDTH * math.log(kept / LOW) / math.log(MOST / LOW)


def svg(title: str, now: Mapping[str, float], before: Mapping[str, float] | None = None) -> str:
    """A bar for each ratio from 1 on, to the right where we are faster; a tick where the stored ratio was."""
    height = 70 + HIGH * len(now)
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{LEFT + WIDTH + 80}" height="{height}" '
        f'font-family="sans-serif" font-size="11">',
        '<rect width="100%" height="100%" fill="white"/>',
        f'<text x="8" y="20" font-size="14">{escape(title)}</text>',
        '<text x="8" y="38" fill="#444">time of the fastest peer over ours; a tick marks the stored ratio</text>',
    ]
    for tick in (0.125, 0.25, 0.5, 1, 2, 4, 8, 16, 32, 64):
        at, colour = _x(tick), MARK if tick == 1 else "#ddd"
        out.append(f'<line x1="{at:.1f}" x2="{at:.1f}" y1="46" y2="{height - 18}" stroke="{colour}"/>')
        out.append(f'<text x="{at:.1f}" y="{height - 4}" text-anchor="middle">{tick:g}</text>')
    for n, (name, ratio) in enumerate(now.items()):
        top = 50 + HIGH * n
        left, right = sorted((_x(1), _x(ratio)))
        colour = FAST if ratio >= 1 else SLOW
        out.append(f'<text x="{LEFT - 8}" y="{top + 11}" text-anchor="end">{escape(name)}</text>')
        out.append(f'<rect x="{left:.1f}" y="{top + 2}" width="{right - left:.1f}" height="{HIGH - 6}" '
                   f'fill="{colour}"><title>{escape(name)}: {ratio:.2f}</title></rect>')  # fmt: skip
        out.append(f'<text x="{right + 4:.1f}" y="{top + 11}">{ratio:.2f}</text>')
        if before and name in before:
            at = _x(before[name])
            out.append(f'<line x1="{at:.1f}" x2="{at:.1f}" y1="{top}" y2="{top + HIGH - 2}" stroke="{MARK}" '
                       'stroke-width="2"/>')  # fmt: skip
    return "\n".join([*out, "</svg>"]) + "\n"
