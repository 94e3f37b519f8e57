"""Atomics and subgroup operations, against a plain loop over the threads."""

from __future__ import annotations

import math
from collections.abc import Callable

import exact
import numpy as np
import pytest
from edges import column, floats, integers
from running import Sketch, launch, same

from gridwise.devices.check import CheckDevice
from gridwise.ir import Kernel
from gridwise.ir.types import BOOL, F32, F64, I32, I64, U32, U64, ArrayType, Scalar

# -- atomics -------------------------------------------------------------------------------------------------


def updates(fn: str, t: Scalar, returns: bool = True) -> Kernel:
    """old[i] = atomic.fn(a, at[i], value[i]) for every thread."""
    s = Sketch((32, 1, 1))
    a, at, value = s.array("a", t, "atomic"), s.array("at", I32, "read"), s.array("value", t, "read")
    old = s.array("old", t)
    b = s.b
    i = b.identity("global_idx", 0)
    v = b.load(value, [i])
    values = [b.load(value, [b.binary("xor", i, b.const(1, I32))]), v] if fn == "compare_exchange" else [v]
    result = b.atomic(fn, a, [b.load(at, [i])], values)
    if returns:
        b.store(old, [i], result)
    return s.kernel()


def step(fn: str, t: Scalar, old: float, value: float) -> float:
    if t.is_int:
        return value if fn == "exchange" else exact.integer(fn, int(old), int(value), t)
    if fn in ("add", "sub"):
        return exact.add(old, value if fn == "add" else -value, t)
    if fn == "exchange":
        return value
    if math.isnan(value) or math.isnan(old):
        return old if math.isnan(value) else value
    return exact.minimum(old, value) if fn == "min" else exact.maximum(old, value)


INT_FNS = "add sub min max and or xor exchange".split()
FLOAT_FNS = "add sub min max exchange".split()


@pytest.mark.parametrize("places", [1, 3, 64, 1000])
@pytest.mark.parametrize(
    ("fn", "t"),
    [(f, t) for t in (I32, U32, I64, U64) for f in INT_FNS] + [(f, t) for t in (F32, F64) for f in FLOAT_FNS],
)
def test_atomics_are_a_sequence(fn: str, t: Scalar, places: int) -> None:
    """Without shuffling, the sequence is that of the threads; old values and results match exactly."""
    n = 256
    random = np.random.default_rng(places)
    edge = integers(t) if t.is_int else floats(t)
    values = [edge[k] for k in random.integers(len(edge), size=n)]
    start = [edge[k] for k in random.integers(len(edge), size=places)]
    at = random.integers(places, size=n)
    memory, want = list(start), []
    for where, value in zip(at.tolist(), values):
        want.append(memory[where])
        memory[where] = step(fn, t, memory[where], value)
    device = CheckDevice(sanitize=False)
    given = [device.array(column(start, t)), device.array(at.astype(np.int32)), device.array(column(values, t))]
    old = device.zeros(n, t)
    launch(device, updates(fn, t), n // 32, [*given, old])
    assert all(map(same, old.numpy(), want)), fn
    assert all(map(same, given[0].numpy(), memory)), fn
    again = device.array(column(start, t))
    launch(device, updates(fn, t, returns=False), n // 32, [again, *given[1:], old])
    assert all(map(same, again.numpy(), memory)), fn


@pytest.mark.parametrize("places", [1, 8])
def test_compare_exchange(places: int) -> None:
    n = 128
    random = np.random.default_rng(places)
    at, values = random.integers(places, size=n), random.integers(3, size=n)
    memory, want = [0] * places, []
    for i, where in enumerate(at.tolist()):
        want.append(memory[where])
        if memory[where] == values[i ^ 1]:
            memory[where] = int(values[i])
    device = CheckDevice(sanitize=False)
    a, old = device.zeros(places, I32), device.zeros(n, I32)
    given = [device.array(at.astype(np.int32)), device.array(values.astype(np.int32))]
    launch(device, updates("compare_exchange", I32), n // 32, [a, *given, old])
    assert old.numpy().tolist() == want and a.numpy().tolist() == memory


def test_shuffled_atomics_are_some_sequence() -> None:
    """A counter gives every thread its own number, in an order that the seed draws."""
    orders = []
    for seed in (1, 2):
        device = CheckDevice(seed=seed)
        a, old = device.zeros(1, I32), device.zeros(256, I32)
        given = [device.zeros(256, I32), device.full(256, 1, I32)]
        launch(device, updates("add", I32), 8, [a, *given, old])
        orders.append(old.numpy().tolist())
        assert sorted(orders[-1]) == list(range(256)) and a.numpy().tolist() == [256]
    assert orders[0] != orders[1] != list(range(256))


def test_atomics_on_shared_memory() -> None:
    s = Sketch((64, 1, 1))
    out = s.array("out", I32)
    b = s.b
    bins = b.array("bins", ArrayType(I32, 1, "shared", "disjoint", shape=(4,)))
    t, g = b.identity("thread_idx", 0), b.identity("global_idx", 0)
    b.atomic("add", bins, [b.binary("and", t, b.const(3, I32))], [g], scope="block")
    b.emit("barrier")
    with b.into(b.if_(b.binary("lt", t, b.const(4, I32))).regions[0]):
        at = b.binary("add", b.binary("mul", b.identity("block_idx", 0), b.const(4, I32)), t)
        b.store(out, [at], b.load(bins, [t]))
    device = CheckDevice()
    target = device.zeros(12, I32)
    launch(device, s.kernel(), 3, [target])
    want = [sum(64 * block + t for t in range(64) if t % 4 == k) for block in range(3) for k in range(4)]
    assert target.numpy().tolist() == want


# -- subgroups -----------------------------------------------------------------------------------------------


def grouped(fn: str, t: Scalar, result: Scalar, operand: bool, block: int) -> Kernel:
    s = Sketch((block, 1, 1))
    a, lanes, out = s.array("a", t, "read"), s.array("lanes", I32, "read"), s.array("out", result)
    b = s.b
    i = b.identity("global_idx", 0)
    operands = [] if fn in ("size", "lane") else [b.load(a, [i]), *([b.load(lanes, [i])] if operand else [])]
    b.store(out, [i], b.value("subgroup", operands, result, fn=fn))
    return s.kernel()


def reduce_of(f: Callable) -> Callable:
    def expected(values: list, lane: int, _: int) -> object:
        total = values[0]
        for v in values[1:]:
            total = f(total, v)
        return total

    return expected


def moved(source: Callable[[int, int], int]) -> Callable:
    def expected(values: list, lane: int, operand: int) -> object:
        at = source(lane, operand)
        return values[at] if 0 <= at < len(values) else values[lane]

    return expected


W = I32.wrap
CASES = {
    "shuffle": (I32, I32, moved(lambda lane, k: k)),
    "broadcast": (I32, I32, moved(lambda lane, k: k)),
    "shuffle_xor": (I32, I32, moved(lambda lane, k: lane ^ k)),
    "shuffle_up": (I32, I32, moved(lambda lane, k: lane - k)),
    "shuffle_down": (I32, I32, moved(lambda lane, k: lane + k)),
    "ballot": (BOOL, U32, lambda values, lane, _: sum(1 << n for n, v in enumerate(values[:32]) if v)),
    "any": (BOOL, BOOL, lambda values, lane, _: any(values)),
    "all": (BOOL, BOOL, lambda values, lane, _: all(values)),
    "reduce_add": (I32, I32, reduce_of(lambda a, b: W(a + b))),
    "reduce_mul": (I32, I32, reduce_of(lambda a, b: W(a * b))),
    "reduce_min": (I32, I32, reduce_of(min)),
    "reduce_max": (I32, I32, reduce_of(max)),
    "reduce_and": (I32, I32, reduce_of(lambda a, b: a & b)),
    "reduce_or": (I32, I32, reduce_of(lambda a, b: a | b)),
    "reduce_xor": (I32, I32, reduce_of(lambda a, b: a ^ b)),
    "scan_add": (I32, I32, lambda values, lane, _: W(sum(values[: lane + 1]))),
    "scan_exclusive_add": (I32, I32, lambda values, lane, _: W(sum(values[:lane]))),
}


@pytest.mark.parametrize("size", [4, 32, 64])
@pytest.mark.parametrize("fn", list(CASES))
def test_subgroup_operation(fn: str, size: int) -> None:
    """Blocks of 48 threads end in a shorter subgroup of 32 (and are one short subgroup of 64)."""
    t, result, expected = CASES[fn]
    block, blocks = 48, 3
    random = np.random.default_rng(size)
    a = random.integers(0, 2, block * blocks) if t == BOOL else random.integers(-(2**31), 2**31, block * blocks)
    operand = random.integers(-3, size + 3, block * blocks)
    if fn == "broadcast":
        operand[:] = 2
    device = CheckDevice(subgroup_size=size)
    given = [device.array(a.astype(t.dtype)), device.array(operand.astype(np.int32))]
    out = device.zeros(block * blocks, result)
    launch(device, grouped(fn, t, result, fn.startswith(("shuffle", "broad")), block), blocks, [*given, out])
    values, got = a.astype(t.dtype).tolist(), out.numpy().tolist()
    for i in range(block * blocks):
        first = i // block * block + i % block // size * size
        group = values[first : min(first + size, (i // block + 1) * block)]
        assert got[i] == expected(group, i - first, int(operand[i])), i


def test_size_and_lane() -> None:
    for size in (8, 32):
        device = CheckDevice(subgroup_size=size)
        dummy = [device.zeros(48, I32), device.zeros(48, I32)]
        for fn, want in (("size", [size] * 48), ("lane", [t % size for t in range(48)])):
            out = device.zeros(48, I32)
            launch(device, grouped(fn, I32, I32, False, 48), 1, [*dummy, out])
            assert out.numpy().tolist() == want


def test_subgroup_sizes_can_be_drawn() -> None:
    device = CheckDevice(subgroup_size=None, seed=3)
    seen = set()
    for _ in range(30):
        out = device.zeros(64, I32)
        launch(device, grouped("size", I32, I32, False, 64), 1, [device.zeros(64, I32), device.zeros(64, I32), out])
        seen.add(int(out.numpy()[0]))
    assert seen == set(device.limits.subgroup_sizes)
    with pytest.raises(ValueError, match="subgroup_size is one of"):
        CheckDevice(subgroup_size=7)
