"""Kernels in IR, written with Python's operators: for tests of the analyses alone, without the frontend."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from gridwise.ir import Builder, Kernel, Op, Param, Region, Value, verify
from gridwise.ir.types import BOOL, F32, I32, ArrayType, Scalar, VarType
from gridwise.lang.errors import Loc


class E:
    """A value with operators. ``//`` and ``%`` are the language's; comparisons give bools; & | ^ are bitwise."""

    def __init__(self, kernel: K, value: Value):
        self.k, self.value = kernel, value

    def _two(self, code: str, other: E | int, swap: bool = False) -> E:
        o = self.k.lift(other, self.value.type)
        a, b = (o, self) if swap else (self, o)
        return E(self.k, self.k.b.binary(code, a.value, b.value))

    def __add__(self, o): return self._two("add", o)
    def __radd__(self, o): return self._two("add", o, True)
    def __sub__(self, o): return self._two("sub", o)
    def __rsub__(self, o): return self._two("sub", o, True)
    def __mul__(self, o): return self._two("mul", o)
    __rmul__ = __mul__
    def __floordiv__(self, o): return self._two("floordiv", o)
    def __mod__(self, o): return self._two("mod", o)
    def __and__(self, o): return self._two("and", o)
    def __or__(self, o): return self._two("or", o)
    def __xor__(self, o): return self._two("xor", o)
    def __lshift__(self, o): return self._two("shl", o)
    def __rshift__(self, o): return self._two("shr", o)
    def __lt__(self, o): return self._two("lt", o)
    def __le__(self, o): return self._two("le", o)
    def __gt__(self, o): return self._two("gt", o)
    def __ge__(self, o): return self._two("ge", o)
    def eq(self, o): return self._two("eq", o)


class Array:
    def __init__(self, kernel: K, value: Value):
        self.k, self.value = kernel, value

    def _indices(self, at) -> list[Value]:
        return [self.k.lift(i, I32).value for i in (at if isinstance(at, tuple) else (at,))]

    def __getitem__(self, at) -> E:
        self.k.line()
        return E(self.k, self.k.b.load(self.value, self._indices(at)))

    def __setitem__(self, at, value) -> None:
        self.k.line()
        v = self.k.lift(value, self.value.type.elem)
        self.k.b.store(self.value, self._indices(at), v.value)

    def add(self, at, value) -> E:
        self.k.line()
        v = self.k.lift(value, self.value.type.elem)
        return E(self.k, self.k.b.atomic("add", self.value, self._indices(at), [v.value]))

    def dim(self, axis: int = 0) -> E:
        return E(self.k, self.k.b.dim(self.value, axis))


class Var:
    """A variable slot: ``v.get`` and ``v.set(x)``."""

    def __init__(self, kernel: K, value: Value):
        self.k, self.value = kernel, value

    @property
    def get(self) -> E:
        return E(self.k, self.k.b.get(self.value))

    def set(self, x) -> None:
        assert isinstance(self.value.type, VarType)
        self.k.b.set(self.value, self.k.lift(x, self.value.type.elem).value)


class K:
    """A kernel being built. Every access is on a source line of its own, counted from 1."""

    def __init__(self, block=(256, 1, 1), domain: int = 1, name: str = "kernel"):
        self.region, self.params, self.block, self.domain, self.name = Region(), [], block, domain, name
        self.at = 0
        self.b = Builder(self.region, I32, Loc(f"<{name}>", 1))

    def line(self) -> None:
        self.at += 1
        self.b.loc = Loc(f"<{self.name}>", self.at)

    def lift(self, x, type) -> E:
        if isinstance(x, E):
            return x
        return E(self, self.b.const(float(x) if type.is_float else x, type))

    def array(self, name: str, access: str = "read", rank: int = 1, elem: Scalar = F32) -> Array:
        p = Param(name, Value(ArrayType(elem, rank, access=access), None, name))
        self.params.append(p)
        return Array(self, p.value)

    def scalar(self, name: str, type: Scalar = I32) -> E:
        p = Param(name, Value(type, None, name))
        self.params.append(p)
        return E(self, p.value)

    def shared(self, name: str, shape: tuple[int, ...], elem: Scalar = F32) -> Array:
        t = ArrayType(elem, len(shape), "shared", "disjoint", I32, shape)
        return Array(self, self.b.array(name, t))

    def var(self, name: str, start, type: Scalar = I32) -> Var:
        v = Var(self, self.b.var(name, type))
        v.set(start)
        return v

    def tid(self, axis: int = 0) -> E: return E(self, self.b.identity("thread_idx", axis))
    def bid(self, axis: int = 0) -> E: return E(self, self.b.identity("block_idx", axis))
    def gid(self, axis: int = 0) -> E: return E(self, self.b.identity("global_idx", axis))
    def gdim(self, axis: int = 0) -> E: return E(self, self.b.identity("grid_dim", axis))

    def barrier(self) -> None:
        self.line()
        self.b.emit("barrier")

    def do(self, code: str) -> None:
        self.b.emit(code)

    def assume(self, cond: E) -> None:
        self.b.emit("assume", (cond.value,))

    def both(self, a: E, b: E) -> E:
        return E(self, self.b.value("and", (a.value, b.value), BOOL))

    @contextmanager
    def if_(self, cond: E) -> Iterator[Op]:
        op = self.b.if_(cond.value)
        with self.b.into(op.regions[0]):
            yield op

    @contextmanager
    def else_(self, op: Op) -> Iterator[None]:
        with self.b.into(op.regions[1]):
            yield

    @contextmanager
    def for_(self, start, stop, step=1) -> Iterator[E]:
        op = self.b.for_(*(self.lift(x, I32).value for x in (start, stop, step)))
        with self.b.into(op.regions[0]):
            yield E(self, op.regions[0].args[0])

    @contextmanager
    def while_(self, cond) -> Iterator[None]:
        """``cond`` is a function that builds the condition."""
        op = self.b.while_()
        with self.b.into(op.regions[0]):
            self.b.emit("yield", (cond().value,))
        with self.b.into(op.regions[1]):
            yield

    def done(self) -> Kernel:
        return verify(Kernel(self.name, self.params, self.region, self.block, self.domain, I32, Loc("<kernel>", 1)))
