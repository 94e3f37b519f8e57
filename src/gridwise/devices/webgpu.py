"""Every other GPU through WebGPU (the ``wgpu`` package: wgpu-native on Vulkan, Metal or DX12).

Names: ``vulkan``, ``metal``, ``dx12``, ``gl`` for the best adapter of that kind, ``webgpu`` for the best of all;
``vulkan:1`` for the second one, ``vulkan:swiftshader`` for the first whose name or driver contains the word.
Discrete GPUs come before integrated ones, and those before drivers that compute on the CPU (``software``).
``gl`` is looked for only where the environment variable GRIDWISE_GL is set. Which Vulkan drivers exist is the
loader's business: VK_DRIVER_FILES lists their manifest files.
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
import tempfile
from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np

from gridwise.ir.core import Kernel
from gridwise.lang.errors import (
    DeviceUnavailableError,
    LaunchValueError,
    OutOfMemoryError,
    UnsupportedError,
)
from gridwise.targets.wgsl import capabilities
from gridwise.targets.wgsl.dialect import NAGA, Numerics

from .base import Arg, Device, Limits, Module
from .memory import Buffer
from .webgpu_module import Loaded
from .webgpu_queue import Queue
from .webgpu_stream import WebGpuStream

KINDS = {"vulkan": "Vulkan", "metal": "Metal", "dx12": "D3D12", "gl": "OpenGL"}
_ORDER = {"DiscreteGPU": 0, "IntegratedGPU": 1, "VirtualGPU": 2, "Unknown": 3, "CPU": 4}
FEATURES = (
    "shader-f64",
    "shader-int64",
    "shader-int64-atomic-min-max",
    "shader-int64-atomic-all-ops",
    "subgroup",
    "timestamp-query",
)
MISSING = 'WebGPU needs the package "wgpu"\n  help: pip install "gridwise[webgpu]"'


@cache
def _adapters() -> tuple[Any, ...]:
    """The adapters here, best first. Empty without the package or without any driver."""
    if importlib.util.find_spec("wgpu") is None:
        return ()
    # Mesa complains on standard error where this is unset.
    os.environ.setdefault("XDG_RUNTIME_DIR", tempfile.gettempdir())
    try:
        import wgpu
        from wgpu.backends.wgpu_native.extras import set_instance_extras

        # Asking OpenGL loads Mesa's drivers, and the LLVM in them, with their symbols in the global scope: Z3, torch's
        # Triton and whatever else brings its own LLVM then abort. So only where it is asked for.
        with contextlib.suppress(RuntimeError):  # the program has talked to wgpu before: what it chose stays
            set_instance_extras(backends=["All"] if os.environ.get("GRIDWISE_GL") else ["Primary"])
        found = wgpu.gpu.enumerate_adapters_sync()
    except (ImportError, OSError, RuntimeError):
        return ()
    backends = list(KINDS.values())

    def rank(adapter: Any) -> tuple[int, int]:
        backend = adapter.info["backend_type"]
        place = backends.index(backend) if backend in backends else len(backends)
        return (_ORDER.get(adapter.info["adapter_type"], 3), place)

    return tuple(sorted((a for a in found if a.info["backend_type"] in backends), key=rank))


def _kind(adapter: Any) -> str:
    return next(name for name, backend in KINDS.items() if backend == adapter.info["backend_type"])


def find() -> list[str]:
    """A name for each kind of adapter present, best first; GL only where there is nothing else."""
    kinds = list(dict.fromkeys(_kind(a) for a in _adapters()))
    return [k for k in kinds if k != "gl"] or kinds


def _choose(name: str) -> tuple[str, Any]:
    """The canonical name and adapter that ``name`` means."""
    kind, _, which = name.partition(":")
    if importlib.util.find_spec("wgpu") is None:
        raise DeviceUnavailableError(f"{name} is not available: {MISSING}")
    of_kind = [a for a in _adapters() if kind in ("webgpu", _kind(a))]
    if not which:
        chosen = of_kind[:1]
    elif which.isdigit():
        chosen = of_kind[int(which) : int(which) + 1]
    else:
        word = which.lower()
        chosen = [a for a in of_kind if word in f"{a.info['device']} {a.info['description']}".lower()]
    if not chosen:
        present = ", ".join(f"{_kind(a)} ({a.info['device']})" for a in _adapters()) or "none"
        raise DeviceUnavailableError(
            f"no WebGPU adapter called {name!r}; present: {present}\n"
            "  help: install the GPU's driver, or Mesa's software one (mesa-vulkan-drivers)"
        )
    first = next(a for a in _adapters() if _kind(a) == _kind(chosen[0]))
    return _kind(chosen[0]) if chosen[0] is first else name, chosen[0]


def open(name: str) -> WebGpuDevice:
    """The device called ``name``. Raises DeviceUnavailableError, which says what is missing."""
    canonical, adapter = _choose(name)
    return WebGpuDevice(canonical, adapter)


class WebGpuBuffer(Buffer):
    """A storage buffer; ``handle`` is wgpu's. Destroyed when the last reference goes."""

    __slots__ = ("device", "size")

    def __init__(self, device: WebGpuDevice, handle: Any, nbytes: int, size: int):
        super().__init__(handle, nbytes)
        self.device, self.size = device, size

    def __del__(self) -> None:
        if not self.freed:
            # At the end of the interpreter wgpu may be gone, and the memory with it.
            with contextlib.suppress(Exception):
                self.device.free(self)


class WebGpuDevice(Device):
    """One adapter. Attributes beyond ``Device``: adapter, features, handle (wgpu's device), numerics."""

    kind = "webgpu"
    target = "wgsl"

    def __init__(self, name: str, adapter: Any):
        import wgpu

        self.name, self.adapter = name, adapter
        info = adapter.info
        self.software = info["adapter_type"] == "CPU"
        software = " (software)" if self.software else ""
        self.description = f"{info['device']}, {info['description']}, {info['backend_type']}{software}"
        self.features = frozenset(f for f in FEATURES if f in adapter.features)
        # Other limits stay the portable ones: a kernel that runs here runs on every WebGPU implementation.
        offered = adapter.limits
        most = {k: int(offered[k]) for k in ("max-buffer-size", "max-storage-buffer-binding-size")}
        try:
            self.handle = adapter.request_device_sync(
                label="gridwise", required_features=sorted(self.features), required_limits=capabilities.LIMITS | most
            )
        except (RuntimeError, wgpu.GPUError) as e:
            raise DeviceUnavailableError(f"{name}: {info['device']} refused a device: {_first_line(e)}") from None
        self.max_binding = min(most["max-storage-buffer-binding-size"], (1 << 32) - 4)
        self.caps = capabilities.caps(self.features)
        sizes = (int(info.get("stackgroup_min_size", 0)), int(info.get("stackgroup_max_size", 0)))
        self.limits = Limits(
            max_threads_per_block=capabilities.THREADS,
            max_block=capabilities.BLOCK,
            max_grid=(2**31 - 1, capabilities.BLOCKS_PER_AXIS, capabilities.BLOCKS_PER_AXIS),
            shared_bytes=capabilities.SHARED_BYTES,
            subgroup_sizes=tuple(1 << n for n in range(1, 8) if sizes[0] <= 1 << n <= sizes[1]),
            max_buffer_bytes=min(most["max-buffer-size"], self.max_binding),
            max_arrays=capabilities.STORAGE_BUFFERS,
        )
        self.own_copies = info["adapter_type"] == "DiscreteGPU"  # see webgpu_copy.py
        self.queue = Queue(self)
        self.default_stream: WebGpuStream = WebGpuStream(self)
        self._numerics: Numerics | None = None
        self._linear: dict[int, bool] = {}  # threads of a block -> whether lanes are threads in order

    @property
    def numerics(self) -> Numerics:
        """Which operations the driver gets exactly right, found out when first asked."""
        if self._numerics is None:
            from .webgpu_probe import probe

            self._numerics = probe(self.handle)
        return self._numerics

    # -- memory ------------------------------------------------------------------------------------------
    def allocate(self, nbytes: int) -> WebGpuBuffer:
        import wgpu

        size = max(16, -(-nbytes // 16) * 16)
        if size > self.handle.limits["max-buffer-size"]:
            raise OutOfMemoryError(
                f"{self.name}: {nbytes} bytes asked for; one buffer here has at most "
                f"{self.handle.limits['max-buffer-size']}"
            )
        usage = wgpu.BufferUsage.STORAGE | wgpu.BufferUsage.COPY_SRC | wgpu.BufferUsage.COPY_DST
        try:
            handle = self.handle.create_buffer(size=size, usage=usage)
        except wgpu.GPUError as e:
            raise OutOfMemoryError(f"{self.name}: {nbytes} bytes could not be allocated: {_first_line(e)}") from None
        return WebGpuBuffer(self, handle, nbytes, size)

    def free(self, buffer: Buffer) -> None:
        if not buffer.freed:
            buffer.freed = True
            self.queue.free(buffer.handle)

    def write(self, buffer: Buffer, offset: int, data: np.ndarray, stream: Any, blocking: bool = True) -> None:
        self.queue.write(buffer, offset, data.reshape(-1).view(np.uint8))

    def read(self, buffer: Buffer, offset: int, out: np.ndarray, stream: Any, blocking: bool = True) -> None:
        self.queue.read(buffer, offset, out.reshape(-1).view(np.uint8), blocking)

    def copy(self, src: Buffer, src_offset: int, dst: Buffer, dst_offset: int, nbytes: int, stream: Any) -> None:
        self.queue.copy(src, src_offset, dst, dst_offset, nbytes)

    def fill(self, buffer: Buffer, offset: int, nbytes: int, byte: int, stream: Any) -> None:
        self.queue.fill(buffer, offset, nbytes, byte)

    # -- code --------------------------------------------------------------------------------------------
    def code_key(self) -> str:
        return "lowered"  # the text is quick to make and depends on the adapter's numerics: only the passes are saved

    def load(self, kernel: Kernel, code: bytes | None = None) -> Module:
        capabilities.check(kernel, self.caps)
        self._check_lanes(kernel)
        loaded = Loaded(self.handle, kernel, NAGA, self._numerics_for(kernel), self.queue)
        return Module(kernel, loaded, {"wgsl": loaded.text}, {}, b"")

    def _check_lanes(self, kernel: Kernel) -> None:
        """Refuse subgroup operations where lanes are not the threads of a block in order."""
        use = next((op for op in kernel.walk() if op.code == "subgroup"), None)
        if use is None:
            return
        threads = kernel.block[0] * kernel.block[1] * kernel.block[2]
        if threads not in self._linear:
            from .webgpu_probe import linear_lanes

            self._linear[threads] = linear_lanes(self.handle, threads)
        if not self._linear[threads]:
            raise UnsupportedError(
                f"{kernel.name}: the driver of {self.name} gives the {threads} threads of a block to subgroups "
                "out of order",
                use.loc,
                "do without subgroup operations on this device",
            )

    def _numerics_for(self, kernel: Kernel) -> Numerics:
        """Measured only for kernels that it matters to: the measurement compiles a shader."""
        matters = any(op.code in ("div", "fma") or op.attrs.get("fn") == "sqrt" for op in kernel.walk())
        return self.numerics if matters else Numerics()

    def launch(
        self, module: Module, grid: tuple[int, int, int], args: Sequence[Arg], stream: Any, shared_bytes: int = 0
    ) -> None:
        if 0 in grid:
            return
        coarsen = module.kernel.coarsen
        blocks = (-(-grid[0] // coarsen), grid[1], grid[2])
        if blocks[0] * blocks[1] * blocks[2] >= 1 << 32:
            raise LaunchValueError(f"{module.kernel.name}: a grid of {grid} blocks is beyond WebGPU's 2**32 - 1")
        self.queue.launch(module.handle, blocks, args, shared_bytes, self.max_binding)

    # -- order -------------------------------------------------------------------------------------------
    def stream(self, priority: int = 0) -> WebGpuStream:
        """WebGPU has one queue: every stream is that queue, in order. ``priority`` has no effect."""
        return self.default_stream

    def synchronize(self) -> None:
        self.queue.synchronize()


def _first_line(error: BaseException) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[-1] if lines else type(error).__name__
