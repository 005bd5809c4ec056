"""The backward pass, with the weights computed again: two kernels that hold what they sum, so that no sum is shared.

    δ_i = dy_i · y_i − dtotal                           once for each row
    w   = ψ / Z,  dp = dy_i · v_j,  g = (dp − δ) / Z    again for each pair; with shift = L, ψ is divided by Z already
    dleft_i  = scale Σ_j G_ij right_j                   rows held; so is  Σ_j of what a row's own numbers receive
    dright_j = scale Σ_i G_ij left_i,  dv_j = Σ_i w dy  keys held; so is  Σ_i of what a column's own numbers receive

G, with g · ∂ψ/∂product = scale · G, is one of the formula's functions. Seven matrix products instead of five, no
atomics: the same numbers every time; or, where G is written down (`kept`), five. Where keys are held, blocks are
transposed: [keys, rows].
"""
# mypy: disable-error-code="no-untyped-def, no-untyped-call, untyped-decorator, assignment, possibly-undefined, misc"
# ruff: noqa: RET505, RUF005, RUF059, SIM102 - Triton compiles what follows a return, knows no starred tuples, takes
# tuples apart whole, and a flag decides whether what it guards is compiled

from __future__ import annotations

import triton
import triton.language as tl

from .common import (
    admitted,
    alls,
    below,
    block_at,
    blocks,
    column_hash,
    dot,
    full,
    kept,
    only_where,
    plus,
    plus_times,
    program,
    put,
    put_all,
    row_hash,
    spoilt,
    tile,
    tiles,
    times,
    zeros,
)

# -- what both share -------------------------------------------------------------------------------------------


@triton.jit
def row_terms(y, dy, total, dtotal, stats, sizes, F: tl.constexpr, S: tl.constexpr):
    """stats[b, h] ← L or 1 / Z, and δ = dy · y − dtotal: the gradient of ln Z, or Z times that of Z.

    A row that reads nothing, or lies outside, gets the number that makes every weight 0. In float32 also 2^(−rest),
    where L + rest is the logarithm to twice as many digits: the rounding of a large L would be that of every weight.
    """
    H, N, padded = sizes
    number, count = tl.program_id(0), padded // S.ROWS
    first, b, h = number % count * S.ROWS, number // count // H, number // count % H
    one = tile(y, b, h, first, N, S.ROWS, S.VALUE, S.VALUE_PADDED, True).to(tl.float32)
    other = tile(dy, b, h, first, N, S.ROWS, S.VALUE, S.VALUE_PADDED, True).to(tl.float32)
    delta, r = tl.sum(one * other, 1), first + tl.arange(0, S.ROWS)
    place = tl.cast(b * H + h, tl.int64)
    if F.EXPONENTIAL:
        sums = tl.load(total + place * N + r, mask=r < N, other=-float("inf"))
        scale = tl.where(sums == -float("inf"), float("inf"), sums)
    else:
        sums = tl.load(total + place * N + r, mask=r < N, other=0.0)
        scale = tl.where(sums == 0, 0.0, 1.0 / tl.where(sums == 0, 1.0, sums))
    delta -= of_total(sums, dtotal, place * N + r, r < N, F)
    lines: tl.constexpr = 3 if S.EXACT else 2
    tl.store(stats + lines * place * padded + r, scale)
    tl.store(stats + (lines * place + 1) * padded + r, delta)
    if S.EXACT:
        far = (tl.num_programs(0) // count).to(tl.int64) * N
        rest = tl.load(total + far + place * N + r, mask=r < N, other=0.0)
        tl.store(stats + (lines * place + 2) * padded + r, tl.exp2(-rest))


@triton.jit
def of_total(total, dtotal, at, inside, F: tl.constexpr):
    """What δ loses where Z itself has a gradient: that of ln Z, or Z times that of Z."""
    if dtotal is None:
        return 0.0
    else:
        slope = tl.load(dtotal + at, mask=inside, other=0.0)
        return slope if F.EXPONENTIAL else total * slope


@triton.jit
def balance(stats, sums, total, dtotal, data, sizes, F: tl.constexpr, S: tl.constexpr):
    """δ as the weights of the pulls have it, in `stats` and in the sums of rows.

        ε = Σ_j w dp − δ = Σ_j w g − (what Z has of its own) − δ sink / Z
        δ ← δ + ε        Σ_j g ∂ψ ← Σ_j g ∂ψ − ε Σ_j ∂ψ

    δ = dy · y has the rounding of y and of the weights that made it. Of one pair that is little; a number that all
    keys of a row share, as a temperature does, adds it up over them, while what it is made of cancels.

    sums: (b, h, p, r): g ∂ψ/∂x of L leaves, g ψ, ∂ψ/∂x of L leaves
    """
    H, N, padded = sizes
    L: tl.constexpr = F.ROW_PULLS // 2
    lines: tl.constexpr = 3 if S.EXACT else 2
    number, count = tl.program_id(0), tl.cdiv(N, S.ROWS)
    r, b, h = number % count * S.ROWS + tl.arange(0, S.ROWS), number // count // H, number // count % H
    place, inside = tl.cast(b * H + h, tl.int64), r < N
    line, own = stats + lines * place * padded + r, sums + place * F.ROW_PULLS * N + r
    scale, delta = tl.load(line, mask=inside, other=0.0), tl.load(line + padded, mask=inside, other=0.0)
    z = tl.load(total + place * N + r, mask=inside, other=0.0)
    found = tl.load(own + L * N, mask=inside, other=0.0) - of_total(z, dtotal, place * N + r, inside, F)
    if F.HAS_SINK:
        head = F.heads(data, b, h)
        row = F.rows(data, head, b, h, r[:, None], inside[:, None])
        sink = tl.reshape(full(F.sink((head, row, (0.0,), data)), [S.ROWS, 1]), [S.ROWS])
        share = tl.where(scale == float("inf"), 0.0, tl.exp2(sink - scale)) if F.EXPONENTIAL else sink * scale
        found -= delta * share  # whose 2^(−rest) is a rounding of a rounding
    tl.store(line + padded, delta + found, mask=inside)
    if not F.EXPONENTIAL:
        found = found * scale
    elif S.EXACT:
        found = found * tl.load(line + 2 * padded, mask=inside, other=0.0)
    for leaf in tl.static_range(L):
        at = own + leaf * N
        unit = tl.load(at + (L + 1) * N, mask=inside, other=0.0)
        tl.store(at, tl.load(at, mask=inside, other=0.0) - found * unit, mask=inside)


@triton.jit
def upstream_tile(stats, b, h, first, AXIS: tl.constexpr, F: tl.constexpr, S: tl.constexpr):
    """The shift, δ and the factor of a tile of rows, from what `row_terms` has left; AXIS is that of keys."""
    if not F.SHARED:
        return 0.0, 0.0, 1.0
    else:
        one, delta = stat(stats, b, h, 0, first, AXIS, S), stat(stats, b, h, 1, first, AXIS, S)
        if not F.EXPONENTIAL:
            return 0.0, delta, one
        elif S.EXACT:
            return one, delta, stat(stats, b, h, 2, first, AXIS, S)
        else:
            return one, delta, 1.0


@triton.jit
def stat(stats, b, h, line, first, AXIS: tl.constexpr, S: tl.constexpr):
    """One line of `stats` for a tile of rows."""
    if isinstance(stats, tl.tensor_descriptor):
        found = stats.load([b, h, line, first]).reshape([S.ROWS])
    else:
        pointer, by_batch, by_head, by_line, _ = stats
        place = tl.cast(b, tl.int64) * by_batch + tl.cast(h, tl.int64) * by_head + first
        found = tl.load(pointer + place + line * by_line + tl.arange(0, S.ROWS))
    return tl.expand_dims(found, AXIS)


@triton.jit
def vanishes(F: tl.constexpr):
    """Whether all that a block gives is a multiple of ψ = 2^(c·x): 0 where x is −∞, and what it spoils shows in G."""
    return F.EXPONENTIAL and F.COVERED and F.PRODUCTS > 0


@triton.jit
def weights_again(
    product, known, at, up, dp, keeps, drop, truth,
    F: tl.constexpr, S: tl.constexpr, LIKE: tl.constexpr, MASKED: tl.constexpr,
):  # fmt: skip
    """x, w (what dropout leaves of it) and g of a block."""
    shift, delta, inverse = up
    x, g = 0.0, dp
    if F.EXPONENTIAL:
        x = full(F.height(product, known, at), LIKE)
        if MASKED and vanishes(F):
            x = tl.where(truth, x, -float("inf"))
    w = full(F.weight(x, shift, product, known, at), LIKE)
    if S.DROPS:
        w, g = tl.where(keeps, w * drop[2], 0.0), tl.where(keeps, g * drop[2], 0.0)
    if F.SHARED:
        g = g - delta
        if S.EXACT or not F.EXPONENTIAL:
            w, g = w * inverse, g * inverse
    return x, w, g


@triton.jit
def vectors(COUNT: tl.constexpr, SIZE: tl.constexpr):
    """Empty sums, one vector each."""
    found = ()
    for _ in tl.static_range(COUNT):
        found = found + (tl.zeros([SIZE], tl.float32),)
    return found


@triton.jit
def plus_sums(totals, pulls):
    """total + Σ of each pull over the axis that the kernel does not hold."""
    found = ()
    for p in tl.static_range(len(totals)):
        found = found + (totals[p] + tl.sum(pulls[p], 1),)
    return found


@triton.jit
def put_sums(pointer, sums, place, index, length):
    """(b, h, p, index) ← sums[p]; `place` counts (b, h)."""
    for p in tl.static_range(len(sums)):
        row = (place * len(sums) + p).to(tl.int64) * length
        tl.store(pointer + row + index, sums[p], mask=index < length)


# -- rows held -------------------------------------------------------------------------------------------------


@triton.jit
def rows_backward(
    left0, left1, left2, right0, right1, right2, v, dy, dleft0, dleft1, dleft2, stats, row_sums,
    start, data, lists, sizes, drop, F: tl.constexpr, S: tl.constexpr,
):  # fmt: skip
    """dleft of one tile of rows, and the sums of its row terms."""
    H, N, n = sizes
    b, h, t = program(lists, tl.cdiv(N, S.ROWS), H, 0, S)
    first = t * S.ROWS
    lefts = tiles((left0, left1, left2)[: F.PRODUCTS], b, h, first, N, S.ROWS, S, True)
    rights = (right0, right1, right2)[: F.PRODUCTS]
    dys = tile(dy, b, h, first, N, S.ROWS, S.VALUE, S.VALUE_PADDED, True)
    r, begins = first + tl.arange(0, S.ROWS)[:, None], tl.load(start + b).to(tl.int32)
    i, anchor = begins + r, begins + first // 128 * 128
    head = F.heads(data, b, h)
    row = F.rows(data, head, b, h, r, r < N)
    up = upstream_tile(stats, b, h, first, 1, F, S)
    drops = row_hash(drop, b, h, i) if S.DROPS else 0
    held = (lefts, dys, up, head, row, drops, b, h, r, i, anchor)

    accs, sums = zeros(S.ROWS, S), vectors(F.ROW_PULLS, S.ROWS)
    listed, some, count = blocks(lists, b, h, t, n, S.COLUMNS, F, S)
    block = block_at(listed, 0, count, S)
    for step in tl.range(0, some):
        ahead = block_at(listed, step + 1, count, S)
        accs, sums = keys_taken_in(accs, sums, block, held, rights, v, data, N, n, drop, F, S, True, False)
        block = ahead
    for step in tl.range(some, count):
        ahead = block_at(listed, step + 1, count, S)
        accs, sums = keys_taken_in(accs, sums, block, held, rights, v, data, N, n, drop, F, S, False, False)
        block = ahead
    if F.HAS_MASK:
        if spoilt(accs):  # once more, with zeros for what no row reads
            accs, sums = zeros(S.ROWS, S), vectors(F.ROW_PULLS, S.ROWS)
            for step in tl.range(0, count, num_stages=1):
                block = block_at(listed, step, count, S)
                accs, sums = keys_taken_in(accs, sums, block, held, rights, v, data, N, n, drop, F, S, True, True)

    dlefts = (dleft0, dleft1, dleft2)[: F.PRODUCTS]
    put_all(dlefts, accs, F.product_scales((head, row, (0.0,), data)), b, h, first, N, S.ROWS, S)
    put_sums(row_sums, sums, b * H + h, first + tl.arange(0, S.ROWS), N)


@triton.jit
def keys_taken_in(
    accs, sums, block, held, rights, v, data, N, n, drop,
    F: tl.constexpr, S: tl.constexpr, MASKED: tl.constexpr, CAREFUL: tl.constexpr,
):  # fmt: skip
    """The sums of a tile of rows with one more block of keys."""
    careful: tl.constexpr = CAREFUL if F.HAS_MASK else MASKED  # `plus` says why
    lefts, dys, up, head, row, drops, b, h, r, i, anchor = held
    first, group = block * S.COLUMNS, h // S.GROUP
    j = first + tl.arange(0, S.COLUMNS)[None, :]
    keys = tiles(rights, b, group, first, n, S.COLUMNS, S, MASKED)
    values = tile(v, b, group, first, n, S.COLUMNS, S.VALUE, S.VALUE_PADDED, MASKED)
    product, dp = times(lefts, keys, S, S.EXACT), dot(dys, values.T, None, S)
    known = (head, row, F.columns(data, head, b, h, j, below(j, n, MASKED)), data)
    at = (b, h, i, j, anchor)
    keeps = kept(drop, drops, column_hash(drop, j)) if S.DROPS else 0
    truth = True
    if MASKED:
        truth = full(admitted(product, known, at, (r < N) & (j < n), F), [S.ROWS, S.COLUMNS])
    x, _, g = weights_again(product, known, at, up, dp, keeps, drop, truth, F, S, [S.ROWS, S.COLUMNS], MASKED)
    gs, pulls = (), ()
    if F.PRODUCTS > 0:
        gs = alls(F.pull_products(g, x, up[0], product, known, at), [S.ROWS, S.COLUMNS])
    if F.ROW_PULLS > 0:
        pulls = alls(F.pull_rows(g, x, up[0], product, known, at), [S.ROWS, S.COLUMNS])
    if MASKED and (careful or not vanishes(F)):
        gs, pulls = only_where(truth, gs), only_where(truth, pulls)
    return plus_times(accs, gs, keys, S, careful), plus_sums(sums, pulls)


# -- keys held -------------------------------------------------------------------------------------------------


@triton.jit
def keys_backward(
    left0, left1, left2, right0, right1, right2, v, dy, dright0, dright1, dright2, dv, slants, stats, column_sums,
    start, data, lists, sizes, kept_of, drop, F: tl.constexpr, S: tl.constexpr,
):  # fmt: skip
    """dright and dv of one tile of keys, and the sums of its column terms, over the query heads of its group.

    Where `slants` are given, dS goes there too, transposed: a block for each tile of keys and place in its list, of
    heads from kept_of[0] on, kept_of[1] tiles of keys each.
    """
    H, N, n = sizes
    b, group, t = program(lists, tl.cdiv(n, S.COLUMNS), H // S.GROUP, kept_of[0] // S.GROUP, S)
    first = t * S.COLUMNS
    keys = tiles((right0, right1, right2)[: F.PRODUCTS], b, group, first, n, S.COLUMNS, S, True)
    lefts = (left0, left1, left2)[: F.PRODUCTS]
    values = tile(v, b, group, first, n, S.COLUMNS, S.VALUE, S.VALUE_PADDED, True)
    j, begins = first + tl.arange(0, S.COLUMNS)[:, None], tl.load(start + b).to(tl.int32)
    drops = column_hash(drop, j) if S.DROPS else 0
    held = (keys, values, drops, b, group, t, j, begins)
    read = (lefts, dy, stats, data, lists, sizes, drop, slants, kept_of)

    accs, dvs = group_taken_in(column_sums, held, read, F, S, False)
    if F.HAS_MASK:
        if spoilt(accs + (dvs,)):  # once more, with zeros for what no key is read by
            accs, dvs = group_taken_in(column_sums, held, read, F, S, True)

    drights = (dright0, dright1, dright2)[: F.PRODUCTS]
    put_all(drights, accs, last_scales(data, b, group, F, S), b, group, first, n, S.COLUMNS, S)
    put(dv, dvs, b, group, first, n, S.COLUMNS, S.VALUE, S.VALUE_PADDED)


@triton.jit
def group_taken_in(column_sums, held, read, F: tl.constexpr, S: tl.constexpr, CAREFUL: tl.constexpr):
    """Σ over all rows of all query heads of the group, and the sums of column terms, which are written."""
    keys, values, drops, b, group, t, j, begins = held
    lefts, dy, stats, data, lists, sizes, drop, slants, kept_of = read
    H, N, n = sizes
    accs, dvs = zeros(S.COLUMNS, S), tl.zeros([S.COLUMNS, S.VALUE_PADDED], tl.float32)
    for member in tl.range(0, S.GROUP):
        h = group * S.GROUP + member
        head = F.heads(data, b, h)
        here = (head, F.columns(data, head, b, h, j, j < n), h)
        sums = vectors(F.COLUMN_PULLS, S.COLUMNS)
        listed, some, count = blocks(lists, b, h, t, N, S.ROWS, F, S)
        if CAREFUL:
            some = count
        elif slants is not None:  # what stands beyond the last key must be 0 in what is kept
            some = tl.where((t + 1) * S.COLUMNS > n, count, some)
        block = block_at(listed, 0, count, S)
        for step in tl.range(0, some):
            ahead = block_at(listed, step + 1, count, S)
            accs, dvs, sums = rows_taken_in(accs, dvs, sums, block, step, here, held, read, F, S, True, CAREFUL)
            block = ahead
        if not CAREFUL:
            for step in tl.range(some, count):
                ahead = block_at(listed, step + 1, count, S)
                accs, dvs, sums = rows_taken_in(accs, dvs, sums, block, step, here, held, read, F, S, False, False)
                block = ahead
        put_sums(column_sums, sums, b * H + h, t * S.COLUMNS + tl.arange(0, S.COLUMNS), n)
    return accs, dvs


@triton.jit
def rows_taken_in(
    accs, dvs, sums, block, step, here, held, read,
    F: tl.constexpr, S: tl.constexpr, MASKED: tl.constexpr, CAREFUL: tl.constexpr,
):  # fmt: skip
    """The sums of a tile of keys with one more block of rows."""
    head, column, h = here
    keys, values, drops, b, group, t, j, begins = held
    lefts, dy, stats, data, lists, sizes, drop, slants, kept_of = read
    careful: tl.constexpr = CAREFUL if F.HAS_MASK or slants is not None else MASKED  # `plus` says why
    H, N, n = sizes
    first = block * S.ROWS
    r = first + tl.arange(0, S.ROWS)[None, :]
    i, anchor, inside = begins + r, begins + first // 128 * 128, below(r, N, MASKED)
    queries = tiles(lefts, b, h, first, N, S.ROWS, S, MASKED)
    dys = tile(dy, b, h, first, N, S.ROWS, S.VALUE, S.VALUE_PADDED, MASKED)
    product, dp = times(keys, queries, S, S.EXACT), dot(values, dys.T, None, S)
    known = (head, F.rows(data, head, b, h, r, inside), column, data)
    at = (b, h, i, j, anchor)
    up = upstream_tile(stats, b, h, first, 0, F, S)
    keeps = kept(drop, row_hash(drop, b, h, i), drops) if S.DROPS else 0
    truth = True
    if MASKED:
        truth = full(admitted(product, known, at, (r < N) & (j < n), F), [S.COLUMNS, S.ROWS])
    x, w, g = weights_again(product, known, at, up, dp, keeps, drop, truth, F, S, [S.COLUMNS, S.ROWS], MASKED)
    gs, pulls = (), ()
    if F.PRODUCTS > 0:
        gs = alls(F.pull_products(g, x, up[0], product, known, at), [S.COLUMNS, S.ROWS])
    if F.COLUMN_PULLS > 0:
        pulls = alls(F.pull_columns(g, x, up[0], product, known, at), [S.COLUMNS, S.ROWS])
    if MASKED and (careful or not vanishes(F)):
        w, gs, pulls = tl.where(truth, w, 0.0), only_where(truth, gs), only_where(truth, pulls)
    if S.GROUP > 1:  # heads of one group may differ in their scales
        gs = scaled(gs, F.product_scales(known))
    if slants is not None:
        slot, place = (b * H + h - kept_of[0]) * kept_of[1] + t, step if S.LISTED else block
        put(slants, gs[0], slot, place, 0, S.COLUMNS, S.COLUMNS, S.ROWS, S.ROWS)
    return plus_times(accs, gs, queries, S, careful), plus(dvs, w, dys, S, careful), plus_sums(sums, pulls)


@triton.jit
def scaled(xs, scales):
    found = ()
    for p in tl.static_range(len(xs)):
        found = found + (xs[p] * scales[p],)
    return found


@triton.jit
def last_scales(data, b, group, F: tl.constexpr, S: tl.constexpr):
    """What the sums of a group are multiplied by at the end: the scales of its only head, otherwise 1."""
    scales = F.product_scales((F.heads(data, b, group * S.GROUP), (0.0,), (0.0,), data))
    found = ()
    for p in tl.static_range(len(scales)):
        found = found + (scales[p] if S.GROUP == 1 else 1.0,)
    return found
