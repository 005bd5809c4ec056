"""The host's side of the backward kernels for Hopper: descriptors, launches, and what they cannot take.

of_rows(call, stats, dy, lists, tiles)   → dq (B, H, N, D), sums of row terms (B, H, N)
of_keys(call, stats, dy, lists, tiles)   → dk (B, G, n, D), dv (B, G, n, E), sums of column terms (B, H, n)
of_both(call, stats, dy, lists, way)     → dq, dk, dv, sums of column terms: dS is made once, and kept in between

stats: templates.launch.row_stats. The gradients have the order of axes in memory of what they belong to.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import torch

from ..starting import start
from ..templates.common import Constants
from . import launch
from .backward_keys import backward_keys
from .backward_queries import backward_queries
from .backward_rows import backward_rows
from .backward_tilings import HELD, BackwardTiling, GatherTiling, fits, gather_tiling, is_kept, keys_tiling, rows_tiling
from .launch import CACHED, descriptor, padded, unaligned
from .tilings import Traits

TALL = 128  # rows of a tile of dS that is written and read whole


def refusal(call: Any) -> str | None:
    """Why these kernels cannot run a call (templates.launch.Call), as one clause; None where they can."""
    reason = launch.refusal(call.lefts, call.rights, call.v, dropout=call.drop is not None)
    if reason is None and not fits(*_widths(call)):
        width, wide = (int(x.shape[3]) for x in (call.rights[0], call.v))
        return f"dk and dv of 64 keys do not fit into its registers: their vectors have {width} and {wide} numbers"
    return reason


# -- two ways back ---------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Five:
    """Five products: the kernel that holds keys keeps dS of some pairs (b, g) at a time, and another makes dq of it."""

    keys: BackwardTiling
    queries: GatherTiling
    pairs: int


@dataclass(frozen=True)
class Seven:
    """Seven products: each kernel makes dS for itself, and nothing is kept."""

    rows: BackwardTiling
    keys: BackwardTiling


def way(call: Any, traits: Traits, memory: int) -> Five | Seven:
    """How to go back, if dS may take so many bytes between two kernels."""
    widths, pulls = _widths(call), _pulls(call, "ROW_PULLS")
    keys = keys_tiling(*widths, traits, kept=True)
    most = memory // _Slants.of(call, keys).bytes
    if pulls or most == 0 or not is_kept(*widths, traits):
        return Seven(rows_tiling(*widths, traits), keys_tiling(*widths, traits))
    return Five(keys, gather_tiling(*widths, traits), _even(_groups(call), max(1, most // 2)))


@dataclass(frozen=True)
class _Slants:
    """dS of one pair (b, g): blocks of 64 keys and of 64 rows, for each head of the group."""

    group: int
    across: int
    down: int
    bytes: int

    @classmethod
    def of(cls, call: Any, tiles: BackwardTiling) -> _Slants:
        across = -(-int(call.v.shape[2]) // tiles.held) * tiles.warpgroups
        down = -(-call.shape[2] // (2 * TALL)) * (2 * TALL // HELD)  # whole tiles of either GatherTiling
        size = call.group * across * down * HELD * HELD * call.lefts[0].element_size()
        return cls(call.group, across, down, max(size, 1))

    def room(self, pairs: int, like: Any) -> Any:
        shape = pairs * self.group * self.across, self.down, HELD, HELD
        return torch.empty(shape, dtype=like.dtype, device=like.device)


def _even(number: int, most: int) -> int:
    """How many of some things are done at a time, at most `most`, so that all parts are about equal."""
    return -(-number // -(-number // most))


# -- the kernels -----------------------------------------------------------------------------------------------


def of_rows(call: Any, stats: Any | None, dy: Any, lists: Any | None, tiles: BackwardTiling) -> tuple[Any, Any]:
    """dq, and what is pulled to rows.    lists: blocks.Lists of tiles.held × tiles.block, for each tile of rows."""
    batch, heads, rows = call.shape
    pulls, dq = _pulls(call, "ROW_PULLS"), room_like(call.lefts[0])
    sums = _room(call, pulls, rows)
    arguments = (*_sides(call, HELD, tiles.block, dy), descriptor(dq, HELD), *_pointers(call, stats, sums))
    met = _size(heads, call.rights[0], call.v)
    _job(backward_rows, call, arguments, lists, _sizes(call, stats), tiles, rows, met).run(0, batch * heads)
    return dq, sums.unbind(2)[:pulls]


def of_keys(call: Any, stats: Any | None, dy: Any, lists: Any | None, tiles: BackwardTiling) -> tuple[Any, Any, Any]:
    """dk, dv, and what is pulled to columns.    lists: of tiles.held keys × tiles.block rows, for each tile of keys."""
    dk, dv, columns, job = _keys(call, stats, dy, lists, tiles, None, 0)
    job.run(0, _groups(call))
    return dk, dv, columns


def of_both(call: Any, stats: Any | None, dy: Any, lists: tuple[Any, Any], way: Five) -> tuple[Any, Any, Any, Any]:
    """dq, dk, dv, and what is pulled to columns.

    lists: blocks.Lists of TALL rows × way.keys.held keys, in parts of 64, for each tile of rows and for each of keys
    """
    slants, dq = _Slants.of(call, way.keys), room_like(call.lefts[0])
    kept = slants.room(2 * way.pairs, call.lefts[0])
    dk, dv, columns, keys = _keys(call, stats, dy, lists[1], way.keys, kept, slants.across)
    arguments = (
        descriptor(call.rights[0], HELD), descriptor(dq, HELD), descriptor(kept, HELD),
        call.start if stats is None else stats, call.data or (0,),
    )  # fmt: skip
    sizes, (_, heads, rows) = _sizes(call, stats, slants.across), call.shape
    queries = _job(
        backward_queries, call, arguments, lists[0], sizes, way.queries, rows, _size(heads, call.rights[0])
    )
    with Side(call.v.device) as side:
        for number, first in enumerate(range(0, _groups(call), way.pairs)):
            pairs, base = min(way.pairs, _groups(call) - first), first - number % 2 * way.pairs
            side.await_place(number % 2)
            keys.run(first, pairs, base)
            with side.beside(number % 2):
                queries.run(first * call.group, pairs * call.group, base * call.group)
    return dq, dk, dv, columns


class Side:
    """A second stream of the device, in which dq is made while the next dS is."""

    def __init__(self, device: Any) -> None:
        self.stream = _second(device) if device.type == "cuda" else None
        self.left: dict[int, Any] = {}

    def __enter__(self) -> Side:
        return self

    def __exit__(self, *_: object) -> None:
        if self.stream is not None:
            torch.cuda.current_stream(self.stream.device).wait_stream(self.stream)

    def await_place(self, place: int) -> None:
        """Wait until what stood in a place has been read."""
        if place in self.left:
            torch.cuda.current_stream(self.stream.device).wait_event(self.left[place])

    @contextmanager
    def beside(self, place: int) -> Iterator[None]:
        """What is started within begins when all before it has ended, and what comes after does not wait for it."""
        if self.stream is None:
            yield
            return
        self.stream.wait_stream(torch.cuda.current_stream(self.stream.device))
        with torch.cuda.stream(self.stream):
            yield
            self.left[place] = self.stream.record_event()


@lru_cache
def _second(device: Any) -> Any:
    return torch.cuda.Stream(device, priority=-1)


def _keys(
    call: Any, stats: Any | None, dy: Any, lists: Any | None, tiles: BackwardTiling, kept: Any | None, across: int
) -> tuple[Any, Any, Any, _Job]:
    """dk, dv, what is pulled to columns, and the job that makes them; dS goes where it is kept."""
    pulls, dk, dv = _pulls(call, "COLUMN_PULLS"), room_like(call.rights[0]), room_like(call.v)
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
    together: int  # pairs that what the programs meet stays cached of, at most
    ordered: int
    programs: int | None  # that are launched, at most

    def run(self, first: int, pairs: int, base: int = 0) -> None:
        """One program for each tile of what is held, or fewer that take tiles in turn; `base`: whose dS stands first."""
        together, programs = launch._divisor(pairs, self.together), pairs * self.tiles
        launched = programs if self.programs is None else min(programs, self.programs)
        rounds = -(-programs // launched)
        where = programs, rounds, together * self.tiles, together, self.ordered, first, base
        start(self.kernel, (launched,), *self.arguments, where, *self.constants, **self.options)


def _job(
    kernel: Any, call: Any, arguments: Any, lists: Any | None, sizes: Any, tiles: Any, length: int, met: float
) -> _Job:
    """For rows or keys, `length` of them in a pair, which meets so many bytes."""
    listed = *launch._listed(call.start, lists), sizes
    constants = call.formula, _sized(tiles, lists is not None, call.group == 1)
    together = 1 if lists is None else max(1, int(CACHED // max(met, 1)))
    most = launch._processors(call.v.device) if getattr(tiles, "persistent", False) else None
    count, ordered = -(-length // tiles.held), launch.ordered(lists)
    return _Job(kernel, (*arguments, *listed), constants, tiles.options, count, together, ordered, most)


def _sides(call: Any, tall: int, wide: int, dy: Any) -> tuple[Any, ...]:
    """q, k, v and dy in tiles of so many rows and keys."""
    made = (call.lefts[0], tall), (call.rights[0], wide), (call.v, wide), (readable(dy), tall)
    return tuple(descriptor(x, size) for x, size in made)


def _pointers(call: Any, stats: Any | None, sums: Any) -> tuple[Any, ...]:
    return sums if stats is None else stats, sums, call.start, call.data or (0,)


def _sizes(call: Any, stats: Any | None, across: int = 0) -> tuple[int, ...]:
    room = 0 if stats is None else int(stats.shape[3])
    return call.shape[1], call.group, call.shape[2], int(call.v.shape[2]), room, across


def _size(heads: int, *met: Any) -> float:
    """Bytes of what the tiles of one pair meet, where `heads` heads are held."""
    return sum(x.shape[2] * x.shape[3] * x.element_size() * (x.shape[1] / heads) for x in met)


def _groups(call: Any) -> int:
    """Pairs (b, g)."""
    return int(call.shape[0] * call.v.shape[1])


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
def _sized(tiles: Any, listed: bool, one_scale: bool) -> Constants:
    return Constants(LISTED=listed, ONE_SCALE=one_scale, **tiles.constants)
