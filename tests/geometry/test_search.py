"""search is exact: what it finds is what whole numbers say, whatever the precision, the blocks and the library."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from neighbours import (
    CASES,
    KINDS,
    METRICS,
    ROWS,
    WIDTH,
    Truth,
    assert_nearest,
    in_kind,
    known,
    normal,
    numpy,
    one_thread,  # noqa: F401 - a fixture of every test here
    truth,
)
from regard._arrays import library
from regard.geometry import Mahalanobis, search
from regard.geometry.nearest import pairs, searching
from regard.geometry.nearest.best import Best
from regard.geometry.nearest.corpus import Block
from regard.geometry.nearest.measures import Cosine, Measure, Proposal, Whitened
from regard.geometry.nearest.searching import _measure, _Team

every_case = pytest.mark.parametrize("case", CASES)
every_kind = pytest.mark.parametrize("kind", KINDS)
every_metric = pytest.mark.parametrize("metric", METRICS)
SEEDS = st.integers(0, 2**32 - 1)


# -- the law -----------------------------------------------------------------------------------------------------


@every_kind
@every_metric
@every_case
def test_finds_the_nearest(case: str, metric: str, kind: str) -> None:
    queries, corpus = CASES[case]
    for k, block in (1, None), (11, 37), (len(corpus), 53):
        found = search(*map(KINDS[kind], (queries, corpus)), k, metric=in_kind(METRICS[metric], kind), block=block)
        assert_nearest(found, known(case, metric), corpus, k)


@st.composite
def calls(draw: Any, elements: st.SearchStrategy[float], dtype: Any) -> tuple[Any, Any, int, int]:
    """Queries, corpus, k and block."""
    width, rows, queries = (draw(st.integers(1, most)) for most in (6, 23, 3))
    x, y = (draw(arrays(dtype, (count, width), elements=elements)) for count in (queries, rows))
    return x, y, draw(st.integers(1, rows)), draw(st.integers(1, rows + 2))


FINITE = st.floats(width=32, allow_nan=False, allow_infinity=False)
FLOAT32 = calls(FINITE, np.float32)
FLOAT64 = calls(st.floats(-1e150, 1e150), np.float64)


@given(
    call=FLOAT32 | FLOAT64, metric=st.sampled_from(["dot", "cosine", "euclidean"]), kind=st.sampled_from(list(KINDS))
)
@settings(max_examples=300)
def test_any_finite_numbers(call: Any, metric: str, kind: str) -> None:
    queries, corpus, k, block = call
    found = search(*map(KINDS[kind], (queries, corpus)), k, metric=metric, block=block)
    assert_nearest(found, truth(metric, queries, corpus), corpus, k)


@given(call=calls(st.integers(-3, 3), np.float32), metric=st.sampled_from(["dot", "euclidean"]))
@settings(max_examples=200)
def test_equal_values_come_in_the_order_of_the_corpus(call: Any, metric: str) -> None:
    queries, corpus, k, block = call
    told = truth(metric, queries, corpus)
    found = search(queries, corpus, k, metric=metric, block=block)
    assert found.indices.tolist() == [told.order(query)[:k] for query in range(len(queries))]


@every_kind
@every_metric
@pytest.mark.parametrize("case", ["plain", "near ties", "three of each", "every magnitude"])
def test_blocks_and_queries_at_once_change_nothing(case: str, metric: str, kind: str, monkeypatch: Any) -> None:
    queries, corpus = map(KINDS[kind], CASES[case])
    options = {"metric": in_kind(METRICS[metric], kind)}
    whole = search(queries, corpus, 7, **options)
    for block in (1, 2, 13, len(corpus), 1000):
        found = search(queries, corpus, 7, block=block, **options)
        np.testing.assert_array_equal(numpy(found.indices), numpy(whole.indices))
        np.testing.assert_array_equal(numpy(found.values), numpy(whole.values))
    monkeypatch.setattr(searching, "PAIRS", 29)
    for at_once in (1, 3):
        monkeypatch.setattr(searching, "QUERIES", at_once)
        found = search(queries, corpus, 7, block=41, **options)
        np.testing.assert_array_equal(numpy(found.indices), numpy(whole.indices))
        if metric != "bilinear":  # xᵀ M is a product of the library: its last digit may differ
            np.testing.assert_array_equal(numpy(found.values), numpy(whole.values))


@every_metric
def test_a_single_query_and_a_single_row(metric: str) -> None:
    queries, corpus = CASES["plain"]
    many, one = (
        search(queries, corpus, 5, metric=METRICS[metric]),
        search(queries[2], corpus, 5, metric=METRICS[metric]),
    )
    assert one.values.shape == one.indices.shape == (5,)
    np.testing.assert_array_equal(one.indices, many.indices[2])
    alone = search(queries, corpus[3:4], 1, metric=METRICS[metric])
    assert_nearest(alone, truth(METRICS[metric], queries, corpus[3:4]), corpus[3:4], 1)
    none = search(queries[:0], corpus, 5, metric=METRICS[metric])
    assert none.values.shape == none.indices.shape == (0, 5)


def test_zero_vectors_have_cosine_zero() -> None:
    corpus = np.array([[-1.0, 0.0], [0.0, 0.0], [2.0, 0.0], [0.0, 0.0]], np.float32)
    found = search(np.array([[1.0, 0.0], [0.0, 0.0]], np.float32), corpus, 4)
    np.testing.assert_array_equal(found.values, [[1, 0, 0, -1], [0, 0, 0, 0]])
    np.testing.assert_array_equal(found.indices, [[2, 1, 3, 0], [0, 1, 2, 3]])


# -- less precision, asked for or not ------------------------------------------------------------------------------


@pytest.mark.parametrize("precision", ["medium", "high"])
@every_metric
def test_products_of_less_precision_only_propose(metric: str, precision: str) -> None:
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision(precision)
    try:
        for case in ("plain", "near ties", "near ties, far away"):
            test_finds_the_nearest(case, metric, list(KINDS)[-1])
    finally:
        torch.set_float32_matmul_precision(before)


@every_metric
def test_autocast_changes_nothing(metric: str) -> None:
    kind = list(KINDS)[-1]
    with torch.autocast("cuda" if kind == "cuda" else "cpu", torch.bfloat16):
        for case in ("plain", "near ties", "near ties, far away"):
            test_finds_the_nearest(case, metric, kind)


def test_the_bound_knows_the_precision() -> None:
    rows, before, width = torch.ones(3, 2**10), torch.get_float32_matmul_precision(), 2**10
    xp, double = library(rows), 2**-43 / (1 - 2**-43)
    assert library(np.ones(1)).product_error(np.ones(1, np.float32), width) == 2**-14 / (1 - 2**-14)
    assert xp.product_error(rows, width) == 2**-14 / (1 - 2**-14)
    assert xp.product_error(rows.double(), width) == double
    try:
        torch.set_float32_matmul_precision("medium")  # factors of 8 digits, each off by 2⁻⁸
        assert xp.product_error(rows, width) == 2**-14 / (1 - 2**-14) + 2**-7
        assert xp.product_error(rows.double(), width) == double
    finally:
        torch.set_float32_matmul_precision(before)


# -- the bound -----------------------------------------------------------------------------------------------------


def proposed(measure: Measure, block: Block) -> Iterator[tuple[Any, Any, Any, Any]]:
    """What is decided, and what is proposed at once and with care: scores, offset and slack."""
    xp, rows = measure.xp, block.wide().rows
    exact = [numpy(measure.exact(xp.full((len(rows),), query), rows, None)) for query in range(len(measure.queries))]
    for proposing, rows in (measure.fitting(block), measure.careful(block)):
        scores, *bounds = map(numpy, proposing.propose(rows))
        yield np.stack(exact, axis=1), scores, *(np.broadcast_to(bound, scores.shape[1:]) for bound in bounds)


def assert_bound(measure: Measure, block: Block, told: Truth) -> None:
    """|s̃ − (s + offset)| ≤ slack, without rounding: for s itself, and for what float64 makes of it."""
    for decided, scores, offset, slack in proposed(measure, block):
        assert np.isfinite(scores).all()
        for row, query in np.ndindex(scores.shape):
            middle, room = (Fraction(float(x)) for x in (scores[row, query], slack[query]))
            low, high = (middle - Fraction(float(offset[query])) + sign * room for sign in (-1, 1))
            assert low <= Fraction(float(decided[row, query])) <= high, (query, row)
            if isinstance(measure, Cosine):  # of which the truth knows cos·|cos|
                low, high = low * abs(low), high * abs(high)
            assert low <= Fraction(told.scores[query, block.first + row]) / told.scale <= high, (query, row)


def measured(queries: Any, metric: Any) -> Measure:
    xp = library(queries)
    return _measure(xp, xp.astype(queries, xp.float64), metric, {}, ROWS)


@every_kind
@every_metric
@every_case
def test_proposals_keep_their_bound(case: str, metric: str, kind: str) -> None:
    queries, corpus = map(KINDS[kind], CASES[case])
    measure = measured(queries, in_kind(METRICS[metric], kind))
    with measure.xp.quiet():
        assert_bound(measure, Block(measure.xp, corpus[40:71], 40), known(case, metric))


@given(
    call=FLOAT32 | FLOAT64, metric=st.sampled_from(["dot", "cosine", "euclidean"]), kind=st.sampled_from(list(KINDS))
)
@settings(max_examples=200)
def test_proposals_keep_their_bound_for_any_numbers(call: Any, metric: str, kind: str) -> None:
    queries, corpus = map(KINDS[kind], call[:2])
    measure = measured(queries, metric)
    with measure.xp.quiet():
        assert_bound(measure, Block(measure.xp, corpus, 0), truth(metric, *call[:2]))


@pytest.mark.parametrize("metric", ["dot", "cosine", "euclidean"])
@pytest.mark.parametrize("width", [1, 2])
def test_the_bound_is_kept_where_rounding_is_at_its_worst(metric: str, width: int) -> None:
    """In narrow vectors every step rounds by nearly as much as it may: the cast of a query, products, sums."""
    rng = np.random.default_rng(11)
    queries, corpus = rng.uniform(1, 2, (997, width)), rng.uniform(0.99, 1, (499, width)).astype(np.float32)
    measure, block = measured(queries, metric), Block(library(queries), corpus, 0)
    scores, offset, slack = measure.propose(block)
    wide = corpus.astype(float)
    exact = np.stack([measure.exact(np.full(len(wide), query), wide, None) for query in range(len(queries))], 1)
    assert (np.abs(scores - (exact + offset)) <= slack).all()


@pytest.mark.parametrize("size", [1e-50, 1.0, 1e50])
@pytest.mark.parametrize("spread", [1e-3, 1.0])
def test_the_bound_of_a_metric_that_stretches(size: float, spread: float) -> None:
    """What A enlarges is also rounding: of rows that vary as Σ says, from near and far, and of rows that do not."""
    rng, deviations = np.random.default_rng(3), np.sqrt(size * spread ** np.arange(WIDTH))
    rotation = np.linalg.qr(rng.standard_normal((WIDTH, WIDTH)))[0]
    metric = Mahalanobis(rotation @ np.diag(deviations**2) @ rotation.T)
    queries, corpus = (rng.standard_normal((count, WIDTH)) * deviations @ rotation.T for count in (3, 29))
    away, longer = 1e3 * deviations[0] * rotation[:, 0], rng.standard_normal((29, WIDTH))
    for x, y in (queries, corpus), (queries + away, corpus + away), (1e6 * away + queries, corpus), (queries, longer):
        for dtype in (np.float32, np.float64):
            measure, rows = measured(x, metric), y.astype(dtype)
            with measure.xp.quiet():
                assert_bound(measure, Block(measure.xp, rows, 0), truth(metric, x, rows))


def assert_bound_without_subnormals(measure: Measure, corpus: Any) -> None:
    """Processors may take subnormal numbers for 0; what is proposed then is still near what is decided then."""
    assert torch.set_flush_denormal(True)
    try:
        found = list(proposed(measure, Block(measure.xp, torch.asarray(corpus), 0)))
    finally:
        torch.set_flush_denormal(False)
    for decided, scores, offset, slack in found:
        for row, query in np.ndindex(scores.shape):
            off = Fraction(float(scores[row, query])) - Fraction(float(offset[query]))
            assert abs(off - Fraction(float(decided[row, query]))) <= Fraction(float(slack[query]))


@every_metric
@pytest.mark.parametrize("case", ["subnormal", "every magnitude", "huge beside tiny", "queries below float32"])
def test_the_bound_holds_where_the_smallest_numbers_are_zero(case: str, metric: str) -> None:
    queries, corpus = CASES[case]
    assert_bound_without_subnormals(measured(torch.asarray(queries), in_kind(METRICS[metric], "torch")), corpus)


def test_the_bound_holds_where_the_smallest_entries_of_a_metric_are_zero() -> None:
    queries, corpus = torch.tensor([[4e18, 0.0]], dtype=torch.float64), np.array([[0.0, 4e18]], np.float32)
    matrix = torch.tensor([[1e-33, 1e-38], [1e-38, 0.0]], dtype=torch.float64)
    assert_bound_without_subnormals(Whitened(library(queries), queries, matrix), corpus)


@every_metric
def test_few_pairs_are_compared_twice(metric: str, monkeypatch: Any) -> None:
    """The slack is no larger than it must be: few pairs that are not found are looked at again."""
    compared, add = [], Best.add
    monkeypatch.setattr(Best, "add", lambda self, rows, *rest: compared.append(len(rows)) or add(self, rows, *rest))
    queries, corpus = normal(11, WIDTH), normal(4001, WIDTH)
    search(queries, corpus, 10, metric=METRICS[metric], block=1000)
    assert sum(compared) < 11 * 60  # 10 of the first block, then about 10 (ln 4 + 1/2 …) newcomers, and near ties


@pytest.mark.parametrize("metric", ["euclidean", "mahalanobis"])
def test_few_pairs_are_compared_twice_far_away(metric: str, monkeypatch: Any) -> None:
    """Care is to look from where the queries are: there products are as small as distances."""
    compared, add = [], Best.add
    monkeypatch.setattr(Best, "add", lambda self, rows, *rest: compared.append(len(rows)) or add(self, rows, *rest))
    queries, corpus = (1e-3 * normal(count, WIDTH).astype(float) + 1e6 for count in (11, 4001))
    search(queries, corpus, 10, metric=METRICS[metric], block=1000)
    assert sum(compared) < 11 * 60


# -- contenders ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Liar(Measure):
    """Proposes what is wrong by as much as the slack allows. Row r is the vector (r,)."""

    scores: Any = None  # (rows, queries)
    lies: Any = None  # the same, within ± slack
    offset: Any = 0.0
    slack: Any = 0.0
    dtype: Any = np.float64

    def propose(self, block: Block) -> Proposal:
        rows = block.rows[:, 0].astype(int)
        return Proposal((self.scores + self.offset + self.lies)[rows].astype(self.dtype), self.offset, self.slack)

    def exact(self, which: Any, y: Any, proposed: Any) -> Any:
        return self.scores[y[:, 0].astype(int), which]

    def reach(self, block: Block) -> Any:
        return 1.0

    def careful(self, block: Block) -> tuple[Measure, Block]:
        return replace(self, lies=self.lies / 2, slack=self.slack / 2), block


@given(seed=SEEDS, rows=st.integers(1, 400), queries=st.integers(1, 3), k=st.integers(1, 5), block=st.integers(1, 400))
@settings(max_examples=300)
def test_no_lie_within_the_slack_is_believed(seed: int, rows: int, queries: int, k: int, block: int) -> None:
    rng, k = np.random.default_rng(seed), min(k, rows)
    scores = rng.integers(-99, 99, (rows, queries)) * 1.0
    slack, offset = rng.integers(0, 30, queries) * 1.0, rng.integers(-99, 99, queries) * 1.0
    against = np.where(np.argsort(np.argsort(-scores, axis=0), axis=0) < k, -slack, slack)
    lies = [against, rng.choice([-1.0, 0.0, 1.0], (rows, queries)) * slack][seed % 2]
    xp, dtype = library(scores), [np.float32, np.float64][seed // 2 % 2]
    measure = Liar(xp, np.arange(queries)[:, None] * 1.0, scores, lies, offset, slack, dtype)
    team = _Team(measure, Best.nothing(xp, queries, k, None))
    for first in range(0, rows, block):
        team.compare(Block(xp, np.arange(first, min(first + block, rows), dtype=np.float32)[:, None], first))
    expected = np.argsort(-scores, axis=0, kind="stable")[:k].T
    np.testing.assert_array_equal(team.best.found()[1], expected)


SMALLEST = st.integers(-9, 9).map(lambda steps: steps * 2.0**-149)


@given(scores=arrays(np.float32, (13, 2), elements=FINITE) | arrays(np.float32, (13, 2), elements=SMALLEST), seed=SEEDS)
def test_a_cut_that_is_rounded_only_falls(scores: Any, seed: int) -> None:
    """All that exceeds the cut is a contender, and nothing that lies clearly below."""
    rng, xp = np.random.default_rng(seed), library(scores)
    team = _Team(Liar(xp, np.zeros((2, 1))), Best.nothing(xp, 2, 1, None))
    nudge = rng.choice([-1.0, 0.0, 1.0], 2) * (2.0**-151 + np.abs(scores[3].astype(float)) * 2.0**-26)
    cut, kept = scores[3].astype(float) + nudge, np.zeros(scores.shape, bool)
    with xp.quiet():
        kept.reshape(-1)[team._above(scores, cut)] = True
        empty = team._above(np.array([[-np.inf, np.inf]]), np.full(2, -np.inf))
    assert kept[scores.astype(float) > cut].all()
    assert not kept[scores.astype(float) < cut - 2**-20 * np.abs(cut) - 2**-120].any()
    assert empty.tolist() == [1]  # where nothing was found yet, −∞ is still nothing


# -- one order of rounding -----------------------------------------------------------------------------------------


def _even(xp: Any, x: Any) -> tuple[Any, Any]:
    """Queries as cosines take them: over their largest entries, with their squared lengths."""
    x = pairs.even(xp, x)
    return x, pairs.products(x, x)


@every_kind
@pytest.mark.parametrize("width", [1, 2, 3, 31, 64, 65, 257, 1009])
def test_a_pair_is_rounded_alike_in_any_company(width: int, kind: str) -> None:
    rng = np.random.default_rng(width)
    x, y, *others = rng.standard_normal((2 + 131, width))
    xp = library(KINDS[kind](x))
    matrix = KINDS[kind](rng.standard_normal((width, width)))
    compare = {
        "products": lambda x, y: pairs.products(x, y),
        "cosines": lambda x, y: pairs.cosines(xp, *_even(xp, x), y),
        "squares": lambda x, y: pairs.squares(xp, x - y, matrix),
    }
    for name, function in compare.items():
        alone = numpy(function(KINDS[kind](x[None]), KINDS[kind](y[None])))
        for count in (1, 2, 63, 64, 130):
            for place in {0, count // 2, count}:
                company = np.stack([*others[:place], y, *others[place:count]])
                among = numpy(function(KINDS[kind](np.repeat(x[None], count + 1, 0)), KINDS[kind](company)))
                assert among[place] == alone[0], (name, count, place)


@given(call=calls(st.floats(-1e3, 1e3), np.float64))
def test_pairs_are_what_they_say(call: Any) -> None:
    rows = call[1]
    others, xp = rows[::-1].copy(), library(rows)
    matrix = np.random.default_rng(rows.shape[1]).standard_normal((rows.shape[1], rows.shape[1]))
    expected = {"dot": (rows * others).sum(1), "square": ((rows @ matrix.T) ** 2).sum(1)}
    np.testing.assert_allclose(pairs.products(rows, others), expected["dot"], atol=1e-9)
    np.testing.assert_allclose(pairs.squares(xp, rows, matrix), expected["square"], rtol=1e-12, atol=1e-300)
    cosines = truth("cosine", rows, others)
    np.testing.assert_allclose(pairs.cosines(xp, *_even(xp, rows), others), np.diag(cosines.values), atol=1e-14)


@every_kind
@pytest.mark.parametrize("metric", ["dot", "cosine", "euclidean", "mahalanobis"])
def test_equal_rows_keep_their_order_over_blocks(metric: str, kind: str) -> None:
    width = 127
    corpus, square = np.tile(normal(5, width), (67, 1)), normal(width, width).astype(float)
    chosen = Mahalanobis(KINDS[kind](square @ square.T + np.eye(width))) if metric == "mahalanobis" else metric
    found = search(*map(KINDS[kind], (normal(7, width), corpus)), 67 * 2, metric=chosen, block=29)
    for row in numpy(found.indices):
        assert row[:67].tolist() == list(range(row[0], 335, 5))
        assert row[67:].tolist() == list(range(row[67], 335, 5))


# -- the k best ----------------------------------------------------------------------------------------------------

VALUES = st.sampled_from([-np.inf, -1.5, -0.0, 0.0, 1.0, 1.5, np.inf])


@given(
    rounds=st.lists(st.lists(st.tuples(st.integers(0, 2), VALUES), max_size=9), max_size=5),
    k=st.integers(1, 4),
    kind=st.sampled_from(list(KINDS)),
)
def test_best_is_a_sort(rounds: Any, k: int, kind: str) -> None:
    xp = library(KINDS[kind](np.zeros(1)))
    best, seen, index = Best.nothing(xp, 3, k, xp.device(KINDS[kind](np.zeros(1)))), [], 0
    for newcomers in rounds:
        together = [(query, index + place, value) for place, (query, value) in enumerate(newcomers)]
        index += len(newcomers)
        seen += together
        rows, indices = (np.array([t[column] for t in together], np.int64) for column in (0, 1))
        best.add(*map(KINDS[kind], (rows, indices, np.array([t[2] for t in together], float))))
        values, found = map(numpy, best.found())
        for query in range(3):
            mine = sorted(((-v, i) for q, i, v in seen if q == query))[:k]
            empty = k - len(mine)
            assert found[query].tolist() == [i for _, i in mine] + [-1] * empty
            assert values[query].tolist() == [-v for v, _ in mine] + [-np.inf] * empty
            assert numpy(best.threshold)[query] == values[query, -1]


@given(x=arrays(np.float32, (7, 3), elements=st.floats(width=32, allow_subnormal=False)), k=st.integers(1, 7))
def test_the_kth_largest_is_that_of_a_sort(x: Any, k: int) -> None:
    expected = np.sort(x, axis=0)[7 - k]  # NaN behind all numbers
    for array in (x, torch.asarray(x), jnp.asarray(x)):
        np.testing.assert_array_equal(np.asarray(library(array).kth_largest(array, k)), expected)


def test_only_some_devices_take_large_pieces() -> None:
    assert not library(np.ones(1)).is_accelerated(np.ones(1))
    assert not library(jnp.ones(1)).is_accelerated(jnp.ones(1))
    assert not library(torch.ones(1)).is_accelerated(torch.ones(1))
    assert library(torch.ones(1)).is_accelerated(torch.ones(1, device="meta"))


def test_precision_that_was_set_for_one_backend_alone_is_not_trusted() -> None:
    corpus = torch.from_numpy(normal(997, 67))
    expected = search(corpus[:7], corpus, 5, metric="dot").indices
    before = torch.backends.mkldnn.matmul.fp32_precision
    torch.backends.mkldnn.matmul.fp32_precision = "bf16"
    try:
        assert library(corpus).product_error(corpus, 67) > 2**-8
        assert torch.equal(search(corpus[:7], corpus, 5, metric="dot").indices, expected)
    finally:
        torch.backends.mkldnn.matmul.fp32_precision = before


def test_no_bound_is_left_where_a_width_is_beyond_the_precision() -> None:
    assert library(np.ones(1)).product_error(np.ones(1, np.float32), 2**25) == np.inf
