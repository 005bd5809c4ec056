"""search: for each query the k rows of a corpus that are nearest to it, exactly."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ..._arrays import Library
from ...algebra.errors import CallError, KindError
from ...algebra.expressions import Expression
from ...algebra.formula import Formula
from ..bilinear import BilinearForm
from ..mahalanobis import Mahalanobis
from ..vectors import cloud, together
from .best import Best
from .corpus import Block, Corpus
from .measures import Cosine, Dot, Euclidean, Measure, Whitened
from .pairs import PAIRS
from .progress import shown
from .scores import Scored

QUERIES = 1024  # that are compared at once
BLOCK = 2**22  # entries of a block, or of its scores: what a processor's caches hold
ON_DEVICE = 2**26  # the same on an accelerator


class Found(NamedTuple):
    """values and indices, (queries, k) or (k,) for a single query, the nearest first."""

    values: Any
    indices: Any


def search(
    queries: Any,
    corpus: Any,
    k: int = 10,
    *,
    metric: Any = "cosine",
    block: int | None = None,
    progress: bool | Callable[[int, int], None] | None = None,
    **tables: Any,
) -> Found:
    """The k nearest rows of the corpus for each query, exactly: values and indices, the nearest first.

    queries:  (n, D), or (D,) for one: NumPy, PyTorch on any device, lists
    corpus:   (N, D): an array of the same library, or of NumPy, also memory-mapped; anything with a shape and slices
    metric:   "dot", "cosine", "euclidean"; a Mahalanobis; a BilinearForm; any score of the algebra, as in
              dot / sqrt(d) + table("bias")[j], where i counts the queries and j the rows; an Attention, for its score
              and mask
    block:    rows that are held at once; chosen for the machine unless said otherwise
    progress: a function of rows done and rows in all; True or False for a bar; by itself one for long work
    tables:   arrays that the score reads, by name

    Values are similarities, the largest first, or distances, the smallest first. Equal values come in the order of the
    corpus. Where a mask admits fewer than k rows, the rest is −∞ with index −1.

    >>> search([[0.0, 1.0]], [[1.0, 0.0], [0.0, 3.0], [1.0, 1.0]], k=2)
    Found(values=array([[1.        , 0.70710678]]), indices=array([[1, 2]]))
    """
    xp, (asked,) = together(queries=queries)
    _refuse_narrow(xp, asked)
    rows = asked[None, :] if asked.ndim == 1 else asked
    _, rows = cloud(xp.constant(rows), "queries", least=0)
    store = Corpus.of(xp, corpus, xp.device(rows))
    k = _check(rows, store, k)
    measure = _measure(xp, xp.astype(rows, xp.float64), metric, tables, store.shape[0])
    teams = [_Team.of(measure, first, k) for first in range(0, rows.shape[0], QUERIES)]
    with shown(progress, store.shape[0]) as advance, xp.quiet(), xp.exact(rows):
        for part in store.blocks(_size(xp, block, rows, store)):
            part.refuse_wild()
            for team in teams:
                team.compare(part)
            advance(part.rows.shape[0])
    found = [team.best.found() for team in teams] or [Best.nothing(xp, 0, k, xp.device(rows)).found()]
    values, indices = (xp.concat(column, axis=0) for column in zip(*found, strict=True))
    with xp.quiet():  # a value may be too large for the dtype of the queries
        values = xp.astype(measure.value(values), asked.dtype)
    return Found(values[0, :], indices[0, :]) if asked.ndim == 1 else Found(values, indices)


@dataclass(frozen=True, eq=False)
class _Team:
    """Some of the queries, and the best that they have found."""

    measure: Measure
    best: Best

    @classmethod
    def of(cls, measure: Measure, first: int, k: int) -> _Team:
        part = measure.part(first, first + QUERIES)
        xp, queries = part.xp, part.queries
        return cls(part, Best.nothing(xp, queries.shape[0], k, xp.device(queries)))

    def compare(self, block: Block) -> None:
        """Propose, then decide: what could be among the k best is compared in float64."""
        xp, measure = self.measure.xp, self.measure
        rows, queries, proposed = self._contenders(block)
        step = max(1, PAIRS // block.rows.shape[1])
        for first in range(0, rows.shape[0], step):
            some = slice(first, first + step)
            y = xp.astype(block.rows[rows[some]], xp.float64)
            self.best.add(queries[some], block.first + rows[some], measure.exact(queries[some], y, proposed[some]))

    def _contenders(self, block: Block) -> tuple[Any, Any, Any]:
        """The pairs that may be among the k best: rows, queries, and what was proposed for them."""
        xp, count = self.measure.xp, self.measure.queries.shape[0]
        scores, places = self._proposed(*self.measure.fitting(block))
        if places.shape[0] > self._many:
            scores, places = self._proposed(*self.measure.careful(block))
        return places // count, places % count, xp.reshape(scores, (-1,))[places]

    def _proposed(self, measure: Measure, block: Block) -> tuple[Any, Any]:
        """Scores (rows, queries), and the places in them that no bound rules out."""
        scores, offset, slack = measure.propose(block)
        cut = self.best.threshold + offset - slack
        places = self._above(scores, cut)
        k = self.best.values.shape[1]
        if places.shape[0] > self._many and k < scores.shape[0]:  # the block itself has k that are better
            kth = measure.xp.astype(measure.xp.kth_largest(scores, k), measure.xp.float64) - 2 * slack
            places = self._above(scores, measure.xp.where(kth > cut, kth, cut))
        return scores, places

    def _above(self, scores: Any, cut: Any) -> Any:
        """The places of scores that exceed the cut; rounded, the cut only falls."""
        xp, facts = self.measure.xp, self.measure.xp.finfo(scores.dtype)
        cut = xp.clip(cut, None, float(facts.max))  # an infinite score stands above it
        cut = cut - 2 * float(facts.eps) * xp.abs(cut) - float(facts.smallest_normal)
        return xp.nonzero(xp.reshape(scores > xp.astype(cut, scores.dtype), (-1,)))[0]

    @property
    def _many(self) -> int:
        """More contenders than this are worth a closer look before each is compared by itself."""
        queries, k = self.best.values.shape
        return int(4 * queries * (k + 16))


def _measure(xp: Library, queries: Any, metric: Any, tables: dict[str, Any], count: int) -> Measure:
    """The metric as a measure of these queries."""
    if isinstance(metric, Expression | Formula):
        return Scored.of(xp, queries, metric, tables, count)
    if tables:
        raise CallError(f"tables: for a score of the algebra; got {', '.join(tables)} with metric={metric!r}")
    if isinstance(metric, Mahalanobis):
        _fits(queries, metric.whitening, "covariance")
        return Whitened(xp, queries, _beside(xp, queries, metric.whitening))
    if isinstance(metric, BilinearForm):
        _fits(queries, metric.matrix, "matrix")
        return Dot(xp, queries @ _beside(xp, queries, metric.matrix))
    if isinstance(metric, str) and metric in MEASURES:
        return MEASURES[metric](xp, queries)
    named = ", ".join(f'"{name}"' for name in MEASURES)
    shown = repr(metric) if isinstance(metric, str) else type(metric).__name__
    raise KindError(f"metric: {named}, a Mahalanobis, a BilinearForm, or a score as in Attention(score=…); got {shown}")


MEASURES: dict[str, type[Measure]] = {"dot": Dot, "cosine": Cosine, "euclidean": Euclidean}


def _beside(xp: Library, queries: Any, matrix: Any) -> Any:
    """A matrix of the metric in the library, place and precision of the queries."""
    _, (_, matrix) = together(queries=queries, metric=xp.constant(matrix))
    return matrix


def _fits(queries: Any, matrix: Any, name: str) -> None:
    if matrix.shape[0] != queries.shape[1]:
        raise CallError(f"metric: its {name} has width {matrix.shape[0]}; got queries of width {queries.shape[1]}")


def _refuse_narrow(xp: Library, queries: Any) -> None:
    """Search decides in float64; JAX has it only when told, and some accelerators never."""
    if xp.name not in ("numpy", "torch"):
        raise KindError(f"queries: from NumPy or PyTorch; got {xp.name}; convert them, as with numpy.asarray")
    if "mps" in str(xp.device(queries)):
        raise CallError("queries: where there is float64, in which search decides; got mps; move them to the CPU")


def _check(queries: Any, corpus: Corpus, k: Any) -> int:
    """k as a number, if all fits."""
    count, width = corpus.shape
    if width != queries.shape[1]:
        raise CallError(f"queries, corpus: vectors of one width; got {queries.shape[1]} and {width}")
    asked = _whole(k, "k: how many to find, an integer of at least 1")
    if asked > count:
        raise CallError(f"k: from 1 to the {count} rows of the corpus; got {k}; pass k=min({k}, len(corpus))")
    return asked


def _size(xp: Library, block: Any, queries: Any, corpus: Corpus) -> int:
    """Rows of a block: as asked, or as many as caches hold."""
    if block is None:
        entries = ON_DEVICE if xp.is_accelerated(queries) else BLOCK
        return max(256, entries // max(corpus.shape[1], min(int(queries.shape[0]), QUERIES), 1))
    return _whole(block, "block: rows that are held at once, an integer of at least 1")


def _whole(value: Any, rule: str) -> int:
    """An integer of at least 1, of Python or NumPy."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer):
        raise KindError(f"{rule}; got {value!r}")
    if value < 1:
        raise CallError(f"{rule}; got {value}")
    return int(value)
