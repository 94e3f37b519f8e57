"""Work written down instead of done, to be replayed: what ``gw.graph`` is made of.

While a stream has a recorder, launches, fills and copies on the device for that stream become steps. Nothing can go
to or from the host meanwhile. A device replays steps one after the other, or in a way of its own
(``Device.replay``).
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from gridwise.ir.types import ArrayType
from gridwise.lang.errors import DeviceError
from gridwise.lang.records import dataclass, field

from .memory import ArrayArg, Buffer

if TYPE_CHECKING:
    from .base import Arg, Device, Module, Stream

# How many recorders there are: launchers in machine code read it, and leave recording to Python.
active = ctypes.c_int32(0)


@dataclass
class Launch:
    """One launch, bound."""

    module: Module
    grid: tuple[int, int, int]
    args: Sequence[Arg]
    shared_bytes: int = 0

    def queue(self, device: Device, stream: Stream) -> None:
        device.launch(self.module, self.grid, self.args, stream, self.shared_bytes)

    def buffers(self) -> list[tuple[Buffer, bool]]:
        """What it touches, and whether it writes there."""
        found = []
        for param, arg in zip(self.module.kernel.params, self.args, strict=True):
            if isinstance(arg, ArrayArg):
                assert isinstance(param.type, ArrayType)
                found.append((arg.buffer, param.type.access != "read"))
        return found


@dataclass
class Copy:
    """Bytes from one buffer to another of the same device."""

    src: Buffer
    src_offset: int
    dst: Buffer
    dst_offset: int
    nbytes: int

    def queue(self, device: Device, stream: Stream) -> None:
        device.copy(self.src, self.src_offset, self.dst, self.dst_offset, self.nbytes, stream)

    def buffers(self) -> list[tuple[Buffer, bool]]:
        return [(self.src, False), (self.dst, True)]


@dataclass
class Fill:
    """Every byte of a part of a buffer set to one value."""

    buffer: Buffer
    offset: int
    nbytes: int
    byte: int

    def queue(self, device: Device, stream: Stream) -> None:
        device.fill(self.buffer, self.offset, self.nbytes, self.byte, stream)

    def buffers(self) -> list[tuple[Buffer, bool]]:
        return [(self.buffer, True)]


Step = Launch | Copy | Fill


@dataclass
class Recorder:
    """Takes the work of one stream."""

    stream: Stream
    steps: list[Step] = field(default_factory=list)

    def __enter__(self) -> Recorder:
        if self.stream.recorder is not None:
            raise DeviceError("this stream is being recorded already")
        self.stream.recorder = self
        active.value += 1
        return self

    def __exit__(self, *error: Any) -> None:
        active.value -= 1
        self.stream.recorder = None


def perform(step: Step, stream: Stream) -> None:
    """Queue a step on its stream, or write it down if that is being recorded."""
    if stream.recorder is not None:
        stream.recorder.steps.append(step)
    else:
        step.queue(stream.device, stream)


def host_access(stream: Stream) -> None:
    """Raise DeviceError if the stream is being recorded: data cannot go to or from the host then."""
    if stream.recorder is not None:
        raise DeviceError(
            "inside gw.graph data cannot go to or from the host\n"
            "  help: copy before or after; between arrays of the device, copy_from is recorded"
        )


class Replay:
    """Recorded steps, ready to be queued again and again on the stream they were recorded on."""

    def __init__(self, device: Device, stream: Stream, steps: list[Step]):
        self.device, self.stream, self.steps = device, stream, steps

    def run(self) -> None:
        """Queue all of them, in order."""
        for step in self.steps:
            step.queue(self.device, self.stream)

    def change(self, n: int, step: Step) -> None:
        """Replace one step."""
        self.steps[n] = step
