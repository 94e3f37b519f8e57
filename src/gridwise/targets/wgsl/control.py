"""Structured control flow in WGSL: Python's loops with ``else``, exact trip counts, and early exits of functions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from gridwise.ir import Op, Region, Value
from gridwise.ir.types import Scalar
from gridwise.lang.errors import Loc

from .body import Frame
from .text import Expr, atom, is_wide, literal

if TYPE_CHECKING:
    from .body import Body
    from .library import Library
    from .numeric import Numeric

Lines = Sequence[tuple[str, Loc | None]]


class ControlFlow:
    """The part of the emitter that writes ``if``, ``for``, ``while``, ``scope`` and the ways out of them."""

    body: Body
    library: Library
    numeric: Numeric
    tail: set[int]

    def region(self, region: Region) -> None:
        raise NotImplementedError

    def value(self, v: Value) -> tuple[Expr, frozenset[Value]]:
        raise NotImplementedError

    def text(self, v: Value) -> Expr:
        raise NotImplementedError

    def op_if(self, op: Op) -> None:
        cond = self.text(op.operands[0])
        self.body.settle()
        then, orelse = op.regions
        if not then.ops and orelse.ops:
            cond, then, orelse = Expr(f"!{cond.operand}"), orelse, then
        self.body.line(f"if ({cond}) {{", op.loc)
        with self.body.block():
            self.region(then)
        if orelse.ops:
            self.otherwise(orelse, op)
        else:
            self.body.line("}", op.loc)

    def otherwise(self, region: Region, op: Op) -> None:
        """The else branch and the closing brace; one ``if`` alone becomes ``else if``."""
        outer, self.body.lines = self.body.lines, []
        with self.body.block():
            self.region(region)
        lines, self.body.lines = self.body.lines, outer
        inner = "    " * (self.body.depth + 1)
        heads = [text for text, _ in lines if text.startswith(inner) and text[len(inner)] != " "]
        chain = len(heads) > 1 and heads[0].startswith(f"{inner}if (") and heads[0].endswith("{")
        if chain and all(h.startswith(f"{inner}}} else") for h in heads[1:-1]) and heads[-1] == f"{inner}}}":
            (first, loc), *rest = lines
            self.body.line(f"}} else {first.strip()}", loc)
            self.body.lines += [(text[4:], place) for text, place in rest]
        else:
            self.body.line("} else {", op.loc)
            self.body.lines += lines
            self.body.line("}", op.loc)

    def loop(
        self,
        op: Op,
        body: Region,
        orelse: Region,
        header: str,
        first: tuple[str, ...] = (),
        last: str = "",
        before: Lines = (),
    ) -> None:
        """A loop around ``body``. ``before``, ``first``: lines it begins with; ``last``: a continuing block."""
        frame = Frame()
        if orelse.ops and _breaks(body):
            frame.broke = self.body.names("broke")
            self.body.line(f"var {frame.broke} = false;", op.loc)
        self.body.line(header, op.loc)
        self.body.frames.append(frame)
        with self.body.block():
            self.body.lines += before
            for text in first:
                self.body.line(text, op.loc)
            self.region(body)
            if last:
                self.body.line(f"continuing {{ {last} }}", op.loc)
        self.body.frames.pop()
        self.body.line("}", op.loc)
        self.escape(frame, op)
        if frame.broke:
            self.body.line(f"if (!{frame.broke}) {{", op.loc)
            with self.body.block():
                self.region(orelse)
            self.body.line("}", op.loc)
        else:
            self.region(orelse)

    def escape(self, frame: Frame, op: Op) -> None:
        for flag in frame.escapes:
            self.body.line(f"if ({flag}) {{ break; }}", op.loc)

    def once(self, v: Value) -> Expr:
        """A value used on every turn of a loop: under a name, unless it is one that does not change."""
        text, reads = self.value(v)
        return text if text.atom and not reads and "(" not in text else self.named(text, v.name or "bound", v.op)

    def named(self, text: Expr, name: str, op: Op | None) -> Expr:
        name = self.body.names(name)
        self.body.line(f"let {name} = {text};", op.loc if op else None)
        return atom(name)

    def op_for(self, op: Op) -> None:
        start, stop, step = op.operands
        t = start.type
        assert isinstance(t, Scalar)
        body, orelse = op.regions
        i = self.body.names(body.args[0].name or "i")
        self.body.known[body.args[0]] = atom(i)
        by = step.op.attrs["value"] if step.op is not None and step.op.code == "const" else None
        first, end = self.text(start), self.once(stop)
        self.body.settle()
        if not is_wide(t) and self.never_wraps(stop, step, t):
            amount = literal(abs(by), t) if by is not None else self.once(step)
            sign, test = ("-", ">") if by is not None and by < 0 else ("+", "<")
            self.loop(op, body, orelse, f"for (var {i} = {first}; {i} {test} {end}; {i} {sign}= {amount}) {{")
            return
        n, begin = self.body.names("n"), self.body.names("start")
        self.body.line(f"let {begin} = {first};", op.loc)
        amount = self.once(step)
        if is_wide(t):
            trips = self.numeric.call(f"gw_trips_{'i' if t.signed else 'u'}64", begin, end, amount)
            count = self.body.names("trips")
            self.body.line(f"let {count} = {trips};", op.loc)
            self.body.line(f"var {n} = vec2<u32>(0u, 0u);", op.loc)
            for name in ("gw_lt_u64", "gw_add64", "gw_mul64"):
                self.library.use(name)
            head = f"if (!gw_lt_u64({n}, {count})) {{ break; }} let {i} = gw_add64({begin}, gw_mul64({n}, {amount}));"
            self.loop(op, body, orelse, "loop {", (head,), f"{n} = gw_add64({n}, vec2<u32>(1u, 0u));")
            return
        trips = self.numeric.call(f"gw_trips_{'i' if t.signed else 'u'}32", begin, end, amount)
        count = self.body.names("trips")
        self.body.line(f"let {count} = {trips};", op.loc)
        moved = f"i32({n}) * {amount}" if t.signed else f"{n} * {amount}"
        head = f"let {i} = {begin} + {moved};"
        self.loop(op, body, orelse, f"for (var {n} = 0u; {n} < {count}; {n} += 1u) {{", (head,))

    def never_wraps(self, stop: Value, step: Value, t: Scalar) -> bool:
        """Whether counting by ``step`` to ``stop`` stays inside the held type, so that a plain loop is exact."""
        most = 2**31 - 1 if t.signed else 2**32 - 1
        if step.op is not None and step.op.code == "const":
            by: int = step.op.attrs["value"]
            if abs(by) == 1 or t.bits < 32:
                return True
            if stop.op is not None and stop.op.code == "const":
                return by > 0 and int(stop.op.attrs["value"]) + by <= most
            return by > 0 and by <= 2**30 and _extent(stop)
        return _extent(stop) and _extent(step)

    def op_while(self, op: Op) -> None:
        cond, body, orelse = op.regions
        self.body.settle()
        outer, self.body.lines = self.body.lines, []
        with self.body.block():
            self.region(Region(cond.ops[:-1]))
            test = self.text(cond.ops[-1].operands[0])
        lines, self.body.lines = self.body.lines, outer
        if not lines:
            self.loop(op, body, orelse, f"while ({test}) {{")
            return
        self.loop(op, body, orelse, "loop {", (f"if (!{test.operand}) {{ break; }}",), before=lines)

    def op_break(self, op: Op) -> None:
        frame = self.body.frames[-1]
        if frame.broke:
            self.body.line(f"{frame.broke} = true;", op.loc)
        self.body.line("break;", op.loc)

    def op_continue(self, op: Op) -> None:
        self.body.line("continue;", op.loc)

    def op_return(self, op: Op) -> None:
        self.body.line("return;", op.loc)

    def op_scope(self, op: Op) -> None:
        body, number = op.regions[0], op.attrs["id"]
        self.body.settle()
        tail = _tail(body, number)
        self.tail |= tail
        early = [o for o in body.walk() if o.code == "leave" and o.attrs["id"] == number and id(o) not in tail]
        if not early:
            self.region(body)
            return
        frame = Frame(scope=number)
        if any(_inside_loop(body, o) for o in early):
            frame.left = self.body.names("left")
            self.body.line(f"var {frame.left} = false;", op.loc)
        self.body.line("loop {", op.loc)
        self.body.frames.append(frame)
        with self.body.block():
            self.region(body)
            if not (body.ops and body.ops[-1].code in ("return", "leave")):
                self.body.line("break;", op.loc)
        self.body.frames.pop()
        self.body.line("}", op.loc)
        self.escape(frame, op)

    def op_leave(self, op: Op) -> None:
        if id(op) in self.tail:
            return
        frames = self.body.frames
        at = max(n for n, f in enumerate(frames) if f.scope == op.attrs["id"])
        if at < len(frames) - 1:
            self.body.line(f"{frames[at].left} = true;", op.loc)
            for between in frames[at + 1 :]:
                if frames[at].left not in between.escapes:
                    between.escapes.append(frames[at].left)
        self.body.line("break;", op.loc)


def _breaks(region: Region) -> bool:
    """Whether a ``break`` in the region leaves the loop whose body it is."""
    for op in region.ops:
        if op.code == "break":
            return True
        inner = [op.regions[-1]] if op.code in ("for", "while") else [] if op.code == "scope" else op.regions
        if any(_breaks(r) for r in inner):
            return True
    return False


def _inside_loop(region: Region, target: Op) -> bool:
    """Whether ``target`` lies in a loop of the shader inside the region."""
    for op in region.ops:
        for r in op.regions:
            if any(o is target for o in r.walk()):
                return op.code in ("for", "while", "scope") or _inside_loop(r, target)
    return False


def _tail(region: Region, number: int) -> set[int]:
    """The ``leave`` operations of a scope after which nothing of it would run anyway."""
    if not region.ops:
        return set()
    last = region.ops[-1]
    if last.code == "leave" and last.attrs["id"] == number:
        return {id(last)}
    return set().union(*(_tail(r, number) for r in last.regions)) if last.code == "if" else set()


def _extent(v: Value) -> bool:
    """Whether a value is a length, a place in the grid or a constant: at most 2**30 and not negative."""
    op = v.op
    if op is None:
        return False
    if op.code == "const":
        return 0 <= int(op.attrs["value"]) <= 2**30
    if op.code == "mul":
        return {o.op.code for o in op.operands if o.op is not None} <= {"grid_dim", "block_dim", "const"} and any(
            o.op is not None and o.op.code == "grid_dim" for o in op.operands
        )
    return op.code in ("dim", "grid_dim", "block_dim", "thread_idx", "block_idx", "global_idx")
