"""Work for a WebGPU device: launches and copies recorded into one command buffer, submitted together.

A sort of 210 passes is one submission: recording ends at a wait, a read, or a full arena. Each launch takes a
piece of the launch arena (its arguments) and, if its kernel can fault, a fault buffer of the fault arena, both
found by dynamic offsets. Fault buffers are looked at whenever the host waits.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from gridwise.ir.core import Kernel
from gridwise.lang.errors import DeviceError

from . import faults, printing
from .base import Arg, Buffer
from .webgpu_copy import Copier
from .webgpu_module import ALIGNMENT, Loaded
from .webgpu_stream import Batch, Fence, failed, mapped

if TYPE_CHECKING:
    from .webgpu import WebGpuDevice

ARENA = 1 << 20  # bytes of launch arguments in one submission
FAULT_BYTES = -(-faults.WORDS * 4 // ALIGNMENT) * ALIGNMENT
FAULT_SLOTS = 256  # launches that can fault, between two looks at the records
LAUNCHES = 1024  # recorded at most before they are submitted: the device should not idle while the host records
STAGE = 64 << 20  # bytes of one copy to the host
MAP_READ = 0x0001
COPY_SRC, COPY_DST, STORAGE, UNIFORM = 0x0004, 0x0008, 0x0080, 0x0040
QUERIES = 1024


class Queue:
    """The one queue of a device. Every method may be called from any thread."""

    def __init__(self, device: WebGpuDevice):
        self.device, self.handle = device, device.handle
        self.lock = threading.RLock()
        self.encoder: Any = None
        self.compute_pass: Any = None
        self.pipeline: Any = None  # set in the open pass
        self.group: Any = None  # bind group 0 there
        self.touched: set[int] = set()  # buffers in the recorded, unsubmitted work
        self.recorded = 0
        self.arena: Any = None
        self.arguments = bytearray(ARENA)
        self.used = 0
        self.fault_arena: Any = None
        self.pending: list[tuple[Kernel, tuple[int, int, int]]] = []  # launches whose fault buffers are unread
        self.print_buffer: Any = None
        self.printed = False
        self.kernels: list[Kernel] = []  # by tag, of the modules that print
        self.serial = 0
        self.found: DeviceError | None = None  # a fault seen while making room, to be raised at the next wait
        self.reads: list[tuple[Any, int, np.ndarray]] = []  # non-blocking reads: staging buffer, skip, where to
        self.owners: dict[int, list[Loaded]] = {}
        self.queries: Any = None
        self.marker: Any = None
        self.batch = Batch()
        self.copier: Copier | None = None
        self.free_queries = list(range(QUERIES))

    # -- recording ---------------------------------------------------------------------------------------
    def commands(self) -> Any:
        """The open encoder, outside any compute pass."""
        self.end_pass()
        if self.encoder is None:
            self.encoder = self.handle.create_command_encoder()
        return self.encoder

    def end_pass(self) -> None:
        if self.compute_pass is not None:
            self.compute_pass.end()
            self.compute_pass = self.pipeline = self.group = None

    def flush(self) -> None:
        """Submit what is recorded."""
        with self.lock:
            if self.encoder is None:
                return
            self.end_pass()
            staging = self.end_mark(self.encoder) if self.batch.wanted else None
            batch, self.batch = self.batch, Batch()
            encoder, self.encoder = self.encoder, None
            used, self.used = self.used, 0
            self.recorded = 0
            self.touched.clear()
            if used:
                self.handle.queue.write_buffer(self.arena, 0, self.arguments, 0, used)
            try:
                self.handle.queue.submit([encoder.finish()])
            except Exception as e:
                raise failed(e) from None
            if staging is not None:
                batch.fence = Fence(staging)

    def end_mark(self, encoder: Any) -> Any:
        """A buffer that is written last in the submission: mapping it waits for the rest."""
        if self.marker is None:
            self.marker = self.handle.create_buffer(size=16, usage=COPY_SRC)
        staging = self.handle.create_buffer(size=16, usage=MAP_READ | COPY_DST)
        encoder.copy_buffer_to_buffer(self.marker, 0, staging, 0, 16)
        return staging

    def argument_arena(self) -> Any:
        if self.arena is None:
            self.arena = self.handle.create_buffer(size=ARENA, usage=UNIFORM | COPY_DST)
        return self.arena

    def faults(self) -> Any:
        if self.fault_arena is None:
            usage = STORAGE | COPY_SRC | COPY_DST
            self.fault_arena = self.handle.create_buffer(size=FAULT_BYTES * FAULT_SLOTS, usage=usage)
            for slot in range(FAULT_SLOTS):
                self.clear_faults(slot)
        return self.fault_arena

    def clear_faults(self, slot: int) -> None:
        self.handle.queue.write_buffer(self.fault_arena, slot * FAULT_BYTES, faults.fresh())

    def prints(self) -> Any:
        if self.print_buffer is None:
            usage = STORAGE | COPY_SRC | COPY_DST
            self.print_buffer = self.handle.create_buffer(size=printing.WORDS * 4, usage=usage)
        return self.print_buffer

    def tag(self, kernel: Kernel) -> int:
        """A number for a kernel that prints."""
        self.kernels.append(kernel)
        return len(self.kernels) - 1

    def launch(self, loaded: Loaded, blocks: tuple[int, int, int], args: Sequence[Arg], shared: int, most: int) -> None:
        """Record one launch of ``blocks`` blocks (``coarsen`` already applied)."""
        with self.lock:
            bound = loaded.bind(blocks, args, shared, most)
            program = bound.program
            size = program.argument_bytes
            if self.used + size > ARENA or self.recorded >= LAUNCHES:
                self.flush()
            if program.shader.faults and len(self.pending) == FAULT_SLOTS:
                self.collect()
            packed = bound.packed
            if not packed:
                header = [*blocks, 0]
                if program.shader.prints:
                    header += [loaded.tag, self.serial & 0xFFFFFFFF]
                    self.serial += 1
                    self.printed = True
                packed = loaded.block(bound, header, args)
            self.arguments[self.used : self.used + size] = packed
            offsets = [self.used]
            if program.shader.faults:
                offsets.append(len(self.pending) * FAULT_BYTES)
                self.pending.append((loaded.kernel, blocks))
            self.used += -(-size // ALIGNMENT) * ALIGNMENT
            if self.compute_pass is None:
                self.compute_pass = self.commands().begin_compute_pass()
            work = self.compute_pass
            if self.pipeline is not program:
                work.set_pipeline(program.pipeline)
                self.pipeline, self.group = program, None
            if bound.group is not self.group:
                work.set_bind_group(0, bound.group)
                self.group = bound.group
            work.set_bind_group(1, program.launch_group(), offsets)
            work.dispatch_workgroups(*bound.dispatch)
            self.touched.update(bound.buffers)
            self.recorded += 1

    # -- memory ------------------------------------------------------------------------------------------
    def remember(self, handle: Any, loaded: Loaded) -> None:
        """``loaded`` holds bind groups with this buffer; they go when it is freed."""
        owners = self.owners.setdefault(id(handle), [])
        if loaded not in owners:
            owners.append(loaded)

    def free(self, handle: Any) -> None:
        with self.lock:
            if id(handle) in self.touched:
                self.flush()
            for loaded in self.owners.pop(id(handle), ()):
                loaded.forget(id(handle))
            handle.destroy()

    def write(self, buffer: Buffer, offset: int, data: np.ndarray) -> None:
        """Bytes in. The copy is taken before this returns."""
        if not data.size:
            return
        with self.lock:
            if id(buffer.handle) in self.touched:
                self.flush()
            end = offset + data.size
            padded = end == buffer.nbytes  # what follows is padding, so whole words may be written
            if offset % 4 or (end % 4 and not padded):
                low, high = offset // 4 * 4, -(-end // 4) * 4
                words = np.empty(high - low, np.uint8)
                self.read(buffer, low, words, True, raises=False)
                words[offset - low : end - low] = data
                offset, data = low, words
            elif end % 4:
                data = np.concatenate([data, np.zeros(-end % 4, np.uint8)])
            for at in range(0, data.size, STAGE):
                try:
                    self.handle.queue.write_buffer(buffer.handle, offset + at, data[at : at + STAGE])
                except Exception as e:
                    raise failed(e) from None
                if data.size > STAGE:
                    self.handle.queue.submit([])  # wgpu keeps written data until a submission

    def read(self, buffer: Buffer, offset: int, out: np.ndarray, blocking: bool, raises: bool = True) -> None:
        with self.lock:
            for at in range(0, out.size, STAGE):
                part = out[at : at + STAGE]
                low, high = (offset + at) // 4 * 4, -(-(offset + at + part.size) // 4) * 4
                staging = self.handle.create_buffer(size=high - low, usage=MAP_READ | COPY_DST)
                self.commands().copy_buffer_to_buffer(buffer.handle, low, staging, 0, high - low)
                self.touched.add(id(buffer.handle))
                self.reads.append((staging, offset + at - low, part))
                if out.size > STAGE and blocking:
                    self.finish_reads()
            if blocking:
                self.finish_reads()
                if raises:
                    self.raise_faults()

    def finish_reads(self) -> None:
        self.flush()
        reads, self.reads = self.reads, []
        for staging, skip, out in reads:
            out[:] = mapped(staging)[skip : skip + out.size]
            staging.unmap()
            staging.destroy()

    def copy(self, src: Buffer, src_offset: int, dst: Buffer, dst_offset: int, nbytes: int) -> None:
        if not nbytes:
            return
        with self.lock:
            padded = dst_offset + nbytes == dst.nbytes
            words = src_offset % 4 == 0 and dst_offset % 4 == 0 and (nbytes % 4 == 0 or padded)
            if words and src.handle is not dst.handle:
                size = -(-nbytes // 4) * 4
                if self.device.own_copies and Copier.takes(src_offset, dst_offset, size):
                    self.copier = self.copier or Copier(self.handle, self.device.max_binding)
                    self.copier.record(self.commands(), src.handle, src_offset, dst.handle, dst_offset, size)
                else:
                    self.commands().copy_buffer_to_buffer(src.handle, src_offset, dst.handle, dst_offset, size)
                self.touched |= {id(src.handle), id(dst.handle)}
            else:  # through the host: WebGPU copies whole words, between two buffers
                data = np.empty(nbytes, np.uint8)
                self.read(src, src_offset, data, True, raises=False)
                self.write(dst, dst_offset, data)

    def fill(self, buffer: Buffer, offset: int, nbytes: int, byte: int) -> None:
        if not nbytes:
            return
        with self.lock:
            size = nbytes if offset + nbytes != buffer.nbytes else -(-nbytes // 4) * 4
            if byte == 0 and offset % 4 == 0 and size % 4 == 0:
                self.commands().clear_buffer(buffer.handle, offset, size)
                self.touched.add(id(buffer.handle))
                return
            pattern = np.full(min(nbytes, 1 << 22), byte, np.uint8)
            for at in range(0, nbytes, pattern.size):
                self.write(buffer, offset + at, pattern[: nbytes - at])

    # -- waiting -----------------------------------------------------------------------------------------
    def synchronize(self) -> None:
        """Wait for everything; raise the first fault."""
        with self.lock:
            self.finish_reads()
            if not self.pending and not self.printed:
                self.commands()
                batch = self.batch
                batch.wanted = True
                self.flush()
                assert batch.fence is not None
                batch.fence.wait()
            self.raise_faults()

    def raise_faults(self) -> None:
        self.collect()
        found, self.found = self.found, None
        if found is not None:
            raise found

    def collect(self) -> None:
        """Wait for the launches whose records are unread, and look at them."""
        if self.pending:
            size = len(self.pending) * FAULT_BYTES
            words = self.download(self.faults(), size).view(np.uint32).reshape(len(self.pending), -1)
            pending, self.pending = self.pending, []
            for slot in np.flatnonzero(words[:, 0] != faults.EMPTY):
                kernel, blocks = pending[int(slot)]
                self.clear_faults(int(slot))
                if self.found is None:
                    self.found = faults.decode(words[slot, : faults.WORDS], kernel, blocks)
        if self.printed:
            self.printed = False
            words = self.download(self.prints(), printing.WORDS * 4).view(np.uint32)
            self.commands().clear_buffer(self.print_buffer, 0, printing.WORDS * 4)
            printing.show(words, self.kernels.__getitem__)

    def download(self, handle: Any, size: int) -> np.ndarray:
        """The first bytes of a buffer, once everything before is done."""
        staging = self.handle.create_buffer(size=size, usage=MAP_READ | COPY_DST)
        self.commands().copy_buffer_to_buffer(handle, 0, staging, 0, size)
        self.flush()
        data = mapped(staging).copy()
        staging.unmap()
        staging.destroy()
        return data

    # -- time --------------------------------------------------------------------------------------------
    def stamp(self) -> int | None:
        """Record the device's clock; the number of the query, or None where there is no such clock."""
        if "timestamp-query" not in self.device.features or not self.free_queries:
            return None
        if self.queries is None:
            self.queries = self.handle.create_query_set(type="timestamp", count=QUERIES)
        n = self.free_queries.pop()
        writes = {"query_set": self.queries, "beginning_of_pass_write_index": n}
        self.commands().begin_compute_pass(timestamp_writes=writes).end()
        return n

    def clock(self, query: int) -> int:
        """Nanoseconds of a recorded stamp."""
        with self.lock:
            resolved = self.handle.create_buffer(size=256, usage=0x0200 | COPY_SRC)
            self.commands().resolve_query_set(self.queries, query, 1, resolved, 0)
            return int(self.download(resolved, 8).view(np.uint64)[0])
