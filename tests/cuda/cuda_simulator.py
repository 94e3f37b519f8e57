"""A CUDA driver for tests on machines without a GPU: it runs the LLVM IR that the PTX target emits on this CPU.

``Simulator`` stands in for ``cuda.bindings.driver``. Memory is host memory, streams run at once, and a launch calls
the kernel's LLVM function for every thread, block after block. Special registers, barriers, shuffles and votes are
calls back into this file; a block whose threads wait for each other gets one operating system thread for each.
What it cannot show is what NVIDIA's compiler and hardware do; everything before that is the real code.
"""

from __future__ import annotations

import ctypes
import functools
import gc
import itertools
import re
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import llvmlite.binding as llvm
import ml_dtypes
import numpy as np

WARP = 32
_COOPERATIVE = ("nvvm_barrier", "nvvm_shfl", "nvvm_vote", "nvvm_redux")


class Code:
    """One value of a driver enumeration."""

    def __init__(self, name: str, value: int = 1):
        self.name, self.value = name, value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Code) and other.name == self.name

    def __hash__(self) -> int:
        return hash(self.name)

    def __bool__(self) -> bool:
        return self.name != "CUDA_SUCCESS"

    def __int__(self) -> int:
        return self.value


class Codes:
    """An enumeration: any attribute is a value of it."""

    def __getattr__(self, name: str) -> Code:
        return Code(name)


OK = Code("CUDA_SUCCESS")


class _Place(threading.local):
    """Where in the launch the calling thread is."""

    thread = (0, 0, 0)
    block = (0, 0, 0)
    grid = (1, 1, 1)
    lane = warp = dynamic = 0
    team: Any = None


_here = _Place()


class _Team:
    """The threads of one block, when they run side by side."""

    def __init__(self, threads: int):
        self.barrier = threading.Barrier(threads)
        warps = -(-threads // WARP)
        sizes = [min(WARP, threads - WARP * w) for w in range(warps)]
        self.warps = [threading.Barrier(n) for n in sizes]
        self.slots = [[0] * WARP for _ in range(warps)]

    def exchange(self, value: int) -> list[int]:
        """Every lane's value, for all lanes of the warp."""
        barrier, slots = self.warps[_here.warp], self.slots[_here.warp]
        slots[_here.lane] = value
        barrier.wait(60)
        seen = list(slots)
        barrier.wait(60)
        return seen


def _members(mask: int) -> list[int]:
    lanes = [n for n in range(WARP) if mask >> n & 1]
    assert len(lanes) == _here.team.warps[_here.warp].parties, "the member mask must name the warp's threads"
    return lanes


def _shuffle(source: Callable[[int, int], int]) -> Callable[..., int]:
    def shfl(mask: int, value: int, operand: int, clamp: int) -> int:
        lanes, seen = _members(mask), _here.team.exchange(value)
        lane = source(_here.lane, operand & 31)
        inside = lane >= clamp if source is _up else 0 <= lane <= clamp
        if not inside:
            lane = _here.lane
        assert lane in lanes, "a shuffle read a lane that does not exist"
        return seen[lane]

    return shfl


def _up(lane: int, d: int) -> int:
    return lane - d


def _fold(fn: Callable[[int, int], int], signed: bool = True) -> Callable[[int, int], int]:
    def redux(value: int, mask: int) -> int:
        seen = _here.team.exchange(value)
        values = [seen[n] if signed else seen[n] & 0xFFFF_FFFF for n in _members(mask)]
        total = values[0]
        for v in values[1:]:
            total = fn(total, v)
        return ctypes.c_int32(total & 0xFFFF_FFFF).value

    return redux


def _vote(fn: Callable[[list[int], list[int]], int]) -> Callable[[int, int], int]:
    return lambda mask, p: fn(_members(mask), _here.team.exchange(p & 1))


def _wait() -> None:
    _here.team.barrier.wait(60)


_I = ctypes.c_int32
_CALLS: dict[str, tuple[Any, list[Any], Callable[..., Any]]] = {
    "nvvm_barrier0": (None, [], _wait),
    "nvvm_dynamic": (_I, [], lambda: _here.dynamic),
    "nvvm_shfl.sync.idx.i32": (_I, [_I] * 4, _shuffle(lambda lane, s: s)),
    "nvvm_shfl.sync.bfly.i32": (_I, [_I] * 4, _shuffle(lambda lane, m: lane ^ m)),
    "nvvm_shfl.sync.down.i32": (_I, [_I] * 4, _shuffle(lambda lane, d: lane + d)),
    "nvvm_shfl.sync.up.i32": (_I, [_I] * 4, _shuffle(_up)),
    "nvvm_vote.any.sync": (_I, [_I, _I], _vote(lambda m, p: int(any(p[n] for n in m)))),
    "nvvm_vote.all.sync": (_I, [_I, _I], _vote(lambda m, p: int(all(p[n] for n in m)))),
    "nvvm_vote.ballot.sync": (_I, [_I, _I], _vote(lambda m, p: ctypes.c_int32(sum(p[n] << n for n in m)).value)),
    "nvvm_redux.sync.add": (_I, [_I, _I], _fold(lambda a, b: a + b)),
    "nvvm_redux.sync.and": (_I, [_I, _I], _fold(lambda a, b: a & b)),
    "nvvm_redux.sync.or": (_I, [_I, _I], _fold(lambda a, b: a | b)),
    "nvvm_redux.sync.xor": (_I, [_I, _I], _fold(lambda a, b: a ^ b)),
    "nvvm_redux.sync.min": (_I, [_I, _I], _fold(min)),
    "nvvm_redux.sync.max": (_I, [_I, _I], _fold(max)),
    "nvvm_redux.sync.umin": (_I, [_I, _I], _fold(min, signed=False)),
    "nvvm_redux.sync.umax": (_I, [_I, _I], _fold(max, signed=False)),
}
for _axis, _a in enumerate("xyz"):
    _CALLS[f"nvvm_read.ptx.sreg.tid.{_a}"] = (_I, [], lambda n=_axis: _here.thread[n])
    _CALLS[f"nvvm_read.ptx.sreg.ctaid.{_a}"] = (_I, [], lambda n=_axis: _here.block[n])
    _CALLS[f"nvvm_read.ptx.sreg.nctaid.{_a}"] = (_I, [], lambda n=_axis: _here.grid[n])



def _narrow(dtype: Any, source: Any) -> Callable[[float], float]:
    """The compiler's helper that rounds to a 16-bit float: its bits are the low ones of the vector register."""

    def narrow(x: float) -> float:
        with np.errstate(over="ignore"):
            bits = int(source(x).astype(dtype).view(np.uint16))
        return float(struct.unpack("<d", struct.pack("<Q", bits))[0])

    return narrow


for _name, _dtype in (("hf", np.float16), ("bf", ml_dtypes.bfloat16)):
    _CALLS[f"__truncdf{_name}2"] = (ctypes.c_double, [ctypes.c_double], _narrow(_dtype, np.float64))
    _CALLS[f"__truncsf{_name}2"] = (ctypes.c_double, [ctypes.c_float], _narrow(_dtype, np.float32))

_kept: list[Any] = []  # callbacks must outlive the code that calls them


@functools.cache
def _start() -> None:
    """Give LLVM the host as a target, and the functions above."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    for name, (result, args, fn) in _CALLS.items():
        callback = ctypes.CFUNCTYPE(result, *args)(fn)
        _kept.append(callback)
        llvm.add_symbol(name, ctypes.cast(callback, ctypes.c_void_p).value)


def _machine() -> Any:
    """A target machine for this CPU; the compiler that uses it owns it."""
    host = llvm.get_host_cpu_features()
    for bf16 in ("avx512bf16", "avxneconvert"):  # their conversions flush subnormals, those of a GPU do not
        host[bf16] = False
    features = host.flatten()
    target = llvm.Target.from_default_triple()
    return target.create_target_machine(cpu=llvm.get_host_cpu_name(), features=features, opt=2, jit=True)


def host_ir(text: str, entry: str) -> str:
    """The emitted module for this CPU, with ``launch(void** params)`` that calls the kernel."""
    text = re.sub(r'target (triple|datalayout) = ".*"\n', "", text)
    text = re.sub(r" addrspace\(\d\)", "", text)
    text = re.sub(r' syncscope\("\w+"\)', "", text)
    text = text.replace("ptx_kernel ", "").replace("@llvm.nvvm.", "@nvvm_")
    text = text.replace('asm "mov.u32 $0, %dynamic_smem_size;", "=r"()', "@nvvm_dynamic()")
    dynamic = "@gridwise_dynamic_shared ="
    text = text.replace(f"{dynamic} external global [0 x i8]", f"{dynamic} internal global [262144 x i8] undef")
    if "@nvvm_dynamic" in text:
        text += "\ndeclare i32 @nvvm_dynamic()\n"
    head = re.search(rf"define void @{re.escape(entry)}\((.*?)\) #", text)
    assert head is not None
    lines, args = [], []
    for n, parameter in enumerate(filter(None, head[1].split(", "))):
        kind = parameter.split()[0]
        lines += [f"  %p{n} = getelementptr ptr, ptr %params, i64 {n}", f"  %a{n} = load ptr, ptr %p{n}"]
        lines.append(f"  %v{n} = load {kind}, ptr %a{n}")
        args.append(f"{kind} %v{n}")
    call = f"  call void @{entry}({', '.join(args)})"
    text = f'target triple = "{llvm.get_default_triple()}"\n{text}'
    return text + "define void @launch(ptr %params) {\n" + "\n".join([*lines, call, "  ret void"]) + "\n}\n"


_SIZES = {"ptr": 8, "double": 8, "float": 4, "half": 2, "bfloat": 2}


class HostCode:
    """A kernel compiled for this CPU."""

    def __init__(self, text: str, entry: str):
        _start()
        ir = host_ir(text, entry)
        module = llvm.parse_assembly(ir)
        module.verify()
        self.engine = llvm.create_mcjit_compiler(module, _machine())
        self.engine.finalize_object()
        address = self.engine.get_function_address("launch")
        self.run = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(address)
        kinds = re.findall(r"%v\d+ = load (\S+), ptr %a\d+", ir)
        self.sizes = [_SIZES.get(k) or int(k[1:]) // 8 for k in kinds]
        self.cooperative = any(name in ir for name in _COOPERATIVE)

    def launch(self, grid: tuple[int, ...], block: tuple[int, ...], params: int, dynamic: int) -> None:
        threads = [(x, y, z) for z in range(block[2]) for y in range(block[1]) for x in range(block[0])]
        for z, y, x in itertools.product(*(range(n) for n in reversed(grid))):
            team = _Team(len(threads)) if self.cooperative else None

            def one(n: int, at: Any, team: Any = team, where: Any = (x, y, z)) -> None:
                _here.thread, _here.block, _here.grid = at, where, grid  # type: ignore[assignment]
                _here.lane, _here.warp, _here.team, _here.dynamic = n % WARP, n // WARP, team, dynamic
                self.run(params)

            if team is None:
                for n, at in enumerate(threads):
                    one(n, at)
                continue
            workers = [threading.Thread(target=one, args=(n, at)) for n, at in enumerate(threads)]
            for w in workers:
                w.start()
            for w in workers:
                w.join()


class Simulator:
    """The functions of the driver that the CUDA device calls, with the results that a driver gives."""

    CUresult = CUstream_flags = CUdevice_attribute = CUfunction_attribute = CUmemPool_attribute = Codes()
    CUjit_option = CUjitInputType = CUdriverProcAddress_flags = CUstreamCaptureMode = Codes()
    CU_MEMHOSTALLOC_DEVICEMAP = 2
    ATTRIBUTES = {  # noqa: RUF012
        "COMPUTE_CAPABILITY_MAJOR": 9, "COMPUTE_CAPABILITY_MINOR": 0, "WARP_SIZE": 32, "MAX_THREADS_PER_BLOCK": 1024,
        "MAX_SHARED_MEMORY_PER_BLOCK_OPTIN": 232448, "MAX_GRID_DIM_X": 2**31 - 1, "MAX_GRID_DIM_Y": 65535,
        "MAX_GRID_DIM_Z": 65535, "MAX_BLOCK_DIM_X": 1024, "MAX_BLOCK_DIM_Y": 1024, "MAX_BLOCK_DIM_Z": 64,
        "MULTIPROCESSOR_COUNT": 132, "MEMORY_POOLS_SUPPORTED": 1,
    }  # fmt: skip

    def __init__(self) -> None:
        self.capacity = 0
        self.memory: dict[int, Any] = {}
        self.sources: dict[bytes, tuple[str, str]] = {}  # PTX image: (LLVM IR, entry)
        self.functions: dict[int, HostCode] = {}
        self.handles = itertools.count(1)
        self.launches = 0
        self.refuse: dict[str, str] = {}  # call: error it gives once
        self.log = ""
        self.devices, self.peer_copies = 1, 0
        self.captures: dict[int, list[Any]] = {}  # stream: calls written down
        self.graphs: dict[int, list[Any]] = {}
        self.arguments: list[Any] = []
        # cuLaunchKernel for callers in machine code.
        word, handle = ctypes.c_uint32, ctypes.c_size_t
        kind = ctypes.CFUNCTYPE(ctypes.c_int, handle, *[word] * 7, handle, handle, handle)
        self._entry = kind(self._called)
        self._entry_address = ctypes.cast(self._entry, ctypes.c_void_p).value
        self.native = 0

    def __getattr__(self, name: str) -> Any:
        """Calls without a result that matters here: contexts, streams, events."""
        if not name.startswith("cu"):
            raise AttributeError(name)
        creates = re.search(r"Create|Retain|Get(?!ErrorString)", name)
        return lambda *args: (OK, next(self.handles)) if creates else (OK,)

    def cuuint64_t(self, value: int) -> int:
        return value

    def CUstream(self, handle: int) -> int:
        return handle

    def cuGetProcAddress(self, name: bytes, version: int, flags: Any) -> Any:
        return OK, self._entry_address, Code("CU_GET_PROC_ADDRESS_SUCCESS")

    def cuGetErrorString(self, code: Code) -> Any:
        return OK, b"simulated"

    def cuDriverGetVersion(self) -> Any:
        return OK, 13000

    def cuDeviceGetCount(self) -> Any:
        return OK, self.devices

    def cuDeviceGetName(self, length: int, device: int) -> Any:
        return OK, b"Simulated GPU\0"

    def cuDeviceTotalMem(self, device: int) -> Any:
        return OK, self.capacity

    def cuDeviceGetAttribute(self, key: Code, device: int) -> Any:
        return OK, self.ATTRIBUTES[key.name.removeprefix("CU_DEVICE_ATTRIBUTE_")]

    def cuMemGetInfo(self) -> Any:
        return OK, self.capacity - sum(map(len, list(self.memory.values()))), self.capacity

    def _called(self, *args: int) -> int:
        self.native += 1
        return int(bool(self.cuLaunchKernel(*args)[0]))

    # -- memory ------------------------------------------------------------------------------------------
    def cuMemAlloc(self, size: int) -> Any:
        if sum(map(len, list(self.memory.values()))) + size > self.capacity:
            return Code("CUDA_ERROR_OUT_OF_MEMORY"), 0
        block = (ctypes.c_char * (size + 256))()
        ctypes.memset(block, 0xCD, size + 256)  # never zero by luck
        address = -(-ctypes.addressof(block) // 256) * 256
        self.memory[address] = block
        return OK, address

    def cuMemFree(self, address: int) -> Any:
        del self.memory[address]
        return (OK,)

    def cuMemAllocAsync(self, size: int, stream: Any) -> Any:
        return self.cuMemAlloc(size)

    def cuMemFreeAsync(self, address: int, stream: Any) -> Any:
        return self.cuMemFree(address)

    def cuMemHostAlloc(self, size: int, flags: int) -> Any:
        return self.cuMemAlloc(size)

    def cuMemFreeHost(self, address: int) -> Any:
        return self.cuMemFree(address)

    def cuMemcpyHtoDAsync(self, to: int, source: int, size: int, stream: Any) -> Any:
        ctypes.memmove(to, source, size)
        return (OK,)

    cuMemcpyDtoHAsync = cuMemcpyHtoDAsync

    def cuMemcpyDtoDAsync(self, to: int, source: int, size: int, stream: Any) -> Any:
        if not self._captured("cuMemcpyDtoDAsync", stream, to, source, size, 0):
            ctypes.memmove(to, source, size)
        return (OK,)

    def cuMemcpyPeerAsync(self, to: int, here: Any, at: int, there: Any, size: int, stream: Any) -> Any:
        self.peer_copies += 1
        ctypes.memmove(to, at, size)
        return (OK,)

    def cuMemsetD8Async(self, to: int, byte: int, size: int, stream: Any) -> Any:
        if not self._captured("cuMemsetD8Async", stream, to, byte, size, 0):
            ctypes.memset(to, byte, size)
        return (OK,)

    # -- order -------------------------------------------------------------------------------------------
    def cuEventElapsedTime(self, start: int, end: int) -> Any:
        return OK, 0.5

    # -- code --------------------------------------------------------------------------------------------
    def cuModuleLoadDataEx(self, image: bytes, count: int, options: list[Any], values: list[Any]) -> Any:
        if self._refused("cuModuleLoadDataEx"):
            values[0][: len(self.log)] = self.log.encode()
            return Code("CUDA_ERROR_INVALID_PTX"), 0
        handle = next(self.handles)
        self.functions[handle] = HostCode(*self.sources[image])
        return OK, handle

    def cuModuleGetFunction(self, module: int, name: bytes) -> Any:
        return OK, module

    def cuModuleUnload(self, module: int) -> Any:
        del self.functions[module]
        return (OK,)

    def cuFuncGetAttribute(self, key: Code, function: int) -> Any:
        return OK, 16

    def cuOccupancyMaxActiveBlocksPerMultiprocessor(self, function: int, threads: int, shared: int) -> Any:
        return OK, 2048 // threads

    def _refused(self, call: str) -> str | None:
        return self.refuse.pop(call, None)

    # -- graphs ------------------------------------------------------------------------------------------
    def cuStreamBeginCapture(self, stream: int, mode: Code) -> Any:
        assert stream not in self.captures
        self.captures[stream] = []
        return (OK,)

    def cuStreamEndCapture(self, stream: int) -> Any:
        handle = next(self.handles)
        self.graphs[handle] = self.captures.pop(stream)
        return OK, handle

    def cuGraphInstantiate(self, graph: int, flags: int) -> Any:
        handle = next(self.handles)
        self.graphs[handle] = list(self.graphs[graph])
        return OK, handle

    def cuGraphExecUpdate(self, instance: int, graph: int) -> Any:
        if (refused := self._refused("cuGraphExecUpdate")) is not None:
            return Code(refused), None
        self.graphs[instance] = list(self.graphs[graph])
        return OK, None

    def cuGraphDestroy(self, graph: int) -> Any:
        del self.graphs[graph]
        return (OK,)

    cuGraphExecDestroy = cuGraphDestroy

    def cuGraphLaunch(self, instance: int, stream: int) -> Any:
        for name, args in self.graphs[instance]:
            assert getattr(self, name)(*args) == (OK,)
        return (OK,)

    def _captured(self, name: str, stream: int, *args: Any) -> bool:
        """Write a call down if its stream is being captured."""
        if stream not in self.captures:
            return False
        self.captures[stream].append((name, args))
        return True

    def _kept(self, function: int, params: int) -> int:
        """A copy of a launch's arguments, as a driver takes one."""
        sizes = self.functions[function].sizes
        pointers = (ctypes.c_void_p * max(1, len(sizes))).from_address(params)
        blocks = [ctypes.create_string_buffer(ctypes.string_at(p, n), n) for p, n in zip(pointers, sizes)]
        table = (ctypes.c_void_p * max(1, len(sizes)))(*map(ctypes.addressof, blocks))
        self.arguments.append((blocks, table))
        return ctypes.addressof(table)

    def cuLaunchKernel(self, function: int, *rest: int) -> Any:
        if (refused := self._refused("cuLaunchKernel")) is not None:
            return (Code(refused),)
        gx, gy, gz, bx, by, bz, shared, stream, params, extra = rest
        if stream in self.captures:
            kept = (function, *rest[:7], 0, self._kept(function, params), extra)
            return (OK,) if self._captured("cuLaunchKernel", stream, *kept) else None
        self.launches += 1
        self.functions[function].launch((gx, gy, gz), (bx, by, bz), params, shared)
        return (OK,)


@contextmanager
def simulated(capacity: int = 1 << 30) -> Iterator[Simulator]:
    """The simulated driver in place of the real one, for the length of a ``with``.

    One per process: what is collected late frees memory of the driver that it came from.
    """
    from gridwise.devices import cuda_driver, cuda_module, registry
    from gridwise.targets.ptx import compile as ptx_compile
    from gridwise.targets.ptx import emit as ptx_emit

    if any(d.kind == "cuda" and d.description[:9] != "Simulated" for d in registry._devices.values()):
        raise RuntimeError("a real CUDA device is open in this process: it cannot be simulated too")
    simulator = _simulator()
    gc.collect()
    simulator.capacity = capacity + sum(map(len, list(simulator.memory.values())))
    simulator.refuse.clear()
    simulator.launches = simulator.native = simulator.peer_copies = 0
    simulator.devices = 1
    real_compile, real_emit, real_driver = ptx_compile.compile, ptx_emit.emit, cuda_driver.driver
    entries: dict[str, str] = {}

    def emit(*args: Any, **options: Any) -> Any:
        emitted = real_emit(*args, **options)
        entries[emitted.llvm] = emitted.entry
        return emitted

    def compile(text: str, *args: Any) -> tuple[str, str]:
        optimised, ptx = real_compile(text, *args)
        simulator.sources[ptx.encode() + b"\0"] = (text, entries[text])
        return optimised, ptx

    replaced = lambda: simulator  # noqa: E731
    users = [cuda_driver, cuda_module, *_users()]
    try:
        ptx_compile.compile, ptx_emit.emit = compile, emit
        for user in users:
            user.driver = replaced
        cuda_driver.attribute.cache_clear()
        cuda_driver.function_address.cache_clear()
        yield simulator
    finally:
        ptx_compile.compile, ptx_emit.emit = real_compile, real_emit
        for user in users:
            user.driver = real_driver
        cuda_driver.attribute.cache_clear()
        cuda_driver.function_address.cache_clear()


@functools.cache
def _simulator() -> Simulator:
    return Simulator()


def _users() -> list[Any]:
    from gridwise.devices import cuda, cuda_graph, cuda_stream

    return [cuda, cuda_graph, cuda_stream]
