"""The verdicts of the WebGPU specification's uniformity analysis, on structured IR."""

from __future__ import annotations

import pytest
from build import K

from gridwise.analysis.uniformity import check_uniformity, uniformity
from gridwise.ir.types import F32, I32
from gridwise.lang.errors import DivergenceError


def _barrier_if(condition) -> K:
    k = K()
    with k.if_(condition(k)):
        k.barrier()
    return k


UNIFORM = {
    "block index": lambda k: k.bid().eq(0),
    "grid size": lambda k: k.gdim() > 1,
    "parameter": lambda k: k.scalar("n") > 0,
    "extent": lambda k: k.array("a").dim() > 4,
    "read-only load at a uniform index": lambda k: k.array("a")[k.bid()] > 0,
    "name assigned under uniform control": lambda k: _assigned(k, k.bid().eq(1)),
}
DIVERGENT = {
    "thread index": lambda k: k.tid() < 4,
    "global index": lambda k: k.gid() < 4,
    "read-only load at the thread's index": lambda k: k.array("a")[k.tid()] > 0,
    "load from an array that is written": lambda k: k.array("c", "disjoint")[0] > 0,
    "load from shared memory": lambda k: k.shared("s", (4,))[0] > 0,
    "result of an atomic": lambda k: k.array("n", "atomic", elem=I32).add(0, 1) > 0,
    "name assigned under divergent control": lambda k: _assigned(k, k.tid() < 4),
}


def _assigned(k: K, condition):
    v = k.var("v", 0)
    with k.if_(condition):
        v.set(1)
    return v.get > 0


@pytest.mark.parametrize("name", UNIFORM)
def test_uniform(name):
    check_uniformity(_barrier_if(UNIFORM[name]).done())


@pytest.mark.parametrize("name", DIVERGENT)
def test_divergent(name):
    with pytest.raises(DivergenceError, match=r"barrier\(\) is reached only by some threads"):
        check_uniformity(_barrier_if(DIVERGENT[name]).done())


@pytest.mark.parametrize("jump", ["return", "break", "continue"])
@pytest.mark.parametrize("divergent", [False, True])
def test_jumps_poison_what_follows(jump, divergent):
    k = K()
    with k.for_(0, 4):
        with k.if_(k.tid() < 4 if divergent else k.bid() < 4):
            k.do(jump)
        k.barrier()
    if divergent:
        with pytest.raises(DivergenceError):
            check_uniformity(k.done())
    else:
        check_uniformity(k.done())


@pytest.mark.parametrize("jump", ["break", "continue"])
def test_threads_meet_again_behind_the_loop(jump):
    k = K()
    with k.for_(0, 4), k.if_(k.tid() < 4):
        k.do(jump)
    k.barrier()
    check_uniformity(k.done())


def test_return_in_a_loop_poisons_the_rest_of_the_kernel():
    k = K()
    with k.for_(0, 4), k.if_(k.tid() < 4):
        k.do("return")
    k.barrier()
    with pytest.raises(DivergenceError):
        check_uniformity(k.done())


def test_early_return_names_the_value_and_its_origin():
    k = K()
    n = k.scalar("n")
    with k.if_(k.gid() >= n):
        k.do("return")
    k.barrier()
    with pytest.raises(DivergenceError, match="comes from the thread's index"):
        check_uniformity(k.done())


def test_loop_with_divergent_bounds():
    for start, fine in ((lambda k: k.bid(), True), (lambda k: k.tid(), False)):
        k = K()
        with k.for_(start(k), 100):
            k.barrier()
        if fine:
            check_uniformity(k.done())
        else:
            with pytest.raises(DivergenceError):
                check_uniformity(k.done())


def test_a_name_that_becomes_divergent_in_a_later_iteration():
    k = K()
    v = k.var("v", 0)
    with k.for_(0, 4):
        with k.if_(v.get > 0):
            k.barrier()
        v.set(k.tid())
    with pytest.raises(DivergenceError):
        check_uniformity(k.done())


def test_a_name_is_uniform_again_after_a_uniform_assignment():
    k = K()
    v = k.var("v", 0)
    v.set(k.tid())
    v.set(3)
    with k.if_(v.get > 0):
        k.barrier()
    check_uniformity(k.done())


def test_leave_of_an_inlined_function_reconverges_behind_it():
    for inside in (True, False):
        k = K()
        scope = k.b.scope(7)
        with k.b.into(scope.regions[0]):
            with k.if_(k.tid() < 4):
                k.b.emit("leave", id=7)
            if inside:
                k.barrier()
        k.barrier()
        if inside:
            with pytest.raises(DivergenceError):
                check_uniformity(k.done())
        else:
            check_uniformity(k.done())


def test_subgroup_operations_are_held_to_the_same_rule():
    k = K()
    x = k.lift(1.0, F32)
    with k.if_(k.tid() < 4):
        k.b.value("subgroup", (x.value,), F32, fn="reduce_add")
    with pytest.raises(DivergenceError, match=r"subgroup\.reduce_add"):
        check_uniformity(k.done())


def test_orelse_after_a_divergent_break():
    for divergent in (True, False):
        k = K()
        op = k.b.for_(*(k.lift(x, I32).value for x in (0, 4, 1)))
        with k.b.into(op.regions[0]), k.if_(k.tid() < 4 if divergent else k.bid() < 4):
            k.do("break")
        with k.b.into(op.regions[1]):
            k.barrier()
        if divergent:
            with pytest.raises(DivergenceError):
                check_uniformity(k.done())
        else:
            check_uniformity(k.done())


def test_queries():
    k = K()
    u, d = k.bid() + 1, k.tid() + 1
    with k.if_(d > 3):
        e = k.bid() * 2
    facts = uniformity(k.done())
    assert facts.is_uniform(u.value) and not facts.is_uniform(d.value)
    assert facts.is_uniform(e.value) and not facts.uniform_control(e.value.op)
