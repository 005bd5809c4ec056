"""Any score of the algebra as a measure: the formula read over a block of rows and all queries, in float64.

i counts the queries and j the rows of the corpus, from 0; n is how many rows there are, d their width; one head, one
batch. A mask takes pairs away.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Self

from ..._arrays import Library, is_array
from ...algebra.arithmetic import Arithmetic
from ...algebra.errors import CallError, TableError
from ...algebra.expressions import Expression
from ...algebra.fold import fold
from ...algebra.formula import Formula
from ...algebra.nodes import BATCH, HEAD, HEADS, KEYS, WIDTH, I, J, Pair, Read
from ..products import unit
from ..vectors import together
from .corpus import Block
from .measures import Measure, Proposal


@dataclass(frozen=True, eq=False)
class Scored(Measure):
    """s = the score of a formula. What it proposes is what it decides."""

    formula: Formula = field(default_factory=Formula)
    tables: Mapping[str, Any] = field(default_factory=dict)
    count: int = 0  # rows of the corpus
    first: int = 0  # the first of the queries

    @classmethod
    def of(cls, xp: Library, queries: Any, metric: Expression | Formula, tables: dict[str, Any], count: int) -> Scored:
        """The score, and its tables as arrays beside the queries."""
        formula = metric if isinstance(metric, Formula) else Formula(score=metric)
        ranks = formula.ranks
        if set(tables) != set(ranks):
            named, given = ", ".join(ranks) or "no table", ", ".join(tables) or "none"
            raise TableError(f"tables: the score reads {named}; got {given}; pass each by its name, and no other")
        return cls(xp, queries, formula, {name: _table(xp, queries, name, tables[name], ranks[name]) for name in ranks},
                   count)  # fmt: skip

    def part(self, first: int, last: int) -> Self:
        return replace(super().part(first, last), first=first)

    def careful(self, block: Block) -> tuple[Measure, Block]:
        return self, block

    def propose(self, block: Block) -> Proposal:
        reading = _Pairs.of(self, block.wide())
        shape = (block.rows.shape[0], self.queries.shape[0])
        scores = self.xp.broadcast_to(reading.array(reading.real(fold(self.formula.score.node, reading))), shape)
        if self.formula.mask is not None:
            admitted = self.xp.broadcast_to(reading.array(fold(self.formula.mask.node, reading)), shape)
            scores = self.xp.where(admitted, scores, self.xp.full_like(scores, -math.inf))
        self._refuse_nan(scores, block)
        return Proposal(scores, 0.0, 0.0)

    def exact(self, x: Any, y: Any, proposed: Any) -> Any:
        return proposed

    def _refuse_nan(self, scores: Any, block: Block) -> None:
        wrong = self.xp.isnan(scores)
        if bool(self.xp.any(wrong)):
            place = int(self.xp.argmax(self.xp.astype(self.xp.reshape(wrong, (-1,)), self.xp.int8)))
            row, query = divmod(place, scores.shape[1])
            raise CallError(
                f"metric: a number for every pair; got NaN for query {self.first + query} and row {block.first + row} "
                f"of {self.formula.score!r}"
            )


def _table(xp: Library, queries: Any, name: str, value: Any, rank: int) -> Any:
    """A table beside the queries: real numbers in float64, integers and truths as they are."""
    if not is_array(value):
        value = xp.asarray(value, device=xp.device(queries))
    axes = value.ndim if rank < 0 else rank
    if value.ndim != axes or (value.ndim > 2 and rank < 0):
        raise TableError(f"{name}: read with {rank} axes; got shape {tuple(value.shape)}")
    if xp.is_real(value):
        return together(queries=queries, **{name: value})[1][1]
    return value


@dataclass(frozen=True, eq=False)
class _Pairs(Arithmetic):
    """A formula read as arrays (rows, queries)."""

    measure: Scored
    block: Block
    symbols: dict[Any, Any]

    @classmethod
    def of(cls, measure: Scored, block: Block) -> _Pairs:
        xp, (count, width) = measure.xp, block.rows.shape
        device = xp.device(measure.queries)
        i = xp.arange(measure.first, measure.first + measure.queries.shape[0], device=device)
        j = xp.arange(block.first, block.first + count, device=device)
        sizes = {HEAD: 0, BATCH: 0, HEADS: 1, WIDTH: width, KEYS: measure.count}
        return cls(measure, block, {I: i[None, :], J: j[:, None], **sizes})

    @property
    def xp(self) -> Library:
        return self.measure.xp

    @property
    def real_dtype(self) -> Any:
        return self.xp.float64

    @property
    def integer_dtype(self) -> Any:
        return self.symbols[J].dtype

    @property
    def device(self) -> Any:
        return self.xp.device(self.measure.queries)

    def symbol(self, symbol: Any) -> Any:
        return self.symbols[symbol]

    def pair(self, pair: Pair) -> Any:
        """y·x, ‖x − y‖² or the cosine, for every row and every query."""
        xp, x, y = self.xp, self.measure.queries, self.block.rows
        metric = None if pair.metric is None else self._metric(pair.metric)
        if pair.word == "dot":
            return y @ xp.matrix_transpose(x if metric is None else x @ metric)
        if pair.word == "cosine":
            return xp.clip(unit(y) @ xp.matrix_transpose(unit(x)), -1.0, 1.0)
        return self._squared(x, y, metric)

    def _squared(self, x: Any, y: Any, metric: Any) -> Any:
        """(x − y)ᵀ P (x − y), seen from the mean of the queries, where products are small."""
        xp, centre = self.xp, self.xp.mean(self.measure.queries, axis=0)
        x, y = x - centre, y - centre
        px, py = (x, y) if metric is None else (x @ _mean(xp, metric), y @ _mean(xp, metric))
        square = xp.vecdot(y, py)[:, None] - 2 * (y @ xp.matrix_transpose(px)) + xp.vecdot(x, px)[None, :]
        return square if metric is not None else xp.where(square < 0, xp.zeros_like(square), square)

    def _metric(self, read: Read) -> Any:
        table = self.measure.tables[read.table]
        return table[tuple(0 for _ in read.indices)] if read.indices else table

    def read(self, node: Read, indices: list[Any]) -> Any:
        table = self.measure.tables[node.table]
        return table[tuple(self._place(node, axis, index) for axis, index in enumerate(indices))] if indices else table

    def _place(self, node: Read, axis: int, index: Any) -> Any:
        """An index inside its table; negatives never wrap."""
        xp, size = self.xp, self.measure.tables[node.table].shape[axis]
        index = self.array(index)
        low, high = int(xp.min(index)), int(xp.max(index))
        if low < 0 or high >= size:
            raise TableError(f"{node.table}: axis {axis} is read from {low} to {high}; got {size} entries")
        return index

    def given(self, name: str) -> Any:
        """A mask over queries and rows, as arrays (rows, queries)."""
        mask, rows = self.measure.tables[name], slice(self.block.first, self.block.first + self.block.rows.shape[0])
        mask = self.xp.broadcast_to(mask, (mask.shape[0] if mask.ndim == 2 else 1, self.measure.count))
        queries = self.measure.first + self.xp.arange(self.measure.queries.shape[0], device=self.device)
        part = mask[:, rows]
        return self.xp.matrix_transpose(part[queries, :] if part.shape[0] > 1 else part)


def _mean(xp: Library, metric: Any) -> Any:
    """The symmetric part: all that a quadratic form sees."""
    return (metric + xp.matrix_transpose(metric)) / 2
