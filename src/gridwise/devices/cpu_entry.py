"""Small launches without Python: a function of machine code that packs arguments and runs a kernel where it is called.

It has the signature that native launchers use on every device (``devices/native.py``). What takes longer than other
Python threads should wait, or could use other cores, it leaves alone: it returns 1, and the launch goes the way
through Python, which releases the interpreter lock.
"""

from __future__ import annotations

import math

from gridwise.ir.core import Kernel, Slot
from gridwise.targets.cpu.compile import load_object, to_object
from gridwise.targets.cpu.emit import COUNTER_CELL, HEADER_CELLS

STACK = 1 << 16  # bytes of scratch memory that may lie on the stack


def start(kernel: Kernel, address: int, unit: str, scratch: int, weight: int, walks: bool, limit: int) -> int:
    """The address of a function that starts ``kernel``, whose own code is at ``address``.

    It runs launches of fewer than ``limit`` operations: threads times ``weight``; if the kernel ``walks`` arrays in
    loops of any length, the elements of its arrays count too.
    """
    slots = kernel.slots()
    x, y, z = kernel.block
    total = "%blocks" if unit == "block" else "%rows"
    lines = [
        "define i32 @start(ptr %f, i32 %gx, i32 %gy, i32 %gz, i32 %bx, i32 %by, i32 %bz, i32 %shared, ptr %stream, "
        "ptr %params, ptr %extra) nounwind {",
        f"  %cells = alloca [{HEADER_CELLS + len(slots)} x i64], align 8",
        f"  %scratch = alloca [{max(scratch, 1)} x i8], align 64",
        *(f"  %g{a.upper()} = zext i32 %g{a} to i64" for a in "xyz"),
        "  %plane = mul i64 %gX, %gY",
        "  %blocks = mul i64 %plane, %gZ",
        "  %other = mul i64 %gY, %gZ",
        f"  %rows = mul i64 %other, {y * z}",
        f"  %work = mul i64 %blocks, {math.prod((x, y, z)) * weight}",
    ]
    for n, slot in enumerate(slots):
        kind = "i64" if slot.type is None else f"i{slot.type.size * 8}"
        lines += [
            f"  %q{n} = getelementptr ptr, ptr %params, i64 {n}",
            f"  %p{n} = load ptr, ptr %q{n}",
            f"  %v{n} = load {kind}, ptr %p{n}",
        ]
    most = _most(lines, slots) if walks else "%work"
    lines += [
        f"  %small = icmp ult i64 {most}, {limit}",
        "  br i1 %small, label %run, label %leave",
        "run:",
    ]
    header = ["%gX", "%gY", "%gZ"] + ["0"] * (COUNTER_CELL - 2)
    for n, value in enumerate(header):
        lines += [f"  %h{n} = getelementptr i64, ptr %cells, i64 {n}", f"  store i64 {value}, ptr %h{n}"]
    for n, slot in enumerate(slots):
        kind = "i64" if slot.type is None else f"i{slot.type.size * 8}"
        lines += [
            f"  %c{n} = getelementptr i64, ptr %cells, i64 {HEADER_CELLS + n}",
            f"  store {kind} %v{n}, ptr %c{n}",
        ]
    lines += [
        f"  call void inttoptr (i64 {address} to ptr)(ptr %cells, i64 {total}, i64 {total}, ptr %scratch)",
        "  ret i32 0",
        "leave:",
        "  ret i32 1",
        "}",
        "declare i64 @llvm.umax.i64(i64, i64)",
        "",
    ]
    return load_object(to_object("\n".join(lines), simple=True), "start")


def _most(lines: list[str], slots: list[Slot]) -> str:
    """The greatest of ``%work`` and the elements of each array."""
    most, elements = "%work", ""
    for n, slot in enumerate(slots):
        if slot.kind != "dim":
            continue
        assert slot.type is not None
        lines.append(f"  %e{n} = sext i{slot.type.size * 8} %v{n} to i64" if slot.type.size < 8 else
                     f"  %e{n} = add i64 %v{n}, 0")
        if slot.axis:
            lines.append(f"  %f{n} = mul i64 {elements}, %e{n}")
        elements = f"%f{n}" if slot.axis else f"%e{n}"
        if n + 1 == len(slots) or slots[n + 1].kind != "dim" or slots[n + 1].axis == 0:
            lines.append(f"  %m{n} = call i64 @llvm.umax.i64(i64 {most}, i64 {elements})")
            most = f"%m{n}"
    return most
