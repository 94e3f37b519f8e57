"""Browsers compile WGSL by Tint, which is stricter than naga: our text must pass there too, uniformity included.

Needs node and the npm package ``webgpu``: ``npm install --prefix DIR webgpu`` and GRIDWISE_TINT=DIR.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
from pathlib import Path

import pytest
from test_check_control import built
from test_wgsl_cooperation import accumulate, faulty
from test_wgsl_memory import copier, transposer
from wgsl_kernels import Sketch

from gridwise.ir import Kernel
from gridwise.ir.ops import COMPARISON
from gridwise.ir.types import BF16, BOOL, F16, F32, F64, I32, INTEGERS, U32, Scalar
from gridwise.lang.errors import UnsupportedError
from gridwise.passes.pipeline import lower
from gridwise.targets.wgsl import emit
from gridwise.targets.wgsl.compile import message
from gridwise.targets.wgsl.dialect import TINT
from gridwise.targets.wgsl.layout import Variant

PLACE = os.environ.get("GRIDWISE_TINT", "")


needs_tint = pytest.mark.skipif(
    not PLACE or shutil.which("node") is None,
    reason="set GRIDWISE_TINT to a folder where npm installed the package webgpu",
)


def tint(texts: list[str]) -> list[list[str]]:
    """Tint's errors for each shader."""
    script = Path(__file__).with_name("tint.mjs")
    done = subprocess.run(["node", script, PLACE], input=json.dumps(texts), capture_output=True, text=True, check=True)
    said: list[list[str]] = json.loads(done.stdout)
    return said


def every_operation(t: Scalar) -> Kernel:
    """All operations and conversions of one type, written to one array."""
    s = Sketch()
    x, y, out = s.array("x", t, "read"), s.array("y", t, "read"), s.array("out", I32)
    b = s.b
    i = b.identity("global_idx", 0)
    with b.into(b.if_(b.binary("lt", i, b.dim(out, 0))).regions[0]):
        u, v = b.load(x, [i], check="proved"), b.load(y, [i], check="proved")
        codes = "add sub mul min max".split() + ("and or xor shl shr".split() if t.is_int else ["div"])
        values = [b.binary(c, u, v) for c in codes]
        values += [b.unary(c, u) for c in ("neg abs not popcount clz ctz".split() if t.is_int else ["neg", "abs"])]
        if t.is_int:
            values += [b.value(c, (u, v), t, check="proved") for c in ("floordiv", "mod")]
        else:
            values += [b.math(f, [u]) for f in "sqrt floor ceil trunc rint".split()] + [b.value("fma", (u, v, u), t)]
            values += [b.math(f, [u, v]) for f in ("fmin", "fmax", "copysign")]
            values += [b.const(float("inf"), t), b.const(float("nan"), t), b.const(-0.0, t)]
        values += [b.cast(u, to) for to in (*INTEGERS, F16, BF16, F32) if to != t]
        values += [b.binary(c, u, v) for c in sorted(COMPARISON)]
        total = b.const(0, I32)
        for value in values:
            total = b.binary("xor", b.binary("mul", total, b.const(31, I32)), b.cast(value, I32))
        b.store(out, [i], total, check="proved")
    return s.kernel("every")


def random_programs(count: int) -> list[Kernel]:
    """Control flow of the check device's kind, from a plain generator."""
    rng = random.Random(5)

    def body(depth: int, loop: bool, scopes: int) -> list[tuple]:  # type: ignore[type-arg]
        out: list[tuple] = []  # type: ignore[type-arg]
        for _ in range(rng.randint(1, 3)):
            cond = (rng.randrange(3), rng.randint(1, 5), rng.randrange(5))
            kind = rng.choice("add if for while scope".split()) if depth else "add"
            inner = lambda loop=loop, scopes=scopes: body(depth - 1, loop, scopes)  # noqa: E731
            if kind == "add":
                out.append(("add", rng.randrange(3), rng.randint(-3, 9)))
            elif kind == "if":
                exits = [("return",)] + [("break",), ("continue",)] * loop + [("leave", k) for k in range(scopes)]
                out.append(("if", cond, [*inner(), rng.choice(exits)], inner()))
            elif kind == "for":
                out.append(("for", rng.randint(-2, 3), cond, rng.choice([-2, -1, 1, 2]), inner(True), inner()))
            elif kind == "while":
                out.append(("while", rng.randint(1, 4), inner(True), inner()))
            else:
                out.append(("scope", inner(False, scopes + 1)))
        return out

    return [built(body(3, False, 0)) for _ in range(count)]


@needs_tint
def test_tint_accepts_our_text() -> None:
    kernels = [every_operation(t) for t in (*INTEGERS, F16, BF16, F32)]
    kernels += [copier(t) for t in (BOOL, *INTEGERS, F16, BF16, F32)] + [transposer(True), faulty()]
    kernels += [accumulate(fn, t, shared) for fn in ("add", "min") for t in (I32, U32, F32) for shared in (False, True)]
    kernels += random_programs(40)
    texts = [emit(lower(k, "wgsl"), TINT).text for k in kernels]
    shared = Variant(starts=True, folded=True, binding=(0, 0))
    texts += [emit(lower(copier(t), "wgsl", vector=False), TINT, variant=shared).text for t in INTEGERS]
    for text, errors in zip(texts, tint(texts), strict=True):
        assert not errors, (errors, text)


@needs_tint
def test_tint_accepts_subgroups_and_barriers() -> None:
    s = Sketch()
    out = s.array("out", F32)
    b = s.b
    tile = s.block_array("tile", F32, (64,))
    k, i = b.identity("thread_idx", 0), b.identity("global_idx", 0)
    b.store(tile, [k], b.cast(i, F32), check="proved")
    b.emit("barrier")
    x = b.value("subgroup", [b.load(tile, [k], check="proved")], F32, fn="reduce_max")
    b.store(out, [i], b.value("subgroup", [x, b.const(3, I32)], F32, fn="shuffle"), check="proved")
    for folded in (False, True):
        shader = emit(lower(s.kernel(), "wgsl"), TINT, variant=Variant(folded=folded))
        assert shader.text.startswith("enable subgroups;")
        assert tint([shader.text]) == [[]]


@needs_tint
def test_tints_messages_name_the_authors_line() -> None:
    s = Sketch()
    out = s.array("out", F32)
    s.at(12).store(out, [s.b.identity("global_idx", 0)], s.b.const(1.0, F32), check="proved")
    shader = emit(lower(s.kernel(), "wgsl"), TINT)
    (errors,) = tint([shader.text.replace("= 1.0f;", "= nonsense;")])
    assert "nonsense" in errors[0] and "kernel.py:12" in message(shader, errors[0])


def test_doubles_are_refused_at_their_line() -> None:
    s = Sketch()
    out = s.array("out", F32)
    b = s.at(7)
    b.store(out, [b.identity("global_idx", 0)], b.cast(b.const(1.0, F64), F32), check="proved")
    with pytest.raises(UnsupportedError, match=r"64-bit floats are not available.*\n.*kernel.py:7"):
        emit(lower(s.kernel(), "wgsl"), TINT)
