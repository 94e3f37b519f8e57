"""The check device: kernels interpreted over NumPy. It is the specification that every other device is held to.

Work runs when it is queued, so streams keep order by construction; a fault waits for the next synchronisation, as
on any device. Memory is the host's.
"""

from __future__ import annotations

import gc
import sys
import threading
import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from gridwise.ir.core import Kernel
from gridwise.ir.printer import to_text
from gridwise.ir.types import Scalar
from gridwise.lang.errors import DeviceError, Loc, OutOfMemoryError
from gridwise.lang.target import Cap

from ..base import Arg, ArrayArg, Buffer, Device, Event, Limits, Module, Stream
from .conversion import constant
from .findings import RAISED, Finding, Findings, error
from .frame import Launch
from .interpret import Program
from .memory import global_space
from .watch import Watch

LIMITS = Limits(
    max_threads_per_block=1024,
    max_block=(1024, 1024, 1024),
    max_grid=(2**31 - 1, 65535, 65535),
    shared_bytes=256 * 1024,
    subgroup_sizes=(4, 8, 16, 32, 64),
    max_buffer_bytes=2**40,
)
CAPS = frozenset(Cap) - {Cap.TENSOR_CORES}
INSIDE = __name__.split(".")[0]


class CheckBuffer(Buffer):
    """Host memory that knows which of its bytes were ever written (``written`` is None when all were)."""

    __slots__ = ("made_at", "written")

    def __init__(self, nbytes: int, watched: bool):
        size = -(-max(nbytes, 1) // 16) * 16
        try:
            raw = np.empty(size + 16, np.uint8)
            # A pattern that is a NaN in every float type, so that what reads it without a check shows.
            raw[:] = 0xFF
        except MemoryError:
            raise OutOfMemoryError(f"check: {nbytes} bytes could not be allocated") from None
        start = -raw.ctypes.data % 16
        memory = raw[start : start + size]
        super().__init__(memory, nbytes, memory.ctypes.data, raw)
        self.written: np.ndarray[Any, Any] | None = np.zeros(size, np.uint8) if watched else None
        self.made_at = _caller() if watched else None

    def mark(self, start: int, stop: int) -> None:
        """Bytes that the host wrote."""
        if self.written is not None:
            if start == 0 and stop >= self.nbytes:
                self.written = None
            else:
                self.written[start:stop] = 0xFF

    def settle(self) -> None:
        """Forget the record once every byte was written."""
        if self.written is not None and self.written[: self.nbytes].all():
            self.written = None


def _caller() -> Loc | None:
    """The innermost line outside this package: where the user allocated."""
    frame = sys._getframe(1)
    while frame is not None:
        if frame.f_globals.get("__name__", "").split(".")[0] != INSIDE:
            return Loc(frame.f_code.co_filename, frame.f_lineno)
        frame = frame.f_back  # type: ignore[assignment]
    return None


class CheckEvent(Event):
    """The moment at which it was recorded."""

    def __init__(self, stream: CheckStream):
        self.stream, self.time = stream, time.perf_counter()

    def synchronize(self) -> None:
        self.stream.raise_pending()

    def done(self) -> bool:
        return True

    def elapsed_since(self, start: Event) -> float:
        assert isinstance(start, CheckEvent)
        return self.time - start.time


class CheckStream(Stream):
    """Runs its work at once and keeps the faults until it is synchronised."""

    def __init__(self, device: CheckDevice):
        self.device: CheckDevice = device
        self.pending: list[DeviceError] = []

    def raise_pending(self) -> None:
        if self.pending:
            first = self.pending[0]
            self.pending.clear()
            raise first

    def synchronize(self) -> None:
        self.raise_pending()

    def record(self) -> CheckEvent:
        return CheckEvent(self)

    def wait(self, event: Event) -> None:
        """Nothing to do: the work before the event has run."""


class CheckDevice(Device):
    """Interprets kernels; with ``sanitize`` also watches every access.

    sanitize       find data races, accesses out of bounds, reads of uninitialised memory and barriers that not all
                   threads reach. Blocks run, atomics happen and colliding stores land in an order drawn from ``seed``.
    subgroup_size  threads a subgroup, a power of two up to 64; None draws one from ``seed`` for every launch.
    collect        keep findings in ``findings`` only; otherwise the next synchronisation raises ``SanitizerError``.
    coverage       keep the lines of kernels that at least one thread ran in ``lines``.
    """

    kind = target = "check"
    software = True

    def __init__(
        self,
        sanitize: bool = True,
        seed: int = 0,
        subgroup_size: int | None = 32,
        *,
        collect: bool = False,
        coverage: bool = False,
        name: str = "check",
    ):
        if subgroup_size is not None and subgroup_size not in LIMITS.subgroup_sizes:
            raise ValueError(f"subgroup_size is one of {LIMITS.subgroup_sizes}, not {subgroup_size}")
        self.name, self.limits, self.caps = name, LIMITS, CAPS
        self.description = "reference interpreter" + (" with sanitizer" if sanitize else "")
        self.sanitize, self.collect = sanitize, collect
        self.subgroup_size = subgroup_size
        self.random = np.random.default_rng(seed)
        self.findings = Findings()
        self.launches = 0
        self.running = threading.Lock()  # one launch at a time, as a stream would have it
        self.lines: dict[str, set[int]] | None = {} if coverage else None
        self.default_stream: CheckStream = CheckStream(self)
        self.streams = [self.default_stream]
        self.buffers: dict[int, CheckBuffer] = {}

    # -- memory ------------------------------------------------------------------------------------------
    def allocate(self, nbytes: int) -> Buffer:
        buffer = CheckBuffer(nbytes, self.sanitize)
        if self.sanitize:
            self.findings.allocated(buffer)
        return buffer

    def free(self, buffer: Buffer) -> None:
        """The memory goes when the last reference to it does; from now on it must not be used."""
        buffer.freed = True
        buffer.handle = buffer.owner = None

    def write(
        self, buffer: Buffer, offset: int, data: np.ndarray, stream: Stream, blocking: bool = True
    ) -> None:
        assert isinstance(buffer, CheckBuffer)
        buffer.handle[offset : offset + data.nbytes] = _bytes(data)
        buffer.mark(offset, offset + data.nbytes)

    def read(self, buffer: Buffer, offset: int, out: np.ndarray, stream: Stream, blocking: bool = True) -> None:
        if blocking:
            stream.synchronize()
        _bytes(out)[:] = buffer.handle[offset : offset + out.nbytes]

    def copy(self, src: Buffer, src_offset: int, dst: Buffer, dst_offset: int, nbytes: int, stream: Stream) -> None:
        assert isinstance(src, CheckBuffer) and isinstance(dst, CheckBuffer)
        dst.handle[dst_offset : dst_offset + nbytes] = src.handle[src_offset : src_offset + nbytes].copy()
        if src.written is None:
            dst.mark(dst_offset, dst_offset + nbytes)
        else:  # what was never written stays so
            if dst.written is None and self.sanitize:
                dst.written = np.full(dst.handle.size, 0xFF, np.uint8)
            if dst.written is not None:
                dst.written[dst_offset : dst_offset + nbytes] = src.written[src_offset : src_offset + nbytes]

    def fill(self, buffer: Buffer, offset: int, nbytes: int, byte: int, stream: Stream) -> None:
        assert isinstance(buffer, CheckBuffer)
        buffer.handle[offset : offset + nbytes] = byte
        buffer.mark(offset, offset + nbytes)

    # -- code --------------------------------------------------------------------------------------------
    def load(self, kernel: Kernel, code: bytes | None = None) -> Module:
        """Translate an analysed kernel; one lowered for a target runs too, so that passes can be tested."""
        return Module(kernel, Program(kernel, coverage=self.lines is not None), {"ir": lambda: to_text(kernel)})

    def launch(
        self, module: Module, grid: tuple[int, int, int], args: Sequence[Arg], stream: Stream, shared_bytes: int = 0
    ) -> None:
        assert isinstance(stream, CheckStream)
        with self.running:
            self._launch(module, grid, args, stream, shared_bytes)

    def _launch(
        self, module: Module, grid: tuple[int, int, int], args: Sequence[Arg], stream: CheckStream, shared_bytes: int
    ) -> None:
        kernel = module.kernel
        grid = (-(-grid[0] // kernel.coarsen), grid[1], grid[2])
        arguments: list[Any] = []
        for p, arg in zip(kernel.params, args, strict=True):
            if isinstance(arg, ArrayArg):
                assert p.is_array
                arguments.append(global_space(p.name, p.type, arg))  # type: ignore[arg-type]
            else:
                assert isinstance(p.type, Scalar)
                arguments.append(constant(arg, p.type))
        launch = Launch(kernel, grid, arguments, shared_bytes, self._subgroup_size(), lines=self.lines)
        if self.sanitize:
            launch.watch = Watch(module.handle, launch, self.findings)
            launch.random = self.random
        self.launches += 1
        before = len(self.findings)
        try:
            module.handle.run(launch)
        finally:
            launch.flush()
            if launch.watch is not None:
                launch.watch.close()
        fault = launch.fault()
        if fault is not None:
            stream.pending.append(fault)
        new = [f for f in self.findings[before:] if f.kind not in RAISED]
        if new and not self.collect:
            stream.pending.append(error(new))

    def _subgroup_size(self) -> int:
        if self.subgroup_size is not None:
            return self.subgroup_size
        return int(self.random.choice(self.limits.subgroup_sizes))

    # -- order -------------------------------------------------------------------------------------------
    def stream(self) -> Stream:
        self.streams.append(CheckStream(self))
        return self.streams[-1]

    def synchronize(self) -> None:
        for stream in self.streams:
            stream.raise_pending()

    # -- at the end ----------------------------------------------------------------------------------------
    def leaks(self) -> list[Finding]:
        """Arrays of this device that are still alive, one finding for each line that allocated some."""
        gc.collect()  # what only a cycle keeps is no leak
        return self.findings.leaks(self.name)


def _bytes(a: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """A C-contiguous array's bytes, as a view."""
    return a.reshape(-1).view(np.uint8)


def find() -> list[str]:
    """Always here."""
    return ["check"]


def open(name: str) -> CheckDevice:
    """The device that ``gridwise.device("check")`` gives: sanitizing, raising what it finds."""
    return CheckDevice(name=name)
