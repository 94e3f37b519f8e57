"""Early returns made structured, so that most of them need no jump.

``if c: return a`` followed by more statements becomes an if with an else: nothing is duplicated, and what is left in
tail position needs only to hold its value.
"""

from __future__ import annotations

import ast


def ends(body: list[ast.stmt]) -> bool:
    """Whether every path through these statements ends in ``return``."""
    if not body:
        return False
    last = body[-1]
    if isinstance(last, ast.Return):
        return True
    if isinstance(last, ast.If):
        return ends(last.body) and ends(last.orelse)
    return isinstance(last, ast.With) and ends(last.body)


def structured(body: list[ast.stmt]) -> list[ast.stmt]:
    """The same statements with what follows a returning branch moved into the other branch."""
    out: list[ast.stmt] = []
    for n, stmt in enumerate(body):
        rest = body[n + 1 :]
        if isinstance(stmt, ast.If):
            yes, no = structured(stmt.body), structured(stmt.orelse)
            if rest and ends(yes) and not ends(no):
                no = structured([*stmt.orelse, *rest])
                rest = []
            elif rest and ends(no) and not ends(yes):
                yes = structured([*stmt.body, *rest])
                rest = []
            out.append(ast.copy_location(ast.If(stmt.test, yes, no), stmt))
            if not rest:
                return out
            continue
        out.append(stmt)
        if isinstance(stmt, ast.Return):
            return out
    return out


def tail_returns(body: list[ast.stmt]) -> set[int]:
    """The ids of the return statements after which nothing of the function remains to be done."""
    if not body:
        return set()
    last = body[-1]
    if isinstance(last, ast.Return):
        return {id(last)}
    if isinstance(last, ast.If):
        return tail_returns(last.body) | tail_returns(last.orelse)
    if isinstance(last, ast.With):
        return tail_returns(last.body)
    if isinstance(last, ast.Match):
        return {r for case in last.cases for r in tail_returns(case.body)}
    return set()
