"""What a type checker says of programs: ordinary kernels pass, and the library's own annotations are found."""

import textwrap

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


def check(text: str, tmp_path) -> tuple[str, int]:
    path = tmp_path / "program.py"
    path.write_text(textwrap.dedent(text))
    options = ["--config-file=", "--cache-dir", str(tmp_path / "cache"), "--no-error-summary"]
    out, _, status = api.run([str(path), *options])
    return out, status


def test_an_ordinary_program_passes(tmp_path):
    out, status = check(PROGRAM, tmp_path)
    assert status == 0, out


def test_mistakes_are_found(tmp_path):
    out, status = check(MISTAKES, tmp_path)
    assert status == 1
    assert "__setitem__" in out or "Unsupported target for indexed assignment" in out, out
    assert "device" in out and "incompatible type" in out, out
