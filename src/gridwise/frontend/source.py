"""From a Python function to its syntax tree, with exact positions.

The whole file is parsed, never a cut-out of it, so that lines and columns are the file's own and decorators,
methods, nested functions and lambdas need no special care.
"""

from __future__ import annotations

import ast
import linecache
import types
from typing import Any

from gridwise.lang.errors import KernelSyntaxError, Loc
from gridwise.lang.records import dataclass

FunctionNode = ast.FunctionDef | ast.Lambda


@dataclass
class SourceFile:
    """A parsed file: its functions by first line, and the class chain that encloses each."""

    name: str
    lines: list[str]
    functions: dict[int, list[FunctionNode | ast.AsyncFunctionDef]]

    def loc(self, node: ast.AST, caller: Loc | None = None) -> Loc:
        """The span of a node; a node of several lines ends with its first line."""
        line: int = getattr(node, "lineno", 1)
        text = self.lines[line - 1] if line <= len(self.lines) else ""
        col = _chars(text, getattr(node, "col_offset", 0))
        if getattr(node, "end_lineno", line) == line:
            end = _chars(text, getattr(node, "end_col_offset", None) or 0)
        else:
            end = len(text.rstrip())
        return Loc(self.name, line, col, end, caller)


def _chars(text: str, offset: int) -> int:
    """A UTF-8 byte offset as a number of characters."""
    return offset if text.isascii() else len(text.encode()[:offset].decode(errors="ignore"))


_files: dict[str, tuple[str, SourceFile]] = {}


def source_file(name: str, where: Loc | None = None) -> SourceFile:
    """The parsed file, from a cache keyed by its text."""
    linecache.checkcache(name)
    lines = linecache.getlines(name)
    if not lines:
        raise KernelSyntaxError(
            f"the source of {name} is not available, and a kernel is compiled from its source",
            where,
            "put the kernel in a file; code given to exec() or typed at a plain prompt has no source",
        )
    text = "".join(lines)
    cached = _files.get(name)
    if cached is None or cached[0] != text:
        try:
            tree = ast.parse(text, name)
        except SyntaxError as e:
            raise KernelSyntaxError(
                f"{name} has changed since it was imported and no longer parses: {e.msg}", Loc(name, e.lineno or 1)
            ) from None
        except RecursionError:
            raise KernelSyntaxError(
                f"an expression in {name} is nested too deeply", where, "split it into statements"
            ) from None
        functions: dict[int, list[FunctionNode | ast.AsyncFunctionDef]] = {}
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
                first = min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", []))])
                functions.setdefault(first, []).append(node)
        cached = (text, SourceFile(name, lines, functions))
        _files[name] = cached
    return cached[1]


def find(fn: types.FunctionType, where: Loc | None = None) -> tuple[SourceFile, FunctionNode]:
    """The file and the node of a Python function. ``where`` is the place that led here, for messages."""
    code = fn.__code__
    file = source_file(code.co_filename, where)
    wanted = [n for n in file.functions.get(code.co_firstlineno, []) if getattr(n, "name", "<lambda>") == code.co_name]
    if len(wanted) > 1:  # several lambdas on one line: the first position of the body's code decides
        spots = {(p[0], p[2]) for p in code.co_positions() if p[0] is not None and p[2] is not None}
        wanted = [
            n for n in wanted if spots & {(b.lineno, b.col_offset) for b in ast.walk(n) if isinstance(b, ast.expr)}
        ]
        inner = [n for n in wanted if not any(m is not n and _inside(m, n) for m in wanted)]
        wanted = inner or wanted
    loc = Loc(code.co_filename, code.co_firstlineno)
    if not wanted:
        raise KernelSyntaxError(
            f"the source of {code.co_name} is not where it was when it was imported", loc, "import its module again"
        )
    node = wanted[0]
    if isinstance(node, ast.AsyncFunctionDef):
        raise KernelSyntaxError("an async function cannot run on a device", file.loc(node), "write a plain def")
    return file, node


def _inside(inner: ast.AST, outer: ast.AST) -> bool:
    return any(n is inner for n in ast.walk(outer))


def unwrap(fn: Any) -> types.FunctionType | None:
    """The plain Python function in ``fn`` (decorated by us, or by functools.wraps), or None."""
    for _ in range(16):
        if isinstance(fn, types.FunctionType):
            inner = getattr(fn, "__wrapped__", None)
            if inner is None:
                return fn
            fn = inner
        elif isinstance(fn, staticmethod | classmethod):
            fn = fn.__func__
        elif hasattr(fn, "__gridwise_function__"):
            fn = fn.__gridwise_function__
        else:
            return None
    return None


def text(node: ast.AST, limit: int = 40) -> str:
    """A node as source, for hints; an ellipsis if it is long."""
    try:
        shown = ast.unparse(node)
    except (RecursionError, ValueError):
        return "…"
    return shown if len(shown) <= limit and "\n" not in shown else "…"
