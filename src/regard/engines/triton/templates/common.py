"""What the kernels share: tiles of matrices, products of tiles, the order of blocks, masks, dropout.

    tile(x, b, h, first)   = x[b, h, first : first + SIZE], zeros outside the array
    inside(r, j)           = r < N  and  j < n  and  admitted(i, j)
    kept(b, h, i, j)       = mix(row(seed, b, h, i) ⊕ column(seed, j)) > threshold       (engines/dropout.py)

Constants reach a kernel in two values: F, the formula's functions and flags, and S, the sizes of the call.
A matrix is a descriptor of rank 4, which the chip's copy engine reads, or (pointer, four strides).
"""
# mypy: disable-error-code="no-untyped-def, no-untyped-call, untyped-decorator, assignment, possibly-undefined"
# ruff: noqa: RET505, RUF005 - Triton compiles what follows a return, and knows no starred tuples

from __future__ import annotations

import hashlib
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import triton
import triton.language as tl

INTERPRETED = tl.constexpr(bool(triton.knobs.runtime.interpret))
REACH = tl.constexpr(2.0**100)  # sums of weights up to here have lost nothing
LEAST = tl.constexpr(2.0**-20)  # nor have those down to here, however small the values that they multiply
SMALLEST = tl.constexpr(2.0**-126)  # of the floats that have all their digits
LOWEST = tl.constexpr(-120.0)  # log₂ of what is taken out of weights at least: nothing of float32 overflows by it


class Constants:
    """Names that a kernel knows when it is compiled: jitted functions, numbers, texts, truths, tuples of them."""

    def __init__(self, **values: Any) -> None:
        self.__dict__.update({name: _constant(value) for name, value in values.items()})
        words = (f"{name}={_key(value)}" for name, value in sorted(values.items()))
        self.cache_key = "constants_" + hashlib.sha256("\n".join(words).encode()).hexdigest()[:32]

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any: ...

    def __repr__(self) -> str:
        return self.cache_key

    def __hash__(self) -> int:
        return hash(self.cache_key)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Constants) and self.cache_key == other.cache_key


@lru_cache(maxsize=4096)
def extended(base: Constants, **more: Any) -> Constants:
    """Constants with more names."""
    return Constants(**{name: _bare(value) for name, value in vars(base).items() if name != "cache_key"}, **more)


def _bare(value: Any) -> Any:
    if isinstance(value, tuple):
        return tuple(map(_bare, value))
    return value.value if isinstance(value, tl.constexpr) else value


def _constant(value: Any) -> Any:
    if isinstance(value, tuple):
        return tuple(map(_constant, value))
    return tl.constexpr(value) if isinstance(value, bool | int | float | str) else value


def _key(value: Any) -> str:
    """What tells a value from another: of a function its source, or in the interpreter the object itself."""
    if isinstance(value, tuple):
        return repr(tuple(map(_key, value)))
    if isinstance(value, bool | int | float | str):
        return repr(value)
    return str(id(value) if INTERPRETED.value else value.cache_key)


# -- tiles of matrices -----------------------------------------------------------------------------------------


@triton.jit
def tile(x, b, h, first, length, SIZE: tl.constexpr, WIDTH: tl.constexpr, PADDED: tl.constexpr, RAGGED: tl.constexpr):
    """x[b, h, first : first + SIZE, :] as [SIZE, PADDED], with zeros outside; RAGGED: rows may lie outside."""
    if isinstance(x, tl.tensor_descriptor):
        return x.load([b, h, first, 0]).reshape([SIZE, PADDED])
    else:
        pointers, inside = places(x, b, h, first, length, SIZE, WIDTH, PADDED, RAGGED)
        if RAGGED or WIDTH != PADDED:
            return tl.load(pointers, mask=inside, other=0.0)
        else:
            return tl.load(pointers)


@triton.jit
def put(x, value, b, h, first, length, SIZE: tl.constexpr, WIDTH: tl.constexpr, PADDED: tl.constexpr):
    """x[b, h, first : first + SIZE, :] ← value, in the type of x, where that lies inside."""
    if isinstance(x, tl.tensor_descriptor):
        x.store([b, h, first, 0], narrow(value, x.dtype).reshape([1, 1, SIZE, PADDED]))
    else:
        pointers, inside = places(x, b, h, first, length, SIZE, WIDTH, PADDED, True)
        tl.store(pointers, narrow(value, x[0].dtype.element_ty), mask=inside)


@triton.jit
def places(x, b, h, first, length, SIZE: tl.constexpr, WIDTH: tl.constexpr, PADDED: tl.constexpr, RAGGED: tl.constexpr):
    """Pointers to a tile, [SIZE, PADDED], and which of them lie inside the array."""
    pointer, by_batch, by_head, by_row, by_column = x
    far = tl.cast(b, tl.int64) * by_batch + tl.cast(h, tl.int64) * by_head + tl.cast(first, tl.int64) * by_row
    row, column = tl.arange(0, SIZE)[:, None], tl.arange(0, PADDED)[None, :]
    inside = column < WIDTH
    if RAGGED:
        inside = inside & (first + row < length)
    return pointer + far + (row * by_row + column * by_column), inside


@triton.jit
def tiles(xs, b, h, first, length, SIZE: tl.constexpr, S: tl.constexpr, RAGGED: tl.constexpr):
    """A tile of each side of the products."""
    found = ()
    for p in tl.static_range(len(xs)):
        found = found + (tile(xs[p], b, h, first, length, SIZE, S.WIDTHS[p], S.PADDED[p], RAGGED),)
    return found


@triton.jit
def put_all(xs, values, scales, b, h, first, length, SIZE: tl.constexpr, S: tl.constexpr):
    """xs[p] ← scale_p · value_p."""
    for p in tl.static_range(len(xs)):
        put(xs[p], values[p] * scales[p], b, h, first, length, SIZE, S.WIDTHS[p], S.PADDED[p])


@triton.jit
def only_read(x, read):
    """The rows of x that are read; zeros in place of others, which may hold NaN.

    By their bits: a truth for each row may have to go where x lies, and triton 3.9 hands no truths over.
    """
    bits: tl.constexpr = tl.int32 if x.dtype.primitive_bitwidth == 32 else tl.int16
    every = tl.where(read != 0, -1, 0).to(bits)
    return (x.to(bits, bitcast=True) & every[:, None]).to(x.dtype, bitcast=True)


@triton.jit
def spoilt(xs):
    """Whether a sum holds NaN: it read one, or has met, with weight 0, a vector that no row of its tile reads."""
    found = tl.cast(0, tl.int32)
    for p in tl.static_range(len(xs)):
        found = tl.maximum(found, tl.max((xs[p] != xs[p]).to(tl.int32)))
    return found > 0


@triton.jit
def zeros(SIZE: tl.constexpr, S: tl.constexpr):
    """An empty sum for each product."""
    found = ()
    for p in tl.static_range(len(S.PADDED)):
        found = found + (tl.zeros([SIZE, S.PADDED[p]], tl.float32),)
    return found


# -- products of tiles -----------------------------------------------------------------------------------------


@triton.jit
def narrow(x, dtype: tl.constexpr):
    """x rounded to the nearest number of another type."""
    if INTERPRETED and dtype == tl.bfloat16:  # the interpreter cuts bits off instead
        bits = x.to(tl.float32).to(tl.int32, bitcast=True)
        x = ((bits + 0x7FFF + ((bits >> 16) & 1)) & -0x10000).to(tl.float32, bitcast=True)
    return x.to(dtype)


@triton.jit
def dot(a, b, total, S: tl.constexpr):
    """total + a b, summed in float32."""
    if INTERPRETED:  # which multiplies the bits of bfloat16 as integers
        return tl.dot(a.to(tl.float32), b.to(tl.float32), total, input_precision="ieee")
    else:
        return tl.dot(a, b, total, input_precision=S.PRECISION)


@triton.jit
def times(xs, ys, S: tl.constexpr, APART: tl.constexpr):
    """x yᵀ of each pair of tiles, float32. APART: nothing that is added later takes part in their sums."""
    found = ()
    for p in tl.static_range(len(xs)):
        product = dot(xs[p], ys[p].T, None, S)
        if APART and not INTERPRETED:
            product = alone(product)
        found = found + (product,)
    return found


@triton.jit
def alone(product):
    """The product: what is added to it would else be where its sum begins, which has to wait, and loses digits."""
    return tl.inline_asm_elementwise("mov.f32 $0, $1;", "=f,f", [product], tl.float32, is_pure=True, pack=1)


@triton.jit
def plus_times(totals, gs, xs, S: tl.constexpr, CAREFUL: tl.constexpr):
    """total + g x of each."""
    found = ()
    for p in tl.static_range(len(totals)):
        found = found + (plus(totals[p], gs[p], xs[p], S, CAREFUL),)
    return found


@triton.jit
def plus(total, g, x, S: tl.constexpr, CAREFUL: tl.constexpr):
    """total + g x, with g rounded to the type of x; CAREFUL: what no g multiplies may hold NaN.

    A careful product is awaited at once. So is, on the way back and where keys are split, that of the one block that
    sticks out of the array where there is no mask: else the assembler says of some kernels that it awaits every product
    (a test reads its report).
    """
    g = narrow(g, x.dtype)
    if CAREFUL:
        x = only_read(x, tl.max(tl.abs(g), 0))
    return dot(g, x, total, S)


# -- the order of programs and blocks --------------------------------------------------------------------------


@triton.jit
def program(lists, count, heads, first, S: tl.constexpr):
    """The (b, h) of this program and the tile that it holds: tiles of one head side by side, long ones first."""
    number = tl.program_id(0)
    t, of = number % count, first + number // count
    if S.LISTED:
        t = tl.load(lists[2] + of // heads * lists[6] + t)
    return of // heads, of % heads, t


@triton.jit
def blocks(lists, b, h, t, length, SIZE: tl.constexpr, F: tl.constexpr, S: tl.constexpr):
    """The list of a tile's blocks, how many of them the mask or the array's end cuts (these come first), and all."""
    if S.LISTED:
        indices, counts, _order, by_batch, by_head, width, _ordered = lists
        place = tl.cast(b, tl.int64) * by_batch + tl.cast(h, tl.int64) * by_head + t
        return indices + place * width, tl.load(counts + 2 * place), tl.load(counts + 2 * place + 1)
    elif F.HAS_MASK:
        return 0, tl.cdiv(length, SIZE), tl.cdiv(length, SIZE)
    else:
        return 0, (length % SIZE != 0).to(tl.int32), tl.cdiv(length, SIZE)


@triton.jit
def block_at(listed, step, total, S: tl.constexpr):
    """The block of a step; past the end any block."""
    if S.LISTED:
        return tl.load(listed + tl.maximum(tl.minimum(step, total - 1), 0))
    else:
        return total - 1 - step


# -- pairs -----------------------------------------------------------------------------------------------------


@triton.jit
def full(x, LIKE: tl.constexpr):
    """x as a block: a formula without products may give a row, a column or a number."""
    return tl.broadcast_to(x, LIKE)


@triton.jit
def alls(xs, LIKE: tl.constexpr):
    found = ()
    for p in tl.static_range(len(xs)):
        found = found + (full(xs[p], LIKE),)
    return found


@triton.jit
def only_where(truth, xs):
    """0 where not, whatever stood there, NaN too."""
    found = ()
    for p in tl.static_range(len(xs)):
        found = found + (tl.where(truth, xs[p], 0.0),)
    return found


@triton.jit
def log2_total(shift, sums):
    """L = shift + log₂ of the sums as one number, and what its rounding left; −∞ and 0 where a row is empty.

    What a float's exponent says of log₂ is whole, and the rest lies in [0, 1): a large one loses no digit.
    """
    usual, empty = (sums >= SMALLEST) & (sums < float("inf")), sums == 0
    bits = tl.where(usual, sums, 1.0).to(tl.int32, bitcast=True)
    beside = tl.log2(tl.where(usual | empty, 1.0, sums))
    mantissa = ((bits & 0x7FFFFF) | 0x3F800000).to(tl.float32, bitcast=True)
    whole, rest = sum_and_rest(shift, ((bits >> 23) - 127).to(tl.float32))
    whole, more = sum_and_rest(whole, tl.log2(mantissa))
    return tl.where(empty, -float("inf"), whole + beside), tl.where(empty, 0.0, rest + more)


@triton.jit
def sum_and_rest(a, b):
    """a + b rounded, and what the rounding left."""
    whole = a + b
    part = whole - a
    return whole, (a - (whole - part)) + (b - part)


@triton.jit
def below(index, length, RAGGED: tl.constexpr):
    """index < length, known beforehand where nothing sticks out."""
    if RAGGED:
        return index < length
    else:
        return tl.full(index.shape, True, tl.int1)


@triton.jit
def admitted(product, known, at, inside, F: tl.constexpr):
    """Pairs inside the arrays that the mask admits."""
    if F.HAS_MASK:
        return inside & F.admitted(product, known, at)
    else:
        return inside


# -- sums of weights -------------------------------------------------------------------------------------------


@triton.jit
def no_weights(l, F: tl.constexpr):
    """(Σ p), or (Σ p, Σ of p as it is rounded), before the first block; l is the sink."""
    return (l, l) if F.ROUNDED else (l,)


@triton.jit
def faded(sums, alpha):
    found = ()
    for k in tl.static_range(len(sums)):
        found = found + (sums[k] * alpha,)
    return found


@triton.jit
def plus_weights(sums, p, x, F: tl.constexpr):
    """The sums with those of one more block, over its keys; x are the values."""
    found = (sums[0] + row_sum(p, sums[0]),)
    if F.ROUNDED:
        found = found + (sums[1] + row_sum(narrow_as(p, x).to(tl.float32), sums[0]),)
    return found


@triton.jit
def least_sum(x):
    """The least sum of weights that has lost nothing, where they are rounded to the type of a matrix."""
    if isinstance(x, tl.tensor_descriptor):
        return 0.5 if x.dtype == tl.float16 else LEAST
    else:
        return 0.5 if x[0].dtype.element_ty == tl.float16 else LEAST


@triton.jit
def narrow_as(p, x):
    """p rounded to the type of a matrix."""
    if isinstance(x, tl.tensor_descriptor):
        return narrow(p, x.dtype)
    else:
        return narrow(p, x[0].dtype.element_ty)


@triton.jit
def row_sum(p, like):
    """Σ_j p, in the shape of another: (rows) or (rows, 1)."""
    return tl.sum(p, 1, keep_dims=len(like.shape) == 2)


# -- dropout ---------------------------------------------------------------------------------------------------

BITS = tl.constexpr(2**31 - 1)
KEY = tl.constexpr(0x243F6A88)
COLUMN = tl.constexpr(0x3C6EF372)


@triton.jit
def mixed(x):
    x = (x ^ (x >> 16)) * 0x7FEB352D
    return (x ^ (x >> 15)) * -0x7B935975


@triton.jit
def absorbed(key, word):
    """A hash of 31 bits of the key and of 31 bits of a word."""
    x = key ^ (tl.cast(word, tl.int32) & BITS)
    x = ((x ^ (x >> 16)) * 0x7FEB352D) & BITS
    x = ((x ^ (x >> 15)) * -0x7B935975) & BITS
    return x ^ (x >> 16)


@triton.jit
def seed_key(drop):
    seed = tl.load(drop[0])
    return absorbed(absorbed(absorbed(KEY, seed), seed >> 31), seed >> 31 >> 31)


@triton.jit
def row_hash(drop, b, h, i):
    return absorbed(absorbed(absorbed(seed_key(drop), b), h), i)


@triton.jit
def column_hash(drop, j):
    return absorbed(absorbed(seed_key(drop), COLUMN), j)


@triton.jit
def kept(drop, rows, columns):
    """Whether each pair's weight is kept."""
    return mixed(rows ^ columns) > drop[1]
