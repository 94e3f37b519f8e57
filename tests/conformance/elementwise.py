"""Random element-by-element kernels over arrays of every element type: odd lengths, offsets, strides, two axes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from generate import FLOATS, INTS, PREAMBLE, Writer
from program import Expr

import gridwise as gw

ELEMENTS = (*INTS, "f32", "f16", "bf16", "f64", "bool_")


@dataclass(frozen=True)
class Elementwise:
    """``out[i] = result`` of two inputs, with the layout of the three arrays."""

    types: tuple[str, str, str]
    shape: tuple[int, ...]
    step: int  # the inputs are every step-th element of a larger array
    offset: int  # all arrays start so many elements into their buffer
    result: Expr
    seed: int = 0

    def source(self) -> str:
        p, q, out = self.types
        rank = len(self.shape)
        shown = f", {rank}" if rank > 1 else ""
        return (
            f"@gw.kernel(domain={rank}, block={(64,) if rank == 1 else (16, 4)})\n"
            f"def run(ps: Slice[{p}{shown}], qs: Slice[{q}{shown}], out: DisjointSlice[{out}{shown}]):\n"
            f"    i = thread.index_{rank}d()\n"
            "    if i in out and i in ps and i in qs:\n"
            "        p, q = ps[i], qs[i]\n"
            "        a, b, c, d, x, y = i32(p), i32(q), i64(p), i64(q), f32(p), f32(q)\n"
            f"        out[i] = {self.result.text()}\n"
        )

    def module(self) -> str:
        return PREAMBLE + self.source()

    def smaller(self) -> Iterator[Elementwise]:
        if self.step > 1:
            yield replace(self, step=1)
        if self.offset:
            yield replace(self, offset=0)
        if self.shape != (1,) * len(self.shape):
            yield replace(self, shape=tuple(max(1, n // 2) for n in self.shape))
        for result in self.result.smaller():
            yield replace(self, result=result)

    def size(self) -> int:
        return len(self.source()) + sum(self.shape) + 10 * (self.step + self.offset)

    def inputs(self, special: bool) -> list[np.ndarray]:
        """The two inputs as NumPy arrays, before they are laid out."""
        rng = np.random.default_rng(self.seed)
        return [values(rng, t, self.shape, special) for t in self.types[:2]]


def values(rng: np.random.Generator, t: str, shape: tuple[int, ...], special: bool) -> np.ndarray:
    """Random elements of a type: edges, small numbers, anything."""
    dtype = getattr(gw, t).dtype
    if t == "bool_":
        return rng.random(shape) < 0.5
    if t in INTS:
        low, high = int(np.iinfo(dtype).min), int(np.iinfo(dtype).max)
        wide = rng.integers(low, high, shape, dtype=dtype, endpoint=True)
        edge = rng.choice(np.array([0, 1, 2, 7, low, high, high - 1], dtype), shape)
        return np.where(rng.random(shape) < 0.3, edge, wide)
    floats = rng.normal(size=shape) * 2.0 ** rng.integers(-2, 6, shape)
    if special:
        floats = np.where(rng.random(shape) < 0.2, rng.choice([np.inf, -np.inf, np.nan, 0.0, -0.0], shape), floats)
    with np.errstate(all="ignore"):
        return floats.astype(dtype)


class ElementwiseWriter(Writer):
    """Draws one kernel from a seed, over the types that ``floats`` allows."""

    def elementwise(self) -> Elementwise:
        r = self.r
        allowed = [t for t in ELEMENTS if t not in FLOATS or t in self.floats]
        p, q, out = (r.choice(allowed) for _ in range(3))
        self.vars.setdefault(p, []).append("p")
        self.vars.setdefault(q, []).append("q")
        rank = r.choice([1, 1, 2])
        shape = (r.choice([1, 7, 64, 255, 256, 1000, 4096, r.randint(1, 5000)]),) if rank == 1 else (
            r.randint(1, 40), r.choice([1, 5, 16, 33, 64, r.randint(1, 90)]))
        result = Expr(out, f"{out}({{0}})", (self.expr(out, r.randint(1, 3)),))
        return Elementwise((p, q, out), shape, r.choice([1, 1, 1, 2, 3]), r.choice([0, 0, 1, 3]), result, self.seed)


def execute_elementwise(run: gw.Kernel, case: Elementwise, device: gw.Device, special: bool) -> np.ndarray:
    """The whole buffer of ``out``: what lies around the array must stay as it was."""
    given = []
    for t, host in zip(case.types, case.inputs(special)):
        # Rows of a larger array, every step-th column from ``offset``.
        width = case.offset + case.shape[-1] * case.step
        large = np.zeros((*case.shape[:-1], width), host.dtype)
        large[..., case.offset :: case.step][..., : case.shape[-1]] = host
        array = device.array(large, getattr(gw, t))
        given.append(array[..., case.offset :: case.step] if len(case.shape) > 1 else array[case.offset :: case.step])
    out_type = getattr(gw, case.types[2])
    rows = case.shape[0] + 1 if len(case.shape) > 1 else 0
    full = device.zeros((rows, case.shape[1]) if rows else case.offset + case.shape[0] + 3, out_type)
    run(*given, full[: case.shape[0]] if rows else full[case.offset : case.offset + case.shape[0]])
    return full.numpy()


__all__ = ["Elementwise", "ElementwiseWriter", "execute_elementwise"]
