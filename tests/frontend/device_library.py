"""Device functions in another file than the kernels that call them."""

from gridwise import f32, i32

LIMIT = 100.0


def clamp(x: f32, low: f32 = 0.0, high: f32 = LIMIT) -> f32:
    return low if x < low else high if x > high else x


def collatz(n: i32) -> i32:
    steps = 0
    while n != 1:
        n = n // 2 if n % 2 == 0 else 3 * n + 1
        steps += 1
    return steps


def broken(x: f32) -> f32:
    return x + undefined_name  # noqa: F821


def uses_broken(x: f32) -> f32:
    return broken(x) * 2
