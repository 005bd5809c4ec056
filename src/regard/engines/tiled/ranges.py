"""Every read that counts stands inside its table: by intervals where they tell, by looking where they do not."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import torch

from ...algebra.fold import fold
from ...algebra.formula import Formula, GuardedRead
from ...algebra.intervals import Intervals
from ...algebra.nodes import BATCH, HEAD, HEADS, KEYS, WIDTH, I, J, Pair, symbols
from ..call import Call
from ..tables import refuse_range
from ..vectors import bounds
from .run import Band, Run
from .tiles import Block, Chunk


def check_ranges(run: Run) -> None:
    """Refuse a call whose admitted pairs read outside a table."""
    doubtful = [guarded for guarded in _early(run.call.formula) if not _is_inside(run.call, guarded)]
    if not doubtful:
        return
    for chunk in run.chunks():
        for band in run.bands(chunk):
            for block in run.schedule.blocks(chunk, band.rows):
                for guarded in doubtful:
                    if not _is_inside(run.call, guarded, chunk, band, block):
                        _look(run, guarded, band, block)


@lru_cache(maxsize=512)
def _early(formula: Formula) -> tuple[GuardedRead, ...]:
    """The reads whose places the score does not decide; the others are looked at when they are made."""
    return tuple(
        guarded
        for guarded in formula.reads
        if not guarded.needs_score and not any(isinstance(symbol, Pair) for symbol in symbols(guarded.read))
    )


def _is_inside(
    call: Call, guarded: GuardedRead, chunk: Chunk | None = None, band: Band | None = None, block: Block | None = None
) -> bool:
    """Whether intervals show that a read stays inside its table, in the whole call or in one block."""
    ranges: dict[Any, Any] = {HEADS: (call.heads,) * 2, KEYS: (call.keys,) * 2, WIDTH: (call.width,) * 2}
    ranges |= {BATCH: (0, call.batch - 1), HEAD: (0, call.heads - 1), I: bounds(call), J: (0, call.keys - 1)}
    if chunk is not None and band is not None and block is not None:
        starts = call.start[chunk.batch].tolist()
        ranges[I] = min(starts) + band.rows.start, max(starts) + band.rows.stop - 1
        ranges[J] = block.first, block.last - 1
    sizes = call.tables[guarded.read.table].shape
    reading = Intervals(ranges, lambda name, _: _extremes(call.tables[name]))
    ends = [fold(index, reading) for index in guarded.read.indices]
    return all(low >= 0 and high < size for (low, high), size in zip(ends, sizes, strict=False))


def _extremes(table: Any) -> tuple[float, float]:
    if not table.numel():
        return 0.0, 0.0
    low, high = torch.aminmax(table)
    return float(low), float(high)


def _look(run: Run, guarded: GuardedRead, band: Band, block: Block) -> None:
    """Compare every index of the block with the size of its table."""
    reading = run.reading(band, block)
    sizes = run.call.tables[guarded.read.table].shape
    for axis in range(len(guarded.read.indices)):
        place = reading.index(guarded.read, axis)
        wrong = ((place < 0) | (place >= sizes[axis])) & reading.mask(guarded.guard)
        if bool(wrong.any()):
            found = place.expand_as(wrong)[wrong]
            refuse_range(run.call, guarded.read, axis, int(found.min()), int(found.max()))
