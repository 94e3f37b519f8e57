"""Compile a function and run it on the check device, which is the language's specification."""

from typing import TypeVar

import numpy as np
import pytest

import gridwise as gw
from gridwise.frontend import ArraySpec, ConstSpec, ScalarSpec, compile_kernel, memory_type, signature
from gridwise.ir import types as ir
from gridwise.lang.target import Cap


def run(kernel, *args, **launch):
    """Launch on the check device; NumPy arrays are copied in, and copied back into the same objects."""
    device = gw.device("check")
    staged = [device.array(a) if isinstance(a, np.ndarray) else a for a in args]
    try:
        kernel(*staged, **launch)
        device.synchronize()
    finally:
        for host, there in zip(args, staged, strict=True):
            if isinstance(host, np.ndarray) and host.flags.writeable:
                host[...] = there.numpy()


def compiled(fn, index=ir.I32, block=(64, 1, 1), domain=1, caps=frozenset(Cap), requires=None, **given):
    """One specialisation of a plain function: contiguous arrays; ``given`` holds constants and TypeVar elements."""
    fn = getattr(fn, "fn", fn)
    args = {}
    for p in signature(fn):
        if p.kind == "const":
            args[p.name] = ConstSpec(given[p.name])
        elif p.is_array:
            args[p.name] = ArraySpec(given.get(p.name, _element(p)), p.rank)
        else:
            args[p.name] = ScalarSpec(given.get(p.name, gw.i32 if isinstance(p.elem, TypeVar) else p.elem))
    return compile_kernel(
        fn, name=fn.__name__, args=args, block=block, domain=domain, index=index, caps=caps, requires=requires
    )


def _element(p):
    if isinstance(p.elem, TypeVar):
        return ir.I32
    return memory_type(p.elem)


def refused(fn, error, *phrases, marker="# HERE", **options):
    """The report of a refusal: the right exception, the marked line, at most six lines, every phrase in it."""
    import inspect

    with pytest.raises(error) as caught:
        compiled(fn, **options)
    text = str(caught.value)
    lines, first = inspect.getsourcelines(getattr(fn, "fn", fn))
    marked = [first + n for n, line in enumerate(lines) if marker in line]
    assert caught.value.loc is not None, text
    if marked:
        assert caught.value.loc.line in marked, text
    assert len(text.splitlines()) <= 6, text
    assert "^" in text, text
    for phrase in phrases:
        assert phrase in text, text
    return text
