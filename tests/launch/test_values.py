"""Composite arguments by value: structs, vectors, tuples, options, and arrays of structs."""

from typing import NamedTuple

import numpy as np
import pytest

import gridwise as gw
from gridwise import DisjointSlice, f32, i32, thread, u8


@gw.struct
class Lens:
    zoom: f32
    kind: u8


@gw.struct
class Camera:
    origin: gw.vec3[f32]
    lens: Lens
    weights: gw.Array[f32, 3]


class Range(NamedTuple):
    low: f32
    high: f32


@gw.kernel
def shade(cam: Camera, out: DisjointSlice[f32]):
    i = thread.index_1d()
    if i in out:
        s = f32(0)
        for k in range(3):
            s += cam.weights[k]
        out[i] = cam.origin.x + cam.lens.zoom * s + f32(cam.lens.kind)


@gw.kernel
def mix(o: gw.Option[f32], v: gw.vec2[i32], t: tuple[f32, i32], r: Range, out: DisjointSlice[f32]):
    i = thread.index_1d()
    if i in out:
        out[i] = o.unwrap_or(-1.0) + f32(v.x + v.y) + t[0] * f32(t[1]) + (r.high - r.low)


@gw.kernel
def zoom_in(lenses: DisjointSlice[Lens], by: f32):
    i = thread.index_1d()
    if i in lenses:
        lenses[i].zoom = lenses[i].zoom * by
        lenses[i].kind += 1


CAMERA = Camera(gw.vec3(1.0, 2.0, 3.0), Lens(2.0, 7), (1.0, 2.0, 3.0))


def test_struct(device):
    out = device.zeros(5, f32)
    shade(CAMERA, out)
    assert out.numpy().tolist() == [20.0] * 5


@pytest.mark.parametrize(("option", "wanted"), [(None, 8), (gw.none(f32), 8), (gw.some(4.0), 13), (5, 14)], ids=str)
def test_option_vector_tuple(device, option, wanted):
    out = device.zeros(2, f32)
    mix(option, gw.vec2(1, 2), (2.0, 3), Range(1.0, 1.0), out)
    assert out.numpy().tolist() == [wanted] * 2
    mix(option, (1, 2), (2.0, 3), (0.5, 1.5), out)
    assert out.numpy().tolist() == [wanted + 1] * 2


def test_array_of_structs(device):
    dtype = np.dtype([("zoom", "f4"), ("kind", "u1")], align=True)
    host = np.zeros(40, dtype)
    host["zoom"], host["kind"] = np.arange(40), 255
    lenses = device.array(host)
    zoom_in(lenses, 3.0)
    back = lenses.numpy()
    assert np.array_equal(back["zoom"], 3 * np.arange(40, dtype=np.float32)) and not back["kind"].any()
    assert device.zeros(3, Lens).dtype.itemsize == 8


def test_a_numpy_record_is_a_struct():
    record = np.zeros(1, np.dtype([("zoom", "f4"), ("kind", "u1")], align=True))[0]
    record["zoom"], record["kind"] = 2, 7
    out = np.zeros(1, np.float32)
    shade(Camera(gw.vec3(1.0, 2.0, 3.0), record, (1.0, 2.0, 3.0)), out)
    assert out[0] == 20


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda out: shade(5, out), "argument 'cam' takes a Camera, and was given an int"),
        (
            lambda out: shade(Camera(gw.vec3(1.0, 2.0, 3.0), Lens("2", 7), (1.0, 2.0, 3.0)), out),
            "argument 'cam.lens.zoom' takes f32, a number, and was given a str",
        ),
        (
            lambda out: shade(Camera(gw.vec3(1.0, 2.0, 3.0), Lens(2.0, 7), (1.0, 2.0)), out),
            "argument 'cam.weights' takes Array[f32, 3], 3 values, and was given a tuple",
        ),
        (
            lambda out: mix(1.0, (1, 2, 3), (2.0, 3), (0.0, 1.0), out),
            "argument 'v' takes vec2[i32], 2 values, and was given a tuple",
        ),
        (
            lambda out: shade(Camera(gw.vec3(1.0, 2.0, 3.0), Lens(2.0, 700), (1.0, 2.0, 3.0)), out),
            "argument 'cam.lens.kind' is 700, which does not fit u8 (0 to 255)",
        ),
    ],
)
def test_what_does_not_fit(call, says):
    with pytest.raises(gw.LaunchError) as caught:
        call(np.zeros(2, np.float32))
    assert says in str(caught.value)


def test_plain_python_takes_the_same_values():
    out = np.zeros(2, np.float32)
    shade.python(CAMERA, out)
    assert out.tolist() == [20.0] * 2
