"""Hoisted parts of a score as PyTorch tensors outside the inner loop: head, row, column and offset vectors.

A vector has four axes, (batch, heads, rows, columns), each of size 1 where it does not vary. What depends on i − j
alone is kept once for each difference, in falling order:

    values[h, x]        x = highest − (i − j)

Rows that run backwards (r counts down from the last i of a block) make x = highest − i + r + j: one step along either
axis is one step in memory, so that a block of the matrix is a strided view of the vector. No step is negative, which
PyTorch would refuse.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..algebra.fold import fold
from ..algebra.laws import Kind
from ..algebra.nodes import BATCH, HEAD, I, J
from .call import Call
from .reading import Reading, indices

VARIES = {
    Kind.HEAD: (BATCH, HEAD),
    Kind.ROW: (BATCH, HEAD, I),
    Kind.COLUMN: (BATCH, HEAD, J),
    Kind.OFFSET: (HEAD, I, J),
}


@dataclass(frozen=True)
class Offsets:
    """What depends on (h, i − j) alone: `values` (H or 1, differences), from the highest difference down."""

    values: Any
    highest: int

    def block(self, last: int, first_key: int, rows: int, columns: int, heads: slice = slice(None)) -> Any:
        """A view (1, H or 1, rows, columns): row r is position last − r, column c is key first_key + c."""
        values = self.values if self.values.shape[0] == 1 else self.values[heads]
        place = self.highest - last + first_key
        size, stride = (1, values.shape[0], rows, columns), (0, values.stride(0), 1, 1)
        return values.as_strided(size, stride, values.storage_offset() + place)


def reading(call: Call, kind: Kind) -> Reading:
    """The reading in which expressions of this kind are vectors."""
    symbols, _ = indices(call)
    if kind == Kind.OFFSET:
        low, high = differences(call)
        falling = call.xp.arange(high, low - 1, -1, device=call.q.device)
        symbols |= {I: falling[None, None, :, None], J: symbols[J][..., :1] * 0}
    known: Mapping[Any, Any] = {name: value for name, value in symbols.items() if _is_size(value)}
    varying = {symbol: symbols[symbol] for symbol in VARIES[kind]}
    shape = tuple(max(value.shape[axis] for value in varying.values()) for axis in range(4))
    return Reading(call, {**known, **varying}, shape)


def vector(call: Call, kind: Kind, node: Any) -> Any:
    """The value of a hoisted expression: a tensor (B or 1, H or 1, N or 1, n or 1), or `Offsets`."""
    part = reading(call, kind)
    value = part.array(part.real(fold(node, part, part.memo)))
    value = value.reshape((1,) * (4 - value.ndim) + tuple(value.shape))
    if kind != Kind.OFFSET:
        return value
    return Offsets(value[0, :, :, 0].contiguous(), differences(call)[1])


def differences(call: Call) -> tuple[int, int]:
    """The lowest and the highest i − j of a call."""
    first, last = bounds(call)
    return first - call.keys + 1, last


def bounds(call: Call) -> tuple[int, int]:
    """The lowest and the highest i of a call."""
    starts = call.start.tolist()
    return min(starts, default=0), max(starts, default=0) + call.queries - 1


def _is_size(value: Any) -> bool:
    return isinstance(value, int)
