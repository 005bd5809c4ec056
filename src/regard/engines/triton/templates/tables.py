"""The third backward kernel: gradients of what varies with both i and j, the same numbers every time.

    offsets     out[h, x] = Σ_b Σ_{i−j = highest−x} G_ij        G = g · ∂ψ/∂(what stands at i − j)
    tables      out[place(b, h, i, j)] += G_ij                  G = g · ∂ψ/∂(what stands at that place)

A program that gathers offsets owns lines of partial sums and adds the diagonals of its blocks to them; where dS was
kept, `bands` does so. A table that is indexed by b, h, i and j themselves is written tile by tile, each entry once.
Others need atomic additions, which come in any order. x, ψ, g as in `backward`.
"""
# mypy: disable-error-code="no-untyped-def, no-untyped-call, untyped-decorator, assignment"
# ruff: noqa: RUF005 - Triton knows no starred tuples

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
import triton
import triton.language as tl

from ..starting import start
from ..tilings import Tiling
from . import launch
from .backward import upstream_tile, weights_again
from .bands import diagonals
from .common import (
    admitted,
    alls,
    below,
    block_at,
    blocks,
    column_hash,
    dot,
    extended,
    full,
    kept,
    row_hash,
    tile,
    tiles,
    times,
)
from .dealing import ACROSS, kinds_of, multiprocessors, shares_for

# -- a block ---------------------------------------------------------------------------------------------------


@triton.jit
def held_rows(lefts, dy, stats, start, data, drop, b, h, t, N, F: tl.constexpr, S: tl.constexpr):
    """What is known of row tile t."""
    first, begins = t * S.ROWS, tl.load(start + b).to(tl.int32)
    r = first + tl.arange(0, S.ROWS)[:, None]
    i, anchor, inside = begins + r, begins + first // 128 * 128, r < N
    head = F.heads(data, b, h)
    row = F.rows(data, head, b, h, r, inside)
    dys = tile(dy, b, h, first, N, S.ROWS, S.VALUE, S.VALUE_PADDED, True)
    drops = row_hash(drop, b, h, i) if S.DROPS else 0
    lefts, up = tiles(lefts, b, h, first, N, S.ROWS, S, True), upstream_tile(stats, b, h, first, 1, F, S)
    return lefts, dys, up, head, row, drops, b, h, i, anchor, inside


@triton.jit
def pairs(held, block, rights, v, data, n, drop, F: tl.constexpr, S: tl.constexpr, MASKED: tl.constexpr):
    """What the pulls of a block are made of, and which of its pairs count."""
    lefts, dys, up, head, row, drops, b, h, i, anchor, inside = held
    first, group = block * S.COLUMNS, h // S.GROUP
    j = first + tl.arange(0, S.COLUMNS)[None, :]
    values = tile(v, b, group, first, n, S.COLUMNS, S.VALUE, S.VALUE_PADDED, MASKED)
    product = times(lefts, tiles(rights, b, group, first, n, S.COLUMNS, S, MASKED), S, S.EXACT)
    dp = dot(dys, values.T, None, S)
    known = (head, row, F.columns(data, head, b, h, j, below(j, n, MASKED)), data)
    at = (b, h, i, j, anchor)
    keeps = kept(drop, drops, column_hash(drop, j)) if S.DROPS else 0
    x, _, g = weights_again(product, known, at, up, dp, keeps, drop, True, F, S, [S.ROWS, S.COLUMNS], False)
    truth = tl.full([S.ROWS, S.COLUMNS], True, tl.int1)
    if MASKED:
        truth = full(admitted(product, known, at, inside & (j < n), F), [S.ROWS, S.COLUMNS])
    return (g, x, up[0], product, known, at), truth


# -- offsets, and tables by atomic additions -------------------------------------------------------------------


@triton.jit
def add_to_line(line, x, length, found):
    there = (x >= 0) & (x < length)
    tl.store(line + x, tl.load(line + x, mask=there, other=0.0) + found, mask=there)


@triton.jit
def add_diagonals(lines, x, length, block, zero, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    """Add a block whose first pair stands at x. Bands and halves have lines of their own, so that the blocks of one
    row tile never meet."""
    BANDS: tl.constexpr = max(1, ROWS // COLUMNS)
    one, other = diagonals(block, zero, ROWS, COLUMNS)
    u = tl.arange(0, BANDS)[:, None]
    x, line = x - u * COLUMNS + tl.arange(0, COLUMNS)[None, :], lines + u.to(tl.int64) * 2 * length
    add_to_line(line, x, length, one)
    add_to_line(line + length, x - COLUMNS, length, other)


@triton.jit
def spread(
    block, held, rights, v, data, n, drop, lines, x, length, grads,
    F: tl.constexpr, S: tl.constexpr, MASKED: tl.constexpr,
):  # fmt: skip
    """Add what one block gives to offsets and tables; the first pair of block 0 stands at x."""
    made, truth = pairs(held, block, rights, v, data, n, drop, F, S, MASKED)
    g, height, shift, product, known, at = made
    if S.OFFSETS > 0:
        pulls = alls(F.pull_offsets(g, height, shift, product, known, at), [S.ROWS, S.COLUMNS])
        for k in tl.static_range(S.OFFSETS):
            pull = tl.where(truth, pulls[k], 0.0) if MASKED else pulls[k]
            add_diagonals(lines[k], x + block * S.COLUMNS, length, pull, tl.minimum(block, 0), S.ROWS, S.COLUMNS)
    if len(S.TABLES) > 0:
        pulls = alls(F.pull_tables(g, height, shift, product, known, at), [S.ROWS, S.COLUMNS])
        entries = alls(F.places(product, known, at), [S.ROWS, S.COLUMNS])
        for k in tl.static_range(len(S.TABLES)):
            tl.atomic_add(grads[k] + entries[S.TABLES[k]], pulls[S.TABLES[k]], mask=truth, sem="relaxed")


@triton.jit
def row_tile(item, lists, B, S: tl.constexpr):
    """The b and the row tile of an item; long tiles first."""
    b, t = item % B, item // B
    if S.LISTED:
        t = tl.load(lists[2] + b * lists[6] + t)
    return b, t


@triton.jit
def own_lines(partial, h, length, S: tl.constexpr):
    """The lines of this program, for each vector of offsets: (vectors, H, slots, lines, length)."""
    found = ()
    slot, slots, H = tl.program_id(0), tl.num_programs(0), tl.num_programs(1)
    LINES: tl.constexpr = 2 * max(1, S.ROWS // S.COLUMNS)
    for k in tl.static_range(S.OFFSETS):
        found = found + (partial + ((k * H + h).to(tl.int64) * slots + slot) * LINES * length,)
    return found


@triton.jit
def spread_backward(
    left0, left1, left2, right0, right1, right2, v, dy, stats, partial, grads, start, data, lists, sizes, drop,
    F: tl.constexpr, S: tl.constexpr,
):  # fmt: skip
    """All that one slot of head h adds: some row tiles of the batch, dealt to the slots to and fro."""
    B, _, N, n, highest, length = sizes
    slot, slots, h = tl.program_id(0), tl.num_programs(0), tl.program_id(1)
    lefts, rights = (left0, left1, left2)[: F.PRODUCTS], (right0, right1, right2)[: F.PRODUCTS]
    lines, items = own_lines(partial, h, length, S), B * tl.cdiv(N, S.ROWS)
    for turn in tl.range(0, tl.cdiv(items, slots)):
        item = turn * slots + tl.where(turn % 2 == 0, slot, slots - 1 - slot)
        if item < items:
            b, t = row_tile(item, lists, B, S)
            held = held_rows(lefts, dy, stats, start, data, drop, b, h, t, N, F, S)
            x = highest - (tl.load(start + b).to(tl.int32) + t * S.ROWS)
            listed, some, count = blocks(lists, b, h, t, n, S.COLUMNS, F, S)
            some = tl.where((t + 1) * S.ROWS > N, count, some)  # rows that are not there add nothing
            block = block_at(listed, 0, count, S)
            for step in tl.range(0, some):
                ahead = block_at(listed, step + 1, count, S)
                spread(block, held, rights, v, data, n, drop, lines, x, length, grads, F, S, True)
                block = ahead
            for step in tl.range(some, count):
                ahead = block_at(listed, step + 1, count, S)
                spread(block, held, rights, v, data, n, drop, lines, x, length, grads, F, S, False)
                block = ahead
        tl.debug_barrier()  # other threads may have stored what the next row tile adds to


# -- tables, tile by tile --------------------------------------------------------------------------------------


@triton.jit
def plus_where(totals, truth, pulls, S: tl.constexpr):
    found = ()
    for k in tl.static_range(len(S.TABLES)):
        found = found + (totals[k] + tl.where(truth, pulls[S.TABLES[k]], 0.0),)
    return found


@triton.jit
def no_tiles(S: tl.constexpr):
    found = ()
    for _ in tl.static_range(len(S.TABLES)):
        found = found + (tl.zeros([S.ROWS, S.COLUMNS], tl.float32),)
    return found


@triton.jit
def put_tiles(grads, sums, entries, touched, S: tl.constexpr):
    """Write, or add to what stands there, the entries that some pair reads."""
    for k in tl.static_range(len(S.TABLES)):
        at = grads[k] + entries[S.TABLES[k]]
        found = sums[k]
        if S.ADDS:
            found = found + tl.load(at, mask=touched, other=0.0)
        tl.store(at, found, mask=touched)


@triton.jit
def tile_backward(
    left0, left1, left2, right0, right1, right2, v, dy, stats, grads, start, data, kinds, sizes, drop,
    F: tl.constexpr, S: tl.constexpr,
):  # fmt: skip
    """One tile of tables: the sum over the batches and heads that they do not tell apart, in order.

    `kinds` says of each tile of pairs what the mask admits; the tables have axis b if BATCH, axis h if HEAD.
    """
    H, N, n, first_b, batches = sizes
    block, t, own = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    lefts, rights = (left0, left1, left2)[: F.PRODUCTS], (right0, right1, right2)[: F.PRODUCTS]
    heads = 1 if S.HEAD else H
    first_b, first_h = first_b + (own // (H // heads) if S.BATCH else 0), own % H if S.HEAD else 0
    sums, touched = no_tiles(S), tl.full([S.ROWS, S.COLUMNS], False, tl.int1)
    for turn in tl.range(0, batches * heads):
        b, h, kind = first_b + turn // heads, first_h + turn % heads, 1
        if S.LISTED:
            kind = tl.load(
                kinds[0] + tl.cast(b, tl.int64) * kinds[1] + h * kinds[2] + t * tl.cdiv(n, S.COLUMNS) + block
            )
        if kind != 0:
            held = held_rows(lefts, dy, stats, start, data, drop, b, h, t, N, F, S)
            made, truth = pairs(held, block, rights, v, data, n, drop, F, S, True)
            g, height, shift, product, known, at = made
            pulls = alls(F.pull_tables(g, height, shift, product, known, at), [S.ROWS, S.COLUMNS])
            sums, touched = plus_where(sums, truth, pulls, S), touched | truth
    r = t * S.ROWS + tl.arange(0, S.ROWS)[:, None]
    j = block * S.COLUMNS + tl.arange(0, S.COLUMNS)[None, :]
    begins = tl.load(start + first_b).to(tl.int32)
    at = (first_b, first_h, begins + r, j, begins + t * S.ROWS // 128 * 128)
    entries = alls(F.places((0.0,), ((0.0,), (0.0,), (0.0,), data), at), [S.ROWS, S.COLUMNS])
    put_tiles(grads, sums, entries, touched, S)


# -- the host --------------------------------------------------------------------------------------------------

MEMORY = 2**28  # bytes of partial sums
RESIDENT = 2  # programs on a multiprocessor


def tiling_for(call: launch.Call) -> Tiling:
    """The largest tiles that do not spill: with descriptors, no registers are spent on pointers."""
    sides = sum(launch.padded(int(x.shape[3])) for x in call.rights)
    row = max(sides, launch.padded(int(call.v.shape[3]))) * call.v.element_size()
    described = launch.has_descriptors(call.v.device) if call.descriptors is None else call.descriptors
    if row > 512:
        return Tiling(32, 32 if described else 16)
    return Tiling(64 if row <= 256 or described else 32, 64 if row <= 256 and described else 32)


def offsets_and_tables(
    call: launch.Call, stats: Any | None, dy: Any, lists: Any | None, tiling: Tiling, *,
    offsets: int = 0, highest: int = 0, length: int = 0, grads: Mapping[int, Any] | None = None,
) -> tuple[Any, ...]:  # fmt: skip
    """The gradients of the formula's vectors of offsets, whose first number is that of i − j = highest.

    Each comes in parts, (H, shares, lines, length), whose sum is the gradient (H, length).
    `stats` are those of `launch.row_stats`. `grads`: float32 gradients of tables by their number in `pull_tables`, to
    which atomic additions add.
    """
    (batch, heads, rows), tables = call.shape, dict(grads or {})
    items, lines = batch * triton.cdiv(rows, tiling.rows), 2 * max(1, tiling.rows // tiling.columns)
    slots = min(shares_for(heads, items, RESIDENT * multiprocessors(call.v.device)),
                max(1, MEMORY // max(1, 4 * offsets * heads * lines * length)))  # fmt: skip
    partial = torch.zeros((offsets, heads, slots, lines, length), dtype=torch.float32, device=call.v.device)
    sizes = extended(launch.constants(call, lists, tiling), OFFSETS=offsets, TABLES=tuple(tables))
    if offsets or tables:
        start(
            spread_backward, (slots, heads), *_matrices(call, stats, dy, tiling), partial, tuple(tables.values()),
            call.start, call.data or (0,), launch.listed(lists), (batch, *call.sizes, highest, length), _drop(call),
            call.formula, sizes, num_warps=tiling.warps, num_stages=tiling.stages,
        )  # fmt: skip
    return tuple(partial)


def owned_tables(
    call: launch.Call, stats: Any | None, dy: Any, lists: Any | None, tiling: Tiling,
    grads: Mapping[int, Any], axes: str, aligned: bool = False,
) -> None:  # fmt: skip
    """Fill float32 gradients of tables, zeros beforehand, by number: indexed by i, j and those of b and h in `axes`.

    Where a table has no axis b and batches may start at different positions (not `aligned`), batches come one after
    the other.
    """
    (batch, heads, rows), keys = call.shape, int(call.v.shape[2])
    by_batch, tiles = "b" in axes, triton.cdiv(keys, tiling.columns)
    one_by_one = batch > 1 and not by_batch and not aligned
    sizes = extended(launch.constants(call, lists, tiling), TABLES=tuple(grads), BATCH=by_batch, HEAD="h" in axes,
                     ADDS=one_by_one)  # fmt: skip
    own = heads if "h" in axes else 1  # tiles of one batch, at the same place
    most = max(1, ACROSS // own) if by_batch else 1
    for first in range(0, batch if by_batch or one_by_one else 1, most):
        several = min(most, batch - first)
        start(
            tile_backward, (tiles, triton.cdiv(rows, tiling.rows), own * several), *_matrices(call, stats, dy, tiling),
            tuple(grads.values()), call.start, call.data or (0,), _kinds(lists, tiles),
            (*call.sizes, first, 1 if by_batch or one_by_one else batch), _drop(call), call.formula, sizes,
            num_warps=tiling.warps, num_stages=tiling.stages,
        )  # fmt: skip


def _kinds(lists: Any | None, tiles: int) -> tuple[Any, int, int] | None:
    if lists is None:
        return None
    kinds = kinds_of(lists, tiles)
    batch, heads = kinds.shape[:2]
    return kinds, kinds.stride(0) if batch > 1 else 0, kinds.stride(1) if heads > 1 else 0


def _matrices(call: launch.Call, stats: Any | None, dy: Any, tiling: Tiling) -> tuple[Any, ...]:
    v, dy = launch.matrix(call.v, tiling.columns, call), launch.matrix(dy, tiling.rows, call)
    return *launch.sides(call, tiling), v, dy, launch.stats_matrix(stats, tiling, call)


def _drop(call: launch.Call) -> tuple[Any, ...] | None:
    return None if call.drop is None else (call.drop.seed, call.drop.threshold, call.drop.scale)
