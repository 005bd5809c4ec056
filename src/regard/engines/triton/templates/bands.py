"""Sums of dS that was kept over i − j: a program owns a band of blocks, sums these, and then their diagonals.

out[b, h, x] = Σ_{i−j = highest−x} dS_ij
"""
# mypy: disable-error-code="no-untyped-def, no-untyped-call, untyped-decorator"

from __future__ import annotations

from functools import lru_cache
from typing import Any

import triton
import triton.language as tl

from ..starting import start
from . import launch
from .common import Constants


@triton.jit
def diagonals(block, zero, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    """Σ over c − r = d − uC, and over c − r = d − uC − C, in band u of C = COLUMNS rows: two [bands, C].

    Row r is turned left by r places, so that diagonals become columns; what was turned around belongs to the second.
    `zero` is a 0 that the compiler does not know: indices that depend on the block hold no registers between blocks.
    """
    BANDS: tl.constexpr = max(1, ROWS // COLUMNS)
    r, d = tl.arange(0, ROWS)[:, None] % COLUMNS + zero, tl.arange(0, COLUMNS)[None, :]
    turned = tl.gather(block, (r + d) % COLUMNS, 1)
    ahead = r + d < COLUMNS
    one = tl.reshape(tl.where(ahead, turned, 0.0), [BANDS, ROWS // BANDS, COLUMNS])
    other = tl.reshape(tl.where(ahead, 0.0, turned), [BANDS, ROWS // BANDS, COLUMNS])
    return tl.sum(one, 1), tl.sum(other, 1)


@triton.jit
def band_sums(slants, inverse, start, partial, sizes, strides, S: tl.constexpr):
    """The sums of dS over the diagonals of one band of blocks of SIZE × SIZE: row block − key block = d, of one (b, h).

    slants:   dSᵀ in blocks, (pairs (b, h) from the first on, blocks of keys, blocks of rows, or of places in a list)
    inverse:  of blocks.Lists
    strides:  of `inverse`, and how many blocks of keys and of rows a tile has
    partial:  float32 (B, H, 2, length), beginning with i − j = highest: what lies on a block's diagonal and to one side
              of it, and what lies to the other side
    """
    H, first, across, down, kept_across, kept_down, highest, length = sizes
    pair = tl.program_id(1)
    b, h = (first + pair) // H, (first + pair) % H
    d = tl.program_id(0) - (across - 1)
    inside = tl.arange(0, S.SIZE)[:, None] * S.SIZE + tl.arange(0, S.SIZE)[None, :]
    total = tl.zeros([S.SIZE, S.SIZE], tl.float32)
    for key in tl.range(tl.maximum(0, -d), tl.minimum(across, down - d)):
        place, there = key + d, True
        if S.LISTED:
            by_batch, by_head, by_tile, wide, tall = strides
            row = b * by_batch + h * by_head + key // wide * by_tile
            met = tl.load(inverse + row + (key + d) // tall)
            place, there = met * tall + (key + d) % tall, met >= 0
        at = slants + ((pair * kept_across + key).to(tl.int64) * kept_down + place) * (S.SIZE * S.SIZE)
        total += tl.load(at + inside, mask=there, other=0.0).to(tl.float32)
    one, other = diagonals(total, 0, S.SIZE, S.SIZE)
    x = highest - (tl.load(start + b).to(tl.int32) + d * S.SIZE + tl.arange(0, S.SIZE)[None, :])
    line = partial + (first + pair).to(tl.int64) * 2 * length
    tl.store(line + x, one, mask=(x >= 0) & (x < length))
    tl.store(line + length + x + S.SIZE, other, mask=(x + S.SIZE >= 0) & (x + S.SIZE < length))


def sum_bands(
    call: launch.Call, slants: Any, across: int, by_keys: Any | None, tile: tuple[int, int], pairs: range, highest: int,
    partial: Any,
) -> None:  # fmt: skip
    """The sums of kept dS over i − j, for some pairs (b, h), into `partial` (B, H, 2, length).

    slants:  (pairs · across, blocks of rows, size, size), from the first pair on
    by_keys: blocks.both_lists of tiles of `tile` rows and keys; None where all blocks are there
    """
    size, keys = int(slants.shape[3]), int(call.v.shape[2])
    blocks_across, blocks_down = triton.cdiv(keys, size), triton.cdiv(call.shape[2], size)
    inverse, strides = call.start, (0, 0, 0, 1, 1)
    if by_keys is not None:
        inverse = by_keys.inverse.contiguous()
        steps = (step if count > 1 else 0 for count, step in zip(inverse.shape[:2], inverse.stride()[:2], strict=True))
        strides = (*steps, inverse.stride(2), tile[1] // size, tile[0] // size)
    sizes = (
        call.shape[1], pairs.start, blocks_across, blocks_down, across, int(slants.shape[1]), highest,
        int(partial.shape[3]),
    )  # fmt: skip
    start(
        band_sums, (blocks_across + blocks_down - 1, len(pairs)), slants, inverse, call.start, partial, sizes, strides,
        _sized(size, by_keys is not None), num_warps=4, num_stages=4,
    )  # fmt: skip


@lru_cache
def _sized(size: int, listed: bool) -> Constants:
    return Constants(SIZE=size, LISTED=listed)
