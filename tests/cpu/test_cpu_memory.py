"""Arrays of every kind, atomics, subgroups, faults and print, against the check device."""

from __future__ import annotations

import numpy as np
import pytest
from both import CPU, LOC, Sketch, agree, argument, on_cpu

from gridwise.ir import Value
from gridwise.ir.types import BF16, BOOL, F16, F32, F64, I8, I16, I32, I64, U8, U16, U32, U64, Scalar, layout
from gridwise.lang.errors import DeviceAssertionError, DeviceIndexError, DeviceZeroDivisionError
from gridwise.passes.pipeline import lower
from gridwise.targets.cpu import streaming

RNG = np.random.default_rng(3)
ALL = [BOOL, I8, I16, I32, I64, U8, U16, U32, U64, F16, BF16, F32, F64]


def random(t: Scalar, *shape: int) -> np.ndarray:
    if t == BOOL:
        return RNG.integers(0, 2, shape).astype(bool)
    return RNG.integers(0, 100, shape).astype(t.dtype)


# ---- loads and stores ------------------------------------------------------------------------------------------
@pytest.mark.parametrize("index", [I32, I64], ids=str)
@pytest.mark.parametrize("t", ALL, ids=str)
def test_access_patterns(t: Scalar, index: Scalar) -> None:
    """Neighbours, backwards, every third, through an index array, and the same element for all."""
    s = Sketch(index=index)
    a, where = s.array("a", t, "read"), s.array("where", I32, "read")
    outs = [s.array(f"out{n}", t) for n in range(5)]
    b, n = s.b, s.b.dim(outs[0], 0)
    i = b.identity("global_idx", 0)
    one, three = b.const(1, index), b.const(3, index)
    with b.into(b.if_(b.binary("lt", i, n)).regions[0]):
        last = b.binary("sub", b.binary("sub", n, i), one)
        at = b.cast(b.load(where, [i]), index)
        b.store(outs[0], [last], b.load(a, [i]))
        b.store(outs[1], [i], b.load(a, [last]))
        b.store(outs[2], [i], b.load(a, [b.binary("mod", b.binary("mul", i, three), n)]))
        b.store(outs[3], [at], b.load(a, [at]))
        b.store(outs[4], [i], b.load(a, [b.const(2, index)]))
    n = 101
    args = [random(t, n), RNG.permutation(n).astype(np.int32), *(np.zeros(n, t.dtype) for _ in outs)]
    agree(s.kernel(), 2, args)


@pytest.mark.parametrize("t", [F32, U8], ids=str)
def test_strided_views(t: Scalar) -> None:
    s = Sketch((16, 4, 1), domain=2)
    a, out = s.array("a", t, "read", 2, strided=True), s.array("out", t, "disjoint", 2, strided=True)
    b = s.b
    x, y = b.identity("global_idx", 0), b.identity("global_idx", 1)
    inside = b.binary("and", b.binary("lt", x, b.dim(out, 1)), b.binary("lt", y, b.dim(out, 0)))
    with b.into(b.if_(inside).regions[0]):
        b.store(out, [y, x], b.load(a, [y, x]))
    kernel = s.kernel()
    base, target = random(t, 60, 80), random(t, 60, 80)
    for view in (np.s_[:20, :37], np.s_[::-1, ::2], np.s_[3:50:2, 70:10:-3]):
        source = base[view]
        out_ = np.array(target)[view[0], view[1]]
        CPU.launch(CPU.load(lower(kernel, "cpu")), (5, 15, 1), [argument(source), argument(out_)], CPU.default_stream)
        CPU.default_stream.synchronize()
        np.testing.assert_array_equal(out_, source)
    broadcast = np.broadcast_to(base[0], (60, 80))
    out_ = np.zeros((60, 80), t.dtype)
    CPU.launch(CPU.load(lower(kernel, "cpu")), (5, 15, 1), [argument(broadcast), argument(out_)], CPU.default_stream)
    np.testing.assert_array_equal(out_, broadcast)


def test_structs() -> None:
    inner = layout("inner", [("flag", BOOL, 0), ("w", F64, 2)])
    outer = layout("outer", [("id", U8, 0), ("in_", inner, 0), ("k", I16, 3), ("h", F16, 0)])
    s = Sketch()
    a, c = s.array("a", outer, "read"), s.array("c", outer)
    b, i = s.b, s.b.identity("global_idx", 0)
    f = {x.name: x for x in (*outer.fields, *inner.fields)}
    two = b.binary("mod", i, b.const(2, I32))
    three = b.binary("mod", i, b.const(3, I32))
    with b.into(b.if_(b.binary("lt", i, b.dim(c, 0))).regions[0]):
        for path, extra in [((f["id"],), []), ((f["in_"], f["flag"]), []), ((f["in_"], f["w"]), [two]),
                            ((f["k"],), [three]), ((f["h"],), [])]:
            b.store(c, [i, *extra], b.load(a, [i, *extra], field=path), field=path)
    n = 70
    source = np.zeros(n, outer.dtype)
    source["id"], source["h"] = np.arange(n), np.arange(n) / 2
    source["in_"]["flag"], source["in_"]["w"] = np.arange(n) % 3 == 0, RNG.random((n, 2))
    source["k"] = RNG.integers(0, 99, (n, 3))
    got = np.zeros(n, outer.dtype)
    on_cpu(s.kernel(), 2, [source, got])
    rows = np.arange(n)
    for name in ("id", "h"):
        np.testing.assert_array_equal(got[name], source[name])
    np.testing.assert_array_equal(got["in_"]["flag"], source["in_"]["flag"])
    np.testing.assert_array_equal(got["in_"]["w"][rows, rows % 2], source["in_"]["w"][rows, rows % 2])
    np.testing.assert_array_equal(got["k"][rows, rows % 3], source["k"][rows, rows % 3])


SHAPES = [(1, 1, 1), (16, 2, 1), (8, 8, 1), (1, 32, 1), (4, 2, 3), (5, 3, 2), (32, 2, 2)]


@pytest.mark.parametrize("domain,block", [(3 if z > 1 else 2 if y > 1 else 1, (x, y, z)) for x, y, z in SHAPES])
@pytest.mark.parametrize("blocks", [False, True])
def test_identities(domain: int, block: tuple[int, int, int], blocks: bool) -> None:
    s = Sketch(block, domain=domain)
    out = s.array("out", I32)
    b = s.b
    x, y, z = (b.identity("global_idx", a) for a in range(3))
    width = b.binary("mul", b.identity("grid_dim", 0), b.const(block[0], I32))
    height = b.binary("mul", b.identity("grid_dim", 1), b.const(block[1], I32))
    at = b.binary("add", x, b.binary("mul", width, b.binary("add", y, b.binary("mul", height, z))))
    value = b.binary("add", b.binary("mul", x, b.const(3, I32)), b.binary("xor", y, z))
    if blocks:
        for code in ("thread_idx", "block_idx", "block_dim", "grid_dim"):
            for axis in range(3):
                value = b.binary("add", b.binary("mul", value, b.const(31, I32)), b.identity(code, axis))
    b.store(out, [at], value)
    grid = (3, 2 if domain > 1 else 1, 2 if domain > 2 else 1)
    agree(s.kernel(), grid, [np.zeros(int(np.prod(grid) * np.prod(block)), np.int32)])


# ---- shared memory -----------------------------------------------------------------------------------------------
@pytest.mark.parametrize("static", [True, False])
def test_shared_memory_starts_zero(static: bool) -> None:
    """In every block, though the one before left it full."""
    s = Sketch()
    out = s.array("out", I32)
    sh = s.shared("sh", I32, (64,) if static else (0,))
    b, t = s.b, s.b.identity("thread_idx", 0)
    size = b.dim(sh, 0)
    old = b.load(sh, [b.binary("mod", t, size)])
    b.emit("barrier")
    b.store(sh, [b.binary("mod", t, size)], b.const(7, I32))
    b.store(out, [b.identity("global_idx", 0)], b.binary("add", old, size))
    agree(s.kernel(), 9, [np.full(9 * 64, -1, np.int32)], 0 if static else 4 * 48)


# ---- atomics -----------------------------------------------------------------------------------------------------
INT_ATOMICS = "add sub min max and or xor".split()


@pytest.mark.parametrize("t", [I32, U32, I64, U64], ids=str)
@pytest.mark.parametrize("space", ["global", "shared"])
@pytest.mark.parametrize("where", ["one", "few", "own"])
def test_integer_atomics(t: Scalar, space: str, where: str) -> None:
    s = Sketch()
    a = s.array("a", t, "read")
    total = s.array("total", t, "atomic", 2)
    sh = s.shared("sh", t, (len(INT_ATOMICS), 64))
    b, i, tid = s.b, s.b.identity("global_idx", 0), s.b.identity("thread_idx", 0)
    at = {"one": b.const(5, I32), "few": b.binary("mod", i, b.const(3, I32)), "own": tid}[where]
    with b.into(b.if_(b.binary("lt", i, b.dim(a, 0))).regions[0]):
        x = b.load(a, [i])
        for n, fn in enumerate(INT_ATOMICS):
            b.atomic(fn, total if space == "global" else sh, [b.const(n, I32), at], [x])
    if space == "shared":
        b.emit("barrier")
        for n in range(len(INT_ATOMICS)):
            row = b.const(n, I32)
            b.atomic("add", total, [row, tid], [b.load(sh, [row, tid])], order="acq_rel")
    start = RNG.integers(0, 50, (len(INT_ATOMICS), 64)).astype(t.dtype)
    agree(s.kernel(), 4, [random(t, 230), start])


@pytest.mark.parametrize("t", [I32, F32, F64], ids=str)
def test_float_and_exchange_atomics(t: Scalar) -> None:
    """Whole numbers, so that the order of sums does not show; old values are each seen once."""
    s = Sketch()
    a, total, old = s.array("a", t, "read"), s.array("total", t, "atomic"), s.array("old", t)
    b, i = s.b, s.b.identity("global_idx", 0)
    with b.into(b.if_(b.binary("lt", i, b.dim(a, 0))).regions[0]):
        x = b.load(a, [i])
        for n, fn in enumerate(["add", "min", "max"]):
            b.atomic(fn, total, [b.const(n, I32)], [x])
        b.store(old, [i], b.atomic("exchange", total, [b.const(3, I32)], [x]))
    n = 300
    values, result, seen = np.arange(1, n + 1).astype(t.dtype), np.zeros(4, t.dtype), np.zeros(n, t.dtype)
    on_cpu(s.kernel(), -(-n // 64), [values, result, seen])
    assert result[0] == n * (n + 1) // 2 and result[1] == 0 and result[2] == n
    assert sorted([*seen, result[3]]) == [0, *values]


def test_float_extremes() -> None:
    """-0.0 is below 0.0, and a NaN gives way."""
    s = Sketch((1, 1, 1))
    a, total = s.array("a", F32, "read"), s.array("total", F32, "atomic")
    b = s.b
    loop = b.for_(b.const(0, I32), b.dim(a, 0), b.const(1, I32))
    with b.into(loop.regions[0]):
        x = b.load(a, loop.regions[0].args)
        b.atomic("min", total, [b.const(0, I32)], [x])
        b.atomic("max", total, [b.const(1, I32)], [x])
    agree(s.kernel(), 1, [np.array([np.nan, 0.0, -0.0, np.nan], np.float32), np.array([1, -1], np.float32)])
    agree(s.kernel(), 1, [np.array([5.0], np.float32), np.array([np.nan, np.nan], np.float32)])


def test_compare_exchange_and_many_cores() -> None:
    """A lock-free count from every core, and each old value returned once."""
    s = Sketch((256, 1, 1))
    total, tickets = s.array("total", U32, "atomic"), s.array("tickets", U32)
    b, i = s.b, s.b.identity("global_idx", 0)
    done = b.var("done", BOOL)
    b.set(done, b.const(False, BOOL))
    seen = b.var("seen", U32)
    b.set(seen, b.const(0, U32))
    loop = b.while_()
    with b.into(loop.regions[0]):
        b.emit("yield", (b.unary("not", b.get(done)),))
    with b.into(loop.regions[1]):
        expected = b.get(seen)
        old = b.atomic("compare_exchange", total, [b.const(0, I32)],
                       [expected, b.binary("add", expected, b.const(1, U32))], order="acq_rel")
        b.set(done, b.binary("eq", old, expected))
        b.set(seen, old)
    b.store(tickets, [i], b.get(seen))
    n = 256 * 64
    count, out = np.zeros(1, np.uint32), np.zeros(n, np.uint32)
    on_cpu(s.kernel(), 64, [count, out])
    assert count[0] == n
    np.testing.assert_array_equal(np.sort(out), np.arange(n))


# ---- subgroups -----------------------------------------------------------------------------------------------------
REDUCE = [f"reduce_{fn}" for fn in "add mul min max and or xor".split()]


@pytest.mark.parametrize("block", [64, 40, 16, 5])
@pytest.mark.parametrize("t", [I32, U32, I64, F32], ids=str)
def test_subgroups(t: Scalar, block: int) -> None:
    s = Sketch((block, 1, 1))
    a = s.array("a", t, "read")
    b, i = s.b, s.b.identity("global_idx", 0)
    x = b.load(a, [i])
    lane = b.value("subgroup", (), I32, fn="lane")
    results: list[tuple[Value, Scalar]] = [(lane, I32), (b.value("subgroup", (), I32, fn="size"), I32)]
    for fn in REDUCE:
        if t.is_int or fn.removeprefix("reduce_") in ("add", "mul", "min", "max"):
            results.append((b.value("subgroup", (x,), t, fn=fn), t))
    results += [(b.value("subgroup", (x,), t, fn=fn), t) for fn in ("scan_add", "scan_exclusive_add")]
    big = b.binary("gt", x, b.const(3 if t.is_int else 3.0, t))
    results.append((b.value("subgroup", (big,), U32, fn="ballot"), U32))
    results += [(b.value("subgroup", (big,), BOOL, fn=fn), BOOL) for fn in ("any", "all")]
    other = b.binary("mod", b.binary("mul", lane, b.const(5, I32)), b.const(19, I32))
    for fn in ("shuffle", "shuffle_xor", "shuffle_up", "shuffle_down"):
        for by in (b.const(3, I32), other):
            results.append((b.value("subgroup", (x, by), t, fn=fn), t))
            results.append((b.value("subgroup", (big, by), BOOL, fn=fn), BOOL))
    results.append((b.value("subgroup", (x, b.const(2, I32)), t, fn="broadcast"), t))
    outs = [s.array(f"out{n}", rt) for n, (_, rt) in enumerate(results)]
    for out, (v, _) in zip(outs, results):
        b.store(out, [i], v)
    n = 3 * block
    values = RNG.integers(0, 6, n).astype(t.dtype)
    agree(s.kernel(), 3, [values, *(np.zeros(n, rt.dtype) for _, rt in results)])


# ---- faults ----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("blocks", [False, True])
def test_the_first_faulting_thread_is_reported(blocks: bool) -> None:
    s = Sketch()
    a, out = s.array("a", I32, "read"), s.array("out", I32)
    b, i = s.b, s.b.identity("global_idx", 0)
    extra = b.identity("thread_idx", 0) if blocks else i
    x = b.load(a, [b.binary("add", i, b.const(7, I32))])
    b.store(out, [i], b.binary("add", x, b.binary("sub", extra, extra)))
    data, got = np.arange(1, 201, dtype=np.int32), np.full(64 * 2000, -1, np.int32)
    with pytest.raises(DeviceIndexError, match=r"index 200 is out of range for a of length 200") as e:
        on_cpu(s.kernel(), 2000, [data, got])
    assert e.value.thread == (193, 0, 0) and e.value.loc == LOC
    np.testing.assert_array_equal(got[:193], data[7:])
    assert (got[193:] == 0).all()  # a read out of range gives 0, and the threads go on
    CPU.synchronize()  # the fault was raised once


def test_division_and_assertion_faults() -> None:
    s = Sketch((8, 8, 1), domain=2)
    a, out = s.array("a", I32, "read"), s.array("out", I32)
    b, x, y = s.b, s.b.identity("global_idx", 0), s.b.identity("global_idx", 1)
    at = b.binary("add", x, b.binary("mul", y, b.const(16, I32)))
    b.store(out, [at], b.binary("floordiv", b.const(10, I32), b.load(a, [at])))
    data = np.full(256, 3, np.int32)
    data[[50, 200]] = 0
    got = np.full(256, -1, np.int32)
    with pytest.raises(DeviceZeroDivisionError) as e:
        on_cpu(s.kernel(), (2, 2, 1), [data, got])
    assert e.value.thread == (2, 3, 0)
    assert got[50] == 0 and got[51] == 3

    s = Sketch()
    a = s.array("a", I32, "read")
    b, i = s.b, s.b.identity("global_idx", 0)
    b.emit("assert", (b.binary("lt", b.load(a, [i]), b.const(4, I32)),), message="small enough")
    with pytest.raises(DeviceAssertionError, match="small enough") as e:
        on_cpu(s.kernel(), 4, [np.arange(256, dtype=np.int32) // 20])
    assert e.value.thread == (80, 0, 0)


# ---- print -----------------------------------------------------------------------------------------------------------
def test_print(capsys: pytest.CaptureFixture[str]) -> None:
    s = Sketch()
    a = s.array("a", F32, "read")
    b, i = s.b, s.b.identity("global_idx", 0)
    x = b.load(a, [i])
    with b.into(b.if_(b.binary("eq", b.binary("mod", i, b.const(50, I32)), b.const(0, I32))).regions[0]):
        big = b.binary("gt", x, b.const(0.5, F32))
        parts = ("thread ", (0, ""), ": ", (1, ".2f"), " ", (2, ""), " ", (3, ""))
        b.emit("print", (i, x, b.cast(x, F64), big), parts=parts)
        b.emit("print", (b.cast(i, I64), b.cast(x, F16)), parts=((0, "04d"), "/", (1, "")))
    data = np.linspace(0, 1, 256).astype(np.float32)
    on_cpu(s.kernel(), 4, [data])
    lines = capsys.readouterr().out.splitlines()
    want = []
    for n in range(0, 256, 50):
        x = data[n]
        want.append(f"thread {n}: {x:.2f} {np.float64(x)} {x > 0.5}")
        want.append(f"{n:04d}/" + str(np.float16(x)))
    assert lines == want


def test_local_arrays() -> None:
    """One a thread, zero at the start; a run-time index."""
    s = Sketch()
    pair = layout("pair", [("a", I32, 0), ("b", F64, 0)])
    lo, st = s.local("lo", I32, (3, 4)), s.local("st", pair, (4,))
    out, sums = s.array("out", I32), s.array("sums", F64)
    b, i = s.b, s.b.identity("global_idx", 0)
    first, second = (b.binary("mod", i, b.const(k, I32)) for k in (3, 4))
    b.store(lo, [first, second], i)
    b.store(lo, [b.const(1, I32), b.const(1, I32)], b.binary("add", i, b.const(5, I32)))
    b.store(st, [second], i, field=(pair.fields[0],))
    b.store(st, [b.const(0, I32)], b.cast(i, F64), field=(pair.fields[1],))
    total = b.load(lo, [first, second])
    total = b.binary("add", total, b.load(lo, [b.const(1, I32), first]))
    total = b.binary("xor", total, b.load(st, [first], field=(pair.fields[0],)))
    b.store(out, [i], total)
    b.store(sums, [i], b.load(st, [first], field=(pair.fields[1],)))
    agree(s.kernel(), 3, [np.zeros(192, np.int32), np.zeros(192, np.float64)])


# ---- past the cache ----------------------------------------------------------------------------------------------
@pytest.mark.parametrize("shift", [0, 1, 5, 16])
@pytest.mark.parametrize("types", [(F32, F32), (U8, F64), (F32, I16), (U8, U8)], ids=str)
def test_large_outputs(types: tuple[Scalar, Scalar], shift: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Written past the cache where both outputs reach a cache line's start together; exact in any case."""
    monkeypatch.setattr(streaming, "LARGE", 1 << 15)
    s = Sketch((256, 1, 1))
    outs = [s.array(f"out{n}", t) for n, t in enumerate(types)]
    b, i = s.b, s.b.identity("global_idx", 0)
    with b.into(b.if_(b.binary("lt", i, b.dim(outs[0], 0))).regions[0]):
        for out, t in zip(outs, types):
            b.store(out, [i], b.cast(b.binary("mul", i, b.const(3, I32)), t), check="proved")
    n = (1 << 15) + 77 - shift
    arrays = []
    for t in types:
        base = CPU.allocate((n + 100) * t.size).handle.view(t.dtype)
        base[:] = 1
        arrays.append(base)
    on_cpu(s.kernel(), -(-n // 256), [a[shift : shift + n] for a in arrays])
    want = np.arange(n, dtype=np.int32) * 3
    for a, t in zip(arrays, types):
        np.testing.assert_array_equal(a[shift : shift + n], want.astype(t.dtype))
        assert (a[:shift] == 1).all() and (a[shift + n : n + 100] == 1).all()
