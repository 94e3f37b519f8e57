"""The math library: every function of ``gridwise.math`` as IR arithmetic, the same on every target.

One file a family. Each function takes and returns ``expr.E`` values of f32 or f64 (16-bit floats go through
f32) and uses nothing but IEEE +, -, *, /, sqrt, integer operations of the same width, selects, and the native
functions of ``lang.math.NATIVE``. ``coefficients.py`` is made by ``tools/minimax.py``.
"""
