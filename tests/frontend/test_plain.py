"""The same function as plain Python: its results are those of the compiled kernel."""

import numpy as np
import pytest
import test_control
import test_memory
import test_types
from lowering import run
from test_types import Body, Colour, Point

import gridwise as gw
from gridwise import DisjointSlice, thread


def both(kernel, *args, **launch):
    """Run compiled on the check device and as plain Python: every array must end the same."""
    compiled = [a.copy() if isinstance(a, np.ndarray) else a for a in args]
    plain = [a.copy() if isinstance(a, np.ndarray) else a for a in args]
    run(kernel, *compiled, **launch)
    kernel.python(*plain, **launch)
    for a, b in zip(compiled, plain, strict=True):
        if isinstance(a, np.ndarray):
            same = str(a) == str(b) if a.dtype.names else np.allclose(a, b, rtol=1e-6, equal_nan=True)
            assert same, (a, b)


def bodies():
    b = np.zeros(3, Body.dtype())
    b["mass"], b["at"]["x"], b["colour"] = [1, 2, 3], [4, 5, 6], [1, 2, 1]
    b["weights"][:, 0] = [7, 8, 9]
    return b


def points():
    s = np.zeros(3, Point.dtype())
    s["x"], s["y"] = 10, [1, 2, 3]
    return s


F = np.float32
CASES = {
    "structs": (test_types.structs, np.zeros(4, F), np.array([0, 1, 2, 5], F)),
    "bodies": (test_types.bodies, bodies(), np.zeros(3), points(), 2),
    "copies": (test_types.copies, np.zeros(3, F), points()),
    "functions": (test_types.function_values, np.zeros(3, F), np.array([1, 2, 3], F)),
    "other files": (test_types.other_files, np.zeros(4, F), np.array([1, 6, 7, 27], np.int32)),
    "transpose": (
        test_memory.transpose,
        np.arange(15, dtype=F).reshape(3, 5),
        np.zeros((5, 3), F),
        np.zeros((5, 3), np.int32),
    ),
    "three axes": (test_memory.three_axes, np.zeros((2, 3, 5), np.int32)),
    "local arrays": (test_memory.locals_, np.zeros(2, np.int32), 1),
    "enum": (
        test_control.by_enum,
        np.array([5], np.int32),
        np.zeros(1, np.int32),
        test_control.Mode.SUB,
        test_control.Order(1),
    ),
    "sums": (test_control.sums, np.arange(20), np.zeros(20, np.int64)),
}


@pytest.mark.parametrize("name", CASES)
def test_plain_runs_agree(name):
    kernel, *args = CASES[name]
    both(kernel, *args)


def test_plain_runs_with_barriers_agree():
    both(test_memory.tree, np.arange(130, dtype=np.int32), np.zeros(3, np.int32), grid=3)
    both(test_memory.grid_stride, np.zeros(70, np.int32), grid=1)
    both(test_memory.runs, np.zeros(300, np.int32), grid=3)
    both(
        test_memory.atomics,
        np.arange(-10, 60, dtype=np.int32),
        np.zeros(5, np.uint32),
        np.zeros(2, np.int32),
        np.zeros(1, F),
        grid=2,
    )


def test_a_struct_read_from_an_array_is_a_copy_that_can_write_back():
    from gridwise.lang.plain import PlainArray

    b = bodies()
    array = PlainArray.over(b, Body)
    first = array[0]
    assert isinstance(first, Body) and first.colour is Colour.RED and first.at == Point(4, 0)
    assert Point(4, 0) == first.at
    array[0].at.x = 9.0
    array[0].weights[1] = 5
    assert (first.at.x, b["at"]["x"][0], b["weights"][0, 1]) == (4, 9, 5)
    loose = array[1].copy()
    loose.mass = 100.0
    loose.at.x = 100.0
    assert (b["mass"][1], b["at"]["x"][1]) == (2, 5)
    array[2] = loose
    assert (b["mass"][2], b["at"]["x"][2]) == (100, 100)


@gw.kernel
def stops(o: DisjointSlice[gw.f32]):
    i = thread.index_1d()
    if i in o:
        assert o[i] < 3.0, "too large"
        o[i] += 1.0


def test_plain_runs_raise_where_python_does():
    with pytest.raises(AssertionError, match="too large"):
        stops.python(np.array([1, 5], F))
    with pytest.raises(RuntimeError, match="only inside a kernel"):
        thread.index_1d()
