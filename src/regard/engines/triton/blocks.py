"""Which tiles of pairs are computed, and which of them need the mask.

    indices[b, h, t, :some]        the tiles of which the mask admits some pairs, or that stick out of the arrays
    indices[b, h, t, some:total]   the tiles that it admits whole
    order[b]                       the rows of tiles by falling work
    places, inverse                where a tile stands in the list of one that it meets: for what the one leaves and the
                                   other reads

Tiles that admit no pair are in no list. All is made on the call's device without waiting for it; the lists of masks
of i, j and sizes alone are made once on the host and kept, those of masks that read tables until a table is written.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Literal, NamedTuple

import torch

from ..._arrays import library
from ...algebra.formula import Formula
from ...algebra.nodes import BATCH, HEAD, Given, Pair, Read, dependencies, walk
from ..call import Call
from .extremes import Tiles
from .keeping import Kept, is_captured, of_mask, starts
from .verdicts import verdicts

Held = Literal["rows", "keys"]
HELD: tuple[Held, Held] = ("rows", "keys")
SOME, ALL, NONE = range(3)  # what a tile admits, in the order of the lists


@dataclass(frozen=True)
class Lists:
    """For each tile that is held, the tiles of the other side that it meets."""

    indices: Any  # int32 (B or 1, H or 1, T, W); what stands behind `total` counts nothing
    counts: Any  # int32 (B or 1, H or 1, T, 2): some, total
    order: Any  # int32 (B or 1, T)
    places: Any = None  # int32, as the indices: where the held tile stands in the list of the one that it meets
    inverse: Any = None  # int32 (B or 1, H or 1, T, tiles of the other side): their place in the list; −1 in none


def lists(call: Call, rows: int, columns: int, held: Held = "rows", keep: bool = False) -> Lists:
    """The lists of a call in tiles of rows × columns: of key tiles for each row tile, or the other way round.

    keep: also lists that depend on tables, until PyTorch writes one of them; not where a compiler reuses memory
    """
    (found,) = _lists(call, _Asked(rows, columns, held), keep)
    return found


def both_lists(call: Call, rows: int, columns: int, part: int, keep: bool = False) -> tuple[Lists, Lists]:
    """The lists of row tiles, with their places, and of key tiles, with the inverse: what is met is named in parts."""
    by_rows, by_keys = _lists(call, _Asked(rows, columns, "both", part), keep)
    return by_rows, by_keys


def admitted_pairs(call: Call) -> int:
    """About how many pairs are computed, where the host can tell; otherwise all."""
    every = call.batch * call.heads
    if not _is_fixed(call):
        return every * call.queries * call.keys
    return every * _covered(call.formula, _looks(call))


class _Asked(NamedTuple):
    """What is asked for: tiles, what is held, and the size of the parts in which tiles are named."""

    rows: int
    columns: int
    held: Literal["rows", "keys", "both"]
    part: int = 0


def _lists(call: Call, asked: _Asked, keep: bool) -> tuple[Lists, ...]:
    if _is_fixed(call):
        return _fixed(call.formula, _looks(call), asked, call.q.device)

    def made() -> tuple[Lists, ...]:
        with torch.no_grad():
            return _made(call, asked)

    seen = [*starts(call), *(call.tables[name] for name in of_mask(call.formula))]
    if not keep or _sees_vectors(call.formula) or is_captured(call.q.device):
        return made()
    sizes = call.batch, call.heads, call.queries, call.keys, call.width, call.first
    return KEPT.get((call.formula, sizes, asked), call.q.device, seen, made)


# -- masks of tables -----------------------------------------------------------------------------------------------

KEPT: Kept[tuple[Lists, ...]] = Kept(16)


@lru_cache(maxsize=512)
def _sees_vectors(formula: Formula) -> bool:
    return any(isinstance(part, Pair) for part in walk(formula.admitted))


# -- masks that the host knows -----------------------------------------------------------------------------------

Looks = tuple[int, int, int, int, int, Any]


def _looks(call: Call) -> Looks:
    """All that a mask of i, j and sizes can see of a call."""
    assert call.first is not None
    return call.queries, call.keys, call.heads, call.width, call.first, call.dtype


def _is_fixed(call: Call) -> bool:
    return call.first is not None and _sees_places(call.formula)


@lru_cache(maxsize=512)
def _sees_places(formula: Formula) -> bool:
    """Whether the mask sees i, j, sizes and vectors, but no table, no head and no batch."""
    node = formula.admitted
    return not any(isinstance(part, Read | Given) for part in walk(node)) and not dependencies(node) & {BATCH, HEAD}


@lru_cache(maxsize=64)
def _fixed(formula: Formula, looks: Looks, asked: _Asked, device: Any) -> tuple[Lists, ...]:
    with torch.inference_mode(False), torch.no_grad():  # kept for calls that are differentiated
        return tuple(_moved(made, device) for made in _made(_on_host(formula, looks), asked, short=True))


def _moved(made: Lists, device: Any) -> Lists:
    parts = (made.indices, made.counts, made.order, made.places, made.inverse)
    return Lists(*(None if part is None else part.to(device) for part in parts))


@lru_cache(maxsize=512)
def _covered(formula: Formula, looks: Looks) -> int:
    """The pairs of one head in tiles that are not left out."""
    tiles = Tiles(_on_host(formula, looks), *(max(128, -(-size // 512)) for size in looks[:2]))
    _, possible = _admitted(tiles, verdicts(tiles), "rows")
    (top, bottom), (left, right) = tiles.positions(), tiles.keys()
    return int((possible * (bottom - top + 1) * (right - left + 1)).sum())


def _on_host(formula: Formula, looks: Looks) -> Call:
    """A call that looks the same, of arrays that hold nothing."""
    queries, keys, heads, width, first, dtype = looks
    q, k = (torch.empty((), dtype=dtype, device="cpu").expand(1, heads, size, width) for size in (queries, keys))
    start = torch.full((1,), first, dtype=torch.int64, device="cpu")
    return Call(formula, library(q), q, k, None, {}, start, first, (1, heads), {"q": q, "k": k}, False)


# -- lists -----------------------------------------------------------------------------------------------------


def _made(call: Call, asked: _Asked, *, short: bool = False) -> tuple[Lists, ...]:
    """The lists that are asked for; short: no longer than the longest, which the host must know."""
    tiles = Tiles(call, asked.rows, asked.columns)
    cut = _cut if short else _same
    found = verdicts(tiles)
    if asked.held != "both":
        return (cut(_listed(*_admitted(tiles, found, asked.held))),)
    by_rows, by_keys = (cut(_listed(*_admitted(tiles, found, held))) for held in HELD)
    inverse = _inverse(by_keys, int(by_rows.indices.shape[2]))
    by_rows = replace(by_rows, places=inverse.transpose(-1, -2).gather(-1, by_rows.indices.long()))
    by_keys = replace(by_keys, inverse=inverse)
    return _parted(by_rows, asked.columns // asked.part), _parted(by_keys, asked.rows // asked.part)


def _same(made: Lists) -> Lists:
    return made


def _cut(made: Lists) -> Lists:
    longest = max(1, int(made.counts[..., 1].max())) if made.counts.numel() else 0
    return replace(made, indices=made.indices[..., :longest].contiguous())


def _admitted(tiles: Tiles, found: tuple[Any, Any], held: Held) -> tuple[Any, Any]:
    """(sure, possible), (B or 1, H or 1, held tiles, met tiles); a tile that sticks out of the keys is never sure.

    Rows that stick out are not written where rows are held; where keys are, they would be summed: so not sure either.
    """
    sure, possible = found
    sure = sure & _inside(tiles.call.keys, tiles.columns, tiles.across, tiles.device)
    if held == "rows":
        return sure, possible
    sure = sure & _inside(tiles.call.queries, tiles.rows, tiles.down, tiles.device)[:, None]
    return sure.transpose(-1, -2), possible.transpose(-1, -2)


def _inside(length: int, size: int, count: int, device: Any) -> Any:
    return (torch.arange(count, device=device) + 1) * size <= length


def _listed(sure: Any, possible: Any) -> Lists:
    """Some first, then all, then none, each ascending: equal kinds keep their order."""
    kind = torch.where(possible, torch.where(sure, ALL, SOME), NONE).to(torch.int8)
    counts = torch.stack(((kind == SOME).sum(-1), possible.sum(-1)), -1).to(torch.int32)
    order = counts[..., 1].sum(1).argsort(dim=-1, descending=True, stable=True).to(torch.int32)
    return Lists(kind.argsort(dim=-1, stable=True).to(torch.int32), counts, order)


def _inverse(made: Lists, tiles: int) -> Any:
    """Where each tile that could be met stands in a list; those behind its end in none."""
    indices = made.indices
    place = torch.arange(indices.shape[-1], dtype=torch.int32, device=indices.device).expand(indices.shape)
    place = torch.where(place < made.counts[..., 1:], place, -1)
    return indices.new_full((*indices.shape[:3], tiles), -1).scatter_(-1, indices.long(), place)


def _parted(made: Lists, parts: int) -> Lists:
    """Every tile that is met, named as its parts."""
    part = torch.arange(parts, dtype=torch.int32, device=made.indices.device)
    indices = (made.indices[..., None] * parts + part).flatten(-2)
    places = None if made.places is None else made.places.repeat_interleave(parts, -1)
    return Lists(indices, made.counts * parts, made.order, places, made.inverse)
