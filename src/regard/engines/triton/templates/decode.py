"""A few queries against a long cache: the keys are split over the chip, and the parts are joined.

    a_z = Σ_j ψ_j 2^(−s_z) v_j      l_z = Σ_j ψ_j 2^(−s_z)      over the keys j of part z;  s_z = c · max_j x_j
    y = Σ_z α_z a_z / Σ_z α_z l_z   α_z = 2^(s_z − s)           s = max_z s_z

The rows of a program are all pairs (head of the group, query) of one key head, so that a key is read once. A sink is
one more part. Where ψ is no exponential, every s is 0; or, scaled (forward.py), log₂ of the largest |ψ|.
"""
# mypy: disable-error-code="no-untyped-def, no-untyped-call, untyped-decorator, assignment, possibly-undefined"
# ruff: noqa: RUF005 - Triton knows no starred tuples

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl
from triton.language.extra.cuda import gdc_launch_dependents, gdc_wait

from ..starting import Known, sixteens, start
from ..tilings import Tiling
from . import launch
from .common import (
    LOWEST,
    admitted,
    below,
    block_at,
    extended,
    faded,
    full,
    log2_total,
    narrow,
    no_weights,
    plus,
    plus_weights,
    tile,
    tiles,
    times,
)
from .dealing import ACROSS, NONE, WHOLE, kinds_of, multiprocessors, shares_for
from .launch import Call, padded

# -- parts -----------------------------------------------------------------------------------------------------


@triton.jit
def packed_rows(first, group, N, g, ROWS: tl.constexpr):
    """h and r of packed rows, [ROWS, 1], and which of them are there; the others repeat the last one."""
    place = first + tl.arange(0, ROWS)[:, None]
    last = tl.minimum(place, group * N - 1)
    return g * group + last // N, last % N, place < group * N


@triton.jit
def packed_tiles(lefts, b, h, r, there, S: tl.constexpr):
    """The packed rows of each left side, [ROWS, PADDED]."""
    found = ()
    for p in tl.static_range(len(lefts)):
        pointer, by_batch, by_head, by_row, by_column = lefts[p]
        column = tl.arange(0, S.PADDED[p])[None, :]
        far = tl.cast(b, tl.int64) * by_batch + h.to(tl.int64) * by_head + r.to(tl.int64) * by_row
        x = tl.load(pointer + far + column * by_column, mask=there & (column < S.WIDTHS[p]), other=0.0)
        found = found + (x,)
    return found


@triton.jit
def part_blocks(lists, b, g, n, S: tl.constexpr):
    """The list of a key head's blocks, how many of them are cut, and all of them."""
    if S.LISTED:
        indices, counts, by_batch, by_head, width = lists
        place = tl.cast(b, tl.int64) * by_batch + g * by_head
        return indices + place * width, tl.load(counts + 2 * place), tl.load(counts + 2 * place + 1)
    else:  # noqa: RET505
        return 0, (n % S.COLUMNS != 0).to(tl.int32), tl.cdiv(n, S.COLUMNS)


@triton.jit
def taken_in(m, l, acc, c, block, held, rights, v, data, n, F: tl.constexpr, S: tl.constexpr, MASKED: tl.constexpr):
    """m, l and Σ p v with one more block of keys."""
    lefts, head, row, b, g, h, i, anchor, there = held
    first = block * S.COLUMNS
    j = first + tl.arange(0, S.COLUMNS)[None, :]
    product = times(lefts, tiles(rights, b, g, first, n, S.COLUMNS, S, MASKED), S, True)
    known = (head, row, F.columns(data, head, b, h, j, below(j, n, MASKED)), data)
    at = (b, h, i, j, anchor)
    if MASKED:
        truth = full(admitted(product, known, at, there & (j < n), F), [S.ROWS, S.COLUMNS])
    if F.EXPONENTIAL:
        x = full(F.height(product, known, at), [S.ROWS, S.COLUMNS])
        if MASKED:
            x = tl.where(truth, x, -float("inf"))
        highest = tl.maximum(m, tl.max(x, 1, keep_dims=True))
        shift = tl.where(highest == -float("inf"), 0.0, c * highest)  # of a row that has read nothing yet
        p = full(F.weight(x, shift, product, known, at), [S.ROWS, S.COLUMNS])
        alpha = tl.exp2(c * m - shift)
        m, l, acc = highest, faded(l, alpha), acc * alpha
    else:
        p = full(F.weight(0.0, 0.0, product, known, at), [S.ROWS, S.COLUMNS])
    if MASKED and not (F.EXPONENTIAL and F.COVERED):
        p = tl.where(truth, p, 0.0)
    if F.SCALED:
        highest = tl.maximum(m, tl.log2(tl.max(tl.abs(p), 1, keep_dims=True)))
        p, alpha = p * tl.exp2(-highest), tl.exp2(m - highest)
        m, l, acc = highest, faded(l, alpha), acc * alpha
    if F.SHARED:
        l = plus_weights(l, p, v, F)
    values = tile(v, b, g, first, n, S.COLUMNS, S.VALUE, S.VALUE_PADDED, MASKED)
    return m, l, plus(acc, p, values, S, MASKED)


@triton.jit
def part(lefts, rights, v, start, data, lists, parts, sizes, F: tl.constexpr, S: tl.constexpr):
    """Σ p v, c · max x and Σ p over one part of the keys of one key head."""
    G, N, n = sizes
    sums, shifts, totals = parts
    if S.CHAINED:
        gdc_launch_dependents()
    z, splits, pair = tl.program_id(0), tl.num_programs(0), tl.program_id(1)
    b, g = pair // G, pair % G
    h, r, there = packed_rows(0, S.GROUP, N, g, S.ROWS)
    anchor = tl.load(start + b).to(tl.int32)
    head = F.heads(data, b, h)
    row = F.rows(data, head, b, h, r, there)
    held = (packed_tiles(lefts, b, h, r, there, S), head, row, b, g, h, anchor + r, anchor, there)

    listed, some, count = part_blocks(lists, b, g, n, S)
    first, last = z * count // splits, (z + 1) * count // splits
    middle = tl.minimum(tl.maximum(some, first), last)
    c = F.unit((head, row, (0.0,), data)) if F.EXPONENTIAL else 1.0
    m = tl.full([S.ROWS, 1], LOWEST if F.SCALED else -float("inf"), tl.float32)
    l = no_weights(tl.zeros([S.ROWS, 1], tl.float32), F)
    acc = tl.zeros([S.ROWS, S.VALUE_PADDED], tl.float32)
    block = block_at(listed, first, count, S)
    for step in tl.range(first, middle):
        ahead = block_at(listed, step + 1, count, S)  # read a step before it is needed
        m, l, acc = taken_in(m, l, acc, c, block, held, rights, v, data, n, F, S, True)
        block = ahead
    for step in tl.range(middle, last):
        ahead = block_at(listed, step + 1, count, S)
        m, l, acc = taken_in(m, l, acc, c, block, held, rights, v, data, n, F, S, False)
        block = ahead

    place = tl.cast(pair, tl.int64) * (S.GROUP * N) + tl.arange(0, S.ROWS)[:, None]
    place = place * splits + z
    column = tl.arange(0, S.VALUE_PADDED)[None, :]
    tl.store(sums + place * S.VALUE + column, acc, mask=there & (column < S.VALUE))
    tl.store(shifts + place, c * m, mask=there)
    for k in tl.static_range(len(l)):
        tl.store(totals[k] + place, l[k], mask=there)


# -- all of them -----------------------------------------------------------------------------------------------


@triton.jit
def beginning(data, b, h, r, there, F: tl.constexpr):
    """The shift and l of a row that has read nothing but the sink."""
    shift, l = tl.full([1, 1], -float("inf"), tl.float32), tl.zeros([1, 1], tl.float32)
    if F.HAS_SINK:
        head = F.heads(data, b, h)
        row = F.rows(data, head, b, h, r, there)
        sink = full(F.sink((head, row, (0.0,), data)), [1, 1])
        if F.EXPONENTIAL:
            shift, l = sink, l + 1.0
        elif F.SCALED:
            shift = tl.maximum(tl.log2(sink), LOWEST)
            l = sink * tl.exp2(-shift)
        else:
            l = l + sink
    return shift, no_weights(l, F)


@triton.jit
def plus_parts(sums, totals, place, inside, alpha):
    """The sums of weights with those of some more parts."""
    found = ()
    for k in tl.static_range(len(sums)):
        new = tl.load(totals[k] + place, mask=inside, other=0.0) * alpha
        found = found + (sums[k] + tl.sum(new, 0, keep_dims=True),)
    return found


@triton.jit
def joined(y, total, data, parts, sizes, F: tl.constexpr, S: tl.constexpr):
    """y of one packed row, some columns of it, and its total."""
    G, N, splits = sizes
    sums, shifts, totals = parts
    packed, pair, column = tl.program_id(0), tl.program_id(1), tl.program_id(2) * S.BAND
    b, g = pair // G, pair % G
    h, r, there = packed_rows(packed, S.GROUP, N, g, 1)
    column = column + tl.arange(0, S.BAND)[None, :]
    first = (tl.cast(pair, tl.int64) * (S.GROUP * N) + packed) * splits
    shift, l = beginning(data, b, h, r, there, F)
    acc = tl.zeros([1, S.BAND], tl.float32)
    if S.CHAINED:
        gdc_wait()
    for step in tl.range(0, splits, S.PARTS):
        z = step + tl.arange(0, S.PARTS)[:, None]
        inside = z < splits
        new = tl.load(sums + (first + z) * S.VALUE + column, mask=inside & (column < S.VALUE), other=0.0)
        alpha_new = tl.full([S.PARTS, 1], 1.0, tl.float32)
        if F.EXPONENTIAL or F.SCALED:
            shift_new = tl.load(shifts + first + z, mask=inside, other=-float("inf"))
            highest = tl.maximum(shift, tl.max(shift_new, 0, keep_dims=True))
            safe = tl.where(highest == -float("inf"), 0.0, highest)
            alpha, alpha_new = tl.exp2(shift - safe), tl.exp2(shift_new - safe)
            shift, l, acc, new = highest, faded(l, alpha), acc * alpha, new * alpha_new
        l, acc = plus_parts(l, totals, first + z, inside, alpha_new), acc + tl.sum(new, 0, keep_dims=True)
    if F.SHARED:
        divisor = l[1] if F.ROUNDED else l[0]
        acc = acc * tl.where(divisor == 0, 0.0, 1.0 / tl.where(divisor == 0, 1.0, divisor))
        found = l[0] * tl.exp2(shift) if F.SCALED else l[0]
        if F.EXPONENTIAL:
            found, rest = log2_total(shift, found)
        place = total + (tl.cast(b, tl.int64) * G * S.GROUP + h) * N + r
        tl.store(place, found, mask=tl.program_id(2) == 0)
        if S.EXACT:
            far = tl.num_programs(0).to(tl.int64) * tl.num_programs(1)  # rows of all
            tl.store(place + far, rest, mask=tl.program_id(2) == 0)
    pointer, by_batch, by_head, by_row, by_column = y
    far = tl.cast(b, tl.int64) * by_batch + h.to(tl.int64) * by_head + r.to(tl.int64) * by_row
    tl.store(pointer + far + column * by_column, narrow(acc, pointer.dtype.element_ty), mask=column < S.VALUE)


# -- the host --------------------------------------------------------------------------------------------------

MOST_ROWS = 64  # of one program
FEW_ROWS = 32  # of which a multiprocessor runs two programs at once; more fill its registers


def takes(call: Call) -> bool:
    """Whether the rows of a key head fit into one program, and all key heads into a grid."""
    heads = call.shape[0] * int(call.v.shape[1])
    return call.drop is None and call.group * call.shape[2] <= MOST_ROWS and heads <= ACROSS


def tiling_for(call: Call) -> Tiling:
    """All rows of a key head, and 16 kB of keys. More than 32 rows in four warps would spill before Hopper."""
    width = padded(max(int(call.v.shape[3]), sum(padded(int(x.shape[3])) for x in call.rights)))
    rows, columns = padded(call.group * call.shape[2]), 16384 // (width * call.v.element_size())
    fits = rows <= FEW_ROWS or (launch.has_descriptors(call.v.device) and call.v.element_size() == 2)
    return Tiling(rows, max(16, min(64, columns)), 4 if fits else 8, 3)


def by_key_head(lists: Any, group: int, blocks: int) -> tuple[Any, Any]:
    """Lists (B, heads, W) and counts (B, heads, 2) of packed rows: whole where every head of a group admits all."""
    indices, counts = lists.indices[:, :, 0], lists.counts[:, :, 0]
    if group == 1 or indices.shape[1] == 1:
        return indices, counts
    kinds = kinds_of(lists, blocks)[:, :, 0].unflatten(1, (-1, group))
    rank = torch.where((kinds == NONE).all(2), 2, torch.where((kinds == WHOLE).all(2), 1, 0))
    counts = torch.stack([(rank == 0).sum(-1), (rank < 2).sum(-1)], -1).int()
    return rank.argsort(dim=-1, stable=True).int(), counts


def decode(call: Call, lists: Any | None, tiling: Tiling, splits: int | None = None) -> tuple[Any, Any | None]:
    """y (B, H, N, E), and L = log₂ Z or Z of each row; `lists` are those of one row tile."""
    (batch, _, queries), (_, key_heads, keys, width) = call.shape, call.v.shape
    pairs, rows, blocks = batch * key_heads, call.group * queries, triton.cdiv(keys, tiling.columns)
    resident = 1 if tiling.rows > FEW_ROWS and tiling.warps == 4 else 2
    splits = splits or shares_for(pairs, blocks, resident * multiprocessors(call.v.device))
    chained = launch.has_descriptors(call.v.device)  # Hopper's: a kernel is set up while the one before it runs
    sizes = extended(launch.constants(call, lists, tiling), BAND=min(32, padded(width)), PARTS=32, CHAINED=chained)
    y = launch.rows_like(call)
    total = launch.totals(call)
    sums, shifts, *totals = (launch.numbers(call, pairs, rows, splits, *last) for last in ((width,), (), (), ()))
    parts = sums, shifts, tuple(totals[: 1 + bool(call.formula.ROUNDED)])
    lefts, rights = (tuple(map(_strided, sides)) for sides in (call.lefts, call.rights))
    start(
        part, (splits, pairs), lefts, rights, _strided(call.v), call.start, call.data or (0,),
        _listed(lists, call.group, blocks), parts, (key_heads, Known(queries), *sixteens(keys)), call.formula,
        sizes, num_warps=tiling.warps, num_stages=tiling.stages,
    )  # fmt: skip
    start(
        joined, (rows, pairs, triton.cdiv(width, 32)), launch.strided(y), total, call.data or (0,), parts,
        (key_heads, Known(queries), splits), call.formula, sizes, launch_pdl=chained,
    )  # fmt: skip
    return y, total


def _strided(x: Any) -> Any:
    return launch.strided(launch.near(x))


def _listed(lists: Any | None, group: int, blocks: int) -> tuple[Any, ...] | None:
    if lists is None:
        return None
    indices, counts = (x.contiguous() for x in by_key_head(lists, group, blocks))
    batch, heads, width = indices.shape
    return indices, counts, heads if batch > 1 else 0, int(heads > 1), width
