"""Operations that take several statements: atomics, subgroup operations, and the records of ``print``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gridwise.ir import Op
from gridwise.ir.types import BF16, BOOL, F16, F32, F64, Scalar
from gridwise.lang.errors import UnsupportedError

from .memory import from_word, to_word
from .text import Expr, atom, call, infix, is_small, is_wide, literal, u32

if TYPE_CHECKING:
    from .emit import Emitter

# Of a print buffer; the layout is that of devices/printing.py, which decodes it.
PRINT_HEADER = 4
PRINT_CAPACITY = 1 << 18
PRINT_PREFIX = 5

_NATIVE = {
    "add": "atomicAdd",
    "sub": "atomicSub",
    "min": "atomicMin",
    "max": "atomicMax",
    "and": "atomicAnd",
    "or": "atomicOr",
    "xor": "atomicXor",
    "exchange": "atomicExchange",
}


def atomic(e: Emitter, op: Op, reference: str, word: str, values: list[Expr]) -> None:
    """One atomic; ``word``: the WGSL type of the memory. Floats and mixed signs go by compare-exchange."""
    fn, t = op.attrs["fn"], op.operands[-1].type
    assert op.result is not None and isinstance(t, Scalar)

    def cast_in(x: Expr) -> Expr:
        return to_word(x, t, word, e.numeric)

    def cast_out(x: Expr) -> Expr:
        return from_word(x, t, word, e.numeric)

    def line(text: str) -> None:
        e.body.line(text, op.loc)

    bits_only = fn in ("exchange", "and", "or", "xor") or (fn in ("add", "sub") and t.is_int)
    if t.size == 8 and not word.endswith("64"):
        raise UnsupportedError(
            f"{e.kernel.name}: atomic.{fn} on {t} in an array that shares its memory with another argument",
            op.loc,
            "pass arrays of their own, or use a 32-bit type",
        )
    same = t.is_int and word == f"{'i' if t.signed else 'u'}{t.bits}"
    if bits_only or (fn in _NATIVE and same):
        text = cast_out(call(_NATIVE[fn], f"&{reference}", cast_in(values[0])))
        if e.body.count.get(op.result, 0):
            e.body.let(op, text)
        else:
            line(f"{call(_NATIVE[fn], f'&{reference}', cast_in(values[0]))};")
        return
    old, got = e.body.names("old"), e.body.names("got")
    if fn == "compare_exchange":
        expected, desired = (_named(e, op, cast_in(v)) for v in values)
        line(f"var {old}: {word};")
        line("loop {")
        line(f"    let {got} = atomicCompareExchangeWeak(&{reference}, {expected}, {desired});")
        line(f"    {old} = {got}.old_value;")
        line(f"    if ({got}.exchanged || {old} != {expected}) {{ break; }}")
        line("}")
    else:
        value = _named(e, op, values[0])
        now = cast_out(atom(old))
        if fn in ("min", "max"):
            changed = e.numeric.call(f"gw_f{fn}_{t}", now, value) if t.is_float else call(fn, now, value)
        else:
            changed = infix("+" if fn == "add" else "-", now, value)
        line(f"var {old} = atomicLoad(&{reference});")
        line("loop {")
        line(f"    let {got} = atomicCompareExchangeWeak(&{reference}, {old}, {cast_in(changed)});")
        line(f"    if ({got}.exchanged) {{ break; }}")
        line(f"    {old} = {got}.old_value;")
        line("}")
    e.body.known[op.result] = cast_out(atom(old))


def _named(e: Emitter, op: Op, text: Expr) -> Expr:
    """A value that is written more than once, under a name."""
    if text.atom and "(" not in text:
        return text
    name = e.body.names("value")
    e.body.line(f"let {name} = {text};", op.loc)
    return atom(name)


_REDUCE = {
    "reduce_add": "subgroupAdd",
    "reduce_mul": "subgroupMul",
    "reduce_min": "subgroupMin",
    "reduce_max": "subgroupMax",
    "reduce_and": "subgroupAnd",
    "reduce_or": "subgroupOr",
    "reduce_xor": "subgroupXor",
    "scan_add": "subgroupInclusiveAdd",
    "scan_exclusive_add": "subgroupExclusiveAdd",
}


def subgroup(e: Emitter, op: Op, args: list[Expr]) -> None:
    """One subgroup operation, given a name at once: it must run where it stands."""
    fn = op.attrs["fn"]
    assert op.result is not None and isinstance(op.result.type, Scalar)
    t = op.result.type
    if fn in ("size", "lane"):
        text = atom(e.size_builtin if fn == "size" else e.lane_builtin)
        e.body.let(op, e.numeric.cast(text, Scalar("u32", "uint", 32), t))
        return
    if fn in ("any", "all"):
        e.body.let(op, call("subgroupAny" if fn == "any" else "subgroupAll", args[0]))
        return
    if fn == "ballot":
        votes = call("subgroupBallot", args[0])
        e.body.let(op, atom(f"{votes}.xy") if is_wide(t) else e.numeric.cast(atom(f"{votes}.x"), _U32, t))
        return
    if fn.startswith("shuffle") or fn == "broadcast":
        lane_type = op.operands[1].type
        assert isinstance(lane_type, Scalar)
        _shuffle(e, op, args[0], e.numeric.cast(args[1], lane_type, _U32), t)
        return
    if t.bits == 64 or t == BOOL:
        raise UnsupportedError(
            f"{e.kernel.name}: subgroup.{fn} on {t} is not available on WebGPU",
            op.loc,
            "use a 32-bit type, or a reduction through shared memory",
        )
    e.body.let(op, _reduction(e, op, fn, args[0], t))


_U32 = Scalar("u32", "uint", 32)


def _reduction(e: Emitter, op: Op, fn: str, x: Expr, t: Scalar) -> Expr:
    n = e.numeric
    if t.is_float and fn in ("reduce_min", "reduce_max"):  # by order of bits; NaN if any lane has one
        ordered = call(_REDUCE[fn], n.call("gw_order_f32", _named(e, op, x)))
        found = n.call("gw_order_f32", call("bitcast<f32>", ordered))
        nan = call("subgroupAny", n.call("gw_isnan_f32", x))
        return call("select", call("bitcast<f32>", found), literal(float("nan"), F32), nan)
    out = call(_REDUCE[fn], x)
    if t in (F16, BF16):
        return n.round(out, t, "add")
    return n.wrap(out, t) if is_small(t) else out


def _shuffle(e: Emitter, op: Op, x: Expr, lane: Expr, t: Scalar) -> None:
    """A value of another lane; from outside the subgroup a lane's own."""
    fn, own, size = op.attrs["fn"], e.lane_builtin, e.size_builtin
    by = _named(e, op, lane)
    source = {
        "shuffle": by,
        "broadcast": by,
        "shuffle_xor": infix("^", atom(own), by),
        "shuffle_up": infix("-", atom(own), by),  # wraps below 0, and is then outside
        "shuffle_down": infix("+", atom(own), by),
    }[fn]
    name = e.body.names("lane")
    e.body.line(f"let {name} = select({own}, {source}, ({source}) < {size});", op.loc)
    if t == BOOL:
        e.body.let(op, infix("!=", call("subgroupShuffle", call("select", "0u", "1u", x), name), u32(0)))
    elif t == F64:
        bits = call("subgroupShuffle", e.numeric.call("gw_bits_f64", x), name)
        e.body.let(op, e.numeric.call("gw_f64", bits))
    else:
        e.body.let(op, call("subgroupShuffle", x, name))


def print_record(e: Emitter, op: Op, number: int) -> None:
    """Append one record to the print buffer (format: devices/printing.py)."""
    words: list[str] = []
    for v in op.operands:
        t = v.type
        assert isinstance(t, Scalar)
        text = e.text(v)
        if t.bits == 64:
            pair = _named(e, op, e.numeric.call("gw_bits_f64", text) if t == F64 else text)
            words += [f"{pair}.x", f"{pair}.y"]
        else:
            words.append(e.numeric.to_bits(text, t))
    at = e.body.names("record")
    length = PRINT_PREFIX + len(words)
    record = [f"{length}u", "args.print_tag", "args.print_serial", f"{number}u", "gw_thread", *words]

    def line(text: str) -> None:
        e.body.line(text, op.loc)

    line(f"let {at} = atomicAdd(&prints[0], {length}u);")
    line(f"if ({at} <= {PRINT_CAPACITY - length}u) {{")
    for n, word in enumerate(record):
        line(f"    atomicStore(&prints[{at} + {PRINT_HEADER + n}u], {word});")
    line("} else {")
    line("    atomicAdd(&prints[1], 1u);")
    line("}")
