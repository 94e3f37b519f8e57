"""Torch: tensors in place, kernels as operators, under torch.compile, with a gradient."""

from typing import TypeVar

import numpy as np
import pytest

import gridwise as gw
from gridwise import AtomicSlice, DisjointSlice, Slice, atomic, f32, i32, thread

torch = pytest.importorskip("torch")

from gridwise.interop.torch import torch_op  # noqa: E402

T = TypeVar("T")


@gw.kernel
def scale(alpha: f32, x: Slice[f32], out: DisjointSlice[f32]):
    i = thread.index_1d()
    if i in out:
        out[i] = alpha * x[i]


@gw.kernel
def increment(x: DisjointSlice[f32], by: f32):
    i = thread.index_1d()
    if i in x:
        x[i] = x[i] + by


@gw.kernel
def twice(x: Slice[T], out: DisjointSlice[T]):
    i = thread.index_1d()
    if i in out:
        out[i] = x[i] + x[i]


@gw.kernel
def histogram(x: Slice[i32], bins: AtomicSlice[i32]):
    i = thread.index_1d()
    if i in x:
        atomic.add(bins, x[i], 1)


@pytest.mark.parametrize("dtype", ["float32", "float64", "int16", "int64", "uint8", "bfloat16", "float16"])
def test_tensors_in_place(dtype):
    x = torch.arange(10).to(getattr(torch, dtype))
    out = torch.zeros_like(x)
    twice(x, out)
    assert torch.equal(out, x + x)
    twice(x[::2], out[5:])
    assert torch.equal(out[5:], x[::2] + x[::2])


def test_tensors_that_need_gradients_are_refused_by_a_plain_call():
    x = torch.ones(4, requires_grad=True)
    with pytest.raises(gw.LaunchTypeError, match=r"argument 'x', a Tensor, cannot be shared: .*requires? grad"):
        scale(1.0, x, torch.zeros(4))


def test_from_dlpack_both_ways():
    t = torch.arange(12.0).reshape(3, 4)
    array = gw.from_dlpack(t.T)
    assert array.shape == (4, 3) and np.array_equal(array.numpy(), t.T.numpy())
    array.fill(5)
    assert bool((t == 5).all())
    back = torch.from_dlpack(gw.device("cpu").full((2, 3), 7.0, f32))
    assert back.shape == (2, 3) and bool((back == 7).all())


SCALE = torch_op(scale, "gridwise_test::scale", outputs={"out": "x"})
INCREMENT = torch_op(increment, "gridwise_test::increment")
DOUBLE = torch_op(twice, "gridwise_test::twice", outputs={"out": "x"})
BINS = torch_op(histogram, "gridwise_test::histogram", grid=1)


def test_an_operator():
    x = torch.randn(100)
    assert torch.equal(SCALE(3.0, x), 3 * x)
    assert DOUBLE(torch.arange(5)).tolist() == [0, 2, 4, 6, 8]
    INCREMENT(x, 1.0)
    bins = torch.zeros(4, dtype=torch.int32)
    BINS(torch.tensor([0, 1, 1, 3], dtype=torch.int32), bins)
    assert bins.tolist() == [1, 2, 0, 1]


def test_opcheck():
    torch.library.opcheck(SCALE, (2.0, torch.randn(17)))
    torch.library.opcheck(INCREMENT, (torch.randn(17), 0.5))


def _backward(ctx, grad):
    return None, SCALE(ctx.alpha, grad.contiguous())


def _keep(ctx, inputs, output):
    ctx.alpha = inputs[0]


SCALE.register_autograd(_backward, setup_context=_keep)


def test_gradient():
    x = torch.randn(50, requires_grad=True)
    SCALE(3.0, x * x).sum().backward()
    assert torch.allclose(x.grad, 6 * x)


def test_under_compile():
    def model(x):
        y = torch.relu(SCALE(2.0, x)) + 1
        return SCALE(0.5, y) * x

    compiled = torch.compile(model, fullgraph=True, backend="aot_eager")
    x = torch.randn(64, requires_grad=True)
    y = torch.randn(64, requires_grad=True)
    with torch.no_grad():
        y.copy_(x)
    a, b = compiled(x), model(y)
    assert torch.equal(a, b)
    a.sum().backward()
    b.sum().backward()
    assert torch.equal(x.grad, y.grad)


def test_shapes_by_a_function():
    @gw.kernel
    def pairs(x: Slice[f32], out: DisjointSlice[f32]):
        i = thread.index_1d()
        if i in out:
            out[i] = x[2 * int(i)] + x[2 * int(i) + 1]

    op = torch_op(pairs, "gridwise_test::pairs", outputs={"out": lambda x: x.shape[0] // 2})
    assert op(torch.arange(6.0)).tolist() == [1.0, 5.0, 9.0]


def test_what_no_operator_can_be():
    with pytest.raises(gw.LaunchTypeError, match="'x' is no mutable array parameter"):
        torch_op(scale, "gridwise_test::bad1", outputs={"x": "out"})
    with pytest.raises(gw.LaunchTypeError, match="is like 'nothing', which is no input array"):
        torch_op(scale, "gridwise_test::bad2", outputs={"out": "nothing"})
