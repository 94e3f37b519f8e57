"""Runs every block of code in README.md and docs/.

The Python blocks of a file share one namespace, in order. A fence ``python raises=Name`` must raise that error, and a
``text`` block after it must be its whole report. ``python needs=name`` is run where that library is installed.
Lines of ``sh`` blocks that call ``gridwise`` or ``python`` are run;
``make`` targets and ``pip`` extras must exist.
"""

from __future__ import annotations

import importlib.util
import linecache
import re
import shlex
import subprocess
import sys
import tomllib
import types
from dataclasses import dataclass
from pathlib import Path

import pytest

import gridwise as gw

ROOT = Path(__file__).resolve().parents[2]
FILES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


@dataclass
class Block:
    language: str
    raises: str
    needs: str
    line: int  # of the first line of code
    text: str


def blocks(path: Path) -> list[Block]:
    found: list[Block] = []
    fence: re.Match[str] | None = None
    start, body = 0, []
    for n, line in enumerate(path.read_text().splitlines(keepends=True), 1):
        if fence is None:
            fence = re.match(r"```(\w*)(?: raises=(\w+))?(?: needs=(\w+))?\s*$", line)
            start, body = n + 1, []
            assert fence or not line.startswith("```"), f"{path}:{n}: a fence this test does not know"
        elif line.startswith("```"):
            found.append(Block(fence[1], fence[2] or "", fence[3] or "", start, "".join(body)))
            fence = None
        else:
            body.append(line)
    assert fence is None, f"{path}: a fence is not closed"
    return found


def as_source(found: list[Block], name: str) -> None:
    """Make the document's Python, at its own lines, the source that a kernel is compiled from."""
    lines: list[str] = []
    for block in found:
        if block.language == "python":
            lines += ["\n"] * (block.line - 1 - len(lines)) + block.text.splitlines(keepends=True)
    linecache.cache[name] = (sum(map(len, lines)), None, lines, name)


def run(block: Block, name: str, space: dict[str, object]) -> str:
    """Run one Python block; the report of the error that it must raise."""
    code = compile("\n" * (block.line - 1) + block.text, name, "exec")
    if not block.raises:
        exec(code, space)
        return ""
    with pytest.raises(getattr(gw, block.raises)) as caught:
        exec(code, space)
    report = str(caught.value)
    assert len(report.splitlines()) <= 6, report
    return report


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(ROOT)))
def test_python_blocks(path, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    module = types.ModuleType(f"document_{path.stem}")
    monkeypatch.setitem(sys.modules, module.__name__, module)  # where annotations of classes are looked up
    space = vars(module)
    report, found = "", blocks(path)
    as_source(found, path.name)
    for block in found:
        if block.needs and importlib.util.find_spec(block.needs) is None:
            continue
        if block.language == "python":
            report = run(block, path.name, space)
        elif block.language == "text" and report:
            assert block.text.rstrip("\n") == report, f"{path}:{block.line}"


def _commands() -> list[tuple[Path, str]]:
    out = []
    for path in FILES:
        for block in blocks(path):
            if block.language == "sh":
                out += [(path, line.split("  #")[0].strip()) for line in block.text.splitlines() if line.strip()]
    return out


@pytest.mark.parametrize(("path", "command"), _commands(), ids=[c for _, c in _commands()])
def test_shell_lines(path, command, tmp_path):
    words = shlex.split(command)
    if words[0] == "pip":
        extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
        wanted = re.findall(r"gridwise\[([\w,]+)\]", command)
        assert wanted and all(e in extras for group in wanted for e in group.split(","))
        return
    if words[0] == "make":
        targets = re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.M)
        assert set(words[1:]) <= set(targets)
        return
    assert words[0] in ("gridwise", "python"), f"{path}: a command this test does not know: {command}"
    if words[:2] == ["gridwise", "demo"]:
        words += ["--device", "cpu"]  # the others are run by tests/cli
    head = [sys.executable, "-m", "gridwise"] if words[0] == "gridwise" else [sys.executable]
    words[1:] = [str(ROOT / w) if w.startswith("examples/") else w for w in words[1:]]
    done = subprocess.run([*head, *words[1:]], cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
