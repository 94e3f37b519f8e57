"""``@gw.kernel``: what the decorator makes of a function."""

from __future__ import annotations

import functools
import os
import types
from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

from gridwise.devices.base import Device, Stream
from gridwise.lang.errors import GridwiseError, LaunchTypeError

from .grid import XYZ, block_size, grid_size
from .replaceable import Replaceable

if TYPE_CHECKING:
    from gridwise.frontend import Signature

    from .launcher import Launcher
    from .offline import Verdict

# Set to keep this package's own frames in the tracebacks of a user's mistakes.
VERBOSE = bool(os.environ.get("GRIDWISE_TRACEBACK"))


def tidy(error: GridwiseError) -> GridwiseError:
    """The error without this package's frames: its report says where the user's mistake is."""
    return error if VERBOSE else error.with_traceback(None)


class Kernel(Replaceable):
    """A kernel: call it with arrays, or ``prepare`` it for a device.

    Attributes:
        fn:     the Python function.
        name:   its name, as messages show it.
        domain: 1, 2 or 3: the axes of its grid.
        block:  threads a block, (x, y, z).
    """

    def __init__(
        self,
        fn: Callable[..., Any],
        domain: int,
        block: int | tuple[int, ...] | None,
        requires: Any,
        unchecked: bool,
        fastmath: Iterable[str],
    ):
        if not isinstance(fn, types.FunctionType):
            raise LaunchTypeError(f"@gw.kernel decorates a function, not a {type(fn).__name__}")
        if domain not in (1, 2, 3):
            raise LaunchTypeError(f"{fn.__name__}: domain={domain!r}, expected 1, 2 or 3")
        self.fn, self.name, self.domain = fn, fn.__name__, int(domain)
        self.block = block_size(self.name, block, self.domain)
        self.requires, self.unchecked = requires, bool(unchecked)
        self.fastmath = frozenset(fastmath)
        functools.update_wrapper(self, fn)
        del self.__wrapped__  # type: ignore[attr-defined]  # a kernel called from a kernel is refused, not inlined

    def __repr__(self) -> str:
        return f"<kernel {self.name}, domain={self.domain}, block={self.block}>"

    @cached_property
    def signature(self) -> Signature:
        """The parsed parameters. Raises KernelError for an annotation that is none of the language's."""
        from gridwise.frontend import signature

        return signature(self.fn)

    @cached_property
    def launcher(self) -> Launcher:
        from .launcher import Launcher

        return Launcher(self)

    def __call__(
        self,
        *args: Any,
        grid: int | tuple[int, ...] | None = None,
        block: int | tuple[int, ...] | None = None,
        stream: Stream | None = None,
        **named: Any,
    ) -> None:
        """Launch.

        NumPy arrays are used in place by the CPU device; the call returns when the work is done, and raises
        faults. Arrays on a device are queued on ``stream`` (its default stream), and faults are raised when
        that is synchronised. ``grid`` counts blocks; without it a thread is launched for each element of the
        first ``DisjointSlice``. Raises LaunchTypeError, LaunchValueError, KernelError, DeviceFault.
        """
        try:
            self.launch(None, args, named, grid, block, stream)
        except GridwiseError as e:
            raise tidy(e) from None

    def launch(
        self,
        device: Device | None,
        args: tuple[Any, ...],
        named: dict[str, Any],
        grid: int | tuple[int, ...] | None,
        block: int | tuple[int, ...] | None,
        stream: Stream | None,
    ) -> None:
        """As a call, on a given device."""
        launcher = self.launcher
        launcher.launch(
            launcher.positional(args, named),
            device,
            None if grid is None else grid_size(self.name, grid, self.domain),
            self.block if block is None else block_size(self.name, block, self.domain),
            stream,
            self.offer if grid is None and block is None and device is None and stream is None else None,
        )

    def prepare(
        self,
        device: Device | str,
        grid: int | tuple[int, ...] | None = None,
        block: int | tuple[int, ...] | None = None,
        args: tuple[Any, ...] | None = None,
    ) -> Prepared:
        """Compile for a device and check the contract's fixed part once; the result is called with arrays.

        ``args`` are example arguments (arrays, scalars, constants): needed where types do not follow from the
        annotations, that is for generic kernels and ``Const`` parameters without a default. Without them the
        arrays are taken to be contiguous. Raises LaunchValueError if the block or grid is beyond the device.
        """
        from gridwise.devices import registry

        try:
            found = registry.device(device) if isinstance(device, str) else device
            return Prepared(
                self,
                found,
                None if grid is None else grid_size(self.name, grid, self.domain),
                self.block if block is None else block_size(self.name, block, self.domain),
                args,
            )
        except GridwiseError as e:
            raise tidy(e) from None

    def python(
        self,
        *args: Any,
        grid: int | tuple[int, ...] | None = None,
        block: int | tuple[int, ...] | None = None,
        **named: Any,
    ) -> None:
        """Run the function itself as plain Python on NumPy arrays, a thread at a time: slow, steppable with pdb."""
        from .plain import run

        try:
            launch = run(self, args, named, grid, block)
        except GridwiseError as e:
            raise tidy(e) from None
        launch()

    def inspect(
        self,
        where: Device | str = "cpu",
        stage: str = "ir",
        args: tuple[Any, ...] | None = None,
        choices: Mapping[str, Any] | None = None,
    ) -> str:
        """The kernel at a stage of its compilation for a device, as text.

        ``args`` are example arguments, or ``choices`` gives types to type variables and values to constants.

        Stages: ``python``, ``ir`` (after the proofs), ``simt`` (as the target's emitter takes it), and the
        target's own: ``llvm`` and ``asm`` (cpu), ``llvm``, ``ptx`` and ``sass`` (cuda), ``wgsl`` (webgpu).
        """
        from .inspect import stage_text

        try:
            return stage_text(self, where, stage, args, choices)
        except GridwiseError as e:
            raise tidy(e) from None

    def portable_to(
        self, args: tuple[Any, ...] | None = None, choices: Mapping[str, Any] | None = None
    ) -> dict[str, Verdict]:
        """For each target (``cpu``, ``ptx``, ``wgsl``) whether every device of it can run the kernel, and if not, why.

        Judged by portable limits, whatever this machine has: nothing is run. ``args`` and ``choices`` as for
        ``inspect``. A kernel that is refused everywhere is refused by each with the same report.
        """
        from .offline import portable_to

        try:
            bounds = self.launcher.example(args, choices, default=True)
            assert bounds is not None
            return portable_to(self, bounds)
        except GridwiseError as e:
            raise tidy(e) from None


class Prepared(Replaceable):
    """A kernel on a device with its grid and block: call it with arrays of that device to queue a launch."""

    AFTER = 2  # who prepares a kernel means to launch it often

    def __init__(self, kernel: Kernel, device: Device, grid: XYZ | None, block: XYZ, args: tuple[Any, ...] | None):
        self.kernel, self.device, self.grid, self.block = kernel, device, grid, block
        kernel.launcher.prepare(device, grid, block, args)

    def __repr__(self) -> str:
        return f"<{self.kernel.name} prepared for {self.device.name}, grid={self.grid}, block={self.block}>"

    def __call__(self, *args: Any, stream: Stream | None = None, **named: Any) -> None:
        """Queue a launch on ``stream`` (the device's default stream)."""
        try:
            launcher = self.kernel.launcher
            offer = self.offer if stream is None else None
            launcher.launch(launcher.positional(args, named), self.device, self.grid, self.block, stream, offer)
        except GridwiseError as e:
            raise tidy(e) from None


def kernel(
    fn: Callable[..., Any] | None = None,
    /,
    *,
    domain: int = 1,
    block: int | tuple[int, ...] | None = None,
    requires: Callable[..., Any] | list[Callable[..., Any]] | None = None,
    unchecked: bool = False,
    fastmath: Iterable[str] = (),
) -> Any:
    """Make a function a kernel.

    Args:
        domain:    axes of the grid: 1, 2 or 3.
        block:     threads a block, an int or (x, y, z); 256 threads if not given.
        requires:  relations among the arguments that every launch must meet, as a lambda of parameters (or a
                   list of them): ``lambda a, b, m, k: len(a) >= m * k``. They are facts for the proofs, too.
        unchecked: drop the run-time checks that are not proved away; the author answers for them.
        fastmath:  names of the liberties that floating point may take beyond contraction.
    """

    def make(f: Callable[..., Any]) -> Kernel:
        return Kernel(f, domain, block, requires, unchecked, fastmath)

    return make if fn is None else make(fn)
