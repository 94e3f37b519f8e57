"""What a tuned kernel measured and chose: kept in the disk cache, and in JSON files that travel with a program.

A ``Choice`` is found by what it was measured for: the kernel's own source and its configurations, the device, the
types of the arguments, and their rounded sizes. Source text stands for the kernel, not compiled code, so that a file
made on one machine counts on another that has the same program and the same device.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from gridwise.lang.errors import GridwiseError, LaunchValueError
from gridwise.lang.records import dataclass

from .sha import sha256

if TYPE_CHECKING:
    from pathlib import Path

    from .store import Store
    from .tuning import Tuned

Plain = dict[str, Any]  # a configuration as JSON has it: numbers, bools, strings and lists of those
FORMAT = "gridwise tuning 1"
_MARK = json.dumps({"format": FORMAT})[:-1].encode()  # how every entry of the cache begins


@dataclass(frozen=True)
class Trial:
    """One configuration measured: its best time in seconds, or None and the reason why it takes no part."""

    config: Plain
    seconds: float | None
    note: str = ""


@dataclass(frozen=True)
class Choice:
    """What was chosen for one kernel, device, types and sizes, and the trials it was chosen from.

    types:     type variables by name, and the values of constants that are not tuned, as text.
    arguments: each parameter that is not tuned: its type, as text.
    sizes:     the parameters named by ``key=``: extents of arrays rounded up to powers of two, or a scalar's value.
    """

    kernel: str
    digest: str
    target: str
    device: str
    arguments: dict[str, str]
    types: dict[str, Any]
    sizes: dict[str, Any]
    config: Plain
    trials: tuple[Trial, ...] = ()

    def name(self) -> str:
        """The name in the cache: a hash of everything but the result."""
        asked = [FORMAT, self.digest, self.target, self.device, self.arguments, self.sizes]
        return sha256(json.dumps(asked, sort_keys=True).encode()).hexdigest()

    def to_json(self) -> dict[str, Any]:
        trials = [{"config": t.config, "seconds": t.seconds, "note": t.note} for t in self.trials]
        named = {n: getattr(self, n) for n in _FIELDS}
        return {"format": FORMAT, **named, "trials": trials}

    @classmethod
    def of_json(cls, data: Any) -> Choice:
        """Raises ValueError, TypeError or KeyError for what is none."""
        if data["format"] != FORMAT:
            raise ValueError(f"the format is {data['format']!r}, expected {FORMAT!r}")
        for n in _FIELDS:
            if not isinstance(data[n], str if n in ("kernel", "digest", "target", "device") else dict):
                raise TypeError(f"{n!r} is {data[n]!r}")
        trials = tuple(Trial(dict(t["config"]), t["seconds"], str(t["note"])) for t in data["trials"])
        return cls(**{n: data[n] for n in _FIELDS}, trials=trials)


_FIELDS = ("kernel", "digest", "target", "device", "arguments", "types", "sizes", "config")


# -- the disk cache ------------------------------------------------------------------------------------------------
def _store() -> Store | None:
    from .store import store  # loaded when there is a choice to look for or to keep

    return store()


def recall(asked: Choice) -> Choice | None:
    """What an earlier process chose where ``asked`` describes the question; None if none did."""
    held = _store()
    raw = held.get(asked.name()) if held is not None else None
    try:
        return None if raw is None else Choice.of_json(json.loads(raw))
    except (ValueError, TypeError, KeyError):
        return None


def keep(choice: Choice) -> None:
    """Put a choice into the disk cache, if there is one."""
    held = _store()
    if held is not None:
        held.put(choice.name(), json.dumps(choice.to_json()).encode())


def kept() -> list[Choice]:
    """All choices of the disk cache, by kernel."""
    held = _store()
    found = []
    for raw in held.beginning(_MARK) if held is not None else ():
        try:
            found.append(Choice.of_json(json.loads(raw)))
        except (ValueError, TypeError, KeyError):
            continue
    return sorted(found, key=lambda c: (c.kernel, c.device, json.dumps(c.sizes, sort_keys=True)))


# -- files -----------------------------------------------------------------------------------------------------------
def export_choices(path: str | Path, choices: Iterable[Choice] | None = None) -> int:
    """Write choices (all of the disk cache if not given) to a JSON file; how many there were."""
    found = kept() if choices is None else list(choices)
    text = json.dumps([c.to_json() for c in found], indent=1)
    from pathlib import Path

    Path(path).write_text(text + "\n")
    return len(found)


def read_choices(path: str | Path) -> list[Choice]:
    """The choices of a file that ``export_choices`` wrote. Raises LaunchValueError where it is none."""
    from pathlib import Path

    try:
        return [Choice.of_json(one) for one in json.loads(Path(path).read_text())]
    except (OSError, ValueError, TypeError, KeyError) as e:
        why = f"{e.args[0]!r} is missing" if isinstance(e, KeyError) else str(e)
        raise LaunchValueError(f"{path} holds no tuning choices: {why}\n  help: gridwise tune export {path}") from None


def import_choices(path: str | Path) -> int:
    """Put the choices of a file into the disk cache; how many there were."""
    found = read_choices(path)
    for choice in found:
        keep(choice)
    return len(found)


@dataclass(frozen=True)
class Finding:
    """A choice held against a program: ``problem`` is empty where it fits."""

    choice: Choice
    problem: str = ""


def check_choices(choices: Sequence[Choice], kernels: Mapping[str, Tuned]) -> list[Finding]:
    """Whether each choice fits the tuned kernel of its name: same source, one of its configurations, and it compiles.

    Needs no device: what it compiles, it compiles for the choice's target, and runs nothing.
    """
    found = []
    for choice in choices:
        tuned = kernels.get(choice.kernel)
        if tuned is None:
            found.append(Finding(choice, f"there is no tuned kernel {choice.kernel!r}"))
        elif tuned.digest != choice.digest:
            found.append(Finding(choice, "the kernel or its configurations have changed since it was measured"))
        elif tuned.match(choice.config) is None:
            found.append(Finding(choice, f"{choice.config} is none of the kernel's configurations"))
        else:
            try:
                tuned.compile_for(choice)
                found.append(Finding(choice))
            except GridwiseError as e:
                found.append(Finding(choice, str(e)))
    return found
