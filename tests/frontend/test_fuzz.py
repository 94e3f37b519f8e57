"""Any syntactically valid Python function gives IR or one report: never an internal error, never a hang.

Programs are made by mutating the functions of these tests and of the examples. ``GRIDWISE_FUZZ=20000`` asks for
another number than the normal 1,000; ``GRIDWISE_FUZZ_SEED`` for other programs.
"""

import ast
import copy
import linecache
import os
import random
import signal
import warnings
from pathlib import Path

import pytest
from lowering import compiled

import gridwise as gw

HERE = Path(__file__).parent
SOURCES = [
    *(HERE / f"test_{n}.py" for n in ("control", "types", "memory", "rules")),
    HERE / "device_library.py",
    *sorted((HERE.parents[1] / "examples").glob("*.py")),
]
PROGRAMS = int(os.environ.get("GRIDWISE_FUZZ", "1000"))
SEED = int(os.environ.get("GRIDWISE_FUZZ_SEED", "1"))
CONSTANTS = [0, 1, -1, 2, 7, 2**31, 2**63, 10**30, 0.5, -0.0, 1e40, 1e400, True, None, "text", b"x", 2j, ...]
NAMES = "a b c o i n x y k t thread f32 i32 u8 gw range len print min Point Body vec2 Mode math np barrier self".split()
STRANGE = [
    "[x for x in range(3)]",
    "{'a': 1}",
    "{1, 2}",
    "(yield 1)",
    "lambda *a, **k: a",
    "lambda: (lambda: 1)()",
    "f'{x!r:>{n}}'",
    "a[1:2, ...]",
    "x if x else None",
    "not (x is None)",
    "x in a in c",
    "(y := 3)",
    "print(*a)",
    "a.b.c.d",
    "x @ x",
    "-~+x",
    "1 < x < 2 != n",
    "f32(1)(2)",
    "gw.local((4,), f32)[n]",
    "gw.shared(4, i32)",
    "gw.math.sin(a)",
    "thread.index_1d()[0]",
    "max((), 1)",
    "vec2(1, 2.5).xyx",
    "divmod(n, 0)",
    "1 << 10000",
    "range(3)",
    "(1, 2)[n]",
    "x.copy().copy()",
    "i32",
    "gw",
    "super().x",
    "__import__('os')",
    "''.join(a)",
    "some_undefined(1)",
    "Mode(9)",
    "Body()",
    "int('3')",
    "float('nan')",
]
STATEMENTS = [
    "try:\n    x = 1\nfinally:\n    pass",
    "with gw.unsafe('fuzz'):\n    x = 1",
    "with gw.unsafe(x):\n    pass",
    "for q in a: pass",
    "for q, r in ((1, 2), (3, 4)): x = q",
    "for q in (1, 2.5, f32): break",
    "while True: pass",
    "while x: x -= 1",
    "def g(v): return g(v)",
    "def g(v=1, *, w: f32 = 2): return v + w\ng()",
    "return",
    "return 1",
    "return 1, 2",
    "x: f32 = 1",
    "x: Nope",
    "x.y: f32 = 1",
    "x += 1",
    "x[0] += 1",
    "x.y = 1",
    "x, y = y, x",
    "x = y = 1, 2",
    "(x, (y, z)) = 1, (2, 3)",
    "[x, y] = 1, 2",
    "*x, y = 1, 2, 3",
    "del x",
    "global x",
    "assert x, f'{x}'",
    "assert (x, 'always')",
    "class Q: pass",
    "import os",
    "match x:\n    case [1, *r]: pass\n    case {'k': v}: pass\n    case Point(x=1): pass\n    case _: pass",
    "match (1, x):\n    case (1, y) if y: x = y\n    case (_, _) | _: pass",
    "if x:\n    z = 1\nelse:\n    z = 2.0",
    "barrier()",
    "gw.atomic.add(a, 0, 1)",
    "raise ValueError",
    "pass",
    "...",
    "'docstring'",
    "lambda: 0",
    "async def h(): pass",
    "@gw.kernel\ndef h(): pass",
]
PRELUDE = """
import dataclasses, math
import numpy as np
import gridwise as gw
from enum import IntEnum
from typing import *
from collections.abc import Callable
from gridwise import *
from gridwise.lang.options import none, some
from gridwise import thread, atomic, subgroup
"""


def corpus():
    """The modules' definitions (classes, constants, helpers) in order, and the functions to mutate."""
    definitions, functions = [], []
    for path in SOURCES:
        for node in ast.parse(path.read_text()).body:
            if "parametrize" in ast.unparse(node) or getattr(node, "name", "").startswith("test_"):
                continue
            if isinstance(node, ast.FunctionDef):
                functions.append(node)
            if isinstance(node, ast.FunctionDef | ast.ClassDef | ast.Assign):
                definitions.append(node)
    return definitions, functions


def expressions(tree):
    """(parent, field, index or None) of every expression that may be replaced."""
    places = []
    for parent in ast.walk(tree):
        if isinstance(parent, ast.arguments | ast.arg) and random.random() < 0.8:
            continue
        for field, value in ast.iter_fields(parent):
            if isinstance(value, ast.expr) and not isinstance(getattr(value, "ctx", None), ast.Store):
                places.append((parent, field, None))
            elif isinstance(value, list):
                places += [(parent, field, k) for k, v in enumerate(value) if isinstance(v, ast.expr)]
    return places


def blocks(tree):
    return [
        value
        for node in ast.walk(tree)
        for field, value in ast.iter_fields(node)
        if field in ("body", "orelse") and isinstance(value, list) and value and isinstance(value[0], ast.stmt)
    ]


def put(place, new):
    parent, field, k = place
    if k is None:
        setattr(parent, field, new)
    else:
        getattr(parent, field)[k] = new


def mutate(tree, pool, rng):
    choice = rng.randrange(9)
    places = expressions(tree)
    if choice <= 2 and places:
        new = copy.deepcopy(rng.choice(pool) if choice else ast.parse(rng.choice(STRANGE), mode="eval").body)
        mine = sorted({n.id for n in ast.walk(tree) if isinstance(n, ast.Name)})
        for name in ast.walk(new):  # an expression of another function: give most of its names a meaning here
            if isinstance(name, ast.Name) and name.id not in mine and rng.random() < 0.8:
                name.id = rng.choice(mine) if mine else name.id
        put(rng.choice(places), new)
    elif choice == 3 and places:
        put(rng.choice(places), ast.Constant(rng.choice(CONSTANTS)))
    elif choice == 4 and places:
        put(rng.choice(places), ast.Name(rng.choice(NAMES), ast.Load()))
    elif choice == 5:
        body = rng.choice(blocks(tree))
        body.insert(rng.randrange(len(body) + 1), rng.choice(ast.parse(rng.choice(STATEMENTS)).body))
    elif choice == 6:
        body = rng.choice(blocks(tree))
        if len(body) > 1:
            del body[rng.randrange(len(body))]
    elif choice == 7:
        body, other = rng.choice(blocks(tree)), rng.choice(blocks(tree))
        body.insert(rng.randrange(len(body) + 1), copy.deepcopy(rng.choice(other)))
    else:
        operators = [n for n in ast.walk(tree) if isinstance(n, ast.BinOp | ast.AugAssign)]
        if operators:
            kinds = [
                ast.Add,
                ast.Sub,
                ast.Mult,
                ast.Div,
                ast.FloorDiv,
                ast.Mod,
                ast.Pow,
                ast.LShift,
                ast.BitAnd,
                ast.MatMult,
            ]
            rng.choice(operators).op = rng.choice(kinds)()


def program(number, definitions, functions, pool):
    """A mutated function's source, or None if the mutant is no Python."""
    rng = random.Random(SEED * 1_000_003 + number)
    random.seed(number)
    tree = copy.deepcopy(rng.choice(functions))
    tree.decorator_list = []
    tree.name = "mutant"
    for _ in range(rng.randint(1, 3)):
        mutate(tree, pool, rng)
    try:
        text = ast.unparse(ast.fix_missing_locations(tree))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            compile(text, "mutant", "exec")
    except (SyntaxError, ValueError, TypeError, AttributeError, RecursionError):
        return None
    if tree.returns is None:
        return text
    # A device function is called from a kernel, with a constant of each parameter's type.
    given = ", ".join(f"{ast.unparse(a.annotation)}(1)" if a.annotation else "1" for a in tree.args.args)
    return text.replace("def mutant(", "def device(", 1) + f"\ndef mutant():\n    x = device({given})\n"


def timed_out(*_):
    raise TimeoutError("compiling took more than 10 s")


@pytest.fixture(autouse=True)
def hangs_are_found():
    old = signal.signal(signal.SIGPROF, timed_out)
    yield
    signal.signal(signal.SIGPROF, old)


def test_every_program_gives_ir_or_one_report():
    definitions, functions = corpus()
    pool = [n for fn in functions for n in ast.walk(fn) if isinstance(n, ast.expr) and not isinstance(n, ast.Starred)]
    pool = [n for n in pool if not isinstance(getattr(n, "ctx", None), ast.Store)]
    space = {"__name__": "fuzzed"}
    load(PRELUDE + "\n".join(ast.unparse(d) for d in definitions), "<definitions>", space, strict=False)
    made = accepted = 0
    for number in range(PROGRAMS):
        text = program(number, definitions, functions, pool)
        if text is not None:
            made += 1
            accepted += attempt(text, f"<mutant {number}>", dict(space))
    assert made > PROGRAMS // 3
    assert 0 < accepted < made


def load(text, name, space, strict=True):
    """Run a source text that ``linecache`` knows; unless strict, statements that fail are left out."""
    lines = [line + "\n" for line in text.splitlines()]
    linecache.cache[name] = (len(text), None, lines, name)
    for statement in ast.parse(text).body:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                exec(compile(ast.Module([statement], []), name, "exec"), space)
        except Exception:
            if strict:
                raise


def attempt(text, name, space):
    """Compile one mutant; True if it is accepted. Anything but a report is a failure of this test."""
    try:
        load(text, name, space)
    except Exception:
        return False  # its own annotations or defaults do not evaluate: Python's error, not ours
    domain = next((k for k in (3, 2) if f"index_{k}d" in text), 1)
    signal.setitimer(signal.ITIMER_PROF, 10)  # of processor time
    try:
        compiled(space["mutant"], domain=domain, **dict.fromkeys(("k", "width", "order", "n"), 3))
    except gw.KernelError as error:
        report = str(error)
        assert len(report.splitlines()) <= 6, f"{name}\n{text}\n\n{report}"
        return False
    except KeyError:
        return False  # the mutant has a Const parameter that this test gives no value
    except BaseException as error:
        raise AssertionError(f"{type(error).__name__}: {error}\nfrom {name}\n{text}") from error
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        linecache.cache.pop(name, None)
    return True


@pytest.mark.parametrize("text", STATEMENTS)
def test_strange_statements(text):
    space = {}
    load(PRELUDE, "<prelude>", space)
    body = "\n".join("    " + line for line in text.splitlines())
    head = "def mutant(a: Slice[f32], o: DisjointSlice[f32], n: i32):\n    x, y = n, n\n"
    source = f"{head}{body}\n    o[thread.index_1d()] = 1\n"
    attempt(source, "<statement>", space)
