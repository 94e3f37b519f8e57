"""The kernels that must be proved as they stand, each with a barrier or guard that can be left out."""

from __future__ import annotations

from build import K

from gridwise.ir import Kernel


def vecadd(guard: bool = True) -> Kernel:
    k = K()
    a, b, c = k.array("a"), k.array("b"), k.array("c", "disjoint")
    i = k.gid() if guard else k.tid()
    with k.if_(i < c.dim()):
        x = a[i] + b[i]
        c[i] = x
    return k.done()


def bitonic_step(guard: bool = True) -> Kernel:
    k = K()
    data, distance = k.array("data", "disjoint"), k.scalar("distance")
    i = k.gid()
    partner = i ^ distance
    with k.if_(k.both(partner > i if guard else partner >= 0, i < data.dim())):
        x, y = data[i], data[partner]
        with k.if_(x > y):
            data[i] = y
            data[partner] = x
    return k.done()


def bitonic_block(barrier: bool = True) -> Kernel:
    """The whole sort of 256 elements in shared memory."""
    k = K()
    data, s = k.array("data", "disjoint"), k.shared("s", (256,))
    t, i = k.tid(), k.gid()
    with k.if_(i < data.dim()):
        s[t] = data[i]
    k.barrier()
    size = k.var("size", 2)
    stride = k.var("stride", 0)
    with k.while_(lambda: size.get <= 256):
        stride.set(size.get // 2)
        with k.while_(lambda: stride.get > 0):
            partner = t ^ stride.get
            with k.if_(partner > t):
                x, y = s[t], s[partner]
                with k.if_(x > y):
                    s[t] = y
                    s[partner] = x
            if barrier:
                k.barrier()
            stride.set(stride.get // 2)
        size.set(size.get * 2)
    with k.if_(i < data.dim()):
        data[i] = s[t]
    return k.done()


def reduction(barrier: bool = True, first: bool = True) -> Kernel:
    k = K()
    a, out, s = k.array("a"), k.array("out", "disjoint"), k.shared("s", (256,))
    t, i = k.tid(), k.gid()
    with k.if_(i < a.dim()):
        s[t] = a[i]
    if first:
        k.barrier()
    stride = k.var("stride", 128)
    with k.while_(lambda: stride.get > 0):
        with k.if_(t < stride.get):
            x = s[t] + s[t + stride.get]
            s[t] = x
        if barrier:
            k.barrier()
        stride.set(stride.get // 2)
    with k.if_(k.both(t.eq(0), k.bid() < out.dim())):
        out[k.bid()] = s[0]
    return k.done()


def transpose(barrier: bool = True, pad: int = 1) -> Kernel:
    k = K((32, 8, 1), 2)
    a, b, s = k.array("a", rank=2), k.array("b", "disjoint", rank=2), k.shared("tile", (32, 32 + pad))
    x, y = k.tid(0), k.tid(1)
    col, row = k.bid(0) * 32, k.bid(1) * 32
    with k.for_(0, 32, 8) as j, k.if_(k.both(row + y + j < a.dim(0), col + x < a.dim(1))):
        s[y + j, x] = a[row + y + j, col + x]
    if barrier:
        k.barrier()
    with k.for_(0, 32, 8) as j, k.if_(k.both(col + y + j < b.dim(0), row + x < b.dim(1))):
        b[col + y + j, row + x] = s[x, y + j]
    return k.done()


def transpose_flat(barrier: bool = True) -> Kernel:
    """The tile as one row of 32 * 33."""
    k = K((32, 8, 1), 2)
    a, b, s = k.array("a", rank=2), k.array("b", "disjoint", rank=2), k.shared("tile", (32 * 33,))
    x, y = k.tid(0), k.tid(1)
    col, row = k.bid(0) * 32, k.bid(1) * 32
    with k.for_(0, 32, 8) as j, k.if_(k.both(row + y + j < a.dim(0), col + x < a.dim(1))):
        s[(y + j) * 33 + x] = a[row + y + j, col + x]
    if barrier:
        k.barrier()
    with k.for_(0, 32, 8) as j, k.if_(k.both(col + y + j < b.dim(0), row + x < b.dim(1))):
        b[col + y + j, row + x] = s[x * 33 + y + j]
    return k.done()


def scan(barrier: bool = True, buffers: int = 2) -> Kernel:
    """Hillis-Steele over one block, by two halves of one buffer."""
    k = K()
    a, out, s = k.array("a"), k.array("out", "disjoint"), k.shared("s", (2, 256))
    t, i = k.tid(), k.gid()
    with k.if_(i < a.dim()):
        s[0, t] = a[i]
    k.barrier()
    src, d = k.var("src", 0), k.var("d", 1)
    with k.while_(lambda: d.get < 256):
        dst = 1 - src.get if buffers == 2 else src.get
        op_if = k.b.if_((t >= d.get).value)
        with k.b.into(op_if.regions[0]):
            x = s[src.get, t] + s[src.get, t - d.get]
            s[dst, t] = x
        with k.b.into(op_if.regions[1]):
            s[dst, t] = s[src.get, t]
        if barrier:
            k.barrier()
        src.set(dst)
        d.set(d.get * 2)
    with k.if_(i < out.dim()):
        out[i] = s[src.get, t]
    return k.done()


def stencil(barrier: bool = True) -> Kernel:
    """Three points, through shared memory with a halo of one on both sides."""
    k = K()
    a, out, s = k.array("a"), k.array("out", "disjoint"), k.shared("s", (258,))
    t, i = k.tid(), k.gid()
    n = a.dim()
    with k.if_(i < n):
        s[t + 1] = a[i]
    with k.if_(k.both(t.eq(0), i > 0)):
        s[0] = a[i - 1]
    with k.if_(k.both(t.eq(255), i + 1 < n)):
        s[257] = a[i + 1]
    if barrier:
        k.barrier()
    with k.if_(k.both(i > 0, i + 1 < n)):
        x = s[t] + s[t + 1] + s[t + 2]
        out[i] = x
    return k.done()


def matmul(first: bool = True, second: bool = True) -> Kernel:
    k = K((16, 16, 1), 2)
    a, b, c = k.array("a", rank=2), k.array("b", rank=2), k.array("c", "disjoint", rank=2)
    x, y = k.shared("x", (16, 16)), k.shared("y", (16, 16))
    col, row, tx, ty = k.gid(0), k.gid(1), k.tid(0), k.tid(1)
    acc = k.var("acc", 0.0, a.value.type.elem)
    with k.for_(0, (a.dim(1) + 15) // 16) as step:
        with k.if_(k.both(row < a.dim(0), step * 16 + tx < a.dim(1))):
            x[ty, tx] = a[row, step * 16 + tx]
        with k.if_(k.both(step * 16 + ty < b.dim(0), col < b.dim(1))):
            y[ty, tx] = b[step * 16 + ty, col]
        if first:
            k.barrier()
        with k.for_(0, 16) as j:
            acc.set(acc.get + x[ty, j] * y[j, tx])
        if second:
            k.barrier()
    with k.if_(k.both(row < c.dim(0), col < c.dim(1))):
        c[row, col] = acc.get
    return k.done()


def histogram(barrier: bool = True, atomic: bool = True) -> Kernel:
    from gridwise.ir.types import I32, U32

    k = K()
    a, bins = k.array("a", elem=I32), k.array("bins", "atomic", elem=U32)
    s = k.shared("s", (256,), U32)
    t = k.tid()
    s[t] = 0
    if barrier:
        k.barrier()
    with k.for_(k.gid(), a.dim(), k.gdim() * 256) as i:
        if atomic:
            s.add(a[i] & 255, 1)
        else:
            s[a[i] & 255] = s[a[i] & 255] + 1
    k.barrier()
    bins.add(t, s[t])
    return k.done()


def grid_stride(own: bool = True) -> Kernel:
    k = K()
    a, c = k.array("a"), k.array("c", "disjoint")
    with k.for_(k.gid(), c.dim(), k.gdim() * 256 if own else k.gdim()) as i:
        c[i] = a[i]
    return k.done()


def grid_stride_while(own: bool = True) -> Kernel:
    k = K()
    a, c = k.array("a"), k.array("c", "disjoint")
    i = k.var("i", k.gid())
    with k.while_(lambda: i.get < c.dim()):
        c[i.get] = a[i.get]
        i.set(i.get + (k.gdim() * 256 if own else k.gdim()))
    return k.done()


def run4(own: bool = True) -> Kernel:
    """Four consecutive elements a thread."""
    k = K()
    a, c = k.array("a"), k.array("c", "disjoint")
    i = k.gid() * (4 if own else 3)
    with k.for_(0, 4) as j, k.if_(i + j < c.dim()):
        c[i + j] = a[i + j]
    return k.done()


def image(own: bool = True) -> Kernel:
    k = K((16, 16, 1), 2)
    a, b = k.array("a", rank=2), k.array("b", "disjoint", rank=2)
    col, row = k.gid(0), k.gid(1)
    with k.if_(k.both(row < b.dim(0), col < b.dim(1))):
        b[row, b.dim(1) - 1 - col if own else col // 2] = a[row, col]
    return k.done()


def flat_image(requires: bool = True) -> Kernel:
    """A matrix in a flat array whose width is an argument."""
    k = K((16, 16, 1), 2)
    b, w, h = k.array("b", "disjoint"), k.scalar("w"), k.scalar("h")
    if requires:
        k.assume(b.dim() >= w * h)
    col, row = k.gid(0), k.gid(1)
    with k.if_(k.both(row < h, col < w)):
        b[row * w + col] = 1
    return k.done()


def rows_and_columns(own: bool = True) -> Kernel:
    """A flat index taken apart and put together again."""
    k = K()
    b, w = k.array("b", "disjoint"), k.scalar("w")
    i = k.gid()
    with k.if_(k.both(i < b.dim(), w > 0)):
        b[i // w * w + i % w if own else i // w] = 1
    return k.done()


def reverse(own: bool = True) -> Kernel:
    k = K()
    b, n = k.array("b", "disjoint"), k.scalar("n")
    i = k.gid()
    with k.if_(i < n):
        b[n - 1 - i if own else (n - 1 - i) // 2] = 1
    return k.done()


def pairs(own: bool = True) -> Kernel:
    k = K()
    b = k.array("b", "disjoint")
    i = k.gid()
    b[2 * i] = 1
    b[2 * i + (1 if own else 2)] = 1
    return k.done()


def swapped_bits(own: bool = True) -> Kernel:
    """The permutation that swaps neighbouring bits of the thread's index."""
    k = K()
    b = k.array("b", "disjoint")
    i = k.gid()
    even = 0x15555555 if own else 0x15555554
    b[((i & even) << 1) | ((i >> 1) & 0x15555555)] = 1
    return k.done()


def rotated(own: bool = True) -> Kernel:
    k = K()
    s = k.shared("s", (256,))
    s[(k.tid() + 1) % 256 if own else (k.tid() + 1) % 255] = 1
    return k.done()


STANDARD = [vecadd, bitonic_step, bitonic_block, reduction, transpose, transpose_flat, scan, stencil, matmul, histogram,
            grid_stride, grid_stride_while, run4, image, flat_image, rows_and_columns, reverse, pairs, swapped_bits,
            rotated]
BROKEN = [*((f, (False,)) for f in STANDARD), (reduction, (True, False)), (matmul, (True, False)),
          (scan, (True, 1)), (histogram, (True, False))]
