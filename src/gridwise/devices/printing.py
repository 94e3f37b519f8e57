"""How ``print`` in a kernel travels to the host, for devices that cannot write to the terminal themselves.

A print buffer of ``WORDS`` u32 words:

    word 0          words claimed by records so far; may pass CAPACITY
    word 1          lines lost because the buffer was full
    from HEADER     records: length in words, tag of the module, serial of the launch, number of the ``print``
                    operation in ``kernel.walk()``, linear global thread id, then the operands

An operand takes one word, or two (low first) if it has 64 bits; a record that does not fit leaves a 0 where its
length would be. Lines are shown by launch, then thread, then in the order that the thread printed them.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gridwise.ir.core import Kernel, Op
from gridwise.ir.types import BOOL, Scalar

HEADER = 4
CAPACITY = 1 << 18  # words of records: 1 MiB, the size of CUDA's own printf buffer
WORDS = HEADER + CAPACITY
PREFIX = 5  # words of a record before its operands


def line(op: Op, values: Sequence[Any]) -> str:
    """The text of one ``print`` operation: operands are formatted as NumPy scalars of their type."""
    parts = op.attrs["parts"]
    return "".join(part if isinstance(part, str) else _formatted(values[part[0]], part[1]) for part in parts)


def _formatted(value: Any, spec: str) -> str:
    if not spec:
        return str(value)
    return format(value.item() if isinstance(value, np.generic) else float(value), spec)


def operand_words(op: Op) -> list[int]:
    """Words that each operand takes in a record."""
    return [2 if isinstance(v.type, Scalar) and v.type.bits == 64 else 1 for v in op.operands]


def operands(op: Op, words: np.ndarray) -> list[Any]:
    """The operands of a record, as NumPy scalars."""
    out, at = [], 0
    for v, n in zip(op.operands, operand_words(op), strict=True):
        assert isinstance(v.type, Scalar)
        raw = words[at : at + n]
        if v.type == BOOL:
            out.append(np.bool_(raw[0] != 0))
        else:
            out.append(raw.view(np.uint8)[: v.type.size].view(v.type.dtype)[0])
        at += n
    return out


def decode(words: np.ndarray, kernel_of: Callable[[int], Kernel]) -> list[str]:
    """The lines that a print buffer holds. ``kernel_of`` gives the kernel of a module's tag."""
    prints: dict[int, list[Op]] = {}
    found: list[tuple[int, int, str]] = []
    at, end = HEADER, HEADER + min(int(words[0]), CAPACITY)
    while at + PREFIX <= end and words[at]:
        length, tag, serial, number, thread = (int(w) for w in words[at : at + PREFIX])
        if tag not in prints:
            prints[tag] = [op for op in kernel_of(tag).walk() if op.code == "print"]
        op = prints[tag][number]
        found.append((serial, thread, line(op, operands(op, words[at + PREFIX : at + length]))))
        at += length
    found.sort(key=lambda f: f[:2])
    lines = [text for _, _, text in found]
    if words[1]:
        lines.append(f"... {int(words[1])} more lines were lost: the print buffer was full")
    return lines


def show(words: np.ndarray, kernel_of: Callable[[int], Kernel]) -> None:
    """Write the lines to standard output."""
    for text in decode(words, kernel_of):
        sys.stdout.write(text + "\n")
