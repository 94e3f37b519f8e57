"""``@gw.tune``: what is chosen, what never is, and where choices are kept."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pytest
from click.testing import CliRunner

import gridwise as gw
from gridwise import Const, DisjointSlice, Slice, f32, i32, thread
from gridwise.cli.main import cli
from gridwise.lang.errors import LaunchTypeError, LaunchValueError
from gridwise.launch.choices import kept

T = TypeVar("T")


def blocks(at: dict[str, Any]) -> int:
    return -(-len(at["y"]) // (at["block"] * at["RUN"]))


@gw.kernel
def scale_runs(x: Slice[T], y: DisjointSlice[T], by: T, RUN: Const[int]):
    for i in thread.run(RUN):
        if i in y:
            y[i] = x[i] * by


CONFIGS = [{"block": 64, "RUN": 1}, {"block": 128, "RUN": 4}, {"block": 32, "RUN": 16}]


def make(kernel: gw.Kernel = scale_runs, configs: Any = CONFIGS, key: Any = ("y",), grid: Any = blocks, **more: Any):
    return gw.tune(configs=configs, key=key, grid=grid, **more)(kernel)


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("GRIDWISE_CACHE", "1")
    monkeypatch.setenv("GRIDWISE_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path


@pytest.fixture
def measured(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of kernels that were measured."""
    names: list[str] = []
    measure = gw.Tuned._measure
    monkeypatch.setattr(gw.Tuned, "_measure", lambda self, *a: (names.append(self.name), measure(self, *a))[1])
    return names


def test_every_configuration_is_measured_and_the_fastest_is_used(device: gw.Device) -> None:
    tuned = make()
    x, y = device.array(np.arange(5000, dtype=np.float32)), device.zeros(5000, f32)
    tuned(x, y, 2.0)
    np.testing.assert_array_equal(y.numpy(), 2 * x.numpy())
    choice = tuned.choice(x, y, 2.0)
    if device.kind == "check":  # the interpreter's time says nothing
        assert choice.trials == () and choice.config == CONFIGS[0]
        return
    assert [t.config for t in choice.trials] == CONFIGS
    times = [t.seconds for t in choice.trials]
    assert all(t is not None and t > 0 for t in times)
    assert choice.config == CONFIGS[int(np.argmin(times))]


def test_numpy_arrays_and_each_type_and_size(measured: list[str]) -> None:
    tuned = make()
    for n in (1000, 1024, 900, 5000):
        for dtype in (np.float32, np.int32):
            x, y = np.arange(n, dtype=dtype), np.zeros(n, dtype)
            tuned(x, y, dtype(3))
            np.testing.assert_array_equal(y, 3 * x)
    assert len(measured) == 4  # two types, and 900 to 1024 are one size


def test_arguments_are_as_before_the_measuring() -> None:
    @gw.kernel
    def double(y: DisjointSlice[i32]):
        i = thread.index_1d()
        if i in y:
            y[i] = y[i] * 2

    tuned = gw.tune(configs=[{"block": 32}, {"block": 256}])(double)
    y = np.arange(100, dtype=np.int32)
    tuned(y)
    np.testing.assert_array_equal(y, 2 * np.arange(100))


@gw.kernel
def wrong_and_quick(x: Slice[f32], y: DisjointSlice[f32], WORK: Const[int]):
    i = thread.index_1d()
    if i in y:
        v = x[i]
        for _ in range(WORK):
            v = v * 0.5 + 0.25
        y[i] = v


def test_a_wrong_configuration_never_wins_silently() -> None:
    tuned = gw.tune(configs=[{"WORK": 500}, {"WORK": 1}])(wrong_and_quick)
    x, y = np.full(100_000, 3, np.float32), np.zeros(100_000, np.float32)
    with pytest.warns(gw.TuningWarning, match=r"\{'WORK': 1\} computes something else"):
        choice = tuned.choice(x, y)
    assert choice.config == {"WORK": 500}
    assert choice.trials[1].seconds is None and "results" in choice.trials[1].note
    tuned(x, y)
    np.testing.assert_allclose(y, 0.5)


def test_floats_may_differ_within_the_tolerance_only() -> None:
    configs = [{"WORK": 60}, {"WORK": 61}, {"WORK": 2}]
    x, y = np.full(1000, 3, np.float32), np.zeros(1000, np.float32)
    with pytest.warns(gw.TuningWarning, match="'WORK': 2"):
        choice = gw.tune(configs=configs, tolerance=1e-5)(wrong_and_quick).choice(x, y)
    assert [t.seconds is None for t in choice.trials] == [False, False, True]


def test_what_does_not_compile_is_skipped_with_a_note() -> None:
    configs = [{"block": 64, "RUN": 0}, {"block": 4096, "RUN": 1}, {"block": 64, "RUN": 2}]
    x, y = np.arange(1000, dtype=np.float32), np.zeros(1000, np.float32)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        choice = make(configs=configs, grid=lambda at: 16).choice(x, y, 1.0)
    assert choice.config == configs[2]
    assert [t.seconds is None for t in choice.trials] == [True, True, False]
    assert "RUN" in choice.trials[0].note or "Error" in choice.trials[0].note
    assert "a block of 4096 threads" in choice.trials[1].note


def test_where_nothing_runs_the_first_reason_is_raised() -> None:
    configs = [{"block": 4096, "RUN": 1}, {"block": 8192, "RUN": 1}]
    with pytest.raises(LaunchValueError, match="a block of 4096 threads"):
        make(configs=configs)(np.zeros(10, np.float32), np.zeros(10, np.float32), 1.0)


def test_the_disk_cache_remembers(cache: Path, measured: list[str]) -> None:
    x, y = np.arange(3000, dtype=np.float32), np.zeros(3000, np.float32)
    first = make().choice(x, y, 2.0)
    again = make().choice(x, y, 2.0)  # as another process would
    assert measured == ["scale_runs"] and again.to_json() == first.to_json()
    make(configs=CONFIGS[:2]).choice(x, y, 2.0)  # another set of configurations is another question
    make().choice(x.astype(np.int32), y.astype(np.int32), 2)
    assert len(measured) == 3 and len(kept()) == 3


def test_export_import_and_a_file_beside_the_program(cache: Path, measured: list[str], monkeypatch: Any) -> None:
    x, y = np.arange(3000, dtype=np.float32), np.zeros(3000, np.float32)
    chosen = make().choice(x, y, 2.0)
    file = cache / "choices.json"
    assert gw.export_choices(file) == 1
    assert json.loads(file.read_text())[0]["config"] == chosen.config
    monkeypatch.setenv("GRIDWISE_CACHE_DIR", str(cache / "elsewhere"))
    assert make(choices=file).choice(x, y, 2.0).to_json() == chosen.to_json()
    assert gw.import_choices(file) == 1
    assert make().choice(x, y, 2.0).to_json() == chosen.to_json()
    assert len(measured) == 1


def test_a_stored_choice_that_is_no_configuration_is_not_used(cache: Path, measured: list[str]) -> None:
    x, y = np.arange(300, dtype=np.float32), np.zeros(300, np.float32)
    make().choice(x, y, 2.0)
    file = cache / "choices.json"
    gw.export_choices(file)
    data = json.loads(file.read_text())
    data[0]["config"] = {"block": 64, "RUN": 5}
    file.write_text(json.dumps(data))
    gw.import_choices(file)
    with pytest.warns(gw.TuningWarning, match="none of the configurations"):
        choice = make().choice(x, y, 2.0)
    assert choice.config in CONFIGS and len(measured) == 2
    file.write_text("[{}]")
    with pytest.raises(LaunchValueError, match="holds no tuning choices: 'format' is missing"):
        gw.read_choices(file)


SCRIPT = """
from typing import Any
import numpy as np
import gridwise as gw
from gridwise import Const, DisjointSlice, Slice, f32, thread

@gw.tune(configs=[{"block": 64, "RUN": 2}, {"block": 128, "RUN": 4}], key=["y"],
         grid=lambda at: -(-len(at["y"]) // (at["block"] * at["RUN"])))
@gw.kernel
def negate(x: Slice[f32], y: DisjointSlice[f32], RUN: Const[int]):
    for i in thread.run(RUN):
        if i in y:
            y[i] = -x[i]

if __name__ == "__main__":
    negate(np.zeros(1000, np.float32), np.zeros(1000, np.float32))
"""


def call(*args: Any) -> Any:
    return CliRunner(env={"COLUMNS": "200"}).invoke(cli, [str(a) for a in args])


def test_the_command_line(cache: Path) -> None:
    script, file = cache / "negate.py", cache / "choices.json"
    script.write_text(SCRIPT)
    assert call("run", script).exit_code == 0
    assert "negate" in call("tune", "list", "--trials").output
    assert "1 choices" in call("tune", "export", file).output
    checked = call("tune", "check", file, script)
    assert checked.exit_code == 0 and checked.output.strip().endswith("fits")
    data = json.loads(file.read_text())
    for target in ("ptx", "wgsl"):  # of a machine that is elsewhere
        data.append({**data[0], "target": target, "device": f"{target}: some GPU"})
    file.write_text(json.dumps(data))
    assert call("tune", "check", file, script).output.count("fits") == 3
    data[0]["config"] = {"block": 64, "RUN": 4}
    file.write_text(json.dumps(data))
    checked = call("tune", "check", file, script)
    assert checked.exit_code == 1 and "none of the kernel's configurations" in checked.output
    script.write_text(SCRIPT.replace("-x[i]", "0.0 - x[i]"))
    assert call("tune", "check", file, script).output.count("have changed since") == 3
    assert "3 choices" in call("tune", "import", file).output
    assert call("tune", "import", script).exit_code == 1


def test_only_when_asked(measured: list[str]) -> None:
    tuned = make(asked=True)
    x, y = np.arange(300, dtype=np.float32), np.zeros(300, np.float32)
    tuned(x, y, 2.0)
    assert not measured
    with gw.tuning():
        tuned(x, y, 2.0)
    tuned(x, y, 2.0)
    assert measured == ["scale_runs"]


def test_graphs_are_recorded_with_what_is_known(measured: list[str]) -> None:
    device = gw.device("cpu")
    tuned = make()
    x, y = device.array(np.arange(300, dtype=np.float32)), device.zeros(300, f32)
    with gw.graph(device.default_stream) as g:
        tuned(x, y, 2.0)
    assert not measured
    g()
    np.testing.assert_array_equal(y.numpy(), 2 * x.numpy())


@pytest.mark.parametrize(
    "more, message",
    [
        ({"configs": []}, "no configurations"),
        ({"configs": [{"block": 64, "RUN": 1}, {"RUN": 2}]}, "set different things"),
        ({"configs": [{"RUNS": 1}]}, r"'RUNS', which is no constant(.|\n)*block, and its Const parameters \(RUN\)"),
        ({"configs": [{"by": 1}]}, "'by', which is no constant"),
        ({"configs": [{"block": 0, "RUN": 1}]}, "below 1"),
        ({"key": ["z"]}, "names 'z'"),
    ],
)
def test_mistakes_of_the_decorator(more: dict[str, Any], message: str) -> None:
    with pytest.raises(LaunchValueError, match=message):
        make(**more)


def test_mistakes_of_a_call() -> None:
    x = np.zeros(10, np.float32)
    with pytest.raises(LaunchTypeError, match="'RUN' is tuned"):
        make()(x, x.copy(), 1.0, RUN=4)
    with pytest.raises(LaunchTypeError, match="'by' missing"):
        make()(x, x.copy())
    with pytest.raises(LaunchTypeError, match="decorates a kernel"):
        gw.tune(configs=CONFIGS)(len)  # type: ignore[arg-type]
