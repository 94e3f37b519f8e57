"""What the language does not have is refused by name, at its line, with what to write instead (rule 8)."""

import inspect
import textwrap

import numpy as np
import pytest
from lowering import compiled, refused

import gridwise as gw
from gridwise import AtomicSlice, DisjointSlice, Slice, f32, i32, thread
from gridwise.frontend import calls, signature

LIMITS = {"a": 1}
TABLE = np.zeros(3)
SETTINGS = [1, 2, 3]

# Each body goes into `def kernel(a: Slice[f32], c: DisjointSlice[f32], n: i32): i = thread.index_1d()`;
# the line with HERE is the one to be named.
BODIES = {
    "try": ("try:  # HERE\n    c[i] = 1.0\nexcept ValueError:\n    pass", "try/except"),
    "raise": ("raise ValueError('x')  # HERE", "assert"),
    "list comprehension": ("x = [k for k in range(3)]  # HERE", "list comprehension"),
    "set comprehension": ("x = {k for k in range(3)}  # HERE", "set comprehension"),
    "dict comprehension": ("x = {k: k for k in range(3)}  # HERE", "dict comprehension"),
    "generator": ("x = (k for k in range(3))  # HERE", "generator expression"),
    "list": ("x = [1, 2]  # HERE", "gw.local"),
    "dict": ("x = {'a': 1}  # HERE", "struct"),
    "set": ("x = {1, 2}  # HERE", "tuple"),
    "import": ("import math  # HERE", "top of the file"),
    "import from": ("from math import pi  # HERE", "top of the file"),
    "class": ("class A:  # HERE\n    pass", "gw.struct"),
    "global": ("global LIMITS  # HERE", "global"),
    "del": ("x = 1\ndel x  # HERE", "del"),
    "yield": ("yield 1  # HERE", "yield"),
    "await": ("async def f():  # HERE\n    pass", "async"),
    "with": ("with open('f'):  # HERE\n    pass", "gw.unsafe"),
    "starred": ("x, *y = (1, 2, 3)  # HERE", "star-unpacking"),
    "star call": ("x = max(*(1, 2))  # HERE", "star-unpacking"),
    "double star call": ("x = int(**LIMITS)  # HERE", "int has no parameter"),
    "string": ("x = 'text'  # HERE", "string"),
    "f-string": ("x = f'{n}'  # HERE", "print"),
    "bytes": ("x = b'text'  # HERE", "bytes literal"),
    "complex": ("x = 1j  # HERE", "complex literal"),
    "ellipsis": ("x = c[...]  # HERE", "every index"),
    "slice": ("x = a[1:2]  # HERE", "range(start, stop)"),
    "matrix product": ("x = a @ a  # HERE", "the @ operator"),
    "is None": ("if n is None:  # HERE\n    pass", "Option"),
    "is": ("if n is i:  # HERE\n    pass", "n == i"),
    "lambda star": ("f = lambda *x: 1.0\nc[i] = f(1)  # HERE", "name every parameter"),
    "nested def star": ("def f(**k):\n    return 1.0\nc[i] = f()  # HERE", "name every parameter"),
    "decorator": ("@staticmethod  # HERE\ndef f():\n    pass", "decorator"),
    "isinstance": ("if isinstance(n, int):  # HERE\n    pass", "isinstance"),
    "sum": ("x = sum(a)  # HERE", "for loop"),
    "sorted": ("x = sorted(a)  # HERE", "sort"),
    "str": ("x = str(n)  # HERE", "print"),
    "open": ("x = open('f')  # HERE", "host"),
    "numpy function": ("x = np.linalg.norm(a)  # HERE", "norm()"),
    "numpy creation": ("x = np.zeros(3)  # HERE", "zeros()"),
    "captured array": ("c[i] = TABLE[0]  # HERE", "pass it as a parameter"),
    "captured list": ("c[i] = SETTINGS[0]  # HERE", "captured"),
    "captured dict": ("c[i] = LIMITS['a']  # HERE", "captured"),
    "undefined": ("c[i] = undefined  # HERE", "'undefined' is not defined"),
    "misspelt": ("c[i] = f23(1)  # HERE", "did you mean f32?"),
    "unknown attribute": ("c[i] = thread.index_4d()  # HERE", "no attribute 'index_4d'"),
    "calls a number": ("c[i] = n(3)  # HERE", "cannot be called"),
    "indexes a number": ("c[i] = n[0]  # HERE", "cannot be indexed"),
    "assigns to a call": ("a.shape = 3  # HERE", "no fields to assign"),
    "loops over a number": ("for k in n:  # HERE\n    pass", "range(n)"),
    "range of a float": ("for k in range(1.5):  # HERE\n    pass", "range takes integers"),
    "zero step": ("for k in range(0, 5, 0):  # HERE\n    pass", "must not be zero"),
    "unpacks a number": ("x, y = n  # HERE", "cannot be unpacked"),
    "too few to unpack": ("x, y = (1, 2, 3)  # HERE", "3 values for 2 names"),
    "item of a tuple": ("t = (1, 2)\nt[0] = 3  # HERE", "tuples do not change"),
    "tuple index": ("t = (1, 2)\nx = t[2]  # HERE", "out of range"),
    "string in if": ("if n == 'a':  # HERE\n    pass", "a string"),
    "invert a bool": ("x = ~(n > 1)  # HERE", "not n > 1"),
    "bitwise on floats": ("x = a[0] & a[1]  # HERE", "integers"),
    "constant too large": ("x = 10 ** 10 ** 10  # HERE", "too large"),
    "division by zero": ("x = 1 / 0  # HERE", "division by zero"),
    "negative shift": ("x = n << -1  # HERE", "shift"),
    "vector order": ("v = gw.vec2(1.0, 2.0)\nif v < v:  # HERE\n    pass", "no order"),
    "vector lane": ("v = gw.vec2(1.0, 2.0)\nv.x = 3.0  # HERE", "vectors do not change"),
    "option as value": ("o = gw.lang.options.some(n)\nc[i] = o + 1  # HERE", "Option"),
    "returns a value": ("return n  # HERE", "a kernel returns nothing"),
    "non-constant axis": ("x = thread.local_index(n)  # HERE", "axis"),
    "print file": ("print(n, file=LIMITS)  # HERE", "file="),
    "bad format": ("print(f'{n:q}')  # HERE", "format"),
    "case None": ("match n:\n    case None:  # HERE\n        pass", "never None"),
    "mapping pattern": ("match n:\n    case {'a': 1}:  # HERE\n        pass", "mapping pattern"),
    "assert message": ("assert n > 0, n  # HERE", "plain string"),
    "annotation": ("x: int = 3  # HERE", "i32"),
    "dtype annotation": ("x: np.float32 = 3.0  # HERE", "write f32"),
    "function rebound": ("f = lambda x: x\nf = 3  # HERE", "cannot become"),
    "raw thread object": ("c[i] = thread  # HERE", "the module"),
    "function as value": ("c[i] = f32  # HERE", "call it"),
}


def _kernel(tmp_path, body):
    """A kernel with this body, from a file of its own."""
    import importlib.util

    text = textwrap.dedent(
        """
        import numpy as np
        import gridwise as gw
        from gridwise import AtomicSlice, DisjointSlice, Slice, f32, i32, thread, u32
        LIMITS = {"a": 1}
        TABLE = np.zeros(3)
        SETTINGS = [1, 2, 3]
        def kernel(a: Slice[f32], c: DisjointSlice[f32], n: i32):
            i = thread.index_1d()
        """
    ) + textwrap.indent(body, "    ")
    path = tmp_path / "kernels.py"
    path.write_text(text + "\n")
    spec = importlib.util.spec_from_file_location("kernels_under_test", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    line = next(n for n, t in enumerate(text.splitlines(), 1) if "# HERE" in t)
    return module.kernel, line


@pytest.mark.parametrize("name", BODIES)
def test_a_refusal_names_the_line_and_the_way_out(tmp_path, name):
    body, phrase = BODIES[name]
    kernel, line = _kernel(tmp_path, body)
    with pytest.raises(gw.KernelError) as caught:
        compiled(kernel)
    report = str(caught.value)
    assert caught.value.loc.line == line, report
    assert phrase in report, report
    assert len(report.splitlines()) <= 6, report
    assert "^" in report


# -- signatures ------------------------------------------------------------------------------------


def no_annotation(a, c: DisjointSlice[f32]):  # HERE
    pass


def python_type(a: float, c: DisjointSlice[f32]):  # HERE
    pass


def bare_slice(a: Slice, c: DisjointSlice[f32]):  # HERE
    pass


def numpy_array(a: np.ndarray, c: DisjointSlice[f32]):  # HERE
    pass


def numpy_dtype(a: Slice[np.float32], c: DisjointSlice[f32]):  # HERE
    pass


def star_arguments(c: DisjointSlice[f32], *rest: Slice[f32]):  # HERE
    pass


def returns(c: DisjointSlice[f32]) -> f32:  # HERE
    pass


def witness_parameter(c: DisjointSlice[f32], i: gw.ThreadIndex):  # HERE
    pass


def a_string(c: DisjointSlice[f32], s: str):  # HERE
    pass


@pytest.mark.parametrize(
    ("fn", "phrase"),
    [
        (no_annotation, "annotate it: a: Slice[f32]"),
        (python_type, "f32 (or f64)"),
        (bare_slice, "write Slice[f32]"),
        (numpy_array, "write Slice[f32] or DisjointSlice[f32]"),
        (numpy_dtype, "write f32"),
        (star_arguments, "name every parameter"),
        (returns, "write the result to a DisjointSlice parameter"),
        (witness_parameter, "call thread.index_1d() in the kernel"),
        (a_string, "not a type of the language"),
    ],
)
def test_signatures_that_are_refused(fn, phrase):
    with pytest.raises(gw.KernelError) as caught:
        signature(fn)
    report = str(caught.value)
    assert phrase in report and len(report.splitlines()) <= 6
    lines, first = inspect.getsourcelines(fn)
    assert caught.value.loc.line == first + next(n for n, t in enumerate(lines) if "# HERE" in t)


def test_a_signature_is_read_without_compiling():
    def kernel(a: Slice[f32, 2], h: AtomicSlice[i32], x: f32, k: gw.Const[int], c: "DisjointSlice[f32]" = None):
        undefined  # noqa: B018, F821

    spec = signature(kernel)
    assert [(p.name, p.kind, p.rank) for p in spec] == [
        ("a", "slice", 2),
        ("h", "atomic", 1),
        ("x", "scalar", 0),
        ("k", "const", 0),
        ("c", "disjoint", 1),
    ]
    assert spec.params[4].default is None and spec.params[2].elem is f32


# -- exact places ----------------------------------------------------------------------------------


def positions(a: Slice[f32], c: DisjointSlice[f32], n: i32):
    i = thread.index_1d()
    c[i] = a[i] * 2.0 + n  # HERE


def unicode_before(c: DisjointSlice[f32], n: i32):
    größe = f32(1)
    c[thread.index_1d()] = größe + n  # HERE


def over_lines(a: Slice[f32], c: DisjointSlice[f32], n: i32):
    c[thread.index_1d()] = (
        a[0] + n  # the operand
    )


def test_the_caret_stands_under_the_expression():
    report = refused(positions, gw.KernelTypeError)
    source, caret = report.splitlines()[2:4]
    assert source[caret.index("^") : caret.rindex("^") + 1] == "a[i] * 2.0"
    report = refused(unicode_before, gw.KernelTypeError)
    source, caret = report.splitlines()[2:4]
    assert source[caret.index("^") : caret.rindex("^") + 1] == "größe"
    with pytest.raises(gw.KernelTypeError) as caught:
        compiled(over_lines)
    assert "a[0]" in str(caught.value)


def test_lambdas_on_one_line_are_told_apart():
    f, g = (lambda x: x + 1.0), (lambda x: x + 1)

    def kernel(c: DisjointSlice[f32], d: DisjointSlice[i32]):
        i = thread.index_1d()
        c[i] = f(f32(1.0))
        d[i] = g(i32(1))

    assert compiled(kernel)


def test_code_without_a_file_is_refused():
    space = {}
    exec("from gridwise import *\ndef kernel(c: DisjointSlice[f32]):\n    pass\n", space)
    with pytest.raises(gw.KernelSyntaxError, match="source"):
        compiled(space["kernel"])


def test_deep_nesting_is_refused(tmp_path):
    kernel, _ = _kernel(tmp_path, "x = " + " + ".join(["n"] * 900) + "  # HERE")
    with pytest.raises(gw.KernelSyntaxError, match="nested too deeply"):
        compiled(kernel)


# -- sizes ------------------------------------------------------------------------------------------


def doubles_0(x: f32) -> f32:
    return x + 1.0


def doubles_1(x: f32) -> f32:
    for f in (doubles_0,) * 40:
        x = f(x)
    return x


def doubles_2(x: f32) -> f32:
    for f in (doubles_1,) * 40:
        x = f(x)
    return x


def too_many_calls(c: DisjointSlice[f32]):
    x = f32(0)
    for f in (doubles_2,) * 40:
        x = f(x)
    c[thread.index_1d()] = x


def too_many_turns(c: DisjointSlice[i32]):
    n = 0
    for a in gw.static(range(300)):
        for b in gw.static(range(300)):
            n += a * b
    c[thread.index_1d()] = n


@pytest.mark.parametrize("fn", [too_many_calls, too_many_turns])
def test_a_kernel_that_grows_without_end_is_refused(fn, monkeypatch):
    monkeypatch.setattr(calls, "MOST_COPIES", 500)
    with pytest.raises(gw.KernelError, match="more than 500"):
        compiled(fn)


@gw.kernel
def a_kernel(c: DisjointSlice[f32]):
    c[thread.index_1d()] = 1.0


def calls_a_kernel(c: DisjointSlice[f32]):
    a_kernel(c)  # HERE


def storage(c: DisjointSlice[f32], a: Slice[gw.f8e4m3]):
    i = thread.index_1d()
    c[i] = f32(a[i])
    x = a[i] + a[i]  # HERE
    c[i] = f32(x)


def test_kernels_and_storage_types():
    refused(calls_a_kernel, gw.KernelSyntaxError, "a kernel cannot call a kernel")
    refused(storage, gw.KernelTypeError, "for storage", "f32(x)")
