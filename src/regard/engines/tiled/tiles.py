"""Which blocks of pairs are computed, in what order and in what size.

The pairs of a call are cut into chunks of (batch, heads), those into bands of rows, and each band into blocks of
keys. What the mask's algebra says of a block decides: none is never computed, all needs no mask, some gets one.
A band's keys are halved until a piece is all or none, or as narrow as a cell.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from ...algebra.formula import Formula
from ...algebra.functions import Interval
from ...algebra.intervals import TableRange
from ...algebra.laws import Admits, is_of_difference, table_ranges
from ...algebra.nodes import BATCH, HEAD, Given, Read, dependencies, walk
from ..call import Call
from ..tables import once


@dataclass(frozen=True)
class Limits:
    """The sizes that were measured to be the fastest."""

    rows: int = 256
    columns: int = 512
    cell: int = 128  # the narrowest piece of a band that is looked at by itself
    pairs: int = 2**20  # of a block: four megabytes in float32


LIMITS = Limits()


@dataclass(frozen=True)
class Chunk:
    """Some batches with all their heads, or some heads of one batch."""

    batch: slice
    heads: slice  # of queries
    group: int

    @property
    def key_heads(self) -> slice:
        return slice(self.heads.start // self.group, self.heads.stop // self.group)

    @property
    def count(self) -> int:
        return int(self.batch.stop - self.batch.start) * int(self.heads.stop - self.heads.start)


@dataclass(frozen=True)
class Block:
    """Keys [first, last) for one band of rows, and whether the mask must be applied."""

    first: int
    last: int
    masked: bool


@dataclass(frozen=True)
class Sizes:
    """How large blocks are."""

    rows: int
    columns: int
    chunk: int  # of (batch, heads)
    cell: int

    @property
    def pairs(self) -> int:
        return self.rows * self.columns * self.chunk


def sizes(call: Call) -> Sizes:
    """Blocks of 8 heads × 256 × 512 or as many pairs; more rows where there are fewer heads."""
    pairs, cell = LIMITS.pairs, LIMITS.cell
    rows, columns = min(call.queries, LIMITS.rows), min(call.keys, LIMITS.columns)
    count = max(1, call.batch * call.heads)
    chunk = max(1, min(count, pairs // max(1, rows * columns)))
    if chunk < call.group:  # query heads that read one key head go together
        chunk = min(count, call.group)
        rows = max(1, min(rows, pairs // max(1, columns * chunk)))
    more = pairs // max(1, chunk * columns)
    rows = max(rows, min(call.queries, more // cell * cell, 2 * LIMITS.rows))
    return Sizes(max(1, rows), max(1, columns), chunk, cell)


def chunks(call: Call, size: int) -> Iterator[Chunk]:
    """The (batch, heads) of a call in pieces of about `size`; batches whose queries start apart stay apart."""
    heads, group = call.heads, call.group
    if heads == 0:
        return
    together = size // heads if len(set(call.start.tolist())) <= 1 else 1
    if together >= 1 and (size >= heads):
        for first in range(0, call.batch, together):
            yield Chunk(slice(first, min(first + together, call.batch)), slice(0, heads), group)
        return
    step = max(group, size // group * group)
    for b in range(call.batch):
        for first in range(0, heads, step):
            yield Chunk(slice(b, b + 1), slice(first, min(first + step, heads)), group)


class Schedule:
    """The blocks of every band of rows of a call."""

    def __init__(self, call: Call, size: Sizes) -> None:
        self.call, self.size, self.mask = call, size, call.formula.mask
        self.bands = [slice(r, min(r + size.rows, call.queries)) for r in range(0, call.queries, size.rows)]
        self._facts = None if self.mask is None else _facts(call.formula)
        self._known: dict[Any, tuple[Block, ...]] = {}
        self.looks = 0  # into tables, for what the mask says of a block

    def blocks(self, chunk: Chunk, band: slice) -> tuple[Block, ...]:
        """The blocks of keys that a band of rows reads."""
        call, width = self.call, self.size.columns
        if self._facts is None:
            return _cut(0, call.keys, width, False)
        starts = call.start[chunk.batch].tolist()
        rows = min(starts) + band.start, max(starts) + band.stop
        sizes = (call.heads, call.width, call.keys)
        if self._facts.is_fixed:
            return _fixed(call.formula, rows, sizes, self.size)
        key = (rows, (chunk.batch.start, chunk.heads.start) if self._facts.varies else None)
        if key not in self._known:
            self._known[key] = self._found(chunk, rows)
        return self._known[key]

    def _found(self, chunk: Chunk, rows: tuple[int, int]) -> tuple[Block, ...]:
        call = self.call
        heads, batch = ((part.start, part.stop) for part in (chunk.heads, chunk.batch))
        sizes = {"H": call.heads, "d": call.width, "n": call.keys}

        tables = _ranges(call, int(call.start[chunk.batch.start]))

        def verdict(first: int, last: int) -> Admits:
            self.looks += 1
            return call.formula.laws.block(rows, (first, last), sizes=sizes, heads=heads, batch=batch, tables=tables)

        return _joined(_halved(0, call.keys, self.size.cell, verdict), self.size.columns)


def _ranges(call: Call, start: int) -> TableRange:
    """The lowest and highest entry of a table between indices; masks of the call count rows from `start`."""
    arrays = {name: once(table) for name, table in call.tables.items()}
    plain = table_ranges(arrays)

    def lookup(name: str, ends: list[Interval]) -> Interval:
        if call.formula.ranks[name] >= 0:
            return plain(name, ends)
        ends[2] = ends[2][0] - start, ends[2][1] - start
        part = arrays[name]
        for axis, (low, high) in enumerate(ends):
            if part.shape[axis] > 1:
                part = part.narrow(axis, int(low), int(high - low) + 1)
        return float(part.all()), float(part.any())

    return lookup


@dataclass(frozen=True)
class _Facts:
    is_fixed: bool  # known from i, j and the sizes alone
    varies: bool  # with b or h


@lru_cache(maxsize=512)
def _facts(formula: Formula) -> _Facts:
    assert formula.mask is not None
    node = formula.mask.node
    reads = any(isinstance(part, Read | Given) for part in walk(node))
    varies = bool(dependencies(node) & {BATCH, HEAD})
    return _Facts(not reads and not varies, varies)


@lru_cache(maxsize=65536)
def _fixed(formula: Formula, rows: tuple[int, int], sizes: tuple[int, int, int], size: Sizes) -> tuple[Block, ...]:
    """The blocks of a mask of i, j and sizes alone: the same for every call."""
    assert formula.mask is not None
    keys = sizes[2]
    if not sees_differences(formula.mask.node):
        known = dict(zip(("H", "d", "n"), sizes, strict=True))
        pieces = _halved(0, keys, size.cell, lambda a, b: formula.laws.block(rows, (a, b), sizes=known))
        return _joined(pieces, size.columns)
    first, last = rows
    farthest = max(abs(first), abs(last), keys, size.cell)
    reach = size.cell << math.ceil(math.log2(farthest / size.cell))
    alike = _along_diagonal(formula, last - first, reach, sizes, size.cell)
    clipped = (Block(max(p.first + first, 0), min(p.last + first, keys), p.masked) for p in alike)
    return _joined((piece for piece in clipped if piece.first < piece.last), size.columns)


@lru_cache(maxsize=4096)
def _along_diagonal(
    formula: Formula, rows: int, reach: int, sizes: tuple[int, int, int], cell: int
) -> tuple[Block, ...]:
    """The pieces of a band of rows that begins at 0, where the mask sees i − j alone: every band moves them."""
    known = dict(zip(("H", "d", "n"), sizes, strict=True))
    return tuple(_halved(-reach, reach, cell, lambda a, b: formula.laws.block((0, rows), (a, b), sizes=known)))


@lru_cache(maxsize=512)
def sees_differences(node: Any) -> bool:
    """Whether a truth is one of i − j and sizes alone."""
    return not dependencies(node) & {BATCH, HEAD} and not node.has(Read, Given) and is_of_difference(node)


def _halved(first: int, last: int, cell: int, verdict: Any) -> Iterator[Block]:
    """Pieces that are all or none, or some and narrow; those that are none are left out."""
    if first >= last:
        return
    said = verdict(first, last)
    if said == Admits.NONE:
        return
    if said == Admits.ALL or last - first <= cell:
        yield Block(first, last, said == Admits.SOME)
        return
    middle = first + cell * math.ceil((last - first) / (2 * cell))
    yield from _halved(first, middle, cell, verdict)
    yield from _halved(middle, last, cell, verdict)


def _joined(pieces: Iterator[Block], width: int) -> tuple[Block, ...]:
    """Neighbours of one kind together, cut to the width of a block."""
    runs: list[Block] = []
    for piece in pieces:
        if runs and runs[-1].last == piece.first and runs[-1].masked == piece.masked:
            runs[-1] = Block(runs[-1].first, piece.last, piece.masked)
        else:
            runs.append(piece)
    return tuple(block for run in runs for block in _cut(run.first, run.last, width, run.masked))


def _cut(first: int, last: int, width: int, masked: bool) -> tuple[Block, ...]:
    return tuple(Block(c, min(c + width, last), masked) for c in range(first, last, width))
