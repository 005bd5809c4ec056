"""Other weights: the models differ in their formula and in nothing else."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from regard.experiments import weights
from regard.experiments.language import small_gpt
from regard.experiments.picture import drawn
from regard.experiments.record import Outcome, Scale, silent

ALL = {**weights.FORMULAS, **weights.REFERENCES}


@pytest.fixture(scope="module")
def small() -> Outcome:
    return weights.run(Scale(0.005), silent)


def test_all_begin_with_the_same_parameters():
    first, *others = (small_gpt(13, seed=5, attention=formula).state_dict() for formula in ALL.values())
    for other in others:
        assert first.keys() == other.keys()
        assert all(torch.equal(first[name], other[name]) for name in first)


@pytest.mark.parametrize("name", ALL)
def test_no_weight_is_negative_or_reads_what_comes_after(name):
    q, k = torch.randn(2, 7, 5, generator=torch.Generator().manual_seed(1)).double()
    found = ALL[name].weights(q, k)
    assert found.min() >= 0
    assert torch.equal(found.triu(1), torch.zeros(7, 7).double())


def test_the_formulas_are_what_their_names_say():
    q, k = np.random.default_rng(2).normal(size=(2, 7, 5))
    s, count, past = q @ k.T / np.sqrt(5), np.arange(1, 8)[:, None], np.tri(7)
    expected = {
        "relu / n": np.maximum(s, 0) / count,
        "sigmoid": 1 / (1 + count * np.exp(-s)),
        "plain average": 1 / count,
        "no look back": np.eye(7),
    }
    for name, matrix in expected.items():
        np.testing.assert_allclose(ALL[name].weights(q, k), matrix * past, atol=1e-12)
    far = np.exp(-((q[:, None] - k) ** 2).sum(2) / 2 / np.sqrt(5)) * past
    np.testing.assert_allclose(ALL["Euclidean"].weights(q, k), far / far.sum(1, keepdims=True), atol=1e-12)


def test_a_small_share_gives_a_table_and_finite_numbers(small, tmp_path):
    assert small.table.column("weights") == list(ALL)
    assert np.isfinite(list(small.numbers.values())).all()
    assert drawn(weights.EXPERIMENT, Outcome.of_json(small.json()), tmp_path / "x.png").stat().st_size > 10_000


def test_shares_run_from_averaging_to_softmax():
    final = {name: [2.5] for name in ALL} | {"softmax": [2.0, 2.2], "plain average": [3.1]}
    found = weights.outcome_of(final, {})
    assert found.numbers["share of softmax"] == pytest.approx(1)
    assert found.numbers["share of sigmoid"] == pytest.approx(0.6)
    assert found.numbers["spread"] == pytest.approx(0.2)


def test_the_answer_is_made_of_the_numbers():
    def said(**losses: float) -> str:
        final = {name: [losses.get(name, 2.0)] for name in ALL} | {"plain average": [3.0]}
        return weights.outcome_of(final, {}).says

    assert "sigmoid (100%)" in said().split("reach all")[0]
    assert "sigmoid (50%) a good part" in said(sigmoid=2.5)
    assert "sigmoid (0%) hardly any" in said(sigmoid=3.0)
    assert "nothing to compare" in said(softmax=3.2)
