"""The CPU as a device: kernels compiled by LLVM for this processor, on all its cores.

Memory is the host's, so a NumPy array is used in place. Work runs when it is queued (streams keep order by
construction) and a fault waits for the next synchronisation, as on any device.
"""

from __future__ import annotations

import ctypes
import math
import pickle
import struct
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gridwise.ir.core import Kernel, Op
from gridwise.ir.printer import to_text
from gridwise.ir.types import ArrayType, Scalar
from gridwise.lang.errors import DeviceFault, OutOfMemoryError
from gridwise.lang.records import dataclass
from gridwise.targets.cpu.capabilities import CAPS, MAX_THREADS_PER_BLOCK, SHARED_BYTES

from . import faults, printing
from .base import Arg, ArrayArg, Buffer, Device, Event, Limits, Module, Stream
from .cpu_pool import Pool
from .native import Entry

INLINE = 1 << 16  # operations below which waking another core costs more than it saves
CHUNKS = 8  # pieces a worker, so that uneven work spreads
HEAVY = 1 << 16  # operations a block above which workers take one at a time


class CpuEvent(Event):
    """The moment at which it was recorded: all work queued before it has run."""

    def __init__(self, stream: CpuStream):
        self.stream, self.time = stream, time.perf_counter()

    def synchronize(self) -> None:
        self.stream.synchronize()

    def done(self) -> bool:
        return True

    def elapsed_since(self, start: Event) -> float:
        assert isinstance(start, CpuEvent)
        return self.time - start.time


class CpuStream(Stream):
    """Runs its work at once and keeps the first fault until it is synchronised."""

    def __init__(self, device: CpuDevice):
        self.device: CpuDevice = device
        self.pending: DeviceFault | None = None

    def synchronize(self) -> None:
        if self.pending is not None:
            fault, self.pending = self.pending, None
            raise fault

    def record(self) -> CpuEvent:
        return CpuEvent(self)

    def wait(self, event: Event) -> None:
        """Nothing to do: the work before the event has run."""


@dataclass
class Loaded:
    """A kernel ready to run: its native function, how its arguments are packed, and what a launch must provide."""

    address: int
    call: Callable[..., None]
    pack: struct.Struct
    cells: Callable[[], Any]  # memory for what ``pack`` packs
    convert: dict[int, Callable[[Any], Any]]  # scalar parameters that ``struct`` cannot pack as they are
    unit: str
    scratch: int
    faults: bool
    prints: bool
    weight: int  # operations a thread, roughly
    open_ended: bool  # loops whose length only the launch tells: they may walk whole arrays
    entry: int = 0  # of the function for native launchers, once it is made


_FORMATS = {"i8": "b", "i16": "h", "i32": "i", "i64": "q", "u8": "B", "u16": "H", "u32": "I", "u64": "Q", "f16": "H",
            "bf16": "H", "f32": "f", "f64": "d", "bool": "?", "f8e4m3": "B", "f8e5m2": "B"}


def _packing(kernel: Kernel) -> struct.Struct:
    """Eight bytes a cell: the header of ``targets/cpu/emit.py``, then the kernel's slots."""
    cells = ["qqqQQqqq"]
    for slot in kernel.slots():
        size = 8 if slot.type is None else slot.type.size
        code = "Q" if slot.type is None else _FORMATS[slot.type.name]
        cells.append(code + (f"{8 - size}x" if size < 8 else ""))
    return struct.Struct("<" + "".join(cells))


def _bits(t: Scalar) -> Callable[[Any], int]:
    """A small float as its bits."""
    return lambda value: int(np.asarray(value, t.dtype).view(f"u{t.size}")[()])


def _weight(kernel: Kernel) -> int:
    """Operations that a thread runs, counting a loop's body sixteen times: enough to tell small from large."""

    def count(region: Any, times: int) -> int:
        return sum(
            times + sum(count(r, times * (16 if op.code in ("for", "while") else 1)) for r in op.regions)
            for op in region.ops
        )

    return count(kernel.body, 1)


def _open_ended(kernel: Kernel) -> bool:
    return any(
        op.code == "while" or (op.code == "for" and any(v.op is None or v.op.code != "const" for v in op.operands))
        for op in kernel.walk()
    )


class CpuDevice(Device):
    """This machine's processor. ``workers`` is the number of cores used."""

    kind = target = "cpu"

    def __init__(self, name: str = "cpu"):
        from gridwise.targets.cpu.capabilities import host

        self.machine = host()
        self.pool = Pool()
        self.name = name
        self.caps = CAPS
        self.limits = Limits(
            max_threads_per_block=MAX_THREADS_PER_BLOCK,
            max_block=(MAX_THREADS_PER_BLOCK,) * 3,
            max_grid=(2**31 - 1,) * 3,
            shared_bytes=SHARED_BYTES,
            subgroup_sizes=(self.machine.lanes,),
            max_buffer_bytes=2**47,
        )
        self.description = f"{self.machine.cpu}, {self.workers} cores, LLVM"
        self.default_stream: CpuStream = CpuStream(self)
        self.streams = [self.default_stream]

    @property
    def workers(self) -> int:
        return self.pool.workers

    # -- memory ------------------------------------------------------------------------------------------
    def allocate(self, nbytes: int) -> Buffer:
        """Aligned to 64 bytes, a cache line and the widest vector."""
        size = -(-max(nbytes, 1) // 64) * 64
        try:
            raw = np.empty(size + 64, np.uint8)
        except MemoryError:
            raise OutOfMemoryError(f"{self.name}: {nbytes} bytes could not be allocated") from None
        start = -raw.ctypes.data % 64
        memory = raw[start : start + size]
        return Buffer(memory, nbytes, memory.ctypes.data, raw)

    def free(self, buffer: Buffer) -> None:
        """The memory goes when the last reference to it does; from now on it must not be used."""
        buffer.freed = True
        buffer.handle = buffer.owner = None

    def write(self, buffer: Buffer, offset: int, data: np.ndarray, stream: Stream, blocking: bool = True) -> None:
        buffer.handle[offset : offset + data.nbytes] = _bytes(data)

    def read(self, buffer: Buffer, offset: int, out: np.ndarray, stream: Stream, blocking: bool = True) -> None:
        if blocking:
            stream.synchronize()
        _bytes(out)[:] = buffer.handle[offset : offset + out.nbytes]

    def copy(self, src: Buffer, src_offset: int, dst: Buffer, dst_offset: int, nbytes: int, stream: Stream) -> None:
        source = src.handle[src_offset : src_offset + nbytes]
        dst.handle[dst_offset : dst_offset + nbytes] = source.copy() if src is dst else source

    def fill(self, buffer: Buffer, offset: int, nbytes: int, byte: int, stream: Stream) -> None:
        buffer.handle[offset : offset + nbytes] = byte

    # -- code --------------------------------------------------------------------------------------------
    def code_key(self) -> str:
        machine = self.machine
        return f"{machine.triple} {machine.cpu} {machine.features} {machine.lanes}"

    def load(self, kernel: Kernel, code: bytes | None = None) -> Module:
        from gridwise.targets.cpu import compile as native

        if code is None:
            from gridwise.targets.cpu.emit import emit

            emitted = emit(kernel, self.machine)
            compiled = native.to_object(emitted.text, emitted.simple)
            code = pickle.dumps((emitted, compiled))
        else:
            emitted, compiled = pickle.loads(code)
        address = native.load_object(compiled, emitted.name)
        small = {n: _bits(p.type) for n, p in enumerate(kernel.params)
                 if isinstance(p.type, Scalar) and p.type.is_float and p.type.bits < 32}
        codes = {op.code for op in kernel.walk()}
        packing = _packing(kernel)
        loaded = Loaded(
            address=address,
            call=native.KERNEL(address),
            pack=packing,
            cells=ctypes.c_uint64 * (packing.size // 8),
            convert=small,
            unit=emitted.unit,
            scratch=emitted.context + emitted.shared,
            faults="fault" in codes,
            prints="print" in codes,
            weight=_weight(kernel),
            open_ended=_open_ended(kernel),
        )
        stages = {
            "simt": lambda: to_text(kernel),
            "llvm": emitted.text,
            "asm": lambda: native.to_assembly(emitted.text, emitted.simple),
        }
        return Module(kernel, loaded, stages, {"shared_bytes": emitted.shared, "lanes": self.machine.lanes}, code)

    def launch(
        self, module: Module, grid: tuple[int, int, int], args: Sequence[Arg], stream: Stream, shared_bytes: int = 0
    ) -> None:
        assert isinstance(stream, CpuStream)
        kernel, loaded = module.kernel, module.handle
        if 0 in grid:
            return
        record = faults.fresh() if loaded.faults else None
        lines = np.empty(printing.WORDS, np.uint32) if loaded.prints else None
        if lines is not None:
            lines[: printing.HEADER] = 0
        cells: list[Any] = [
            *grid,
            record.ctypes.data if record is not None else 0,
            lines.ctypes.data if lines is not None else 0,
            shared_bytes,
            0,
            0,
        ]
        elements = 0
        for n, (param, arg) in enumerate(zip(kernel.params, args, strict=True)):
            if isinstance(arg, ArrayArg):
                elements += math.prod(arg.shape)
                cells += (arg.buffer.address + arg.offset, *arg.shape)
                if param.type.strided:  # type: ignore[union-attr]
                    cells += arg.strides
            else:
                cells.append(loaded.convert[n](arg) if n in loaded.convert else arg)
        packed = loaded.cells()
        loaded.pack.pack_into(packed, 0, *cells)
        self._run(kernel, loaded, grid, packed, shared_bytes, elements if loaded.open_ended else 0)
        if record is not None and stream.pending is None:
            stream.pending = faults.decode(record, kernel, grid)
        if lines is not None:
            printing.show(lines, lambda tag: kernel)

    def entry(self, module: Module, stream: Stream) -> Entry | None:
        """For kernels that record no fault and print nothing (those need Python after the launch), and whose shared
        memory is not sized by the launch."""
        from .cpu_entry import STACK, start

        loaded: Loaded = module.handle
        sized = any(op.code == "shared" and launch_sized(op) for op in module.kernel.body.ops)
        if loaded.faults or loaded.prints or sized or loaded.scratch > STACK:
            return None
        if loaded.entry == 0:
            kernel = module.kernel
            loaded.entry = start(
                kernel, loaded.address, loaded.unit, loaded.scratch, loaded.weight, loaded.open_ended, INLINE)
        return Entry(loaded.entry, 0, 0, 0, ())

    def _run(
        self, kernel: Kernel, loaded: Loaded, grid: tuple[int, int, int], packed: Any, shared_bytes: int,
        walked: int,
    ) -> None:  # fmt: skip
        """``walked``: elements that loops may go through."""
        total = math.prod(grid)
        if loaded.unit == "row":
            total = grid[1] * kernel.block[1] * grid[2] * kernel.block[2]
        threads = math.prod(grid) * math.prod(kernel.block)
        cells = ctypes.addressof(packed)
        scratch = loaded.scratch + (shared_bytes if loaded.scratch or shared_bytes else 0)
        work = max(threads * loaded.weight, walked)
        if work < INLINE or self.workers == 1 or total == 1:
            loaded.call(cells, total, total, self.pool.scratch(scratch))
            return
        chunk = 1 if work > HEAVY * total else -(-total // (self.workers * CHUNKS))
        self.pool.everyone(lambda: loaded.call(cells, chunk, total, self.pool.scratch(scratch)), self.workers)

    # -- order -------------------------------------------------------------------------------------------
    def stream(self) -> Stream:
        self.streams.append(CpuStream(self))
        return self.streams[-1]

    def synchronize(self) -> None:
        for stream in self.streams:
            stream.synchronize()


def launch_sized(op: Op) -> bool:
    """Does a shared array take its first extent from the launch?"""
    t = op.result.type if op.result is not None else None
    return isinstance(t, ArrayType) and t.shape is not None and t.shape[0] == 0


def _bytes(a: np.ndarray) -> np.ndarray:
    """A C-contiguous array's bytes, as a view."""
    return a.reshape(-1).view(np.uint8)


def find() -> list[str]:
    """Always here."""
    return ["cpu"]


def open(name: str) -> CpuDevice:
    """The device that ``gridwise.device("cpu")`` gives."""
    return CpuDevice(name)


__all__ = ["CpuDevice", "find", "open"]
