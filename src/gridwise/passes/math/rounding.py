"""Remainders in exact integer arithmetic, Python's float // and %, powers of two, neighbours, signs."""

from __future__ import annotations

from gridwise.ir import Builder
from gridwise.ir.types import I32

from .expr import E, Format, Variable


def _integer_parts(a: E) -> tuple[E, E]:
    """(m, e) with abs(a) = m * 2**e * smallest / 2, subnormals included: e >= 1."""
    f = a.fmt
    bits = a.magnitude()
    field = bits >> f.mantissa
    m = (bits & ((1 << f.mantissa) - 1)) | field.const(1 << f.mantissa).where(field.ne(0), 0)
    return m, field.replace(field.eq(0), 1)


def _from_parts(m: E, e: E, f: Format) -> E:
    """The float m * 2**e * smallest / 2 for an m that fits a mantissa."""
    shift = m.clz() - (f.bits - f.mantissa - 1)
    shift = shift.replace(shift > e - 1, e - 1)
    bits = ((e - shift - 1) << f.mantissa) + (m << shift)
    return bits.replace(m.eq(0), 0).as_(f.type)


def _modulo(m: E, gap: E, modulus: E, f: Format, b: Builder) -> E:
    """(m << gap) % modulus, as many bits a step as a word has room for."""
    room = f.bits - f.mantissa - 2
    rest, left = Variable("rest", m % modulus), Variable("left", gap)
    steps = (gap.to(I32) + (room - 1)).to(I32)
    trips = _divide_small(steps, room)
    loop = b.for_(steps.const(0).v, trips.v, steps.const(1).v, "step")
    with b.into(loop.regions[0]):
        take = left.get()
        take = take.replace(take > room, room)
        left.set(left.get() - take)
        rest.set((rest.get() << take) % modulus)
    return rest.get()


def _divide_small(n: E, by: int) -> E:
    """n // by for 0 <= n < 4096 by multiplication with 2**20 / by, rounded up."""
    return (n * ((1 << 20) // by + 1)) >> 20


def _invalid(x: E, y: E) -> E:
    return ~x.finite() | y.isnan() | y.eq(0)


def fmod(x: E, y: E) -> E:
    """x = mx * 2**ex, y = my * 2**ey: the remainder is (mx << (ex - ey)) % my, exactly."""
    f = x.fmt
    a, c = abs(x), abs(y)
    (mx, ex), (my, ey) = _integer_parts(a), _integer_parts(c)
    active = ~_invalid(x, y) & (a >= c)
    my = my.where(active, 1)
    rest = _modulo(mx, (ex - ey).where(active, 0), my, f, x.b)
    value = _from_parts(rest, ey, f).where(active, a).copysign(x)
    return value.replace(_invalid(x, y), x.nan())


def remainder(x: E, y: E) -> E:
    """As fmod by 2 * my, which keeps the last bit of the quotient for the choice of the even one."""
    f = x.fmt
    a, c = abs(x), abs(y)
    (mx, ex), (my, ey) = _integer_parts(a), _integer_parts(c)
    active = ~_invalid(x, y) & c.finite() & (ex >= ey)
    my = my.where(active, 1)
    rest = _modulo(mx, (ex - ey).where(active, 0), my << 1, f, x.b)
    odd = rest >= my
    rest = rest - my.where(odd, 0)
    twice = rest << 1
    over = (twice > my) | (twice.eq(my) & odd)
    magnitude = _from_parts((my - rest).where(over, rest), ey, f)
    value = (-magnitude).where(over, magnitude)
    near = (a - c).where((c - a) < a, a)  # abs(x) below abs(y): exact by Sterbenz's lemma
    value = value.where(active, near)
    value = (-value).where(x.negative(), value)
    value = value.replace(y.isinf(), x)
    return value.replace(_invalid(x, y), x.nan())


def _lifted_fmod(x: E, y: E) -> tuple[E, E, E]:
    """fmod(x, y) * up, up and 1 / up: up is a power of two above 1 where y is so small that sums with the remainder
    could be subnormal, which some targets flush to zero."""
    f = x.fmt
    a, c = abs(x), abs(y)
    (mx, ex), (my, ey) = _integer_parts(a), _integer_parts(c)
    active = ~_invalid(x, y) & (a >= c)
    my = my.where(active, 1)
    rest = _modulo(mx, (ex - ey).where(active, 0), my, f, x.b)
    small, lift = ey < 3 * f.mantissa, 2 * f.mantissa
    up, down = x.const(2.0**lift).where(small, 1.0), x.const(2.0**-lift).where(small, 1.0)
    value = _from_parts(rest, ey + ey.const(lift).where(small, 0), f).where(active, a * up).copysign(x)
    return value.replace(_invalid(x, y), x.nan()), up, down


def python_mod(x: E, y: E) -> E:
    """Python's %, as CPython's float_rem: the sign of the divisor."""
    r, up, down = _lifted_fmod(x, y)
    moved = r.replace((y < 0).ne(r < 0), r + y * up)
    return moved.replace(r.eq(0), r.const(0.0).copysign(y)) * down


def python_floordiv(x: E, y: E) -> E:
    """Python's //, as CPython's _float_div_mod; x // 0.0 is x / 0.0."""
    r, up, _ = _lifted_fmod(x, y)
    q = (x * up - r) / (y * up)
    q = q - q.const(1.0).where(r.ne(0) & (y < 0).ne(r < 0), 0.0)
    whole = q.floor()
    whole = whole + whole.const(1.0).where(q - whole > 0.5, 0.0)
    whole = whole.replace(q.eq(0), q.const(0.0).copysign(x / y))
    return whole.replace(y.eq(0), x / y)


def ldexp(x: E, n: E) -> E:
    """x * 2**n in up to three steps that leave at most one rounding (musl's scalbn)."""
    f = x.fmt
    low, high = 1 - f.bias, f.bias
    step = low + f.mantissa + 1  # not all the way down, so that the intermediate value is not subnormal
    for _ in range(2):
        down, up = n < low, n > high
        x = x * x.const(2.0**step).where(down, x.const(2.0**high).where(up, 1.0))
        n = n - n.const(step).where(down, n.const(high).where(up, 0))
    n = n.replace(n < low, low).replace(n > high, high)
    return x * ((n + f.bias).to(f.sint) << f.mantissa).as_(f.type)


def nextafter(x: E, y: E) -> E:
    f = x.fmt
    bits = x.bits()
    away = (y > x).eq(x > 0)
    stepped = (bits + 1).where(away, bits - 1)
    smallest = (y.bits() & f.sign) | 1
    value = smallest.where(x.eq(0), stepped).as_(f.type).replace(x.eq(y), y)
    return value.replace(x.isnan(), x).replace(y.isnan(), y)


def round_away(x: E) -> E:
    t = x.trunc()
    return t + x.const(1.0).where(abs(x - t) >= 0.5, 0.0).copysign(x)


def fract(x: E) -> E:
    return (x - x.floor()).replace(x.isinf(), 0.0)


def sign(x: E) -> E:
    if x.type.kind == "uint":
        return x.const(1).where(x.ne(0), 0)
    return x.const(1).where(x > 0, x.const(-1).where(x < 0, x))


def signbit(x: E) -> E:
    return x.negative()


def clamp(x: E, low: E, high: E) -> E:
    top = E(x.b, x.b.binary("max", x.v, low.v))
    return E(x.b, x.b.binary("min", top.v, high.v))


def lerp(a: E, c: E, t: E) -> E:
    return (1 - t) * a + t * c


def step(edge: E, x: E) -> E:
    return x.const(1.0).where(x >= edge, 0.0).replace(x.isnan(), x).replace(edge.isnan(), edge)


def smoothstep(low: E, high: E, x: E) -> E:
    t = clamp((x - low) / (high - low), x.const(0.0), x.const(1.0))
    return t * t * (3 - t * 2.0)
