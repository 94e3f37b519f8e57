"""A lowered kernel as LLVM IR for NVPTX.

Address spaces: 1 global, 3 shared; thread-private arrays are allocas, which the back end moves to local memory.
Read-only arrays are ``noalias readonly``, so that their loads go through the read-only cache (``ld.global.nc``).
"""

from __future__ import annotations

import math
import re

from gridwise.ir import Kernel, Op, Value, verify
from gridwise.ir.core import Slot
from gridwise.ir.types import BOOL, I32, I64, U8, U16, ArrayType, Scalar, VectorType
from gridwise.lang.errors import UnsupportedError
from gridwise.lang.records import dataclass
from gridwise.targets.llvm.arith import Arith
from gridwise.targets.llvm.emit import ArrayRef, ThreadEmitter
from gridwise.targets.llvm.text import Module, identifier

from . import runtime
from .atomics import atomic
from .capabilities import SHARED_ALIGN, STATIC_SHARED, SUBGROUP
from .compile import TRIPLE
from .emitted import Emitted
from .matrix import Matrices
from .subgroup import Subgroups

_SPACES = {"global": 1, "shared": 3, "local": 0}
_SREG = {"thread_idx": "tid", "block_idx": "ctaid", "grid_dim": "nctaid"}
_GRID_LIMIT = (2**31 - 1, 65535, 65535)  # CUDA C++ Programming Guide, "Compute Capabilities"
_DYNAMIC = "gridwise_dynamic_shared"


class PtxArith(Arith):
    """Arithmetic where NVPTX has what the shared emitter emulates."""

    def shift(self, code: str, t: Scalar, a: str, b: str, lanes: int = 1) -> str:
        """PTX takes counts of 32 bits. For ``select(count < 64, a << count, 0)`` the back end cuts a count of 64 bits
        down and relies on the instruction to give 0, which is wrong from 2**32 on: a masked count does not match.
        """
        if t.bits != 64 or self.literal(b) is not None or (code == "shr" and t.signed):
            return super().shift(code, t, a, b, lanes)
        ty = self.type(t, lanes)
        ok = self.fn.value(f"icmp ult {ty} {b}, {self.const(64, t, lanes)}")
        count = self.fn.value(f"and {ty} {b}, {self.const(63, t, lanes)}")
        moved = self.fn.value(f"{'shl' if code == 'shl' else 'lshr'} {ty} {a}, {count}")
        return self.select(ok, moved, self.const(0, t, lanes), t, lanes)

    def fma(self, t: Scalar, a: str, b: str, c: str, lanes: int = 1) -> str:
        if t.bits != 16:
            return super().fma(t, a, b, c, lanes)
        ty = self.type(t, lanes)  # fma.rn.f16 and fma.rn.bf16: one rounding, which f32 cannot give
        name = ("f16" if ty.endswith(("half", "half>")) else "bf16") if lanes == 1 else ""
        name = name or f"v{lanes}{'f16' if 'half' in ty else 'bf16'}"
        return self.intrinsic(f"llvm.fma.{name}", ty, [(ty, a), (ty, b), (ty, c)])


@dataclass
class _Shared:
    """Where one shared array lies. ``bytes`` is None for the array whose extent comes from the launch."""

    pointer: str
    bytes: int | None


class PtxEmitter(ThreadEmitter):
    """One kernel. ``redux``: the device has ``redux.sync`` (compute capability 8.0)."""

    arith_class = PtxArith

    def __init__(self, kernel: Kernel, module: Module, redux: bool):
        self.entry = re.sub(r"[^A-Za-z0-9_$]", "_", kernel.name)
        self.faults = any(op.code == "fault" for op in kernel.walk())
        self.prints = {id(op): n for n, op in enumerate(o for o in kernel.walk() if o.code == "print")}
        self.redux = redux
        self.sregs: dict[tuple[str, int], str] = {}
        self.static_shared = self.dynamic_shared = 0
        self.placed: dict[int, _Shared] = {}
        self.structs: dict[Value, str] = {}  # vectors that are LLVM structs: the sums of tensor cores
        super().__init__(kernel, module)
        self.matrices = Matrices(self.arith)

    # -- the function --------------------------------------------------------------------------------------
    def header(self) -> str:
        attributes = self.module.attribute_group("nounwind")
        bound = ", ".join(f'!"maxntid{a}", i32 {n}' for a, n in zip("xyz", self.kernel.block, strict=True))
        self.module.named["nvvm.annotations"] = f"!{{{self.module.node(f'!{{ptr @{self.entry}, {bound}}}')}}}"
        return f"ptx_kernel void @{self.entry}({', '.join(self.parameters())}) {attributes}"

    def parameters(self) -> list[str]:
        extra = []
        if self.faults:
            extra.append("ptr addrspace(1) noalias %gw.faults")
        if self.prints:
            extra.append("ptr addrspace(1) noalias %gw.prints")
        if self.faults or self.prints:
            extra.append("i32 %gw.tag")
        if self.prints:
            extra.append("i32 %gw.serial")
        return super().parameters() + extra

    def slot_attributes(self, slot: Slot) -> str:
        text = super().slot_attributes(slot)
        # With this, neighbouring accesses become one of 16 bytes.
        return f"align {SHARED_ALIGN} {text}" if slot.kind == "ptr" and self.kernel.aligned else text

    def space(self, space: str) -> int:
        return _SPACES[space]

    def prologue(self) -> None:
        self._place_shared()
        self._zero_shared()

    # -- identities ----------------------------------------------------------------------------------------
    def sreg(self, name: str, axis: int) -> str:
        """A special register as i32, read once, with its range."""
        key = (name, axis)
        if key not in self.sregs:
            limit = self.kernel.block[axis] if name == "tid" else _GRID_LIMIT[axis] + (name == "nctaid")
            low = 1 if name == "nctaid" else 0
            facts = self.module.node(f"!{{i32 {low}, i32 {limit}}}")
            intrinsic = f"llvm.nvvm.read.ptx.sreg.{name}.{'xyz'[axis]}"
            self.module.declare(intrinsic, "i32 {}()")
            # In the entry block, so that every use is dominated by it.
            value = "%" + self.fn.fresh(f"{name}.{'xyz'[axis]}")
            self.fn.entry.append(f"  {value} = call i32 @{intrinsic}(), !range {facts}{self.fn.position}")
            self.sregs[key] = value
        return self.sregs[key]

    def identity(self, code: str, axis: int) -> str:
        wide = self.kernel.index == I64
        if code != "global_idx":
            value = self.sreg(_SREG[code], axis)
            return self.fn.value(f"zext i32 {value} to i64", code) if wide else value
        block, thread = self.sreg("ctaid", axis), self.sreg("tid", axis)
        ty = "i64" if wide else "i32"
        if wide:
            block, thread = (self.fn.value(f"zext i32 {x} to i64") for x in (block, thread))
        first = self.fn.value(f"mul nuw nsw {ty} {block}, {self.kernel.block[axis]}")
        return self.fn.value(f"add nuw nsw {ty} {first}, {thread}", f"global.{'xyz'[axis]}")

    def linear(self) -> str:
        """The thread's number in its block, as i32."""
        x, y, z = self.kernel.block
        value = self.sreg("tid", 0)
        if y > 1:
            row = self.fn.value(f"mul nuw nsw i32 {self.sreg('tid', 1)}, {x}")
            value = self.fn.value(f"add nuw nsw i32 {row}, {value}")
        if z > 1:
            plane = self.fn.value(f"mul nuw nsw i32 {self.sreg('tid', 2)}, {x * y}")
            value = self.fn.value(f"add nuw nsw i32 {plane}, {value}", "linear")
        return value

    # -- shared memory -------------------------------------------------------------------------------------
    def _place_shared(self) -> None:
        """Lay the shared arrays out: declared where a block may, otherwise one after the other in dynamic memory."""
        arrays = [op for op in self.kernel.body.ops if op.code == "shared"]
        sizes = {id(op): _bytes(op) for op in arrays}
        total = sum(_aligned(n) for n in sizes.values() if n is not None)
        declared = total <= STATIC_SHARED
        at = 0
        for op in arrays:
            n = sizes[id(op)]
            if n is not None and declared:
                name = f"@{identifier('shared.' + op.attrs['name'])}.{len(self.placed)}"
                self.module.globals.append(
                    f"{name} = internal addrspace(3) global [{_aligned(n)} x i8] undef, align {_alignment(op)}"
                )
                self.placed[id(op)] = _Shared(name, n)
            elif n is not None:
                at = -(-at // _alignment(op)) * _alignment(op)
                self.placed[id(op)] = _Shared(_dynamic(at), n)
                at += _aligned(n)
        for op in arrays:
            if sizes[id(op)] is None:
                if any(s.bytes is None for s in self.placed.values()):
                    raise UnsupportedError(
                        "only one shared array can take its extent from the launch",
                        op.loc,
                        "give the others a constant shape",
                    )
                self.placed[id(op)] = _Shared(_dynamic(at), None)
        self.static_shared, self.dynamic_shared = (total, 0) if declared else (0, at)
        if not declared or any(s.bytes is None for s in self.placed.values()):
            align = max(map(_alignment, arrays))
            self.module.globals.append(f"@{_DYNAMIC} = external addrspace(3) global [0 x i8], align {align}")

    def _dynamic_bytes(self) -> str:
        """Bytes of dynamic shared memory behind the kernel's own, as i32."""
        size = self.fn.value('call i32 asm "mov.u32 $0, %dynamic_smem_size;", "=r"()', "dynamic")
        return self.fn.value(f"sub i32 {size}, {self.dynamic_shared}") if self.dynamic_shared else size

    def shared(self, op: Op, t: ArrayType) -> ArrayRef:
        assert t.shape is not None
        place = self.placed[id(op)]
        dims = [str(n) for n in t.shape]
        if place.bytes is None:
            rest = t.elem.size * math.prod(t.shape[1:])
            extent = self.fn.value(f"udiv i32 {self._dynamic_bytes()}, {rest}")
            dims[0] = self.fn.value(f"zext i32 {extent} to i64") if t.index == I64 else extent
        return ArrayRef(t, place.pointer, dims)

    def _zero_shared(self) -> None:
        """Shared arrays start as 0: the block's threads clear them together, then wait for each other."""
        ops = {id(op): op for op in self.kernel.body.ops}
        zeroed = {key: place for key, place in self.placed.items() if not ops[key].attrs.get("raw")}
        if not zeroed:
            return
        threads, linear = math.prod(self.kernel.block), self.linear()
        for key, place in zeroed.items():
            t = ops[key].result.type  # type: ignore[union-attr]
            assert isinstance(t, ArrayType)
            grain = SHARED_ALIGN if place.bytes is not None else math.gcd(t.elem.size, SHARED_ALIGN)
            end = str(_aligned(place.bytes)) if place.bytes is not None else self._dynamic_bytes()
            self._clear(place.pointer, linear, threads, grain, end)
        self.barrier(None)

    def _clear(self, pointer: str, linear: str, threads: int, grain: int, end: str) -> None:
        f = self.fn
        slot = f.alloca("i32", "clear")
        f.do(f"store i32 {f.value(f'mul nuw nsw i32 {linear}, {grain}')}, ptr {slot}")
        head, body, done = f.label("clear"), f.label("clearing"), f.label("cleared")
        f.block(head)
        at = f.value(f"load i32, ptr {slot}")
        f.branch(f.value(f"icmp ult i32 {at}, {end}"), body, done)
        f.block(body)
        ty = f"<{grain // 4} x i32>" if grain >= 8 else f"i{grain * 8}"
        place = f.value(f"getelementptr i8, ptr addrspace(3) {pointer}, i32 {at}")
        f.do(f"store {ty} {'zeroinitializer' if grain >= 8 else '0'}, ptr addrspace(3) {place}, align {grain}")
        f.do(f"store i32 {f.value(f'add nuw i32 {at}, {grain * threads}')}, ptr {slot}")
        f.jump(head)
        f.block(done)

    # -- cooperation ---------------------------------------------------------------------------------------
    def barrier(self, op: Op | None) -> None:
        self.module.declare("llvm.nvvm.barrier0", "void {}()")
        self.fn.do("call void @llvm.nvvm.barrier0()")

    def atomic(self, op: Op, pointer: str, t: Scalar, values: list[str]) -> str:
        array = op.operands[0].type
        assert isinstance(array, ArrayType)
        if t.bits < 32:
            raise UnsupportedError(
                f"atomic operations on {t} are not available", op.loc, "use a 32 or 64-bit element type"
            )
        at = (self.pointer_type(array.space), pointer)
        return atomic(self.arith, op.attrs["fn"], t, at, values, op.attrs["order"], op.attrs["scope"])

    def subgroup(self, op: Op, args: list[str]) -> str:
        fn = op.attrs["fn"]
        assert op.result is not None and isinstance(op.result.type, Scalar)
        result = op.result.type
        if fn == "size":
            return str(SUBGROUP)
        lane = self.fn.value(f"and i32 {self.linear()}, {SUBGROUP - 1}", "lane")
        if fn == "lane":
            return self.arith.cast(I32, result, lane)
        # Made anew at each use: the values it prepares must dominate, and equal ones are merged by LLVM.
        threads = math.prod(self.kernel.block)
        groups = Subgroups(self.arith, threads, lane, self.linear(), self.redux)
        t = op.operands[0].type
        assert isinstance(t, Scalar)
        if fn in ("shuffle", "shuffle_xor", "shuffle_up", "shuffle_down", "broadcast"):
            where = op.operands[1].type
            assert isinstance(where, Scalar)
            return groups.shuffle(fn, t, args[0], self.arith.cast(where, I32, args[1]))
        if fn in ("ballot", "any", "all"):
            found = groups.vote(fn, args[0])
            return self.arith.cast(I32, result, found) if fn == "ballot" and result.bits == 32 else (
                self.fn.value(f"zext i32 {found} to i{result.bits}") if fn == "ballot" else found
            )
        if fn.startswith("reduce_"):
            return groups.reduce(fn.removeprefix("reduce_"), t, args[0])
        return groups.scan("add", t, args[0], exclusive=fn == "scan_exclusive_add")

    # -- tensor cores, asynchronous copies -----------------------------------------------------------------
    def op_lane(self, op: Op) -> None:
        struct = self.structs.get(op.operands[0])
        if struct is None:
            super().op_lane(op)
            return
        t = op.operands[0].type
        assert isinstance(t, VectorType) and op.result is not None
        self.values[op.result] = self.matrices.member(struct, self.arith.type(t.elem), t.lanes, op.attrs["index"])

    def op_ptx_copy(self, op: Op) -> None:
        to, index, valid, source, *indices = op.operands
        self.matrices.copy(self.element(to, [index]), self.element(source, indices), self.use(valid))

    def op_ptx_commit(self, op: Op) -> None:
        self.matrices.commit()

    def op_ptx_wait(self, op: Op) -> None:
        self.matrices.wait(op.attrs["pending"])

    def op_ptx_fence(self, op: Op) -> None:
        self.matrices.fence()

    def op_ptx_wgmma(self, op: Op) -> None:
        assert op.result is not None and isinstance(op.result.type, VectorType)
        a, a_index, b, b_index, *sums = op.operands
        at = [
            self.matrices.descriptor(self.element(array, [index]), stride)
            for (array, index), stride in zip(((a, a_index), (b, b_index)), op.attrs["stride"], strict=True)
        ]
        self.structs[op.result] = self.matrices.products(
            op.attrs["shape"], op.attrs["elem"], op.attrs["major"], at[0], at[1], op.attrs["steps"],
            [self.use(v) for v in sums], op.result.type.elem == I32,
        )  # fmt: skip

    def op_ptx_wgmma_wait(self, op: Op) -> None:
        assert op.result is not None and isinstance(op.result.type, VectorType)
        sums = [self.use(v) for v in op.operands]
        self.structs[op.result] = self.matrices.finished(op.attrs["pending"], sums, op.result.type.elem == I32)

    # -- faults and output ---------------------------------------------------------------------------------
    def fault(self, op: Op, cond: str, detail: list[str]) -> None:
        f = self.fn
        if cond == "false":
            return
        if cond != "true":
            bad, after = f.label("fault"), f.label("checked")
            f.branch(cond, bad, after)
            f.block(bad)
        wide = []
        for v, text in zip(op.operands[1:], detail, strict=True):
            assert isinstance(v.type, Scalar)
            wide.append(self.arith.cast(v.type, I64, text))
        index, length = wide or ["0", "0"]
        f.do(
            f"call void @{runtime.FAULT}(ptr addrspace(1) %gw.faults, i32 %gw.tag, i32 {op.attrs['site']}, "
            f"i64 {index}, i64 {length})"
        )
        if cond != "true":
            f.block(after)

    def print(self, op: Op, args: list[str]) -> None:
        words = []
        for v, text in zip(op.operands, args, strict=True):
            assert isinstance(v.type, Scalar)
            words += self._print_words(v.type, text)
        f = self.fn
        thread = f.value(f"call i32 @{runtime.THREAD}()")
        count = runtime.PRINT_PREFIX + len(words)
        at = f.value(f"call i32 @{runtime.CLAIM}(ptr addrspace(1) %gw.prints, i32 {count})")
        full, after = f.label("print"), f.label("printed")
        f.branch(f.value(f"icmp ne i32 {at}, 0"), full, after)
        f.block(full)
        base = f.value(f"getelementptr i32, ptr addrspace(1) %gw.prints, i32 {at}")
        record = [str(count), "%gw.tag", "%gw.serial", str(self.prints[id(op)]), thread, *words]
        for n, word in enumerate(record):
            place = f.value(f"getelementptr i32, ptr addrspace(1) {base}, i32 {n}")
            f.do(f"store i32 {word}, ptr addrspace(1) {place}, align 4")
        f.block(after)

    def _print_words(self, t: Scalar, value: str) -> list[str]:
        if t == BOOL:
            return [self.fn.value(f"zext i1 {value} to i32")]
        if t.bits == 64:
            bits = self.arith.bitcast(t, I64, value)
            high = self.fn.value(f"lshr i64 {bits}, 32")
            return [self.fn.value(f"trunc i64 {bits} to i32"), self.fn.value(f"trunc i64 {high} to i32")]
        if t.bits == 32:
            return [self.arith.bitcast(t, I32, value)]
        bits = self.arith.bitcast(t, U8 if t.bits == 8 else U16, value)
        return [self.fn.value(f"zext i{t.bits} {bits} to i32")]


def _bytes(op: Op) -> int | None:
    """Bytes of a shared array, or None if its first extent comes from the launch."""
    t = op.result.type  # type: ignore[union-attr]
    assert isinstance(t, ArrayType) and t.shape is not None
    return t.elem.size * math.prod(t.shape) if t.shape[0] else None


def _alignment(op: Op) -> int:
    """Bytes that a shared array's start is a multiple of."""
    return max(SHARED_ALIGN, int(op.attrs.get("align", 0)))


def _aligned(n: int) -> int:
    return -(-n // SHARED_ALIGN) * SHARED_ALIGN


def _dynamic(at: int) -> str:
    return f"getelementptr (i8, ptr addrspace(3) @{_DYNAMIC}, i64 {at})" if at else f"@{_DYNAMIC}"


def emit(kernel: Kernel, capability: tuple[int, int] = (7, 0), debug: bool = True) -> Emitted:
    """LLVM IR for a kernel that has been through ``passes.pipeline.lower``; ``capability`` of the device.

    Raises UnsupportedError, naming the line, for what no NVIDIA GPU can do.
    """
    verify(kernel)
    module = Module(TRIPLE, "", debug)  # compile.py gives it the data layout of the LLVM at hand
    module.debug_kind = "DebugDirectivesOnly"  # .loc lines; sections would mark the module as built for a debugger
    emitter = PtxEmitter(kernel, module, redux=capability >= (8, 0))
    emitter.emit()
    helpers = runtime.functions(module, kernel.block, emitter.faults, bool(emitter.prints))
    text = module.text() + helpers
    return Emitted(
        text, emitter.entry, emitter.faults, bool(emitter.prints), emitter.static_shared, emitter.dynamic_shared
    )

