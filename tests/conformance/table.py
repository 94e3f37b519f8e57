"""The conformance table: rule by device, how many cases passed and how many the device refuses.

Results are kept in a JSON file beside the page, one entry a device, so that runs on several machines make one table.
"""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

RULES = {
    "1": "Integers have a fixed width and wrap",
    "2": "`//` and `%` are Python's, `/` is true division",
    "3": "Literals are weak",
    "4": "Signs do not mix; widening is implicit, narrowing is not",
    "5": "A name keeps its type, and is bound where it is read",
    "6": "Shifts, conversions and extremes are defined at their edges",
    "7": "What cannot be done is a fault",
    "8": "Python means what it means in Python",
    "9": "Captured globals are constants; a change is a new compilation",
    "10": "Indices never wrap",
    "11": "Floats are IEEE; functions within their bounds",
    "12": "A launch with nothing to do does nothing",
    "parameters": "Parameters say who may touch what",
    "types": "Structs, enums, vectors, tuples, options, local arrays, generics",
    "cooperation": "Shared memory, barriers, atomics, subgroups",
    "conditional code": "`target.has` folds",
    "unsafe": "`gw.unsafe`",
    "output": "`print`",
    "traps: integers": "Traps: integers",
    "traps: floats": "Traps: floats",
    "traps: division": "Traps: division",
    "traps: control flow": "Traps: control flow",
    "traps: barriers": "Traps: barriers",
    "traps: capture and cache": "Traps: capture and cache",
    "traps: arrays": "Traps: arrays",
    "traps: threads": "Traps: threads",
    "traps: errors": "Traps: errors",
}

Entry = dict[str, Any]  # of one device: description, and rule -> {"passed": n, "refused": {case: why}}


class Results:
    """What one run found, device by device."""

    def __init__(self) -> None:
        self.devices: dict[str, Entry] = {}
        self.failed: Counter[tuple[str, str]] = Counter()

    def add(self, case: str, rule: str, device: str, description: str, state: str, why: str) -> None:
        entry = self.devices.setdefault(device, {"description": description, "rules": {}})
        cell = entry["rules"].setdefault(rule, {"passed": 0, "refused": {}})
        if state == "passed":
            cell["passed"] += 1
        elif state == "refused":
            cell["refused"][case] = why
        else:
            self.failed[device, rule] += 1

    def table(self) -> list[str]:
        return _table(self.devices, self.failed)

    def write(self, page: Path) -> None:
        """Update the page and its data with the devices of this run; nothing if any case failed."""
        assert not self.failed
        data = page.with_suffix(".json")
        known: dict[str, Entry] = json.loads(data.read_text()) if data.exists() else {}
        known.update(self.devices)
        data.write_text(json.dumps(known, indent=1, sort_keys=True) + "\n")
        page.write_text("\n".join(_page(known)) + "\n")


def _cell(entry: Entry, rule: str, failed: int) -> str:
    cell = entry["rules"].get(rule)
    if cell is None:
        return "-"
    passed, refused = cell["passed"], len(cell["refused"])
    text = f"{passed} passed" + (f", {refused} refused" if refused else "")
    return f"**{failed} FAILED**, {text}" if failed else text


def _table(devices: dict[str, Entry], failed: Counter[tuple[str, str]]) -> list[str]:
    names = sorted(devices)
    out = ["| rule | " + " | ".join(names) + " |", "|---|" + "---|" * len(names)]
    for rule, title in RULES.items():
        number = f"{rule}. " if rule.isdigit() else ""
        cells = [_cell(devices[n], rule, failed[n, rule]) for n in names]
        out.append(f"| {number}{title} | " + " | ".join(cells) + " |")
    return out


def _page(devices: dict[str, Entry]) -> list[str]:
    out = [
        "# Conformance",
        "",
        "Written by `make conformance`. Each rule of the language and each kind of trap has cases: small programs",
        "whose results are known exactly. On each device a case passes, or the device refuses the program, naming the",
        "line, for a capability that it lacks; there is no other state.",
        "",
        *_table(devices, Counter()),
        "",
        "The devices:",
        "",
        *(f"- `{name}`: {devices[name]['description']}" for name in sorted(devices)),
    ]
    refusals = [
        f"- `{name}`, {case}: {why}"
        for name in sorted(devices)
        for cell in devices[name]["rules"].values()
        for case, why in sorted(cell["refused"].items())
    ]
    return [*out, "", "What is refused:", "", *(refusals or ["nothing."])]
