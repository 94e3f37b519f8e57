"""``match``: a chain of tests, in order, as Python runs them."""

from __future__ import annotations

import ast
from collections.abc import Callable

from gridwise.ir.core import Region
from gridwise.lang.errors import KernelSyntaxError, KernelTypeError

from . import assignment, convert, expressions, operators, statements
from .scopes import Frame
from .types import BOOL
from .values import Const, Num, Static, StructV, TupleV, Val, VecV

Bindings = list[tuple[str, Val, ast.AST]]


def match(f: Frame, node: ast.Match) -> None:
    subject = convert.settle(f, expressions.expr(f, node.subject), node.subject)
    subject = convert.definite(f, subject, node.subject) if not isinstance(subject, Const) else subject
    _cases(f, subject, node, 0)


def _cases(f: Frame, subject: Val, node: ast.Match, k: int) -> None:
    """Case ``k`` and those after it."""
    if k == len(node.cases) or f.flow is None:
        return
    case = node.cases[k]
    captures: Bindings = []
    f.at(case.pattern)
    test = _test(f, case.pattern, subject, node.subject, captures)

    def bind() -> None:
        for name, value, where in captures:
            assignment.assign_name(f, name, value, where, where)

    if case.guard is not None:
        guard = case.guard

        def guarded() -> Val:
            bind()
            return expressions.condition(f, guard)

        joined = (
            guarded()
            if isinstance(test, Const) and test.value
            else expressions.short_circuit(f, True, test, guarded, case.pattern, guard)
        )
        assert isinstance(joined, Num | Const)
        test = joined

    def body() -> None:
        bind()
        statements.block(f, case.body)

    if isinstance(test, Const):
        if test.value:
            body()
        else:
            _cases(f, subject, node, k + 1)
        return
    f.at(case.pattern)
    branch = f.b.if_(test.ir)
    arms: list[tuple[Region, Callable[[], None]]] = [
        (branch.regions[0], body),
        (branch.regions[1], lambda: _cases(f, subject, node, k + 1)),
    ]
    f.flow = statements.branches(f, arms)


def _test(f: Frame, p: ast.pattern, subject: Val, source: ast.expr, captures: Bindings) -> Num | Const:
    """Whether the subject fits; names that the pattern captures are added to ``captures``."""
    if isinstance(p, ast.MatchValue):
        value = expressions.expr(f, p.value)
        found = operators.binary(f, "eq", subject, value, p, source, p.value)
        assert isinstance(found, Num | Const)
        return found
    if isinstance(p, ast.MatchSingleton):
        if p.value is None:
            f.fail(
                KernelSyntaxError,
                p,
                "case None is not supported in a kernel: a value here is never None",
                "use an Option: if x.is_some: ...",
            )
        t = operators.truth(f, subject, source)
        return t if p.value else operators.invert(f, t, source)
    if isinstance(p, ast.MatchOr):
        found_: Num | Const = Const(False)
        for option in p.patterns:
            inner: Bindings = []
            found_ = _join(f, "or", found_, _test(f, option, subject, source, inner))
            if inner:
                f.fail(
                    KernelSyntaxError,
                    option,
                    "a name in one of several alternatives is not supported in a kernel",
                    "write a case for each",
                )
        return found_
    if isinstance(p, ast.MatchAs):
        inside = _test(f, p.pattern, subject, source, captures) if p.pattern is not None else Const(True)
        if p.name is not None:
            captures.append((p.name, subject, p))
        return inside
    if isinstance(p, ast.MatchSequence):
        return _sequence(f, p, subject, source, captures)
    if isinstance(p, ast.MatchClass):
        return _class(f, p, subject, source, captures)
    what = {"MatchMapping": "a mapping pattern", "MatchStar": "a star pattern"}.get(type(p).__name__, "this pattern")
    f.fail(KernelSyntaxError, p, f"{what} is not supported in a kernel", "match on values, or use if")


def _join(f: Frame, op: str, a: Num | Const, b: Num | Const) -> Num | Const:
    absorbing = op == "or"
    for x, y in ((a, b), (b, a)):
        if isinstance(x, Const):
            return x if bool(x.value) == absorbing else y
    assert isinstance(a, Num) and isinstance(b, Num)
    return Num(BOOL, f.b.binary(op, a.ir, b.ir))


def _sequence(f: Frame, p: ast.MatchSequence, subject: Val, source: ast.expr, captures: Bindings) -> Num | Const:
    if not isinstance(subject, TupleV):
        f.fail(KernelTypeError, p, f"a sequence pattern fits a tuple, and the subject is {convert.name_of(subject)}")
    if len(p.patterns) != len(subject.items):
        return Const(False)
    found: Num | Const = Const(True)
    for inner, item in zip(p.patterns, subject.items):
        found = _join(f, "and", found, _test(f, inner, item, source, captures))
    return found


def _class(f: Frame, p: ast.MatchClass, subject: Val, source: ast.expr, captures: Bindings) -> Num | Const:
    cls = expressions.expr(f, p.cls)
    if not isinstance(cls, Static) or not isinstance(subject, StructV | VecV):
        f.fail(KernelTypeError, p, f"a class pattern fits a struct, and the subject is {convert.name_of(subject)}")
    if not isinstance(subject, StructV) or subject.type.cls is not cls.obj:
        return Const(False)
    names = list(subject.fields)
    pairs = list(zip(names, p.patterns)) + list(zip(p.kwd_attrs, p.kwd_patterns))
    if len(p.patterns) > len(names):
        f.fail(KernelTypeError, p, f"{subject.type} has {len(names)} fields, and {len(p.patterns)} are matched")
    found: Num | Const = Const(True)
    for name, inner in pairs:
        if name not in subject.fields:
            f.fail(KernelTypeError, p, f"{subject.type} has no field '{name}'", f"it has {', '.join(names)}")
        found = _join(f, "and", found, _test(f, inner, subject.fields[name], source, captures))
    return found
