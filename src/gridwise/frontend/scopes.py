"""Names: which are local, what each holds, and whether it is bound on every path (rules 5 and 8).

A local name is a set of IR variable slots, one a scalar leaf of its type. ``Frame.flow`` is the state of all names at
the point being lowered: a name that is missing is unbound on every path; ``maybe`` marks one bound on some paths
only; ``None`` instead of the whole table means that the point cannot be reached.
"""

from __future__ import annotations

import ast
import types
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NoReturn

from gridwise.ir import types as ir
from gridwise.ir.builder import Builder
from gridwise.ir.core import Region, Value
from gridwise.lang.errors import KernelError, KernelNameError, KernelTypeError, Loc
from gridwise.lang.records import dataclass, field
from gridwise.lang.target import Cap

from . import values as vals
from .dependencies import Dependencies
from .source import FunctionNode, SourceFile
from .types import ScalarTy, StaticTy, StructTy, Ty, index_type
from .values import Val


@dataclass
class Local:
    """A local name: its type, fixed by the first binding, and the slots that hold it."""

    name: str
    type: Ty
    slots: list[Value]
    first: Loc
    literal: str = ""  # the literal that gave the type, for the fix-it
    shared_with: str = ""  # a struct: what else holds the same object in Python, so that changing it is refused
    changed: bool = False  # a struct: a field has been assigned


@dataclass(eq=False)
class State:
    """What is known of a name here. ``value`` is its current value if ``region`` is still open."""

    value: Val | None
    region: Region | None
    maybe: bool = False


Flow = dict[str, State]


@dataclass
class Loop:
    """The innermost loop: where ``break`` and ``continue`` lead. ``ids`` are scopes if it is unrolled."""

    ids: tuple[int, int] | None = None
    breaks: list[Flow] = field(default_factory=list)
    continues: list[Flow] = field(default_factory=list)


@dataclass
class Context:
    """What is common to one compilation."""

    name: str
    b: Builder
    body: Region
    block: tuple[int, int, int]
    domain: int
    caps: frozenset[Cap]
    deps: Dependencies
    unsafe: str | None = None
    open: list[Region] = field(default_factory=list)
    inlining: list[Any] = field(default_factory=list)
    scope_count: int = 0
    copies: int = 0  # of inlined bodies and unrolled turns
    longest_run: int = 1
    loop_depth: int = 0
    arrays: dict[str, int] = field(default_factory=dict)

    @property
    def index(self) -> ScalarTy:
        return index_type(self.b.index)

    @property
    def index_ir(self) -> ir.Scalar:
        return self.b.index

    @contextmanager
    def into(self, region: Region) -> Iterator[None]:
        """Build into a region; values made in it are known only inside."""
        self.open.append(region)
        try:
            with self.b.into(region):
                yield
        finally:
            self.open.pop()

    def array_count(self, space: str) -> int:
        """A number for the next shared or local array that has no name yet."""
        self.arrays[space] = self.arrays.get(space, 0) + 1
        return self.arrays[space]

    def new_scope(self) -> int:
        self.scope_count += 1
        return self.scope_count


class Frame:
    """One function being lowered, inlined or not."""

    def __init__(
        self,
        ctx: Context,
        file: SourceFile,
        node: FunctionNode,
        fn: types.FunctionType | None,
        caller: Loc | None = None,
        parent: Frame | None = None,
    ):
        self.ctx, self.file, self.node, self.fn, self.caller, self.parent = ctx, file, node, fn, caller, parent
        self.local_names = local_names(node)
        self.locals: dict[str, Local] = {}
        self.flow: Flow | None = {}
        self.loops: list[Loop] = []
        self.bindings: dict[Any, Ty] = {}
        self.declared: dict[str, Ty] = {}
        self.result: Any = None  # calls.Result of an inlined function; None in the kernel itself
        self.kernel_tails: set[int] = set()

    @property
    def b(self) -> Builder:
        return self.ctx.b

    @property
    def name(self) -> str:
        return getattr(self.node, "name", "<lambda>")

    # -- places and errors ---------------------------------------------------------------------------------
    def loc(self, node: ast.AST) -> Loc:
        return self.file.loc(node, self.caller)

    def at(self, node: ast.AST) -> None:
        """Operations from here on come from this node."""
        if hasattr(node, "lineno"):
            self.ctx.b.loc = self.loc(node)

    def fail(self, error: type[KernelError], node: ast.AST, message: str, hint: str | None = None) -> NoReturn:
        raise error(message, self.loc(node), hint)

    # -- binding -------------------------------------------------------------------------------------------
    def bind(self, name: str, value: Val, node: ast.AST, literal: str = "") -> None:
        """Bind a name to a value that already has the name's type (see ``statements.assign``)."""
        assert self.flow is not None
        local = self.locals.get(name)
        if local is None:
            slots = [self.b.var(name, leaf.ir) for leaf in value.type.leaves]
            local = self.locals[name] = Local(name, value.type, slots, self.loc(node), literal)
        for slot, leaf in zip(local.slots, vals.leaves(value), strict=True):
            self.b.set(slot, leaf.ir)
        # A struct may be changed through a method of an inlined call, so its slots are the only truth.
        known = None if has_struct(local.type) else value
        self.flow[name] = State(known, self.ctx.open[-1])

    def read(self, name: str, node: ast.AST) -> Val:
        """The value of a local name; an error unless it is bound on every path."""
        assert self.flow is not None
        state = self.flow.get(name)
        if state is None or state.maybe:
            how = "is not bound on every path that leads here" if state else "is not bound before this line"
            first = self.locals.get(name)
            hint = f"bind {name} before the branch or loop" if first or state else f"assign {name} first"
            self.fail(KernelNameError, node, f"'{name}' {how}", hint)
        local = self.locals[name]
        lasting = isinstance(state.value, vals.Static | vals.Const | vals.ArrayV)
        if state.value is not None and (lasting or state.region in self.ctx.open):
            return state.value
        if isinstance(local.type, StaticTy):
            self.fail(
                KernelTypeError,
                node,
                f"'{name}' was chosen in a branch or loop, and may be one of several things here",
                "choose it once, outside",
            )
        scalars = [vals.Num(t, self.b.get(slot)) for t, slot in zip(local.type.leaves, local.slots, strict=True)]
        value = vals.rebuild(local.type, scalars)
        if not has_struct(local.type):
            self.flow[name] = State(value, self.ctx.open[-1])
        return value

    def forget(self, names: set[str]) -> None:
        """At a loop's head: these names may have changed since."""
        if self.flow is not None:
            for name in names & set(self.flow):
                self.flow[name] = State(None, None, self.flow[name].maybe)


def has_struct(t: Ty) -> bool:
    """Whether a value of this type holds something with mutable fields."""
    if isinstance(t, StructTy):
        return True
    return any(has_struct(item) for item in getattr(t, "items", ()))


def merge(flows: Sequence[Flow | None]) -> Flow | None:
    """The state where several paths meet."""
    reached = [f for f in flows if f is not None]
    if not reached:
        return None
    if len(reached) == 1:
        return dict(reached[0])
    out: Flow = {}
    for name in {n for f in reached for n in f}:
        states = [f.get(name) for f in reached]
        first = states[0]
        if first is not None and all(s is first for s in states):
            out[name] = first
            continue
        maybe = any(s is None or s.maybe for s in states)
        same = first is not None and all(
            s is not None and s.value is first.value and s.region is first.region for s in states
        )
        out[name] = State(first.value, first.region, maybe) if same and first else State(None, None, maybe)
    return out


# -- which names are local -------------------------------------------------------------------------


def assigned(body: list[ast.stmt]) -> set[str]:
    """Every name that these statements may bind (nested functions have their own)."""
    found: set[str] = set()
    todo: list[ast.AST] = list(body)
    while todo:
        node = todo.pop()
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store | ast.Del):
            found.add(node.id)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            found.add(node.name)
            continue
        elif isinstance(node, ast.Lambda | ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp):
            continue
        elif isinstance(node, ast.Import | ast.ImportFrom):
            found |= {(a.asname or a.name).split(".")[0] for a in node.names}
        elif isinstance(node, ast.MatchAs | ast.MatchStar | ast.ExceptHandler) and node.name:
            found.add(node.name)
        todo += ast.iter_child_nodes(node)
    return found


def parameters(node: FunctionNode) -> list[ast.arg]:
    a = node.args
    return [*a.posonlyargs, *a.args, *a.kwonlyargs, *([a.vararg] if a.vararg else []), *([a.kwarg] if a.kwarg else [])]


def local_names(node: FunctionNode) -> set[str]:
    names = {a.arg for a in parameters(node)}
    return names | (assigned(node.body) if isinstance(node, ast.FunctionDef) else set())
