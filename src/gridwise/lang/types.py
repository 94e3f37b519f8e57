"""The scalar types of the language, as Python classes: annotations and casts in kernels, NumPy scalars outside.

Inside a kernel ``f32(x)`` converts (rule 6: float to integer saturates, NaN gives 0; integers wrap). Outside it
does the same and returns the NumPy scalar, so that host code and plain-Python runs agree with the device.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import numpy as np

from .records import dataclass

T = TypeVar("T")


class ScalarType(type):
    """The class of scalar classes. ``name``, ``kind`` (bool, int, uint, float) and ``bits`` describe values."""

    name: str
    kind: str
    bits: int

    def __new__(
        mcls, name: str, bases: tuple[type, ...], space: dict[str, Any], kind: str = "", bits: int = 0
    ) -> ScalarType:
        cls = super().__new__(mcls, name, bases, space)
        cls.name, cls.kind, cls.bits = name.rstrip("_"), kind, bits
        return cls

    def __init__(cls, name: str, bases: tuple[type, ...], space: dict[str, Any], kind: str = "", bits: int = 0):
        super().__init__(name, bases, space)

    def __repr__(cls) -> str:
        return cls.__name__

    @property
    def dtype(cls) -> np.dtype[Any]:
        """The NumPy dtype of this type in memory (``ml_dtypes`` supplies bf16 and fp8)."""
        if cls.name in _ML_DTYPES:
            import ml_dtypes

            dtype: np.dtype[Any] = np.dtype(getattr(ml_dtypes, _ML_DTYPES[cls.name]))
            return dtype
        if cls.kind == "float":
            return np.dtype(f"float{cls.bits}")
        return np.dtype("bool" if cls.kind == "bool" else f"{cls.kind}{cls.bits}")

    @property
    def min(cls) -> int:
        """Smallest value of an integer type."""
        return -(1 << (cls.bits - 1)) if cls.kind == "int" else 0

    @property
    def max(cls) -> int:
        """Largest value of an integer type."""
        return (1 << (cls.bits - 1)) - 1 if cls.kind == "int" else (1 << cls.bits) - 1


_ML_DTYPES = {"bf16": "bfloat16", "f8e4m3": "float8_e4m3fn", "f8e5m2": "float8_e5m2"}


def rounded_once(value: int | float, type: str) -> float:
    """``value`` as a double that NumPy turns into a float of this type with a single rounding.

    NumPy and ``ml_dtypes`` pass an integer through a double, and a double through an f32 on its way to bf16 and fp8.
    Here that first step rounds to odd: where digits are cut off the last one kept is one, so that the second
    rounding is not led astray.
    """
    by_f32 = type in ("bf16", "f8e4m3", "f8e5m2")
    digits, least = (24, -149) if by_f32 else (53, -1074)
    if type == "f64" or value == 0 or (isinstance(value, float) and not (by_f32 and math.isfinite(value))):
        return float(value)
    top = value.bit_length() if isinstance(value, int) else math.frexp(value)[1]
    exponent = max(top - digits, least)
    if isinstance(value, int):
        if exponent <= 0:
            return float(value)
        kept = abs(value) >> exponent
        cut = abs(value) & (1 << exponent) - 1 != 0
    else:
        scaled = math.ldexp(abs(value), -exponent)
        kept = int(scaled)
        cut = kept != scaled
    return math.copysign(math.ldexp(kept | cut, exponent), value)


def convert(value: Any, to: ScalarType) -> Any:
    """``value`` as a NumPy scalar of type ``to``, by the conversion rules of the language (rule 6)."""
    if to.kind == "bool":
        return np.bool_(value != 0)
    if to.kind == "float":
        if isinstance(value, int | np.integer):
            value = rounded_once(int(value), to.name)
        elif isinstance(value, float | np.floating):
            value = rounded_once(float(value), to.name)
        with np.errstate(over="ignore"):
            return to.dtype.type(value)
    if isinstance(value, float | np.floating) or (hasattr(value, "dtype") and value.dtype.kind not in "biu"):
        x = float(value)
        if x != x:
            return to.dtype.type(0)
        n = to.max if x >= to.max else to.min if x <= to.min else int(x)
    else:
        n = int(value) & ((1 << to.bits) - 1)
        n = n - (1 << to.bits) if to.kind == "int" and n > to.max else n
    return to.dtype.type(n)


if TYPE_CHECKING:

    class _Number(metaclass=ScalarType):
        """What type checkers know of a scalar; the compiler knows the rest, and is stricter."""

        def __init__(self, value: Any = 0) -> None: ...
        def __add__(self, other: Any) -> Any: ...
        def __radd__(self, other: Any) -> Any: ...
        def __sub__(self, other: Any) -> Any: ...
        def __rsub__(self, other: Any) -> Any: ...
        def __mul__(self, other: Any) -> Any: ...
        def __rmul__(self, other: Any) -> Any: ...
        def __truediv__(self, other: Any) -> Any: ...
        def __rtruediv__(self, other: Any) -> Any: ...
        def __floordiv__(self, other: Any) -> Any: ...
        def __rfloordiv__(self, other: Any) -> Any: ...
        def __mod__(self, other: Any) -> Any: ...
        def __rmod__(self, other: Any) -> Any: ...
        def __pow__(self, other: Any) -> Any: ...
        def __rpow__(self, other: Any) -> Any: ...
        def __and__(self, other: Any) -> Any: ...
        def __rand__(self, other: Any) -> Any: ...
        def __or__(self, other: Any) -> Any: ...
        def __ror__(self, other: Any) -> Any: ...
        def __xor__(self, other: Any) -> Any: ...
        def __rxor__(self, other: Any) -> Any: ...
        def __lshift__(self, other: Any) -> Any: ...
        def __rlshift__(self, other: Any) -> Any: ...
        def __rshift__(self, other: Any) -> Any: ...
        def __rrshift__(self, other: Any) -> Any: ...
        def __neg__(self) -> Any: ...
        def __pos__(self) -> Any: ...
        def __abs__(self) -> Any: ...
        def __invert__(self) -> Any: ...
        def __lt__(self, other: Any) -> bool: ...
        def __le__(self, other: Any) -> bool: ...
        def __gt__(self, other: Any) -> bool: ...
        def __ge__(self, other: Any) -> bool: ...
        def __int__(self) -> int: ...
        def __float__(self) -> float: ...
        def __index__(self) -> int: ...

else:

    class _Number(metaclass=ScalarType):
        """Base of the scalar classes: calling one converts."""

        def __new__(cls, value=0):
            return convert(value, cls)


class bool_(_Number, kind="bool", bits=1):
    """True or False; one byte in memory."""


class i8(_Number, kind="int", bits=8):
    """Signed 8-bit integer; wraps."""


class i16(_Number, kind="int", bits=16):
    """Signed 16-bit integer; wraps."""


class i32(_Number, kind="int", bits=32):
    """Signed 32-bit integer; wraps."""


class i64(_Number, kind="int", bits=64):
    """Signed 64-bit integer; wraps."""


class u8(_Number, kind="uint", bits=8):
    """Unsigned 8-bit integer; wraps."""


class u16(_Number, kind="uint", bits=16):
    """Unsigned 16-bit integer; wraps."""


class u32(_Number, kind="uint", bits=32):
    """Unsigned 32-bit integer; wraps."""


class u64(_Number, kind="uint", bits=64):
    """Unsigned 64-bit integer; wraps."""


class f16(_Number, kind="float", bits=16):
    """IEEE half."""


class bf16(_Number, kind="float", bits=16):
    """bfloat16: the upper half of an f32."""


class f32(_Number, kind="float", bits=32):
    """IEEE single."""


class f64(_Number, kind="float", bits=64):
    """IEEE double."""


class f8e4m3(_Number, kind="float", bits=8):
    """8-bit float, 4 exponent bits; storage only."""


class f8e5m2(_Number, kind="float", bits=8):
    """8-bit float, 5 exponent bits; storage only."""


class index(_Number, kind="int", bits=64):
    """The type of indices, lengths and shapes: 32 bits, or 64 when an argument needs it; never wrapped (rule 10)."""


SCALARS: dict[str, ScalarType] = {
    t.name: t for t in (bool_, i8, i16, i32, i64, u8, u16, u32, u64, f16, bf16, f32, f64, f8e4m3, f8e5m2)
}


# -- constants, vectors and options ----------------------------------------------------------------


@dataclass(frozen=True)
class ConstOf:
    """The annotation ``Const[T]``: a value known at compile time."""

    type: Any

    def __repr__(self) -> str:
        return f"Const[{getattr(self.type, '__name__', self.type)}]"


@dataclass(frozen=True)
class VectorOf:
    """The annotation ``vec3[f32]``: ``lanes`` values x, y, z, w of one scalar type; C layout, no padding."""

    elem: Any
    lanes: int

    def __repr__(self) -> str:
        return f"vec{self.lanes}[{self.elem!r}]"

    def __call__(self, *values: Any) -> Any:
        from .vectors import Vector

        return Vector.of(self, values)


@dataclass(frozen=True)
class OptionOf:
    """The annotation ``Option[T]``: a value that may be missing."""

    elem: Any

    def __repr__(self) -> str:
        return f"Option[{getattr(self.elem, '__name__', self.elem)}]"


if TYPE_CHECKING:
    from typing import TypeAlias

    Const: TypeAlias = T

    class _Vector(Generic[T]):
        x: Any
        y: Any
        z: Any
        w: Any

        def __init__(self, *values: Any) -> None: ...
        def __getattr__(self, name: str) -> Any: ...
        def __getitem__(self, k: int) -> Any: ...
        def __add__(self, other: Any) -> Any: ...
        def __radd__(self, other: Any) -> Any: ...
        def __sub__(self, other: Any) -> Any: ...
        def __rsub__(self, other: Any) -> Any: ...
        def __mul__(self, other: Any) -> Any: ...
        def __rmul__(self, other: Any) -> Any: ...
        def __truediv__(self, other: Any) -> Any: ...
        def __neg__(self) -> Any: ...

    class vec2(_Vector[T]): ...

    class vec3(_Vector[T]): ...

    class vec4(_Vector[T]): ...

    class Option(Generic[T]): ...

else:

    class Const:
        """``Const[T]``: a parameter known at compile time; part of the specialisation (array shapes included)."""

        def __class_getitem__(cls, type: Any) -> ConstOf:
            return ConstOf(type)

    class _Family:
        """``vec3``: ``vec3[f32]`` is a type, ``vec3(x, y, z)`` a value whose element type follows from x, y, z."""

        def __init__(self, lanes: int):
            self.lanes, self.__name__ = lanes, f"vec{lanes}"

        def __getitem__(self, elem: Any) -> VectorOf:
            return VectorOf(elem, self.lanes)

        def __call__(self, *values: Any) -> Any:
            return VectorOf(None, self.lanes)(*values)

        def __repr__(self) -> str:
            return self.__name__

    vec2, vec3, vec4 = _Family(2), _Family(3), _Family(4)

    class Option:
        """``Option[T]``: a T or nothing, without a null. Make one with ``some(x)`` or ``none(T)``."""

        def __class_getitem__(cls, elem: Any) -> OptionOf:
            return OptionOf(elem)


Reference = Callable[..., Any]
