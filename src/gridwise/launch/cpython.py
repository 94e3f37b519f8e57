"""Where CPython keeps things, for launchers in machine code: derived from live objects, checked before use.

``supported()`` is False on other interpreters, on free-threaded builds and wherever a check fails; launches then
take the way through Python.
"""

from __future__ import annotations

import ctypes
import functools
import sys
import sysconfig
import types
from typing import Any

import numpy as np

HEAD = object.__basicsize__  # of every object: reference count and type
TYPE = HEAD - 8
FLOAT = HEAD  # the C double of a float
BYTES = bytes.__basicsize__ - 1  # the first byte of a bytes object (its basic size counts the closing 0)
ITEMS = tuple.__basicsize__  # the first item of a tuple
IMMORTAL_NONE = sys.version_info >= (3, 12)  # PEP 683: None's reference count must not be touched


def _word(address: int) -> int:
    return ctypes.c_uint64.from_address(address).value


def _function_words() -> tuple[int, int]:
    def probe(x: int = 1) -> int:
        return x

    words = {_word(id(probe) + at): at for at in range(HEAD, types.FunctionType.__basicsize__, 8)}
    return words.get(id(probe.__code__), 0), words.get(id(probe.__defaults__), 0)


CODE, DEFAULTS = _function_words() if sys.implementation.name == "cpython" else (0, 0)  # of a Python function


@functools.cache
def slot(cls: Any, name: str) -> int:
    """Offset of a ``__slots__`` attribute in instances of ``cls``."""
    probe = cls.__new__(cls)
    for other in _slots(cls):
        object.__setattr__(probe, other, None)
    mark = object()
    object.__setattr__(probe, name, mark)
    found = [at for at in range(HEAD, cls.__basicsize__, 8) if _word(id(probe) + at) == id(mark)]
    for other in _slots(cls):
        object.__setattr__(probe, other, None)
    if len(found) != 1:
        raise RuntimeError(f"{cls.__name__}.{name} is not where it should be")
    return found[0]


def _slots(cls: type) -> list[str]:
    return [n for base in cls.__mro__ for n in getattr(base, "__slots__", ()) if n != "__weakref__"]


def function(name: str) -> int:
    """Address of a function of Python's C API."""
    address = ctypes.cast(getattr(ctypes.pythonapi, name), ctypes.c_void_p).value
    assert address is not None
    return address


# In a NumPy array: the address of element 0, axes (an int), extents, strides in bytes, dtype and flags (an int). This
# much of the struct is the same in every NumPy since 1.0; ``arrays()`` checks it.
DATA, AXES, EXTENTS, STEPS, DTYPE, FLAGS = (HEAD + at for at in (0, 8, 16, 24, 40, 48))


@functools.cache
def arrays() -> bool:
    """Whether machine code may look into NumPy arrays here."""

    def right(a: np.ndarray) -> bool:
        at, n = id(a), a.ndim
        held = [[_word(_word(at + field) + 8 * k) for k in range(n)] for field in (EXTENTS, STEPS)]
        return (
            _word(at + DATA) == a.__array_interface__["data"][0]
            and _word(at + DTYPE) == id(a.dtype)
            and [ctypes.c_int32.from_address(at + field).value for field in (AXES, FLAGS)] == [n, a.flags.num]
            and held == [list(a.shape), list(a.strides)]
        )

    one = np.zeros((3, 5, 7), np.int16)
    locked = np.arange(4.0)
    locked.flags.writeable = False
    return supported() and np.ndarray.__basicsize__ > FLAGS and all(map(right, (one, one[1:, ::2], one.T, locked)))


@functools.cache
def supported() -> bool:
    """Whether machine code may look into objects here."""
    if sys.implementation.name != "cpython" or sys.byteorder != "little" or ctypes.sizeof(ctypes.c_void_p) != 8:
        return False
    if sysconfig.get_config_var("Py_GIL_DISABLED") or hasattr(sys, "getobjects"):  # no GIL, or Py_TRACE_REFS
        return False
    number, text, pair = 1234.5, b"gridwise", (object(), object())
    return (
        CODE > 0
        and DEFAULTS > 0
        and _word(id(number) + TYPE) == id(float)
        and ctypes.c_double.from_address(id(number) + FLOAT).value == number
        and ctypes.string_at(id(text) + BYTES, len(text)) == text
        and [_word(id(pair) + ITEMS + 8 * n) for n in range(2)] == [id(x) for x in pair]
    )


class _MethodDef(ctypes.Structure):
    _fields_ = (
        ("name", ctypes.c_char_p),
        ("address", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    )


_METH_FASTCALL_KEYWORDS = 0x80 | 0x2
_definitions: list[Any] = []  # functions refer to their definitions for ever


def definition(name: str, address: int) -> Any:
    """A method definition for code at ``address`` with CPython's fast calling convention."""
    made = _MethodDef(name.encode(), address, _METH_FASTCALL_KEYWORDS, None)
    _definitions.append(made)
    return made


def builtin(made: Any, state: object) -> Any:
    """A builtin function of ``definition``; the code gets ``state`` as its first argument and keeps it alive."""
    new = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p)
    return new(("PyCFunction_NewEx", ctypes.pythonapi))(ctypes.addressof(made), state, None)
