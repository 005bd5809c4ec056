"""Nearest neighbours by whole numbers: an oracle without rounding, and corpora that make trouble."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import pytest
import torch

from regard.geometry import BilinearForm, Mahalanobis

WIDTH, ROWS = 5, 101
UNDERFLOW = Fraction(1, 2**1060)  # more than float64 loses of a sum of small products
RNG = np.random.default_rng(7)
KINDS = {"numpy": np.asarray, "torch": torch.asarray}
if torch.cuda.is_available():
    KINDS["cuda"] = lambda array: torch.asarray(array, device="cuda")


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """Arrays are small here: threads would only wait for each other."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def normal(*shape: int) -> Any:
    """Random numbers in float32, the same ones on every run."""
    return RNG.standard_normal(shape).astype(np.float32)


def numpy(array: Any) -> Any:
    """An array of any kind, as NumPy."""
    return np.asarray(array.detach().cpu() if isinstance(array, torch.Tensor) else array)


def whole(*arrays: Any) -> tuple[int, list[Any]]:
    """The very numbers of the arrays, as integers over one power of 2, and that power."""
    ratios = [[float(value).as_integer_ratio() for value in numpy(array).reshape(-1)] for array in arrays]
    scale = max(below for array in ratios for _, below in array)
    integers = [[above * (scale // below) for above, below in array] for array in ratios]
    return scale, [
        np.array(values, dtype=object).reshape(numpy(array).shape)
        for values, array in zip(integers, arrays, strict=True)
    ]


# -- metrics -----------------------------------------------------------------------------------------------------

SQUARE = RNG.standard_normal((WIDTH, WIDTH))
METRICS: dict[str, Any] = {
    "dot": "dot",
    "cosine": "cosine",
    "euclidean": "euclidean",
    "mahalanobis": Mahalanobis(SQUARE @ SQUARE.T + np.eye(WIDTH) / 10),
    "bilinear": BilinearForm(SQUARE),
}


def in_kind(metric: Any, kind: str) -> Any:
    """The same metric with a matrix of this kind."""
    if isinstance(metric, Mahalanobis):
        made = Mahalanobis(KINDS[kind](metric.covariance))
        made.__dict__["whitening"] = KINDS[kind](
            metric.whitening
        )  # to the last digit, which libraries find differently
        return made
    return BilinearForm(KINDS[kind](metric.matrix)) if isinstance(metric, BilinearForm) else metric


# -- what is near, without rounding ------------------------------------------------------------------------------


@dataclass(frozen=True)
class Truth:
    """Of every query and row: s · scale, which grows with nearness, without rounding; and what people read."""

    scores: Any
    scale: int
    rounding: Any  # by how much float64 may be off in a score
    values: Any
    off: Any  # ... and in a value

    def order(self, query: int) -> list[int]:
        """All rows, the nearest first, equal ones in the order of the corpus."""
        return sorted(range(self.scores.shape[1]), key=lambda row: (-self.scores[query, row], row))

    def alike(self, query: int, row: int, other: int) -> bool:
        """Whether float64 may take one for the other."""
        (s, t), (off, other_off) = self.scores[query, [row, other]], self.rounding[query, [row, other]]
        return row == other or bool(abs(s - t) <= off + other_off)


def truth(metric: Any, queries: Any, corpus: Any) -> Truth:
    """The oracle; s is x·y, −d²/2, or cos·|cos|, which is a fraction and grows with cos."""
    scale, (x, y) = whole(queries, corpus)
    unit = Fraction(4 * (x.shape[1] + 8), 2**53)  # of the rounding of a sum of products, and a few steps more
    if isinstance(metric, Mahalanobis):
        power, (matrix,) = whole(metric.whitening)
        unit *= round(np.linalg.cond(numpy(metric.whitening))) + 1  # A may shorten a vector more than its rounding
        return _distances(x @ matrix.T, y @ matrix.T, scale * power, unit)
    if isinstance(metric, BilinearForm):
        power, (matrix,) = whole(metric.matrix)
        return _products(x @ matrix, y, abs(x) @ abs(matrix), scale * power * scale, unit)
    if metric == "euclidean":
        return _distances(x, y, scale, unit)
    return _cosines(x, y, unit) if metric == "cosine" else _products(x, y, abs(x), scale**2, unit)


def _products(x: Any, y: Any, size: Any, scale: int, unit: Fraction) -> Truth:
    scores = x @ y.T
    rounding = size @ abs(y).T * unit + scale * UNDERFLOW
    return Truth(scores, scale, rounding, _floats(scores, scale), _floats(rounding, scale))


def _cosines(x: Any, y: Any, unit: Fraction) -> Truth:
    dots, squares = x @ y.T, np.outer((x * x).sum(1), (y * y).sum(1))
    scores = dots * abs(dots) * Fraction(1) / np.where(squares == 0, 1, squares)
    values = np.vectorize(lambda s: math.copysign(math.sqrt(abs(s)), s), otypes=[float])(scores)
    return Truth(scores, 1, np.full(scores.shape, unit), values, np.full(scores.shape, float(unit)))


def _distances(x: Any, y: Any, scale: int, unit: Fraction) -> Truth:
    squares = np.array([((a - y) ** 2).sum(1) for a in x], dtype=object)
    values = np.sqrt(_floats(squares, scale**2))
    off = values * float(unit) + math.sqrt(UNDERFLOW)
    return Truth(-squares, 2 * scale**2, squares * unit + scale**2 * UNDERFLOW, values, off)


def _floats(values: Any, scale: int) -> Any:
    return np.vectorize(lambda value: float(Fraction(value) / scale), otypes=[float])(values)


def assert_nearest(found: Any, told: Truth, corpus: Any, k: int) -> None:
    """The k nearest, the nearest first; rows stand in for each other only where float64 cannot tell them apart."""
    indices, values = numpy(found.indices), numpy(found.values)
    assert indices.shape == values.shape == (len(told.scores), k)
    groups = np.unique(numpy(corpus), axis=0, return_inverse=True)[1].reshape(-1)
    for query, ours in enumerate(indices.tolist()):
        assert len(set(ours)) == k
        for row, best in zip(ours, told.order(query), strict=False):
            assert told.alike(query, row, best), (query, ours)
        for group in set(groups[ours]):
            of_group = [row for row in ours if groups[row] == group]
            assert of_group == np.flatnonzero(groups == group)[: len(of_group)].tolist(), "equal rows keep their order"
    expected, off = (np.take_along_axis(part, indices, 1) for part in (told.values, told.off))
    assert_rounded(values, expected, off)


def assert_rounded(values: Any, expected: Any, off: Any) -> None:
    """The expected values, each off by no more than `off` before it was rounded to this dtype."""
    facts = np.finfo(values.dtype)
    with np.errstate(over="ignore"):
        too_large = np.isinf(expected.astype(values.dtype))
    np.testing.assert_array_equal(np.isinf(values), too_large)
    room = off + float(facts.eps) * np.abs(expected) + float(facts.smallest_subnormal)
    assert (np.abs(values.astype(float) - expected) <= room)[~too_large].all()


# -- corpora that make trouble -----------------------------------------------------------------------------------


def near_ties(rows: int = ROWS, *, offset: float = 0.0) -> Any:
    """float32 rows a few steps of the last digit apart: products in float32 cannot tell them apart."""
    base = (normal(WIDTH) + np.float32(offset)).astype(np.float32)
    return base + RNG.integers(-3, 4, (rows, WIDTH)).astype(np.float32) * np.spacing(np.abs(base))


def mixed(rows: int = ROWS, *, low: int = -30, high: int = 30) -> Any:
    """float32 rows of every magnitude, some of them zero."""
    sizes = 10.0 ** RNG.integers(low, high + 1, (rows, 1))
    sizes[:: max(1, rows // 3)] = 0.0
    return (RNG.standard_normal((rows, WIDTH)) * sizes).astype(np.float32)


def _cases() -> Iterator[tuple[str, Any, Any]]:
    """A name, queries and a corpus."""
    queries, wide, base = normal(7, WIDTH), RNG.standard_normal((7, WIDTH)), normal(ROWS, WIDTH)
    along, ones = np.argsort(base.sum(1)), np.ones((3, WIDTH), np.float32)
    huge, tiny = np.float32(1e30), np.float32(1e-30)
    yield "plain", queries, base
    yield "near ties", queries, near_ties()
    yield "near ties, far away", queries, near_ties(offset=1e4)
    for offset in (np.float32(1e4), np.float32(1e6)):
        yield f"both {offset:g} away", queries + offset, base + offset
        yield f"queries {offset:g} away", queries + offset, base
    yield "two clouds", np.vstack([queries, queries + 1e6]), np.vstack([base, base + 1e6]).astype(np.float32)
    yield "all equal", queries, np.repeat(base[:1], ROWS, 0)
    yield "three of each", queries, np.tile(base[: ROWS // 3], (3, 1))
    yield "each block better", ones, base[along]
    yield "each block worse", ones, base[along[::-1]]
    yield "huge", huge * queries, huge * base
    yield "tiny", tiny * queries, tiny * base
    yield "squares that vanish", queries, np.float32(3e-24) * base
    yield "huge beside tiny", tiny * queries, huge * base
    yield "every magnitude", mixed(7), mixed()
    yield "subnormal", mixed(7, low=-44, high=-36), mixed(low=-44, high=-36)
    yield "queries below float32", wide * 1e-47, np.float32(1e15) * near_ties()
    yield "queries above float32", wide * 1e47, -np.abs(base)
    yield "queries between float32", wide, near_ties()
    yield "float64", wide, 1 + 1e-15 * RNG.standard_normal((ROWS, WIDTH))
    yield "lengths whose squares vanish", wide * 1e-170, 1e120 * (1 + 1e-14 * RNG.standard_normal((ROWS, WIDTH)))
    yield "zeros", np.vstack([queries, np.zeros((2, WIDTH), np.float32)]), mixed(low=0, high=0)
    yield "itself", base[:7], base


CASES = {name: (queries, corpus) for name, queries, corpus in _cases()}


@cache
def known(case: str, metric: str) -> Truth:
    """The truth of a case, once."""
    return truth(METRICS[metric], *CASES[case])
