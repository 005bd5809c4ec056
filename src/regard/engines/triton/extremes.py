"""The lowest and highest entry of a table that the pairs of each tile read.

    low[b, h, t, s] = min over the tile of table[…],  high[b, h, t, s] = max

A read that sees rows alone, or keys alone, is made once for each row or key: O(N). One that sees both by separate
axes (table[i, j]) is one pass over the table. Of any other the whole table counts, but for the axes that b and h name.
Nothing here looks at what stands in a tensor: all stays on its device.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import torch

from ...algebra.nodes import BATCH, HEAD, SIZES, I, J, Read, dependencies
from ..call import Call
from ..reading import Reading, indices

Ends = tuple[Any, Any]


@dataclass(frozen=True)
class Tiles:
    """The pairs of a call in tiles of `rows` × `columns`; the last ones may stick out."""

    call: Call
    rows: int
    columns: int

    @property
    def down(self) -> int:
        return -(-self.call.queries // self.rows)

    @property
    def across(self) -> int:
        return -(-self.call.keys // self.columns)

    @property
    def device(self) -> Any:
        return self.call.q.device

    def positions(self) -> Ends:
        """The first and last i of each tile, (B or 1, 1, T, 1)."""
        first, last = _counts(self.call.queries, self.rows, self.down, self.device)
        start = self._start
        return start + first[None, None, :, None], start + last[None, None, :, None]

    def keys(self) -> Ends:
        """The first and last j of each tile, (1, 1, 1, S)."""
        first, last = _counts(self.call.keys, self.columns, self.across, self.device)
        return first[None, None, None, :], last[None, None, None, :]

    @cached_property
    def reading(self) -> Reading:
        """The call's rows and keys one by one, and its tables without what broadcasting repeats."""
        symbols, shape = indices(self.call)
        rows = torch.arange(self.call.queries, device=self.device)
        symbols[I] = self._start + rows[None, None, :, None]
        tables = {name: _once(table) for name, table in self.call.tables.items()}
        return _Filled(replace(self.call, tables=tables), symbols, shape)

    @property
    def _start(self) -> Any:
        return self.call.start[:, None, None, None] if self.call.first is None else self.call.first

    def reduced(self, low: Any, high: Any) -> Ends:
        """Numbers for each row and key, (…, N or 1, n or 1), as the lowest and highest of each tile."""
        for axis, size in ((-1, self.columns), (-2, self.rows)):
            low, high = _blocks(low, axis, size, torch.amin), _blocks(high, axis, size, torch.amax)
        return low, high


class _Filled(Reading):
    """A reading that makes constants on the device: a copy from the host would wait for it."""

    def array(self, value: Any) -> Any:
        if not isinstance(value, bool | int | float):
            return value
        dtype = {bool: torch.bool, int: torch.int64}.get(type(value), self.real_dtype)
        return torch.full((), value, dtype=dtype, device=self.device)


# -- tables ----------------------------------------------------------------------------------------------------


def extremes(tiles: Tiles, read: Read) -> Ends:
    """The lowest and highest value of a read in each tile, int64 or float64, (B or 1, H or 1, T or 1, S or 1)."""
    seen = [dependencies(index) - set(SIZES.values()) for index in read.indices]
    found = set().union(*seen)
    known = found <= {I, J, BATCH, HEAD}  # no pairs of vectors
    if known and not {I, J} <= found:
        value = _four(tiles.reading.value(read))
        low, high = tiles.reduced(value, value)
    elif known and seen.count({J}) == sum(J in some for some in seen) == 1:
        low, high = _crossed(tiles, read, seen.index({J}))
    else:
        low, high = _whole(tiles, read, seen)
    return _wide(low), _wide(high)


def mask_extremes(tiles: Tiles, name: str) -> Ends:
    """Whether a mask of the call admits all and any of a tile's pairs."""
    table = tiles.reading.call.tables[name]
    return tiles.reduced(table, table)


def _crossed(tiles: Tiles, read: Read, column: int) -> Ends:
    """table[…, j] with rows in the other axes: the tiles of keys first, then each row finds its line of them."""
    reading = tiles.reading
    table = reading.call.tables[read.table].movedim(column, -1)
    if read.indices[column] == J and table.shape[-1] >= tiles.call.keys:
        table = table.narrow(-1, 0, tiles.call.keys)
    else:
        table = table.index_select(-1, reading.place(read, column).flatten())
    places = tuple(reading.place(read, axis)[..., 0] for axis in range(len(read.indices)) if axis != column)
    low, high = (_blocks(table, -1, tiles.columns, pick)[places] for pick in (torch.amin, torch.amax))
    return _blocks(low, -2, tiles.rows, torch.amin), _blocks(high, -2, tiles.rows, torch.amax)


def _whole(tiles: Tiles, read: Read, seen: list[set[Any]]) -> Ends:
    """The table's own extremes, for each b and h where they alone choose along an axis."""
    reading = tiles.reading
    kept = [axis for axis, some in enumerate(seen) if some <= {BATCH, HEAD}]
    table = reading.call.tables[read.table].movedim(kept, list(range(len(kept))))
    rest = tuple(range(len(kept), table.ndim))
    places = tuple(reading.place(read, axis) for axis in kept)
    low, high = torch.amin(table, rest), torch.amax(table, rest)
    return (low[places], high[places]) if places else (low, high)


# -- axes ------------------------------------------------------------------------------------------------------


def _blocks(x: Any, axis: int, size: int, pick: Callable[..., Any]) -> Any:
    """pick over each `size` neighbours along an axis counted from the end, fewer at its end; an axis of 1 stays."""
    length = x.shape[axis]
    if length == 1:
        return x
    count, rest = divmod(length, size)
    parts = []
    if count:
        parts.append(pick(x.narrow(axis, 0, count * size).unflatten(axis, (count, size)), axis))
    if rest:
        parts.append(pick(x.narrow(axis, count * size, rest), axis, keepdim=True))
    return torch.cat(parts, axis) if len(parts) > 1 else parts[0]


def _counts(length: int, size: int, count: int, device: Any) -> Ends:
    """The first and last place of each block."""
    first = torch.arange(count, device=device) * size
    return first, (first + (size - 1)).clamp(max=length - 1)


def _once(table: Any) -> Any:
    """The table without the repetitions of a broadcast axis; indices are clipped to what is left."""
    for axis in range(table.ndim):
        if table.stride(axis) == 0 and table.shape[axis] > 1:
            table = table.narrow(axis, 0, 1)
    return table


def _four(value: Any) -> Any:
    """A table of no axes is one number for all."""
    return value.reshape(1, 1, 1, 1) if value.ndim == 0 else value


def _wide(x: Any) -> Any:
    return x.to(torch.float64 if x.is_floating_point() else torch.int64)
