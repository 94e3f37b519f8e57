"""The standard kernels are proved; each without its barrier or guard is refuted with two threads that meet."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest
import standard
from build import K
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gridwise.analysis.disjoint import check_disjoint
from gridwise.analysis.loops import summarise
from gridwise.analysis.replay import search
from gridwise.ir.types import F32
from gridwise.lang.errors import RaceError, UnprovedError


@pytest.mark.parametrize("make", standard.STANDARD, ids=lambda f: f.__name__)
def test_standard_kernels_are_proved(make):
    proofs = check_disjoint(make())
    assert max(p.ms for p in proofs) < 2000


@pytest.mark.parametrize("make, args", standard.BROKEN, ids=lambda x: getattr(x, "__name__", str(x)))
def test_broken_kernels_are_refuted(make, args):
    with pytest.raises(RaceError) as e:
        check_disjoint(make(*args))
    assert not isinstance(e.value, UnprovedError)
    assert re.search(r"thread .* thread ", e.value.message), e.value.message
    assert "[" in e.value.message  # the element
    assert len(str(e.value).splitlines()) <= 6


def test_vecadd_needs_no_solver_and_little_time():
    code = """
import sys, time; sys.path.insert(0, "tests/analysis")
import standard
from gridwise.analysis.disjoint import check_disjoint
k = standard.vecadd(); check_disjoint(k)
def once():
    start = time.perf_counter(); check_disjoint(k); return (time.perf_counter() - start) * 1e3
print("z3" in sys.modules, min(once() for _ in range(30)))
"""
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert out[0] == "False"
    assert float(out[1]) < 1


def test_both_lines_are_named():
    with pytest.raises(RaceError, match=r"\(line 6\) while .*\(line 5\)"):
        check_disjoint(standard.reduction(False))


def test_values_of_arguments_are_told():
    with pytest.raises(RaceError, match="distance = "):
        check_disjoint(standard.bitonic_step(False))


def test_scatter_through_an_index_array_is_refuted_by_its_contents():
    k = K()
    from gridwise.ir.types import I32

    perm, c = k.array("perm", elem=I32), k.array("c", "disjoint")
    i = k.gid()
    with k.if_(i < perm.dim()):
        c[perm[i]] = 1
    with pytest.raises(RaceError, match=r"both write c\["):
        check_disjoint(k.done())


def test_a_race_is_found_past_floats_that_are_kept_in_names():
    k = K()
    scale, c = k.scalar("scale", F32), k.array("c", "disjoint")
    best = k.var("best", scale, F32)
    i = k.gid()
    with k.if_(i < c.dim()):
        c[i // 2] = best.get + 1.0
    with pytest.raises(RaceError, match=r"both write c\["):
        check_disjoint(k.done())


def test_unsafe_access_is_left_to_its_author():
    k = K()
    c = k.array("c", "disjoint")
    k.b.store(c.value, [k.lift(0, c.value.type.index).value], k.lift(1.0, c.value.type.elem).value)
    k.region.ops[-1].attrs["unsafe"] = "all write the same"
    assert check_disjoint(k.done()) == []


def test_members_of_a_struct_do_not_meet_but_the_same_member_does():
    from gridwise.ir.types import F32, layout

    point = layout("Point", [("x", F32, 0), ("y", F32, 0)])
    for other, fine in (("y", True), ("x", False)):
        k = K()
        p = k.array("p", "disjoint", elem=point)
        i = k.gid()
        field = {f.name: f for f in point.fields}
        one = k.lift(1.0, F32)
        with k.if_(i < p.dim() - 1):
            k.b.store(p.value, [i.value], one.value, (field["x"],))
            k.b.store(p.value, [(i + 1).value], one.value, (field[other],))
        if fine:
            check_disjoint(k.done())
        else:
            with pytest.raises(RaceError, match=r"p\[\d+\]\.x"):
                check_disjoint(k.done())


def test_block_scope_atomics_meet_between_blocks():
    for scope, fine in (("device", True), ("block", False)):
        k = K()
        from gridwise.ir.types import U32

        c = k.array("c", "atomic", elem=U32)
        k.b.atomic("add", c.value, [k.lift(0, c.value.type.index).value], [k.lift(1, U32).value], scope=scope)
        if fine:
            check_disjoint(k.done())
        else:
            with pytest.raises(RaceError):
                check_disjoint(k.done())


def test_conditional_barrier_in_a_loop_does_not_separate_iterations():
    def kernel(always: bool):
        k = K()
        s, n = k.shared("s", (256,)), k.scalar("n")
        t = k.tid()
        with k.for_(0, n) as j:
            s[t] = 1
            if always:
                k.barrier()
            else:
                with k.if_((j % 2).eq(0)):
                    k.barrier()
            x = s[(t + 1) % 256]
            k.barrier() if always else None
            with k.if_(x > 0):
                pass
        return k.done()

    check_disjoint(kernel(True))
    with pytest.raises(RaceError):
        check_disjoint(kernel(False))


def test_inner_loop_that_may_not_run_does_not_align_the_outer_one():
    """The barrier is in an inner loop of n iterations: with n = 0 the outer iterations run together."""
    k = K()
    s, n = k.shared("s", (256,)), k.scalar("n")
    t = k.tid()
    with k.for_(0, 4) as j:
        s[(t + j) % 256] = 1
        with k.for_(0, n):
            k.barrier()
    with pytest.raises(RaceError):
        check_disjoint(k.done())


# -- random kernels: what is proved never shows a race when every thread of a few blocks is run ---------------------

_LEAVES = st.sampled_from(["t", "b", "g", "j", "n", "1", "2", "3", "5", "8", "16", "17", "0", "15", "7"])


# Shapes that are often disjoint, so that many of the random kernels are proved.
_SHAPES = [
    "t", "g", ("*", "t", "3"), ("+", ("*", "t", "2"), "1"), ("*", "t", "2"), ("^", "t", "j"), ("^", "t", "1"),
    ("^", "g", "j"), ("+", "t", "j"), ("+", "g", "j"), ("%", ("+", "t", "j"), "16"), ("-", "15", "t"), ("-", "n", "g"),
    ("+", ("*", "j", "16"), "t"), ("+", ("*", "t", "4"), "j"), ("-", "t", "j"), ("+", ("*", "b", "16"), "t"),
    ("+", ("*", "b", "16"), ("^", "t", "3")), ("&", "t", "7"), ("//", "t", "2"), ("+", ("*", "t", "j"), "1"),
    ("|", ("<<", ("&", "t", "3"), "2"), (">>", "t", "2")), ("+", "g", ("*", "j", "n")), ("*", "g", "n"), "b", "0", "j",
]
_GUARDS = ["0", "t", ("-", "j", ("+", "t", "1")), ("-", ("^", "t", "j"), ("+", "t", "1")), ("-", "0", ("%", "t", "2")),
           ("-", "n", ("+", "g", "1")), ("-", "0", "t"), ("-", "t", "j"), ("-", "0", ("&", "t", "j")), ("-", "7", "t")]


@st.composite
def _expr(draw, depth=3, shapes=_SHAPES):
    if depth == 3 and draw(st.integers(0, 4)) > 0:
        return draw(st.sampled_from(shapes))
    if depth == 0 or draw(st.integers(0, 3)) == 0:
        return draw(_LEAVES)
    op = draw(st.sampled_from("+ - * ^ & | // % << >>".split()))
    b = draw(_LEAVES if op in ("*",) else st.sampled_from(["1", "2", "3", "4", "8"])) if op in (
        "*", "//", "%", "<<", ">>") else draw(_expr(depth - 1))
    return (op, draw(_expr(depth - 1)), b)


def _value(k: K, tree, names):
    if isinstance(tree, str):
        return names[tree] if tree in names else k.lift(int(tree), names["g"].value.type)
    op, a, b = tree
    x, y = _value(k, a, names), _value(k, b, names)
    code = {"+": "add", "-": "sub", "*": "mul", "^": "xor", "&": "and", "|": "or", "//": "floordiv", "%": "mod",
            "<<": "shl", ">>": "shr"}[op]
    return x._two(code, y)


@settings(max_examples=60, deadline=None, derandomize=True,
          suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much])
@given(_expr(), _expr(), _expr(3, _GUARDS), st.booleans(), st.integers(0, 3), st.integers(0, 3))
def test_what_is_proved_shows_no_race(write, read, guard, shared, barrier, loop):
    k = K(block=(16, 1, 1))
    c, n = k.array("c", "disjoint"), k.scalar("n")
    where = k.shared("s", (64,)) if shared else c
    names = {"t": k.tid(), "b": k.bid(), "g": k.gid(), "n": n, "j": k.lift(0, n.value.type)}

    def body():
        with k.if_(_value(k, guard, names) >= 0):
            where[_value(k, write, names)] = 1
        if barrier & 1:
            k.barrier()
        with k.if_(where[_value(k, read, names)] > 0):
            pass
        if barrier & 2:
            k.barrier()

    if loop == 0:
        body()
    elif loop == 1:
        with k.for_(0, 3) as j:
            names["j"] = j
            body()
    else:
        v = k.var("v", 8 if loop == 2 else 1)
        with k.while_((lambda: v.get > 0) if loop == 2 else (lambda: v.get < 9)):
            names["j"] = v.get
            body()
            v.set(v.get // 2 if loop == 2 else v.get * 2)
    kernel = k.done()
    try:
        check_disjoint(kernel, limit_ms=300)
    except RaceError:
        return
    race = search(summarise(kernel), None, where.value, 300_000)
    assert race is None, race


# -- random structures of loops, branches and barriers around simple accesses ----------------------------------------

_PLACES = st.sampled_from(["t", ("-", "15", "t"), ("^", "t", "1"), ("%", ("+", "t", "1"), "16"), ("^", "t", "j"),
                           ("+", "t", ("*", "16", "j")), "0", ("&", "t", "7"), ("%", ("+", "t", "j"), "16")])
_ACCESS = st.tuples(st.sampled_from(["write", "read"]), _PLACES)
_BLOCKS = st.recursive(
    st.one_of(_ACCESS, st.just(("barrier",)), st.just(("barrier",))),
    lambda inner: st.one_of(
        st.tuples(st.sampled_from(["for", "forn", "halve", "if", "ifj", "break", "one"]),
                  st.lists(inner, min_size=1, max_size=4))),
    max_leaves=7)


@settings(max_examples=30, deadline=None, derandomize=True,
          suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much])
@given(st.lists(_BLOCKS, min_size=2, max_size=5))
def test_what_is_proved_of_random_barriers_shows_no_race(program):
    kernel, s = _structured(program)
    try:
        check_disjoint(kernel, limit_ms=300)
    except RaceError:
        return
    race = search(summarise(kernel), None, s.value, 150_000)
    assert race is None, race


def _structured(program):
    k = K(block=(16, 1, 1))
    s, n = k.shared("s", (64,)), k.scalar("n")
    names = {"t": k.tid(), "j": k.lift(0, n.value.type), "g": k.gid()}

    def emit(nodes, names):
        for kind, *rest in nodes:
            if kind == "barrier":
                k.barrier()
            elif kind == "write":
                s[_value(k, rest[0], names)] = 1
            elif kind == "read":
                with k.if_(s[_value(k, rest[0], names)] > 0):
                    pass
            elif kind == "if":
                with k.if_((n % 2).eq(0)):
                    emit(rest[0], names)
            elif kind == "ifj":
                with k.if_((names["j"] % 2).eq(0)):
                    emit(rest[0], names)
            elif kind == "one":  # without barriers, which not all threads would reach
                with k.if_(names["t"].eq(0)):
                    emit([x for x in rest[0] if x[0] in ("write", "read")], names)
            elif kind in ("for", "forn", "break"):
                with k.for_(0, n if kind == "forn" else 3) as j:
                    if kind == "break":
                        with k.if_(j.eq(n)):
                            k.do("break")
                    emit(rest[0], {**names, "j": j})
            else:
                v = k.var("v", 4)
                with k.while_(lambda v=v: v.get > 0):
                    emit(rest[0], {**names, "j": v.get})
                    v.set(v.get // 2)

    emit(program, names)
    return k.done(), s
