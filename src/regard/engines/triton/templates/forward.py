"""The forward pass: a program holds a tile of rows and reads blocks of keys.

    exponential   m' = max(m, max_j x)     shift = c m'     p = ψ 2^(−shift)     α = 2^(c m − shift)
                  l ← α l + Σ_j p          y ← α y + Σ_j p v_j                   L = c m + log₂ l
    bounded       the same with m = 0: no exponent is large
    shared        p = ψ                    l ← l + Σ_j p                         y ← y + Σ_j p v_j
    scaled        p = ψ 2^(−m'), m' = max(m, max_j log₂ |ψ|): shared, in a type that could not hold ψ; α = 2^(m − m')
    each          p = ψ                                                          y ← y + Σ_j p v_j

and y / l at the end where weights are shared; where ψ is more than one exponential (ROUNDED), y / Σ_j of p as it is
rounded to the type of v, so that a row that reads one key gives its value to the last digit. x, ψ, c and the mask are
the formula's functions. Blocks that the mask or the end of an array cuts come first; the others pay nothing for either.
What no row reads may hold NaN: a tile in which 0 has met one is done again with care.
"""
# mypy: disable-error-code="no-untyped-def, no-untyped-call, untyped-decorator, assignment, possibly-undefined"
# ruff: noqa: SIM102 - a flag decides whether what it guards is compiled

from __future__ import annotations

import triton
import triton.language as tl

from .common import (
    LOWEST,
    admitted,
    below,
    block_at,
    blocks,
    column_hash,
    faded,
    full,
    kept,
    no_weights,
    plus,
    plus_weights,
    program,
    put,
    row_hash,
    spoilt,
    tile,
    tiles,
    times,
    whole_and_rest,
)


@triton.jit(do_not_specialize=["lists", "sizes", "drop"])
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
    drops = row_hash(drop, b, h, i) if S.DROPS else 0
    held = (lefts, head, row, drops, b, h, r, i, anchor)

    c, m, l = beginning((head, row, (0.0,), data), F, S)
    acc = tl.zeros([S.ROWS, S.VALUE_PADDED], tl.float32)
    listed, some, count = blocks(lists, b, h, t, n, S.COLUMNS, F, S)
    block = block_at(listed, 0, count, S)
    for step in tl.range(0, some):
        ahead = block_at(listed, step + 1, count, S)  # read a step before it is needed
        m, l, acc = taken_in(m, l, acc, c, block, held, rights, v, data, N, n, drop, F, S, True, False)
        block = ahead
    for step in tl.range(some, count):
        ahead = block_at(listed, step + 1, count, S)
        m, l, acc = taken_in(m, l, acc, c, block, held, rights, v, data, N, n, drop, F, S, False, False)
        block = ahead
    if F.HAS_MASK:
        if spoilt((acc,)):  # once more, with zeros for what no row reads
            c, m, l = beginning((head, row, (0.0,), data), F, S)
            acc = tl.zeros([S.ROWS, S.VALUE_PADDED], tl.float32)
            for step in tl.range(0, count):
                block = block_at(listed, step, count, S)
                m, l, acc = taken_in(m, l, acc, c, block, held, rights, v, data, N, n, drop, F, S, True, True)

    if F.SHARED:
        divisor = l[1] if F.ROUNDED else l[0]
        acc = acc * tl.where(divisor == 0, 0.0, 1.0 / tl.where(divisor == 0, 1.0, divisor))[:, None]
        sums = l[0] * tl.exp2(m) if F.SCALED else l[0]
        if F.EXPONENTIAL:
            empty = sums == 0
            sums, rest = whole_and_rest(c * m, tl.log2(tl.where(empty, 1.0, sums)), empty)
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
    """c, and m and l of rows that have read nothing but the sink."""
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
    return c, m, no_weights(l, F)


@triton.jit
def taken_in(
    m, l, acc, c, block, held, rights, v, data, N, n, drop,
    F: tl.constexpr, S: tl.constexpr, MASKED: tl.constexpr, CAREFUL: tl.constexpr,
):  # fmt: skip
    """m, l and Σ p v with one more block of keys."""
    careful: tl.constexpr = CAREFUL if F.HAS_MASK else MASKED  # `plus` says why
    lefts, head, row, drops, b, h, r, i, anchor = held
    first, group = block * S.COLUMNS, h // S.GROUP
    j = first + tl.arange(0, S.COLUMNS)[None, :]
    product = times(lefts, tiles(rights, b, group, first, n, S.COLUMNS, S, MASKED), S, True)
    known = (head, row, F.columns(data, head, b, h, j, below(j, n, MASKED)), data)
    at = (b, h, i, j, anchor)
    if MASKED:
        truth = full(admitted(product, known, at, (r < N) & (j < n), F), [S.ROWS, S.COLUMNS])

    if F.EXPONENTIAL:
        x = full(F.height(product, known, at), [S.ROWS, S.COLUMNS])
        if MASKED:
            x = tl.where(truth, x, -float("inf"))
        if F.BOUNDED:
            p = full(F.weight(x, 0.0, product, known, at), [S.ROWS, S.COLUMNS])
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
        p = tl.where(kept(drop, drops, column_hash(drop, j)), p, 0.0)

    values = tile(v, b, group, first, n, S.COLUMNS, S.VALUE, S.VALUE_PADDED, MASKED)
    return m, l, plus(acc, p, values, S, careful)
