"""The PTX target against the reference device: every operation, every type.

On the simulated driver; on the GPU itself where the environment expects one (``GRIDWISE_EXPECT=cuda``).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from cuda_kernels import ArrayArg, Kern, agree, array, lowered, shared

from gridwise.ir.types import (
    BF16,
    BOOL,
    F16,
    F32,
    F64,
    FLOATS,
    I8,
    I32,
    I64,
    INTEGERS,
    SCALARS,
    U32,
    U64,
    Scalar,
    layout,
)


def samples(t: Scalar, n: int = 256, seed: int = 0) -> np.ndarray:
    """Edges of the type, then random bits."""
    rng = np.random.default_rng(seed)
    if t == BOOL:
        return rng.integers(0, 2, n).astype(bool)
    if t.is_int:
        edges = [t.min, t.max, 0, 1, 2, 3, t.wrap(-1), t.wrap(-7), t.max - 1, t.bits - 1, t.bits]
        edges += [t.wrap(n) for n in ((1 << 32) + 3, (5 << 40) + 1, (1 << 31) + 2, (1 << 16) + 4)]
        some = rng.integers(t.min, t.max, n, dtype=t.dtype, endpoint=True)
        small = rng.integers(0, 9, n).astype(t.dtype)
        some = np.where(rng.random(n) < 0.5, some, small)
    else:
        edges = [0.0, -0.0, 1.0, -1.5, np.inf, -np.inf, np.nan, 1e-40, 3.0, 300.0, -0.4, 2.5, -2.5]
        with np.errstate(over="ignore"):
            some = (rng.standard_normal(n) * 10.0 ** rng.integers(-4, 5, n)).astype(t.dtype)
    some[: len(edges)] = np.array(edges, t.dtype if t.is_int else np.float64).astype(t.dtype)
    return rng.permutation(some)


def elementwise(name: str, types: list[Scalar], result: Scalar, make: Any) -> Any:
    """A kernel of one thread an element: ``make(builder, values)`` gives the element."""
    params = {f"x{n}": array(t) for n, t in enumerate(types)}
    k = Kern(name, (64, 1, 1), **params, out=array(result, "disjoint"))
    i = k.b.identity("global_idx", 0)
    values = [k.b.load(getattr(k, p), [i], check="proved") for p in params]
    k.b.store(k.out, [i], make(k.b, values), check="proved")
    return k.kernel


def check(cuda: Any, name: str, types: list[Scalar], result: Scalar, make: Any) -> None:
    inputs = [samples(t, seed=n) for n, t in enumerate(types)]
    agree(cuda, elementwise(name, types, result, make), [*inputs, np.zeros(256, result.dtype)], (4, 1, 1))


@pytest.mark.parametrize("t", INTEGERS, ids=str)
def test_integer_operations(cuda: Any, t: Scalar) -> None:
    for code in "add sub mul floordiv mod min max and or xor shl shr".split():
        check(cuda, code, [t, t], t, lambda b, v, c=code: b.binary(c, *v))
    for code in ["neg", "not", "popcount", "clz", "ctz"] + ["abs"] * t.signed:
        check(cuda, code, [t], t, lambda b, v, c=code: b.unary(c, v[0]))
    for code in "eq ne lt le gt ge".split():
        check(cuda, code, [t, t], BOOL, lambda b, v, c=code: b.binary(c, *v))


@pytest.mark.parametrize("t", FLOATS, ids=str)
def test_float_operations(cuda: Any, t: Scalar) -> None:
    for code in "add sub mul div min max".split():
        check(cuda, code, [t, t], t, lambda b, v, c=code: b.binary(c, *v))
    for code in ("neg", "abs"):
        check(cuda, code, [t], t, lambda b, v, c=code: b.unary(c, v[0]))
    for code in "eq ne lt le gt ge".split():
        check(cuda, code, [t, t], BOOL, lambda b, v, c=code: b.binary(c, *v))
    for fn in "sqrt floor ceil trunc rint".split():
        check(cuda, fn, [t], t, lambda b, v, f=fn: b.math(f, v))
    for fn in "isnan isinf isfinite".split():
        check(cuda, fn, [t], BOOL, lambda b, v, f=fn: b.math(f, v, BOOL))
    for fn in "fmin fmax copysign".split():
        check(cuda, fn, [t, t], t, lambda b, v, f=fn: b.math(f, v))
    check(cuda, "fma", [t, t, t], t, lambda b, v: b.value("fma", v, t))


@pytest.mark.parametrize("src", SCALARS.values(), ids=str)
def test_conversions(cuda: Any, src: Scalar) -> None:
    for dst in SCALARS.values():
        check(cuda, f"cast_{dst}", [src], dst, lambda b, v, d=dst: b.cast(v[0], d))


def test_selection_and_bits(cuda: Any) -> None:
    check(cuda, "select", [BOOL, F32, F32], F32, lambda b, v: b.select(*v))
    check(cuda, "bits", [F32], U32, lambda b, v: b.bitcast(v[0], U32))
    check(cuda, "bits64", [U64], F64, lambda b, v: b.bitcast(v[0], F64))


def test_identities_in_three_dimensions(cuda: Any) -> None:
    for index in (I32, I64):
        k = Kern("place", (4, 3, 2), 3, index, out=array(index, "disjoint", 1, index=index))
        b = k.b
        ids = [b.identity(c, a) for c in ("thread_idx", "block_idx", "grid_dim", "global_idx") for a in range(3)]
        x, y, z = ids[9:]
        n = lambda v, b=b, index=index: b.const(v, index)  # noqa: E731
        place = b.binary("add", x, b.binary("mul", n(8), b.binary("add", y, b.binary("mul", n(9), z))))
        for slot, v in enumerate(ids):
            at = b.binary("add", b.binary("mul", place, n(12)), n(slot))
            b.store(k.out, [at], v, check="proved")
        agree(cuda, k.kernel, [np.zeros(8 * 9 * 2 * 12, index.dtype)], (2, 3, 1))


def test_control_flow(cuda: Any) -> None:
    """A loop with break, continue and else; a scope left early; a while."""
    k = Kern("flow", (64, 1, 1), a=array(I32), out=array(I32, "disjoint"))
    b = k.b
    i = b.identity("global_idx", 0)
    total, n = b.var("total", I32), b.var("n", I32)
    b.set(total, b.const(0, I32))
    b.set(n, b.load(k.a, [i], check="proved"))
    loop = b.for_(b.const(20, I32), b.const(-20, I32), b.const(-3, I32))
    with b.into(loop.regions[0]):
        at = loop.regions[0].args[0]
        with b.into(b.if_(b.binary("eq", at, b.get(n))).regions[0]):
            b.emit("break")
        with b.into(b.if_(b.binary("lt", at, b.const(0, I32))).regions[0]):
            b.emit("continue")
        b.set(total, b.binary("add", b.get(total), at))
    with b.into(loop.regions[1]):
        b.set(total, b.binary("add", b.get(total), b.const(1000, I32)))
    scope = b.scope(1)
    with b.into(scope.regions[0]):
        with b.into(b.if_(b.binary("gt", b.get(n), b.const(4, I32))).regions[0]):
            b.emit("leave", id=1)
        b.set(total, b.unary("neg", b.get(total)))
    again = b.while_()
    with b.into(again.regions[0]):
        b.emit("yield", (b.binary("gt", b.get(n), b.const(0, I32)),))
    with b.into(again.regions[1]):
        b.set(n, b.binary("sub", b.get(n), b.const(7, I32)))
        b.set(total, b.binary("xor", b.get(total), b.get(n)))
    b.store(k.out, [i], b.get(total), check="proved")
    agree(cuda, k.kernel, [np.arange(-20, 44, dtype=np.int32), np.zeros(64, np.int32)])


def test_strided_arrays_and_structs(cuda: Any) -> None:
    inner = layout("inner", [("a", I8, 0), ("b", F64, 0)])
    outer = layout("outer", [("flag", BOOL, 0), ("row", inner, 3), ("h", F16, 0)])
    k = Kern("structs", (16, 1, 1), s=array(outer, "disjoint"), m=array(F32, "read", 2, strided=True))
    b = k.b
    i = b.identity("global_idx", 0)
    row, h, flag = outer.fields[1], outer.fields[2], outer.fields[0]
    two = b.const(2, I32)
    value = b.load(k.m, [b.binary("mod", i, two), i], check="proved")
    b.store(k.s, [i, two], b.cast(value, F64), (row, inner.fields[1]), check="proved")
    b.store(k.s, [i], b.cast(value, F16), (h,), check="proved")
    b.store(k.s, [i], b.binary("gt", value, b.const(0.0, F32)), (flag,), check="proved")
    s = np.zeros(16, outer.dtype)
    m = np.random.default_rng(1).standard_normal((40, 32)).astype(np.float32)
    module = cuda.load(lowered(k.kernel))
    ds, dm = cuda.array(s), cuda.array(m)
    view = ArrayArg(dm.buffer, 4 * (5 * 32 + 31), (2, 16), (7 * 32, -2))
    cuda.launch(module, (1, 1, 1), [ArrayArg(ds.buffer, 0, (16,), (1,)), view], cuda.default_stream)
    got, want = ds.numpy(), m[5:13:7, ::-2]
    for n in range(16):
        assert got[n]["row"][2]["b"] == want[n % 2, n]
        assert got[n]["h"] == np.float16(want[n % 2, n])
        assert got[n]["flag"] == (want[n % 2, n] > 0)


def test_shared_memory_starts_as_zero_and_barriers_order(cuda: Any) -> None:
    k = Kern("reverse", (40, 1, 1), a=array(I64), out=array(I64, "disjoint"), fresh=array(I64, "disjoint"))
    tile = k.b.array("tile", shared(I64, 5, 9))
    b = k.b
    t, g = b.identity("thread_idx", 0), b.identity("global_idx", 0)
    nine = b.const(9, I32)
    at = [b.binary("floordiv", t, nine), b.binary("mod", t, nine)]
    b.store(k.fresh, [g], b.load(tile, at, check="proved"), check="proved")
    b.emit("barrier")
    b.store(tile, at, b.load(k.a, [g], check="proved"), check="proved")
    b.emit("barrier")
    back = b.binary("sub", b.const(39, I32), t)
    other = [b.binary("floordiv", back, nine), b.binary("mod", back, nine)]
    b.store(k.out, [g], b.load(tile, other, check="proved"), check="proved")
    a = np.random.default_rng(2).integers(-(2**60), 2**60, 120)
    _, out, fresh = agree(cuda, k.kernel, [a, np.zeros(120, np.int64), np.ones(120, np.int64)], (3, 1, 1))
    assert not fresh.any() and (out.reshape(3, 40) == a.reshape(3, 40)[:, ::-1]).all()


@pytest.mark.parametrize("own", [8, 60_000], ids=["declared", "beyond 48 KiB"])
def test_shared_memory_sized_by_the_launch(cuda: Any, own: int) -> None:
    k = Kern("sized", (32, 1, 1), out=array(I32, "disjoint"))
    b = k.b
    first = b.array("first", shared(I8, own))
    sized = b.array("sized", shared(I32, 0))
    t = b.identity("thread_idx", 0)
    b.store(first, [b.const(own - 1, I32)], b.const(5, I8), check="proved")
    b.store(sized, [t], b.binary("mul", t, t), check="proved")
    b.emit("barrier")
    last = b.binary("sub", b.value("dim", (sized,), I32, axis=0), b.const(1, I32))
    b.store(k.out, [t], b.load(sized, [b.binary("sub", last, t)], check="proved"), check="proved")
    (out,) = agree(cuda, k.kernel, [np.zeros(32, np.int32)], shared_bytes=35 * 4)
    assert (out == [0, 0, 0, *(n * n for n in range(31, 2, -1))]).all()


@pytest.mark.parametrize("threads", [64, 40], ids=["whole warps", "a partial warp"])
def test_subgroups(cuda: Any, threads: int) -> None:
    """All shuffles, votes, reductions and scans, by constant and by varying operands."""
    rng = np.random.default_rng(threads)
    for t in (I32, U32, I64, F32, F64, F16, BF16, I8):
        k = Kern("groups", (threads, 1, 1), a=array(t), lanes=array(I32), out=array(t, "disjoint", 2))
        b = k.b
        i = b.identity("thread_idx", 0)
        x, lane = b.load(k.a, [i], check="proved"), b.load(k.lanes, [i], check="proved")
        results = []
        for fn in ("shuffle", "shuffle_xor", "shuffle_up", "shuffle_down"):
            results += [b.value("subgroup", (x, by), t, fn=fn) for by in (lane, b.const(1, I32), b.const(40, I32))]
        results.append(b.value("subgroup", (x, b.const(5, I32)), t, fn="broadcast"))
        kinds = "add min max mul scan_add scan_exclusive_add".split()
        kinds += ["and", "or", "xor"] if t.is_int else []
        for fn in kinds:
            name = fn if fn.startswith("scan") else f"reduce_{fn}"
            results.append(b.value("subgroup", (x,), t, fn=name))
        for n, r in enumerate(results):
            b.store(k.out, [b.const(n, I32), i], r, check="proved")
        # Small whole numbers: float sums are exact in any order.
        a = rng.integers(1, 3, threads).astype(t.dtype)
        lanes = rng.integers(-3, 36, threads).astype(np.int32)
        agree(cuda, k.kernel, [a, lanes, np.zeros((len(results), threads), t.dtype)])


def test_votes(cuda: Any) -> None:
    k = Kern("votes", (72, 1, 1), a=array(BOOL), out=array(U32, "disjoint", 2))
    b = k.b
    i = b.identity("thread_idx", 0)
    p = b.load(k.a, [i], check="proved")
    found = [b.cast(b.value("subgroup", (p,), BOOL, fn=fn), U32) for fn in ("any", "all")]
    found += [b.value("subgroup", (p,), U32, fn="ballot"), b.value("subgroup", (), U32, fn="size")]
    found.append(b.value("subgroup", (), U32, fn="lane"))
    for n, v in enumerate(found):
        b.store(k.out, [b.const(n, I32), i], v, check="proved")
    a = np.random.default_rng(3).random(72) < 0.5
    a[32:64] = True
    a[64:] = False
    agree(cuda, k.kernel, [a, np.zeros((5, 72), np.uint32)])


@pytest.mark.parametrize("t", [I32, U32, I64, U64, F32, F64], ids=str)
@pytest.mark.parametrize("order", ["relaxed", "acq_rel"])
def test_atomics(cuda: Any, t: Scalar, order: str) -> None:
    """Threads on one element: results that do not depend on the order."""
    fns = ["add", "sub", "min", "max"] + ([] if t.is_float else ["and", "or", "xor"])
    k = Kern("atomics", (64, 1, 1), a=array(t), out=array(t, "atomic"))
    b = k.b
    tile = b.array("tile", shared(t, 2))
    i = b.identity("thread_idx", 0)
    x = b.load(k.a, [i], check="proved")
    for n, fn in enumerate(fns):
        b.atomic(fn, k.out, [b.const(n, I32)], [x], order=order, check="proved")
    b.atomic("max", tile, [b.const(1, I32)], [x], order=order, scope="block", check="proved")
    b.emit("barrier")
    seen = b.load(tile, [b.const(1, I32)], check="proved")
    b.atomic("max", k.out, [b.const(8, I32)], [seen], check="proved")
    a = np.random.default_rng(4).integers(0 if t.kind == "uint" else -50, 50, 64).astype(t.dtype)
    out = np.full(9, 100 if t.is_int else 0.0, t.dtype)
    _, got = agree(cuda, k.kernel, [a, out])
    assert got[0] == out[0] + a.sum(dtype=t.dtype) and got[3] == max(out[3], a.max())


def test_float_extremes_ignore_nan_and_order_zeros(cuda: Any) -> None:
    k = Kern("extremes", (4, 1, 1), a=array(F32), out=array(F32, "atomic", 2))
    b = k.b
    i = b.identity("thread_idx", 0)
    for n, fn in enumerate(("min", "max")):
        b.atomic(fn, k.out, [b.const(n, I32), i], [b.load(k.a, [i], check="proved")], check="proved")
    a = np.array([np.nan, -0.0, 0.0, -3.0], np.float32)
    out = np.array([[1.0, 0.0, -0.0, -2.0], [1.0, 0.0, -0.0, -2.0]], np.float32)
    _, got = agree(cuda, k.kernel, [a, out])
    assert list(got[:, 0]) == [1.0, 1.0] and np.signbit(got[0, 1]) and not np.signbit(got[1, 2])


@pytest.mark.parametrize("t", [U32, I64, U64], ids=str)
def test_compare_exchange_counts_every_thread_once(cuda: Any, t: Scalar) -> None:
    """Each thread spins until its swap succeeds: a lost update would show."""
    k = Kern("cas", (64, 1, 1), out=array(t, "atomic"))
    b = k.b
    seen = b.var("seen", t)
    b.set(seen, b.const(0, t))
    loop = b.while_()
    with b.into(loop.regions[0]):
        b.emit("yield", (b.const(True, BOOL),))
    with b.into(loop.regions[1]):
        old = b.get(seen)
        now = b.atomic(
            "compare_exchange", k.out, [b.const(0, I32)], [old, b.binary("add", old, b.const(1, t))],
            order="acq_rel", check="proved",
        )  # fmt: skip
        with b.into(b.if_(b.binary("eq", now, old)).regions[0]):
            b.emit("break")
        b.set(seen, now)
    agree(cuda, k.kernel, [np.zeros(1, t.dtype)], (2, 1, 1))
