"""A formula read as arrays: what each symbol and table of it is for one call."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from .._arrays import Library
from ..algebra.arithmetic import Arithmetic
from ..algebra.errors import TableError
from ..algebra.fold import fold
from ..algebra.functions import Where
from ..algebra.nodes import BATCH, HEAD, HEADS, KEYS, WIDTH, I, J, Pair, Read
from ..algebra.weights import Term
from .call import Call
from .select import keep

WHOLE = slice(None)


@dataclass(frozen=True)
class Reading(Arithmetic):
    """A formula read as arrays over a part of a call: what each symbol and table is there.

    Every index is an array of four axes (batch, heads, rows, columns) with size 1 where it does not vary, so that a
    value has the shape of what it depends on. An engine adds the pairs of vectors.
    """

    call: Call
    symbols: Mapping[Any, Any]
    shape: tuple[int, ...]  # of a value for every pair
    dtype: Any | None = None  # of real numbers; the call's working dtype unless said otherwise
    live: Any | None = None  # where leaves count; elsewhere they are 0, so that no gradient comes from there
    memo: dict[Any, Any] = field(default_factory=dict)

    @property
    def xp(self) -> Library:
        return self.call.xp

    @property
    def real_dtype(self) -> Any:
        return self.call.working_dtype if self.dtype is None else self.dtype

    @property
    def integer_dtype(self) -> Any:
        return self.symbols[J].dtype

    @property
    def device(self) -> Any:
        return self.xp.device(self.call.q)

    # -- the fold ----------------------------------------------------------------------------------------------

    def symbol(self, symbol: Any) -> Any:
        return self.symbols[symbol]

    def pair(self, pair: Pair) -> Any:
        raise NotImplementedError(f"{pair}: this reading has no vectors")

    def choose(self, node: Any, memo: dict[Any, Any]) -> Any:
        """where(c, a, b), with leaves that count only in the branch that is taken: no other reaches a gradient."""
        condition, *branches = node.args
        taken = self.array(fold(condition, self, memo))
        sides = [taken, ~taken] if self.live is None else [taken & self.live, ~taken & self.live]
        known = {node: value for node, value in memo.items() if node.is_Symbol and not isinstance(node, Pair)}
        readings = [replace(self, live=side, memo=dict(known)) for side in sides]
        values = [fold(branch, reading, reading.memo) for branch, reading in zip(branches, readings, strict=True)]
        return self.apply(Where, [taken, *values])

    def read(self, node: Read, indices: list[Any]) -> Any:
        table = self.call.tables[node.table]
        if not indices:
            return self._where_live(table)
        value = table[tuple(self.place(node, axis) for axis in range(len(indices)))]
        return self._where_live(value)

    def given(self, name: str) -> Any:
        return self.call.tables[name]

    def value(self, node: Any) -> Any:
        """The value of an expression or truth, in the shape of what it depends on."""
        return fold(node, self, self.memo)

    # -- helpers -------------------------------------------------------------------------------------------------

    def mask(self, node: Any) -> Any:
        """A truth for every pair."""
        return self.xp.broadcast_to(self.array(fold(node, self, self.memo)), self.shape)

    def whole(self, value: Any) -> Any:
        """A real number for every pair."""
        return self.xp.broadcast_to(self.array(self.real(value)), self.shape)

    def scaled(self, terms: tuple[Term, ...], shift: Any) -> Any:
        """Σ r · exp(a − shift)."""
        total: Any = self.array(0.0)
        for r, a in terms:
            height = self.array(self.real(fold(a, self, self.memo))) - shift
            if self.live is not None and height.shape == self.shape:
                height = keep(self.xp, self.live, height)
            factor = self.array(self.real(fold(r, self, self.memo)))
            if not r.is_Number:  # 0 · exp(a) is 0, however large a − shift
                height = self.xp.where(factor == 0, self.xp.zeros_like(height), height)
            total = total + factor * self.xp.exp(height)
        return total

    def _where_live(self, value: Any) -> Any:
        """A real value where pairs count, 0 elsewhere: what stands there must not reach a gradient."""
        if self.live is None or not self.xp.is_real(value):
            return value
        return keep(self.xp, self.live, value)

    def metric(self, pair: Pair) -> Any:
        """The matrix between q and k, (B or 1, H or 1, D, D)."""
        assert pair.metric is not None
        table = self.call.tables[pair.metric.table]
        places = tuple(self.place(pair.metric, axis)[:, :, 0, 0] for axis in range(len(pair.metric.indices)))
        return table[places] if places else table[None, None, :, :]

    def place(self, read: Read, axis: int) -> Any:
        """Where a read stands along one axis of its table, kept inside; the check of ranges is made elsewhere."""
        size = self.call.tables[read.table].shape[axis]
        if size == 0 and math.prod(self.index(read, axis).shape):
            raise TableError(f"{read.table}: at least one entry along each axis; got none along axis {axis}")
        return self.xp.clip(self.index(read, axis), 0, max(size - 1, 0))

    def index(self, read: Read, axis: int) -> Any:
        """The index as written, (B or 1, H or 1, N or 1, n or 1)."""
        value = self.array(fold(read.indices[axis], self, self.memo))
        value = value if self.xp.is_integer(value) else self.xp.astype(value, self.integer_dtype)
        return self.xp.reshape(value, (1, 1, 1, 1)) if value.ndim == 0 else value


Part = Any
"""Which places of an axis: a slice of step 1, or an array of integers of the call's library."""


def indices(
    call: Call, *, rows: Part = WHOLE, columns: Part = WHOLE, heads: Part = WHOLE, batch: Part = WHOLE
) -> tuple[dict[Any, Any], tuple[int, ...]]:
    """The symbols of a part of a call, and the shape of a value for every pair there."""
    xp, device = call.xp, call.xp.device(call.q)

    def count(part: Part, size: int) -> Any:
        if not isinstance(part, slice):
            return part
        first, last, _ = part.indices(size)
        return xp.arange(first, last, device=device)

    i, j = count(rows, call.queries), count(columns, call.keys)
    h, b = count(heads, call.heads), count(batch, call.batch)
    symbols = {
        I: call.start[batch][:, None, None, None] + i[None, None, :, None],
        J: j[None, None, None, :], HEAD: h[None, :, None, None], BATCH: b[:, None, None, None],
        HEADS: call.heads, WIDTH: call.width, KEYS: call.keys,
    }  # fmt: skip
    return symbols, tuple(int(part.shape[0]) for part in (b, h, i, j))
