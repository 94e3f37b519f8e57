"""What a type checker says of programs: ordinary kernels pass, and the library's own annotations are found."""

from mypy import api

PROGRAM = """
from enum import IntEnum
from typing import NewType, Protocol, TypeVar

import numpy as np

import gridwise as gw
from gridwise import AtomicSlice, DisjointSlice, Slice, atomic, barrier, f32, i32, thread, u32

Stage = NewType("Stage", u32)


class Ordered(Protocol):
    def __lt__(self, other: object, /) -> bool: ...


T = TypeVar("T", bound=Ordered)


@gw.enum(u32)
class Order(IntEnum):
    UP = 0
    DOWN = 1


@gw.struct
class Point:
    x: f32
    y: f32

    def norm(self) -> f32:
        return gw.math.sqrt(self.x * self.x + self.y * self.y)


def smaller(a: T, b: T) -> T:
    return a if a < b else b


@gw.kernel(block=64)
def kernel(p: Slice[Point], a: Slice[f32], o: DisjointSlice[f32], h: AtomicSlice[u32], s: Stage, order: Order) -> None:
    tile = gw.shared((64,), f32)
    i = thread.index_1d()
    tile[thread.local_index()] = f32(0)
    barrier()
    if i in o:
        total = f32(0)
        for k in range(len(a)):
            total += a[k]
        atomic.add(h, 0, 1)
        o[i] = smaller(total, p[i].norm()) if order == Order.UP else total * 2


a = np.zeros(4, np.float32)
kernel(a, a, a, a, 3, Order.UP, grid=1)
device = gw.device("cpu")
array = device.array(a)
array.numpy().sum()
"""

MISTAKES = """
import gridwise as gw
from gridwise import Slice, f32

def reads(a: Slice[f32]) -> None:
    a[0] = f32(1)

device = gw.device(3)
"""


def test_type_checkers_know_the_language(tmp_path):
    good, bad = tmp_path / "good.py", tmp_path / "bad.py"
    good.write_text(PROGRAM)
    bad.write_text(MISTAKES)
    options = ["--config-file=", "--cache-dir", str(tmp_path / "cache"), "--no-error-summary"]
    out, _, status = api.run([str(good), str(bad), *options])
    lines = out.splitlines()
    assert status == 1 and not [line for line in lines if line.startswith(str(good))], out
    assert any("indexed assignment" in line for line in lines), out
    assert any('"device" has incompatible type' in line for line in lines), out
