"""What the language declares, the check device does: no operation without a meaning, and one meaning each."""

from __future__ import annotations

import itertools
import threading

import numpy as np
import pytest
from edges import column, floats, integers
from running import evaluate, same

from gridwise.devices.check import atomics
from gridwise.devices.check.arithmetic import CODES
from gridwise.devices.check.interpret import Program
from gridwise.ir.ops import TABLE
from gridwise.ir.types import BOOL, F32, I32, U32, Scalar
from gridwise.lang import atomic, memory, subgroup
from gridwise.lang.math import BY_FN
from gridwise.lang.types import i32


def test_every_operation_of_the_table_has_a_meaning() -> None:
    # What passes/tile makes for one machine comes after everything that the check device runs.
    language = [code for code in TABLE if not code.startswith("ptx_")]
    missing = [code for code in language if code not in CODES and not hasattr(Program, f"op_{code}")]
    assert missing == []


@pytest.mark.parametrize("fn", sorted(BY_FN))
def test_every_math_function_runs(fn: str) -> None:
    op = BY_FN[fn]
    takes, gives = op.signature.split("->")
    types = [I32 if letter == "I" else F32 for letter in takes]
    result = BOOL if gives == "B" else I32 if gives == "I" else F32
    numbers = np.array([0.5, -2.0, np.inf, np.nan, 3.0], np.float32)
    columns = [numbers if t == F32 else np.arange(5, dtype=np.int32) for t in types]
    got = evaluate(lambda b, *args: b.value("math", args, result, fn=fn), types, columns, result)
    with np.errstate(all="ignore"):
        assert all(map(same, got, np.asarray(op.reference(*columns)).astype(result.dtype)))


@pytest.mark.parametrize("t", [I32, U32, F32], ids=str)
@pytest.mark.parametrize("name", [n for n in atomic.OPS if n != "compare_exchange"])
def test_atomics_mean_the_same_in_plain_python(name: str, t: Scalar) -> None:
    op = atomic.OPS[name]
    if t.is_float and op.types == "int":
        return
    values = column(integers(t) if t.is_int else floats(t), t)
    for old, value in itertools.product(values, values):
        plain, device = np.array([old]), np.array([old])
        was = op(plain, 0, value)
        with np.errstate(all="ignore"):
            (then,) = atomics.update(device, np.zeros(1, int), op.fn, t, [np.array([value])], True)  # type: ignore[misc]
        assert same(was, then) and same(was, old) and same(plain[0], device[0]), (old, value)


def test_compare_exchange_and_its_refusals() -> None:
    a = np.array([[1, 2], [3, 4]], np.int32)
    assert atomic.compare_exchange(a, (1, 0), 3, 9) == 3 and a[1, 0] == 9
    assert atomic.compare_exchange(a, (1, 0), 3, 7, order="acq_rel", scope="block") == 9 and a[1, 0] == 9
    with pytest.raises(ValueError, match="order is one of"):
        atomic.add(a, (0, 0), 1, order="seq_cst")
    with pytest.raises(ValueError, match="scope is one of"):
        atomic.add(a, (0, 0), 1, scope="grid")


def test_a_subgroup_of_one_in_plain_python() -> None:
    assert subgroup.size() == 1 and subgroup.lane() == 0
    assert subgroup.shuffle_xor(7, 1) == 7 and subgroup.reduce(5, "max") == 5 and subgroup.scan(5) == 5
    assert subgroup.scan(5, "exclusive_add") == 0 and subgroup.ballot(True) == 1
    assert subgroup.any(False) is False and subgroup.all(True) is True
    with pytest.raises(ValueError, match=r"subgroup\.reduce takes one of 'add', 'mul'"):
        subgroup.reduce(5, "sum")


def test_shared_memory_and_barrier_in_plain_python() -> None:
    """Threads of a block see one array for each declaration, and none passes the barrier before all arrive."""
    n = 8
    block = memory.Block(threading.Barrier(n).wait)
    seen: list[tuple[int, int]] = []

    def thread(t: int) -> None:
        with memory.running_in(block):
            a, b, mine = memory.shared((n,), i32), memory.shared(n, i32), memory.local((2,), i32)
            a[t], b[t] = t, 10 * t
            mine[0] += t
            memory.barrier()
            seen.append((int(a.sum()) + int(mine[0]) - t, int(b.sum())))

    threads = [threading.Thread(target=thread, args=(t,)) for t in range(n)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert seen == [(28, 280)] * n and len(block.arrays) == 2


def test_outside_a_kernel_there_is_no_block() -> None:
    for what in (memory.barrier, lambda: memory.shared((4,), i32)):
        with pytest.raises(RuntimeError, match="only inside a kernel"):
            what()
