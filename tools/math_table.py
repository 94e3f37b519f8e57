"""Writes the table of functions and error bounds into ``docs/guide/math.md``: ``python tools/math_table.py``."""

from __future__ import annotations

from pathlib import Path

from gridwise.lang.math import OPS
from gridwise.lang.math.accuracy import ULP

PAGE = Path(__file__).parent.parent / "docs/guide/math.md"
BEGIN, END = "<!-- table: made by tools/math_table.py -->\n", "<!-- end of table -->\n"
FORMULA = dict.fromkeys(("lerp", "smoothstep"), "by its formula")


def table() -> str:
    """One row a function: its call, meaning, and bounds in ulp for f32 and f64."""
    rows = ["| function | meaning | f32 | f64 |", "|---|---|---|---|"]
    for op in OPS.values():
        arguments = {"T->T": "x", "TT->T": "x, y", "TI->T": "x, n", "T->B": "x", "TTT->T": "x, y, z"}[op.signature]
        arguments = {"atan2": "y, x", "step": "edge, x", "clamp": "x, low, high", "lerp": "a, b, t",
                     "smoothstep": "low, high, x"}.get(op.name, arguments)
        doc = op.doc.split(": ", 1)[-1] if op.doc.startswith(f"{op.name}(") else op.doc
        doc = doc.replace("*", "\\*")  # not Markdown's emphasis
        single, double = ULP.get(op.fn, (0, 0))
        shown = [f"{bound:g}" if bound else "exact" for bound in (single, double)]
        if op.name in FORMULA or op.types == "int":
            shown = [FORMULA.get(op.name, "")] * 2
        rows.append(f"| `{op.name}({arguments})` | {doc} | {shown[0]} | {shown[1]} |")
    return "\n".join(rows) + "\n"


def render(page: str) -> str:
    """The page with its table made anew."""
    head, rest = page.split(BEGIN)
    return head + BEGIN + table() + END + rest.split(END)[1]


if __name__ == "__main__":
    PAGE.write_text(render(PAGE.read_text()))
