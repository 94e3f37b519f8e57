"""sin, cos, tan for every finite argument, and their half-turn forms."""

from __future__ import annotations

from .constants import PI, cut_at, parts, rounded, two_over_pi
from .expr import E, Format, Variable, branch, poly

Angle = tuple[E, E, E]  # quadrant (a signed integer, its low two bits count), and r = high + low, |r| <= pi/4


def reduce(x: E) -> Angle:
    """x = quadrant * pi/2 + r.

    Up to LIMIT quarter turns by Cody and Waite (1980): pi/2 in four parts, the first three so short that their
    products with the quadrant are exact, fused or not. Beyond, and seldom, by Payne and Hanek (1983).
    """
    f = x.fmt
    limit_bits = int(f.pick(11, 20))
    # The first two differences are exact: multiples of 2**-(mantissa + 1), and below 1 at the end.
    first_cut = f.mantissa - limit_bits
    p1, p2, p3, p4 = cut_at(PI / 2, f, first_cut, f.mantissa + 1, 2 * f.mantissa + 1 - limit_bits)
    n = (x * rounded(2 / PI, f)).rint()
    r = (x - n * p1) - n * p2
    high = r - n * p3
    low = ((r - high) - n * p3) - n * p4
    large = abs(x) > float(2**limit_bits)
    quadrant = Variable("quadrant", n.to(f.sint))
    first, second = Variable("angle", high), Variable("angle_low", low)
    with branch(large & x.finite(), x.b):
        q, a, b = _payne_hanek(x)
        quadrant.set(q)
        first.set(a)
        second.set(b)
    unbounded = ~x.finite()
    return quadrant.get(), first.get().replace(unbounded, x.nan()), second.get()


def _window(words: list[E], index: E) -> list[E]:
    """Four consecutive words from ``index``, by halving the choice bit by bit."""
    for bit in (16, 8, 4, 2, 1):
        if bit < len(words) - 3:
            chosen = (index & bit).ne(0)
            needed = 4 + bit - 1
            words = [
                words[i + bit].where(chosen, words[i]) if i + bit < len(words) else words[i]
                for i in range(min(needed, len(words)))
            ]
    return words[:4]


def _high_product(m: E, a: E, f: Format) -> E:
    """The high word of m * a, where m has mantissa + 1 bits, from products that fit a word."""
    half = f.bits // 2
    cut = (f.mantissa + 1) // 2 if f.bits == 32 else half
    mask, cut_mask = (1 << half) - 1, (1 << cut) - 1
    m1, m0, a1, a0 = m >> cut, m & cut_mask, a >> half, a & mask
    if f.bits == 32:  # cut 12: every partial sum stays below 2**32
        t = ((m0 * a0) >> cut) + m1 * a0
        t = (t >> (half - cut)) + m0 * a1
        return ((t >> cut) + m1 * a1) >> (f.bits - half - cut)
    low, mid = m0 * a0, m1 * a0
    other = m0 * a1
    carry = ((low >> half) + (mid & mask) + (other & mask)) >> half
    return m1 * a1 + (mid >> half) + (other >> half) + carry


def _payne_hanek(x: E) -> Angle:
    """x * 2/pi modulo 4 in integers: the mantissa times the three words of 2/pi that matter.

    The bits of 2/pi of weight above 4 / ulp(x) contribute whole turns; 96 bits (f32) or 192 (f64) from there
    leave the fraction with more than twice the precision, and no float comes closer than 2**-32 (2**-62) of a
    quarter turn to a multiple of it.
    """
    f = x.fmt
    w = f.bits
    shift = {32: 5, 64: 6}[w]
    magnitude = x.magnitude()
    m = (magnitude & ((1 << f.mantissa) - 1)) | (1 << f.mantissa)
    start = (magnitude >> f.mantissa) + (w - 2 - f.mantissa - f.bias)  # with one word of zeros in front
    last = (2 * f.bias + w - 2 - f.mantissa - f.bias) >> shift
    table = [0, *two_over_pi(w, last + 3)]
    window = _window([magnitude.const(v) for v in table], start >> shift)
    offset = start & (w - 1)
    a0, a1, a2 = (
        (window[i] << offset) | ((window[i + 1] >> 1) >> ((w - 1) - offset)) for i in range(3)
    )
    low1 = m * a1
    low = low1 + _high_product(m, a2, f)
    carry = magnitude.const(1).where(low < low1, 0)
    high = m * a0 + _high_product(m, a1, f) + carry
    # high:low counts quarter turns, with two integer bits on top. Round to the nearest; keep a signed rest.
    quadrant = (high + (1 << (w - 3))) >> (w - 2)
    rest = high - (quadrant << (w - 2))
    flipped = rest.as_(f.sint) >> (w - 1)
    sign_mask = flipped.as_(f.uint)
    rest, low = rest ^ sign_mask, low ^ sign_mask
    # rest:low as three floats, each exact or nearly so.
    k = w // 2 - 4  # rest < 2**(w-3): its part above bit k is exact in a float
    mask = (1 << k) - 1
    top = (rest >> k).to(f.type) * 2.0 ** (k - (w - 2))
    middle = (((rest & mask) << (w - k)) | (low >> k)).to(f.type) * 2.0 ** (k - 2 * w + 2)
    bottom = (low & mask).to(f.type) * 2.0 ** -(2 * w - 2)
    value = top + (middle + bottom)
    v_high = value.high()
    v_low = (top - v_high) + (middle + bottom)
    p_high, p_low = parts(PI / 2, f, f.mantissa + 1 - f.half)
    head = v_high * p_high
    tail = v_high * p_low + v_low * rounded(PI / 2, f)
    high_part = (head + tail).high()
    low_part = tail - (high_part - head)
    negative = (flipped < 0).ne(x.negative())
    q = quadrant.as_(f.sint)
    q = (-q).where(x.negative(), q)
    total = high_part + low_part
    rest_part = (high_part - total.high()) + (low_part - (total - total.high()))
    return q, (-total).where(negative, total), (-rest_part).where(negative, rest_part)


def _sine(r: E, low: E) -> E:
    z = r * r
    return r + (r * z * poly("SIN", z) + low)


def _cosine(r: E, low: E) -> E:
    z = r * r
    return 1 - (z * 0.5 - (z * z * poly("COS", z) - r * low))


def _signed(value: E, quadrant: E, bit: int) -> E:
    return (-value).where((quadrant & bit).ne(0), value)


def sin_of(x: E, angle: Angle) -> E:
    q, r, low = angle
    return keep_zero(x, _signed(_cosine(r, low).where((q & 1).ne(0), _sine(r, low)), q, 2))


def cos_of(x: E, angle: Angle) -> E:
    q, r, low = angle
    return _signed(_sine(r, low).where((q & 1).ne(0), _cosine(r, low)), q + 1, 2)


def tan_of(x: E, angle: Angle) -> E:
    q, r, low = angle
    s, c = _sine(r, low), _cosine(r, low)
    odd = (q & 1).ne(0)
    return keep_zero(x, (-c).where(odd, s) / s.where(odd, c))


def keep_zero(x: E, result: E) -> E:
    """Odd functions of a zero give that zero, with its sign."""
    return result.replace(x.eq(0), x)


def _half_turns(x: E) -> tuple[E, E]:
    """x = quadrant / 2 + r exactly, |r| <= 1/4. Values of 2**mantissa and more are integers: beyond, even ones."""
    f = x.fmt
    large = abs(x) >= float(2 ** (f.mantissa + 1))
    x = x.replace(large & x.finite(), 0.0)
    n = (x * 2.0).rint()
    # n can exceed the integer's range only where x was infinite, and there r is NaN.
    return n.to(f.sint), x - n * 0.5


def _sine_pi(r: E) -> E:
    """pi r + r**3 P: pi times the high half of r is split so that its leading product is exact."""
    f = r.fmt
    p_high, p_low = parts(PI, f, f.mantissa + 1 - f.half)
    z = r * r
    r_high = r.high()
    value = r_high * p_high + ((r - r_high) * rounded(PI, f) + r_high * p_low + r * z * poly("SINPI", z))
    # Where r - r_high could be subnormal, and be flushed to zero, the plain product.
    return value.replace(abs(r) < 2.0 ** (f.mantissa + 3 - f.bias), r * rounded(PI, f))


def _cosine_pi(r: E) -> E:
    z = r * r
    return z * poly("COSPI", z) + 1


def sinpi(x: E) -> E:
    q, r = _half_turns(x)
    value = _signed(_cosine_pi(r).where((q & 1).ne(0), _sine_pi(r)), q, 2)
    return value.replace(value.eq(0), value.copysign(x))  # a zero takes the sign of x


def cospi(x: E) -> E:
    q, r = _half_turns(x)
    value = _signed(_sine_pi(r).where((q & 1).ne(0), _cosine_pi(r)), q + 1, 2)
    return value.replace(value.eq(0), 0.0)
