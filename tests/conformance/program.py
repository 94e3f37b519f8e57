"""Programs as trees: they print as Python, and shrink by losing parts while they stay well typed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace


@dataclass(frozen=True)
class Expr:
    """``form`` is a format string over ``kids``; ``type`` the language's name of its type."""

    type: str
    form: str
    kids: tuple[Expr, ...] = ()

    def text(self) -> str:
        return self.form.format(*(k.text() for k in self.kids))

    def smaller(self) -> Iterator[Expr]:
        """Simpler expressions of the same type, the boldest first."""
        if self.kids or not self.form.startswith(self.type):
            yield literal(self.type)
        for kid in self.kids:
            if kid.type == self.type:
                yield kid
        for n, kid in enumerate(self.kids):
            for less in kid.smaller():
                yield replace(self, kids=(*self.kids[:n], less, *self.kids[n + 1 :]))


def literal(type: str) -> Expr:
    """The plainest value of a type."""
    one = "1.0" if type in ("f16", "bf16", "f32", "f64") else "1"
    return Expr(type, "False" if type == "bool_" else f"{type}({one})")


@dataclass(frozen=True)
class Stmt:
    """A line over ``exprs``, and indented blocks, each under a line of its own (the first under ``head``)."""

    head: str
    exprs: tuple[Expr, ...] = ()
    blocks: tuple[tuple[str, tuple[Stmt, ...]], ...] = ()
    fixed: bool = False  # a declaration that others need, or a loop's counter: stays while its block does

    def lines(self, indent: str) -> Iterator[str]:
        if self.head:
            yield indent + self.head.format(*(e.text() for e in self.exprs))
        for label, body in self.blocks:
            if label:
                yield indent + label
            deeper = indent + "    " if label or self.head else indent  # a group of statements has no head
            inner = [line for s in body for line in s.lines(deeper)]
            yield from inner or [deeper + "pass"]

    def smaller(self) -> Iterator[Stmt]:
        for n, (label, body) in enumerate(self.blocks):
            if label.startswith(("else", "elif")) and n == len(self.blocks) - 1:
                yield replace(self, blocks=self.blocks[:n])
            for less in shrunk(body):
                yield replace(self, blocks=(*self.blocks[:n], (label, less), *self.blocks[n + 1 :]))
        for n, e in enumerate(self.exprs):
            for less_e in e.smaller():
                yield replace(self, exprs=(*self.exprs[:n], less_e, *self.exprs[n + 1 :]))


def shrunk(body: tuple[Stmt, ...]) -> Iterator[tuple[Stmt, ...]]:
    """Bodies with a statement less, replaced by one of its blocks, or made smaller."""
    for n, s in enumerate(body):
        if not s.fixed:
            yield (*body[:n], *body[n + 1 :])
    for n, s in enumerate(body):
        if s.head.startswith("if"):  # only what is under an if may stand alone: a loop's body has its break
            for _, inner in s.blocks:
                yield (*body[:n], *inner, *body[n + 1 :])
        for less in s.smaller():
            yield (*body[:n], less, *body[n + 1 :])


@dataclass(frozen=True)
class Program:
    """A device function of the standard parameters that returns one value."""

    body: tuple[Stmt, ...]
    result: Expr
    seed: int = field(default=0, compare=False)

    def source(self, name: str = "program0") -> str:
        body = [line for s in self.body for line in s.lines("    ")]
        head = f"def {name}({PARAMETERS}) -> {self.result.type}:"
        return "\n".join([head, *body, f"    return {self.result.text()}"]) + "\n"

    def smaller(self) -> Iterator[Program]:
        for body in shrunk(self.body):
            yield replace(self, body=body)
        for result in self.result.smaller():
            yield replace(self, result=result)

    def size(self) -> int:
        return len(self.source("f"))


PARAMETERS = "a: i32, b: i32, c: i64, d: i64, x: f32, y: f32"
