"""The parts of the language by name: parameters and types."""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple, NewType, Protocol, TypeVar

import numpy as np
import pytest
from cases import case, refused, run

import gridwise as gw
from gridwise import (
    Array,
    AtomicSlice,
    Cap,
    Const,
    DisjointSlice,
    Option,
    Slice,
    bf16,
    f16,
    f32,
    f64,
    i16,
    i32,
    none,
    some,
    thread,
    u8,
    u32,
    u64,
    vec2,
    vec3,
)

# -- parameters ------------------------------------------------------------------------------------------------


@gw.kernel(block=64)
def scale(x: Slice[f32], o: DisjointSlice[f32], by: f32, times: Const[int] = 2):
    i = thread.index_1d()
    if i in x and i in o:
        v = x[i]
        for _ in gw.unroll(range(times)):
            v = v * by
        o[i] = v


@case("parameters")
def slices_scalars_constants(device):
    x = np.arange(100, dtype=np.float32)
    assert run(device, scale, x, x * 0, 3.0)[1].tolist() == (x * 9).tolist()
    assert run(device, scale, x, x * 0, 3.0, times=0)[1].tolist() == x.tolist()
    assert run(device, scale, x, x * 0, 2.0, 5)[1].tolist() == (x * 32).tolist()


@case("parameters")
def strided_views(device):
    host = np.arange(400, dtype=np.float32).reshape(20, 20)
    whole, out = device.array(host), device.zeros((20, 20), f32)
    for key in (np.s_[::3, 7], np.s_[4, ::-1], np.s_[1:, 0], np.s_[-1, 2:19:5]):
        scale(whole[key], out[key], 2.0, 1)
        assert out[key].numpy().tolist() == (host[key] * 2).tolist()
    assert np.count_nonzero(out.numpy()) < 60


@gw.kernel(block=1)
def writes_a_slice(x: Slice[f32]):
    x[thread.index_1d()] = 1.0  # HERE


@gw.kernel(block=64)
def writes_a_neighbour(x: DisjointSlice[f32]):
    i = thread.index_1d()
    if i in x:
        x[int(i) // 2] = 1.0  # HERE


@gw.kernel(block=1)
def reads_an_atomic(x: AtomicSlice[u32], o: DisjointSlice[u32]):
    o[thread.index_1d()] = x[0]  # HERE


@case("parameters")
def who_may_touch_what(device):
    one, ints = np.zeros(64, np.float32), np.zeros(64, np.uint32)
    refused(device, gw.KernelTypeError, "read-only", writes_a_slice, one, grid=1)
    refused(device, gw.RaceError, "thread", writes_a_neighbour, one)
    refused(device, gw.KernelTypeError, "atomic", reads_an_atomic, ints, ints.copy())


@gw.kernel(block=64)
def witnesses(run: DisjointSlice[i32], stride: DisjointSlice[i32]):
    for j in thread.run(3):
        if j in run:
            run[j] = i32(int(j)) * 2
    for j in thread.grid_stride(stride):
        stride[j] = i32(int(j)) * 3


@case("parameters")
def witnesses_of_an_index(device):
    a, b = run(device, witnesses, np.zeros(300, np.int32), np.zeros(1000, np.int32), grid=2)
    assert a.tolist() == [2 * j for j in range(300)] and b.tolist() == [3 * j for j in range(1000)]


# -- types -----------------------------------------------------------------------------------------------------

Meters = NewType("Meters", f32)
Seconds = NewType("Seconds", f32)


@gw.enum(u32)
class Mode(IntEnum):
    KEEP = 1
    NEGATE = 4


@gw.struct
class Point:
    x: f32
    y: f32

    def dot(self, other: Point) -> f32:
        return self.x * other.x + self.y * other.y

    @classmethod
    def diagonal(cls, v: f32) -> Point:
        return cls(v, v)

    def __add__(self, other: Point) -> Point:
        return Point(self.x + other.x, self.y + other.y)


@gw.struct
class Body:
    tag: u8
    mass: f32
    at: Point
    weights: Array[i16, 3]
    mode: Mode
    flag: gw.bool_


@gw.kernel(block=32)
def bodies(b: DisjointSlice[Body], o: DisjointSlice[f32], shift: Point, k: i32):
    i = thread.index_1d()
    if i in b and i in o:
        before = b[i]
        b[i].at = before.at + shift
        b[i].weights[k] = i16(before.weights[0] + 5)
        b[i].flag = not before.flag
        b[i].mode = Mode.NEGATE
        sign = -1.0 if before.mode == Mode.NEGATE else 1.0
        o[i] = sign * (before.at.dot(Point.diagonal(2.0)) + before.mass)


@case("types")
def structs_nested_with_arrays_and_enums(device):
    host = np.zeros(40, Body.dtype())
    host["tag"], host["mass"] = np.arange(40), np.arange(40) / 2
    host["at"]["x"], host["at"]["y"] = np.arange(40), -2
    host["weights"], host["mode"] = np.arange(120).reshape(40, 3), np.where(np.arange(40) % 2, 4, 1)
    b, o = run(device, bodies, host, np.zeros(40, np.float32), Point(0.5, 1.0), 2)
    sign = np.where(np.arange(40) % 2, -1, 1)
    assert o.tolist() == (sign * (2 * host["at"]["x"] + 2 * host["at"]["y"] + host["mass"])).tolist()
    assert b["at"]["x"].tolist() == (host["at"]["x"] + 0.5).tolist() and (b["at"]["y"] == -1).all()
    assert b["weights"][:, 2].tolist() == (host["weights"][:, 0] + 5).tolist()
    assert (b["weights"][:, :2] == host["weights"][:, :2]).all() and (b["tag"] == host["tag"]).all()
    assert b["flag"].all() and (b["mode"] == 4).all()


@gw.struct
class Wide:
    a: u8
    b: f64
    c: u64


@gw.kernel(block=32)
def wides(w: DisjointSlice[Wide]):
    i = thread.index_1d()
    if i in w:
        w[i].b = w[i].b * 2.0
        w[i].c = w[i].c + 1


@case("types", needs=(Cap.F64, Cap.I64))
def structs_with_64_bit_members(device):
    host = np.zeros(5, Wide.dtype())
    host["b"], host["c"], host["a"] = np.arange(5) / 3, 2**63, 7
    (w,) = run(device, wides, host)
    assert w["b"].tolist() == (host["b"] * 2).tolist() and (w["c"] == 2**63 + 1).all() and (w["a"] == 7).all()


@case("types")
def enums_are_validated(device):
    host = np.zeros(3, Body.dtype())
    host["mode"] = 1, 2, 4
    given = [device.array(host), device.zeros(3, f32)]
    bodies(*given, Point(0.0, 0.0), 0)
    with pytest.raises(gw.DeviceAssertionError, match="no member of Mode"):
        device.synchronize()


class Pair(NamedTuple):
    count: i32
    share: f32


def checked_quotient(a: i32, b: i32) -> Option[i32]:
    if b == 0:
        return none(i32)
    return some(a // b)


def split(n: i32) -> Pair:
    return Pair(n // 2, f32(n) * 0.25)


@gw.kernel(block=32)
def groups(v: Slice[vec2[f32]], n: Slice[i32], o: DisjointSlice[f32]):
    i = thread.index_1d()
    if i in v and i in n and i in o:
        a = v[i] * 2.0 + vec2(1.0, 2.0)
        c = vec3[f32](a.yx, 1.0)
        pair = split(n[i])
        q = checked_quotient(100, n[i])
        count, share = pair
        o[i] = c.x + c.y * 10.0 + c.z * 100.0 + f32(count) + share + f32(q.unwrap_or(-7)) + pair.share


@case("types")
def vectors_tuples_options(device):
    host = np.zeros(6, [("x", "f4"), ("y", "f4")])
    host["x"], host["y"] = np.arange(6), np.arange(6) * 3
    n = np.array([0, 1, -3, 8, 7, 100], np.int32)
    o = run(device, groups, host, n, np.zeros(6, np.float32))[2]
    for k, (x, y) in enumerate(host.tolist()):
        m = int(n[k])
        want = (2 * y + 2) + (2 * x + 1) * 10 + 100 + m // 2 + m * 0.25 * 2 + (100 // m if m else -7)
        assert o[k] == want


@gw.kernel(block=32)
def locals_(x: Slice[i32], o: DisjointSlice[i32]):
    i = thread.index_1d()
    if i in x and i in o:
        seen = gw.local((8,), i32)
        for k in range(20):
            seen[(x[i] + k * k) % 8] += k
        best = 0
        for k in range(8):
            if seen[k] > seen[best]:
                best = k
        o[i] = seen[best] * 10 + best


@case("types")
def local_arrays_with_a_run_time_index(device):
    x = np.arange(-20, 30, dtype=np.int32)
    o = run(device, locals_, x, np.zeros_like(x))[1]
    for v, got in zip(x.tolist(), o.tolist(), strict=True):
        seen = [0] * 8
        for k in range(20):
            seen[(v + k * k) % 8] += k
        assert got == max(seen) * 10 + seen.index(max(seen))


@gw.kernel(block=32)
def halves(a: Slice[f16], b: Slice[bf16], o: DisjointSlice[f16], p: DisjointSlice[bf16]):
    i = thread.index_1d()
    if i in a and i in b and i in o and i in p:
        o[i] = a[i] * a[i] + f16(b[i])
        p[i] = b[i] + bf16(a[i]) * 3


@case("types", needs=(Cap.F16,))
def narrow_floats(device):
    import ml_dtypes

    a = np.linspace(-4, 4, 33).astype(np.float16)
    b = np.linspace(-2, 6, 33).astype(ml_dtypes.bfloat16)
    o, p = run(device, halves, a, b, np.zeros_like(a), np.zeros_like(b))[2:]
    near = a.astype(float) ** 2 + b.astype(float)
    assert np.all(np.abs(o.astype(float) - near) <= 2.0**-10 * (np.abs(near) + a.astype(float) ** 2) + 1e-3)
    near = b.astype(float) + 3 * a.astype(float)
    assert np.all(np.abs(p.astype(float) - near) <= 2.0**-7 * (np.abs(near) + 3 * np.abs(a.astype(float))) + 1e-2)


class Ordered(Protocol):
    def __lt__(self, other: object) -> bool: ...


T = TypeVar("T", bound=Ordered)


def smaller(a: T, b: T) -> T:
    return a if a < b else b


@gw.kernel(block=32)
def least(a: Slice[T], b: Slice[T], o: DisjointSlice[T]):
    i = thread.index_1d()
    if i in a and i in b and i in o:
        o[i] = smaller(a[i], b[i])


@case("types")
def generics(device):
    for dtype in (np.int32, np.uint8, np.float32, np.int16):
        a, b = np.arange(50).astype(dtype), (np.arange(50)[::-1] * 2).astype(dtype)
        assert run(device, least, a, b, np.zeros_like(a))[2].tolist() == np.minimum(a, b).tolist()


@gw.kernel(block=1)
def adds_nominal(o: DisjointSlice[f32], a: Meters, b: Seconds):
    o[thread.index_1d()] = a + b  # HERE


@case("types")
def nominal_types_do_not_mix(device):
    refused(device, gw.KernelTypeError, "Meters + Seconds", adds_nominal, np.zeros(1, np.float32), 1.0, 2.0)
