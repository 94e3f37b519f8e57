"""``make bench``: ratios, regressions, the table and the plot; and one quick run of the whole."""

from __future__ import annotations

import json
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

BENCH = Path(__file__).resolve().parents[2] / "bench"
sys.path.insert(0, str(BENCH))

import report  # noqa: E402


def test_the_ratio_is_to_the_fastest_peer() -> None:
    row = report.compared({"gridwise": 2.0, "numpy": 5.0, "numba": 3.0, "warp": float("nan")})
    assert row["ratio"] == 1.5
    assert "ratio" not in report.compared({"gridwise": 2.0})


def test_programs_and_ratios_are_found_at_any_depth() -> None:
    table = {
        "std": {"sum": {"512": report.compared({"gridwise": 1.0, "numpy": 2.0})}},
        "h200": {"cumsum": {"ratio": 0.8}},
    }
    assert [name for name, _ in report.programs(table)] == ["std/sum/512"]
    assert dict(report.ratios(table)) == {"std/sum/512": 2.0, "h200/cumsum": 0.8}


def test_a_fall_beyond_a_tenth_is_reported() -> None:
    before = {"sum": 1.0, "sort": 2.0, "gone": 3.0}
    assert report.regressions({"sum": 0.91, "sort": 1.79, "new": 0.1}, before) == {"sort": "sort: 1.79, was 2.00"}


def test_the_table_has_every_system() -> None:
    rows = {
        "sum": {"gridwise": 1.0, "numpy": 2.0, "ratio": 2.0, "of limit": 0.97},
        "product": {"gridwise": 4.0, "numba": float("nan")},
    }
    head, first, second = report.lines(rows)
    assert head.split() == ["milliseconds", "gridwise", "numpy", "numba", "ratio", "of", "limit"]
    assert first.split() == ["sum", "1.000", "2.000", "-", "2.00", "0.97"]
    assert second.split() == ["product", "4.000", "-", "-"]


def test_the_plot_has_a_bar_for_each_ratio() -> None:
    text = report.svg("CPU & co", {"a<b": 2.0, "slow": 0.5, "off": 1000.0}, {"slow": 1.0})
    root = ET.fromstring(text)
    space = "{http://www.w3.org/2000/svg}"
    bars = [r for r in root.iter(f"{space}rect") if r.find(f"{space}title") is not None]
    assert [b.find(f"{space}title").text for b in bars] == ["a<b: 2.00", "slow: 0.50", "off: 1000.00"]
    widths = [float(b.get("width")) for b in bars]
    assert widths[0] == pytest.approx(widths[1], abs=0.2) and widths[2] <= report.WIDTH  # twice is as long as half
    assert [b.get("fill") for b in bars] == [report.FAST, report.SLOW, report.FAST]
    assert sum(line.get("stroke-width") == "2" for line in root.iter(f"{space}line")) == 1


def run(out: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(BENCH / "run.py"), "--quick", "--only", "cpu_bandwidth,cpu_std", "--out", str(out)]
    return subprocess.run([*command, *arguments], capture_output=True, text=True, timeout=300)


def test_a_run_from_start_to_end(tmp_path: Path) -> None:
    stored = tmp_path / "stored.json"
    done = run(tmp_path, "--stored", str(stored), "--store")
    assert done.returncode == 0, done.stdout + done.stderr
    whole = json.loads((tmp_path / "bench.json").read_text())
    assert set(whole["programs"]) >= {"cpu_bandwidth/a + b", "cpu_std/sum/64"}
    assert whole["programs"]["cpu_bandwidth/a + b"]["of limit"] > 0
    assert "cpu_std/sum/64" in (tmp_path / "bench.txt").read_text()
    ET.parse(tmp_path / "bench.svg")
    held = json.loads(stored.read_text())
    assert held[whole["device"]].keys() == whole["ratios"].keys()

    held[whole["device"]] = {"cpu_std/sum/64": 1e9}
    stored.write_text(json.dumps(held))
    done = run(tmp_path, "--stored", str(stored))
    assert done.returncode == 1
    assert "cpu_std again: 1 slower than stored" in done.stdout
    assert "cpu_std/sum/64: " in done.stdout.splitlines()[-1] and done.stdout.rstrip().endswith("was 1000000000.00")


def test_a_benchmark_that_is_not_there() -> None:
    done = subprocess.run([sys.executable, str(BENCH / "run.py"), "--only", "cpu"], capture_output=True, text=True)
    assert done.returncode == 2 and "no benchmark cpu; there are cpu_bandwidth" in done.stderr
