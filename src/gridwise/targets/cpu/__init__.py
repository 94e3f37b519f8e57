"""Kernels for the CPU: threads of a block in vector lanes.

    emit.py      a kernel as two functions; rows of threads, for kernels that do not look at their block
    blocks.py, cuts.py   the others, block by block: cut at barriers into loops over gangs
    lockstep.py  grid-stride loops, walked side by side by a block
    groups.py    neighbours of a thread read and written as whole vectors; whole lines past the cache
    ahead.py     output lines asked for before they are written
    streaming.py  large outputs that are written past the cache
    guards.py    ``if i in c:`` as a loop bound
    shapes.py    which values are uniform, linear or varying across lanes, and where control diverges
    lanes.py, memory.py, control.py, subgroup.py, effects.py    a gang, layer by layer
    arith.py     scalar operations that this processor does better in another way
    runtime.py   what kernels call
"""
