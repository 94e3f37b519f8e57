"""``@gw.tune``: a kernel whose block and constants are chosen by measuring them on the device it runs on.

The first launch for a device, types and sizes tries every configuration on copies of the arguments, one launch after
another in turns, and keeps the fastest. What a configuration writes must be what the first one writes: one that
differs never wins, and a warning says so. One that the compiler or the device refuses is left out with a note.
"""

from __future__ import annotations

import contextlib
import inspect
import json
import math
import threading
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from gridwise.devices import foreign, recording
from gridwise.devices.array import Array, Trait
from gridwise.devices.base import Device, Stream
from gridwise.devices.registry import host_device
from gridwise.lang.errors import GridwiseError
from gridwise.lang.records import replace

from .choices import Choice, Plain, Trial, keep, read_choices, recall
from .grid import XYZ, block_size, grid_size
from .kernel import Kernel, Prepared, tidy
from .report import bad_type, bad_value
from .sha import sha256

if TYPE_CHECKING:
    from pathlib import Path

    from gridwise.frontend import ParamSpec

    from .bind import Bound

Grid = int | tuple[int, ...]
ENOUGH = 2e-3  # seconds of launches between two looks at the clock
MOST_LAUNCHES = 64
MOST_PREPARED = 16  # launches of different grids that each get a launcher of their own

_asked: ContextVar[bool] = ContextVar("gridwise_tuning", default=False)


class TuningWarning(UserWarning):
    """A configuration that computes something else than the first one, or a file of choices that does not fit."""


@contextlib.contextmanager
def tuning() -> Iterator[None]:
    """Within it, kernels that are measured only when asked (those of ``gridwise.std``) are measured."""
    token = _asked.set(True)
    try:
        yield
    finally:
        _asked.reset(token)


def _plain(config: Mapping[str, Any]) -> Plain:
    """As it comes back from JSON."""
    plain: Plain = json.loads(json.dumps(dict(config)))
    return plain


def _rounded(n: int) -> int:
    return 1 << (n - 1).bit_length() if n > 0 else 0


class Tuned:
    """A kernel with several configurations: call it as the kernel, without the constants that are tuned.

    Attributes:
        kernel:  the kernel itself.
        configs: the configurations, the first of which is the one that others must agree with.
    """

    def __init__(
        self,
        kernel: Kernel,
        configs: Sequence[Mapping[str, Any]],
        key: Sequence[str],
        grid: Grid | Callable[[dict[str, Any]], Grid] | None,
        choices: str | Path | None,
        tolerance: float,
        repeat: int,
        asked: bool,
        default: Mapping[str, Any] | Callable[[dict[str, Any]], Mapping[str, Any]] | None,
    ):
        self.kernel, self.name = kernel, kernel.name
        self.configs = [dict(c) for c in configs]
        self.key, self.grid, self.file = tuple(key), grid, choices
        self.tolerance, self.repeat, self.asked = tolerance, repeat, asked
        self.default = default if default is not None else self.configs[0] if self.configs else {}
        specs = kernel.launcher.specs
        names = {s.name: s for s in specs}
        if not self.configs:
            bad_value(f"{self.name}: no configurations to choose from", 'write configs=[{"block": 128}, ...]')
        self.tuned = [n for n in self.configs[0] if n != "block"]
        self._plain: list[Plain] = []
        for config in self.configs:
            if set(config) != set(self.configs[0]):
                bad_value(f"{self.name}: configurations {self.configs[0]} and {config} set different things")
            try:
                self._plain.append(_plain(config))
            except (TypeError, ValueError):
                bad_type(f"{self.name}: {config} holds something else than numbers, strings and tuples of those")
            if "block" in config:
                block_size(self.name, config["block"], kernel.domain)
        for n in self.tuned:
            if n not in names or names[n].kind != "const":
                constants = ", ".join(s.name for s in specs if s.kind == "const") or "none"
                bad_value(f"{self.name}: the configurations set {n!r}, which is no constant of the kernel",
                          f"what can be tuned: block, and its Const parameters ({constants})")  # fmt: skip
        for n in self.key:
            if n not in names or n in self.tuned:
                bad_value(f"{self.name}: key={list(self.key)} names {n!r}, which is no parameter of a launch")
        self.given = tuple(s for s in specs if s.name not in self.tuned)
        self.names = tuple(s.name for s in self.given)
        self._chosen: dict[Any, tuple[Choice, Mapping[str, Any] | None]] = {}
        self._prepared: dict[Any, Prepared] = {}
        self._read: list[Choice] | None = None
        self._lock = threading.RLock()

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the kernel's source and its configurations."""
        try:
            source = inspect.getsource(self.kernel.fn)
        except (OSError, TypeError):  # typed in, or made by a program
            source = self.kernel.fn.__code__.co_code.hex()
        text = json.dumps([source, self._plain, list(self.kernel.block)], sort_keys=True)
        return sha256(text.encode()).hexdigest()

    def __repr__(self) -> str:
        return f"<{self.kernel.name} tuned over {len(self.configs)} configurations>"

    # -- launches ------------------------------------------------------------------------------------------------
    def __call__(self, *args: Any, grid: Grid | None = None, stream: Stream | None = None, **named: Any) -> None:
        """Launch with the configuration chosen for these arguments, measuring first if nothing was chosen yet.

        ``grid`` in blocks, in place of what the decorator says. Raises what the kernel raises.
        """
        try:
            values = self._values(args, named)
            _, config = self._choice(values, grid)
            self._launch(config or self._default(values), values, grid, stream)
        except GridwiseError as e:
            raise tidy(e) from None

    def choice(self, *args: Any, grid: Grid | None = None, **named: Any) -> Choice:
        """What is chosen for these arguments, measured now if need be. Launches nothing on the arguments."""
        try:
            values = self._values(args, named)
            choice, config = self._choice(values, grid)
            return choice if config else replace(choice, config=_plain(self._default(values)))
        except GridwiseError as e:
            raise tidy(e) from None

    def _values(self, args: tuple[Any, ...], named: dict[str, Any]) -> tuple[Any, ...]:
        from .bind import positional

        for n in named:
            if n in self.tuned:
                bad_type(f"{self.name}: the constant '{n}' is tuned, and not given", f"call {self.name}.kernel")
        return positional(self.name, self.given, args, named)

    def _launch(
        self, config: Mapping[str, Any], values: tuple[Any, ...], grid: Grid | None, stream: Stream | None
    ) -> None:
        block, blocks, full = self._arrange(config, values, grid)
        launcher = self.kernel.launcher
        arrays = [v for s, v in zip(self.given, values, strict=True) if s.is_array]
        if stream is None and arrays and all(type(a) is Array for a in arrays):
            at = (arrays[0].device, block, blocks)
            prepared = self._prepared.get(at)
            if prepared is None and len(self._prepared) < MOST_PREPARED:
                prepared = self._prepared[at] = Prepared(self.kernel, arrays[0].device, blocks, block, None)
            if prepared is not None:
                prepared(*full)
                return
        launcher.launch(full, None, blocks, block, stream)

    def _arrange(
        self, config: Mapping[str, Any], values: tuple[Any, ...], grid: Grid | None
    ) -> tuple[XYZ, XYZ | None, tuple[Any, ...]]:
        """The block, the grid (None: it follows from the output) and all arguments, for one configuration."""
        kernel = self.kernel
        block = kernel.block if "block" not in config else block_size(self.name, config["block"], kernel.domain)
        at = dict(zip(self.names, values, strict=True))
        at.update((n, config[n]) for n in self.tuned)
        full = tuple(at[s.name] for s in kernel.launcher.specs)
        wanted: Any = self.grid if grid is None else grid
        if callable(wanted):
            wanted = wanted({**at, "block": block[0] if kernel.domain == 1 else block[: kernel.domain]})
        return block, None if wanted is None else grid_size(self.name, wanted, kernel.domain), full

    # -- choices -------------------------------------------------------------------------------------------------
    def match(self, plain: Plain) -> dict[str, Any] | None:
        """The configuration that is ``plain`` in JSON; None if there is none."""
        return next((c for c, p in zip(self.configs, self._plain, strict=True) if p == plain), None)

    def _choice(self, values: tuple[Any, ...], grid: Grid | None) -> tuple[Choice, Mapping[str, Any] | None]:
        """What is chosen, and its configuration: None where nothing is, and now is not the time to measure."""
        shown = tuple(
            (v.dtype, len(v.shape), getattr(v, "device", None))
            if getattr(v, "shape", ())
            else v if s.kind == "const" else type(v)
            for s, v in zip(self.given, values, strict=True)
        )  # fmt: skip
        sizes = self._sizes(values)
        key = (shown, tuple(sizes.items()))
        chosen = self._chosen.get(key)
        if chosen is None or (chosen[1] is None and self._may_measure(values)):
            with self._lock:
                asked, device = self._question(values, sizes)
                found = self._find(asked)
                if found is None and self._may_measure(values):
                    found = self._measure(asked, device, values, grid)
                    keep(found)
                self._chosen[key] = chosen = (found or asked, self.match(found.config) if found else None)
        return chosen

    def _default(self, values: tuple[Any, ...]) -> Mapping[str, Any]:
        """The configuration for arguments that nothing was measured for."""
        if not callable(self.default):
            return self.default
        return self.default(dict(zip(self.names, values, strict=True)))

    def _may_measure(self, values: tuple[Any, ...]) -> bool:
        """Not while a graph is recorded, and not on the interpreter, whose time says nothing."""
        if (self.asked and not _asked.get()) or recording.active.value:
            return False
        first = next((v for s, v in zip(self.given, values, strict=True) if s.is_array), None)
        return (first.device if type(first) is Array else host_device()).kind != "check"

    def _sizes(self, values: tuple[Any, ...]) -> dict[str, Any]:
        """Of the parameters that ``key`` names: extents of an array rounded, as 1024x64, or a value, as text."""
        sizes: dict[str, Any] = {}
        for spec, value in zip(self.given, values, strict=True):
            if spec.name in self.key:
                sizes[spec.name] = "x".join(str(_rounded(n)) for n in value.shape) if spec.is_array else str(value)
        return sizes

    def _question(self, values: tuple[Any, ...], sizes: dict[str, Any]) -> tuple[Choice, Device]:
        """What is to be found, as a choice of the first configuration without trials; and where."""
        launcher = self.kernel.launcher
        config = self.configs[0]
        _, _, full = self._arrange(config, values, 1)
        bounds = launcher.bind(full)
        _, device = launcher.place(bounds, None)
        arguments: dict[str, str] = {}
        types: dict[str, Any] = {}
        for spec, bound in zip(launcher.specs, bounds, strict=True):
            if spec.name in self.tuned:
                continue
            arguments[spec.name] = _type_of(spec, bound)
            if isinstance(spec.elem, TypeVar):
                types[spec.elem.__name__] = str(bound.trait.elem if spec.is_array else bound.trait)
            elif spec.kind == "const":
                types[spec.name] = _plain({"": bound.trait[2]})[""] if _jsonable(bound.trait[2]) else None
        where = f"{device.target}: {device.description}"
        return Choice(self.name, self.digest, device.target, where, arguments, types, sizes, _plain(config)), device

    def _find(self, asked: Choice) -> Choice | None:
        """From the disk cache or the file, if it is one of the configurations."""
        found = recall(asked)
        if found is None and self.file is not None:
            if self._read is None:
                self._read = read_choices(self.file)
            name = asked.name()
            found = next((c for c in self._read if c.name() == name), None)
        if found is not None and self.match(found.config) is None:
            told = f"{self.name}: the stored choice {found.config} is none of the configurations, and is not used"
            warnings.warn(told, TuningWarning, stacklevel=4)
            return None
        return found

    # -- measuring ---------------------------------------------------------------------------------------------------
    def _measure(self, asked: Choice, device: Device, values: tuple[Any, ...], grid: Grid | None) -> Choice:
        """Try every configuration on copies of the arguments. Raises the first one's error if none can run."""
        launcher = self.kernel.launcher
        specs = self.given
        originals = [device.array(v if isinstance(v, Array | np.ndarray) else foreign.adopt(v)) if s.is_array else v
                     for s, v in zip(specs, values, strict=True)]  # fmt: skip
        written = [n for n, s in enumerate(specs) if s.kind in ("disjoint", "atomic")]
        scratch = [originals[n].copy() if n in written else v for n, v in enumerate(originals)]
        stream = device.stream()
        device.synchronize()

        def restore() -> None:
            for n in written:
                scratch[n].copy_from(originals[n], stream, blocking=False)

        def launches(config: Mapping[str, Any], times: int) -> float:
            """Seconds for one launch, of so many in a row."""
            restore()
            block, blocks, full = self._arrange(config, tuple(scratch), grid)
            start = stream.record()
            for _ in range(times):
                launcher.launch(full, None, blocks, block, stream)
            end = stream.record()
            stream.synchronize()
            return end.elapsed_since(start) / times

        reference: list[np.ndarray] | None = None
        notes: dict[int, str] = {}
        counts: dict[int, int] = {}
        best: dict[int, float] = {}
        first_error: GridwiseError | None = None
        for k, config in enumerate(self.configs):
            try:
                seconds = launches(config, 1)  # compiles, too
                results = [scratch[n].numpy(stream) for n in written]
                seconds = min(seconds, launches(config, 1))
            except GridwiseError as e:
                first_error = first_error or e
                notes[k] = f"{type(e).__name__}: {str(e).splitlines()[0]}"
                continue
            if reference is None:
                reference = results
            elif not all(self._agree(a, b) for a, b in zip(results, reference, strict=True)):
                notes[k] = "its results are not those of the first configuration that runs"
                told = f"{self.name}: {config} computes something else than the first configuration, and is not used"
                warnings.warn(told, TuningWarning, stacklevel=5)
                continue
            counts[k] = max(1, min(MOST_LAUNCHES, math.ceil(ENOUGH / max(seconds, 1e-9))))
            best[k] = math.inf
        if not best:
            assert first_error is not None
            raise first_error
        for _ in range(self.repeat):  # in turns: what else the machine does meets all of them
            for k in best:
                best[k] = min(best[k], launches(self.configs[k], counts[k]))
        fastest = min(best, key=lambda k: best[k])
        trials = tuple(Trial(_plain(c), best.get(k), notes.get(k, "")) for k, c in enumerate(self.configs))
        return Choice(**{n: getattr(asked, n) for n in ("kernel", "digest", "target", "device", "arguments", "types",
                         "sizes")}, config=_plain(self.configs[fastest]), trials=trials)  # fmt: skip

    def _agree(self, a: np.ndarray, b: np.ndarray) -> bool:
        """The same values; floats within ``tolerance``, relative to the largest of them. NaN is like NaN."""
        if a.dtype.kind != "f" or not self.tolerance:
            return np.array_equal(a, b, equal_nan=a.dtype.kind == "f")
        finite = np.abs(b[np.isfinite(b)])
        largest = float(finite.max()) if finite.size else 0.0
        return np.allclose(a, b, rtol=self.tolerance, atol=self.tolerance * largest, equal_nan=True)

    # -- without a device --------------------------------------------------------------------------------------------
    def compile_for(self, choice: Choice) -> None:
        """Compile a choice for its target, by what every device of it can do. Raises what a compilation raises."""
        from .offline import TARGETS, lowered

        config = self.match(choice.config)
        if config is None or choice.target not in TARGETS:
            bad_value(f"{self.name}: {choice.config} for {choice.target!r} is nothing to compile")
        launcher = self.kernel.launcher
        constants = {n: tuple(v) if isinstance(v, list) else v for n, v in choice.types.items()}
        tunable = {n: config[n] for n in self.tuned}
        bounds = launcher.example(None, {**_elements(self, constants), **tunable}, default=True)
        assert bounds is not None
        target = TARGETS[choice.target]()
        block = self.kernel.block if "block" not in config else block_size(
            self.name, config["block"], self.kernel.domain)  # fmt: skip
        if math.prod(block) > target.threads:
            bad_value(f"{self.name}: a block of {math.prod(block)} threads, and {target.devices} run at most "
                      f"{target.threads}")  # fmt: skip
        target.emit(lowered(self.kernel, target, block, bounds)[1])


def _elements(tuned: Tuned, types: Mapping[str, Any]) -> dict[str, Any]:
    """Element types by the names that a choice gives them, constants as they are."""
    from gridwise.ir.types import SCALARS

    variables = {s.elem.__name__ for s in tuned.given if isinstance(s.elem, TypeVar)}
    return {n: SCALARS[v] if n in variables and v in SCALARS else v for n, v in types.items()}


def _type_of(spec: ParamSpec, bound: Bound) -> str:
    if spec.is_array:
        trait: Trait = bound.trait
        return f"{trait.elem} {trait.rank}" + " strided" * trait.strided + " wide" * trait.wide
    return repr(bound.trait[2]) if spec.kind == "const" else str(bound.trait)


def _jsonable(value: Any) -> bool:
    try:
        json.dumps(value)
    except (TypeError, ValueError):
        return False
    return True


def tune(
    *,
    configs: Sequence[Mapping[str, Any]],
    key: Sequence[str] = (),
    grid: Grid | Callable[[dict[str, Any]], Grid] | None = None,
    choices: str | Path | None = None,
    tolerance: float = 0.0,
    repeat: int = 5,
    asked: bool = False,
    default: Mapping[str, Any] | Callable[[dict[str, Any]], Mapping[str, Any]] | None = None,
) -> Callable[[Kernel], Tuned]:
    """Make a kernel choose among configurations, by measuring them on the device of its arguments.

    Args:
        configs:   dicts of the same names: ``block``, and ``Const`` parameters of the kernel. All must compute what
                   the first one does.
        key:       parameters whose sizes matter: extents of arrays, rounded up to powers of two, and values of
                   scalars. A choice is made for each combination, device and types.
        grid:      blocks to launch, or a function of a dict that has every argument, tuned constant and ``block``
                   by name. Without it, a thread for each element of the first ``DisjointSlice``.
        choices:   a JSON file of choices (``gridwise tune export``), for what the disk cache does not know.
        tolerance: by how much floats may differ from the first configuration's, relative to the largest.
        repeat:    how often each is timed; the best counts.
        asked:     measure only within ``with gw.tuning():``, and otherwise use ``default`` where nothing is stored.
        default:   the configuration where nothing is measured or stored, or a function of the arguments by name that
                   gives it; the first one if left out.
    """

    def make(kernel: Kernel) -> Tuned:
        if not isinstance(kernel, Kernel):
            bad_type(f"@gw.tune decorates a kernel, not a {type(kernel).__name__}", "write it above @gw.kernel")
        return Tuned(kernel, configs, key, grid, choices, tolerance, repeat, asked, default)

    return make
