"""IR to text, for people: ``gridwise inspect --stage ir`` and the golden tests."""

from __future__ import annotations

from .core import Kernel, Op, Region, Value


class _Names:
    def __init__(self) -> None:
        self.names: dict[Value, str] = {}
        self.used: dict[str, int] = {}

    def __call__(self, value: Value) -> str:
        if value not in self.names:
            base = value.name
            if base:
                n = self.used.get(base, 0)
                self.used[base] = n + 1
                self.names[value] = f"%{base}" if n == 0 else f"%{base}.{n}"
            else:
                n = self.used.get("", 0)
                self.used[""] = n + 1
                self.names[value] = f"%{n}"
        return self.names[value]


def _attr(value: object) -> str:
    if isinstance(value, tuple):
        return "(" + ", ".join(str(getattr(v, "name", v)) for v in value) + ")"
    return repr(value) if isinstance(value, str | float) else str(value)


def _op(op: Op, names: _Names, depth: int, out: list[str]) -> None:
    pad = "  " * depth
    head = f"{names(op.result)} = " if op.result is not None else ""
    operands = ", ".join(names(v) for v in op.operands)
    attrs = {k: v for k, v in op.attrs.items() if v not in ((), None, "")}
    shown = " {" + ", ".join(f"{k}={_attr(v)}" for k, v in attrs.items()) + "}" if attrs else ""
    tail = f" : {op.result.type}" if op.result is not None else ""
    line = f"{pad}{head}{op.code}{' ' + operands if operands else ''}{shown}{tail}"
    where = f"  # line {op.loc.line}" if op.loc else ""
    if not op.regions:
        out.append(line + where)
        return
    labels = {"if": ("then", "else"), "for": ("do", "else"), "while": ("cond", "do", "else")}.get(op.code, ("do",))
    out.append(line + where)
    for label, region in zip(labels, op.regions, strict=True):
        if region.ops or label != "else":
            args = " (" + ", ".join(f"{names(a)} : {a.type}" for a in region.args) + ")" if region.args else ""
            out.append(f"{pad}{label}{args}:")
            _region(region, names, depth + 1, out)


def _region(region: Region, names: _Names, depth: int, out: list[str]) -> None:
    for op in region.ops:
        _op(op, names, depth, out)


def to_text(kernel: Kernel) -> str:
    """The whole kernel, one operation a line, with source lines."""
    names = _Names()
    params = ", ".join(f"{names(p.value)} : {p.type}" for p in kernel.params)
    out = [f"kernel {kernel.name}({params}) block={kernel.block} domain={kernel.domain} index={kernel.index}"]
    _region(kernel.body, names, 1, out)
    return "\n".join(out) + "\n"
