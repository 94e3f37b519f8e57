"""``gw.graph``: launches recorded once and replayed with one call."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from gridwise.devices import order, registry
from gridwise.devices.base import Device, Stream
from gridwise.devices.recording import Launch, Recorder, Replay
from gridwise.lang.errors import DeviceError, LaunchError

if TYPE_CHECKING:
    from .kernel import Kernel, Prepared


class Graph:
    """Recorded work of one stream: launches, fills, and copies between arrays of the device.

    Call it to queue all of it again, in order; the arrays are those of the recording, with what they hold then.
    ``update`` gives a launch other arguments. ``len`` is the number of steps, launches and others.
    """

    def __init__(self, stream: Stream):
        self.stream = stream
        self.device = stream.device
        self._recorder = Recorder(stream)
        self._replay: Replay | None = None
        self._touched: list[tuple[Any, bool]] = []

    def __len__(self) -> int:
        return len(self._recorder.steps)

    def __repr__(self) -> str:
        return f"<graph of {len(self)} steps on {self.device.name}>"

    def __call__(self) -> None:
        """Queue everything on the stream of the recording. Faults are raised when that is synchronised."""
        if self._replay is None:
            raise LaunchError("this graph is still being recorded\n  help: call it after the 'with gw.graph(...)'")
        if self.stream.recorder is not None:
            raise LaunchError("a graph cannot be replayed into another graph")
        for buffer, writes in self._touched:
            if buffer.freed:
                raise DeviceError("an array of this graph was freed")
            (order.writes if writes else order.reads)(buffer, self.stream)
        self._replay.run()

    def update(self, n: int, kernel: Kernel | Prepared, *args: Any, **named: Any) -> None:
        """Launch ``n`` of the recording (0 is the first) is to use other arguments from the next replay on.

        ``kernel`` is what was launched there. Raises what a launch with these arguments would raise.
        """
        assert self._replay is not None
        places = [k for k, step in enumerate(self._recorder.steps) if isinstance(step, Launch)]
        if not 0 <= n < len(places):
            raise LaunchError(f"the graph has {len(places)} launches: there is no number {n}")
        before = self._recorder.steps[places[n]]
        assert isinstance(before, Launch)
        launched: Any = getattr(kernel, "kernel", kernel)  # of a prepared kernel, the kernel
        name = launched.name
        if name != before.module.kernel.name:
            raise LaunchError(f"launch {n} of the graph is of {before.module.kernel.name}, not of {name}")
        with Recorder(self.stream) as one:
            kernel(*args, stream=self.stream, **named)
        if len(one.steps) != 1:
            raise LaunchError(f"these arguments launch nothing, and launch {n} of the graph cannot be left out")
        self._replay.change(places[n], one.steps[0])
        self._settle()

    def _finish(self) -> None:
        self._replay = self.device.replay(self.stream, self._recorder.steps)
        self._settle()

    def _settle(self) -> None:
        touched: dict[Any, bool] = {}
        for step in self._recorder.steps:
            for buffer, writes in step.buffers():
                touched[buffer] = touched.get(buffer, False) or writes
        self._touched = list(touched.items())


@contextmanager
def graph(where: Device | Stream | str = "auto") -> Iterator[Graph]:
    """Within the ``with``, work for a stream is written down instead of done; the graph replays it.

    ``where`` is a stream, or a device for its default stream. Launches without ``stream=`` go to the default stream
    of their device, so they are recorded if that is the one. Nothing can be copied to or from the host meanwhile.

        with gw.graph(gpu) as g:
            for _ in range(100):
                step(x, y)
                step(y, x)
        g()                      # all 200 launches, in one call of the driver on CUDA
    """
    if isinstance(where, Stream):
        stream = where
    else:
        stream = (registry.device(where) if isinstance(where, str) else where).default_stream
    made = Graph(stream)
    with made._recorder:
        yield made
    made._finish()
