"""What a kernel calls to report a failed check: text of LLVM functions, added to a module that needs them.

Layout of the fault buffer: ``devices/faults.py``; who takes it on a stream: ``devices/cuda_stream.py``. The lock is
taken and released inside one iteration of the loop, so that threads of a warp never wait for each other.
"""

from __future__ import annotations

HEADER, RECORD, SLOTS = 8, 8, 32  # of devices/faults.py, which this layer may not import

FAULT = "gridwise_fault"


def linear_thread(block: tuple[int, int, int], coarsen: int) -> str:
    """LLVM instructions that compute %thread, the linear global thread id (saturated at 2**32 - 2), %gx and %gy."""
    axes = []
    for n, axis in enumerate("xyz"):
        size = block[n] * (coarsen if n == 0 else 1)
        first = f"  %t{axis}.c = mul i32 %t{axis}.s, {coarsen if n == 0 else 1}"
        axes.append(
            f"  %t{axis}.s = call i32 @llvm.nvvm.read.ptx.sreg.tid.{axis}()\n"
            f"  %b{axis}.s = call i32 @llvm.nvvm.read.ptx.sreg.ctaid.{axis}()\n{first}\n"
            f"  %t{axis} = zext i32 %t{axis}.c to i64\n  %b{axis} = zext i32 %b{axis}.s to i64\n"
            f"  %o{axis} = mul i64 %b{axis}, {size}\n  %{axis} = add i64 %o{axis}, %t{axis}"
        )
    return "\n".join(axes) + f"""
  %gx.s = call i32 @llvm.nvvm.read.ptx.sreg.nctaid.x()
  %gy = call i32 @llvm.nvvm.read.ptx.sreg.nctaid.y()
  %gx = mul i32 %gx.s, {coarsen}
  %gx.w = zext i32 %gx to i64
  %gy.w = zext i32 %gy to i64
  %width = mul i64 %gx.w, {block[0]}
  %height = mul i64 %gy.w, {block[1]}
  %zh = mul i64 %z, %height
  %zhy = add i64 %zh, %y
  %row = mul i64 %zhy, %width
  %id = add i64 %row, %x
  %small = icmp ult i64 %id, 4294967294
  %id.c = select i1 %small, i64 %id, i64 4294967294
  %thread = trunc i64 %id.c to i32"""


SREGS = "\n".join(
    f"declare i32 @llvm.nvvm.read.ptx.sreg.{r}.{axis}()" for r in ("tid", "ctaid", "nctaid") for axis in "xyz"
)


def fault_function(block: tuple[int, int, int], coarsen: int) -> str:
    """``@gridwise_fault(buffer, tag, site, index, length)``: record a fault unless an earlier one stands."""
    word = lambda name, n: f"  %{name} = getelementptr i32, ptr addrspace(1) %buffer, i64 {n}"  # noqa: E731
    fields = ["%thread", "%site", "%index.lo", "%index.hi", "%length.lo", "%length.hi", "%gx", "%gy"]
    stores = "\n".join(
        f"  %r{n} = getelementptr i32, ptr addrspace(1) %record, i64 {n}\n"
        f"  store volatile i32 {value}, ptr addrspace(1) %r{n}"
        for n, value in enumerate(fields)
    )
    return f"""define internal void @{FAULT}(ptr addrspace(1) %buffer, i32 %tag, i32 %site, i64 %index, i64 %length) noinline cold nounwind {{
entry:
{linear_thread(block, coarsen)}
{word("best.p", 0)}
{word("lock.p", 1)}
{word("owner.p", 2)}
{word("flag.p", 4)}
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
  %pair = cmpxchg ptr addrspace(1) %lock.p, i32 0, i32 1 syncscope("device") acquire monotonic
  %got = extractvalue {{ i32, i1 }} %pair, 1
  br i1 %got, label %held, label %look
held:
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
  store atomic i32 0, ptr addrspace(1) %lock.p syncscope("device") release, align 4
  br label %look
done:
  ret void
}}
"""
