"""The passes, in order.

``analyse`` is the same for every target: it refuses what the language refuses and settles every check.
``lower`` turns the result into what a target's emitter takes.
"""

from __future__ import annotations

from gridwise.analysis.bounds import Check, settle_bounds
from gridwise.analysis.disjoint import check_disjoint
from gridwise.analysis.loops import summarise
from gridwise.analysis.uniformity import check_uniformity
from gridwise.ir import Kernel, verify
from gridwise.ir.rewrite import clone

from .cse import cse
from .hoist_checks import hoist_checks
from .lower_checks import lower_checks
from .simplify import simplify

GPU_TARGETS = ("ptx", "wgsl")


def analyse(kernel: Kernel, checks: list[Check] | None = None) -> Kernel:
    """Prove it safe or refuse it. Raises DivergenceError, RaceError, UnprovedError.

    ``checks`` gains a row for each access: how it was settled.
    """
    verify(kernel)
    simplify(kernel)
    cse(kernel)
    uniform = check_uniformity(kernel)  # barriers and subgroup operations only where all threads arrive
    summary = summarise(kernel, uniform)  # every access, symbolically
    check_disjoint(kernel, summary=summary)  # no element touched by two threads between barriers
    found = settle_bounds(kernel, summary=summary)  # every access: proved, settled at launch, or checked
    if checks is not None:
        checks += found
    return verify(kernel)


def lower(kernel: Kernel, target: str, *, trust_launch: bool = True, vector: bool = True) -> Kernel:
    """A copy of an analysed kernel, ready for ``target``'s emitter.

    ``trust_launch``: ``kernel.conditions`` hold for the launches it will see. ``vector``: its arrays are
    aligned to 16 bytes, so that a thread may handle several elements at once.
    """
    k = clone(kernel)
    k.aligned = vector
    if any(op.code in ("math", "mod", "floordiv") for op in k.walk()):
        from .expand_math import expand_math  # loaded by the kernels that need it

        expand_math(k)  # transcendental functions to arithmetic: the same on every target
    if vector and target in GPU_TARGETS:
        from .vectorise import vectorise

        vectorise(k, trust_launch)  # four elements a thread where the kernel allows it
    hoist_checks(k, alike=target == "cpu")  # a test before a loop for those inside it
    lower_checks(k, trust_launch)  # faults become explicit; what is left cannot fail
    simplify(k)
    cse(k)
    return verify(k)
