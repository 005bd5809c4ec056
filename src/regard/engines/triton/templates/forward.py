"""The forward pass: a program holds a tile of rows and reads blocks of keys.

    exponential   m' = max(m, max_j x)     p = ψ 2^(−c m')       l ← α l + Σ_j p       y ← α y + Σ_j p v_j
                  α = 2^(c m − c m')                                                   L = c m + log₂ l
    settled       the same, where m is max_j x of the first block, and stays: α = 1
    bounded       c m is what of that is no whole number: no exponent is large, and the largest p is a power of two
    shared        p = ψ                                          l ← l + Σ_j p         y ← y + Σ_j p v_j
    scaled        m' = max(m, max_j log₂ |ψ|)   p = ψ 2^(−m')    l ← α l + Σ_j p       y ← α y + Σ_j p v_j
                  α = 2^(m − m'): shared, in a type that could not hold ψ
    each          p = ψ                                                                y ← y + Σ_j p v_j

and y / l at the end where weights are shared; where ψ is more than one exponential (ROUNDED), y / Σ_j of p as it is
rounded to the type of v, so that a row that reads one key gives its value to the last digit. x, ψ, c and the mask are
the formula's functions. Blocks that the mask cuts come first; the others pay nothing for it. The products of the next
block are made while one is weighed.

A tile is done again with care, m' in place of a settled m, where a sum shows that it must be: where x has risen so far
above m that weights overflow, or lies so far below that they vanish, and where 0 has met NaN: what no row reads may
hold one.
"""
# mypy: disable-error-code="no-untyped-def, no-untyped-call, untyped-decorator, assignment, possibly-undefined"
# ruff: noqa: RET505, RUF059, SIM102 - Triton compiles what follows a return, takes tuples apart whole, and a flag
# decides whether what it guards is compiled

from __future__ import annotations

import triton
import triton.language as tl

from .common import (
    LOWEST,
    REACH,
    admitted,
    below,
    block_at,
    blocks,
    column_hash,
    faded,
    full,
    kept,
    least_sum,
    log2_total,
    no_weights,
    plus,
    plus_weights,
    program,
    put,
    row_hash,
    tile,
    tiles,
    times,
)


@triton.jit
def forward(
    left0, left1, left2, right0, right1, right2, v, y, total, start, data, lists, sizes, drop,
    F: tl.constexpr, S: tl.constexpr,
):  # fmt: skip
    """y and the totals of one tile of rows."""
    H, N, n = sizes
    b, h, t = program(lists, tl.cdiv(N, S.ROWS), H, 0, S)
    lefts = tiles((left0, left1, left2)[: F.PRODUCTS], b, h, t * S.ROWS, N, S.ROWS, S, True)
    rights = (right0, right1, right2)[: F.PRODUCTS]
    r = t * S.ROWS + tl.arange(0, S.ROWS)[:, None]
    first = tl.load(start + b).to(tl.int32)
    i, anchor = first + r, first + t * S.ROWS // 128 * 128
    head = F.heads(data, b, h)
    row = F.rows(data, head, b, h, r, r < N)
    drops = (drop, row_hash(drop, b, h, i)) if S.DROPS else 0
    held = (lefts, head, row, drops, b, h, r, i, anchor)

    acc, m, l, c = beginning((head, row, (0.0,), data), F, S)
    listed, some, count = blocks(lists, b, h, t, n, S.COLUMNS, F, S)
    read = (rights, v, data, N, n)
    block, last = nth(listed, 0, count, S), count - 1
    product = scored(block, held, read, S, True)
    if F.SETTLED:
        m, l = settled(product, m, l, c, block, held, read, F, S)
    middle = 0
    if F.HAS_MASK:
        middle = tl.minimum(some, last)
        if middle > 0:  # branches around loops: where one may not run, products in flight would meet other numbers
            for step in tl.range(0, middle):
                ahead = nth(listed, step + 1, count, S)
                acc, m, l, product = advanced(acc, m, l, product, c, block, ahead, held, read, F, S, True)
                block = ahead
    if middle < last:
        for step in tl.range(middle, last):
            ahead = nth(listed, step + 1, count, S)
            acc, m, l, product = advanced(acc, m, l, product, c, block, ahead, held, read, F, S, False)
            block = ahead
    here = met(block, held, read, F, S, True)
    acc, m, l = taken_in(acc, m, l, product, c, block, here, held, read, F, S, True, False)
    if F.HAS_MASK or (F.SETTLED and not F.BOUNDED):
        if astray(acc, l, r < N, v, F):
            acc, m, l, c = beginning((head, row, (0.0,), data), F, S)
            for step in tl.range(0, count, num_stages=1):
                block = block_at(listed, step, count, S)
                product, here = scored(block, held, read, S, True), met(block, held, read, F, S, True)
                acc, m, l = taken_in(acc, m, l, product, c, block, here, held, read, F, S, True, True)

    if F.SHARED:
        divisor = l[1] if F.ROUNDED else l[0]
        acc = acc * tl.where(divisor == 0, 0.0, 1.0 / tl.where(divisor == 0, 1.0, divisor))[:, None]
        sums = l[0] * tl.exp2(m) if F.SCALED else l[0]
        if F.EXPONENTIAL:
            sums, rest = log2_total(c * m, sums)
        rows = t * S.ROWS + tl.arange(0, S.ROWS)
        place = total + (b * H + h).to(tl.int64) * N + rows
        tl.store(place, sums, mask=rows < N)
        if S.EXACT:
            tl.store(place + (tl.num_programs(0) // tl.cdiv(N, S.ROWS)).to(tl.int64) * N, rest, mask=rows < N)
    if S.DROPS:
        acc = acc * drop[2]
    put(y, acc, b, h, t * S.ROWS, N, S.ROWS, S.VALUE, S.VALUE_PADDED)


@triton.jit
def beginning(known, F: tl.constexpr, S: tl.constexpr):
    """Σ p v, m and l of rows that have read nothing but the sink, and c."""
    c = F.unit(known) if F.EXPONENTIAL else 1.0
    m = tl.full([S.ROWS], 0.0 if F.BOUNDED else LOWEST if F.SCALED else -float("inf"), tl.float32)
    l = tl.zeros([S.ROWS], tl.float32)
    if F.HAS_SINK:
        sink = tl.reshape(full(F.sink(known), [S.ROWS, 1]), [S.ROWS])
        if F.EXPONENTIAL:
            m = sink / c
            l = tl.where(sink == -float("inf"), 0.0, 1.0)
        elif F.SCALED:
            m = tl.maximum(m, tl.log2(sink))
            l = sink * tl.exp2(-m)
        else:
            l = l + sink
    return tl.zeros([S.ROWS, S.VALUE_PADDED], tl.float32), m, no_weights(l, F), c


@triton.jit
def nth(listed, step, count, S: tl.constexpr):
    """The block of a step: as listed, or one after the other, so that the one that sticks out comes last."""
    return block_at(listed, step if S.LISTED else count - 1 - step, count, S)


@triton.jit
def scored(block, held, read, S: tl.constexpr, RAGGED: tl.constexpr):
    """The products of a tile of rows with a block of keys."""
    lefts, head, row, drops, b, h, r, i, anchor = held
    rights, v, data, N, n = read
    return times(lefts, tiles(rights, b, h // S.GROUP, block * S.COLUMNS, n, S.COLUMNS, S, RAGGED), S, True)


@triton.jit
def settled(product, m, l, c, block, held, read, F: tl.constexpr, S: tl.constexpr):
    """m, from the highest x of a row's first block, for all of its blocks, and l for it.

    A row that reads nothing there takes the highest of what it does not read: others will be near.
    """
    known, at = met(block, held, read, F, S, True)
    truth = pairs(product, known, at, held, read, F, S, True)
    x = full(F.height(product, known, at), [S.ROWS, S.COLUMNS])
    highest = tl.max(tl.where(truth, x, -float("inf")), 1)
    if F.HAS_SINK:
        highest = tl.maximum(highest, m)
    if F.HAS_MASK:
        unread = tl.max(tl.where(at[3] < read[4], x, -float("inf")), 1)
        highest = tl.where(highest == -float("inf"), unread, highest)
    highest = tl.where(tl.abs(highest) < float("inf"), highest, 0.0)  # of rows outside; what is not read may hold NaN
    if F.BOUNDED:
        highest -= tl.floor(c * highest + 0.5) / c
    if F.HAS_SINK:
        l = faded(l, tl.exp2(c * (m - highest)))
    return highest, l


@triton.jit
def astray(acc, l, inside, v, F: tl.constexpr):
    """Whether a sum is NaN, or too large, or, of weights that were taken relative to the first block, too small.

    0 · x is 0 where x is finite. A test of x itself becomes one of bits, which the assembler takes for false here.
    """
    found = tl.max((tl.sum(acc * 0.0, 1) != 0.0).to(tl.int32))
    if F.SETTLED and not F.BOUNDED:
        if F.ROUNDED:  # dropout may hide from y what its divisor has seen
            found = tl.maximum(found, tl.max((l[1] * 0.0 != 0.0).to(tl.int32)))
        near = (l[0] > least_sum(v)) & (l[0] < REACH)
        found = tl.maximum(found, tl.max(tl.where(inside, near[:, None].to(tl.int32) ^ 1, 0)))
    return found > 0


@triton.jit
def advanced(
    acc, m, l, product, c, block, ahead, held, read, F: tl.constexpr, S: tl.constexpr, MASKED: tl.constexpr
):  # fmt: skip
    """Σ p v with one more block, m and l, and the products of the next: one is made while this one is weighed."""
    sticks_out: tl.constexpr = MASKED if F.HAS_MASK else True  # whether the next block may
    here = met(block, held, read, F, S, MASKED)  # before products are begun: nothing is awaited beside them
    if F.SEVERAL:  # those of two blocks would leave no registers
        acc, m, l = taken_in(acc, m, l, product, c, block, here, held, read, F, S, MASKED, False)
        return acc, m, l, scored(ahead, held, read, S, sticks_out)
    else:
        following = scored(ahead, held, read, S, sticks_out)
        acc, m, l = taken_in(acc, m, l, product, c, block, here, held, read, F, S, MASKED, False)
        return acc, m, l, following


@triton.jit
def taken_in(
    acc, m, l, product, c, block, here, held, read,
    F: tl.constexpr, S: tl.constexpr, MASKED: tl.constexpr, CAREFUL: tl.constexpr,
):  # fmt: skip
    """Σ p v, m and l with one more block of keys."""
    lefts, head, row, drops, b, h, r, i, anchor = held
    rights, v, data, N, n = read
    known, at = here
    truth = pairs(product, known, at, held, read, F, S, MASKED)
    if F.EXPONENTIAL:
        x = full(F.height(product, known, at), [S.ROWS, S.COLUMNS])
        if MASKED:
            x = tl.where(truth, x, -float("inf"))
        if F.BOUNDED or (F.SETTLED and not CAREFUL):
            p = full(F.weight(x, (c * m)[:, None], product, known, at), [S.ROWS, S.COLUMNS])
        else:
            highest = tl.maximum(m, tl.max(x, 1))
            shift = tl.where(highest == -float("inf"), 0.0, c * highest)  # of a row that has read nothing yet
            p = full(F.weight(x, shift[:, None], product, known, at), [S.ROWS, S.COLUMNS])
            alpha = tl.exp2(c * m - shift)
            m, l, acc = highest, faded(l, alpha), acc * alpha[:, None]
    else:
        p = full(F.weight(0.0, 0.0, product, known, at), [S.ROWS, S.COLUMNS])
    if MASKED and not (F.EXPONENTIAL and F.COVERED):
        p = tl.where(truth, p, 0.0)
    if F.SCALED:
        highest = tl.maximum(m, tl.log2(tl.max(tl.abs(p), 1)))
        p, alpha = p * tl.exp2(-highest)[:, None], tl.exp2(m - highest)
        m, l, acc = highest, faded(l, alpha), acc * alpha[:, None]
    if F.SHARED:
        l = plus_weights(l, p, v, F)
    if S.DROPS:
        p = tl.where(kept(drops[0], drops[1], column_hash(drops[0], at[3])), p, 0.0)
    values = tile(v, b, h // S.GROUP, block * S.COLUMNS, n, S.COLUMNS, S.VALUE, S.VALUE_PADDED, True)
    return plus(acc, p, values, S, CAREFUL), m, l


@triton.jit
def met(block, held, read, F: tl.constexpr, S: tl.constexpr, RAGGED: tl.constexpr):
    """What is known of a block, and its positions."""
    lefts, head, row, drops, b, h, r, i, anchor = held
    rights, v, data, N, n = read
    j = block * S.COLUMNS + tl.arange(0, S.COLUMNS)[None, :]
    return (head, row, F.columns(data, head, b, h, j, below(j, n, RAGGED)), data), (b, h, i, j, anchor)


@triton.jit
def pairs(product, known, at, held, read, F: tl.constexpr, S: tl.constexpr, MASKED: tl.constexpr):
    """MASKED: which of a block's pairs are admitted."""
    lefts, head, row, drops, b, h, r, i, anchor = held
    rights, v, data, N, n = read
    truth = True
    if MASKED:
        truth = full(admitted(product, known, at, (r < N) & (at[3] < n), F), [S.ROWS, S.COLUMNS])
    return truth
