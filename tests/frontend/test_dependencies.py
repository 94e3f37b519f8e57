"""Rule 9: a changed global, closure or called function is a new compilation."""

import importlib
import sys

import numpy as np
import pytest
from lowering import compiled, run

import gridwise as gw
from gridwise import DisjointSlice, f32, thread

FACTOR = 2.0
FLAG = 1


class Config:
    scale = 3.0


CONFIG = Config()


def helper(x: f32) -> f32:
    return x * FACTOR


def other(x: f32) -> f32:
    return x + 1.0


def kernel(o: DisjointSlice[f32]):
    i = thread.index_1d()
    if i in o:
        o[i] = helper(o[i]) + CONFIG.scale + float(FLAG)


def changes(name, value, monkeypatch):
    deps = compiled(kernel).dependencies
    assert deps.valid()
    monkeypatch.setitem(globals(), name, value)
    assert not deps.valid()
    monkeypatch.undo()
    assert deps.valid()


@pytest.mark.parametrize(
    ("name", "value"), [("FACTOR", 4.0), ("FACTOR", 2), ("helper", other), ("FLAG", True), ("FLAG", 2)]
)
def test_a_changed_global(name, value, monkeypatch):
    changes(name, value, monkeypatch)


def test_a_changed_attribute(monkeypatch):
    deps = compiled(kernel).dependencies
    monkeypatch.setattr(CONFIG, "scale", 5.0)
    assert not deps.valid()


def test_a_global_that_hides_a_builtin(monkeypatch):
    deps = compiled(kernel).dependencies
    monkeypatch.setitem(globals(), "float", lambda x: 0.0)
    assert not deps.valid()


def test_an_equal_constant_is_no_change(monkeypatch):
    deps = compiled(kernel).dependencies
    monkeypatch.setitem(globals(), "FACTOR", float("2.0"))
    assert deps.valid()


def test_a_changed_closure():
    k = 1.0

    def inner(o: DisjointSlice[f32]):
        i = thread.index_1d()
        if i in o:
            o[i] = k

    deps = compiled(inner).dependencies
    assert deps.valid()
    k = 2.0
    assert not deps.valid()


def test_changed_code_of_a_called_function(monkeypatch):
    deps = compiled(kernel).dependencies
    monkeypatch.setattr(helper, "__code__", other.__code__)
    assert not deps.valid()


def test_an_edited_file(tmp_path, monkeypatch):
    path = tmp_path / "edited_library.py"
    path.write_text("from gridwise import f32\ndef h(x: f32) -> f32:\n    return x * 2.0\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    library = importlib.import_module("edited_library")

    @gw.kernel(block=32)
    def calls(o: DisjointSlice[f32]):
        i = thread.index_1d()
        if i in o:
            o[i] = library.h(o[i])

    o = np.ones(1, np.float32)
    run(calls, o)
    assert o[0] == 2
    path.write_text("from gridwise import f32\n\n\ndef h(x: f32) -> f32:\n    return x * 50.0\n")
    importlib.invalidate_caches()
    sys.modules.pop("edited_library")
    fresh = importlib.import_module("edited_library")
    library.h = fresh.h
    run(calls, o)
    assert o[0] == 100


def test_kernels_of_one_factory_are_told_apart():
    def make(k, f):
        @gw.kernel(block=32)
        def scaled(o: DisjointSlice[f32]):
            i = thread.index_1d()
            if i in o:
                o[i] = f(o[i]) * k

        return scaled

    results = []
    for k, f in [(2.0, lambda x: x + 1.0), (2.0, lambda x: x - 1.0), (3.0, lambda x: x + 1.0)]:
        o = np.full(1, 5, np.float32)
        run(make(k, f), o)
        results.append(float(o[0]))
    assert results == [12.0, 8.0, 18.0]


def test_a_bad_kernel_does_not_harm_its_module():
    def bad(o: DisjointSlice[f32]):
        o[thread.index_1d()] = undefined  # noqa: F821

    with pytest.raises(gw.KernelNameError):
        compiled(bad)
    assert compiled(kernel)
    with pytest.raises(gw.KernelNameError):
        compiled(bad)
