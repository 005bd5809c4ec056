"""The backward pass where G is made once: the kernel that holds keys writes it down, one that holds rows reads it.

    dleft_i = scale Σ_j G_ij right_j            one product, and no formula: what bounds it is the memory of the chip

G of as many heads at a time as fit into the bytes that are allowed, transposed, in blocks of SIZE keys × SIZE rows: for
each block of keys all blocks of rows, or, where a mask leaves tiles out, as many as its list has places.
"""
# mypy: disable-error-code="no-untyped-def, no-untyped-call, untyped-decorator, assignment"
# ruff: noqa: RUF005, SIM102 - Triton knows no starred tuples, and a flag decides whether what it guards is compiled

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import torch
import triton
import triton.language as tl

from ..starting import start
from ..tilings import Tiling
from . import launch
from .bands import sum_bands
from .common import INTERPRETED, block_at, blocks, extended, plus, program, put, spoilt, tile
from .dealing import ACROSS

SIZE = 64  # rows, and keys, of a block
SHARE = 64  # of the chip's memory, one part may hold G

# -- the kernel ------------------------------------------------------------------------------------------------


@triton.jit
def queries_backward(right, dleft, slants, places, data, lists, sizes, kept_of, F: tl.constexpr, S: tl.constexpr):
    """dleft of PARTS · ROWS rows.

    slants:   G: keys_backward
    places:   as the indices of the lists, where the tile of rows stands in the list of a block of keys
    kept_of:  the first head that is kept, and the blocks of keys of each
    """
    H, N, n = sizes
    b, h, t = program(lists, tl.cdiv(N, S.PARTS * S.ROWS), H, kept_of[0], S)
    slot = (b * H + h - kept_of[0]) * kept_of[1]
    held = (b, h // S.GROUP, slot, n)
    listed, _some, count = blocks(lists, b, h, t, n, S.COLUMNS, F, S)
    written = listed
    if S.LISTED:
        there = (places, lists[1], lists[2], lists[3], lists[4], lists[5], lists[6])
        written, _some, _count = blocks(there, b, h, t, n, S.COLUMNS, F, S)
    accs = no_rows(S)
    block, place = block_at(listed, 0, count, S), place_at(written, 0, count, t, S)
    for step in tl.range(0, count):
        ahead, ahead_place = block_at(listed, step + 1, count, S), place_at(written, step + 1, count, t, S)
        accs = taken_in(accs, block, place, held, right, slants, S, False)
        block, place = ahead, ahead_place
    if F.HAS_MASK:
        if spoilt(inside(accs, t, N, S)):  # once more, with zeros for what no row reads
            accs = no_rows(S)
            for step in tl.range(0, count, num_stages=1):
                block, place = block_at(listed, step, count, S), place_at(written, step, count, t, S)
                accs = taken_in(accs, block, place, held, right, slants, S, True)
    scale = 1.0  # of a group: G has the scale of its head already
    if S.GROUP == 1:
        scale = F.product_scales((F.heads(data, b, h), (0.0,), (0.0,), data))[0]
    for part in tl.static_range(S.PARTS):
        first = (t * S.PARTS + part) * S.ROWS
        put(dleft, accs[part] * scale, b, h, first, N, S.ROWS, S.WIDTHS[0], S.PADDED[0])


@triton.jit
def no_rows(S: tl.constexpr):
    found = ()
    for _ in tl.static_range(S.PARTS):
        found = found + (tl.zeros([S.ROWS, S.PADDED[0]], tl.float32),)
    return found


@triton.jit
def place_at(written, step, count, t, S: tl.constexpr):
    """Where a tile of rows stands in what is kept of the block of keys of a step."""
    return block_at(written, step, count, S) if S.LISTED else t


@triton.jit
def taken_in(accs, block, place, held, right, slants, S: tl.constexpr, CAREFUL: tl.constexpr):
    """The sums of all rows with one more block of keys."""
    b, group, slot, n = held
    keys = tile(right, b, group, block * S.COLUMNS, n, S.COLUMNS, S.WIDTHS[0], S.PADDED[0], True)
    found = ()
    for part in tl.static_range(S.PARTS):
        g = tile(slants, slot + block, place * S.PARTS + part, 0, S.COLUMNS, S.COLUMNS, S.ROWS, S.ROWS, False)
        found = found + (plus(accs[part], g.T, keys, S, CAREFUL),)
    return found


@triton.jit
def inside(accs, t, N, S: tl.constexpr):
    """0 in place of rows that are not there: what is kept of them was never written."""
    found = ()
    for part in tl.static_range(S.PARTS):
        r = (t * S.PARTS + part) * S.ROWS + tl.arange(0, S.ROWS)[:, None]
        found = found + (tl.where(r < N, accs[part], 0.0),)
    return found


# -- the host --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Way:
    """The tiles of the kernel that holds keys, and of the one that holds rows."""

    keys: Tiling
    queries: Tiling

    @property
    def tile(self) -> tuple[int, int, int]:
        """Rows and keys of a tile of G that is written and read whole, and the size of its blocks."""
        return self.queries.rows, self.keys.columns, SIZE


def way(call: launch.Call, keys: Tiling, memory: int | None) -> Way | None:
    """How G is kept; None where it may take no memory, or to make it twice is not known to be slower.

    keys: the tiles of the kernel that holds keys
    """
    formula = call.formula
    fits = int(formula.PRODUCTS) == 1 and call.v.element_size() == 2
    is_known = not INTERPRETED.value and launch.has_descriptors(call.v.device) and _width(call) == 128
    asked = is_known if memory is None else memory > 0
    if not (fits and asked and (keys.rows, keys.columns) == (SIZE, SIZE)):
        return None
    return Way(keys, Tiling(2 * SIZE, SIZE, 4, 3))


def of_both(
    call: launch.Call, stats: Any | None, dy: Any, lists: tuple[Any, Any], chosen: Way, heads: int,
    offsets: tuple[int, int] | None = None, made: tuple[Any, ...] | None = None, met: Any | None = None,
) -> launch.Gradients:  # fmt: skip
    """All gradients, and the sums of G over i − j, (B, H, 2, length), where asked for.

    lists:   blocks.both_lists of chosen.tile
    heads:   so many of the batch at a time, fewer where memory is short
    offsets: the highest i − j, and the length
    made:    dlefts, where they are made already
    met:     what G is multiplied with for dlefts; the right side itself unless given
    """
    tiles, rows, every = chosen.queries, call.shape[2], call.shape[0] * call.shape[1]
    across, down = slants_of(call, lists[1], chosen.tile)
    heads, kept = room_for(heads, call, across, down)
    drights, dv, columns, run = launch.keys_run(call, stats, dy, lists[1], chosen.keys, kept, across)
    dlefts = made or (launch.room_like(call.lefts[0]),)
    diagonals = None if offsets is None else torch.zeros((*call.shape[:2], 2, offsets[1]), device=dv.device)
    parts = Tiling(SIZE, tiles.columns, tiles.warps, tiles.stages)
    sizes = extended(launch.constants(call, lists[0], parts), PARTS=tiles.rows // SIZE)
    met = call.rights[0] if met is None else met
    matrices = launch.matrix(met, SIZE, call), launch.strided(dlefts[0]), launch.matrix(kept, SIZE, call)
    places = call.start if lists[0] is None else lists[0].places.contiguous()
    for first in range(0, every, heads):
        count = min(heads, every - first)
        run(first, count)
        if made is None:
            start(
                queries_backward, (triton.cdiv(rows, tiles.rows) * count,), *matrices, places, call.data or (0,),
                launch.listed(lists[0]), call.sizes, (first, across), call.formula, sizes, num_warps=tiles.warps,
                num_stages=tiles.stages,
            )  # fmt: skip
        if offsets is not None:
            here = range(first, first + count)
            sum_bands(call, kept, across, lists[1], chosen.tile[:2], here, offsets[0], diagonals)
    return launch.Gradients(dlefts, drights, dv, columns, diagonals=diagonals)


def room_for(heads: int, call: Any, across: int, down: int) -> tuple[int, Any]:
    """Room for G of so many heads, or of half as many, and so on to one group: the same numbers come of it."""
    heads = min(heads, call.shape[0] * call.shape[1])
    try:
        return heads, call.v.new_empty((heads * across, down, SIZE, SIZE))
    except torch.OutOfMemoryError:
        if heads <= call.group:
            raise
    return room_for(max(1, heads // 2 // call.group) * call.group, call, across, down)


def slants_of(call: Any, by_keys: Any | None, size: tuple[int, int, int]) -> tuple[int, int]:
    """Of G of one head: blocks of keys, and blocks of rows, all of them or as many as the lists name.

    size: rows and keys of a tile, and of a block
    """
    rows, keys, block = size
    across = -(-int(call.v.shape[2]) // keys) * (keys // block)
    return across, -(-call.shape[2] // rows) * (rows // block) if by_keys is None else int(by_keys.indices.shape[3])


def heads_at_once(call: Any, by_keys: Any | None, size: tuple[int, int, int], memory: int | None) -> int:
    """Of how many heads G is kept at a time in so many bytes, whole groups, parts of about one size; 0: not of one."""
    bytes_ = call.group * math.prod(slants_of(call, by_keys, size)) * size[2] ** 2 * call.v.element_size()
    room = usual_memory(call.v.device) if memory is None else memory
    groups = call.shape[0] * call.shape[1] // call.group
    most = min(room // max(bytes_, 1), ACROSS // call.group)
    return 0 if most == 0 else call.group * -(-groups // -(-groups // most))


@lru_cache
def usual_memory(device: Any) -> int:
    return int(torch.cuda.get_device_properties(device).total_memory) // SHARE


def _width(call: launch.Call) -> int:
    return max(launch.padded(int(x.shape[3])) for x in (*call.rights, call.v))
