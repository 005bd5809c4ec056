"""Hoisted parts of a score as PyTorch tensors outside the inner loop: head, row, column and offset vectors.

A vector has four axes, (batch, heads, rows, columns), each of size 1 where it does not vary. What depends on i − j
alone is kept once for each difference, in falling order:

    values[h, x]        x = highest − (i − j)

Rows that run backwards (r counts down from the last i of a block) make x = highest − i + r + j: one step along either
axis is one step in memory, so that a block of the matrix is a strided view of the vector. No step is negative, which
PyTorch would refuse.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from ..algebra.fold import fold
from ..algebra.intervals import Intervals
from ..algebra.laws import Kind
from ..algebra.nodes import BATCH, HEAD, HEADS, KEYS, WIDTH, I, J, Read, dependencies
from .call import Call
from .reading import Reading

VARIES = {
    Kind.HEAD: (BATCH, HEAD),
    Kind.ROW: (BATCH, HEAD, I),
    Kind.COLUMN: (BATCH, HEAD, J),
    Kind.OFFSET: (HEAD, I, J),
}


MADE: dict[Any, Any] = {
    BATCH: lambda call: _count(call, call.batch)[:, None, None, None],
    HEAD: lambda call: _count(call, call.heads)[None, :, None, None],
    I: lambda call: call.start[:, None, None, None] + _count(call, call.queries)[None, None, :, None],
    J: lambda call: _count(call, call.keys)[None, None, None, :],
}


def _count(call: Call, size: int) -> Any:
    return call.xp.arange(size, device=call.q.device)


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
    varying = {symbol: MADE[symbol](call) for symbol in VARIES[kind]}
    if kind == Kind.OFFSET:
        low, high = differences(call)
        falling = call.xp.arange(high, low - 1, -1, device=call.q.device)
        varying |= {I: falling[None, None, :, None], J: call.start.new_zeros((1, 1, 1, 1))}
    shape = tuple(max(value.shape[axis] for value in varying.values()) for axis in range(4))
    return Reading(call, {HEADS: call.heads, WIDTH: call.width, KEYS: call.keys, **varying}, shape)


def vector(call: Call, kind: Kind, node: Any) -> Any:
    """The value of a hoisted expression: a tensor (B or 1, H or 1, N or 1, n or 1), or `Offsets`."""
    if is_constant(node):
        value = constant(node, call.heads, call.width, call.keys)
        return call.q.new_full((1, 1, 1, 1), value, dtype=call.working_dtype)
    part = reading(call, kind)
    if call.q.device.type != "mps":
        part = replace(part, dtype=call.xp.float64)  # positions far apart keep the digits of their difference
    value = part.array(part.real(fold(node, part, part.memo))).to(call.working_dtype)
    value = value.reshape((1,) * (4 - value.ndim) + tuple(value.shape))
    if kind != Kind.OFFSET:
        return value
    return Offsets(value[0, :, :, 0].contiguous(), differences(call)[1])


@lru_cache(maxsize=4096)
def is_constant(node: Any) -> bool:
    """Whether the sizes of a call alone decide the value."""
    return dependencies(node) <= {HEADS, WIDTH, KEYS} and not node.has(Read)


@lru_cache(maxsize=4096)
def constant(node: Any, heads: int, width: int, keys: int) -> float:
    value, _ = fold(node, Intervals({HEADS: (heads,) * 2, WIDTH: (width,) * 2, KEYS: (keys,) * 2}))
    return float(value)


def differences(call: Call) -> tuple[int, int]:
    """The lowest and the highest i − j of a call."""
    first, last = bounds(call)
    return first - call.keys + 1, last


def bounds(call: Call) -> tuple[int, int]:
    """The lowest and the highest i of a call."""
    starts = call.start.tolist() if call.first is None else [call.first]
    return min(starts, default=0), max(starts, default=0) + call.queries - 1
