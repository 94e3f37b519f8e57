"""NVIDIA GPUs through the CUDA driver: no toolkit, no compiler packages; the driver compiles the PTX.

Names: ``cuda`` is ``cuda:0``. All devices share their primary contexts with other CUDA libraries in the process.
"""

from __future__ import annotations

import contextlib
import ctypes
import itertools
import os
import pickle
import re
import struct
import weakref
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from gridwise.ir.core import Kernel
from gridwise.lang.errors import DeviceError, DeviceUnavailableError
from gridwise.targets.ptx import capabilities
from gridwise.targets.ptx.compile import start as start_compiler

from . import order, warm
from .base import Arg, Device, Limits, Module, Stream
from .cuda_driver import (
    Context,
    CudaError,
    attribute,
    call,
    driver,
    error,
    function_address,
    out_of_memory,
    release,
    usable,
    version,
)
from .cuda_graph import CudaReplay
from .cuda_module import CudaModule
from .cuda_stream import CudaStream
from .memory import Buffer
from .native import Entry
from .recording import Replay, Step

STALE = ("CUDA_ERROR_INVALID_CONTEXT", "CUDA_ERROR_INVALID_HANDLE", "CUDA_ERROR_CONTEXT_IS_DESTROYED")


class CudaBuffer(Buffer):
    """Device memory from the stream-ordered pool, freed in order after the work that uses it."""

    __slots__ = ("device",)

    def __init__(self, device: CudaDevice, address: int, nbytes: int):
        super().__init__(address, nbytes, address)
        self.device = device

    def __del__(self) -> None:
        if not self.freed and usable():
            # The context may be lost, or the interpreter being taken down: then nothing is left to free.
            with contextlib.suppress(DeviceError, TypeError, AttributeError):
                self.device.free(self)


class CudaDevice(Device):
    """One NVIDIA GPU. Use ``gridwise.device("cuda")``.

    Attributes beyond ``Device``: capability (major, minor); multiprocessors; context.
    """

    kind = "cuda"
    target = "ptx"
    peers = True

    def __init__(self, ordinal: int):
        self.ordinal = ordinal
        self.name = f"cuda:{ordinal}"
        self.context = Context(ordinal)
        self.enter = self.context.enter
        self.enter()
        ask = partial(attribute, ordinal)
        self.capability = (ask("COMPUTE_CAPABILITY_MAJOR"), ask("COMPUTE_CAPABILITY_MINOR"))
        self.multiprocessors = ask("MULTIPROCESSOR_COUNT")
        self.driver_version = version()
        model = call("cuDeviceGetName", 256, self.context.device).split(b"\0", 1)[0].decode()
        if self.capability < capabilities.OLDEST:
            raise DeviceUnavailableError(
                f"{self.name} ({model}) has compute capability {self.capability[0]}.{self.capability[1]}; "
                f"{capabilities.OLDEST[0]}.{capabilities.OLDEST[1]} or later is needed"
            )
        total = int(call("cuDeviceTotalMem", self.context.device))
        self.description = (
            f"{model}, {total >> 20} MiB, compute capability {self.capability[0]}.{self.capability[1]}, "
            f"driver for CUDA {self.driver_version // 1000}.{self.driver_version % 1000 // 10}"
        )
        self.limits = Limits(
            max_threads_per_block=ask("MAX_THREADS_PER_BLOCK"),
            max_block=(ask("MAX_BLOCK_DIM_X"), ask("MAX_BLOCK_DIM_Y"), ask("MAX_BLOCK_DIM_Z")),
            max_grid=(ask("MAX_GRID_DIM_X"), ask("MAX_GRID_DIM_Y"), ask("MAX_GRID_DIM_Z")),
            shared_bytes=ask("MAX_SHARED_MEMORY_PER_BLOCK_OPTIN"),
            subgroup_sizes=(ask("WARP_SIZE"),),
            max_buffer_bytes=total,
            max_arrays=500,  # a kernel has 4,096 bytes of parameters; 8 an array and its extent at the least
        )
        self.caps = capabilities.capabilities(self.capability)
        self.pooled = bool(ask("MEMORY_POOLS_SUPPORTED"))
        if self.pooled:  # keep freed memory for the next allocation rather than give it back at every wait
            self.pool = call("cuDeviceGetDefaultMemPool", self.context.device)
            threshold = driver().CUmemPool_attribute.CU_MEMPOOL_ATTR_RELEASE_THRESHOLD
            call("cuMemPoolSetAttribute", self.pool, threshold, driver().cuuint64_t(2**64 - 1))
        self._kernels: list[Kernel] = []  # by tag: faults and prints are decoded with them
        self._serial = itertools.count()
        self._streams: weakref.WeakSet[CudaStream] = weakref.WeakSet()
        # Ordered with the legacy default stream, on which other libraries work unless told otherwise.
        self.default_stream: CudaStream = CudaStream(self, blocking=True)
        self._streams.add(self.default_stream)

    # -- memory ------------------------------------------------------------------------------------------
    def allocate(self, nbytes: int) -> Buffer:
        self.enter()
        size = max(16, -(-nbytes // 16) * 16)
        try:
            address = self._allocate(size)
        except CudaError as e:
            if e.code != "CUDA_ERROR_OUT_OF_MEMORY":
                raise
            self._give_back()
            try:
                address = self._allocate(size)
            except CudaError as again:
                raise out_of_memory(again, nbytes) from None
        buffer = CudaBuffer(self, address, nbytes)
        buffer.writer = self.default_stream  # the memory exists from this point of the default stream on
        return buffer

    def _allocate(self, size: int) -> int:
        if self.pooled:
            return int(call("cuMemAllocAsync", size, self.default_stream.handle))
        return int(call("cuMemAlloc", size))

    def _give_back(self) -> None:
        """Return what the pool keeps to the driver."""
        call("cuCtxSynchronize")
        if self.pooled:
            call("cuMemPoolTrimTo", self.pool, 0)

    def free(self, buffer: Buffer) -> None:
        if buffer.freed:
            return
        buffer.freed = True
        self.enter()
        order.idle(buffer, self.default_stream)
        if self.pooled:
            call("cuMemFreeAsync", buffer.address, self.default_stream.handle)
        else:
            call("cuMemFree", buffer.address)

    def pinned(self, shape: int | tuple[int, ...], dtype: Any) -> np.ndarray:
        """Page-locked host memory as a NumPy array: copies from and to it overlap with work on the device."""
        self.enter()
        dt = np.dtype(dtype)
        count = int(np.prod(shape, dtype=np.int64))
        address = int(call("cuMemHostAlloc", max(1, count * dt.itemsize), 1))  # 1: usable from every context
        block = (ctypes.c_char * (count * dt.itemsize)).from_address(address)
        weakref.finalize(block, release, self.enter, ("cuMemFreeHost", address)).atexit = False
        return np.frombuffer(block, dt, count).reshape(shape)

    def memory(self) -> tuple[int, int]:
        """Bytes free and bytes in all, as the driver sees them."""
        self.enter()
        free, total = call("cuMemGetInfo")
        return int(free), int(total)

    def write(self, buffer: Buffer, offset: int, data: np.ndarray, stream: Stream, blocking: bool = True) -> None:
        assert isinstance(stream, CudaStream)
        if not data.nbytes:
            return
        self.enter()
        source = data.__array_interface__["data"][0]
        call("cuMemcpyHtoDAsync", buffer.address + offset, source, data.nbytes, stream.handle)
        if blocking:
            stream.synchronize()
        else:
            stream.held.append(data)

    def read(self, buffer: Buffer, offset: int, out: np.ndarray, stream: Stream, blocking: bool = True) -> None:
        assert isinstance(stream, CudaStream)
        self.enter()
        if out.nbytes:
            target = out.__array_interface__["data"][0]
            call("cuMemcpyDtoHAsync", target, buffer.address + offset, out.nbytes, stream.handle)
        if not blocking:
            stream.held.append(out)
            return
        stream.synchronize()
        for other in list(self._streams):  # what was read may come from a stream that this one waited for
            if other.faulted():
                other.synchronize()

    def copy(self, src: Buffer, src_offset: int, dst: Buffer, dst_offset: int, nbytes: int, stream: Stream) -> None:
        assert isinstance(stream, CudaStream)
        if nbytes:
            self.enter()
            call("cuMemcpyDtoDAsync", dst.address + dst_offset, src.address + src_offset, nbytes, stream.target)

    def copy_peer(
        self, src: Buffer, src_offset: int, source: Device, dst: Buffer, dst_offset: int, nbytes: int, stream: Stream
    ) -> None:
        assert isinstance(stream, CudaStream) and isinstance(source, CudaDevice)
        if nbytes:
            self.enter()
            here, there = self.context.handle, source.context.handle
            to, at = dst.address + dst_offset, src.address + src_offset
            call("cuMemcpyPeerAsync", to, here, at, there, nbytes, stream.handle)  # through the host if it must

    def fill(self, buffer: Buffer, offset: int, nbytes: int, byte: int, stream: Stream) -> None:
        assert isinstance(stream, CudaStream)
        if nbytes:
            self.enter()
            call("cuMemsetD8Async", buffer.address + offset, byte, nbytes, stream.target)

    # -- code --------------------------------------------------------------------------------------------
    def code_key(self) -> str:
        return f"{self.capability} {self.driver_version}"

    def load(self, kernel: Kernel, code: bytes | None = None) -> Module:
        self.enter()
        if code is None:
            from gridwise.targets.ptx.compile import compile
            from gridwise.targets.ptx.emit import emit

            emitted = emit(kernel, self.capability)
            llvm, ptx = compile(emitted.llvm, self.capability, self.driver_version)
            code = pickle.dumps((emitted, llvm, ptx))
        else:
            emitted, llvm, ptx = pickle.loads(code)
        tag = len(self._kernels)
        self._kernels.append(kernel)
        handle = CudaModule(self, kernel, emitted, ptx, tag)
        stages = {"llvm": emitted.llvm, "llvm-optimised": llvm, "ptx": ptx, "sass": handle.sass}
        return Module(kernel, handle, stages, handle.info(), code)

    def kernel_of(self, tag: int) -> Kernel:
        """The kernel whose module has this tag."""
        return self._kernels[tag]

    def next_serial(self) -> int:
        return next(self._serial) & 0xFFFF_FFFF

    def launch(
        self, module: Module, grid: tuple[int, int, int], args: Sequence[Arg], stream: Stream, shared_bytes: int = 0
    ) -> None:
        assert isinstance(stream, CudaStream)
        handle: CudaModule = module.handle
        x, y, z = grid
        if not (x and y and z):
            return
        if module.kernel.coarsen > 1:
            x = -(-x // module.kernel.coarsen)
        self.context.enter_once()
        prints = stream.print_buffer() if handle.emitted.prints else 0
        params = handle.pack(args, stream.fault_address, prints)
        shared = handle.shared_bytes(shared_bytes) if shared_bytes or handle.emitted.dynamic_shared else 0
        run = driver().cuLaunchKernel
        launch = (handle.function, x, y, z, *handle.block, shared, stream.target, params, 0)
        (code,) = run(*launch)
        if code:
            if code.name in STALE:  # another library made its context current in this thread
                self.enter()
                (code,) = run(*launch)
            if code:
                raise error("cuLaunchKernel", code)

    def entry(self, module: Module, stream: Stream) -> Entry | None:
        handle: CudaModule = module.handle
        emitted = handle.emitted
        if emitted.prints or not isinstance(stream, CudaStream):
            return None  # a printing launch carries its number
        extra = (struct.pack("<Q", stream.fault_address), struct.pack("<I", handle.tag)) if emitted.faults else ()
        shared = handle.shared_bytes(0) if emitted.dynamic_shared else 0
        return Entry(function_address("cuLaunchKernel"), handle.function_address, stream.address, shared, extra)

    def replay(self, stream: Stream, steps: list[Step]) -> Replay:
        assert isinstance(stream, CudaStream)
        return CudaReplay(self, stream, steps)

    # -- order -------------------------------------------------------------------------------------------
    def stream(self, priority: int = 0) -> CudaStream:
        """A new stream. ``priority``: lower numbers run first, within the range that the device has (0 and below)."""
        made = CudaStream(self, priority=priority)
        self._streams.add(made)
        return made

    def external_stream(self, handle: int) -> CudaStream:
        """Another library's stream, by its ``cudaStream_t`` as an integer; that library keeps owning it."""
        made = CudaStream(self, driver().CUstream(handle))
        self._streams.add(made)
        return made

    def synchronize(self) -> None:
        self.enter()
        call("cuCtxSynchronize")
        for stream in list(self._streams):
            stream.finished()


def find() -> list[str]:
    """Names of the CUDA devices on this machine; empty without a driver or the bindings."""
    try:
        return [f"cuda:{n}" for n in range(int(call("cuDeviceGetCount")))]
    except DeviceError:
        return []


def open(name: str) -> CudaDevice:
    """The device called ``cuda`` or ``cuda:N``. Raises DeviceUnavailableError saying what is missing."""
    match = re.fullmatch(r"cuda(?::(\d+))?", name)
    if match is None:
        raise DeviceUnavailableError(f"{name!r} is not a CUDA device\n  help: write 'cuda' or 'cuda:0'")
    warm.start("gridwise.targets.ptx.emit", then=start_compiler)
    ordinal = int(match[1] or 0)
    count = int(call("cuDeviceGetCount"))
    if ordinal >= count:
        visible = os.environ.get("CUDA_VISIBLE_DEVICES")
        hidden = f" (CUDA_VISIBLE_DEVICES={visible!r})" if visible is not None else ""
        raise DeviceUnavailableError(f"there is no {name}: the driver shows {count} device(s){hidden}")
    return CudaDevice(ordinal)
