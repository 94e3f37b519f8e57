"""Python that the language does not have: each refused by name, with what to write instead (rule 8)."""

from __future__ import annotations

import ast
from typing import NoReturn

from gridwise.lang.errors import KernelSyntaxError

from .scopes import Frame

REFUSED: dict[type[ast.AST], tuple[str, str]] = {
    ast.Try: ("try/except is", "test the condition with if; a failed check becomes a fault that the host sees"),
    ast.TryStar: ("try/except* is", "test the condition with if"),
    ast.Raise: ("raise is", 'write assert condition, "message": a failed assert becomes a fault that the host sees'),
    ast.ListComp: ("a list comprehension is", "write a for loop over gw.local((n,), f32) or over the array"),
    ast.SetComp: ("a set comprehension is", "write a for loop"),
    ast.DictComp: ("a dict comprehension is", "write a for loop"),
    ast.GeneratorExp: ("a generator expression is", "write a for loop that keeps the sum, minimum, ... in a name"),
    ast.List: ("a list is", "use a tuple (1, 2), or gw.local((n,), f32) for an array of this thread"),
    ast.Dict: ("a dict is", "use a @gw.struct for named values, or match for a choice"),
    ast.Set: ("a set is", "use a tuple: x in (1, 2, 3)"),
    ast.Import: ("import inside a kernel is", "import at the top of the file"),
    ast.ImportFrom: ("import inside a kernel is", "import at the top of the file"),
    ast.ClassDef: ("a class inside a kernel is", "define a @gw.struct at the top of the file"),
    ast.Global: ("global is", "captured globals are constants: pass what changes as a parameter"),
    ast.Nonlocal: ("nonlocal is", "return the new value and assign it in the outer function"),
    ast.Delete: ("del is", "names need no deleting; leave it out"),
    ast.Yield: ("yield is", "write a loop where the values are used"),
    ast.YieldFrom: ("yield from is", "write a loop where the values are used"),
    ast.Await: ("await is", "a kernel runs on the device from start to end: leave it out"),
    ast.AsyncFor: ("async for is", "write a plain for"),
    ast.AsyncWith: ("async with is", "leave it out"),
    ast.AsyncFunctionDef: ("an async function is", "write a plain def"),
    ast.Starred: ("star-unpacking is", "name the items: a, b, c = t"),
    ast.Slice: ("a slice is", "loop over the elements: for k in range(start, stop): ..."),
    ast.JoinedStr: ("an f-string is", 'it may stand only in print(f"...")'),
    ast.FormattedValue: ("an f-string is", 'it may stand only in print(f"...")'),
}
if hasattr(ast, "TypeAlias"):
    REFUSED[ast.TypeAlias] = ("a type alias inside a kernel is", "define it at the top of the file")


def refuse(f: Frame, node: ast.AST) -> NoReturn:
    """Raise the report for a node that no other part of the frontend takes."""
    what, hint = REFUSED.get(type(node), (f"{_plain(node)} is", "write it with the constructs of the language guide"))
    f.fail(KernelSyntaxError, node, f"{what} not supported{'' if 'kernel' in what else ' in a kernel'}", hint)


def _plain(node: ast.AST) -> str:
    return f"this use of {type(node).__name__.lower()}"
