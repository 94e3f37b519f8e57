"""Tensor cores and asynchronous copies: what ``passes/tile`` asks of an NVIDIA GPU, as PTX.

Sources: PTX ISA, "Asynchronous Warpgroup Level Matrix Multiply-Accumulate Instructions" (descriptors, shapes, the
128-byte swizzle) and "Data Movement: Non-bulk copy". LLVM has no intrinsics for wgmma, so it is inline assembly: all
products of a group in one piece, so that nothing comes between them.
"""

from __future__ import annotations

from collections.abc import Sequence

from gridwise.targets.llvm.arith import Arith

_KINDS = {"f16": "f16", "bf16": "bf16", "f32": "tf32", "f8e4m3": "e4m3", "f8e5m2": "e5m2", "i8": "s8", "u8": "u8"}
_SWIZZLE_128 = 1 << 62  # of a matrix descriptor: layout type 1, the 128-byte swizzle
_WINDOW = 0x3FFFF  # bits of a shared address in a descriptor


def _asm(text: str, constraints: str) -> str:
    return f'asm sideeffect "{text}", "{constraints}"'


class Matrices:
    """Emits into ``arith.fn``."""

    def __init__(self, arith: Arith):
        self.arith, self.fn = arith, arith.fn

    def _call(self, name: str, signature: str, args: str) -> None:
        self.arith.fn.module.declare(name, signature)
        self.fn.do(f"call void @{name}({args})")

    # -- copies --------------------------------------------------------------------------------------------
    def copy(self, to: str, source: str, valid: str) -> None:
        """16 bytes, of them ``valid`` (an i32) from ``source``, the rest zeros."""
        name = "llvm.nvvm.cp.async.cg.shared.global.16.s"
        self._call(
            name, "void {}(ptr addrspace(3), ptr addrspace(1), i32)",
            f"ptr addrspace(3) {to}, ptr addrspace(1) {source}, i32 {valid}",
        )  # fmt: skip

    def commit(self) -> None:
        self._call("llvm.nvvm.cp.async.commit.group", "void {}()", "")

    def wait(self, pending: int) -> None:
        self._call("llvm.nvvm.cp.async.wait.group", "void {}(i32 immarg)", f"i32 {pending}")

    def fence(self) -> None:
        self.fn.do(f"call void {_asm('fence.proxy.async.shared::cta;', '~{memory}')}()")

    # -- products ------------------------------------------------------------------------------------------
    def descriptor(self, pointer: str, stride: tuple[int, int]) -> str:
        """Of a matrix in shared memory, as i64; ``stride``: its leading and its other byte offset."""
        leading, other = stride
        fixed = _SWIZZLE_128 | (other >> 4) << 32 | (leading >> 4) << 16
        address = self.fn.value(f"ptrtoint ptr addrspace(3) {pointer} to i32")
        start = self.fn.value(f"lshr i32 {self.fn.value(f'and i32 {address}, {_WINDOW}')}, 4")
        return self.fn.value(f"or i64 {self.fn.value(f'zext i32 {start} to i64')}, {fixed}", "matrix")

    def products(
        self, shape: tuple[int, int, int], elem: str, major: tuple[str, str], a: str, b: str,
        steps: Sequence[tuple[int, int]], sums: Sequence[str], whole: bool,
    ) -> str:  # fmt: skip
        """One group of products; the struct of the new sums. ``whole``: sums of i32."""
        m, n, k = shape
        count = len(sums)
        kind = _KINDS[elem]
        register, ty = ("r", "i32") if whole else ("f", "float")
        result = "s32" if whole else "f32"
        # Signs and transposition are operands of the 16-bit forms only; integers have neither.
        turned = ", ".join("1" if x == "mn" else "0" for x in major)
        extra = "" if whole else f", 1, 1, {turned}" if elem in ("f16", "bf16") else ", 1, 1"
        list_ = ", ".join(f"${i}" for i in range(count))
        lines = ["{ .reg .pred p;", "setp.eq.b32 p, 0, 0;", "wgmma.fence.sync.aligned;"]
        given: list[str] = []
        for step in steps:
            at = []
            for text, bytes_ in zip((a, b), step, strict=True):
                given.append(self.fn.value(f"add i64 {text}, {bytes_ >> 4}") if bytes_ else text)
                at.append(f"${2 * count + len(given) - 1}")
            lines.append(
                f"wgmma.mma_async.sync.aligned.m{m}n{n}k{k}.{result}.{kind}.{kind} "
                f"{{{list_}}}, {at[0]}, {at[1]}, p{extra};"
            )
        lines.append("wgmma.commit_group.sync.aligned; }")
        constraints = [f"={register}"] * count + [str(i) for i in range(count)] + ["l"] * len(given)
        args = [f"{ty} {x}" for x in sums] + [f"i64 {x}" for x in given]
        # "$" starts an operand in LLVM's assembly strings, braces are plain text there.
        text = _asm(" ".join(lines), ",".join([*constraints, "~{memory}"]))
        return self.fn.value(f"call {_struct(ty, count)} {text}({', '.join(args)})", "products")

    def finished(self, pending: int, sums: Sequence[str], whole: bool) -> str:
        """The struct of the sums, after the wait."""
        register, ty = ("r", "i32") if whole else ("f", "float")
        count = len(sums)
        constraints = [f"={register}"] * count + [str(i) for i in range(count)] + ["~{memory}"]
        text = _asm(f"wgmma.wait_group.sync.aligned {pending};", ",".join(constraints))
        return self.fn.value(f"call {_struct(ty, count)} {text}({', '.join(f'{ty} {x}' for x in sums)})", "sums")

    def member(self, struct: str, ty: str, count: int, index: int) -> str:
        return self.fn.value(f"extractvalue {_struct(ty, count)} {struct}, {index}")


def _struct(ty: str, count: int) -> str:
    return "{ " + ", ".join([ty] * count) + " }"
