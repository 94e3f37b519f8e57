"""``gridwise.lang.records.dataclass`` means what the library's does, for all that this package uses of it."""

from __future__ import annotations

import copy
import dataclasses
import pickle
from typing import ClassVar

import pytest

from gridwise.lang import records


def _classes(make, field):
    @make
    class Plain:
        a: int
        b: list[int] = field(default_factory=list)
        c: str = "c"

    @make(frozen=True)
    class Frozen:
        a: int
        b: float = 1.5
        shared: ClassVar[int] = 7
        hidden: int = field(default=3, compare=False, repr=False)

    @make(frozen=True, slots=True)
    class Slots:
        a: int
        b: int = 2

    @make(eq=False)
    class Identity:
        a: int

    @make(frozen=True)
    class Derived(Frozen):
        d: int = 4

        def __repr__(self):
            return f"derived {self.d}"

    @make
    class After:
        a: int

        def __post_init__(self):
            self.a += 1

    return Plain, Frozen, Slots, Identity, Derived, After


OURS = _classes(records.dataclass, records.field)
THEIRS = _classes(dataclasses.dataclass, dataclasses.field)


@pytest.fixture(params=range(6), ids=[c.__name__ for c in OURS])
def pair(request):
    return OURS[request.param], THEIRS[request.param]


def _last(text: str) -> str:
    return text.rpartition("<locals>.")[2]


def test_repr_equality_hash_and_match_args(pair):
    ours, theirs = pair
    assert ours.__match_args__ == theirs.__match_args__
    assert _last(repr(ours(1))) == _last(repr(theirs(1)))
    assert (ours(1) == ours(1)) == (theirs(1) == theirs(1))
    assert (ours(1) == ours(2)) == (theirs(1) == theirs(2))
    assert (ours.__hash__ is None) == (theirs.__hash__ is None)
    if ours.__hash__ is not None and ours.__eq__ is not object.__eq__:
        assert hash(ours(1)) == hash(theirs(1))
    assert ours(1) != theirs(1)


def test_wrong_arguments_are_refused(pair):
    ours, theirs = pair
    for args, named in [((), {}), ((1, 2, 3, 4, 5, 6), {}), ((1,), {"no": 1}), ((1,), {"a": 1})]:
        for cls in (theirs, ours, ours):  # ours twice: the first call compiles
            with pytest.raises(TypeError, match=r"__init__\(\)"):
                cls(*args, **named)


def test_a_factory_is_called_for_each_instance():
    plain = OURS[0]
    first, second = plain(1), plain(1)
    first.b.append(5)
    assert second.b == [] and plain(1, [2]).b == [2]
    assert not hasattr(plain, "b") and plain.c == "c"


def test_what_is_not_compared():
    frozen = OURS[1]
    assert frozen(1, hidden=5) == frozen(1) and hash(frozen(1, hidden=5)) == hash(frozen(1))
    assert frozen(1).shared == 7 and "hidden" not in repr(frozen(1))


@pytest.mark.parametrize("n", [1, 2, 4])
def test_frozen_is_frozen(n):
    made = OURS[n](1)
    with pytest.raises(dataclasses.FrozenInstanceError, match="cannot assign to field 'a'"):
        made.a = 2
    with pytest.raises(dataclasses.FrozenInstanceError, match="cannot delete field 'a'"):
        del made.a


def test_slots_take_nothing_else_and_travel():
    assert not hasattr(OURS[2](1), "__dict__")
    made = Point(3, Point(4))
    assert pickle.loads(pickle.dumps(made)) == made == copy.deepcopy(made)


@records.dataclass(frozen=True, slots=True)
class Point:
    a: int
    b: object = None


def test_inherited_fields_come_first():
    derived = OURS[4]
    assert (derived(1, 2.0, 3, 5).d, repr(derived(1))) == (5, "derived 4")
    assert derived(1) != OURS[1](1)


def test_replace():
    derived = OURS[4](1)
    assert records.replace(derived, d=9) == OURS[4](1, d=9)
    with pytest.raises(TypeError, match="no"):
        records.replace(derived, no=1)


def test_first_instance_of_a_subclass_without_a_decorator():
    class Sub(_classes(records.dataclass, records.field)[0]):
        pass

    assert Sub(1, c="x").c == "x"
