"""Blocks and grids: how many threads a launch has, and whether the device can do that."""

from __future__ import annotations

from typing import Any

import numpy as np

from gridwise.devices.base import Limits

from .report import bad_type, bad_value

XYZ = tuple[int, int, int]
MOST_YZ = 65_535  # blocks along y and z: the limit of CUDA and WebGPU, kept on every device, and used by proofs
DEFAULT_BLOCK: dict[int, XYZ] = {1: (256, 1, 1), 2: (16, 16, 1), 3: (8, 8, 4)}


def _axes(kernel: str, what: str, value: Any, domain: int, least: int) -> XYZ:
    given = value if isinstance(value, tuple | list) else (value,)
    if not all(isinstance(n, int | np.integer) and not isinstance(n, bool) for n in given):
        bad_type(f"{kernel}: {what}={value!r} is not an integer or a tuple of integers", f"write {what}=4")
    sizes = tuple(int(n) for n in given)
    if not 1 <= len(sizes) <= 3 or any(n != 1 for n in sizes[domain:]):
        bad_value(
            f"{kernel}: {what}={value!r} has {len(sizes)} axes, and the kernel has domain={domain}",
            f"give {domain} of them: x{', y' if domain > 1 else ''}{', z' if domain > 2 else ''}",
        )
    if any(n < least for n in sizes):
        hint = "leave it out, and it covers the output" if what == "grid" else "write block=256"
        bad_value(f"{kernel}: {what}={value!r} has an axis below {least}", hint)
    x, y, z = (*sizes, 1, 1)[:3]
    return x, y, z


def block_size(kernel: str, block: Any, domain: int) -> XYZ:
    """A ``block=`` argument as (x, y, z); None gives 256 threads in a shape that suits the domain."""
    return DEFAULT_BLOCK[domain] if block is None else _axes(kernel, "block", block, domain, 1)


def grid_size(kernel: str, grid: Any, domain: int) -> XYZ:
    """A ``grid=`` argument, in blocks, as (x, y, z)."""
    return _axes(kernel, "grid", grid, domain, 0)


def inferred(kernel: str, name: str, shape: tuple[int, ...], domain: int, block: XYZ) -> XYZ:
    """The grid that covers the output ``name``: a thread an element.

    With as many axes as the domain, the last axis lies along x. A one-dimensional kernel covers an output of
    more axes by its number of elements.
    """
    if domain == 1 and len(shape) == 1:
        return -(-shape[0] // block[0]), 1, 1
    if len(shape) == domain:
        extents = tuple(reversed(shape))
    elif domain == 1:
        extents = (int(np.prod(shape, dtype=object)),)
    else:
        bad_value(
            f"{kernel}: the grid cannot follow from '{name}', which has {len(shape)} axes where domain={domain}",
            "give it: grid=(x, y)" if domain == 2 else "give it: grid=(x, y, z)",
        )
    x, y, z = (*(-(-n // b) for n, b in zip(extents, block)), 1, 1)[:3]
    return x, y, z


def fits_block(kernel: str, block: XYZ, limits: Limits, device: str) -> None:
    """Raise LaunchValueError if the device cannot run blocks of this size."""
    threads = block[0] * block[1] * block[2]
    if threads > limits.max_threads_per_block:
        bad_value(
            f"{kernel}: a block of {threads} threads is more than {device} can run ({limits.max_threads_per_block})",
            f"use @gw.kernel(block={limits.max_threads_per_block}) or fewer",
        )
    for axis, n, most in zip("xyz", block, limits.max_block):
        if n > most:
            bad_value(f"{kernel}: the block has {n} threads along {axis}, and {device} allows {most}")


def fits_grid(kernel: str, grid: XYZ, limits: Limits, device: str) -> None:
    """Raise LaunchValueError if the device cannot launch so many blocks."""
    for axis, n, limit in zip("xyz", grid, limits.max_grid):
        most = limit if axis == "x" else min(limit, MOST_YZ)
        if n > most:
            bad_value(
                f"{kernel}: the grid has {n} blocks along {axis}, and {device} allows {most}",
                "let each thread handle several elements: for i in thread.grid_stride(c)",
            )
