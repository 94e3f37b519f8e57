"""``thread.*``: who the thread is, as witnesses and as plain numbers."""

from __future__ import annotations

import ast

from gridwise.ir.core import Value
from gridwise.ir.types import extent_limit
from gridwise.lang.errors import KernelTypeError, KernelValueError

from . import builtin, convert
from .scopes import Frame
from .types import WitnessTy
from .values import ArrayV, Const, Num, RangeV, Val, WitnessV


def _witness(f: Frame, axes: list[Value]) -> WitnessV:
    t = f.ctx.index
    return WitnessV(WitnessTy(len(axes), t), tuple(Num(t, v) for v in axes))


def index(f: Frame, node: ast.Call, rank: int) -> Val:
    """(z, y, x) of the thread in the launch, as many as the rank."""
    builtin.positional(f, node, f"index_{rank}d", 0)
    if rank > f.ctx.domain:
        f.fail(
            KernelTypeError,
            node,
            f"thread.index_{rank}d() in a kernel of domain {f.ctx.domain}",
            f"write @gw.kernel(domain={rank})",
        )
    _distinct(f, node, f"index_{rank}d", rank)
    f.at(node)
    return _witness(f, [f.b.identity("global_idx", axis) for axis in reversed(range(rank))])


def _distinct(f: Frame, node: ast.Call, name: str, rank: int) -> None:
    """A witness of fewer axes than the launch would be held by several threads."""
    if rank < f.ctx.domain:
        other = "its own number on x is thread.global_index(0)"
        f.fail(
            KernelTypeError,
            node,
            f"thread.{name}() is not distinct among the threads of a kernel of domain {f.ctx.domain}",
            f"write thread.index_{f.ctx.domain}d(); {other}",
        )


def _axis(f: Frame, node: ast.Call, name: str) -> int:
    args = builtin.positional(f, node, name, 0, 1)
    if not args:
        return 0
    value = convert.python_value(args[0].value)
    if not isinstance(value, int) or not 0 <= value <= 2:
        f.fail(KernelValueError, node, "the axis is 0 (x), 1 (y) or 2 (z)", "write a constant")
    return value


def axis(f: Frame, node: ast.Call, code: str) -> Val:
    k = _axis(f, node, code)
    f.at(node)
    return Num(f.ctx.index, f.b.identity(code, k))


def block_dim(f: Frame, node: ast.Call) -> Val:
    """Known at compile time."""
    return Const(f.ctx.block[_axis(f, node, "block_dim")], f.ctx.index)


def local_linear(f: Frame, node: ast.Call) -> Val:
    builtin.positional(f, node, "local_linear", 0)
    f.at(node)
    return Num(f.ctx.index, _linear(f))


def _linear(f: Frame) -> Value:
    """x + width * (y + height * z), without the axes that have one thread."""
    width, height, depth = f.ctx.block
    b = f.b
    value = b.identity("thread_idx", 0)
    if height > 1 or depth > 1:
        inner = b.identity("thread_idx", 1)
        if depth > 1:
            z = b.binary("mul", b.identity("thread_idx", 2), b.const(height, f.ctx.index_ir))
            inner = b.binary("add", inner, z)
        value = b.binary("add", value, b.binary("mul", inner, b.const(width, f.ctx.index_ir)))
    return value


def warp_index(f: Frame, node: ast.Call) -> Val:
    """The subgroup's position in the launch: subgroups of earlier blocks, then those of this one."""
    builtin.positional(f, node, "warp_index", 0)
    if f.ctx.domain != 1:
        f.fail(KernelTypeError, node, "thread.warp_index() is for one-dimensional kernels")
    f.at(node)
    b, t = f.b, f.ctx.index_ir
    size = b.value("subgroup", (), t, fn="size")
    threads = f.ctx.block[0] * f.ctx.block[1] * f.ctx.block[2]
    rounded = b.binary("add", b.const(threads - 1, t), size)
    in_block = b.binary("floordiv", rounded, size)
    own = b.binary("floordiv", _linear(f), size)
    return Num(f.ctx.index, b.binary("add", b.binary("mul", b.identity("block_idx", 0), in_block), own))


def run(f: Frame, node: ast.Call) -> Val:
    """The n consecutive indices of this thread. The launch sees to it that threads * n stays an index."""
    (a,) = builtin.positional(f, node, "run", 1)
    _distinct(f, node, "run", 1)
    n = convert.python_value(a.value)
    if not isinstance(n, int) or isinstance(n, bool) or not 1 <= n <= 65536:
        f.fail(KernelValueError, a.node, "the length of a run is a constant from 1 to 65536")
    f.ctx.longest_run = max(f.ctx.longest_run, n)
    f.at(node)
    b, t = f.b, f.ctx.index_ir
    me, length = b.identity("global_idx", 0), b.const(n, t)
    b.emit("assume", (b.binary("le", me, b.const(extent_limit(t) // n, t)),))
    start = b.binary("mul", me, length)
    stop = b.binary("add", start, length)
    return RangeV(Num(f.ctx.index, start), Num(f.ctx.index, stop), Const(1), lambda i: _witness(f, [i.ir]))


def grid_stride(f: Frame, node: ast.Call) -> Val:
    """Every index of an array that falls to this thread as the grid walks over it."""
    (a,) = builtin.positional(f, node, "grid_stride", 1)
    _distinct(f, node, "grid_stride", 1)
    f.at(node)
    b = f.b
    if isinstance(a.value, ArrayV):
        if a.value.layout.rank != 1:
            f.fail(
                KernelTypeError,
                a.node,
                f"grid_stride takes an array of one axis, and {a.value.name} has {a.value.layout.rank}",
            )
        stop = b.cast(b.dim(a.value.ir, 0), f.ctx.index_ir)
    else:
        n = convert.coerce(f, a.value, f.ctx.index, a.node, "grid_stride counts to an")
        assert isinstance(n, Num)
        stop = n.ir
    start = b.identity("global_idx", 0)
    step = b.binary("mul", b.identity("grid_dim", 0), b.const(f.ctx.block[0], f.ctx.index_ir))
    t = f.ctx.index
    # The step is a constant of the launch, so it is known not to be zero.
    return RangeV(Num(t, start), Num(t, stop), Num(t, step), lambda i: _witness(f, [i.ir]), nonzero=True)
