"""Every read that counts stands inside its table: by intervals, on the host; by looking, where a table decides.

Kernels keep every index inside its table, so that nothing else is ever read; this says so to the caller in time. What
the score decides, and what varies with i and j by a table, is kept inside silently.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from itertools import islice
from typing import Any

import torch

from ...algebra.fold import fold
from ...algebra.formula import Formula, GuardedRead
from ...algebra.intervals import Intervals
from ...algebra.laws import Kind, is_of_difference, kind_of
from ...algebra.nodes import BATCH, HEAD, HEADS, KEYS, WIDTH, Given, I, J, Pair, Read, symbols, walk
from ..call import Call
from ..tables import refuse_range
from ..vectors import reading
from .keeping import Kept, starts

MOST = 64  # places outside that a message is made of


def check_ranges(call: Call) -> None:
    """Refuse a call whose admitted pairs read outside a table."""
    for guarded in _early(call.formula):
        shape = tuple(int(size) for size in call.tables[guarded.read.table].shape)
        if not _has_tables(guarded):
            wrong = _outside(guarded, shape, _sizes(call)) if call.first is not None else None
            if wrong is not None:
                refuse_range(call, guarded.read, *wrong)
        elif not _is_busy(call):
            _look(call, guarded, shape)


@lru_cache(maxsize=512)
def _early(formula: Formula) -> tuple[GuardedRead, ...]:
    """The reads whose places the score does not decide."""
    return tuple(
        guarded
        for guarded in formula.reads
        if not guarded.needs_score and not any(isinstance(symbol, Pair) for symbol in symbols(guarded.read))
    )


def _has_tables(guarded: GuardedRead) -> bool:
    nodes = (*guarded.read.indices, guarded.guard)
    return any(isinstance(part, Read | Given | Pair) for node in nodes for part in walk(node))


def _sizes(call: Call) -> tuple[int, ...]:
    return call.batch, call.heads, call.queries, call.keys, call.width, int(call.first or 0)


@lru_cache(maxsize=4096)
def _outside(guarded: GuardedRead, shape: tuple[int, ...], sizes: tuple[int, ...]) -> tuple[int, int, int] | None:
    """(axis, lowest, highest) of an index that leaves its table for an admitted pair; None where none does."""
    batch, heads, queries, keys, width, first = sizes
    ranges: dict[Any, Any] = {HEADS: (heads, heads), KEYS: (keys, keys), WIDTH: (width, width)}
    ranges |= {BATCH: (0, batch - 1), HEAD: (0, heads - 1), I: (first, first + queries - 1), J: (0, keys - 1)}
    for axis, index in enumerate(guarded.read.indices):
        here = ranges
        if {I, J} <= index.free_symbols and is_of_difference(index) and is_of_difference(guarded.guard):
            here = ranges | {I: (first - keys + 1, first + queries - 1), J: (0, 0)}  # i − j alone counts
        found = list(islice(_ends_outside(guarded.guard, index, shape[axis], here), MOST))
        if found:
            return axis, int(min(low for low, _ in found)), int(max(high for _, high in found))
    return None


def _ends_outside(guard: Any, index: Any, size: int, ranges: Any) -> Iterator[tuple[float, float]]:
    """The ends of an index in every block of pairs where it leaves [0, size) and the guard may hold."""
    low, high = fold(index, Intervals(ranges))
    sure, possible = fold(guard, Intervals(ranges))
    if not possible or (low >= 0 and high < size):
        return
    moving = index.free_symbols | (set() if sure else guard.free_symbols)
    longest = max((I, J, HEAD, BATCH), key=lambda symbol: (symbol in moving) * (ranges[symbol][1] - ranges[symbol][0]))
    a, b = ranges[longest]
    if a == b or longest not in moving:
        yield low, high
        return
    for part in ((a, (a + b) // 2), ((a + b) // 2 + 1, b)):
        yield from _ends_outside(guard, index, size, ranges | {longest: part})


# -- tables in indices -----------------------------------------------------------------------------------------


def _is_busy(call: Call) -> bool:
    """Whether looking at numbers is not possible: in a compiler, or while a CUDA graph is captured."""
    return not call.xp.known(call.q) or (call.q.is_cuda and torch.cuda.is_current_stream_capturing())


def _look(call: Call, guarded: GuardedRead, shape: tuple[int, ...]) -> None:
    """Compare the indices of rows, columns or heads with the size of their table, where the guard sees no more."""
    kinds = {kind_of(index) or Kind.FULL for index in guarded.read.indices} - {Kind.HEAD}
    kind = kinds.pop() if len(kinds) == 1 else (Kind.FULL if kinds else Kind.HEAD)
    guard = guarded.guard if kind_of(guarded.guard) in (Kind.HEAD, kind) else None
    if kind in (Kind.FULL, Kind.OFFSET) or guard is None:
        return

    def is_inside() -> bool:
        part = reading(call, kind)
        for axis in range(len(guarded.read.indices)):
            place = part.index(guarded.read, axis)
            wrong = ((place < 0) | (place >= shape[axis])) & part.mask(guard)
            if bool(wrong.any()):
                found = place.expand_as(wrong)[wrong]
                refuse_range(call, guarded.read, axis, int(found.min()), int(found.max()))
        return True

    nodes = (*guarded.read.indices, guard)
    names = {part.table for node in nodes for part in walk(node) if isinstance(part, Read | Given)}
    looked_at = [*starts(call), *(_as_it_came(call, name) for name in sorted(names))]
    SEEN.get((guarded, shape, _sizes(call)), call.q.device, looked_at, is_inside)


def _as_it_came(call: Call, name: str) -> Any:
    """A table as the caller has it: the door makes another tensor of narrow integers every time."""
    given = call.given[name]
    return given if isinstance(given, torch.Tensor) else call.tables[name]


SEEN: Kept[bool] = Kept(64)  # what was looked at and found inside
