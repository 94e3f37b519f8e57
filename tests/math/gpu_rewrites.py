"""What compilers behind us may do to float arithmetic, as IR rewrites: the library must stand both."""

from __future__ import annotations

from gridwise.ir import Builder, Kernel, Op
from gridwise.ir.rewrite import KEEP, rewrite, uses
from gridwise.ir.types import Scalar


def _is_float(op: Op) -> bool:
    return op.result is not None and isinstance(op.result.type, Scalar) and op.result.type.is_float


def contract(kernel: Kernel) -> None:
    """Fuse every product into the sum that alone uses it, as LLVM and the drivers do where the target has an FMA."""
    count = uses(kernel)

    def visit(op: Op, b: Builder) -> object:
        if op.code not in ("add", "sub") or not _is_float(op):
            return KEEP
        x, y = op.operands
        for product, other, first in ((x, y, True), (y, x, False)):
            if product.op is not None and product.op.code == "mul" and count[product] == 1:
                p, q = product.op.operands
                if op.code == "sub":
                    if first:
                        other = b.unary("neg", other)
                    else:
                        p = b.unary("neg", p)
                assert op.result is not None
                return b.value("fma", (p, q, other), op.result.type)
        return KEEP

    rewrite(kernel, visit)


def cancel(kernel: Kernel) -> None:
    """(a + b) - a becomes b, (a - b) - a becomes -b, a - (a - b) becomes b: Mesa's simplifications of inexact sums."""

    def visit(op: Op, b: Builder) -> object:
        if op.code != "sub" or not _is_float(op):
            return KEEP
        x, y = op.operands
        if x.op is not None and x.op.code == "add":
            p, q = x.op.operands
            if p is y:
                return q
            if q is y:
                return p
        if x.op is not None and x.op.code == "sub" and x.op.operands[0] is y:
            return b.unary("neg", x.op.operands[1])
        if y.op is not None and y.op.code == "sub" and y.op.operands[0] is x:
            return y.op.operands[1]
        return KEEP

    rewrite(kernel, visit)
