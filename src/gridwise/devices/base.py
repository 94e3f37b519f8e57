"""The surface that every device shares: Device, Stream, Event, Array, Buffer, Module.

A device implements the short list of abstract methods of ``Device``; ``Array`` and everything above are
written once against them.
"""

from __future__ import annotations

import abc
from collections.abc import Generator, Sequence
from typing import Any

import numpy as np

from gridwise.ir.core import Kernel
from gridwise.ir.types import Scalar, Struct
from gridwise.lang.records import dataclass, field
from gridwise.lang.target import Cap

from .array import Array, from_host, make
from .memory import ArrayArg as ArrayArg
from .memory import Buffer as Buffer
from .native import Entry
from .recording import Recorder, Replay, Step


@dataclass(frozen=True)
class Limits:
    """What a device can launch. Sources are named in each target's ``capabilities.py``."""

    max_threads_per_block: int
    max_block: tuple[int, int, int]
    max_grid: tuple[int, int, int]  # blocks, each axis
    shared_bytes: int  # a block
    subgroup_sizes: tuple[int, ...]
    max_buffer_bytes: int
    max_arrays: int = 1 << 30  # array parameters of one kernel


Arg = ArrayArg | int | float | bool


@dataclass
class Module:
    """A kernel compiled for and loaded on one device.

    ``kernel`` is the IR after the pipeline (its ``sites`` decode faults, its ``coarsen`` divides the grid);
    ``stages`` maps a stage name to its text (``ir simt llvm ptx sass wgsl asm``), values may be callables that
    produce the text when asked; ``handle`` is the device's own object.
    """

    kernel: Kernel
    handle: Any
    stages: dict[str, Any] = field(default_factory=dict)
    info: dict[str, Any] = field(default_factory=dict)  # registers, spills, shared bytes, ... where known
    code: bytes | None = None  # what ``Device.load`` takes to load the kernel again without compiling


class Stream(abc.ABC):
    """Work in order. ``device.stream()`` makes one; every device has a ``default_stream``."""

    device: Device
    recorder: Recorder | None = None  # takes the stream's work while a graph is recorded

    @abc.abstractmethod
    def synchronize(self) -> None:
        """Wait for all work queued so far; raises the first fault recorded by it."""

    @abc.abstractmethod
    def record(self) -> Event:
        """An event that completes when the work queued so far has."""

    @abc.abstractmethod
    def wait(self, event: Event) -> None:
        """Later work on this stream starts after the event."""

    def __await__(self) -> Generator[Any, None, None]:
        """``await stream``: as ``synchronize``, while other tasks of the event loop go on."""
        import asyncio

        event, pause = self.record(), 0.0
        while not event.done():
            yield from asyncio.sleep(pause).__await__()
            pause = min(1e-3, 2 * pause + 2e-5)
        self.synchronize()


class Event(abc.ABC):
    """A point in a stream."""

    @abc.abstractmethod
    def synchronize(self) -> None: ...

    @abc.abstractmethod
    def done(self) -> bool: ...

    @abc.abstractmethod
    def elapsed_since(self, start: Event) -> float:
        """Seconds on the device between two events."""


class Device(abc.ABC):
    """One device of one kind. ``gridwise.device(name)`` finds it."""

    kind: str  # "cpu", "cuda", "webgpu", "check"
    name: str  # what gridwise.device takes: "cpu", "cuda:0", "vulkan", ...
    description: str  # hardware and driver, for people
    target: str  # "cpu", "ptx", "wgsl", "check"
    limits: Limits
    caps: frozenset[Cap]
    default_stream: Stream
    software = False  # a GPU driver that computes on the CPU: never what "auto" means
    peers = False  # devices of this kind can copy from each other's memory: see copy_peer

    # -- memory ------------------------------------------------------------------------------------------
    @abc.abstractmethod
    def allocate(self, nbytes: int) -> Buffer:
        """Uninitialised memory, at least 16-byte aligned and padded to a multiple of 16 bytes."""

    @abc.abstractmethod
    def free(self, buffer: Buffer) -> None: ...

    @abc.abstractmethod
    def write(self, buffer: Buffer, offset: int, data: np.ndarray, stream: Stream, blocking: bool = True) -> None:
        """Copy C-contiguous host bytes in. Non-blocking: the host array must stay unchanged until synchronised."""

    @abc.abstractmethod
    def read(self, buffer: Buffer, offset: int, out: np.ndarray, stream: Stream, blocking: bool = True) -> None:
        """Copy bytes out into a C-contiguous host array; blocking waits, and raises faults recorded so far."""

    @abc.abstractmethod
    def copy(self, src: Buffer, src_offset: int, dst: Buffer, dst_offset: int, nbytes: int, stream: Stream) -> None: ...

    def copy_peer(
        self, src: Buffer, src_offset: int, source: Device, dst: Buffer, dst_offset: int, nbytes: int, stream: Stream
    ) -> None:
        """Queue a copy from the memory of another device of this kind; for kinds that say ``peers``.

        ``stream`` is this device's, and already waits for what writes ``src``.
        """
        raise NotImplementedError

    @abc.abstractmethod
    def fill(self, buffer: Buffer, offset: int, nbytes: int, byte: int, stream: Stream) -> None:
        """Set every byte."""

    # -- arrays ------------------------------------------------------------------------------------------
    def array(self, source: Any, dtype: Any = None, *, stream: Stream | None = None, blocking: bool = True) -> Array:
        """A copy here of a NumPy array, a nested sequence or an array on any device.

        ``dtype`` converts on the host first. ``blocking=False`` leaves the copy queued: ``source`` must stay
        unchanged until the stream is synchronised.
        """
        return from_host(self, source, dtype, stream, blocking)

    def empty(self, shape: int | Sequence[int], dtype: Any) -> Array:
        """Uninitialised; ``dtype`` is a scalar of the language, a ``@gw.struct`` or a NumPy dtype."""
        return make(self, shape, dtype)

    def zeros(self, shape: int | Sequence[int], dtype: Any) -> Array:
        """Every element 0."""
        out = make(self, shape, dtype)
        self.fill(out.buffer, 0, out.nbytes, 0, self.default_stream)
        out.buffer.writer = self.default_stream
        return out

    def full(self, shape: int | Sequence[int], value: Any, dtype: Any) -> Array:
        """Every element ``value``."""
        out = make(self, shape, dtype)
        out.fill(value)
        return out

    def __repr__(self) -> str:
        return f"<device {self.name}: {self.description}>"

    # -- code --------------------------------------------------------------------------------------------
    @abc.abstractmethod
    def load(self, kernel: Kernel, code: bytes | None = None) -> Module:
        """Emit, compile and load a kernel that has been through ``passes.pipeline.lower`` for this target.

        ``code`` is ``Module.code`` of an earlier load of the same kernel, by this or another process, on a device
        with the same ``code_key``.
        """

    def code_key(self) -> str | None:
        """What compiled code depends on besides the kernel, as text; None if code of this device is not kept."""
        return None

    @abc.abstractmethod
    def launch(
        self, module: Module, grid: tuple[int, int, int], args: Sequence[Arg], stream: Stream, shared_bytes: int = 0
    ) -> None:
        """Queue a launch. ``grid`` counts blocks before ``kernel.coarsen``; ``args`` are one a kernel parameter."""

    def entry(self, module: Module, stream: Stream) -> Entry | None:
        """How machine code can start ``module`` on ``stream`` as ``launch`` would; None if only ``launch`` can."""
        return None

    def replay(self, stream: Stream, steps: list[Step]) -> Replay:
        """Recorded steps, ready to be queued on ``stream`` as often as wanted."""
        return Replay(self, stream, steps)

    # -- order -------------------------------------------------------------------------------------------
    @abc.abstractmethod
    def stream(self) -> Stream: ...

    @abc.abstractmethod
    def synchronize(self) -> None:
        """Wait for all streams; raises the first fault."""


Element = Scalar | Struct
