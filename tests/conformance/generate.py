"""Random programs: expressions over every integer type, bool and f32, control flow, structs, local arrays, calls.

Every program is inside the language and has one meaning on every device: divisors are made non-zero, indices are
masked, loops are bounded, and a float product is never an operand of a sum, which could be fused with it.
"""

from __future__ import annotations

import random

from program import Expr, Program, Stmt

SIGNED = ("i8", "i16", "i32", "i64")
UNSIGNED = ("u8", "u16", "u32", "u64")
INTS = SIGNED + UNSIGNED
BITS = {t: int(t[1:]) for t in INTS}
PORTABLE = ("f32",)  # floats that every target has
FLOATS = ("f32", "f64", "f16", "bf16")

PREAMBLE = '''import gridwise as gw
from gridwise import AtomicSlice, DisjointSlice, Slice, atomic, barrier, math, thread
from gridwise import bf16, bool_, f16, f32, f64, i8, i16, i32, i64, u8, u16, u32, u64


@gw.struct
class Pair:
    x: i32
    y: f32

    def mixed(self, k: i32) -> i32:
        return self.x * k + i32(self.y)


@gw.struct
class Nest:
    k: u8
    p: Pair
    z: i64


def twice_or_less(n: i32) -> i32:
    if n > 100:
        return n - 3
    for k in range(4):
        if n + i32(k) == 7:
            return n
    return n * 2


def spread(n: u64, by: u64) -> u64:
    return (n << (by & 63)) | (n >> ((64 - by) & 63))


'''


class Writer:
    """Draws one program from a seed."""

    def __init__(self, seed: int, size: int = 4, floats: tuple[str, ...] = PORTABLE):
        self.r = random.Random(seed)
        self.seed, self.size, self.floats = seed, size, floats
        self.vars: dict[str, list[str]] = {"i32": ["a", "b"], "i64": ["c", "d"], "f32": ["x", "y"], "bool_": []}
        self.writable: dict[str, list[str]] = {}
        self.readonly: dict[str, list[str]] = {}
        self.count = 0
        self.loops = 0

    # -- leaves ------------------------------------------------------------------------------------------------
    def number(self, t: str) -> str:
        """An interesting literal of an integer type."""
        bits = BITS[t]
        low, high = (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if t in SIGNED else (0, (1 << bits) - 1)
        v = self.r.choice([0, 1, 2, 3, 7, 10, bits - 1, bits, low, high, high - 1, low + 1, self.r.randint(low, high)])
        if t in SIGNED and self.r.random() < 0.3:
            v = -v if -v <= high else v
        return str(v)

    def leaf(self, t: str) -> Expr:
        names = self.vars.get(t, [])
        if names and self.r.random() < 0.7:
            return Expr(t, self.r.choice(names))
        if t == "bool_":
            return Expr(t, self.r.choice(["True", "False"])) if self.r.random() < 0.2 else self.compare(0)
        if t in FLOATS:
            if self.r.random() < 0.4:
                return Expr(t, f"{t}({self.r.choice(['0.0', '0.5', '1.0', '-2.0', '3.25', '-0.75', '100.0'])})")
            value = Expr("f32", self.r.choice(self.vars["f32"]))
            return value if t == "f32" else Expr(t, f"{t}({{0}})", (value,))
        if self.r.random() < 0.4:
            return Expr(t, f"{t}({self.number(t)})")
        source = self.r.choice(["i32", "i64"])
        return Expr(t, f"{t}({{0}})", (Expr(source, self.r.choice(self.vars[source])),)) if source != t else Expr(
            t, self.r.choice(self.vars[t]))

    # -- expressions -------------------------------------------------------------------------------------------
    def expr(self, t: str, depth: int) -> Expr:
        if depth <= 0:
            return self.leaf(t)
        if t == "bool_":
            return self.boolean(depth)
        return self.float(t, depth) if t in FLOATS else self.integer(t, depth)

    def narrower(self, t: str) -> str:
        """The type itself, or one of its kind that widens to it."""
        kind = SIGNED if t in SIGNED else UNSIGNED
        return self.r.choice(kind[: kind.index(t) + 1]) if self.r.random() < 0.3 else t

    def integer(self, t: str, depth: int) -> Expr:
        e = lambda u=t: self.expr(u, depth - 1)  # noqa: E731
        pick = self.r.randrange(19)
        if pick < 6:
            op = self.r.choice(["+", "-", "*", "&", "|", "^"])
            if self.r.random() < 0.25:
                return Expr(t, f"({{0}} {op} {self.weak(t)})", (e(),))
            left, right = (e(), e(self.narrower(t))) if self.r.random() < 0.5 else (e(self.narrower(t)), e())
            return Expr(t, f"({{0}} {op} {{1}})", (left, right))
        if pick < 8:
            op = self.r.choice(["//", "%"])
            if self.r.random() < 0.4:
                return Expr(t, f"({{0}} {op} {self.r.choice([1, 2, 3, 7, 8, 10, 100])})", (e(),))
            return Expr(t, f"({{0}} {op} ({{1}} | 1))", (e(), e()))
        if pick < 10:
            op = self.r.choice(["<<", ">>"])
            if self.r.random() < 0.5:
                return Expr(t, f"({{0}} {op} {self.r.choice([0, 1, 3, BITS[t] - 1, BITS[t], BITS[t] + 5])})", (e(),))
            # Not a constant, which is refused if it is negative.
            return Expr(t, f"({{0}} {op} ({{1}} ^ {t}({self.r.choice('ab')})))", (e(), e()))
        if pick == 10:
            return Expr(t, f"({{0}} ** {self.r.choice([0, 1, 2, 3, 5])})", (e(),))
        if pick == 11:
            return Expr(t, self.r.choice(["(-{0})", "(~{0})", "abs({0})"]), (e(),))
        if pick == 12:
            return Expr(t, self.r.choice(["min({0}, {1})", "max({0}, {1})"]), (e(), e()))
        if pick == 13:
            return Expr(t, f"math.{self.r.choice(['popcount', 'clz', 'ctz'])}({{0}})", (e(),))
        if pick == 14:
            return Expr(t, "({1} if {0} else {2})", (e("bool_"), e(), e()))
        if pick == 15:
            return Expr(t, f"{t}({{0}})", (e(self.r.choice(["bool_", *self.floats])),))
        if pick == 16 and t == "i32":
            return Expr(t, "twice_or_less({0})", (e(),))
        if pick == 16 and t == "u64":
            return Expr(t, "spread({0}, {1})", (e(), e()))
        source = self.r.choice([u for u in INTS if u != t])
        return Expr(t, f"{t}({{0}})", (e(source),))

    def weak(self, t: str) -> str:
        """A literal that takes the type of the other operand."""
        text = self.number(t)
        return f"({text})" if text.startswith("-") else text

    def compare(self, depth: int) -> Expr:
        t = self.r.choice([*INTS, *self.floats, "i32"])
        ops = ["<", "<=", ">", ">=", "==", "!="]
        if self.r.random() < 0.2 and t in INTS:
            kids = (self.expr(t, depth - 1), self.expr(t, depth - 1), self.expr(t, depth - 1))
            return Expr("bool_", f"({{0}} {self.r.choice(ops[:4])} {{1}} {self.r.choice(ops[:4])} {{2}})", kids)
        return Expr("bool_", f"({{0}} {self.r.choice(ops)} {{1}})", (self.expr(t, depth - 1), self.expr(t, depth - 1)))

    def boolean(self, depth: int) -> Expr:
        pick = self.r.randrange(7)
        e = lambda: self.expr("bool_", depth - 1)  # noqa: E731
        if pick < 3:
            return self.compare(depth)
        if pick < 5:
            return Expr("bool_", f"({{0}} {self.r.choice(['and', 'or'])} {{1}})", (e(), e()))
        if pick == 5:
            return Expr("bool_", "(not {0})", (e(),))
        return Expr("bool_", "({1} if {0} else {2})", (e(), e(), e()))

    def float(self, t: str, depth: int) -> Expr:
        """Never a bare product, so that it may be an operand of a sum."""
        e = lambda: self.expr(t, depth - 1)  # noqa: E731
        pick = self.r.randrange(12)
        if pick < 3:
            return Expr(t, f"({{0}} {self.r.choice(['+', '-'])} {{1}})", (e(), e()))
        if pick == 3:
            return Expr(t, "({0} / (abs({1}) + 1.0))", (e(), e()))
        if pick == 4:
            return Expr(t, self.r.choice(["(-{0})", "abs({0})"]), (e(),))
        if pick == 5:
            return Expr(t, self.r.choice(["min({0}, {1})", "max({0}, {1})"]), (e(), e()))
        if pick == 6:
            return Expr(t, f"math.{self.r.choice(['floor', 'ceil', 'trunc', 'rint'])}({{0}})", (e(),))
        if pick == 7:
            return Expr(t, "math.sqrt(abs({0}))", (e(),))
        if pick == 8:
            return Expr(t, "math.floor({0} * {1})", (e(), e()))
        if pick == 9:
            return Expr(t, "math.copysign({0}, math.fmax({1}, -64.0))", (e(), e()))  # a NaN has no sign
        if pick == 10:
            return Expr(t, "({1} if {0} else {2})", (self.expr("bool_", depth - 1), e(), e()))
        source = self.r.choice([u for u in (*INTS, *self.floats) if u != t])
        return Expr(t, f"{t}({{0}})", (self.expr(source, depth - 1),))

    # -- statements --------------------------------------------------------------------------------------------
    def declare(self) -> list[Stmt]:
        """Variables of several types, and structs, each with a first value."""
        out = []
        for t in self.r.sample([*INTS, *self.floats, "bool_"], self.r.randint(1, 4)):
            name = self.fresh("v")
            # An annotation-free declaration needs a typed value.
            value = Expr(t, f"{t}({{0}})", (self.expr(t, 1),))
            out.append(Stmt(f"{name} = {{0}}", (value,), fixed=True))
            self.vars.setdefault(t, []).append(name)
            self.writable.setdefault(t, []).append(name)
        if self.r.random() < 0.4:
            name = self.fresh("s")
            nest = self.r.random() < 0.5
            kids = (self.expr("u8", 1), self.expr("i32", 1), self.expr("f32", 1), self.expr("i64", 1))
            if nest:
                out.append(Stmt(f"{name} = Nest({{0}}, Pair({{1}}, {{2}}), {{3}})", kids, fixed=True))
                fields = {"u8": f"{name}.k", "i32": f"{name}.p.x", "f32": f"{name}.p.y", "i64": f"{name}.z"}
                pair = f"{name}.p"
            else:
                out.append(Stmt(f"{name} = Pair({{0}}, {{1}})", kids[1:3], fixed=True))
                fields = {"i32": f"{name}.x", "f32": f"{name}.y"}
                pair = name
            for t, path in fields.items():
                self.vars.setdefault(t, []).append(path)
                self.writable.setdefault(t, []).append(path)
            self.vars["i32"].append(f"{pair}.mixed({self.r.randint(-5, 5)})")
        if self.r.random() < 0.3:
            name = self.fresh("buf")
            t = self.r.choice(["i32", "i64", "u32", "f32"])
            out.append(Stmt(f"{name} = gw.local((8,), {t})", fixed=True))
            for _ in range(3):
                element = f"{name}[{self.r.choice(['a & 7', 'b & 7', '3', '-1', 'i32(c & 7)'])}]"
                self.vars.setdefault(t, []).append(element)
                self.writable.setdefault(t, []).append(element)
        return out

    def fresh(self, base: str) -> str:
        self.count += 1
        return f"{base}{self.count}"

    def assign(self, depth: int) -> Stmt:
        t = self.r.choice(list(self.writable))
        name = self.r.choice(self.writable[t])
        if t in INTS and self.r.random() < 0.3:
            op = self.r.choice(["+=", "-=", "*=", "^=", "|=", "&="])
            return Stmt(f"{name} {op} {{0}}", (self.expr(t, depth),))
        names = [v for v in self.writable[t] if "[" not in v]
        if len(names) > 1 and self.r.random() < 0.1:
            p, q = self.r.sample(names, 2)
            return Stmt(f"{p}, {q} = {{0}}, {{1}}", (self.expr(t, 1), self.expr(t, 1)))
        return Stmt(f"{name} = {{0}}", (self.expr(t, depth),))

    def block(self, depth: int, result: str) -> tuple[Stmt, ...]:
        out = [self.statement(depth, result) for _ in range(self.r.randint(1, 3))]
        return tuple(out)

    def statement(self, depth: int, result: str) -> Stmt:
        pick = self.r.randrange(12) if depth > 0 else 0
        if pick < 5:
            return self.assign(2)
        if pick < 7:
            blocks = [("", self.block(depth - 1, result))]
            if self.r.random() < 0.3:
                # The elif's condition is drawn here, since a label has no expressions of its own.
                blocks.append((f"elif {self.expr('bool_', 1).text()}:", self.block(depth - 1, result)))
            if self.r.random() < 0.6:
                blocks.append(("else:", self.block(depth - 1, result)))
            return Stmt("if {0}:", (self.expr("bool_", 2),), tuple(blocks))
        if pick < 9:
            return self.for_loop(depth, result)
        if pick == 9:
            return self.while_loop(depth, result)
        if pick == 10:
            return self.match(depth, result)
        if self.r.random() < 0.5:
            early = Stmt("return {0}", (self.expr(result, 1),))
            return Stmt("if {0}:", (self.expr("bool_", 2),), (("", (early,)),))
        return self.assign(3)

    def leave_loop(self) -> Stmt:
        kind = self.r.choice(["break", "continue"])
        leave = Stmt("if {0}:", (self.expr("bool_", 1),), (("", (Stmt(kind),)),))
        if self.r.random() < 0.2:  # under another condition, with more to do after it
            return Stmt("if {0}:", (self.expr("bool_", 1),), (("", (leave, self.assign(1))),))
        return leave

    def loop_body(self, depth: int, result: str) -> tuple[Stmt, ...]:
        self.loops += 1
        body = list(self.block(depth - 1, result))
        for _ in range(self.r.choice([0, 1, 1, 2, 3])):
            body.insert(self.r.randint(0, len(body)), self.leave_loop())
        self.loops -= 1
        return tuple(body)

    def for_loop(self, depth: int, result: str) -> Stmt:
        if self.loops >= 2:
            return self.assign(2)
        k = self.fresh("k")
        bounds = self.r.choice(["3", "1, 6", "5, -1, -2", "0, 7, 3", "2, 2", "(a & 3) + 1", "0, b & 7, 2"])
        self.vars["i32"].append(f"i32({k})")
        body = self.loop_body(depth, result)
        self.vars["i32"].remove(f"i32({k})")
        blocks = [("", body)]
        if self.r.random() < 0.3:
            blocks.append(("else:", self.block(depth - 1, result)))
        return Stmt(f"for {k} in range({bounds}):", (), tuple(blocks))

    def while_loop(self, depth: int, result: str) -> Stmt:
        if self.loops >= 2:
            return self.assign(2)
        w = self.fresh("w")
        body = (Stmt(f"{w} += 1", fixed=True), *self.loop_body(depth, result))
        blocks = [("", body)]
        if self.r.random() < 0.4:
            blocks.append(("else:", self.block(depth - 1, result)))
        head = f"while {w} < {self.r.randint(1, 6)} and {{0}}:"
        loop = Stmt(head, (self.expr("bool_", 2),), tuple(blocks), fixed=True)
        # The counter and its loop go together: an `if` that is always taken holds both.
        return Stmt("if {0}:", (Expr("bool_", "True"),), (("", (Stmt(f"{w} = i32(0)", fixed=True), loop)),))

    def match(self, depth: int, result: str) -> Stmt:
        cases = [("case 0:", self.block(depth - 1, result)), ("case 1 | 3:", self.block(depth - 1, result))]
        if self.r.random() < 0.7:
            cases.append(("case _:", self.block(depth - 1, result)))
        t = self.r.choice(["i32", "i64", "u8", "u32"])
        arms = tuple(Stmt(label, (), (("", body),), fixed=True) for label, body in cases)
        return Stmt("match {0} & 7:", (self.expr(t, 2),), (("", arms),))

    def program(self) -> Program:
        result = self.r.choice(["i32", "i32", "i64", "f32"])
        if self.r.random() < 0.4:  # a single expression
            return Program((), self.expr(result, self.size), self.seed)
        body = self.declare()
        for _ in range(self.r.randint(1, 4)):
            body.append(self.statement(2, result))
        return Program(tuple(body), self.expr(result, 2), self.seed)

