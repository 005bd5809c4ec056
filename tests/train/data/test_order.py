"""The order of examples: every epoch has each once, and nothing but (seed, step) tells what a step sees."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.algebra.errors import CallError, KindError
from regard.train.data.draws import Draws
from regard.train.data.order import Order, in_order

sizes = st.integers(1, 23)


@given(sizes, sizes, st.integers(0, 2**64 - 1))
def test_each_epoch_has_every_row_once(count: int, batch: int, seed: int) -> None:
    order = Order(count, batch, seed)
    stream = np.concatenate([order[step] for step in range(order.steps(3))])
    for epoch in range(3):
        assert sorted(stream[epoch * count : (epoch + 1) * count]) == list(range(count))


@given(sizes, sizes, st.lists(st.integers(0, 10**6), max_size=5))
def test_a_step_does_not_depend_on_those_before_it(count: int, batch: int, before: list[int]) -> None:
    order, fresh = Order(count, batch, seed=7), Order(count, batch, seed=7)
    for step in before:
        order[step]
    assert order[11].tolist() == fresh[11].tolist()
    assert len(fresh[11]) == batch


def test_epochs_and_seeds_have_orders_of_their_own() -> None:
    epochs = {tuple(Order(97, 97, seed)[step].tolist()) for seed in range(5) for step in range(7)}
    assert len(epochs) == 35


def test_a_batch_that_is_changed_changes_no_other() -> None:
    order = Order(13, 5)
    before = order[1].tolist()
    order[1][:] = 0
    assert order[1].tolist() == before


def test_the_order_is_the_same_on_every_machine() -> None:
    """Written down once: a run that was begun with an older version sees the same when it is resumed."""
    assert Order(11, 7, seed=3)[2].tolist() == [6, 9, 5, 0, 1, 3, 10]
    assert Draws(3, "split", 5).integers(0, 99, 5).tolist() == [19, 39, 67, 47, 72]


@given(st.integers(0, 40), sizes)
def test_in_order_is_each_row_once(count: int, batch: int) -> None:
    parts = [part.tolist() for part in in_order(count, batch)]
    assert [row for part in parts for row in part] == list(range(count))
    assert all(len(part) == batch for part in parts[:-1])


def test_epochs_are_counted() -> None:
    order = Order(10, 4)
    assert [order.epoch(step) for step in (0, 5)] == [0, 2]
    assert [order.steps(epochs) for epochs in (0, 1, 2, 0.5)] == [0, 3, 5, 2]


# -- draws -----------------------------------------------------------------------------------------------------


def test_draws_are_spread_as_they_should_be() -> None:
    draws = Draws(1, "test")
    uniform, normal = draws.uniform(20011), draws.apart("normal").normal(20011)
    assert 0 <= uniform.min() < 0.001 < 0.999 < uniform.max() < 1
    assert abs(normal.mean()) < 0.03
    assert abs(normal.std() - 1) < 0.03
    assert abs(np.corrcoef(uniform, normal)[0, 1]) < 0.03
    counts = Counter(draws.integers(-2, 2, 20011).tolist())
    assert sorted(counts) == [-2, -1, 0, 1, 2]
    assert max(counts.values()) < 1.1 * min(counts.values())


def test_places_and_purposes_have_draws_of_their_own() -> None:
    every = [Draws(0, "a"), Draws(0, "b"), Draws(0, "a", 1), Draws(1, "a"), Draws(0, "a").apart(0)]
    assert len({tuple(draws.uniform(3).tolist()) for draws in every}) == len(every)


# -- refusals --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "kind", "text"),
    [
        ((0, 3), CallError, "count: at least 1; got 0"),
        ((3, 0), CallError, "batch: at least 1; got 0"),
        ((3, 2.5), KindError, "batch: an integer; got 2.5"),
        ((3, True), KindError, "batch: an integer; got True"),
        ((3, 2, -1), CallError, "seed: from 0 to 2⁶⁴ − 1; got -1"),
        ((3, 2, "7"), KindError, "seed: an integer; got '7'"),
    ],
)
def test_what_is_no_order(arguments: tuple[Any, ...], kind: type[Exception], text: str) -> None:
    with pytest.raises(kind, match=text):
        Order(*arguments)


def test_what_is_no_step() -> None:
    with pytest.raises(CallError, match="step: counted from 0; got -1"):
        Order(5, 2)[-1]
    with pytest.raises(KindError, match=r"step: an integer; got 1\.5"):
        Order(5, 2)[1.5]  # type: ignore[index]
    with pytest.raises(KindError, match=r"steps have no end; write order\[step\]"):
        list(Order(5, 2))
