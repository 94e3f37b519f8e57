"""What a kernel calls to report a failed check or to print: text of LLVM functions, for modules that need them.

Layout of the fault buffer: ``devices/faults.py``; who takes it on a stream: ``devices/cuda_stream.py``; layout of the
print buffer: ``devices/printing.py``. The fault lock is taken and released inside one iteration of a loop, so that
threads of a warp never wait for each other.
"""

from __future__ import annotations

from gridwise.targets.llvm.text import Module

HEADER, RECORD, SLOTS = 8, 8, 32  # of devices/faults.py, which this layer may not import
PRINT_HEADER, PRINT_CAPACITY, PRINT_PREFIX = 4, 1 << 18, 5  # of devices/printing.py

FAULT, THREAD, CLAIM = "gridwise_fault", "gridwise_thread", "gridwise_print_claim"


def functions(module: Module, block: tuple[int, int, int], faults: bool, prints: bool) -> str:
    """The functions that a kernel of this block needs; what they call is declared in ``module``."""
    if not (faults or prints):
        return ""
    for register in ("tid", "ctaid", "nctaid"):
        for axis in "xyz":
            module.declare(f"llvm.nvvm.read.ptx.sreg.{register}.{axis}", "i32 {}()")
    return _thread(block) + (_fault() if faults else "") + (_claim() if prints else "")


def _thread(block: tuple[int, int, int]) -> str:
    """``i32 gridwise_thread()``: the linear global thread id, saturated at 2**32 - 2."""
    place = "\n".join(
        f"""  %t{a}.s = call i32 @llvm.nvvm.read.ptx.sreg.tid.{a}()
  %b{a}.s = call i32 @llvm.nvvm.read.ptx.sreg.ctaid.{a}()
  %t{a} = zext i32 %t{a}.s to i64
  %b{a} = zext i32 %b{a}.s to i64
  %o{a} = mul i64 %b{a}, {n}
  %{a} = add i64 %o{a}, %t{a}"""
        for a, n in zip("xyz", block, strict=True)
    )
    return f"""
define internal i32 @{THREAD}() nounwind {{
{place}
  %gx.s = call i32 @llvm.nvvm.read.ptx.sreg.nctaid.x()
  %gy.s = call i32 @llvm.nvvm.read.ptx.sreg.nctaid.y()
  %gx = zext i32 %gx.s to i64
  %gy = zext i32 %gy.s to i64
  %width = mul i64 %gx, {block[0]}
  %height = mul i64 %gy, {block[1]}
  %planes = mul i64 %z, %height
  %rows = add i64 %planes, %y
  %before = mul i64 %rows, %width
  %id = add i64 %before, %x
  %fits = icmp ult i64 %id, 4294967294
  %most = select i1 %fits, i64 %id, i64 4294967294
  %thread = trunc i64 %most to i32
  ret i32 %thread
}}
"""


def _claim() -> str:
    """``i32 gridwise_print_claim(buffer, words)``: where a record may be written, or 0 if the buffer is full."""
    return f"""
define internal i32 @{CLAIM}(ptr addrspace(1) %buffer, i32 %words) nounwind {{
entry:
  %lost.p = getelementptr i32, ptr addrspace(1) %buffer, i64 1
  %now = load atomic i32, ptr addrspace(1) %buffer syncscope("device") monotonic, align 4
  %room = icmp ult i32 %now, {PRINT_CAPACITY}
  br i1 %room, label %claim, label %lost
claim:
  %at = atomicrmw add ptr addrspace(1) %buffer, i32 %words syncscope("device") monotonic
  %end = add i32 %at, %words
  %fits = icmp ule i32 %end, {PRINT_CAPACITY}
  %place = add i32 %at, {PRINT_HEADER}
  br i1 %fits, label %done, label %over
over:
  %inside = icmp ult i32 %at, {PRINT_CAPACITY}
  br i1 %inside, label %mark, label %lost
mark:
  %mark.p = getelementptr i32, ptr addrspace(1) %buffer, i32 %place
  store i32 0, ptr addrspace(1) %mark.p, align 4
  br label %lost
lost:
  %before = atomicrmw add ptr addrspace(1) %lost.p, i32 1 syncscope("device") monotonic
  br label %done
done:
  %result = phi i32 [ %place, %claim ], [ 0, %lost ]
  ret i32 %result
}}
"""


def _fault() -> str:
    """``void gridwise_fault(buffer, tag, site, index, length)``: record a fault unless an earlier one stands."""
    parameters = "ptr addrspace(1) %buffer, i32 %tag, i32 %site, i64 %index, i64 %length"
    places = "\n".join(
        f"  %{name}.p = getelementptr i32, ptr addrspace(1) %buffer, i64 {n}"
        for name, n in (("best", 0), ("lock", 1), ("owner", 2), ("flag", 4))
    )
    fields = ["%thread", "%site", "%index.lo", "%index.hi", "%length.lo", "%length.hi", "%gx", "%gy"]
    stores = "\n".join(
        f"  %r{n} = getelementptr i32, ptr addrspace(1) %record, i64 {n}\n"
        f"  store volatile i32 {value}, ptr addrspace(1) %r{n}"
        for n, value in enumerate(fields)
    )
    return f"""
define internal void @{FAULT}({parameters}) noinline cold nounwind {{
entry:
  %thread = call i32 @{THREAD}()
  %gx = call i32 @llvm.nvvm.read.ptx.sreg.nctaid.x()
  %gy = call i32 @llvm.nvvm.read.ptx.sreg.nctaid.y()
{places}
  br label %look
look:
  %owner = load atomic i32, ptr addrspace(1) %owner.p syncscope("device") monotonic, align 4
  %best = load atomic i32, ptr addrspace(1) %best.p syncscope("device") monotonic, align 4
  %free = icmp eq i32 %owner, -1
  %mine = icmp eq i32 %owner, %tag
  %earlier = icmp ult i32 %thread, %best
  %better = and i1 %mine, %earlier
  %go = or i1 %free, %better
  br i1 %go, label %try, label %done
try:
  %pair = cmpxchg ptr addrspace(1) %lock.p, i32 0, i32 1 syncscope("device") monotonic monotonic
  %got = extractvalue {{ i32, i1 }} %pair, 1
  br i1 %got, label %held, label %look
held:
  fence syncscope("device") acquire
  %owner.h = load atomic i32, ptr addrspace(1) %owner.p syncscope("device") monotonic, align 4
  %best.h = load atomic i32, ptr addrspace(1) %best.p syncscope("device") monotonic, align 4
  %free.h = icmp eq i32 %owner.h, -1
  %mine.h = icmp eq i32 %owner.h, %tag
  %earlier.h = icmp ult i32 %thread, %best.h
  %better.h = and i1 %mine.h, %earlier.h
  %go.h = or i1 %free.h, %better.h
  br i1 %go.h, label %write, label %unlock
write:
  %slot = urem i32 %thread, {SLOTS}
  %offset = mul i32 %slot, {RECORD}
  %at = add i32 %offset, {HEADER}
  %at.w = zext i32 %at to i64
  %record = getelementptr i32, ptr addrspace(1) %buffer, i64 %at.w
  %index.lo = trunc i64 %index to i32
  %index.s = lshr i64 %index, 32
  %index.hi = trunc i64 %index.s to i32
  %length.lo = trunc i64 %length to i32
  %length.s = lshr i64 %length, 32
  %length.hi = trunc i64 %length.s to i32
{stores}
  store atomic i32 %thread, ptr addrspace(1) %best.p syncscope("device") monotonic, align 4
  store atomic i32 %tag, ptr addrspace(1) %owner.p syncscope("device") monotonic, align 4
  %flag.a = load i64, ptr addrspace(1) %flag.p, align 8
  %flag = inttoptr i64 %flag.a to ptr addrspace(1)
  store atomic i32 1, ptr addrspace(1) %flag monotonic, align 4
  br label %unlock
unlock:
  fence syncscope("device") release
  store atomic i32 0, ptr addrspace(1) %lock.p syncscope("device") monotonic, align 4
  br label %look
done:
  ret void
}}
"""
