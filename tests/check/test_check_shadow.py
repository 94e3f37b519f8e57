"""The shadow memory against all pairs of accesses, on every short history of one element.

Each element of a shadow is a case of its own: a history of operations, each made by some of four threads of two
blocks at once, with barriers between. So one pass over NumPy arrays tries hundreds of thousands of histories.
"""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from gridwise.devices.check import shadow
from gridwise.devices.check.shadow import Shadow

KINDS = ("read", "write", "atomic", "scoped")
THREADS = 4  # 0 and 1 are of block 0, 2 and 3 of block 1
OPERATIONS = [(kind, who) for kind in range(4) for who in range(1, 1 << THREADS)]


def verdicts(kind: np.ndarray, who: np.ndarray, barrier: np.ndarray, seed: int) -> np.ndarray:
    """What the shadow says of each case; all arrays are (cases, steps). ``barrier[:, n]``: one stands before step n."""
    cases, steps = kind.shape
    random = np.random.default_rng(seed)
    memory = Shadow(cases, set(KINDS))
    found = np.zeros(cases, bool)
    epoch = np.cumsum(barrier, axis=1)
    for n in range(steps):
        for k, name in enumerate(KINDS):
            case, thread = np.nonzero((who[:, n, None] >> np.arange(THREADS) & 1) * (kind[:, n, None] == k))
            order = random.permutation(case.size)
            case, thread = case[order], thread[order]
            me = shadow.pack(thread // 2, thread % 2) | shadow.epochs(epoch[case, n])
            found[case[memory.record(name, case, me)[:, 0]]] = True
    return found


def pairs(kind: np.ndarray, who: np.ndarray, barrier: np.ndarray) -> np.ndarray:
    """The same, by looking at every pair of accesses."""
    cases, steps = kind.shape
    epoch = np.cumsum(barrier, axis=1)
    found = np.zeros(cases, bool)
    for (m, s), (n, t) in itertools.product(itertools.product(range(steps), range(THREADS)), repeat=2):
        if s == t:
            continue
        both = (who[:, m] >> s & 1) & (who[:, n] >> t & 1) == 1
        clash = (kind[:, m] == 1) | (kind[:, n] == 1) | (kind[:, m] != kind[:, n])
        # Kinds 2 and 3 are atomics, which race only between blocks and only if one has block scope.
        atomics = (kind[:, m] >= 2) & (kind[:, n] >= 2)
        scoped = (kind[:, m] == 3) | (kind[:, n] == 3)
        clash = np.where(atomics, scoped & (s // 2 != t // 2), clash)
        unordered = s // 2 != t // 2 or epoch[:, m] == epoch[:, n]
        found |= both & clash & unordered
    return found


def histories(picks: np.ndarray, barrier: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    operations = np.array(OPERATIONS)
    return operations[picks, 0], operations[picks, 1], barrier


def every(steps: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    grids = np.meshgrid(*[np.arange(len(OPERATIONS))] * steps, *[np.arange(2)] * (steps - 1), indexing="ij")
    table = np.stack([g.reshape(-1) for g in grids], axis=1)
    barrier = np.concatenate([np.zeros((len(table), 1), int), table[:, steps:]], axis=1)
    return histories(table[:, :steps], barrier)


def drawn(steps: int, cases: int, seed: int, single: bool) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    random = np.random.default_rng(seed)
    alone = [n for n, (_, who) in enumerate(OPERATIONS) if who.bit_count() == 1]
    picks = random.choice(alone if single else np.arange(len(OPERATIONS)), (cases, steps))
    return histories(picks, random.integers(0, 2, (cases, steps)))


@pytest.mark.parametrize(
    "case",
    [every(1), every(2), every(3), drawn(5, 200_000, 1, True), drawn(7, 100_000, 2, True), drawn(5, 50_000, 3, False)],
    ids=["1", "2", "3", "5 single", "7 single", "5"],
)
def test_verdicts(case: tuple[np.ndarray, np.ndarray, np.ndarray]) -> None:
    want = pairs(*case)
    got = verdicts(*case, seed=len(want))
    wrong = np.flatnonzero(got != want)
    assert wrong.size == 0, [a[wrong[0]].tolist() for a in case]
    assert want.any() and not want.all()
