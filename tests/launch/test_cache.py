"""The disk cache: a second process compiles nothing, an edit to anything is seen, and no death spoils it."""

import os
import random
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

from gridwise.launch.store import MAGIC, Store

PROGRAM = """
import sys, time
import numpy as np
import gridwise as gw
from gridwise import DisjointSlice, Slice, f32, i32, thread
{imports}

SCALE = {scale}

{helper}

@gw.kernel(domain=1, block=64)
def scaled(x: Slice[f32], y: DisjointSlice[f32]):
    i = thread.index_1d()
    if i in y:
        y[i] = x[i] * f32(SCALE) + helper(x[i])

from gridwise.passes import pipeline
work = []
analyse, lower = pipeline.analyse, pipeline.lower
pipeline.analyse = lambda *a, **k: (work.append("analyse"), analyse(*a, **k))[1]
pipeline.lower = lambda *a, **k: (work.append("lower"), lower(*a, **k))[1]

device = gw.device("cpu")
x, y = device.array(np.arange(100, dtype=np.float32)), device.zeros(100, f32)
{before}
scaled(x, y)
print(y.numpy()[3], *work)
"""
HELPER = "def helper(v):\n    return v + 1"


def write(folder: Path, scale="2", helper=HELPER, imports="", before="") -> Path:
    path = folder / "program.py"
    path.write_text(PROGRAM.format(scale=scale, helper=helper, imports=imports, before=before))
    return path


def environment(folder: Path, **more: str) -> dict[str, str]:
    return {**os.environ, "GRIDWISE_CACHE": "1", "GRIDWISE_CACHE_DIR": str(folder / "cache"), **more}


def run(path: Path, **more: str) -> list[str]:
    """What the program printed: the result, and the work that was done for it."""
    done = subprocess.run(
        [sys.executable, str(path)], capture_output=True, text=True, timeout=120, env=environment(path.parent, **more)
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


def entries(folder: Path) -> list[Path]:
    return sorted((folder / "cache").glob("??/*"))


def test_a_second_process_proves_and_compiles_nothing(tmp_path):
    path = write(tmp_path)
    assert run(path) == ["10.0", "analyse", "lower"]
    assert run(path) == ["10.0"]


def test_off_means_off(tmp_path):
    path = write(tmp_path)
    assert run(path, GRIDWISE_CACHE="0") == ["10.0", "analyse", "lower"]
    assert not entries(tmp_path)


def test_a_changed_global_is_seen(tmp_path):
    run(write(tmp_path))
    assert run(write(tmp_path, scale="3")) == ["13.0", "analyse", "lower"]


def test_a_global_changed_while_running_is_seen(tmp_path):
    path = write(tmp_path)
    run(path)
    assert run(write(tmp_path, before="scaled(x, y); SCALE = 4"))[0] == "16.0"


def test_an_edit_to_a_called_function_is_seen(tmp_path):
    run(write(tmp_path))
    assert run(write(tmp_path, helper="def helper(v):\n    return v + 2")) == ["11.0", "analyse", "lower"]


def test_an_edit_to_a_function_in_another_file_is_seen(tmp_path):
    other = tmp_path / "other.py"
    other.write_text("def helper(v):\n    return v + 1\n")
    path = write(tmp_path, helper="", imports="from other import helper")
    assert run(path) == ["10.0", "analyse", "lower"]
    assert run(path) == ["10.0"]
    time.sleep(0.02)
    other.write_text("def helper(v):\n    return v + 30\n")
    assert run(path, PYTHONDONTWRITEBYTECODE="1") == ["39.0", "analyse", "lower"]


def test_an_edit_to_a_struct_is_seen(tmp_path):
    struct = "@gw.struct\nclass P:\n    a: f32\n    b: f32\n{extra}\ndef helper(v):\n    return P(v, f32(1)).a + f32(1)"
    path = write(tmp_path, helper=struct.format(extra=""))
    assert run(path) == ["10.0", "analyse", "lower"]
    assert run(path) == ["10.0"]
    swapped = struct.replace("a: f32\n    b: f32", "b: f32\n    a: f32").format(extra="")
    assert run(write(tmp_path, helper=swapped)) == ["8.0", "analyse", "lower"]


def test_kernels_of_a_factory_do_not_collide(tmp_path):
    path = tmp_path / "factory.py"
    path.write_text(
        textwrap.dedent("""
        import numpy as np
        import gridwise as gw
        from gridwise import DisjointSlice, i32, thread

        def make(k):
            @gw.kernel
            def fill(y: DisjointSlice[i32]):
                i = thread.index_1d()
                if i in y:
                    y[i] = k
            return fill

        for k in (1, 2, 3):
            y = np.zeros(4, np.int32)
            make(k)(y)
            print(y[0])
        """)
    )
    assert run(path) == ["1", "2", "3"]
    assert run(path) == ["1", "2", "3"]


@pytest.mark.parametrize("damage", ["cut", "flip", "empty"])
def test_a_damaged_entry_is_built_again(tmp_path, damage):
    path = write(tmp_path)
    run(path)
    for entry in entries(tmp_path):
        raw = bytearray(entry.read_bytes())
        if damage == "cut":
            raw = raw[: len(raw) // 2]
        elif damage == "flip":
            raw[len(raw) - 5] ^= 0x10
        else:
            raw = bytearray()
        entry.write_bytes(raw)
    assert run(path) == ["10.0", "analyse", "lower"]
    assert run(path) == ["10.0"]


def test_a_directory_that_cannot_be_written_changes_nothing(tmp_path):
    (tmp_path / "cache").write_text("a file, not a directory")
    assert run(write(tmp_path))[0] == "10.0"


def test_killed_at_any_moment_it_stays_usable(tmp_path):
    path = write(tmp_path)
    rng = random.Random(5)
    began = time.monotonic()
    run(path)
    whole = time.monotonic() - began
    for entry in entries(tmp_path):
        entry.unlink()
    for _ in range(8):
        process = subprocess.Popen(
            [sys.executable, str(path)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment(tmp_path)
        )
        time.sleep(whole * rng.uniform(0.4, 1.1))
        process.send_signal(signal.SIGKILL)
        process.wait()
        for entry in entries(tmp_path):
            if entry.suffix != ".part":
                store = Store(tmp_path / "cache", 1 << 30)
                assert store.get(entry.parent.name + entry.name) is not None, "a killed process left half an entry"
    assert run(path)[0] == "10.0"
    assert run(path) == ["10.0"]


def test_processes_at_once_agree(tmp_path):
    path = write(tmp_path)
    env = environment(tmp_path)
    processes = [
        subprocess.Popen([sys.executable, str(path)], stdout=-1, stderr=-1, text=True, env=env)
        for _ in range(4)
    ]
    for process in processes:
        out, err = process.communicate(timeout=180)
        assert process.returncode == 0, err
        assert out.split()[0] == "10.0"


def test_the_size_is_bounded_and_the_oldest_go_first(tmp_path):
    store = Store(tmp_path, 3000)
    for n in range(5):
        store.put(f"{n}" * 64, bytes(900))
        os.utime(store._path(f"{n}" * 64), (n, n))
    store.prune()
    left = {e.path.name[0] for e in store.entries()}
    assert left == {"2", "3", "4"}
    assert sum(e.nbytes for e in store.entries()) <= 3000


def test_an_entry_begins_with_its_checksum(tmp_path):
    store = Store(tmp_path, 1 << 20)
    store.put("ab" * 32, b"payload")
    assert store._path("ab" * 32).read_bytes().startswith(MAGIC)
    assert store.get("ab" * 32) == b"payload"
    assert store.get("cd" * 32) is None


def test_the_command_line_lists_and_clears(tmp_path):
    run(write(tmp_path))
    command = [sys.executable, "-m", "gridwise", "cache"]
    listed = subprocess.run([*command, "list"], capture_output=True, text=True, env=environment(tmp_path))
    assert "2 entries" in listed.stdout, listed.stdout + listed.stderr
    cleared = subprocess.run([*command, "clear"], capture_output=True, text=True, env=environment(tmp_path))
    assert "removed 2 entries" in cleared.stdout
    assert not entries(tmp_path)
