"""n-grams: probabilities that sum to one, are those of the formulas, and predict better with more context."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.algebra.errors import CallError, KindError
from regard.train import ngrams
from regard.train.ngrams import NGrams, best, fit
from regard.train.smoothing import AddOne, KneserNey, Smoothing, WittenBell, discounts

V = 7
SMOOTHINGS: list[Smoothing] = [KneserNey(), WittenBell(), AddOne()]
every_smoothing = pytest.mark.parametrize("smoothing", SMOOTHINGS, ids=lambda smoothing: smoothing.name)
texts = st.lists(st.lists(st.integers(0, V - 3), min_size=5, max_size=40), min_size=1, max_size=3)  # two never seen
contexts = st.lists(st.integers(0, V - 1), max_size=6)
orders = st.integers(1, 5)


def repetitive(length: int, seed: int = 0) -> Any:
    """Ids of which each depends on the two before it, and on chance."""
    rng, ids = np.random.default_rng(seed), [0, 1]
    for _ in range(length - 2):
        ids.append((ids[-1] + 2 * ids[-2] + 1) % 5 if rng.random() < 0.9 else int(rng.integers(5)))
    return np.asarray(ids, dtype=np.uint16)


# -- laws ------------------------------------------------------------------------------------------------------


@every_smoothing
@settings(max_examples=40)
@given(texts, orders, contexts)
def test_probabilities_sum_to_one(smoothing: Smoothing, texts: Any, order: int, context: list[int]) -> None:
    p = fit(texts, order, V, smoothing).distribution(context)
    assert p.shape == (V,)
    assert p.min() > 0
    assert p.sum() == pytest.approx(1, abs=1e-12)


@every_smoothing
@settings(max_examples=40)
@given(texts, orders, contexts)
def test_nats_are_those_of_the_distributions(smoothing: Smoothing, texts: Any, order: int, ids: list[int]) -> None:
    model = fit(texts, order, V, smoothing)
    expected = [-math.log(model.distribution(ids[:place])[number]) for place, number in enumerate(ids)]
    assert model.nats(ids) == pytest.approx(expected, rel=1e-12)


@every_smoothing
def test_only_the_last_ids_matter(smoothing: Smoothing) -> None:
    model = fit(repetitive(300), 3, V, smoothing)
    assert np.array_equal(model.distribution([4, 4, 1, 2]), model.distribution([1, 2]))
    assert not np.array_equal(model.distribution([1, 2]), model.distribution([3, 2]))


@every_smoothing
def test_texts_do_not_run_into_each_other(smoothing: Smoothing) -> None:
    apart, together = fit([[0, 1, 0], [2, 3, 2]], 2, V, smoothing), fit([0, 1, 0, 2, 3, 2], 2, V, smoothing)
    assert together.distribution([0])[2] > 1.2 * apart.distribution([0])[2]
    both = [[0, 1, 2], [1, 0]]
    assert np.array_equal(apart.nats(both), np.concatenate([apart.nats(one) for one in both]))
    assert np.array_equal(apart.nats(both, first=1), np.concatenate([apart.nats(one)[1:] for one in both]))


def test_ids_of_any_size_are_counted() -> None:
    """The numbers of ids are names: other names, other integers, the same probabilities."""
    ids = repetitive(500)
    small, large = fit(ids, 6, 60_000), fit(ids.astype(np.int64) * 11_999, 6, 60_000)
    assert np.array_equal(small.nats(ids), large.nats(ids * np.int64(11_999)))


# -- the formulas, written out ---------------------------------------------------------------------------------

Formula = Callable[[list[list[int]], int, list[int], int], float]


def grams(texts: list[list[int]], k: int) -> Counter[tuple[int, ...]]:
    return Counter(tuple(text[at : at + k]) for text in texts for at in range(len(text) - k + 1))


def before(texts: list[list[int]], k: int) -> Counter[tuple[int, ...]]:
    """In how many different places each k-gram stands: after different ids, or at a start."""
    marked = [[-1, *text] for text in texts]
    return Counter(gram[1:] for gram in grams(marked, k + 1))


def kneser_ney(texts: list[list[int]], n: int, context: list[int], w: int) -> float:
    p = 1 / V
    for k in range(1, min(n, len(context) + 1) + 1):
        a = grams(texts, k) if k == n else before(texts, k)
        D = discounts(np.asarray(list(a.values())))
        h = tuple(context[len(context) - k + 1 :])
        after = {gram[-1]: count for gram, count in a.items() if gram[:-1] == h}
        if after:
            left = sum(D[min(count, 3)] for count in after.values())
            own = max(0, after.get(w, 0) - D[min(after.get(w, 0), 3)])
            p = own / sum(after.values()) + left / sum(after.values()) * p
    return p


def witten_bell(texts: list[list[int]], n: int, context: list[int], w: int) -> float:
    p = 1 / V
    for k in range(1, min(n, len(context) + 1) + 1):
        h = tuple(context[len(context) - k + 1 :])
        after = {gram[-1]: count for gram, count in grams(texts, k).items() if gram[:-1] == h}
        if after:
            p = (after.get(w, 0) + len(after) * p) / (sum(after.values()) + len(after))
    return p


def add_one(texts: list[list[int]], n: int, context: list[int], w: int) -> float:
    if len(context) < n - 1:
        return 1 / V
    h = tuple(context[len(context) - n + 1 :])
    after = {gram[-1]: count for gram, count in grams(texts, n).items() if gram[:-1] == h}
    return (after.get(w, 0) + 1) / (sum(after.values()) + V)


@pytest.mark.parametrize(
    ("smoothing", "formula"),
    [(KneserNey(), kneser_ney), (WittenBell(), witten_bell), (AddOne(), add_one)],
    ids=["Kneser–Ney", "Witten–Bell", "add-one"],
)
@settings(max_examples=60)
@given(texts, st.integers(1, 4), contexts)
def test_is_the_formula(smoothing: Smoothing, formula: Formula, texts: Any, order: int, context: list[int]) -> None:
    expected = [formula(texts, order, context, w) for w in range(V)]
    assert fit(texts, order, V, smoothing).distribution(context) == pytest.approx(expected, rel=1e-12)


def test_discounts_of_chen_and_goodman() -> None:
    m = [0, 31, 13, 7, 5]  # how many counts are 1, 2, 3, 4
    a = np.repeat([1, 2, 3, 4, 9], [*m[1:], 11])
    Y = m[1] / (m[1] + 2 * m[2])
    expected = [0, 1 - 2 * Y * m[2] / m[1], 2 - 3 * Y * m[3] / m[2], 3 - 4 * Y * m[4] / m[3]]
    assert discounts(a) == pytest.approx(expected)


@pytest.mark.parametrize("a", [[9, 8], [1, 1], [2], [1, 2, 2, 2, 2, 2, 3, 3, 3, 3, 3, 3, 3, 4]])
def test_discounts_where_counts_tell_nothing(a: list[int]) -> None:
    D = discounts(np.asarray(a))
    assert D[0] == 0
    assert all(0 < D[n] < n for n in (1, 2, 3))


# -- the best --------------------------------------------------------------------------------------------------


def test_best_is_the_lowest_of_the_table() -> None:
    training, held_out = [repetitive(700), repetitive(400, seed=1)], [repetitive(300, seed=2), repetitive(200, seed=3)]
    found = best(training, held_out, orders=(1, 2, 3, 5), vocabulary_size=V, first=2)
    assert [row.order for row in found.table] == [1, 2, 3, 5] * 2
    for row in found.table:
        smoothing = KneserNey() if row.smoothing == "Kneser–Ney" else WittenBell()
        model = fit(training, row.order, V, smoothing)
        assert row.nats == pytest.approx(model.nats(held_out, first=2).mean(), rel=1e-12)
    assert found.nats == min(row.nats for row in found.table)
    assert found.model.nats(held_out, first=2).mean() == pytest.approx(found.nats, rel=1e-12)
    assert found.order == 3, "each id depends on the two before it"
    lines = str(found).splitlines()
    assert lines[0].split() == ["order", "Kneser–Ney", "Witten–Bell"]
    assert lines[3].split() == ["3", *(f"{row.nats:.4f}" for row in found.table if row.order == 3)]


def test_vocabulary_is_as_large_as_the_ids_say() -> None:
    assert best([0, 1, 0, 1], [0, 4], orders=[1]).model.vocabulary_size == 5


def test_context_is_worth_what_it_is_worth() -> None:
    """Where nine of ten ids follow from the two before, no model of n-grams is far from the entropy of the rest."""
    held_out = repetitive(5_000, seed=1)
    entropy = -(0.92 * math.log(0.92) + 4 * 0.02 * math.log(0.02))
    assert fit(repetitive(50_000), 3, 5).nats(held_out).mean() == pytest.approx(entropy, abs=0.02)
    assert fit(repetitive(50_000), 1, 5).nats(held_out).mean() == pytest.approx(math.log(5), abs=0.1)


# -- samples ---------------------------------------------------------------------------------------------------


def test_samples_are_as_frequent_as_probable() -> None:
    model = fit(repetitive(2_000), 3, V)
    drawn = np.asarray([model.sample(np.random.default_rng(seed), 1, start=[3, 1])[0] for seed in range(600)])
    shares = np.bincount(drawn, minlength=V) / len(drawn)
    assert shares == pytest.approx(model.distribution([3, 1]), abs=0.06)


def test_samples_follow_from_the_generator_and_the_start() -> None:
    model = fit(repetitive(500), 2, V)
    one, same, other = (model.sample(np.random.default_rng(seed), 23) for seed in (0, 0, 1))
    assert np.array_equal(one, same)
    assert not np.array_equal(one, other)
    assert one.shape == (23,)
    assert model.sample(np.random.default_rng(0), 0, start=[1]).shape == (0,)


# -- refusals --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "kind", "text"),
    [
        (lambda: fit([0, 1, 7], 2, V), CallError, "ids: from 0 to 6, vocabulary_size − 1; got 7"),
        (lambda: fit([0, -2], 2, V), CallError, "ids: from 0 to 6, .*; got -2"),
        (lambda: fit([0, 1, 2], 4, V), CallError, "order: at most 3, the length of the longest text; got 4"),
        (lambda: fit([], 1, V), CallError, "order: at most 0"),
        (lambda: fit([0, 1], 0, V), CallError, "order: an integer of at least 1, how many ids a gram has; got 0"),
        (lambda: fit([0, 1], 1.5, V), CallError, "order: an integer of at least 1.*; got 1.5"),
        (lambda: fit("text", 1, V), KindError, "ids: integers, in one sequence or in several; got .*encode the text"),
        (lambda: fit(np.zeros(3), 1, V), KindError, r"ids: integers.*; got dtype float64 and shape \(3,\)"),
        (lambda: fit(np.zeros((2, 3), int), 1, V), KindError, r"ids: .*shape \(2, 3\)"),
        (lambda: fit([0, 1], 1, V).nats([9]), CallError, "ids: from 0 to 6, .*; got 9"),
        (lambda: fit([0, 1], 1, V).distribution([9]), CallError, "context: from 0 to 6, .*; got 9"),
        (lambda: best([0, 1], [0, 9], [1], vocabulary_size=V), CallError, "held_out: from 0 to 6, .*; got 9"),
        (
            lambda: best([0, 1], [0, 1], [1], first=2),
            CallError,
            "held_out: at least one id after the first 2; got none",
        ),
        (lambda: best([0, 1], [0, 1], []), CallError, "order: an integer of at least 1"),
    ],
)
def test_refusals(call: Callable[[], Any], kind: type[Exception], text: str) -> None:
    with pytest.raises(kind, match=text):
        call()


def test_model_shows_what_it_is() -> None:
    model = fit([0, 1, 0], 2, V)
    assert repr(model) == "NGrams(vocabulary_size=7, smoothing=KneserNey())"
    assert isinstance(model, NGrams)
    assert model.order == 2
    assert ngrams.fit is fit
