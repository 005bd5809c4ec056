"""One lesson learned twice: the gap is measured where it is, and the answer says so."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from regard.experiments import toy
from regard.experiments.picture import drawn
from regard.experiments.record import Outcome, Scale, silent
from regard.train.toy.numpy_lesson import learn
from regard.train.toy.torch_lesson import learn_with_torch


@pytest.fixture(scope="module")
def small() -> Outcome:
    return toy.run(Scale(0.02), silent)


def test_a_small_share_of_it_runs(small: Outcome, tmp_path: Path) -> None:
    assert len(small.table.rows) == 2
    assert all(np.isfinite(number) for number in small.numbers.values())
    assert small.numbers["gap"] < 1e-12
    assert Outcome.of_json(small.json()).numbers == small.numbers
    assert drawn(toy.EXPERIMENT, small, tmp_path / "toy.png").stat().st_size > 10_000


def test_lessons_of_two_seeds_are_apart() -> None:
    ours, theirs = learn(steps=5, seed=1), learn_with_torch(steps=5, seed=2)
    assert toy.matrix_gap(ours, theirs) > 0.1
    assert "not the same curve" in toy.outcome([(ours, theirs)]).says


def test_one_entry_is_enough_to_be_seen() -> None:
    ours = learn(steps=3)
    other = ours.after.K.copy()
    other[2, 1] += 1e-3 * max(np.abs(w).max() for w in ours.after)
    assert toy.matrix_gap(ours, ours) == 0
    assert toy.matrix_gap(ours, replace(ours, after=ours.after._replace(K=other))) == pytest.approx(1e-3)


def test_the_answer_follows_the_numbers(small: Outcome) -> None:
    learned = small.numbers | {"numpy: loss after": 0.01}
    assert "the same curve. They learn whom to ask" in toy.says(learned)
    assert "have not learned" in toy.says(learned | {"numpy: loss after": 0.8})
    assert "not the same curve" in toy.says(learned | {"gap": 1e-3})
