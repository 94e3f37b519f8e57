"""Kernels as functions: which parameters are results, and how large each is.

A kernel writes into arrays that it is given; torch and JAX want functions that return new ones. ``outputs`` maps
the name of a mutable parameter to what its array is like: the name of an input, or a function of the inputs (called
by name) that gives the shape.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import numpy as np

from gridwise.frontend import ParamSpec, memory_type
from gridwise.lang.errors import LaunchTypeError, LaunchValueError
from gridwise.launch import Kernel

Like = str | Callable[..., tuple[int, ...]]


class Functional:
    """A kernel with its results named.

    Attributes: inputs (parameters that a caller gives, in order), results (those that are made), mutated (names of
    inputs that the kernel writes).
    """

    def __init__(self, kernel: Kernel, outputs: Mapping[str, Like]):
        self.kernel = kernel
        specs = {s.name: s for s in kernel.signature.params}
        for name, like in outputs.items():
            spec = specs.get(name)
            if spec is None or spec.kind not in ("disjoint", "atomic"):
                raise LaunchTypeError(f"{kernel.name}: the output {name!r} is no mutable array parameter")
            if isinstance(like, str) and (like not in specs or not specs[like].is_array or like in outputs):
                raise LaunchTypeError(f"{kernel.name}: the output {name!r} is like {like!r}, which is no input array")
        self.specs = tuple(specs.values())
        self.outputs = dict(outputs)
        self.inputs = tuple(s for s in self.specs if s.name not in outputs)
        self.results = tuple(s for s in self.specs if s.name in outputs)
        self.mutated = tuple(s.name for s in self.inputs if s.kind in ("disjoint", "atomic"))

    def shape(self, spec: ParamSpec, given: Mapping[str, Any]) -> tuple[int, ...]:
        """The shape of a result for these inputs, which are anything that has a shape."""
        like = self.outputs[spec.name]
        if isinstance(like, str):
            return tuple(given[like].shape)
        wanted = inspect.signature(like).parameters
        shape = like(**{n: given[n] for n in wanted})
        shape = tuple(shape) if isinstance(shape, tuple | list) else (shape,)
        if len(shape) != spec.rank:
            raise LaunchValueError(f"{self.kernel.name}: the output {spec.name!r} has {spec.rank} axes, not {shape}")
        return shape

    def dtype(self, spec: ParamSpec, given: Mapping[str, Any]) -> np.dtype[Any] | str:
        """The dtype of a result, or the name of the input that has it, for a generic parameter."""
        if not isinstance(spec.elem, TypeVar):
            return memory_type(spec.elem).dtype
        like = self.outputs[spec.name]
        if isinstance(like, str):
            return like
        same = next((s.name for s in self.inputs if s.elem is spec.elem and s.is_array), None)
        if same is None:
            raise LaunchTypeError(f"{self.kernel.name}: the type of the output {spec.name!r} follows from no input")
        return same

    def arrange(self, given: Mapping[str, Any], made: Mapping[str, Any]) -> tuple[Any, ...]:
        """Arguments in the order of the kernel's parameters."""
        return tuple(made[s.name] if s.name in made else given[s.name] for s in self.specs)
