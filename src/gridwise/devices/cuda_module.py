"""A kernel on a CUDA device: PTX handed to the driver, and its arguments packed for ``cuLaunchKernel``.

The machine arguments are those of ``Kernel.slots()``, in order, then what the kernel needs of the runtime:
the fault buffer's address if it can fault, the print buffer's address if it prints, the module's tag if
either, and the launch's serial number if it prints (``targets/ptx/emit.py`` declares exactly these).
"""

from __future__ import annotations

import ctypes
import re
import shutil
import struct
import subprocess
import tempfile
import threading
import weakref
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gridwise.ir.core import Kernel
from gridwise.ir.types import Scalar
from gridwise.lang.errors import DeviceError, LaunchValueError
from gridwise.targets.ptx.emitted import Emitted

from .cuda_driver import CudaError, call, driver, release
from .memory import ArrayArg

if TYPE_CHECKING:
    from .cuda import CudaDevice

LOG_BYTES = 16 * 1024
STATIC_LIMIT = 48 * 1024  # dynamic shared memory beyond this must be asked for

_CODES = {
    "bool": "?", "i8": "b", "u8": "B", "i16": "h", "u16": "H", "i32": "i", "u32": "I", "i64": "q", "u64": "Q",
    "f32": "f", "f64": "d", "f16": "H", "bf16": "H", "f8e4m3": "B", "f8e5m2": "B",
}  # fmt: skip
_AS_BITS = {"f16": "uint16", "bf16": "uint16", "f8e4m3": "uint8", "f8e5m2": "uint8"}  # packed from their bits


class Layout:
    """Where each machine argument lies in the packed block: naturally aligned, in order."""

    def __init__(self, kernel: Kernel, emitted: Emitted):
        codes = []
        for slot in kernel.slots():
            codes.append("Q" if slot.type is None else _CODES[slot.type.name])
        if emitted.faults:
            codes.append("Q")
        if emitted.prints:
            codes.append("Q")
        if emitted.faults or emitted.prints:
            codes.append("I")
        if emitted.prints:
            codes.append("I")
        text, self.offsets, at = "=", [], 0
        for code in codes:
            size = struct.calcsize("=" + code)
            text += "x" * (-at % size) + code
            at += -at % size
            self.offsets.append(at)
            at += size
        self.pack_into = struct.Struct(text).pack_into
        self.nbytes = max(at, 8)


class Packed(threading.local):
    """A block of machine arguments and the pointers to each, one a thread: launches of one kernel from several
    threads do not disturb each other, and a launch allocates nothing."""

    def __init__(self, layout: Layout):
        self.block = ctypes.create_string_buffer(layout.nbytes)
        base = ctypes.addressof(self.block)
        self.pointers = (ctypes.c_void_p * max(1, len(layout.offsets)))(*(base + o for o in layout.offsets))
        self.address = ctypes.addressof(self.pointers)


class CudaModule:
    """What ``Module.handle`` is on a CUDA device.

    ``function`` is the ``CUfunction`` (``function_address`` its value, for native launchers), ``layout`` the
    packing of its arguments, ``tag`` the number by which faults and prints name it.
    """

    def __init__(self, device: CudaDevice, kernel: Kernel, emitted: Emitted, ptx: str, tag: int):
        self.device, self.kernel, self.emitted, self.tag = device, kernel, emitted, tag
        self.layout = Layout(kernel, emitted)
        self.packed = Packed(self.layout)
        self.convert = [_converter(p.type) for p in kernel.params]
        self.strided = [getattr(p.type, "strided", False) for p in kernel.params]
        self.block = kernel.block
        self.image = ptx.encode() + b"\0"
        module = _load(self.image, kernel.name, ptx)
        # Queued launches may still need the code: wait for them before it goes.
        weakref.finalize(self, release, device.enter, ("cuCtxSynchronize",), ("cuModuleUnload", module)).atexit = False
        self.function = call("cuModuleGetFunction", module, emitted.entry.encode())
        self.function_address = int(self.function)
        self._dynamic = 0  # largest dynamic shared memory asked for so far

    # -- launch ------------------------------------------------------------------------------------------
    def pack(self, args: Sequence[Any], fault: int, print_: int) -> int:
        """Pack the machine arguments; the address of the ``void**`` for ``cuLaunchKernel``."""
        values: list[Any] = []
        for arg, strided, convert in zip(args, self.strided, self.convert, strict=True):
            if isinstance(arg, ArrayArg):
                values.append(arg.buffer.address + arg.offset)
                values.extend(arg.shape)
                if strided:
                    values.extend(arg.strides)
            else:
                values.append(arg if convert is None else convert(arg))
        emitted = self.emitted
        if emitted.faults:
            values.append(fault)
        if emitted.prints:
            values.append(print_)
        if emitted.faults or emitted.prints:
            values.append(self.tag)
        if emitted.prints:
            values.append(self.device.next_serial())
        packed = self.packed
        self.layout.pack_into(packed.block, 0, *values)
        return packed.address

    def shared_bytes(self, requested: int) -> int:
        """Dynamic shared memory of a launch that asks for ``requested`` bytes. Raises LaunchValueError if too much."""
        total = self.emitted.dynamic_shared + requested
        if total > STATIC_LIMIT and total > self._dynamic:
            limit = self.device.limits.shared_bytes - self.emitted.static_shared
            if total > limit:
                raise LaunchValueError(
                    f"{self.kernel.name}: {total:,} bytes of shared memory a block, {limit:,} are available "
                    f"on {self.device.name}"
                )
            key = driver().CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
            call("cuFuncSetAttribute", self.function, key, total)
            self._dynamic = total
        return total

    # -- queries -----------------------------------------------------------------------------------------
    def info(self) -> dict[str, Any]:
        """Registers a thread, local memory a thread (spills and stack), shared memory a block, all as compiled."""

        def get(name: str) -> int:
            key = getattr(driver().CUfunction_attribute, f"CU_FUNC_ATTRIBUTE_{name}")
            return int(call("cuFuncGetAttribute", key, self.function))

        return {
            "registers": get("NUM_REGS"),
            "local_bytes": get("LOCAL_SIZE_BYTES"),
            "shared_bytes": get("SHARED_SIZE_BYTES") + self.emitted.dynamic_shared,
            "max_threads_per_block": get("MAX_THREADS_PER_BLOCK"),
            "binary_version": get("BINARY_VERSION"),
            "blocks_per_multiprocessor": self.occupancy(0),
        }

    def occupancy(self, shared_bytes: int = 0) -> int:
        """Blocks that one multiprocessor can hold at a time."""
        threads = self.block[0] * self.block[1] * self.block[2]
        return int(
            call("cuOccupancyMaxActiveBlocksPerMultiprocessor", self.function, threads, self.shared_bytes(shared_bytes))
        )

    def cubin(self) -> bytes:
        """The machine code that the driver makes of this PTX for this device."""
        self.device.enter()
        state = call("cuLinkCreate", 0, [], [])
        try:
            kind = driver().CUjitInputType.CU_JIT_INPUT_PTX
            call("cuLinkAddData", state, kind, self.image, len(self.image), b"kernel.ptx", 0, [], [])
            address, size = call("cuLinkComplete", state)
            return ctypes.string_at(int(address), int(size))
        finally:
            call("cuLinkDestroy", state)

    def sass(self) -> str:
        """The machine code as text, by NVIDIA's disassembler, which is the one thing here that a driver lacks."""
        for tool, options in (("nvdisasm", ["-c"]), ("cuobjdump", ["-sass"])):
            path = shutil.which(tool) or shutil.which(tool, path="/usr/local/cuda/bin")
            if path is None:
                continue
            with tempfile.TemporaryDirectory() as folder:
                file = Path(folder) / "kernel.cubin"
                file.write_bytes(self.cubin())
                done = subprocess.run([path, *options, str(file)], capture_output=True, text=True)
            if done.returncode == 0:
                return done.stdout
            raise DeviceError(f"{path} failed: {done.stderr.strip()[:300]}")
        raise DeviceError(
            "machine code can be shown only with NVIDIA's disassembler, which is not on this machine\n"
            "  help: put nvdisasm or cuobjdump (CUDA toolkit) on PATH, or use --stage ptx"
        )


def _converter(t: Any) -> Any:
    """How a scalar argument becomes what ``struct`` packs; None if as it is."""
    if not isinstance(t, Scalar) or not t.is_float or t.name == "f64":
        return None
    dtype = t.dtype.type
    if t.name in _AS_BITS:
        bits = _AS_BITS[t.name]
        return lambda value: int(dtype(value).view(bits))
    return dtype  # f32: what does not fit becomes infinite, where struct would raise


def _load(image: bytes, name: str, ptx: str) -> Any:
    """Give PTX to the driver. Its complaints come back with the lines that they are about."""
    options = driver().CUjit_option
    log = bytearray(LOG_BYTES)
    keys = [options.CU_JIT_ERROR_LOG_BUFFER, options.CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES]
    try:
        return call("cuModuleLoadDataEx", image, len(keys), keys, [log, LOG_BYTES])
    except CudaError as e:
        text = bytes(log).split(b"\0", 1)[0].decode(errors="replace").strip()
        raise DeviceError(_explain(name, e, text, ptx)) from e


def _explain(name: str, e: CudaError, log: str, ptx: str) -> str:
    """The driver's log in few lines, with the PTX lines it names."""
    lines, shown = ptx.splitlines(), []
    for message in log.splitlines()[:2]:
        shown.append(f"  {message.strip()}")
        found = re.search(r"line (\d+)", message)
        if found and 0 < int(found[1]) <= len(lines):
            shown.append(f"  |   {lines[int(found[1]) - 1].strip()}")
    hint = (
        "update the NVIDIA driver"
        if e.code == "CUDA_ERROR_UNSUPPORTED_PTX_VERSION"
        else "this is a bug in gridwise: please report it with the output of 'gridwise inspect --stage ptx'"
    )
    head = f"{name}: the CUDA driver does not accept the generated PTX ({e.code})"
    return "\n".join([head, *shown, f"  help: {hint}"])
