"""CUDA streams and events, with the fault buffer and the print buffer that belong to a stream.

A stream has one fault buffer (layout in ``faults.py``) for all its launches. Launches of one stream do not
overlap, so the first that faults takes the buffer by writing its module's tag into ``OWNER``; later launches
of other modules leave it alone. Recording also raises a flag in page-locked host memory, whose address the
buffer holds, so that a synchronisation without faults reads one host word and copies nothing.
"""

from __future__ import annotations

import ctypes
import threading
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from . import faults, printing
from .base import Event, Stream
from .cuda_driver import call, driver, error, release

if TYPE_CHECKING:
    from .cuda import CudaDevice

OWNER = 2  # word of the fault buffer: tag of the module whose faults it holds
FLAG = 4  # words 4 and 5: address of the flag in host memory


class _Redirect(threading.local):
    handle: Any = None


class CudaEvent(Event):
    """A CUDA event with timing (resolution about half a microsecond)."""

    def __init__(self, device: CudaDevice):
        device.enter()
        self.device = device
        self.handle = call("cuEventCreate", 0)
        weakref.finalize(self, release, device.enter, ("cuEventDestroy", self.handle)).atexit = False

    def synchronize(self) -> None:
        """Wait for it. Faults are raised by the stream's synchronisation, not by the event's."""
        call("cuEventSynchronize", self.handle)

    def done(self) -> bool:
        return _finished("cuEventQuery", self.handle)

    def elapsed_since(self, start: Event) -> float:
        assert isinstance(start, CudaEvent)
        self.synchronize()
        return float(call("cuEventElapsedTime", start.handle, self.handle)) * 1e-3


class CudaStream(Stream):
    """A CUDA stream. ``handle`` is its ``CUstream``; ``__cuda_stream__`` offers it to other libraries."""

    def __init__(self, device: CudaDevice, handle: Any = None, priority: int = 0, blocking: bool = False):
        device.enter()
        self.device: CudaDevice = device
        self.owned = handle is None
        if handle is None:
            flags = driver().CUstream_flags
            flag = flags.CU_STREAM_DEFAULT if blocking else flags.CU_STREAM_NON_BLOCKING
            handle = call("cuStreamCreateWithPriority", int(flag), priority)
        self.handle = handle
        self.address = int(handle)
        self._redirect = _Redirect()
        self.held: list[Any] = []  # host memory that queued copies use
        self.fault_address = int(call("cuMemAlloc", faults.WORDS * 4))
        self.print_address = 0
        self._flag_address = int(call("cuMemHostAlloc", 64, driver().CU_MEMHOSTALLOC_DEVICEMAP | 1))  # 1: portable
        self._flag = ctypes.c_uint32.from_address(self._flag_address)
        self._flag.value = 0
        self._reset_faults()
        call("cuStreamSynchronize", self.handle)
        parts: list[tuple[Any, ...]] = []
        if self.owned:
            parts += [("cuStreamSynchronize", handle), ("cuStreamDestroy", handle)]
        # cuMemFree waits for the device: nothing queued can still write there.
        parts += [("cuMemFree", self.fault_address), ("cuMemFreeHost", self._flag_address)]
        weakref.finalize(self, release, device.enter, *parts).atexit = False

    def __cuda_stream__(self) -> tuple[int, int]:
        """NVIDIA's stream protocol: (version, handle)."""
        return 0, self.address

    @contextmanager
    def redirected(self, handle: Any) -> Iterator[None]:
        """Within the ``with``, this thread's work goes to another ``CUstream``: to be captured there."""
        self._redirect.handle = handle
        try:
            yield
        finally:
            self._redirect.handle = None

    @property
    def target(self) -> Any:
        """The ``CUstream`` that work goes to."""
        return self._redirect.handle or self.handle

    def synchronize(self) -> None:
        self.device.enter()
        call("cuStreamSynchronize", self.handle)
        self.finished()

    def finished(self) -> None:
        """What follows a wait for the stream: let go of host memory, print, raise the first fault."""
        if self.held:
            self.held.clear()
        if self.print_address:
            self._print()
        if self._flag.value:
            self._raise_fault()

    def done(self) -> bool:
        """Whether all work queued so far has finished."""
        return _finished("cuStreamQuery", self.handle)

    def record(self) -> CudaEvent:
        event = CudaEvent(self.device)
        call("cuEventRecord", event.handle, self.handle)
        return event

    def wait(self, event: Event) -> None:
        assert isinstance(event, CudaEvent)
        self.device.enter()
        call("cuStreamWaitEvent", self.handle, event.handle, 0)

    # -- faults ------------------------------------------------------------------------------------------
    def faulted(self) -> bool:
        """Whether a fault has been recorded by work that has run so far."""
        return bool(self._flag.value)

    def _reset_faults(self) -> None:
        words = faults.fresh()
        words[FLAG : FLAG + 2] = np.array([self._flag_address], np.uint64).view(np.uint32)
        call("cuMemcpyHtoDAsync", self.fault_address, words.ctypes.data, words.nbytes, self.handle)
        self.held.append(words)

    def _raise_fault(self) -> None:
        words = np.empty(faults.WORDS, np.uint32)
        call("cuMemcpyDtoHAsync", words.ctypes.data, self.fault_address, words.nbytes, self.handle)
        call("cuStreamSynchronize", self.handle)
        self._flag.value = 0
        self._reset_faults()
        call("cuStreamSynchronize", self.handle)
        self.held.clear()
        kernel = self.device.kernel_of(int(words[OWNER]))
        record = words[faults.HEADER + int(words[0]) % faults.SLOTS * faults.RECORD :][: faults.RECORD]
        fault = faults.decode(words, kernel, (int(record[6]), int(record[7]), 1))
        if fault is not None:
            raise fault

    # -- print -------------------------------------------------------------------------------------------
    def print_buffer(self) -> int:
        """Address of the print buffer, made at the first launch of a kernel that prints."""
        if not self.print_address:
            self.print_address = int(call("cuMemAlloc", printing.WORDS * 4))
            call("cuMemsetD8Async", self.print_address, 0, printing.HEADER * 4, self.handle)
            weakref.finalize(self, release, self.device.enter, ("cuMemFree", self.print_address)).atexit = False
        return self.print_address

    def _print(self) -> None:
        head = np.zeros(printing.HEADER, np.uint32)
        self._fetch(head)
        if not head[0]:
            return
        words = np.empty(printing.HEADER + min(int(head[0]), printing.CAPACITY), np.uint32)
        self._fetch(words)
        call("cuMemsetD8Async", self.print_address, 0, printing.HEADER * 4, self.handle)
        printing.show(words, self.device.kernel_of)

    def _fetch(self, words: np.ndarray) -> None:
        call("cuMemcpyDtoHAsync", words.ctypes.data, self.print_address, words.nbytes, self.handle)
        call("cuStreamSynchronize", self.handle)


def _finished(query: str, handle: Any) -> bool:
    (code,) = getattr(driver(), query)(handle)
    if code == driver().CUresult.CUDA_ERROR_NOT_READY:
        return False
    if code != driver().CUresult.CUDA_SUCCESS:
        raise error(query, code)
    return True
