"""Recorded steps as a CUDA graph: one call of the driver queues them all.

The graph is made by letting the driver capture the steps from a stream of its own; a changed step is captured again
and the instance updated in place, which is cheaper than making one.
"""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any

from .cuda_driver import CudaError, call, driver, release
from .recording import Launch, Replay, Step

if TYPE_CHECKING:
    from .cuda import CudaDevice
    from .cuda_stream import CudaStream


class CudaReplay(Replay):
    """See the module."""

    device: CudaDevice
    stream: CudaStream

    def __init__(self, device: CudaDevice, stream: CudaStream, steps: list[Step]):
        super().__init__(device, stream, steps)
        device.enter()
        flag = int(driver().CUstream_flags.CU_STREAM_NON_BLOCKING)
        self._capture = call("cuStreamCreateWithPriority", flag, 0)
        weakref.finalize(self, release, device.enter, ("cuStreamDestroy", self._capture)).atexit = False
        self._stale = False
        self._instance: Any = None
        self._instantiate(self._captured())

    def run(self) -> None:
        self.device.context.enter_once()
        if self._stale:
            self._update()
        if self.steps:
            call("cuGraphLaunch", self._instance, self.stream.handle)

    def change(self, n: int, step: Step) -> None:
        super().change(n, step)
        self._stale = True

    def _captured(self) -> Any:
        """The steps as a graph."""
        device = self.device
        for step in self.steps:  # before capture: this may ask the driver for more shared memory
            if isinstance(step, Launch):
                step.module.handle.shared_bytes(step.shared_bytes)
        call("cuStreamBeginCapture", self._capture, driver().CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_RELAXED)
        try:
            with self.stream.redirected(self._capture):
                for step in self.steps:
                    step.queue(device, self.stream)
        finally:
            graph = call("cuStreamEndCapture", self._capture)
        return graph

    def _instantiate(self, graph: Any) -> None:
        self._instance = call("cuGraphInstantiate", graph, 0)
        call("cuGraphDestroy", graph)
        parts = [("cuStreamSynchronize", self.stream.handle), ("cuGraphExecDestroy", self._instance)]
        self._finalizer = weakref.finalize(self, release, self.device.enter, *parts)
        self._finalizer.atexit = False

    def _update(self) -> None:
        self.device.enter()
        graph = self._captured()
        try:
            call("cuGraphExecUpdate", self._instance, graph)
            call("cuGraphDestroy", graph)
        except CudaError:  # another shape than the instance can take
            self._finalizer()
            self._instantiate(graph)
        self._stale = False
