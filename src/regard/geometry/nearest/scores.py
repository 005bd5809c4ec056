"""Any score of the algebra as a measure: the formula read over a block of rows and all queries, in float64.

i counts the queries and j the rows of the corpus, from 0; n is how many rows there are, d their width; one head, one
batch. A mask takes pairs away, and so does a score of −∞. Products are those of the library, without a bound on their
rounding: equal rows may differ in the last digit.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Self

from ..._arrays import Library
from ...algebra.arithmetic import Arithmetic
from ...algebra.errors import CallError, TableError
from ...algebra.expressions import Expression
from ...algebra.fold import fold
from ...algebra.formula import Formula, GuardedRead
from ...algebra.nodes import BATCH, HEAD, HEADS, KEYS, WIDTH, I, J, Pair, Read
from ..products import unit
from .corpus import Block
from .measures import Measure, Proposal
from .pairs import PAIRS, products
from .tables import laid_out


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
        mask = metric.mask if isinstance(metric, Formula) else None
        formula = Formula(metric.score if isinstance(metric, Formula) else metric, mask=mask)
        return cls(xp, queries, formula, laid_out(xp, formula, queries, count, tables), count)

    def part(self, first: int, last: int) -> Self:
        return replace(super().part(first, last), first=first)

    def careful(self, block: Block) -> tuple[Measure, Block]:
        return self, block

    def reach(self, block: Block) -> Any:
        return 1.0  # what overflows is a score

    def propose(self, block: Block) -> Proposal:
        reading = _Pairs.of(self, block.wide())
        for guarded in self.formula.reads:
            reading.check(guarded)
        scores = reading.whole(reading.real(reading.value(self.formula.score.node)))
        if self.formula.mask is not None:
            admitted = reading.whole(reading.value(self.formula.mask.node))
            scores = self.xp.where(admitted, scores, self.xp.full_like(scores, -math.inf))
        self._refuse_nan(scores, block)
        return Proposal(scores, 0.0, 0.0)

    def exact(self, which: Any, y: Any, proposed: Any) -> Any:
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


@dataclass(frozen=True, eq=False)
class _Pairs(Arithmetic):
    """A formula read as arrays (rows, queries)."""

    measure: Scored
    block: Block
    symbols: dict[Any, Any]
    memo: dict[Any, Any] = field(default_factory=dict)

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
        """(x − y)ᵀ P (x − y): by products seen from the first query; by the differences where those cancel."""
        xp, centre = self.xp, x[0, :]  # one of the numbers given: from a mean, whole numbers would be rounded
        matrix = None if metric is None else (metric + xp.matrix_transpose(metric)) / 2  # all that a square sees
        own_x, own_y, mixed = _products(xp, x - centre, y - centre, matrix)
        square, size = own_y[:, None] - 2 * mixed + own_x[None, :], xp.abs(own_y)[:, None] + xp.abs(own_x)[None, :]
        rows, queries = xp.nonzero(~(xp.abs(square) > size / 16))
        step = max(1, PAIRS // int(x.shape[1]))
        for first in range(0, rows.shape[0], step):
            row, query = rows[first : first + step], queries[first : first + step]
            difference = x[query] - y[row]
            square[row, query] = products(difference, difference if matrix is None else difference @ matrix)
        return square

    def _metric(self, read: Read) -> Any:
        table = self.measure.tables[read.table]
        places = tuple(int(self._place(read, axis)) for axis in range(len(read.indices)))
        return table[places] if places else table

    def read(self, node: Read, indices: list[Any]) -> Any:
        table = self.measure.tables[node.table]
        return table[tuple(self._place(node, axis) for axis in range(len(indices)))] if indices else table

    def given(self, name: str) -> Any:
        """A mask over queries and rows, as arrays (rows, queries)."""
        (rows, queries), measure, block = self.shape, self.measure, self.block
        part = measure.tables[name][measure.first : measure.first + queries, block.first : block.first + rows]
        return self.xp.matrix_transpose(part)

    # -- helpers -----------------------------------------------------------------------------------------------

    @property
    def shape(self) -> tuple[int, int]:
        """(rows, queries)."""
        return int(self.block.rows.shape[0]), int(self.measure.queries.shape[0])

    def value(self, node: Any) -> Any:
        """The value of a part of the formula, in the shape of what it depends on."""
        return fold(node, self, self.memo)

    def whole(self, value: Any) -> Any:
        """A value for every pair."""
        return self.xp.broadcast_to(self.array(value), self.shape)

    def check(self, guarded: GuardedRead) -> None:
        """A read that counts stands inside its table."""
        xp, read = self.xp, guarded.read
        for axis in range(len(read.indices)):
            index, size = self._index(read, axis), int(self.measure.tables[read.table].shape[axis])
            wrong = ((index < 0) | (index >= size)) & self.array(self.value(guarded.guard))
            if bool(xp.any(wrong)):
                places = xp.broadcast_to(index, wrong.shape)[wrong]
                raise TableError(
                    f"{read.table}: {Expression(read)!r} stays within its {size} entries along axis {axis}; got "
                    f"{int(xp.min(places))} to {int(xp.max(places))}; make the table longer, or mask those pairs"
                )

    def _index(self, read: Read, axis: int) -> Any:
        index = self.array(self.value(read.indices[axis]))
        return index if self.xp.is_integer(index) else self.xp.astype(index, self.integer_dtype)

    def _place(self, read: Read, axis: int) -> Any:
        """An index kept inside its table; negatives never wrap."""
        size = self.measure.tables[read.table].shape[axis]
        if not size:
            raise TableError(f"{read.table}: at least one entry along each axis; got none along axis {axis}")
        return self.xp.clip(self._index(read, axis), 0, size - 1)


def _products(xp: Library, x: Any, y: Any, matrix: Any) -> tuple[Any, Any, Any]:
    """xᵀ P x, yᵀ P y, and yᵀ P x for every row and every query."""
    px, py = (x, y) if matrix is None else (x @ matrix, y @ matrix)
    return xp.vecdot(x, px), xp.vecdot(y, py), y @ xp.matrix_transpose(px)
