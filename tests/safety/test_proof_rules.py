"""Every rule is needed: without it, a faulty program slips through, or a safe one can no longer be proved."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from catalogue import PROGRAMS, load
from harness import judge

from gridwise.analysis import affine, bounds, disjoint, loops, replay, solver, summaries, uniformity
from gridwise.analysis.disjoint import ALL_RULES
from gridwise.lang.errors import UnprovedError
from gridwise.lang.records import replace

list(load())
Patch = pytest.MonkeyPatch


def only_pairs(keep: Callable[[Any], bool]) -> Callable[[Patch], None]:
    """Forget the questions for which ``keep`` is false."""

    def patch(m: Patch) -> None:
        ask = disjoint.pairs

        def pairs(summary: Any) -> Iterator[Any]:
            return (p for p in ask(summary) if keep(p))

        m.setattr(disjoint, "pairs", pairs)

    return patch


def no_wrap(m: Patch) -> None:
    """Integers without end."""
    m.setattr(solver._Integers, "wrapped", lambda self, t, value, which: value)
    m.setattr(solver, "_plan", lambda codes, rules, limit, stage: [("lemma", 1000), ("integers", 1000)])


def narrow_casts_keep_their_value(m: Patch) -> None:
    make = summaries.Terms.make
    m.setattr(summaries.Terms, "make", lambda self, code, type, *args, data=None: args[0] if code == "cast" and args[
        0].type.is_int and type.is_int else make(self, code, type, *args, data=data))


def one_iteration_for_all(m: Patch) -> None:
    """Take it that all threads of a block are in the same iteration of a loop without barriers."""
    generic = loops.Loops.generic

    def shared(self: Any, op: Any, state: Any, names: Any, mark: int, scope: int) -> Any:
        return generic(self, op, state, names, mark, summaries.BLOCK)

    m.setattr(loops.Loops, "generic", shared)


def loops_always_aligned(m: Patch) -> None:
    m.setattr(loops.Loops, "crosses", lambda self, *args: True)


def loops_forget_what_they_change(m: Patch) -> None:
    """Run a loop's body once, with the values from before it."""

    def generic(self: Any, op: Any, state: Any, names: Any, mark: int, scope: int) -> Any:
        counter = self.terms.const(0, loops.I64)
        return summaries.State(dict(state.env), state.path, state.cur), (), counter

    m.setattr(loops.Loops, "generic", generic)


def branches_forgotten(m: Patch) -> None:
    """After an if, take the values of its first branch."""
    m.setattr(summaries.Executor, "merge_two", lambda self, a, b, base, scope: replace(
        a, path=a.path[:base], cur={**a.cur, **b.cur}))


def no_uniformity(m: Patch) -> None:
    import harness

    m.setattr(harness, "check_uniformity", uniformity.uniformity)


def jumps_do_not_poison(m: Patch) -> None:
    m.setattr(uniformity._Analysis, "jumps_out", lambda self, op: False)


def memory_is_uniform(m: Patch) -> None:
    expression = uniformity._Analysis.expression

    def skip(self: Any, op: Any, env: Any, control: Any) -> None:
        if op.code not in ("load", "atomic"):
            expression(self, op, env, control)

    m.setattr(uniformity._Analysis, "expression", skip)


def assigned_control_ignored(m: Patch) -> None:
    operate = uniformity._Analysis.op

    def op(self: Any, o: Any, env: Any, control: Any) -> Any:
        return (operate(self, o, env, None)[0], control) if o.code == "set" else operate(self, o, env, control)

    m.setattr(uniformity._Analysis, "op", op)


def everything_in_range(m: Patch) -> None:
    m.setattr(bounds._Bounds, "settle", lambda self, access: ("proved", ""))


def nothing_divides_by_zero(m: Patch) -> None:
    m.setattr(bounds._Bounds, "divisor", lambda self, term, path: True)


def radix_without_ranges(m: Patch) -> None:
    """Believe that a sum of multiples is 0 only if every part is, however far the parts reach."""
    radix = affine._radix

    def lax(pair: Any, fa: Any, fb: Any, x: Any, y: Any, same: set[Any]) -> bool:
        same.update(affine.ring(x)[0])
        return radix(pair, fa, fb, x, y, same)

    m.setattr(affine, "_radix", lax)


# What must not be left out -> how to leave it out, and a faulty program that is accepted then.
NEEDED: dict[str, tuple[Callable[[Patch], None], str]] = {
    "two threads of one block": (only_pairs(lambda p: p.where != "block"), "reverse_block"),
    "threads of different blocks": (only_pairs(lambda p: p.where != "blocks"), "grid_barrier"),
    "reads as well as writes": (only_pairs(lambda p: "read" not in (p.a.kind, p.b.kind)), "broadcast"),
    "plain accesses against atomics": (only_pairs(lambda p: "atomic" not in (p.a.kind, p.b.kind)), "mixed"),
    "an access against itself": (only_pairs(lambda p: p.a is not p.b), "constant_index"),
    "the next iteration": (only_pairs(lambda p: not p.a.copy and not p.b.copy), "product_before_next"),
    "threads in different iterations": (one_iteration_for_all, "tree"),
    "iterations that run together": (loops_always_aligned, "every_fourth"),
    "what a loop changes": (loops_forget_what_they_change, "interleaved"),
    "both branches": (branches_forgotten, "folded"),
    "wrap-around": (no_wrap, "wraps_in_a_matrix"),
    "narrow integers": (narrow_casts_keep_their_value, "narrowed"),
    "how far a sum reaches": (radix_without_ranges, "small_pitch"),
    "uniform control": (no_uniformity, "loop_bound"),
    "jumps poison what follows": (jumps_do_not_poison, "return_in_a_loop"),
    "memory differs between threads": (memory_is_uniform, "last_one"),
    "names assigned under divergent control": (assigned_control_ignored, "assigned_condition"),
    "indices": (everything_in_range, "gather"),
    "divisors": (nothing_divides_by_zero, "divided"),
}


@pytest.mark.parametrize("rule", NEEDED)
def test_without_it_a_fault_slips_through(rule: str, monkeypatch: Patch) -> None:
    leave_out, name = NEEDED[rule]
    program = PROGRAMS[name]
    stopped = judge(program, bad=True)
    assert stopped.error is not None or stopped.unsettled
    leave_out(monkeypatch)
    monkeypatch.setattr(replay, "search", lambda *args: None)  # a run would still find it: the proof is meant here
    slipped = judge(program, bad=True)
    assert slipped.error is None, slipped.error
    if program.fault == "fault":
        assert len(slipped.unsettled) < len(stopped.unsettled)


# Rules of proof that are switched off together -> a safe program that needs them. The solver can do what the cheap
# rules do, only slower, so without them it is off, too.
PROVES = {
    "radix": ({"radix", "bits", "integers", "lemma"}, "transpose_pitch"),
    "order": ({"order", "bits", "integers", "lemma"}, "tree"),
    "bits": ({"bits"}, "butterfly"),
    "integers": ({"integers", "lemma"}, "stride_of_the_grid"),
    "lemma": ({"lemma"}, "wraps_by_factor"),
}


@pytest.mark.parametrize("rule", sorted(ALL_RULES))
def test_without_it_a_safe_program_is_refused(rule: str, monkeypatch: Patch) -> None:
    off, name = PROVES[rule]
    monkeypatch.setattr(replay, "search", lambda *args: None)
    assert judge(PROGRAMS[name], bad=False).error is None
    without = judge(PROGRAMS[name], bad=False, rules=ALL_RULES - off, limit_ms=100)  # ten times what it takes with it
    assert isinstance(without.error, UnprovedError)
