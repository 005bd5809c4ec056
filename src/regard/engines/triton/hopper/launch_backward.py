"""The host's side of the backward kernels for Hopper: descriptors, launches, and what they cannot take.

of_rows(call, stats, dy, lists, tiles)   → dq (B, H, N, D), sums of row terms (B, H, pulls, N)
of_keys(call, stats, dy, lists, tiles)   → dk (B, G, n, D), dv (B, G, n, E), sums of column terms (B, H, n)
of_both(call, stats, dy, lists, …)       → all of these and sums of i − j: dS is made once, and kept

stats: templates.launch.row_stats. The gradients have the order of axes in memory of what they belong to.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import torch

from ..starting import Known, sixteens, start
from ..templates.bands import sum_bands
from ..templates.common import Constants
from ..templates.kept import room_for, slants_of
from ..templates.launch import Gradients, room_like
from . import launch
from .backward_keys import backward_keys
from .backward_queries import backward_queries
from .backward_rows import backward_rows
from .backward_tilings import (
    HELD,
    BackwardTiling,
    GatherTiling,
    fits,
    gather_tiling,
    is_kept,
    kept_tiling,
    keys_tiling,
    rows_tiling,
)
from .launch import CACHED, descriptor, padded, readable_step, unaligned
from .tilings import Traits


def refusal(call: Any) -> str | None:
    """Why these kernels cannot run a call (templates.launch.Call), as one clause; None where they can."""
    reason = launch.refusal(call.lefts, call.rights, call.v, dropout=call.drop is not None)
    if reason is None and not fits(*_widths(call)):
        width, wide = (int(x.shape[3]) for x in (call.rights[0], call.v))
        return f"dk and dv of 64 keys do not fit into its registers: their vectors have {width} and {wide} numbers"
    return reason


# -- two ways back ---------------------------------------------------------------------------------------------


def tilings_of(call: Any, traits: Traits) -> tuple[BackwardTiling, BackwardTiling]:
    """Seven products: the tiles of the kernel that holds rows, and of the one that holds keys; each makes dS."""
    return rows_tiling(*_widths(call), traits), keys_tiling(*_widths(call), traits)


@dataclass(frozen=True)
class Five:
    """Five products: the tiles of the kernel that holds keys and keeps dS, and of the one that makes dq of it."""

    keys: BackwardTiling
    queries: GatherTiling

    @property
    def tile(self) -> tuple[int, int, int]:
        """Rows and keys of a tile of dS that is written and read whole, and the size of its parts."""
        return self.queries.held, self.keys.held, HELD


def five(call: Any, traits: Traits, memory: int | None) -> Five | None:
    """Tiles for dS that is kept; None where it is faster to make it twice, or it may take no memory."""
    if memory == 0 or not is_kept(*_widths(call)):
        return None
    return Five(kept_tiling(traits), gather_tiling(traits))


# -- the kernels -----------------------------------------------------------------------------------------------


def of_rows(call: Any, stats: Any | None, dy: Any, lists: Any | None, tiles: BackwardTiling) -> tuple[Any, Any]:
    """dq, and what is pulled to rows.    lists: blocks.Lists of tiles.held × tiles.block, for each tile of rows."""
    batch, heads, rows = call.shape
    pulls, dq = _pulls(call, "ROW_PULLS"), _room_like(call.lefts[0])
    sums = _room(call, pulls, rows)
    arguments = (*_sides(call, HELD, tiles.block, dy), descriptor(dq, HELD), *_pointers(call, stats, sums))
    met = _size(heads, call.rights[0], call.v)
    _job(backward_rows, call, arguments, lists, _sizes(call, stats), tiles, rows, met).run(0, batch * heads)
    return dq, sums[:, :, :pulls]


def of_keys(call: Any, stats: Any | None, dy: Any, lists: Any | None, tiles: BackwardTiling) -> tuple[Any, Any, Any]:
    """dk, dv, and what is pulled to columns.    lists: of tiles.held keys × tiles.block rows, for each tile of keys."""
    dk, dv, columns, job = _keys(call, stats, dy, lists, tiles, None, 0)
    job.run(0, _groups(call))
    return dk, dv, columns


def of_both(
    call: Any,
    stats: Any | None,
    dy: Any,
    lists: tuple[Any, Any],
    way: Five,
    heads: int,
    offsets: tuple[int, int] | None = None,
    made: tuple[Any, ...] | None = None,
    met: Any | None = None,
) -> Gradients:
    """All gradients, and the sums of dS over i − j, (B, H, 2, length), where asked for.

    lists:   blocks.both_lists of way.tile
    heads:   so many of the batch at a time, fewer where memory is short
    offsets: the highest i − j, and the length
    made:    dq alone, where it is made already
    met:     what dS is multiplied with for dq; k itself unless given
    """
    (across, down), (dq,) = slants_of(call, lists[1], way.tile), made or (_room_like(call.lefts[0]),)
    every, group = call.shape[0] * call.shape[1], call.group
    heads, kept = room_for(heads, call, across, down)
    dk, dv, columns, keys = _keys(call, stats, dy, lists[1], way.keys, kept, across)
    places = call.start if lists[0] is None else lists[0].places.contiguous()
    met = call.rights[0] if met is None else met
    arguments = (
        descriptor(met, HELD), descriptor(dq, HELD), descriptor(kept, HELD),
        call.start if stats is None else stats, call.data or (0,), places,
    )  # fmt: skip
    sizes = _sizes(call, stats, across)
    read = _size(call.shape[1], met)
    queries = _job(backward_queries, call, arguments, lists[0], sizes, way.queries, call.shape[2], read)
    diagonals = None if offsets is None else torch.zeros((*call.shape[:2], 2, offsets[1]), device=dq.device)
    for first in range(0, every, heads):
        count = min(heads, every - first)
        keys.run(first // group, count // group)
        if made is None:
            queries.run(first, count)
        if offsets is not None:
            here = range(first, first + count)
            sum_bands(call, kept, across, lists[1], way.tile[:2], here, offsets[0], diagonals)
    return Gradients((dq,), (dk,), dv, columns, diagonals=diagonals)


def _keys(
    call: Any, stats: Any | None, dy: Any, lists: Any | None, tiles: BackwardTiling, kept: Any | None, across: int
) -> tuple[Any, Any, Any, _Job]:
    """dk, dv, what is pulled to columns, and the job that makes them; dS goes where it is kept."""
    pulls, dk, dv = _pulls(call, "COLUMN_PULLS"), _room_like(call.rights[0]), _room_like(call.v)
    keys = int(call.v.shape[2])
    sums = _room(call, pulls, keys)
    outs = (dk, dv, dk if kept is None else kept)
    arguments = (
        *_sides(call, tiles.block, HELD, dy), *(descriptor(x, HELD) for x in outs), *_pointers(call, stats, sums),
    )  # fmt: skip
    met = _size(int(call.v.shape[1]), call.lefts[0], dy)
    job = _job(backward_keys, call, arguments, lists, _sizes(call, stats, across), tiles, keys, met)
    return dk, dv, sums.unbind(2)[:pulls], job


# -- launches --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Job:
    """A kernel with all that it is started with, but for the pairs (b, head) that it runs."""

    kernel: Any
    arguments: tuple[Any, ...]
    constants: tuple[Any, ...]
    options: dict[str, Any]
    tiles: int  # of a pair
    together: int | None  # pairs that what the programs meet stays cached of, at most; without lists none
    ordered: int

    def run(self, first: int, pairs: int) -> None:
        """One program for each tile of what is held."""
        programs, together = pairs * self.tiles, launch.section(pairs, self.together)
        where = programs, Known(1), together * self.tiles, together, self.ordered, first
        start(self.kernel, (programs,), *self.arguments, where, *self.constants, **self.options)


def _job(
    kernel: Any, call: Any, arguments: Any, lists: Any | None, sizes: Any, tiles: Any, length: int, met: float
) -> _Job:
    """For rows or keys, `length` of them in a pair, which meets so many bytes."""
    listed = *launch.listed(call.start, lists), sizes
    constants = call.formula, _sized(tiles, lists is not None, call.group == 1)
    together = None if lists is None else max(1, int(CACHED // max(met, 1)))
    count, ordered = -(-length // tiles.held), launch.ordered(lists)
    return _Job(kernel, (*arguments, *listed), constants, tiles.options, count, together, ordered)


def _sides(call: Any, tall: int, wide: int, dy: Any) -> tuple[Any, ...]:
    """q, k, v and dy in tiles of so many rows and keys."""
    made = (call.lefts[0], tall), (call.rights[0], wide), (call.v, wide), (readable(dy), tall)
    return tuple(descriptor(x, size) for x, size in made)


def _pointers(call: Any, stats: Any | None, sums: Any) -> tuple[Any, ...]:
    return sums if stats is None else stats, sums, call.start, call.data or (0,)


def _sizes(call: Any, stats: Any | None, across: int = 0) -> tuple[int, ...]:
    room = Known(0 if stats is None else stats.shape[3])
    return call.shape[1], Known(call.group), *sixteens(call.shape[2], int(call.v.shape[2])), room, across


def _size(heads: int, *met: Any) -> float:
    """Bytes of what the tiles of one pair meet, where `heads` heads are held."""
    return float(sum(x.shape[2] * x.shape[3] * x.element_size() * (x.shape[1] / heads) for x in met))


def _groups(call: Any) -> int:
    """Pairs (b, g)."""
    return int(call.shape[0] * call.v.shape[1])


def readable(x: Any) -> Any:
    """x, copied where the chip's copy engine cannot read it."""
    return x if unaligned(x) is None else _room_like(x).copy_(x)


def _room_like(x: Any) -> Any:
    return room_like(x, readable_step(x))


def _room(call: Any, pulls: int, length: int) -> Any:
    batch, heads, _ = call.shape
    return torch.empty((batch, heads, max(pulls, 1), length), dtype=torch.float32, device=call.v.device)


def _pulls(call: Any, flag: str) -> int:
    return int(getattr(call.formula, flag))


def _widths(call: Any) -> tuple[int, int]:
    return padded(int(call.rights[0].shape[3])), padded(int(call.v.shape[3]))


@lru_cache(maxsize=1024)
def _sized(tiles: Any, listed: bool, one_scale: bool) -> Constants:
    return Constants(LISTED=listed, ONE_SCALE=one_scale, **tiles.constants)
