"""A kernel on a WebGPU device: its shader variants, pipelines, and the binding of arguments to them."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from gridwise.ir.core import Kernel
from gridwise.ir.types import ArrayType
from gridwise.lang.errors import LaunchValueError
from gridwise.lang.records import dataclass, field
from gridwise.targets.wgsl import Shader, emit
from gridwise.targets.wgsl.capabilities import BLOCKS_PER_AXIS, OFFSET_ALIGNMENT
from gridwise.targets.wgsl.compile import compile_shader
from gridwise.targets.wgsl.dialect import Dialect, Numerics
from gridwise.targets.wgsl.layout import Variant

from .array import contiguous_strides, span
from .base import Arg, ArrayArg

if TYPE_CHECKING:
    from .webgpu_queue import Queue

ALIGNMENT = OFFSET_ALIGNMENT
BOUND = 512  # launches remembered for each kernel


@dataclass
class Bound:
    """A launch with these arrays and this grid, ready to be recorded; scalars are filled in each time."""

    program: Program
    group: Any  # of group 0, or None without arrays
    starts: tuple[int, ...]  # of the arrays
    dispatch: tuple[int, int, int]
    buffers: tuple[int, ...]  # ids of the buffers it touches
    packed: bytes = b""  # the whole launch block, where nothing in it changes from launch to launch


class Program:
    """One variant of a kernel: its shader and pipeline."""

    def __init__(self, handle: Any, shader: Shader, queue: Queue):
        self.handle, self.shader, self.queue = handle, shader, queue
        self.argument_bytes = shader.layout.words * 4
        array_kinds = ["storage" if b.writable else "read-only-storage" for b in shader.bindings]
        self.array_layout = self._layout(array_kinds, [])
        kinds, numbers = ["uniform"], [0]
        if shader.faults:
            kinds.append("storage")
            numbers.append(1)
        if shader.prints:
            kinds.append("storage")
            numbers.append(2)
        self.launch_layout = self._layout(kinds, numbers)
        layouts = handle.create_pipeline_layout(bind_group_layouts=[self.array_layout, self.launch_layout])
        self.pipeline = compile_shader(handle, shader, layouts)
        self._launch_group: Any = None
        self.groups: dict[tuple[Any, ...], Any] = {}

    def _layout(self, kinds: Sequence[str], numbers: Sequence[int]) -> Any:
        """A bind group layout; ``numbers`` given: of the launch group, whose first two bindings move."""
        entries = []
        for n, kind in enumerate(kinds):
            binding = numbers[n] if numbers else n
            dynamic = bool(numbers) and binding < 2
            entries.append(
                {"binding": binding, "visibility": 0x4, "buffer": {"type": kind, "has_dynamic_offset": dynamic}}
            )
        return self.handle.create_bind_group_layout(entries=entries)

    def launch_group(self) -> Any:
        """The bind group of arguments, faults and prints; every launch of this program uses the same."""
        if self._launch_group is None:
            from .webgpu_queue import FAULT_BYTES

            size = -(-self.argument_bytes // 16) * 16
            entries = [{"binding": 0, "resource": {"buffer": self.queue.argument_arena(), "offset": 0, "size": size}}]
            if self.shader.faults:
                place = {"buffer": self.queue.faults(), "offset": 0, "size": FAULT_BYTES}
                entries.append({"binding": 1, "resource": place})
            if self.shader.prints:
                entries.append({"binding": 2, "resource": {"buffer": self.queue.prints()}})
            self._launch_group = self.handle.create_bind_group(layout=self.launch_layout, entries=entries)
        return self._launch_group

    def array_group(self, ranges: tuple[tuple[Any, int, int], ...]) -> tuple[Any, bool]:
        """The bind group of these (buffer, offset, size) and whether it is new."""
        key = tuple((id(b), offset, size) for b, offset, size in ranges)
        group = self.groups.get(key)
        if group is not None:
            return group, False
        entries = [
            {"binding": n, "resource": {"buffer": b, "offset": offset, "size": size}}
            for n, (b, offset, size) in enumerate(ranges)
        ]
        group = self.groups[key] = self.handle.create_bind_group(layout=self.array_layout, entries=entries)
        return group, True


@dataclass
class Loaded:
    """A kernel loaded on a device. Variants are compiled when a launch first needs them."""

    device: Any
    kernel: Kernel
    dialect: Dialect
    numerics: Numerics
    queue: Queue
    programs: dict[Variant, Program] = field(default_factory=dict)
    tag: int = 0

    def __post_init__(self) -> None:
        self.arrays = [n for n, p in enumerate(self.kernel.params) if p.is_array]
        self.scalars = len(self.arrays) < len(self.kernel.params)
        self.bound: dict[tuple[Any, ...], Bound] = {}
        plain = Variant(binding=tuple(range(len(self.arrays))))
        self.plain = plain
        self.strided = [_strided(self.kernel.params[n].type) for n in self.arrays]
        self.sizes = [_size(self.kernel.params[n].type) for n in self.arrays]
        # Refuses at load what cannot be emitted; a launch-sized shared array has no size yet.
        self.first = emit(self.kernel, self.dialect, self.numerics, plain)
        writable = {n for b in self.first.bindings if b.writable for n in b.params}
        self.writable = [n in writable for n in self.arrays]
        self.tag = self.queue.tag(self.kernel) if self.first.prints else 0

    def text(self) -> str:
        """The WGSL of the common launch."""
        return self.first.text

    def program(self, variant: Variant) -> Program:
        found = self.programs.get(variant)
        if found is None:
            same = variant == self.plain
            shader = self.first if same else emit(self.kernel, self.dialect, self.numerics, variant)
            found = self.programs[variant] = Program(self.device, shader, self.queue)
        return found

    def forget(self, buffer: int) -> None:
        """Drop the bind groups with a buffer that is going away."""
        self.bound = {key: b for key, b in self.bound.items() if buffer not in b.buffers}
        for program in self.programs.values():
            for key in [k for k in program.groups if any(b == buffer for b, _, _ in k)]:
                del program.groups[key]

    def bind(self, blocks: tuple[int, int, int], args: Sequence[Arg], shared_bytes: int, most: int) -> Bound:
        """Decide the variant and place every array; remembered for the next launch with the same ones."""
        key: list[Any] = [blocks, shared_bytes]
        for n in self.arrays:
            a = args[n]
            assert isinstance(a, ArrayArg)
            key += (id(a.buffer.handle), a.offset, a.shape, a.strides)
        known = self.bound.get(tuple(key))
        if known is None:
            if len(self.bound) >= BOUND:
                self.bound.clear()
            known = self.bound[tuple(key)] = self._bind(blocks, args, shared_bytes, most)
            if not self.scalars and not self.first.prints:
                known.packed = self.block(known, [*blocks, 0], args)
        return known

    def block(self, bound: Bound, header: Sequence[int], args: Sequence[Arg]) -> bytes:
        """The launch block."""
        shader = bound.program.shader
        return struct.pack(shader.layout.format, *header, *self._values(args, bound.starts, shader.units))

    def _bind(self, blocks: tuple[int, int, int], args: Sequence[Arg], shared_bytes: int, most: int) -> Bound:
        arrays = [args[n] for n in self.arrays]
        lows, highs = [], []
        for n, a in enumerate(arrays):
            assert isinstance(a, ArrayArg)
            low, high = span(a.shape, a.strides if self.strided[n] else contiguous_strides(a.shape))
            lows.append(a.offset + low * self.sizes[n])
            highs.append(a.offset + max(high, low + 1) * self.sizes[n])
        leaders = self._leaders(arrays)
        begin: dict[int, int] = {}
        end: dict[int, int] = {}
        for n, leader in enumerate(leaders):
            begin[leader] = min(begin.get(leader, lows[n]), lows[n] // ALIGNMENT * ALIGNMENT)
            end[leader] = max(end.get(leader, 0), highs[n])
        for leader in begin:
            begin[leader] = begin[leader] // ALIGNMENT * ALIGNMENT
        starts = [a.offset - begin[leaders[n]] for n, a in enumerate(arrays) if isinstance(a, ArrayArg)]
        folded = max(blocks) > BLOCKS_PER_AXIS
        variant = self.plain
        if any(starts) or folded or shared_bytes or leaders != self.plain.binding:
            variant = Variant(any(starts), folded, leaders, shared_bytes)
        program = self.program(variant)
        ranges = []
        for leader in begin:
            handle = arrays[leader].buffer.handle  # type: ignore[union-attr]
            size = handle.size - begin[leader]
            if size > most:
                size = -(-(end[leader] - begin[leader]) // 16) * 16
            if size > most:
                name = self.kernel.params[self.arrays[leader]].name
                raise LaunchValueError(
                    f"{self.kernel.name}: {name} spans {size} bytes; this device binds at most {most} at once"
                )
            ranges.append((handle, begin[leader], size))
        group = None
        if ranges:
            group, new = program.array_group(tuple(ranges))
            if new:
                for handle, _, _ in ranges:
                    self.queue.remember(handle, self)
        return Bound(program, group, tuple(starts), _dispatch(blocks, folded), tuple(id(h) for h, _, _ in ranges))

    def _leaders(self, arrays: Sequence[Any]) -> tuple[int, ...]:
        """Which binding each array uses: its own, unless it shares its buffer with one that is written."""
        by_buffer: dict[int, list[int]] = {}
        for n, a in enumerate(arrays):
            by_buffer.setdefault(id(a.buffer.handle), []).append(n)
        leaders = list(range(len(arrays)))
        for members in by_buffer.values():
            if len(members) > 1 and any(self.writable[n] for n in members):
                for n in members:
                    leaders[n] = members[0]
        return tuple(leaders)

    def _values(self, args: Sequence[Arg], starts: Sequence[int], units: Sequence[int]) -> list[Any]:
        values: list[Any] = []
        at = 0
        for n, a in enumerate(args):
            if isinstance(a, ArrayArg):
                values.append(starts[at] // units[at])
                values += a.shape
                if self.strided[at]:
                    values += a.strides
                at += 1
            else:
                values.append(_plain(a, self.kernel.params[n].type))
        return values


def _plain(value: Any, t: Any) -> Any:
    """A scalar argument as struct.pack takes it, rounded to its type."""
    if t.is_float:
        import numpy as np

        return float(np.asarray(value, np.float64).astype(t.dtype))
    return int(value)


def _strided(t: Any) -> bool:
    assert isinstance(t, ArrayType)
    return t.strided


def _size(t: Any) -> int:
    assert isinstance(t, ArrayType)
    return t.elem.size


def _dispatch(blocks: tuple[int, int, int], folded: bool) -> tuple[int, int, int]:
    """Workgroups to ask for: the blocks, or for a folded grid at least as many."""
    if not folded:
        return blocks
    total = blocks[0] * blocks[1] * blocks[2]
    x = min(total, BLOCKS_PER_AXIS)
    y = min(-(-total // x), BLOCKS_PER_AXIS)
    return x, y, -(-total // (x * y))
