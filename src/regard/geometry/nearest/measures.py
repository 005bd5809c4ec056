"""What "near" means: each measure proposes with a bound, and decides exactly.

    propose   s̃ of every row of a block with every query, by a matrix product in the block's own precision,
              |s̃ − (s + offset)| ≤ slack
    exact     s of given pairs, queries by their number, in float64, from the vectors themselves; larger is nearer
    value     what people read: a similarity, or a distance

A product of vectors of width D, summed in any order with unit roundoff u, is off by at most γ ‖x‖ ‖y‖ with
γ = D u / (1 − D u). ε is γ in float64: s itself is rounded, and the slack knows it. Underflow takes away what is tiny
beside 1, ‖x‖ and ‖y‖; where something would overflow, float64 proposes.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple, Self

from ..._arrays import Library
from ...algebra.errors import CallError
from ..products import norm, unit
from . import pairs
from .corpus import Block


class Proposal(NamedTuple):
    """scores (rows, queries) with |scores − (s + offset)| ≤ slack; offset and slack for each query, in float64."""

    scores: Any
    offset: Any
    slack: Any


@dataclass(frozen=True, eq=False)
class Measure:
    """Compares queries (n, D), in float64, with blocks of rows."""

    xp: Library
    queries: Any
    room: dict[Any, Any] = field(default_factory=dict, kw_only=True)  # for products, used again for every block

    def propose(self, block: Block) -> Proposal:
        raise NotImplementedError

    def exact(self, which: Any, y: Any, proposed: Any) -> Any:
        raise NotImplementedError

    def value(self, s: Any) -> Any:
        return s

    def part(self, first: int, last: int) -> Self:
        """The same measure for some of the queries."""
        return replace(self, queries=self.queries[first:last, :])

    def careful(self, block: Block) -> tuple[Measure, Block]:
        """Both as they propose with the least rounding: in float64."""
        return self, block.wide()

    def reach(self, block: Block) -> Any:
        """Nothing on the way to a proposal exceeds the square of this."""
        return 1 + self.xp.max(self.norms) + block.longest

    def fitting(self, block: Block) -> tuple[Measure, Block]:
        """Both as they are, or with care where a proposal could overflow."""
        if block.holds(self.reach(block)):
            return self, block
        measure, wide = self.careful(block)
        if not wide.holds(measure.reach(wide)):
            raise CallError(
                "queries, corpus: vectors whose squared lengths float64 holds, up to about 1e307; got longer ones; "
                "divide both by one number"
            )
        return measure, wide

    @cached_property
    def norms(self) -> Any:
        """‖x‖ of each query."""
        return norm(self.queries)

    @cached_property
    def epsilon(self) -> float:
        """ε: float64 is off by at most ε ‖x‖ ‖y‖; with the same room as γ."""
        return self.xp.product_error(self.queries, int(self.queries.shape[1]) + 8)

    def underflow(self, block: Block) -> Any:
        """What underflow takes at most from a product, or from the numbers that enter it."""
        return block.tiny * (1 + self.norms + block.longest)

    def product(self, block: Block) -> Any:
        """y·x for every row of the block and every query, in the block's precision."""
        queries = self.xp.astype(self.queries, block.rows.dtype, copy=False)
        shape = int(block.rows.shape[0]), int(queries.shape[0])
        kind = block.rows.dtype, shape[1]
        if kind not in self.room or self.room[kind].shape[0] < shape[0]:
            self.room[kind] = self.xp.empty(shape, dtype=block.rows.dtype, device=self.xp.device(queries))
        return self.xp.matmul(block.rows, self.xp.matrix_transpose(queries), out=self.room[kind][: shape[0], :])


@dataclass(frozen=True, eq=False)
class Dot(Measure):
    """s = x·y."""

    def propose(self, block: Block) -> Proposal:
        slack = (block.gamma + self.epsilon) * self.norms * block.longest
        return Proposal(self.product(block), 0.0, slack + self.underflow(block))

    def exact(self, which: Any, y: Any, proposed: Any) -> Any:
        return pairs.products(self.queries[which], y)


@dataclass(frozen=True, eq=False)
class Cosine(Measure):
    """s = x·y / (‖x‖ ‖y‖), 0 for a zero vector."""

    def propose(self, block: Block) -> Proposal:
        block = block if block.is_safe else block.like(unit(block.rows))
        scores = self._directions.product(block)
        lengths = self.xp.sqrt(block.squares)
        scores *= 1 / self.xp.where(lengths > 0, lengths, self.xp.ones_like(lengths))[:, None]
        return Proposal(scores, 0.0, self.xp.full_like(self.norms, 2 * (block.gamma + self.epsilon)))

    def exact(self, which: Any, y: Any, proposed: Any) -> Any:
        x, own = self._even
        return pairs.cosines(self.xp, x[which], own[which], y)

    @cached_property
    def _directions(self) -> Dot:
        return Dot(self.xp, unit(self.queries), room=self.room)

    @cached_property
    def _even(self) -> tuple[Any, Any]:
        """The queries over their largest entries, and the squared lengths of these."""
        x = pairs.even(self.xp, self.queries)
        return x, pairs.products(x, x)

    def reach(self, block: Block) -> Any:
        return 1.0  # of directions


@dataclass(frozen=True, eq=False)
class Euclidean(Measure):
    """s = −‖x − y‖² / 2, proposed as x·y − ‖y‖²/2 = s + ‖x‖²/2."""

    def propose(self, block: Block) -> Proposal:
        scores = self.product(block)
        scores -= block.squares[:, None] / 2
        apart = self.norms + block.longest
        slack = block.gamma * apart * block.longest + self.epsilon * apart**2
        return Proposal(scores, self.norms**2 / 2, slack + self.underflow(block))

    def exact(self, which: Any, y: Any, proposed: Any) -> Any:
        difference = self.queries[which] - y
        return -pairs.products(difference, difference) / 2

    def value(self, s: Any) -> Any:
        return self.xp.sqrt(-2 * s)

    def careful(self, block: Block) -> tuple[Measure, Block]:
        """In float64, and seen from the mean of the queries: distances stay, products become small."""
        centre = self.xp.mean(self.queries, axis=0)
        wide = block.wide()
        return replace(self, queries=self.queries - centre), wide.like(wide.rows - centre)


@dataclass(frozen=True, eq=False)
class Whitened(Euclidean):
    """s = −‖A (x − y)‖² / 2: Euclidean after whitening, z = A y.

    A y and A x come out wrong by at most δ = ‖A‖ (γ ‖y‖ + 2 ε (‖x‖ + ‖y‖)), which moves s̃ by (‖A x‖ + ‖z‖ + δ) δ.
    """

    matrix: Any = None

    def propose(self, block: Block) -> Proposal:
        xp, turned = self.xp, self.xp.matrix_transpose(self.matrix)
        mapped = Euclidean(xp, self.queries @ turned, room=self.room)
        white = block.like(block.rows @ xp.astype(turned, block.rows.dtype, copy=False))
        scores, offset, slack = mapped.propose(white)
        error = self.size * (block.gamma * block.longest + 2 * self.epsilon * (self.norms + block.longest))
        error += block.rows.shape[1] * block.tiny * (1 + self.size + block.longest)
        return Proposal(scores, offset, slack + (mapped.norms + white.longest + error) * error)

    def exact(self, which: Any, y: Any, proposed: Any) -> Any:
        return -pairs.squares(self.xp, self.queries[which] - y, self.matrix) / 2

    def reach(self, block: Block) -> Any:
        return (1 + self.size) * super().reach(block)

    @cached_property
    def size(self) -> Any:
        """‖A‖: no vector becomes longer by more than this factor."""
        return self.xp.linalg.matrix_norm(self.matrix)
