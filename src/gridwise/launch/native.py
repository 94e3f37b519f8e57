"""Launches without Python: for each kernel signature, machine code that checks a call's arguments and starts it.

The code is a builtin function. It checks exactly what the way through Python would check for the arguments that it
was made for: arrays of the same traits on the same device, not freed, not overlapping, ordered on this stream, or
NumPy arrays in the common layout; the
relations that the fast version relies on; scalars that fit. Then it packs the machine arguments and calls the
device's entry (``cuLaunchKernel``). Whatever it does not recognise goes, untouched, to ``slow``, which may be another
such function made for other arguments, and in the end ``Launcher.launch``; errors are raised only there.

The code depends on the signature alone. What differs between launches of one signature (function, grid, stream) is
in ``state``: a tuple whose first item holds the numbers and whose other items are the objects compared by identity.
Code is never unloaded, because a finalizer may still launch when the kernel is gone.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable
from typing import Any

import numpy as np

from gridwise.devices import recording, registry
from gridwise.devices.array import ALIGNMENT, Array
from gridwise.devices.memory import Buffer
from gridwise.devices.native import Entry
from gridwise.ir.types import F32, I64, Scalar
from gridwise.lang.records import dataclass

from . import cpython
from .bind import ALIGNED, C_CONTIGUOUS, EXTENT, WRITEABLE
from .cpython import TYPE


@dataclass(frozen=True)
class Parameter:
    """One parameter as native code takes it.

    kind   "array", "host" (a NumPy array, C-contiguous), "float", "int", "enum" (a member of exactly that class),
           "bool" or "const" (that very object).
    type   the machine type of a scalar. ``low``, ``high``: of an integer.
    writes, rank   of an array. ``size``, ``aligned``: bytes of an element, and whether the array starts at a multiple
                   of ``ALIGNMENT``, of a NumPy array.
    """

    kind: str
    type: Scalar | None = None
    writes: bool = False
    low: int = 0
    high: int = 0
    rank: int = 0
    size: int = 0
    aligned: bool = False


@dataclass(frozen=True)
class Shape:
    """Everything that the machine code depends on."""

    parameters: tuple[Parameter, ...]
    strided: tuple[bool, ...]
    extra: tuple[int, ...]  # bytes of each argument of the runtime
    conditions: tuple[tuple[tuple[tuple[int, int], ...], int], ...]  # (slot, factor) terms and constant, >= 0
    guard: tuple[int, ...]  # slots that a coarsened kernel's grid must reach
    coarsen: int
    block: tuple[int, int, int]
    output: int | None  # the array that the grid follows from; None: the grid is given
    domain: int
    names: tuple[bool, ...] = ()  # captured names that must still mean what they did: True; or be missing: False
    cells: int = 0  # captured variables, likewise
    functions: int = 0  # functions that must still have the code and defaults that they had


# The numbers of a launch, at the start of its state: function, stream, grid, most blocks, shared bytes.
_HEADER = struct.Struct("<QQ6I2I")
_FUNCTION, _STREAM, _GRID, _MOST, _SHARED = 0, 8, 16, 28, 40
_EXTRA = _HEADER.size
# Fixed places in the state tuple.
_NUMBERS, _SLOW, _DEVICE, _STREAM_OBJECT, _FIRST = 0, 1, 2, 3, 4
# In Array.raw: address, byte range, extents, strides.
_ADDRESS, _LOW, _HIGH, _EXTENTS = 0, 8, 16, 24


class _Code:
    """LLVM text of one function, as it is written."""

    def __init__(self) -> None:
        self.count = 0
        self.lines: list[str] = []
        self.top: list[str] = []

    def do(self, text: str) -> None:
        self.lines.append("  " + text)

    def value(self, text: str) -> str:
        self.count += 1
        self.do(f"%t{self.count} = {text}")
        return f"%t{self.count}"

    def slot(self, kind: str) -> str:
        """A place on the stack."""
        self.count += 1
        self.top.append(f"  %s{self.count} = alloca {kind}")
        return f"%s{self.count}"

    def at(self, base: str, offset: int) -> str:
        return self.value(f"getelementptr i8, ptr {base}, i64 {offset}") if offset else base

    def load(self, kind: str, base: str, offset: int = 0) -> str:
        return self.value(f"load {kind}, ptr {self.at(base, offset)}")

    def need(self, condition: str) -> None:
        """Go the slow way unless it holds."""
        self.count += 1
        self.do(f"br i1 {condition}, label %k{self.count}, label %slow, !prof !0")
        self.lines.append(f"k{self.count}:")

    def same(self, kind: str, a: str, b: str) -> None:
        self.need(self.value(f"icmp eq {kind} {a}, {b}"))

    def within(self, value: str, low: int, high: int) -> None:
        self.need(self.value(f"icmp sge i64 {value}, {low}"))
        self.need(self.value(f"icmp sle i64 {value}, {high}"))


def _object(thing: object) -> str:
    """An immortal object's address as a constant: types, None, True, False, the empty tuple."""
    return f"inttoptr (i64 {id(thing)} to ptr)"


def _api(name: str) -> str:
    return f"inttoptr (i64 {cpython.function(name)} to ptr)"


class _Writer:
    """Writes the machine code for one ``Shape``."""

    def __init__(self, shape: Shape, address: int):
        self.shape, self.c, self.entry = shape, _Code(), address
        self.slots: list[tuple[str, str]] = []  # of each machine argument: its place, and its value as i64 ("" none)
        self.raws: dict[int, str] = {}
        self.item = _FIRST

    def state(self, item: int) -> str:
        return self.c.load("ptr", "%state", cpython.ITEMS + 8 * item)

    def text(self) -> str:
        c, shape = self.c, self.shape
        c.same("ptr", "%names", "null")
        self._zero(recording.active)
        c.same("i64", "%count", str(len(shape.parameters)))
        self.numbers = c.at(self.state(_NUMBERS), cpython.BYTES)
        if any(p.kind == "host" for p in shape.parameters):
            self._zero(registry.elsewhere)
        for n, p in enumerate(shape.parameters):
            value = c.load("ptr", "%args", 8 * n)
            getattr(self, f"_{p.kind}")(n, p, value)
        self._dependencies()
        self._overlaps()
        self._conditions()
        grid = self._grid()
        places = [place for place, _ in self.slots]
        at = _EXTRA
        for size in shape.extra:
            at += -at % size
            places.append(c.at(self.numbers, at))
            at += size
        params = c.slot(f"[{max(1, len(places))} x ptr]")
        for n, place in enumerate(places):
            c.do(f"store ptr {place}, ptr {c.at(params, 8 * n)}")
        function, stream = (c.load("ptr", self.numbers, o) for o in (_FUNCTION, _STREAM))
        shared = c.load("i32", self.numbers, _SHARED)
        dims = ", ".join(f"i32 {g}" for g in (*grid, *shape.block))
        code = c.value(
            f"call i32 inttoptr (i64 {self.entry} to ptr)(ptr {function}, {dims}, i32 {shared}, ptr {stream}, "
            f"ptr {params}, ptr null)"
        )
        c.same("i32", code, "0")
        return self._assemble()

    def _assemble(self) -> str:
        c, none = self.c, _object(None)
        if not cpython.IMMORTAL_NONE:
            references = c.load("i64", none)
            c.do(f"store i64 {c.value(f'add i64 {references}, 1')}, ptr {none}")
        c.do(f"ret ptr {none}")
        c.lines.append("slow:")
        slow = self.state(_SLOW)
        c.do(f"%r = call ptr {_api('PyObject_Vectorcall')}(ptr {slow}, ptr %args, i64 %count, ptr %names)")
        c.do("ret ptr %r")
        head = "define ptr @launch(ptr %state, ptr %args, i64 %count, ptr %names) nounwind {"
        body = [head, "entry:", *c.top, "  br label %start", "start:", *c.lines, "}"]
        return "\n".join([*body, '!0 = !{!"branch_weights", i32 10000, i32 1}', ""])

    # -- arguments -----------------------------------------------------------------------------------------
    def _array(self, n: int, p: Parameter, value: str) -> None:
        c = self.c
        c.same("ptr", c.load("ptr", value, TYPE), _object(Array))
        c.same("ptr", c.load("ptr", value, cpython.slot(Array, "trait")), self._next())
        c.same("ptr", c.load("ptr", value, cpython.slot(Array, "device")), self.state(_DEVICE))
        buffer = c.load("ptr", value, cpython.slot(Array, "buffer"))
        c.same("ptr", c.load("ptr", buffer, cpython.slot(Buffer, "freed")), _object(False))
        c.same("ptr", c.load("ptr", buffer, cpython.slot(Buffer, "writer")), self.state(_STREAM_OBJECT))
        if p.writes:
            c.same("ptr", c.load("ptr", buffer, cpython.slot(Buffer, "readers")), _object(()))
            c.same("ptr", c.load("ptr", value, cpython.slot(Array, "writable")), _object(True))
        held = c.load("ptr", value, cpython.slot(Array, "raw"))
        c.need(c.value(f"icmp ne ptr {held}, {_object(None)}"))
        raw = c.at(held, cpython.BYTES)
        self.raws[n] = raw
        self.slots.append((raw, ""))
        count = p.rank * (2 if self.shape.strided[n] else 1)
        for axis in range(count):
            place = c.at(raw, _EXTENTS + 8 * axis)
            self.slots.append((place, c.value(f"load i64, ptr {place}")))

    def _host(self, n: int, p: Parameter, value: str) -> None:
        """A NumPy array as ``bind.ArrayBinder`` takes one in few steps, laid out as ``Array.raw`` is."""
        c = self.c
        c.same("ptr", c.load("ptr", value, TYPE), _object(np.ndarray))
        c.same("ptr", c.load("ptr", value, cpython.DTYPE), self._next())
        c.same("i32", c.load("i32", value, cpython.AXES), str(p.rank))
        flags = C_CONTIGUOUS | ALIGNED | (WRITEABLE if p.writes else 0)
        c.same("i32", c.value(f"and i32 {c.load('i32', value, cpython.FLAGS)}, {flags}"), str(flags))
        raw = c.slot(f"[{_EXTENTS + 8 * p.rank} x i8], align 8")
        low, extents = c.load("i64", value, cpython.DATA), c.load("ptr", value, cpython.EXTENTS)
        past = c.value(f"and i64 {low}, {ALIGNMENT - 1}")
        c.need(c.value(f"icmp {'eq' if p.aligned else 'ne'} i64 {past}, 0"))
        self.raws[n] = raw
        self.slots.append((raw, ""))
        count = "1"
        for axis in range(p.rank):
            extent = c.load("i64", extents, 8 * axis)
            c.need(c.value(f"icmp ule i64 {extent}, {EXTENT}"))
            if axis:  # neither factor is beyond 2**31: the product does not wrap
                product = c.value(f"mul i64 {count}, {extent}")
                c.need(c.value(f"icmp ule i64 {product}, {EXTENT}"))
            count = product if axis else extent
            place = c.at(raw, _EXTENTS + 8 * axis)
            c.do(f"store i64 {extent}, ptr {place}")
            self.slots.append((place, extent))
        high = c.value(f"add i64 {low}, {c.value(f'mul i64 {count}, {p.size}')}")
        for at, number in ((_ADDRESS, low), (_LOW, low), (_HIGH, high)):
            c.do(f"store i64 {number}, ptr {c.at(raw, at)}")

    def _zero(self, cell: ctypes.c_int32) -> None:
        self.c.same("i32", self.c.load("i32", f"inttoptr (i64 {ctypes.addressof(cell)} to ptr)"), "0")

    def _float(self, n: int, p: Parameter, value: str) -> None:
        c = self.c
        c.same("ptr", c.load("ptr", value, TYPE), _object(float))
        number, kind = c.load("double", value, cpython.FLOAT), "double"
        if p.type == F32:
            number, kind = c.value(f"fptrunc double {number} to float"), "float"
        place = c.slot(kind)
        c.do(f"store {kind} {number}, ptr {place}")
        self.slots.append((place, ""))

    def _int(self, n: int, p: Parameter, value: str, cls: str = "") -> None:
        c = self.c
        c.same("ptr", c.load("ptr", value, TYPE), cls or _object(int))
        overflow = c.slot("i32")
        number = c.value(f"call i64 {_api('PyLong_AsLongLongAndOverflow')}(ptr {value}, ptr {overflow})")
        c.same("i32", c.load("i32", overflow), "0")
        c.within(number, max(p.low, I64.min), min(p.high, I64.max))
        place = c.slot("i64")
        c.do(f"store i64 {number}, ptr {place}")
        self.slots.append((place, number))

    def _enum(self, n: int, p: Parameter, value: str) -> None:
        self._int(n, p, value, self._next())

    def _bool(self, n: int, p: Parameter, value: str) -> None:
        c = self.c
        true = c.value(f"icmp eq ptr {value}, {_object(True)}")
        false = c.value(f"icmp eq ptr {value}, {_object(False)}")
        c.need(c.value(f"or i1 {true}, {false}"))
        place = c.slot("i8")
        c.do(f"store i8 {c.value(f'zext i1 {true} to i8')}, ptr {place}")
        self.slots.append((place, ""))

    def _const(self, n: int, p: Parameter, value: str) -> None:
        self.c.same("ptr", value, self._next())

    # -- captured names and functions ------------------------------------------------------------------------
    def _next(self) -> str:
        self.item += 1
        return self.state(self.item - 1)

    def _dependencies(self) -> None:
        """Rule 9. State holds, for each name, its namespace, itself and its value; for each captured variable, its
        cell and value; for each function, it, its code and defaults."""
        c = self.c
        for there in self.shape.names:
            space, name = self._next(), self._next()
            now = c.value(f"call ptr {_api('PyDict_GetItemWithError')}(ptr {space}, ptr {name})")
            c.same("ptr", now, self._next() if there else "null")
        for _ in range(self.shape.cells):
            cell = self._next()
            c.same("ptr", c.load("ptr", cell, cpython.HEAD), self._next())
        for _ in range(self.shape.functions):
            fn = self._next()
            for at in (cpython.CODE, cpython.DEFAULTS):
                held = self._next()
                if at == cpython.DEFAULTS:  # none at all is a null pointer there, and None here
                    none = c.value(f"icmp eq ptr {held}, {_object(None)}")
                    held = c.value(f"select i1 {none}, ptr null, ptr {held}")
                c.same("ptr", c.load("ptr", fn, at), held)

    # -- relations -----------------------------------------------------------------------------------------
    def _overlaps(self) -> None:
        """A mutable array shares no byte range with another array."""
        c = self.c
        arrays = list(self.raws)
        for k, a in enumerate(arrays):
            for b in arrays[k + 1 :]:
                if not (self.shape.parameters[a].writes or self.shape.parameters[b].writes):
                    continue
                (low, high), (low2, high2) = (
                    [c.load("i64", self.raws[n], o) for o in (_LOW, _HIGH)] for n in (a, b)
                )
                before = c.value(f"icmp ule i64 {high}, {low2}")
                after = c.value(f"icmp ule i64 {high2}, {low}")
                c.need(c.value(f"or i1 {before}, {after}"))

    def _conditions(self) -> None:
        """The launch's relations, in 128 bits: never wrapped."""
        c = self.c
        for terms, constant in self.shape.conditions:
            total = str(constant)
            for slot, factor in terms:
                wide = c.value(f"sext i64 {self.slots[slot][1]} to i128")
                term = c.value(f"mul i128 {wide}, {factor}") if factor != 1 else wide
                total = c.value(f"add i128 {total}, {term}")
            c.need(c.value(f"icmp sge i128 {total}, 0"))

    def _grid(self) -> list[str]:
        """The grid's three axes as i32, within the device's limits, after coarsening."""
        c, shape = self.c, self.shape
        if shape.output is None:
            axes = [c.load("i32", self.numbers, _GRID + 4 * n) for n in range(3)]
            wide = [c.value(f"zext i32 {axes[0]} to i64")]
        else:
            raw, rank = self.raws[shape.output], shape.parameters[shape.output].rank
            extents = [c.load("i64", raw, _EXTENTS + 8 * n) for n in reversed(range(rank))]
            if rank != shape.domain:  # one axis covers them all; 2**62 elements are the most there can be
                total = extents[0]
                for e in extents[1:]:
                    total = c.value(f"mul i64 {total}, {e}")
                extents = [total]
            wide, axes = [], []
            for n, extent in enumerate(extents):
                up = c.value(f"add i64 {extent}, {shape.block[n] - 1}")
                blocks = c.value(f"udiv i64 {up}, {shape.block[n]}")
                most = c.value(f"zext i32 {c.load('i32', self.numbers, _MOST + 4 * n)} to i64")
                c.need(c.value(f"icmp ule i64 {blocks}, {most}"))
                c.need(c.value(f"icmp ne i64 {blocks}, 0"))
                wide.append(blocks)
                axes.append(c.value(f"trunc i64 {blocks} to i32"))
            axes += ["1"] * (3 - len(axes))
        if shape.coarsen > 1:
            threads = c.value(f"mul i64 {wide[0]}, {shape.block[0]}")
            whole = c.value(f"icmp eq i64 {c.value(f'urem i64 {wide[0]}, {shape.coarsen}')}, 0")
            reached = "false"
            for slot in shape.guard:
                reach = c.value(f"icmp sge i64 {threads}, {self.slots[slot][1]}")
                reached = c.value(f"or i1 {reached}, {reach}")
            c.need(c.value(f"or i1 {whole}, {reached}"))
            up = c.value(f"add i64 {wide[0]}, {shape.coarsen - 1}")
            axes[0] = c.value(f"trunc i64 {c.value(f'udiv i64 {up}, {shape.coarsen}')} to i32")
        return axes


_compiled: dict[tuple[Shape, int], Any] = {}  # method definitions, by what the code depends on


def function(
    name: str, shape: Shape, entry: Entry, grid: tuple[int, int, int], most: tuple[int, int, int],
    slow: Callable[..., Any], device: object, stream: object, objects: tuple[object, ...],
) -> Callable[..., None]:  # fmt: skip
    """The builtin for one specialisation. ``objects``: traits, dtypes, enum classes and constants, by parameter."""
    made = _compiled.get((shape, entry.address))
    if made is None:
        from gridwise.targets.cpu.compile import load_object, to_object

        text = _Writer(shape, entry.address).text()
        made = _compiled[shape, entry.address] = cpython.definition("launch", load_object(to_object(text), "launch"))
    numbers = bytearray(_HEADER.pack(entry.function, entry.stream, *grid, *most, entry.shared, 0))
    for part in entry.extra:
        numbers += b"\0" * (-len(numbers) % len(part)) + part
    state = (bytes(numbers), slow, device, stream, *objects)
    return cpython.builtin(made, state)  # type: ignore[no-any-return]
