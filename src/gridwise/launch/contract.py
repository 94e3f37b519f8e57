"""The contract of a kernel, evaluated on the host: ``requires=`` relations, and the relations that its fast
version relies on.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable, Sequence
from typing import Any

from gridwise.frontend.source import find, unwrap
from gridwise.ir.core import Kernel
from gridwise.lang.errors import KernelTypeError, Loc
from gridwise.lang.records import dataclass

from .report import bad_value


@dataclass
class Relation:
    """One callable of ``requires=``, with the names of the arguments that it takes."""

    fn: Callable[..., Any]
    names: tuple[str, ...]

    def check(self, kernel: str, values: dict[str, Any]) -> None:
        """Raise LaunchValueError, naming both sides of the comparison that failed."""
        if not self.fn(*[values[n] for n in self.names]):
            self._refuse(kernel, values)

    def _refuse(self, kernel: str, values: dict[str, Any]) -> None:
        function = unwrap(self.fn)
        assert function is not None
        body: ast.expr | None = None
        try:
            _, node = find(function)
            if isinstance(node, ast.Lambda):
                body = node.body
            elif isinstance(node.body[-1], ast.Return):
                body = node.body[-1].value
        except Exception:  # the source is gone; the refusal stands without it
            body = None
        if body is None:
            bad_value(f"{kernel}: its requirement {function.__name__} does not hold")
        space = dict(function.__globals__)
        space.update(inspect.getclosurevars(function).nonlocals)
        space.update({n: values[n] for n in self.names})

        def value(node: ast.expr) -> Any:
            return eval(compile(ast.Expression(node), "<requires>", "eval"), space)

        failed = _failing(body, value)
        if isinstance(failed, ast.Compare):
            sides = [failed.left, *failed.comparators]
            shown = ", ".join(f"{ast.unparse(s)} is {value(s)}" for s in sides if not isinstance(s, ast.Constant))
        else:
            shown = f"{ast.unparse(failed)} is {value(failed)!r}"
        bad_value(f"{kernel} requires {ast.unparse(failed)}, but {shown}", "pass arguments that meet the contract")


def _failing(node: ast.expr, value: Callable[[ast.expr], Any]) -> ast.expr:
    """The part of a conjunction that is false."""
    if isinstance(node, ast.BoolOp) and isinstance(node.op, ast.And):
        return next(_failing(v, value) for v in node.values if not value(v))
    if isinstance(node, ast.Compare) and len(node.ops) > 1:
        left = node.left
        for op, right in zip(node.ops, node.comparators, strict=True):
            pair = ast.copy_location(ast.Compare(left, [op], [right]), node)
            if not value(pair):
                return pair
            left = right
    return node


def relations(requires: Any, names: Sequence[str], loc: Loc) -> tuple[Relation, ...]:
    """The relations of a ``requires=`` argument: a callable, or a sequence of them."""
    found = []
    for fn in requires if isinstance(requires, list | tuple) else (() if requires is None else (requires,)):
        if unwrap(fn) is None:
            hint = "requires=lambda a, c: len(a) >= len(c)"
            raise KernelTypeError("requires= takes a lambda of the kernel's parameters", loc, hint)
        takes = tuple(inspect.signature(fn).parameters)
        unknown = [n for n in takes if n not in names]
        if unknown:
            raise KernelTypeError(
                f"requires= names '{unknown[0]}', which is no parameter", loc, f"the parameters are {', '.join(names)}"
            )
        found.append(Relation(fn, takes))
    return tuple(found)


def _slot(kernel: Kernel, n: int) -> str:
    slot = kernel.slots()[n]
    return {
        "dim": f"a[{slot.param}].shape[{slot.axis}]",
        "stride": f"a[{slot.param}].strides[{slot.axis}]",
        "scalar": f"a[{slot.param}]",
    }[slot.kind]


Guard = Callable[[Sequence[Any]], bool]
Cover = Callable[[Sequence[Any], int], bool]


def guard(kernel: Kernel) -> Guard | None:
    """``Kernel.conditions`` as one Python function of the bound arguments; None if there are none."""
    tests = []
    for c in kernel.conditions:
        terms = " + ".join(f"{k} * {_slot(kernel, n)}" if k != 1 else _slot(kernel, n) for n, k in c.terms)
        tests.append(f"{terms or '0'} + {c.const} >= 0")
    if not tests:
        return None
    made: Guard = eval(f"lambda a: {' and '.join(tests)}", {})
    return made


def cover(kernel: Kernel) -> Cover | None:
    """``Kernel.covers`` as a Python function of the bound arguments and the grid's first axis."""
    if kernel.coarsen == 1:
        return None
    least = ", ".join(_slot(kernel, n) for n in kernel.guard)
    least = f"min({least})" if len(kernel.guard) > 1 else least
    made: Cover = eval(f"lambda a, x: not x % {kernel.coarsen} or x * {kernel.block[0]} >= {least}", {"min": min})
    return made
