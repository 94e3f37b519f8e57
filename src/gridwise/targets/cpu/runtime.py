"""What a kernel calls to report a failed check or to print: text of LLVM functions, for modules that need them.

Layout of the fault buffer: ``devices/faults.py``; of the print buffer: ``devices/printing.py``.
"""

from __future__ import annotations

HEADER, RECORD, SLOTS = 8, 8, 32  # of devices/faults.py, which this layer may not import
PRINT_HEADER, PRINT_CAPACITY, PRINT_PREFIX = 4, 1 << 18, 5  # of devices/printing.py

FAULT, CLAIM = "gridwise_fault", "gridwise_print_claim"


def fault() -> str:
    """``void gridwise_fault(buffer, thread, site, index, length)``: keeps the record of the smallest thread."""
    words = "\n".join(
        f"""  %p{n} = getelementptr i32, ptr %record, i64 {n}
  store i32 {v}, ptr %p{n}, align 4"""
        for n, v in enumerate(("%id", "%site", "%index.low", "%index.high", "%length.low", "%length.high"))
    )
    return f"""
define internal void @{FAULT}(ptr %buffer, i64 %thread, i32 %site, i64 %index, i64 %length) cold noinline nounwind {{
entry:
  %fits = icmp ult i64 %thread, 4294967294
  %most = select i1 %fits, i64 %thread, i64 4294967294
  %id = trunc i64 %most to i32
  %lock = getelementptr i32, ptr %buffer, i64 1
  br label %spin
spin:
  %try = cmpxchg ptr %lock, i32 0, i32 1 acquire monotonic, align 4
  %mine = extractvalue {{ i32, i1 }} %try, 1
  br i1 %mine, label %locked, label %spin
locked:
  %first = load i32, ptr %buffer, align 4
  %smaller = icmp ult i32 %id, %first
  br i1 %smaller, label %write, label %unlock
write:
  store i32 %id, ptr %buffer, align 4
  %slot = urem i32 %id, {SLOTS}
  %words = mul i32 %slot, {RECORD}
  %at = add i32 %words, {HEADER}
  %record = getelementptr i32, ptr %buffer, i32 %at
  %index.low = trunc i64 %index to i32
  %index.top = lshr i64 %index, 32
  %index.high = trunc i64 %index.top to i32
  %length.low = trunc i64 %length to i32
  %length.top = lshr i64 %length, 32
  %length.high = trunc i64 %length.top to i32
{words}
  br label %unlock
unlock:
  store atomic i32 0, ptr %lock release, align 4
  ret void
}}
"""


def claim() -> str:
    """``i64 gridwise_print_claim(buffer, words)``: where a record may be written, or 0 if the buffer is full."""
    return f"""
define internal i64 @{CLAIM}(ptr %buffer, i32 %words) cold noinline nounwind {{
entry:
  %now = load atomic i32, ptr %buffer monotonic, align 4
  %room = icmp ult i32 %now, {PRINT_CAPACITY}
  br i1 %room, label %claim, label %lost
claim:
  %at = atomicrmw add ptr %buffer, i32 %words monotonic
  %end = add i32 %at, %words
  %place.s = add i32 %at, {PRINT_HEADER}
  %place = zext i32 %place.s to i64
  %fits = icmp ule i32 %end, {PRINT_CAPACITY}
  br i1 %fits, label %done, label %over
over:
  %inside = icmp ult i32 %at, {PRINT_CAPACITY}
  br i1 %inside, label %mark, label %lost
mark:
  %mark.p = getelementptr i32, ptr %buffer, i64 %place
  store i32 0, ptr %mark.p, align 4
  br label %lost
lost:
  %lost.p = getelementptr i32, ptr %buffer, i64 1
  %more = atomicrmw add ptr %lost.p, i32 1 monotonic
  ret i64 0
done:
  ret i64 %place
}}
"""
