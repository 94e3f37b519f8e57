"""The inner loop of the shadow memory, as machine code: one function for each layout of records and kind of access.

A function looks at the records of each element that lanes touch, notes those that conflict, and leaves the lane's own.
It takes the lanes one after the other, so lanes of one operation are seen to meet, too.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from gridwise.lang.records import dataclass
from gridwise.targets.cpu.compile import load_object, to_object

# Where the parts of a record lie: see shadow.py.
LOCAL_BITS, BLOCK_BITS, EPOCH_BITS, SITE_BITS = 10, 22, 18, 12
BLOCK_SHIFT = LOCAL_BITS
EPOCH_SHIFT = BLOCK_SHIFT + BLOCK_BITS
SITE_SHIFT = EPOCH_SHIFT + EPOCH_BITS
LOCAL = (1 << LOCAL_BITS) - 1
BLOCK = (1 << BLOCK_BITS) - 1 << BLOCK_SHIFT
EPOCH = (1 << EPOCH_BITS) - 1 << EPOCH_SHIFT
VALID = 1 << 62

SIGNATURE = ctypes.CFUNCTYPE(
    ctypes.c_int64, *[ctypes.c_void_p] * 3, *[ctypes.c_int64] * 4, *[ctypes.c_void_p] * 2
)


@dataclass(frozen=True)
class Layout:
    """Which groups of records an element has; a writer is one record, the others are two each."""

    groups: tuple[str, ...]  # of "writer", "readers", "atomics", "scopeds"

    @property
    def width(self) -> int:
        return sum(1 if g == "writer" else 2 for g in self.groups)

    def places(self, group: str) -> tuple[int, ...]:
        """The columns of a group; none if it is not there."""
        if group not in self.groups:
            return ()
        start = sum(1 if g == "writer" else 2 for g in self.groups[: self.groups.index(group)])
        return (start,) if group == "writer" else (start, start + 1)

    def checks(self, kind: str) -> list[tuple[int, bool]]:
        """What an access of a kind is compared with: (column, whether only another block's access conflicts)."""
        against = {
            "read": [("writer", False), ("atomics", False)],
            "write": [("writer", False), ("readers", False), ("atomics", False)],
            "atomic": [("writer", False), ("readers", False), ("scopeds", True)],
            "scoped": [("writer", False), ("readers", False), ("atomics", True)],
        }[kind]
        return [(place, apart) for group, apart in against for place in self.places(group)]

    def keeps(self, kind: str) -> tuple[str, ...]:
        """The groups in which an access of a kind is remembered."""
        return {"read": ("readers",), "write": ("writer",), "atomic": ("atomics",),
                "scoped": ("atomics", "scopeds")}[kind]


class _Text:
    """LLVM text of one function, as it is written."""

    def __init__(self) -> None:
        self.count = 0
        self.lines: list[str] = []

    def do(self, text: str) -> None:
        self.lines.append("  " + text)

    def value(self, text: str) -> str:
        self.count += 1
        self.do(f"%t{self.count} = {text}")
        return f"%t{self.count}"

    def at(self, base: str, index: str | int) -> str:
        return self.value(f"getelementptr i64, ptr {base}, i64 {index}")

    def load(self, base: str, index: str | int) -> str:
        return self.value(f"load i64, ptr {self.at(base, index)}")

    def same(self, a: str, b: str, mask: int) -> str:
        """Whether two records agree in a part."""
        part = self.value(f"and i64 {self.value(f'xor i64 {a}, {b}')}, {mask}")
        return self.value(f"icmp eq i64 {part}, 0")

    def empty(self, record: str) -> str:
        return self.value(f"icmp eq i64 {record}, 0")

    def both(self, a: str, b: str) -> str:
        return self.value(f"and i1 {a}, {b}")

    def either(self, a: str, b: str) -> str:
        return self.value(f"or i1 {a}, {b}")

    def no(self, a: str) -> str:
        return self.value(f"xor i1 {a}, true")

    @contextmanager
    def when(self, condition: str, rare: bool = False) -> Iterator[None]:
        self.count += 1
        name = f"b{self.count}"
        self.do(f"br i1 {condition}, label %{name}, label %{name}x" + (", !prof !0" if rare else ""))
        self.lines.append(f"{name}:")
        yield
        self.do(f"br label %{name}x")
        self.lines.append(f"{name}x:")


def _check(t: _Text, column: int, apart: bool) -> None:
    """Note the record in a column if it is of another thread that nothing orders with this lane's."""
    old = t.load("%base", column)
    bad = t.no(t.either(t.empty(old), t.same(old, "%me", BLOCK if apart else LOCAL | BLOCK)))
    if not apart:
        bad = t.both(bad, t.no(t.both(t.same(old, "%me", BLOCK), t.no(t.same(old, "%me", EPOCH)))))
    with t.when(bad, rare=True):
        count = t.load("%count", 0)
        entry = t.at("%found", t.value(f"shl i64 {count}, 1"))
        t.do(f"store i64 %k, ptr {entry}")
        t.do(f"store i64 {old}, ptr {t.at(entry, 1)}")
        t.do(f"store i64 {t.value(f'add i64 {count}, 1')}, ptr %count")


def _keep(t: _Text, first: int, second: int) -> None:
    """Remember this lane in one of two records, of accesses that do not conflict among themselves."""
    old = t.load("%base", first)
    near = t.same(old, "%me", BLOCK)
    # A second record of an earlier interval may stay: it conflicts with nothing that the first does not.
    stale = t.either(t.empty(old), t.both(near, t.no(t.same(old, "%me", EPOCH))))
    with t.when(stale):
        t.do(f"store i64 %me, ptr {t.at('%base', first)}")
    with t.when(t.no(t.either(stale, t.same(old, "%me", LOCAL | BLOCK)))):
        other = t.load("%base", second)
        # Two of different blocks: nothing tells more.
        settled = t.no(t.either(t.empty(other), t.same(other, old, BLOCK)))
        with t.when(t.no(settled)):
            t.do(f"store i64 %me, ptr {t.at('%base', second)}")


def text(layout: Layout, kind: str) -> str:
    """LLVM text of the function ``record``: see ``Shadow.record``. It returns how many conflicts it noted."""
    t = _Text()
    lane = t.value("phi i64 [ %k, %plain ], [ %chosen, %some ]")
    t.do(f"%me = or i64 {t.load('%who', lane)}, %tag")
    scaled = t.value(f"mul i64 {t.load('%at', '%k')}, %scale")
    place = t.value(f"add i64 {scaled}, %first")
    t.do(f"%base = getelementptr i64, ptr %records, i64 {t.value(f'mul i64 {place}, {layout.width}')}")
    for column, apart in layout.checks(kind):
        _check(t, column, apart)
    for group in layout.keeps(kind):
        places = layout.places(group)
        if group == "writer":
            t.do(f"store i64 %me, ptr {t.at('%base', places[0])}")
        else:
            _keep(t, places[0], places[1])
    body = "\n".join(t.lines)
    return f"""define i64 @record(ptr noalias %at, ptr noalias %lanes, ptr noalias %who, i64 %tag, i64 %scale,
    i64 %first, i64 %n, ptr noalias %records, ptr noalias %found) {{
  %count = alloca i64
  store i64 0, ptr %count
  %all = icmp eq ptr %lanes, null
  br label %head
head:
  %k = phi i64 [ 0, %0 ], [ %next, %tail ]
  %more = icmp slt i64 %k, %n
  br i1 %more, label %body, label %done
body:
  br i1 %all, label %plain, label %some
plain:
  br label %go
some:
  %which = getelementptr i64, ptr %lanes, i64 %k
  %chosen = load i64, ptr %which
  br label %go
go:
{body}
  br label %tail
tail:
  %next = add i64 %k, 1
  br label %head
done:
  %result = load i64, ptr %count
  ret i64 %result
}}
!0 = !{{!"branch_weights", i32 1, i32 100000}}
"""


@functools.cache
def recorder(layout: Layout, kind: str) -> Callable[..., int]:
    """The machine code, made once a process."""
    # Without loops but the one, the short way of compiling gives the same speed.
    return SIGNATURE(load_object(to_object(text(layout, kind), simple=True), "record"))
