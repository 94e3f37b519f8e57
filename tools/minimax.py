"""Computes the polynomials of ``src/gridwise/passes/math/coefficients.py`` in mpmath (Lawson's iteration).

    python tools/minimax.py > src/gridwise/passes/math/coefficients.py

Each entry approximates g(x) on [a, b] by a polynomial in x so that max |weight(x) * (poly - g)| is least; the
weight is chosen so that this is the relative error of the function built on it. Coefficients are rounded to
the type one after another, the rest fitted again each time, so that rounding costs little. Where the variable
is a square, ``g`` is given as a function of the square.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from mpmath import (
    asin,
    atan,
    atanh,
    cos,
    erf,
    erfc,
    exp,
    expm1,
    gamma,
    log,
    loggamma,
    lu_solve,
    matrix,
    mp,
    mpf,
    pi,
    sin,
    sinh,
    sqrt,
)

mp.dps = 80
Fn = Callable[[mpf], mpf]


@dataclass
class Fit:
    """One polynomial: ``degrees`` are the numbers of coefficients for f32 and f64 (0 for none)."""

    name: str
    g: Fn
    a: mpf
    b: mpf
    degrees: tuple[int, int]
    weight: Fn = lambda x: mpf(1)


def solve(g: Fn, powers: list[int], weight: Fn, grid: list[mpf], lawson: list[mpf]) -> list[mpf]:
    """Weighted least squares on the grid; ``lawson`` holds the extra weights that lead to the minimax fit."""
    n, scale = len(powers), max(abs(grid[0]), abs(grid[-1]))
    normal, right = matrix(n, n), matrix(n, 1)
    for x, extra in zip(grid, lawson):
        w = weight(x) ** 2 * extra
        row = [(x / scale) ** p for p in powers]
        target = g(x) * w
        for i in range(n):
            right[i] += row[i] * target
            for j in range(i, n):
                normal[i, j] += row[i] * row[j] * w
    for i in range(n):
        for j in range(i):
            normal[i, j] = normal[j, i]
    solved = lu_solve(normal, right)
    return [c / scale**p for c, p in zip(solved, powers)]


def fit(f: Fit, count: int, dtype: type) -> tuple[list[float], float]:
    """``count`` coefficients, lowest power first, each exactly a ``dtype``; and the largest weighted error."""
    a, b = mpf(f.a), mpf(f.b)
    points = 12 * count
    grid = [(a + b) / 2 - (b - a) / 2 * cos(pi * (k + mpf(1) / 2) / points) for k in range(points)]
    values = {x: f.g(x) for x in grid}
    weights = {x: f.weight(x) for x in grid}

    def errors(c: list[mpf], powers: list[int]) -> list[mpf]:
        return [abs(sum(k * x**p for k, p in zip(c, powers)) - values[x]) * weights[x] for x in grid]

    lawson = [mpf(1)] * points
    for _ in range(10):  # Lawson's iteration: more weight where the error is large
        e = errors(solve(values.__getitem__, list(range(count)), weights.__getitem__, grid, lawson), list(range(count)))
        lawson = [w * x for w, x in zip(lawson, e)]
        total = sum(lawson)
        lawson = [w / total + mpf(10) ** -6 for w in lawson]
    fixed: list[float] = []
    for j in range(count):
        rest = lambda x: values[x] - sum(mpf(c) * x**p for p, c in enumerate(fixed))  # noqa: E731
        first = solve(rest, list(range(j, count)), weights.__getitem__, grid, lawson)[0]
        fixed.append(float(dtype(float(first))))
    return fixed, float(max(errors(list(map(mpf, fixed)), list(range(count)))))


def erfcx_scaled(shift: int) -> Fn:
    """(1 + 2a) exp(a*a) erfc(a) as a function of q = (a - shift) / (a + shift)."""

    def g(q: mpf) -> mpf:
        if 1 - q < mpf(10) ** -20:
            return 2 / sqrt(pi)
        a = shift * (1 + q) / (1 - q)
        if a > 1000:  # asymptotic series, since erfc underflows
            t = 1 / (2 * a * a)
            return (1 + 2 * a) / (a * sqrt(pi)) * (1 - t + 3 * t**2 - 15 * t**3 + 105 * t**4)
        return (1 + 2 * a) * exp(a * a) * erfc(a)

    return g


LN2 = log(2)
HALF = LN2 / 2 * mpf("1.01")
Q = (pi / 4 * mpf("1.01")) ** 2


def root(x: mpf) -> mpf:
    return sqrt(x)


FITS = [
    # e**r = 1 + r + r*r * EXP(r)
    Fit("EXP", lambda r: (expm1(r) - r) / r**2, -HALF, HALF, (5, 11), lambda r: abs(r)),
    # 2**r = 1 + r * EXP2(r);  10**r = 1 + r * EXP10(r)
    Fit("EXP2", lambda r: expm1(r * LN2) / r, -mpf("0.505"), mpf("0.505"), (6, 11), lambda r: abs(r)),
    Fit("EXP10", lambda r: expm1(r * log(10)) / r, -mpf("0.152"), mpf("0.152"), (6, 11), lambda r: abs(r)),
    # log(1 + f) = f - f*f/2 + f**3 * LOG(f)
    Fit("LOG", lambda f: (mp.log1p(f) - f + f * f / 2) / f**3, mpf(-1) / 3, mpf(1) / 3, (8, 0), lambda f: f * f),
    # log(1 + f) = 2 atanh(s) = 2 s + s**3 * ATANH(s*s), s = f / (2 + f)
    Fit("ATANH", lambda z: 2 * (atanh(root(z)) - root(z)) / (z * root(z)), 0, mpf("0.0295"), (4, 8), lambda z: z),
    # the same with |s| <= 0.1011, for pow: log(1 + f) = 2 s + 2/3 (s**3 + s**5 * POWLOG(s*s))
    Fit("POWLOG", lambda z: 3 * (atanh(root(z)) - root(z) - z * root(z) / 3) / (z**2 * root(z)), 0, mpf("0.01023"),
        (3, 6), lambda z: z**2),
    # sin r = r + r**3 * SIN(r*r);  cos r = 1 - r*r/2 + r**4 * COS(r*r)
    Fit("SIN", lambda z: (sin(root(z)) - root(z)) / (z * root(z)), 0, Q, (3, 6), lambda z: z),
    Fit("COS", lambda z: (cos(root(z)) - 1 + z / 2) / z**2, 0, Q, (3, 6), lambda z: z * z),
    # sin(pi r) = pi r + r**3 * SINPI(r*r);  cos(pi r) = 1 + r*r * COSPI(r*r), |r| <= 1/4
    Fit("SINPI", lambda z: (sin(pi * root(z)) - pi * root(z)) / (z * root(z)), 0, mpf(1) / 16, (4, 7), lambda z: z),
    Fit("COSPI", lambda z: (cos(pi * root(z)) - 1) / z, 0, mpf(1) / 16, (4, 7), lambda z: z),
    # asin x = x + x**3 * ASIN(x*x), |x| <= 1/2
    Fit("ASIN", lambda z: (asin(root(z)) - root(z)) / (z * root(z)), 0, mpf("0.25"), (5, 13), lambda z: z),
    # atan t = t + t**3 * ATAN(t*t), |t| <= 1/2
    Fit("ATAN", lambda z: (atan(root(z)) - root(z)) / (z * root(z)), 0, mpf("0.25"), (6, 14), lambda z: z),
    # sinh x = x + x**3 * SINH(x*x), |x| <= 1;  tanh x = x + x**3 * TANH(x*x), |x| <= 0.55
    Fit("SINH", lambda z: (sinh(root(z)) - root(z)) / (z * root(z)), 0, 1, (4, 7), lambda z: z),
    Fit("TANH", lambda z: (mp.tanh(root(z)) - root(z)) / (z * root(z)), 0, mpf("0.3025"), (5, 11), lambda z: z),
    # erf x = x + x * ERF(x*x), |x| <= 1;  erfc a = exp(-a*a) / (1 + 2a) * ERFC((a - k) / (a + k)), k = 2 (f32), 4 (f64)
    Fit("ERF", lambda z: erf(root(z)) / root(z) - 1, 0, 1, (8, 13)),
    Fit("ERFC", erfcx_scaled(2), -1, mpf("0.70"), (13, 0)),
    Fit("ERFC64", erfcx_scaled(4), -1, mpf("0.76"), (0, 24)),
    # gamma(2 + t), log(gamma(2 + t)) = t * LGAMMA(t), |t| <= 1/2
    Fit("GAMMA", lambda t: gamma(2 + t), -mpf("0.5"), mpf("0.5"), (11, 20)),
    Fit("LGAMMA", lambda t: loggamma(2 + t) / t, -mpf("0.5"), mpf("0.5"), (12, 22)),
    # log(gamma(x)) = (x - 1/2) log x - x + log(2 pi) / 2 + STIRLING(1/x**2) / x, x >= 8
    Fit("STIRLING", lambda w: (loggamma(1 / root(w)) - (1 / root(w) - mpf("0.5")) * log(1 / root(w)) + 1 / root(w)
        - log(2 * pi) / 2) / root(w), 0, mpf(1) / 64, (3, 7)),
    # cube root of m in [1, 8), a starting value
    Fit("CBRT", lambda m: mp.cbrt(m), 1, 8, (8, 5), lambda m: 1 / mp.cbrt(m)),
]

HEADER = '''"""Minimax polynomials, made by ``tools/minimax.py`` (which states what each approximates, and where).

``TABLE[name][bits]`` lists coefficients, lowest power first. The comment gives the largest weighted error.
"""

# ruff: noqa: E501
from __future__ import annotations

TABLE: dict[str, dict[int, tuple[float, ...]]] = {'''


def main(names: list[str]) -> None:
    print(HEADER)
    for f in FITS:
        if names and f.name not in names:
            continue
        print(f'    "{f.name}": {{')
        for bits, count, dtype in ((32, f.degrees[0], np.float32), (64, f.degrees[1], np.float64)):
            if count:
                coefficients, error = fit(f, count, dtype)
                shown = ", ".join(str(dtype(c)) if bits == 32 else repr(c) for c in coefficients)
                print(f"        {bits}: ({shown}),  # {error:.2e} = 2**{np.log2(error):.1f}", flush=True)
        print("    },")
    print("}")


if __name__ == "__main__":
    main(sys.argv[1:])
