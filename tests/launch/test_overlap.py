"""Overlap of arguments by the addresses of their elements, against NumPy's own answer."""

import numpy as np
import pytest

from gridwise.devices.array import contiguous_strides
from gridwise.devices.memory import ArrayArg, Buffer
from gridwise.launch.overlap import folds, overlaps

BASE = np.zeros((12, 10), np.float32)
VIEWS = [
    np.s_[:],
    np.s_[0],
    np.s_[1],
    np.s_[::2],
    np.s_[1::2],
    np.s_[:, 0],
    np.s_[:, 1],
    np.s_[:, ::2],
    np.s_[:, 1::2],
    np.s_[::-1, ::-1],
    np.s_[4:8, 5:],
    np.s_[8:, :5],
    np.s_[3:3],
]


def bound(view: np.ndarray, addressed: bool) -> ArrayArg:
    """A view of BASE as an argument: in a buffer with an address, or in one without."""
    offset = view.__array_interface__["data"][0] - BASE.__array_interface__["data"][0]
    buffer = ADDRESSED if addressed else PLAIN
    return ArrayArg(buffer, offset, view.shape, tuple(s // 4 for s in view.strides))


ADDRESSED = Buffer(None, BASE.nbytes, 1 << 20)
PLAIN = Buffer(None, BASE.nbytes)


@pytest.mark.parametrize("addressed", [True, False])
@pytest.mark.parametrize("one", VIEWS, ids=str)
@pytest.mark.parametrize("other", VIEWS, ids=str)
def test_is_numpys_answer(one, other, addressed):
    a, b = BASE[one], BASE[other]
    assert overlaps(bound(a, addressed), 4, bound(b, addressed), 4) == np.shares_memory(a, b)


def test_other_buffers_do_not_overlap():
    a = ArrayArg(Buffer(None, 64), 0, (16,), (1,))
    b = ArrayArg(Buffer(None, 64), 0, (16,), (1,))
    assert not overlaps(a, 4, b, 4)


def test_elements_of_other_sizes():
    a = ArrayArg(PLAIN, 0, (4,), (1,))
    assert overlaps(a, 8, ArrayArg(PLAIN, 28, (1,), (1,)), 4)
    assert not overlaps(a, 8, ArrayArg(PLAIN, 32, (1,), (1,)), 4)


@pytest.mark.parametrize(
    ("shape", "strides", "wanted"),
    [
        ((4, 5), None, False),
        ((4, 5), (1, 4), False),
        ((4, 5), (0, 1), True),
        ((4, 5), (1, 1), True),
        ((1, 5), (0, 1), False),
        ((4, 5), (-5, -1), False),
        ((4, 5), (7, 1), False),
        ((0, 5), (0, 0), False),
        ((3, 2), (2, 3), True),
    ],
)
def test_folds(shape, strides, wanted):
    arg = ArrayArg(PLAIN, 0, shape, strides or contiguous_strides(shape))
    assert folds(arg) == wanted
    indices = list(np.ndindex(shape))
    reached = {sum(i * s for i, s in zip(at, arg.strides, strict=True)) for at in indices}
    if not wanted:
        assert len(reached) == len(indices)
