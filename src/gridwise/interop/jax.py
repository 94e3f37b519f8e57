"""Kernels as JAX functions, by ``jax.pure_callback``: they work under ``jit``; data passes through host memory.

fn = jax_function(kernel, outputs={"c": "a"})
c = jax.jit(fn)(a, b)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import jax
import numpy as np

from gridwise.lang.errors import LaunchTypeError
from gridwise.launch import Kernel

from .outputs import Functional, Like


def jax_function(
    kernel: Kernel,
    outputs: Mapping[str, Like],
    grid: int | tuple[int, ...] | None = None,
    block: int | tuple[int, ...] | None = None,
) -> Callable[..., Any]:
    """A function of the kernel's inputs that returns its outputs (one array, or a tuple of them).

    ``outputs`` names every mutable parameter, each with the input that it is like or a function of the inputs that
    gives its shape: JAX arrays do not change. Results start as zeros. Raises LaunchTypeError if one is missing.
    """
    functional = Functional(kernel, outputs)
    if functional.mutated:
        raise LaunchTypeError(f"{kernel.name}: JAX arrays do not change: name {functional.mutated[0]!r} in outputs=")

    def call(*args: Any) -> Any:
        given = dict(zip((s.name for s in functional.inputs), args, strict=True))
        arrays = {s.name: given[s.name] for s in functional.inputs if s.is_array}
        numbers = {n: v for n, v in given.items() if n not in arrays}
        results = []
        for spec in functional.results:
            dtype = functional.dtype(spec, given)
            theirs = given[dtype].dtype if isinstance(dtype, str) else dtype
            results.append(jax.ShapeDtypeStruct(functional.shape(spec, given), theirs))

        def run(*inside: Any) -> Any:
            known = {n: np.asarray(v) for n, v in zip(arrays, inside, strict=True)}
            made = {s.name: np.zeros(r.shape, r.dtype) for s, r in zip(functional.results, results, strict=True)}
            kernel.launch(None, functional.arrange({**known, **numbers}, made), {}, grid, block, None)
            return tuple(made.values())

        found = jax.pure_callback(run, tuple(results), *arrays.values(), vmap_method="sequential")
        return found[0] if len(found) == 1 else found

    return call
