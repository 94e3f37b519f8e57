"""JAX: arrays in place as inputs, kernels as functions under jit."""

import numpy as np
import pytest

import gridwise as gw
from gridwise import DisjointSlice, Slice, f32, thread

jax = pytest.importorskip("jax")

from gridwise.interop.jax import jax_function  # noqa: E402


@gw.kernel
def axpy(alpha: f32, x: Slice[f32], y: Slice[f32], out: DisjointSlice[f32]):
    i = thread.index_1d()
    if i in out:
        out[i] = alpha * x[i] + y[i]


def test_jax_arrays_are_inputs():
    x = jax.numpy.arange(5, dtype="float32")
    out = np.zeros(5, np.float32)
    axpy(2.0, x, x, out)
    assert out.tolist() == [0.0, 3.0, 6.0, 9.0, 12.0]


def test_jax_arrays_are_not_written():
    x = jax.numpy.zeros(5, dtype="float32")
    with pytest.raises(gw.LaunchError, match="argument 'out'"):
        axpy(2.0, x, x, x + 1)


def test_a_function_under_jit():
    fn = jax_function(axpy, outputs={"out": "x"})

    @jax.jit
    def program(x, y):
        return fn(2.0, jax.numpy.sin(x), y) + 1

    x = np.linspace(0, 1, 100, dtype=np.float32)
    assert np.allclose(program(x, x), 2 * np.sin(x) + x + 1, rtol=1e-6)


def test_every_mutable_parameter_is_an_output():
    with pytest.raises(gw.LaunchTypeError, match="name 'out' in outputs="):
        jax_function(axpy, outputs={})
