"""The command line: what each verb prints, and its exit status."""

import json
import textwrap
from pathlib import Path

import pytest
from click.testing import CliRunner

from gridwise.cli.main import VERBS, cli

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
VECADD = str(EXAMPLES / "vecadd.py")

KERNEL = """
import sys
import numpy as np
import gridwise as gw
from gridwise import DisjointSlice, Slice, f32, thread

@gw.kernel
def double(x: Slice[f32], y: DisjointSlice[f32]):
    i = thread.index_1d()
    if i in y:
        y[i] = 2.0 * x[i]
"""


def call(*args):
    return CliRunner(env={"COLUMNS": "200"}).invoke(cli, [str(a) for a in args])


@pytest.fixture
def script(tmp_path):
    def write(text: str) -> Path:
        path = tmp_path / "script.py"
        path.write_text(KERNEL + textwrap.dedent(text))
        return path

    return write


@pytest.mark.parametrize("verb", VERBS)
def test_help(verb):
    result = call(verb, "--help")
    assert result.exit_code == 0
    assert "Usage" in result.output


def test_no_such_verb():
    assert call("frobnicate").exit_code == 2


def test_run_passes_arguments_and_the_exit_status(script):
    path = script("print(sys.argv[1:], gw.device().name, __name__); sys.exit(7)")
    result = call("run", path, "--device", "check", "a", "--b")
    assert result.exit_code == 7
    assert "['a', '--b'] check __main__" in result.output


def test_run_everywhere():
    result = call("run", "--all-devices", VECADD)
    assert result.exit_code == 0, result.output
    assert "== cpu" in result.output and "elements on check: right" in result.output


def test_run_reports_a_mistake_without_a_traceback(script):
    path = script("double(np.zeros(3), np.zeros(3, np.float32))")
    result = call("run", path)
    assert result.exit_code == 1
    lines = result.output.splitlines()
    assert lines[0].startswith("LaunchTypeError: double: argument 'x' has dtype float64")
    assert len(lines) <= 6 and "Traceback" not in result.output


def test_run_shows_the_traceback_of_other_errors(script):
    result = call("run", script("1 / 0"))
    assert result.exit_code == 1
    assert "ZeroDivisionError" in result.output and "script.py" in result.output
    assert "gridwise/cli" not in result.output


def test_run_on_a_device_that_is_not_there(script):
    result = CliRunner().invoke(cli, ["run", str(script("")), "--device", "cuda:99"])
    assert result.exit_code == 1
    assert type(result.exception).__name__ in ("DeviceUnavailableError", "SystemExit")


def test_errors_are_printed_by_the_entry_point(script, capsys):
    from gridwise.cli.main import main

    with pytest.raises(SystemExit) as e:
        main(["run", str(script("")), "--device", "nothing"])
    assert e.value.code == 1
    assert "DeviceUnavailableError: 'nothing' is no device" in capsys.readouterr().err


def test_doctor():
    result = call("doctor", "--json")
    found = {f["subject"]: f for f in json.loads(result.output)}
    assert result.exit_code == 0
    assert found["Python"]["state"] == "ok" and found["numpy"]["state"] == "ok"
    assert found["device cpu"]["state"] == found["device check"]["state"] == "ok"
    assert all(f["state"] in ("ok", "absent", "broken") for f in found.values())
    assert "device cpu" in call("doctor").output


def test_list():
    result = call("list")
    assert result.exit_code == 0 and "check" in result.output
    result = call("list", VECADD)
    assert "vecadd" in result.output


@pytest.mark.parametrize(("stage", "says"), [("python", "def vecadd"), ("ir", "kernel vecadd"), ("llvm", "define")])
def test_inspect(stage, says):
    result = call("inspect", f"{VECADD}::vecadd", "--stage", stage)
    assert result.exit_code == 0, result.output
    assert says in result.output


def test_inspect_generic():
    result = call("inspect", EXAMPLES / "bitonic_sort.py", "--with", "Key=u32")
    assert result.exit_code == 0, result.output
    assert "u32" in result.output


def test_inspect_names_the_kernels_there_are():
    result = call("inspect", f"{VECADD}::other")
    assert result.exit_code == 2
    assert "vecadd.py::vecadd" in result.output


@pytest.mark.parametrize("name", ["vecadd", "saxpy", "mandelbrot", "bitonic_sort"])
def test_check_accepts_the_examples(name):
    result = call("check", EXAMPLES / f"{name}.py", "--report")
    assert result.exit_code == 0, result.output
    assert "safe" in result.output


def test_check_refuses_a_race(script):
    path = script(
        """
        @gw.kernel
        def race(x: Slice[f32], y: DisjointSlice[f32]):
            i = thread.index_1d()
            if i in x:
                y[0] = x[i]
        """
    )
    result = call("check", path)
    assert result.exit_code == 1
    assert "double: safe" in result.output and "race: refused" in result.output
    rows = {r["kernel"]: r for r in json.loads(call("check", path, "--json").output)}
    assert rows["double"]["accepted"] and rows["double"]["checks"]
    assert rows["race"]["error"]["type"] == "RaceError"


def test_sanitize(script):
    good = script("double(np.ones(9, np.float32), np.zeros(9, np.float32))")
    result = call("sanitize", good)
    assert result.exit_code == 0, result.output
    assert "nothing found" in result.output
    bad = script("double(np.ones(5, np.float32), np.zeros(9, np.float32))")
    result = call("sanitize", bad)
    assert result.exit_code == 1
    assert "y[i] = 2.0 * x[i]" in result.output


def test_demo_on_a_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    data = tmp_path / "keys"
    data.write_bytes(bytes(range(256)) * 20)
    result = call("demo", "--input", data, "--device", "cpu", "--device", "check")
    assert result.exit_code == 0, result.output
    assert "2^10" in result.output and result.output.count("equal to numpy") >= 1
    assert (tmp_path / "mandelbrot.png").read_bytes().startswith(b"\x89PNG")


def test_demo_needs_some_keys(tmp_path):
    small = tmp_path / "small"
    small.write_bytes(b"abc")
    assert call("demo", "--input", small).exit_code == 2
