"""Every operation of the IR: its operands, attributes, result and exact meaning.

The meanings are the language's (rules 1 to 12): a target must give these results bit for bit where they
are integers. The check device interprets exactly this table. Each row is
``code: Spec(operands, result, attrs, regions, doc)``; the verifier reads the first four.

Operand notation: T one scalar type shared by all operands so marked, I any integer, N any number,
B bool, X the array's index type, A an array, V a variable slot, ``*`` zero or more of the last.
Result notation: the same letters, ``-`` for none, ``=`` for "given by the builder".
"""

from __future__ import annotations

from gridwise.lang.records import dataclass


@dataclass(frozen=True, slots=True)
class Spec:
    operands: str
    result: str
    attrs: tuple[str, ...] = ()
    regions: tuple[str, ...] = ()
    doc: str = ""
    pure: bool = False  # no effect, no fault: may be removed, duplicated or moved


def _pure(operands: str, result: str, doc: str, attrs: tuple[str, ...] = ()) -> Spec:
    return Spec(operands, result, attrs, (), doc, pure=True)


TABLE: dict[str, Spec] = {
    # ---- constants and identities -------------------------------------------------------------------
    "const": _pure("", "=", "The Python bool, int or float in `value`; ints already in range.", ("value",)),
    "thread_idx": _pure("", "=", "Position in the block along `axis` (0 is x, the fastest).", ("axis",)),
    "block_idx": _pure("", "=", "Position of the block in the grid along `axis`.", ("axis",)),
    "block_dim": _pure("", "=", "Threads a block along `axis`: kernel.block[axis].", ("axis",)),
    "grid_dim": _pure("", "=", "Blocks in the grid along `axis`.", ("axis",)),
    "global_idx": _pure("", "=", "block_idx * block_dim + thread_idx along `axis`; never wraps.", ("axis",)),
    "dim": _pure("A", "X", "Extent of the array along `axis`.", ("axis",)),
    # ---- arithmetic: both operands and the result have one type --------------------------------------
    "add": _pure("TT", "T", "Integers wrap; floats are IEEE, contraction to FMA allowed."),
    "sub": _pure("TT", "T", "As add."),
    "mul": _pure("TT", "T", "As add; the full product modulo 2**bits."),
    "div": _pure("TT", "T", "Floats only: IEEE division, correctly rounded for f32 and f64."),
    "floordiv": Spec("TT", "T", doc="Python's //: floor. Integer division by zero faults and gives 0; "
                     "min // -1 wraps to min. Floats: floor of the exact quotient, as Python's, "
                     "x // 0.0 is x / 0.0. attr `check` as for load."),
    "mod": Spec("TT", "T", doc="Python's %: the sign of the divisor. Integer x % 0 faults and gives 0. "
                "Floats as Python's; x % 0.0 is NaN; x % inf is x when the signs agree, else inf. "
                "attr `check` as for load."),
    "neg": _pure("T", "T", "Integers wrap; for floats the sign bit flips."),
    "abs": _pure("T", "T", "abs(min) wraps to min; for floats the sign bit clears."),
    "min": _pure("TT", "T", "Floats: NaN if either is; -0.0 is below +0.0."),
    "max": _pure("TT", "T", "Floats: NaN if either is; +0.0 is above -0.0."),
    "fma": _pure("TTT", "T", "a * b + c with one rounding (floats)."),
    # ---- bits --------------------------------------------------------------------------------------
    "and": _pure("TT", "T", "Bitwise; on bools logical, both sides evaluated."),
    "or": _pure("TT", "T", "As and."),
    "xor": _pure("TT", "T", "As and."),
    "not": _pure("T", "T", "Bitwise complement; on bools logical."),
    "shl": _pure("TT", "T", "Left shift. The count is read as unsigned of its width: a count >= bits "
                 "(a negative one included) gives 0."),
    "shr": _pure("TT", "T", "Right shift, arithmetic for signed; a count >= bits gives 0 or the sign (0 or -1)."),
    "popcount": _pure("T", "T", "Number of one bits (integers)."),
    "clz": _pure("T", "T", "Leading zero bits; `bits` for 0."),
    "ctz": _pure("T", "T", "Trailing zero bits; `bits` for 0."),
    # ---- comparison and choice ---------------------------------------------------------------------
    "eq": _pure("TT", "B", "NaN equals nothing."),
    "ne": _pure("TT", "B", "True for NaN."),
    "lt": _pure("TT", "B", "Signed, unsigned or float by type; False for NaN."),
    "le": _pure("TT", "B", "As lt."),
    "gt": _pure("TT", "B", "As lt."),
    "ge": _pure("TT", "B", "As lt."),
    "select": _pure("BTT", "T", "Second operand where the first is true, else the third."),
    # ---- conversion ----------------------------------------------------------------------------------
    "cast": _pure("N", "=", "Numeric conversion. int to int: modulo 2**bits. To bool: x != 0 (NaN is true). "
                  "int to float: nearest even. float to int: toward zero, saturating, NaN gives 0. "
                  "float to float: nearest even, f32 overflow to f16/bf16 gives inf. bool to number: 0 or 1."),
    "bitcast": _pure("N", "=", "The same bits as another type of equal width."),
    # ---- functions -----------------------------------------------------------------------------------
    "math": _pure("N*", "=", "The function `fn` of gridwise.lang.math (declared there with its NumPy meaning "
                  "and ulp bound): sqrt, exp, sin, floor, isnan, ... Operands and result of one float type "
                  "(ldexp: the second is i32; clamp and sign: integers too), "
                  "or result bool for the predicates.", ("fn",)),
    # ---- variables -----------------------------------------------------------------------------------
    "var": Spec("", "V", ("name",), doc="A slot, only at the top of the kernel body; unspecified until set "
                "(the frontend proves every get is preceded by a set)."),
    "get": Spec("V", "=", doc="The slot's value now."),
    "set": Spec("VT", "-", doc="Replace it."),
    # ---- memory --------------------------------------------------------------------------------------
    "shared": Spec("", "=", ("name",), doc="A block's array (ArrayType space shared), zero at the start of each "
                   "block; only at the top of the body. attr `raw`, of passes only: not zeroed, because all is written "
                   "before it is read; attr `align`: bytes."),
    "local": Spec("", "=", ("name",), doc="A thread's fixed array, zero at the start; only at the top of the body."),
    "load": Spec("AX*", "=", ("check",), doc="Element at the indices. Each index must be in [0, dim): otherwise a "
                 "DeviceIndexError fault and the value 0. attr `field` (tuple of ir.types.Field, outermost first) "
                 "picks a scalar member of a struct element; for each Field with count an extra index operand "
                 "follows the array's own indices, checked against count. "
                 "attr `check`: 'inplace' (do the check), 'proved' (cannot fail), "
                 "'launch' (holds if the kernel's launch conditions do), 'hoisted' (to be done before the loop). "
                 "attr `unsafe`, if there: why, says the author, no two threads meet."),
    "store": Spec("AX*T", "-", ("check",), doc="As load; the value is the last operand. Out of range: the fault, "
                  "no store."),
    "atomic": Spec("AX*T", "T", ("fn", "order", "scope", "check"), doc="Read-modify-write, returns the old value. "
                   "`fn`: add sub min max and or xor exchange compare_exchange (operands expected, desired). "
                   "`order`: relaxed acquire release acq_rel; `scope`: block device. Float add/min/max/exchange too: "
                   "float min and max order -0.0 below 0.0, NaN operands ignored."),
    "barrier": Spec("", "-", doc="All threads of the block arrive; shared and global writes before it are seen "
                    "after it."),
    # ---- subgroups -----------------------------------------------------------------------------------
    "subgroup": Spec("T*", "=", ("fn",), doc="`fn`: size lane shuffle shuffle_xor shuffle_up shuffle_down broadcast "
                     "ballot any all reduce_add reduce_min reduce_max reduce_and reduce_or reduce_xor reduce_mul "
                     "scan_add (inclusive) scan_exclusive_add. Lanes of inactive threads are left out; a shuffle from "
                     "a lane outside the subgroup gives the thread's own value."),
    # ---- control -------------------------------------------------------------------------------------
    "if": Spec("B", "-", regions=("then", "orelse")),
    "for": Spec("XXX", "-", ("unroll",), ("body", "orelse"), doc="Python's `for i in range(start, stop, step)`; the "
                "operands have one integer type; body.args[0] is i. No overflow: the trip count is exact. A zero step "
                "never reaches here. `orelse` runs if no break. attr unroll: None or a factor (0 = fully)."),
    "while": Spec("", "-", (), ("cond", "body", "orelse"), doc="cond ends in `yield` of a bool."),
    "yield": Spec("N", "-", doc="The result of the region it ends."),
    "break": Spec("", "-", doc="Of the innermost loop."),
    "continue": Spec("", "-", doc="Of the innermost loop."),
    "return": Spec("", "-", doc="This thread is done."),
    "scope": Spec("", "-", ("id",), ("body",), doc="An inlined function's body: `leave` with its id "
                  "continues after it."),
    "leave": Spec("", "-", ("id",)),
    # ---- faults, facts and output --------------------------------------------------------------------
    "assert": Spec("B", "-", ("message",), doc="DeviceAssertionError fault if false; the thread goes on."),
    "assume": Spec("B", "-", doc="A fact the launch has checked (from requires=) or a witness carries; for analysis "
                   "only."),
    "print": Spec("N*", "-", ("parts",), doc="`parts`: strings and (operand number, format spec) pairs; one "
                  "line a call."),
    # ---- tiles: only in tile kernels. Elementwise rows above take tiles of one shape too, element by element ----
    "tile_index": _pure("AX*", "X", "Coordinate along `axis` of the block's piece of a partition; with an operand, "
                        "of the piece of that number. Numbers and pieces are in bijection, row-major unless a target "
                        "chooses.", ("axis",)),
    "tile_count": _pure("A", "X", "Pieces of a partition: the product of ceil(dim / tile)."),
    "tile_load": Spec("AX*", "=", ("pad",), doc="The tile at coordinates in units of the result's shape; `pad` outside "
                      "the array. As if exact: a wild coordinate is all padding."),
    "tile_store": Spec("AX*T", "-", doc="Into the piece at coordinates (results of tile_index of A). With a second set "
                       "of coordinates: the sub-tile there within the piece, in units of the value's shape. What is "
                       "outside the piece or the array is not stored."),
    "tile_gather": Spec("AT*", "=", ("pad", "masked"), doc="Elements at index tiles; `pad` outside the array or where "
                        "the last operand, a mask if `masked`, is false."),
    "tile_scatter": Spec("AX*T*", "-", ("masked",), doc="Into the piece at coordinates: index tiles relative to it, "
                         "then the value, then the mask if `masked`. Outside: nothing. One destination twice is a "
                         "race."),
    "tile_atomic": Spec("AT*", "=", ("fn", "order", "scope", "masked"), doc="As atomic, at each element of the index "
                        "tiles; operands: indices, value, mask if `masked`. Outside the array: nothing, and 0."),
    "tile_broadcast": _pure("T", "=", "A scalar or a tile to the result's shape by NumPy's rules."),
    "tile_iota": _pure("", "=", "0, 1, … : rank 1, integers."),
    "tile_reshape": _pure("T", "=", "Row-major order kept."),
    "tile_permute": _pure("T", "=", "As numpy.transpose.", ("axes",)),
    "tile_cat": _pure("TT*", "=", "Joined along `axis`.", ("axis",)),
    "tile_slice": _pure("T", "=", "From `starts` by `steps` (any sign), as many as the result's shape says.",
                        ("starts", "steps")),
    "tile_extract": Spec("TX*", "=", ("check",), doc="The sub-tile at coordinates in units of the result's shape. A "
                         "coordinate outside is a DeviceIndexError fault and 0. `check` as for load."),
    "tile_reduce": Spec("T", "=", ("fn", "axis"), ("combine",), doc="`fn`: sum prod max min and or xor argmax argmin, "
                        "or custom, the region `combine` of two scalars ending in yield, associative by contract (else "
                        "it is empty). The axis is dropped. argmax and argmin: i32, the first of equals, the first "
                        "NaN. max and min: NaN if any is. Float sums and products in any order, of f16 and bf16 in "
                        "f32; integers wrap."),
    "tile_scan": Spec("T", "=", ("fn", "axis", "reverse"), ("combine",), doc="Inclusive; sum prod max min custom."),
    "tile_mma": _pure("TTT", "=", "(M,K) (K,N) + (M,N), or all with a leading batch axis. f16, bf16, f8 to f32; f16 to "
                      "f16; f32, f64; i8, u8 to i32. `precision` ieee or tf32. Sums in any order.", ("precision",)),
    "tile_sort": _pure("T", "=", "Ordered along `axis`, NaN last (first if `descending`).", ("axis", "descending")),
    "tile_argsort": _pure("T", "=", "The i32 positions that sort, stable.", ("axis", "descending")),
    "tile_take": Spec("TT", "=", ("axis", "check"), doc="numpy.take_along_axis; an index outside faults and gives 0."),
    "tile_histogram": _pure("T", "=", "i32 counts of the integers in [0, bins); others are ignored.", ("bins",)),
    "tile_map": Spec("T*", "=", (), ("body",), doc="The region's scalar function of each element; it ends in yield."),
    # ---- made by passes only -------------------------------------------------------------------------
    "fault": Spec("BX*", "-", ("kind", "site"), doc="Record fault `site` if the operand is true: see "
                  "devices/faults.py. "
                  "Further operands: index and length. `kind`: index zero_division assertion."),
    "vload": Spec("AX", "=", (), doc="`lanes` consecutive elements of a contiguous rank-1 array from an index that is "
                  "a multiple of lanes, in range; result VectorType."),
    "vstore": Spec("AXT", "-", (), doc="The mirror of vload."),
    "lane": _pure("T", "=", "Element `index` of a vector.", ("index",)),
    # For passes/tile on NVIDIA GPUs, named after the PTX instructions; shared arrays here are of rank 1.
    "ptx_copy": Spec("AXIAX*", "-", doc="cp.async: 16 bytes to a shared array from its element index on, of them the "
                     "first so many bytes from the global array's element at the indices on, then zeros. Both ends are "
                     "aligned to 16 bytes. Done after ptx_wait, for this thread."),
    "ptx_commit": Spec("", "-", doc="cp.async.commit_group: the copies since the last one are a group."),
    "ptx_wait": Spec("", "-", ("pending",), doc="cp.async.wait_group: of this thread's groups only the last `pending` "
                     "may be under way."),
    "ptx_fence": Spec("", "-", doc="fence.proxy.async: what this thread wrote to shared memory is seen by ptx_wgmma of "
                      "threads that a barrier puts behind it."),
    "ptx_wgmma": Spec("AXAXN*", "=", ("shape", "elem", "major", "stride", "steps"), doc="wgmma.mma_async of four "
                      "warps, sm_90a: two shared matrices, each with its first element's index, then this thread's "
                      "sums, which come out as a vector once ptx_wgmma_wait has let them. `shape` (64, n, k), `major` "
                      "k or mn of each matrix, `stride` (leading, other) in bytes of each, `steps` pairs of bytes to "
                      "go on by: a product each. Matrices lie in the 128-byte swizzle, aligned to 1024."),
    "ptx_wgmma_wait": Spec("N*", "=", ("pending",), doc="wgmma.wait_group: the sums, once all but `pending` groups of "
                           "products are done."),
    "pack": _pure("T*", "=", "A vector of its operands."),
}

ARITHMETIC = frozenset("add sub mul div floordiv mod min max".split())
COMPARISON = frozenset("eq ne lt le gt ge".split())
BITWISE = frozenset("and or xor shl shr".split())
MEMORY = frozenset("load store atomic".split())
TERMINATORS = frozenset("break continue return leave yield".split())
