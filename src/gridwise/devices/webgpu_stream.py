"""The order of work on a WebGPU device as streams and events, and the end of a submission as a fence."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import numpy as np

from gridwise.lang.errors import DeviceError

from .base import Event, Stream

if TYPE_CHECKING:
    from .webgpu import WebGpuDevice
    from .webgpu_queue import Queue

MAP_MODE_READ = 1


def failed(error: BaseException) -> DeviceError:
    """The error for a device that has stopped working."""
    if isinstance(error, DeviceError):
        return error
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return DeviceError(f"the WebGPU device failed: {lines[-1] if lines else type(error).__name__}")


def mapped(staging: Any) -> np.ndarray:
    """The bytes of a staging buffer, once what writes it is done."""
    try:
        staging.map_sync(MAP_MODE_READ)
    except Exception as e:
        raise failed(e) from None
    return np.frombuffer(staging.read_mapped(copy=False), np.uint8)


class Batch:
    """The work recorded for one submission. ``wanted``: someone will wait for its end, so it gets a fence."""

    def __init__(self) -> None:
        self.wanted = False
        self.fence: Fence | None = None


class Fence:
    """The end of a submission, seen by mapping a buffer that it wrote.

    (``on_submitted_work_done`` is what WebGPU has for this; wgpu-py 0.32 passes it a callback of the wrong type.)
    """

    def __init__(self, staging: Any):
        self.staging = staging
        self.promise = staging.map_async(MAP_MODE_READ)
        self.finished = False

    def wait(self) -> None:
        if not self.finished:
            try:
                self.promise.sync_wait()
            except Exception as e:
                raise failed(e) from None
            self.finished = True
            self.staging.destroy()

    def done(self) -> bool:
        if not self.finished and self.promise._state != "pending":  # there is no public way to ask without waiting
            self.wait()
        return self.finished


class WebGpuStream(Stream):
    """The device's queue. All streams of a device are one order of work."""

    def __init__(self, device: WebGpuDevice):
        self.device: WebGpuDevice = device

    def synchronize(self) -> None:
        self.device.queue.synchronize()

    def record(self) -> WebGpuEvent:
        return WebGpuEvent(self.device.queue)

    def wait(self, event: Event) -> None:
        """Nothing to do: work of every stream runs in the order in which it was queued."""


class WebGpuEvent(Event):
    """A point in the queue. Time is the device's clock where it has one, else the host's after waiting.

    Recording one submits nothing: a hundred launches between two events stay one submission.
    """

    def __init__(self, queue: Queue):
        self.queue = queue
        self.host_time = 0.0
        self.device_time: int | None = None
        with queue.lock:
            self.query = queue.stamp()
            self.batch = queue.batch
            self.batch.wanted = True
        if self.query is None:
            self.synchronize()

    def _fence(self) -> Fence:
        with self.queue.lock:
            if self.batch.fence is None:
                self.queue.commands()  # an empty batch is submitted too
                self.queue.flush()
            assert self.batch.fence is not None
            return self.batch.fence

    def synchronize(self) -> None:
        self._fence().wait()
        self.host_time = self.host_time or time.perf_counter()

    def done(self) -> bool:
        return self._fence().done()

    def clock(self) -> int:
        """Nanoseconds on the device's clock."""
        if self.device_time is None:
            assert self.query is not None
            self.device_time = self.queue.clock(self.query)
        return self.device_time

    def elapsed_since(self, start: Event) -> float:
        assert isinstance(start, WebGpuEvent)
        start.synchronize()
        self.synchronize()
        if self.query is None or start.query is None:
            return self.host_time - start.host_time
        return (self.clock() - start.clock()) * 1e-9

    def __del__(self) -> None:
        if self.query is not None:
            self.queue.free_queries.append(self.query)
