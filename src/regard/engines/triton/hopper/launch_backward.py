"""The host's side of the backward kernels for Hopper: descriptors, launches, and what they cannot take.

of_rows(call, stats, dy, lists, tiles)   → dq (B, H, N, D), sums of row terms (B, H, N)
of_keys(call, stats, dy, lists, tiles)   → dk (B, G, n, D), dv (B, G, n, E), sums of column terms (B, H, n)

stats: templates.launch.row_stats. The gradients have the order of axes in memory of what they belong to.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import torch

from ..starting import start
from ..templates.common import Constants
from . import launch
from .backward_keys import backward_keys
from .backward_rows import backward_rows
from .backward_tilings import HELD, BackwardTiling, fits, keys_tiling, rows_tiling
from .launch import CACHED, descriptor, padded, unaligned
from .tilings import Traits


def refusal(call: Any) -> str | None:
    """Why these kernels cannot run a call (templates.launch.Call), as one clause; None where they can."""
    reason = launch.refusal(call.lefts, call.rights, call.v, dropout=call.drop is not None)
    if reason is None and not fits(*_widths(call)):
        width, wide = (int(x.shape[3]) for x in (call.rights[0], call.v))
        return f"dk and dv of 64 keys do not fit into its registers: their vectors have {width} and {wide} numbers"
    return reason


def tilings_of(call: Any, traits: Traits) -> tuple[BackwardTiling, BackwardTiling]:
    """The tiles of the kernel that holds rows, and of the one that holds keys."""
    return rows_tiling(*_widths(call), traits), keys_tiling(*_widths(call), traits)


def of_rows(call: Any, stats: Any | None, dy: Any, lists: Any | None, tiles: BackwardTiling) -> tuple[Any, Any]:
    """dq, and what is pulled to rows.    lists: blocks.Lists of tiles.held × tiles.block, for each tile of rows."""
    _, heads, rows = call.shape
    pulls, dq = _pulls(call, "ROW_PULLS"), room_like(call.lefts[0])
    sums = _room(call, pulls, rows)
    tall_wide, met = (HELD, tiles.block), (call.rights[0], call.v)
    _run(backward_rows, call, stats, dy, lists, tiles, tall_wide, (rows, heads), (dq,), sums, met)
    return dq, sums.unbind(2)[:pulls]


def of_keys(call: Any, stats: Any | None, dy: Any, lists: Any | None, tiles: BackwardTiling) -> tuple[Any, Any, Any]:
    """dk, dv, and what is pulled to columns.    lists: of tiles.held keys × tiles.block rows, for each tile of keys."""
    groups, keys = int(call.v.shape[1]), int(call.v.shape[2])
    pulls, dk, dv = _pulls(call, "COLUMN_PULLS"), room_like(call.rights[0]), room_like(call.v)
    sums = _room(call, pulls, keys)
    tall_wide, met = (tiles.block, HELD), (call.lefts[0], dy)
    _run(backward_keys, call, stats, dy, lists, tiles, tall_wide, (keys, groups), (dk, dv), sums, met)
    return dk, dv, sums.unbind(2)[:pulls]


def _run(
    kernel: Any,
    call: Any,
    stats: Any | None,
    dy: Any,
    lists: Any | None,
    tiles: BackwardTiling,
    tall_wide: tuple[int, int],  # rows of a tile of q and dy, and of k and v
    held: tuple[int, int],  # how many rows or keys there are, and heads of them
    outs: tuple[Any, ...],
    sums: Any,
    met: tuple[Any, Any],
) -> None:
    """One program for each tile of what is held, or fewer that take tiles in turn."""
    tall, wide = tall_wide
    sizes = (call.shape[1], call.group, call.shape[2], int(call.v.shape[2]), 0 if stats is None else stats.shape[3])
    programs, section, together = _programs(call, lists, -(-held[0] // tiles.held), held[1], met)
    launched = min(programs, launch._processors(call.v.device)) if tiles.persistent else programs
    start(
        kernel,
        (launched,),
        descriptor(call.lefts[0], tall),
        descriptor(call.rights[0], wide),
        descriptor(call.v, wide),
        descriptor(readable(dy), tall),
        *(descriptor(x, HELD) for x in outs),
        sums if stats is None else stats,
        sums,
        call.start,
        call.data or (0,),
        *launch._listed(call.start, lists),
        sizes,
        (programs, -(-programs // launched), section, together, launch.ordered(lists)),
        call.formula,
        _sized(tiles, lists is not None, call.group == 1),
        **tiles.options,
    )


def _programs(call: Any, lists: Any | None, tiles: int, heads: int, met: tuple[Any, Any]) -> tuple[int, int, int]:
    """(programs, programs of a section, pairs (b, head) of a section): what a section's programs meet stays cached."""
    pairs, together = call.shape[0] * heads, 1
    if lists is not None:
        size = sum(x.shape[2] * x.shape[3] * x.element_size() * (x.shape[1] / heads) for x in met)
        together = launch._divisor(pairs, max(1, int(CACHED // size)))
    return pairs * tiles, together * tiles, together


def readable(x: Any) -> Any:
    """x, copied where the chip's copy engine cannot read it."""
    return x if unaligned(x) is None else room_like(x).copy_(x)


def room_like(x: Any) -> Any:
    """Room for an array (B, heads, length, width), its axes ordered in memory as those of x, vectors 16 bytes apart."""
    batch, heads, length, width = x.shape
    step = 16 // x.element_size()
    room, made = -(-width // step) * step, {"dtype": x.dtype, "device": x.device}
    if x.stride(1) < x.stride(2):
        return torch.empty((batch, length, heads, room), **made).transpose(1, 2)[..., :width]
    return torch.empty((batch, heads, length, room), **made)[..., :width]


def _room(call: Any, pulls: int, length: int) -> Any:
    batch, heads, _ = call.shape
    return torch.empty((batch, heads, max(pulls, 1), length), dtype=torch.float32, device=call.v.device)


def _pulls(call: Any, flag: str) -> int:
    return int(getattr(call.formula, flag))


def _widths(call: Any) -> tuple[int, int]:
    return padded(int(call.rights[0].shape[3])), padded(int(call.v.shape[3]))


@lru_cache(maxsize=1024)
def _sized(tiles: BackwardTiling, listed: bool, one_scale: bool) -> Constants:
    return Constants(LISTED=listed, ONE_SCALE=one_scale, **tiles.constants)
