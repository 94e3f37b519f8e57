"""Structs, vectors, tuples, options, nominal types, generics, functions as values."""

import dataclasses
from collections.abc import Callable
from enum import IntEnum
from typing import NamedTuple, NewType, Protocol, TypeVar

import device_library
import numpy as np
import pytest
from device_library import clamp, collatz
from lowering import compiled, refused, run

import gridwise as gw
from gridwise import (
    Array,
    AtomicSlice,
    DisjointSlice,
    Option,
    Slice,
    ThreadIndex,
    f32,
    f64,
    i8,
    i16,
    i32,
    i64,
    thread,
    u8,
    u32,
    vec2,
    vec3,
)
from gridwise.frontend import memory_type
from gridwise.ir import to_text
from gridwise.lang.options import none, some

Stage = NewType("Stage", u32)
Pass = NewType("Pass", u32)
Meters = NewType("Meters", f32)


class Kind(IntEnum):
    DUST = 0
    STAR = 5


@gw.enum(gw.u8)
class Colour(IntEnum):
    RED = 1
    BLUE = 2


@gw.struct
class Point:
    x: f32
    y: f32 = 0.5

    def dot(self, other: "Point") -> f32:
        return self.x * other.x + self.y * other.y

    def move(self, by: f32):
        self.x += by
        self.grow(by * 2)

    def grow(self, by: f32):
        self.y += by

    @property
    def norm(self) -> f32:
        return gw.math.sqrt(self.dot(self))

    @classmethod
    def diagonal(cls, v: f32) -> "Point":
        return cls(v, v)

    @staticmethod
    def zero() -> "Point":
        return Point(0.0, 0.0)

    def __add__(self, other: "Point") -> "Point":
        return Point(self.x + other.x, self.y + other.y)

    def __mul__(self, s: f32) -> "Point":
        return Point(self.x * s, self.y * s)

    def __neg__(self) -> "Point":
        return Point(-self.x, -self.y)


@gw.struct
class Body:
    tag: u8
    mass: f64
    at: Point
    weights: Array[i16, 3]
    kind: Kind
    colour: Colour
    flag: gw.bool_
    speed: vec3[f32]
    stage: Stage


@gw.struct
class Small:
    a: i8
    b: i64
    c: i8


# -- layout ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("cls", [Point, Body, Small])
def test_layout_is_numpys_aligned_dtype(cls):
    assert cls.dtype() == memory_type(cls).dtype
    assert cls.dtype().isalignedstruct
    assert cls.dtype().itemsize == memory_type(cls).size
    plain = np.dtype([(n, cls.dtype().fields[n][0]) for n in cls.dtype().names], align=True)
    assert [plain.fields[n][1] for n in plain.names] == [cls.dtype().fields[n][1] for n in plain.names]


# -- structs ---------------------------------------------------------------------------------------


@gw.kernel(block=32)
def structs(o: DisjointSlice[f32], a: Slice[f32]):
    i = thread.index_1d()
    if i in o:
        p = Point(a[i])
        q = Point.diagonal(2.0) + p * 3.0
        q.move(1.0)
        r = -q
        if r.x < -10.0:
            r = Point.zero()
            r.x = 7.0
        o[i] = p.dot(q) + r.x + r.norm


def test_structs_in_registers():
    a = np.array([0, 1, 2, 5], np.float32)
    o = np.zeros(4, np.float32)
    run(structs, o, a)
    for x, got in zip(a.tolist(), o.tolist(), strict=True):
        p = Point(x)
        q = Point.diagonal(2.0) + p * 3.0
        q.move(1.0)
        r = -q
        if r.x < -10:
            r = Point.zero()
            r.x = 7.0
        assert got == pytest.approx(p.dot(q) + r.x + np.hypot(r.x, r.y), rel=1e-6)


@gw.kernel(block=32)
def bodies(b: DisjointSlice[Body], o: DisjointSlice[f64], s: Slice[Point], k: i32):
    i = thread.index_1d()
    if i in b and i in o and i in s:
        before = b[i]
        b[i].at.x += 1.5
        b[i].weights[k] = i16(before.weights[0] + 5)
        b[i].flag = not before.flag
        b[i].kind = Kind.STAR
        b[i].at = b[i].at + s[i]
        b[i].speed = before.speed + vec3[f32](1, 2, 3)
        b[i].stage = Stage(before.stage + 1)
        o[i] = before.mass * f64(before.at.x) + f64(b[i].weights[k]) + (0.5 if before.colour == Colour.BLUE else 0.25)


def test_arrays_of_structs():
    b = np.zeros(3, Body.dtype())
    b["mass"], b["at"]["x"], b["colour"] = [1, 2, 3], [4, 5, 6], [1, 2, 1]
    b["weights"][:, 0] = [7, 8, 9]
    s = np.zeros(3, Point.dtype())
    s["x"] = 10
    o = np.zeros(3)
    run(bodies, b, o, s, 2)
    assert o.tolist() == [4 + 12 + 0.25, 10 + 13 + 0.5, 18 + 14 + 0.25]
    assert b["at"]["x"].tolist() == [15.5, 16.5, 17.5]
    assert b["weights"][:, 2].tolist() == [12, 13, 14] and b["weights"][:, 1].tolist() == [0, 0, 0]
    assert b["flag"].all() and (b["kind"] == 5).all() and (b["stage"] == 1).all()
    assert b["speed"]["z"].tolist() == [3, 3, 3]


def test_a_field_array_checks_its_index():
    b = np.zeros(3, Body.dtype())
    b["colour"] = 1
    with pytest.raises(gw.DeviceIndexError):
        run(bodies, b, np.zeros(3), np.zeros(3, Point.dtype()), 3)


def test_an_enum_read_from_memory_is_validated():
    b = np.zeros(3, Body.dtype())
    b["colour"] = [1, 9, 2]
    with pytest.raises(gw.DeviceAssertionError, match="no member of Colour"):
        run(bodies, b, np.zeros(3), np.zeros(3, Point.dtype()), 0)


@gw.kernel(block=32)
def by_value(o: DisjointSlice[f32], p: Point, b: Body):
    i = thread.index_1d()
    if i in o:
        p.x = p.x + f32(b.weights[1])
        o[i] = p.dot(b.at) + b.speed.y


def test_struct_parameters_are_flattened():
    kernel = compiled(by_value.fn).kernel
    names = [p.name for p in kernel.params]
    assert names[:3] == ["o", "p.x", "p.y"]
    assert "b.weights.1" in names and "b.at.x" in names and "b.speed.y" in names


def aliased(o: DisjointSlice[f32]):
    p = Point(1.0)
    q = p
    q.x = 2.0  # HERE
    o[thread.index_1d()] = p.x


def aliased_element(o: DisjointSlice[f32], s: DisjointSlice[Point]):
    i = thread.index_1d()
    p = s[i]
    p.x = 2.0  # HERE
    o[i] = p.x


def aliased_in_a_loop(o: DisjointSlice[f32]):
    p = Point(1.0)
    q = Point(2.0)
    for _ in range(3):
        p.x += 1.0
        q = p  # HERE
    o[thread.index_1d()] = q.x


def aliased_through_a_call(o: DisjointSlice[f32]):
    p = Point(1.0)
    q = p
    q.move(1.0)
    o[thread.index_1d()] = p.x


@pytest.mark.parametrize("fn", [aliased, aliased_element, aliased_in_a_loop])
def test_a_change_that_python_would_share_is_refused(fn):
    refused(fn, gw.KernelTypeError, "same object in Python", ".copy()")


def test_a_change_in_a_method_that_python_would_share_is_refused():
    with pytest.raises(gw.KernelTypeError, match="same object in Python"):
        compiled(aliased_through_a_call)


@gw.kernel(block=32)
def copies(o: DisjointSlice[f32], s: Slice[Point]):
    i = thread.index_1d()
    if i in o and i in s:
        p = s[i].copy()
        p.x = 9.0
        q = dataclasses.replace(p, y=3.0)
        t = q.copy()
        t.y += 1.0
        o[i] = s[i].x * 1000.0 + p.x * 100.0 + q.y * 10.0 + t.y


def test_copies_share_nothing():
    o, s = np.zeros(1, np.float32), np.ones(1, Point.dtype())
    run(copies, o, s)
    assert o[0] == 1000 + 900 + 30 + 4


def misspelt_field(o: DisjointSlice[f32], p: Body):
    o[thread.index_1d()] = f32(p.masss)  # HERE


def missing_field(o: DisjointSlice[f32]):
    b = Small(1, 2)  # HERE
    o[thread.index_1d()] = f32(b.a)


def unknown_method(o: DisjointSlice[f32], p: Point):
    o[thread.index_1d()] = p.length()  # HERE


def no_such_operator(o: DisjointSlice[f32], p: Point):
    q = p - p  # HERE
    o[thread.index_1d()] = q.x


def wrong_field_type(o: DisjointSlice[f32], n: i32):
    p = Point(n)  # HERE
    o[thread.index_1d()] = p.x


@pytest.mark.parametrize(
    ("fn", "error", "phrase"),
    [
        (misspelt_field, gw.KernelAttributeError, "did you mean mass?"),
        (missing_field, gw.KernelTypeError, "missing the field 'c'"),
        (unknown_method, gw.KernelAttributeError, "no attribute 'length'"),
        (no_such_operator, gw.KernelTypeError, "__sub__"),
        (wrong_field_type, gw.KernelTypeError, "write f32(n)"),
    ],
)
def test_mistakes_with_structs(fn, error, phrase):
    refused(fn, error, phrase)


# -- vectors, tuples, options ----------------------------------------------------------------------


class Pair(NamedTuple):
    count: i32
    share: f32 = 0.25


def divide_checked(a: i32, b: i32) -> Option[i32]:
    if b == 0:
        return none(i32)
    return some(a // b)


@gw.kernel(block=32)
def groups(o: DisjointSlice[f32], v: Slice[vec2[f32]], n: Slice[i32]):
    i = thread.index_1d()
    if i in o and i in v and i in n:
        a = v[i] * 2.0 + vec2(1.0, 2.0)
        b = a.yx - v[i]
        c = vec3[f32](a, 1.0)
        pair = Pair(n[i])
        count, share = pair
        q = divide_checked(100, n[i])
        r = q.value if q.is_some else -1
        w = (1, 2.5, a)
        (p, s), t = (count, share), w[2]
        total = b.dot(a) + c.z + c.cross(vec3(0.0, 0.0, 1.0)).x + f32(p) + s + t.x
        o[i] = total + f32(r) + f32(q.unwrap_or(5)) + w[1] + pair.share


def test_groups():
    v = np.zeros(3, memory_type(vec2[f32]).dtype)
    v["x"], v["y"] = [1, 2, 3], [4, 5, 6]
    n = np.array([0, 7, -3], np.int32)
    o = np.zeros(3, np.float32)
    run(groups, o, v, n)
    for k in range(3):
        x, y = float(v["x"][k]), float(v["y"][k])
        ax, ay = 2 * x + 1, 2 * y + 2
        bx, by = ay - x, ax - y
        r = 100 // int(n[k]) if n[k] else None
        wanted = (
            bx * ax
            + by * ay
            + 1
            + ay
            + n[k]
            + 0.25
            + ax
            + (-1 if r is None else r)
            + (5 if r is None else r)
            + 2.5
            + 0.25
        )
        assert o[k] == wanted


def tuple_index(o: DisjointSlice[i32], k: i32):
    t = (10, 20, 30)
    i = thread.index_1d()
    if i in o:
        o[i] = t[k] + t[-1]


def test_a_tuple_takes_a_run_time_index_when_its_items_agree():
    kernel = gw.kernel(block=1)(tuple_index)
    for k in range(3):
        o = np.zeros(1, np.int32)
        run(kernel, o, k)
        assert o[0] == 10 * (k + 1) + 30
    with pytest.raises(gw.DeviceAssertionError):
        run(kernel, np.zeros(1, np.int32), 3)


# -- nominal types ---------------------------------------------------------------------------------


def adds_stage_to_pass(o: DisjointSlice[u32], a: Stage, b: Pass):
    o[thread.index_1d()] = a + b  # HERE


def takes_stage(s: Stage) -> u32:
    return s + 1


def passes_a_number(o: DisjointSlice[u32], n: u32):
    o[thread.index_1d()] = takes_stage(n)  # HERE


def passes_another(o: DisjointSlice[u32], n: Pass):
    o[thread.index_1d()] = takes_stage(n)  # HERE


def converts_another(o: DisjointSlice[u32], n: Pass):
    o[thread.index_1d()] = takes_stage(Stage(n))  # HERE


def enum_for_enum(o: DisjointSlice[u32], n: Kind):
    if n == Colour.RED:  # HERE
        o[thread.index_1d()] = 1


@pytest.mark.parametrize(
    ("fn", "fix"),
    [
        (adds_stage_to_pass, "Stage + Pass"),
        (passes_a_number, "write Stage(n)"),
        (passes_another, "write Stage(n)"),
        (converts_another, "write Stage(u32(n))"),
        (enum_for_enum, "Kind == Colour"),
    ],
)
def test_nominal_types_do_not_mix(fn, fix):
    refused(fn, gw.KernelTypeError, fix)


@gw.kernel(block=1)
def nominal(o: DisjointSlice[u32], a: Stage, b: Pass):
    if thread.global_index() == 0:
        o[0] = takes_stage(a) + u32(b)
        o[1] = a << 2
        o[2] = a
        c = Stage(7)
        o[3] = takes_stage(c) if a < c else 0


def test_nominal_types_are_their_numbers():
    o = np.zeros(4, np.uint32)
    run(nominal, o, 3, 4, grid=1)
    assert o.tolist() == [8, 12, 3, 8]


# -- functions -------------------------------------------------------------------------------------


@gw.kernel(block=32)
def other_files(o: DisjointSlice[f32], n: Slice[i32]):
    i = thread.index_1d()
    if i in o and i in n:
        o[i] = clamp(f32(collatz(n[i])) - 3.0, high=device_library.LIMIT / 4) + device_library.clamp(-1.0)


def test_functions_of_other_files():
    n = np.array([1, 6, 7, 27], np.int32)
    o = np.zeros(4, np.float32)
    run(other_files, o, n)
    assert o.tolist() == [0.0, 5.0, 13.0, 25.0]


def calls_broken(o: DisjointSlice[f32]):
    o[thread.index_1d()] = device_library.uses_broken(1.0)


def test_an_error_in_a_called_function_names_both_places():
    with pytest.raises(gw.KernelNameError) as caught:
        compiled(calls_broken)
    text = str(caught.value)
    assert "device_library.py" in text and "undefined_name" in text and "called from" in text
    assert len(text.splitlines()) <= 6


def apply_twice(f: Callable[[f32], f32], x: f32) -> f32:
    return f(f(x))


def make_adder(k):
    def add(x):
        return x + k

    return add


ADD_3 = make_adder(3.0)
ADD_5 = make_adder(5.0)


@gw.kernel(block=32)
def function_values(o: DisjointSlice[f32], a: Slice[f32]):
    i = thread.index_1d()
    if i in o:
        scale = a[i]

        def times(x: f32) -> f32:
            return x * scale

        table = (times, lambda x: x - 1.0)
        x = apply_twice(times, 2.0) + apply_twice(lambda v: v + scale, 0.0) + ADD_3(1.0) * ADD_5(1.0)
        for f in table:
            x = f(x)
        inner = make_adder(scale)
        o[i] = inner(x)


def test_functions_as_values():
    a, o = np.array([1, 2, 3], np.float32), np.zeros(3, np.float32)
    run(function_values, o, a)
    for s, got in zip(a.tolist(), o.tolist(), strict=True):
        x = 2 * s * s + 2 * s + 24
        assert got == x * s - 1 + s


def forever(n: i32) -> i32:
    return n * forever(n - 1)


def recursion(o: DisjointSlice[i32]):
    o[thread.index_1d()] = forever(3)


def ping(n: i32) -> i32:
    return pong(n)


def pong(n: i32) -> i32:
    return ping(n)


def mutual_recursion(o: DisjointSlice[i32]):
    o[thread.index_1d()] = ping(3)


@pytest.mark.parametrize("fn", [recursion, mutual_recursion])
def test_recursion_is_refused(fn):
    with pytest.raises(gw.KernelSyntaxError, match="recursion is not supported") as caught:
        compiled(fn)
    assert "write a loop" in str(caught.value)


def no_value_on_one_path(x: f32) -> f32:
    if x > 0:
        return x


def too_many(o: DisjointSlice[f32]):
    o[thread.index_1d()] = clamp(1.0, 2.0, 3.0, 4.0)  # HERE


def unknown_keyword(o: DisjointSlice[f32]):
    o[thread.index_1d()] = clamp(1.0, hihg=3.0)  # HERE


def missing_argument(o: DisjointSlice[f32]):
    o[thread.index_1d()] = clamp()  # HERE


def wrong_argument(o: DisjointSlice[f32], n: i32):
    o[thread.index_1d()] = clamp(n)  # HERE


@pytest.mark.parametrize(
    ("fn", "phrase"),
    [
        (too_many, "clamp takes 3 arguments, and 4 are given"),
        (unknown_keyword, "did you mean high?"),
        (missing_argument, "missing the argument 'x'"),
        (wrong_argument, "write f32(n)"),
    ],
)
def test_calls_that_do_not_fit(fn, phrase):
    refused(fn, gw.KernelTypeError, phrase)


def test_every_path_of_a_function_returns():
    def kernel(o: DisjointSlice[f32]):
        o[thread.index_1d()] = no_value_on_one_path(1.0)

    with pytest.raises(gw.KernelTypeError, match="returns a value on some paths"):
        compiled(kernel)


# -- generics --------------------------------------------------------------------------------------


class Comparable(Protocol):
    def __lt__(self, other, /) -> bool: ...


class Shape(Protocol):
    area: f32

    def scaled(self, by: f32) -> "Shape": ...


T = TypeVar("T", bound=Comparable)
N = TypeVar("N", i32, f32)
S = TypeVar("S", bound=Shape)


@gw.struct
class Square:
    area: f32

    def scaled(self, by: f32) -> "Square":
        return Square(self.area * by * by)


def smaller(a: T, b: T) -> T:
    return a if a < b else b


def doubled(x: N) -> N:
    return x * 2


def grown(s: S) -> f32:
    return s.scaled(2.0).area


def least(a: Slice[T], start: T) -> T:
    best = start
    for k in range(len(a)):
        best = smaller(best, a[k])
    return best


@gw.kernel(block=1)
def generic(o: DisjointSlice[T], a: Slice[T], f: DisjointSlice[f32]):
    if thread.global_index() == 0:
        o[0] = least(a, a[0])
        o[1] = smaller(a[1], 3)
        o[2] = T(7)
        f[0] = doubled(1.5) + f32(doubled(i32(4))) + grown(Square(3.0))


@pytest.mark.parametrize("dtype", [np.int32, np.uint8, np.float32, np.int64])
def test_generic_functions(dtype):
    o, a, f = np.zeros(3, dtype), np.array([9, 5, 2, 8], dtype), np.zeros(1, np.float32)
    run(generic, o, a, f, grid=1)
    assert o.tolist() == [2, 3, 7] and f[0] == 3 + 8 + 12


def bound_not_met(o: DisjointSlice[f32], p: Point):
    q = smaller(p, p)  # HERE
    o[thread.index_1d()] = q.x


def constraint_not_met(o: DisjointSlice[f32]):
    o[thread.index_1d()] = f32(doubled(i64(1)))  # HERE


def structure_not_met(o: DisjointSlice[f32], p: Point):
    o[thread.index_1d()] = grown(p)  # HERE


def two_types(o: DisjointSlice[f32], a: i32, b: f32):
    o[thread.index_1d()] = smaller(b, a)  # HERE


@pytest.mark.parametrize(
    ("fn", "phrases"),
    [
        (bound_not_met, ("T must be Comparable", "Point has no __lt__")),
        (constraint_not_met, ("N is one of i32, f32",)),
        (structure_not_met, ("S must be Shape", "Point has no area")),
        (two_types, ("T is f32 by an earlier argument",)),
    ],
)
def test_bounds_are_reported_at_the_call(fn, phrases):
    refused(fn, gw.KernelTypeError, *phrases)


# -- arrays as arguments of functions --------------------------------------------------------------


def write_at(c: DisjointSlice[f32], i: ThreadIndex, x: f32):
    c[i] = x


def count(h: AtomicSlice[u32], k: i32):
    gw.atomic.add(h, k, 1)


def writes_a_slice(c: Slice[f32], i: ThreadIndex):
    c[i] = 1.0  # HERE


def sum_of(a: Slice[f32]) -> f32:
    total = f32(0)
    for k in range(len(a)):
        total += a[k]
    return total


@gw.kernel(block=32)
def arrays_as_arguments(o: DisjointSlice[f32], a: Slice[f32], h: AtomicSlice[u32]):
    i = thread.index_1d()
    mine = gw.local((4,), f32)
    for k in range(4):
        mine[k] = f32(k)
    if i in o:
        write_at(o, i, sum_of(a) + sum_of(mine))
        count(h, i32(i) % 2)


def test_arrays_as_arguments():
    o, a, h = np.zeros(5, np.float32), np.arange(4, dtype=np.float32), np.zeros(2, np.uint32)
    run(arrays_as_arguments, o, a, h)
    assert o.tolist() == [12.0] * 5 and h.tolist() == [3, 2]


def read_only_argument(o: DisjointSlice[f32], a: Slice[f32]):
    write_at(a, thread.index_1d(), 1.0)  # HERE


def integer_for_witness(o: DisjointSlice[f32]):
    write_at(o, 3, 1.0)  # HERE


def wrong_element(o: DisjointSlice[f32], a: Slice[f64]):
    o[thread.index_1d()] = sum_of(a)  # HERE


@pytest.mark.parametrize(
    ("fn", "phrase"),
    [
        (read_only_argument, "annotate it as DisjointSlice"),
        (integer_for_witness, "thread.index_1d()"),
        (wrong_element, "a holds f64"),
    ],
)
def test_array_arguments_that_do_not_fit(fn, phrase):
    refused(fn, gw.KernelTypeError, phrase)


def test_a_slice_stays_read_only_in_a_callee():
    def kernel(o: DisjointSlice[f32]):
        writes_a_slice(o, thread.index_1d())

    with pytest.raises(gw.KernelTypeError, match="read-only"):
        compiled(kernel)


def test_names_that_are_never_rebound_need_no_variable():
    assert "var" not in to_text(compiled(other_names).kernel)


def other_names(o: DisjointSlice[f32], a: Slice[f32]):
    i = thread.index_1d()
    if i in o:
        x = a[i]
        y = x * x
        o[i] = y + x


EXTENT = np.int64(3)


def meters(o: DisjointSlice[f32], d: Meters):
    o[thread.index_1d()] = d * 2.0 + Meters(1.0)


def test_numpy_scalars_and_nominal_floats():
    assert "add" in to_text(compiled(meters).kernel)


def first_in_a_loop(x: f32):
    while True:
        return Point(x, 2.0), 3, 0.5


def in_a_with(x: f32):
    with gw.unsafe("nothing to see"):
        return x, 1


def make_in_branch(o: DisjointSlice[f32], n: i32):
    x = f32(1)
    for k in range(3):
        y = f32(k)
        g = lambda v: v + y  # noqa: B023, E731
    o[thread.index_1d()] = g(x)  # HERE


def method_in_a_name(o: DisjointSlice[f32], p: Point):
    grow = p.grow  # HERE
    grow(1.0)
    o[thread.index_1d()] = p.x


@gw.kernel(block=1)
def odd_returns(o: DisjointSlice[f32]):
    if thread.global_index() == 0:
        p, n, h = first_in_a_loop(4.0)
        a, b = in_a_with(5.0)
        pair = (Point(1.0), clamp)
        for _ in range(2):
            p.x += pair[1](pair[0].x)
        o[0] = p.x * 100.0 + p.y * 10.0 + f32(n) + h + a * f32(b)


def test_values_returned_from_inside_loops():
    o = np.zeros(1, np.float32)
    run(odd_returns, o, grid=1)
    assert o[0] == 600 + 20 + 3.5 + 5


def test_compile_time_values_do_not_leave_their_branch():
    refused(make_in_branch, gw.KernelTypeError, "chosen in a branch or loop")
    refused(method_in_a_name, gw.KernelTypeError, "cannot be held by a name")


@pytest.mark.parametrize("to", ["bf16", "f16", "f32", "f64"])
@pytest.mark.parametrize(
    "n", [2**64 - 1, 2**53 + 1, 2**62 + 2**54 + 1, 2**63 + 2**39 + 1, 2**63 + 2**55 + 1, 65519, 65520, 2**24 + 1]
)
def test_a_folded_integer_rounds_to_a_float_once(to, n):
    from fractions import Fraction

    from gridwise.ir.types import SCALARS
    from gridwise.lang.types import convert

    got = float(convert(n, getattr(gw, to)))
    digits = {"bf16": 8, "f16": 11, "f32": 24, "f64": 53}[to]
    step = Fraction(2) ** (n.bit_length() - digits)
    nearest = round(Fraction(n) / step) * step  # ties to even
    largest = Fraction(65504) if to == "f16" else nearest
    assert got == (np.inf if nearest > largest else float(nearest))
    assert SCALARS[to].dtype.type(got) == got
