"""√d_k: before training all is as mathematics says; models differ in the root alone; words follow numbers."""

from __future__ import annotations

import copy
import math
from pathlib import Path

import pytest
import torch

from regard import Attention, d, dot, sqrt
from regard.experiments.picture import drawn
from regard.experiments.record import Outcome, Scale, silent
from regard.experiments.scale import (
    EXPERIMENT,
    HALF,
    STARTS,
    TRAINED,
    WAYS,
    Start,
    beginning,
    entropy,
    looked_at,
    outcome_of,
    slope,
    until_half,
)

# -- before training -------------------------------------------------------------------------------------------


def test_the_ways_are_the_formula_and_the_formula_without_its_root() -> None:
    assert WAYS["with √d"] == Attention(score=dot / sqrt(d))
    assert WAYS["without"] == Attention(score=dot)


@pytest.mark.parametrize("width", [3, 64])
def test_variances_add(width: int) -> None:
    found = looked_at(WAYS["without"], width, 5)
    assert found["spread"] == pytest.approx(math.sqrt(width), rel=0.05)


def test_slope_is_the_length_of_the_softmax_s_own_derivative() -> None:
    s = 3 * torch.randn(7, 11, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    jacobian = torch.stack([torch.autograd.functional.jacobian(lambda row: row.softmax(0), row) for row in s])
    torch.testing.assert_close(slope(s.softmax(1)), jacobian.flatten(1).norm(dim=1))
    assert slope(torch.eye(5)).eq(0).all()  # one key alone: nothing moves


def test_entropy_is_ln_n_where_all_are_alike_and_zero_for_one_alone() -> None:
    assert float(entropy(torch.full((13,), 1 / 13, dtype=torch.float64))) == pytest.approx(math.log(13))
    assert float(entropy(torch.eye(3)[0])) == 0


def test_the_figures_worked_out_by_hand() -> None:
    shares = {width: looked_at(WAYS["without"], width, 0)["entropy"] for width in (4, 64)}
    assert shares[4] == pytest.approx(0.67, abs=0.02)
    assert shares[64] == pytest.approx(0.14, abs=0.02)
    assert looked_at(WAYS["with √d"], 64, 0)["entropy"] == pytest.approx(
        looked_at(WAYS["with √d"], 4, 0)["entropy"], abs=0.02
    )


# -- training --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("start", STARTS, ids=lambda start: start.name)
def test_models_of_both_ways_begin_with_the_same_numbers_and_differ_in_the_formula(start: Start) -> None:
    models = [beginning(formula, start, 3) for formula in WAYS.values()]
    states = [model.state_dict() for model in models]
    assert all(states[0][name].equal(states[1][name]) for name in states[0])
    scores = [model.core.blocks[0].attention.attention.score for model in models]
    assert scores[0] == scores[1] / sqrt(d)
    assert models[0].core.blocks[0].attention.width == start.width


def test_queries_and_keys_start_with_spread_one_or_small() -> None:
    x = torch.nn.functional.layer_norm(torch.randn(997, 64, generator=torch.Generator().manual_seed(0)), (64,))
    for start, spread in ((Start(256), 1.0), (STARTS[-1], 8 * 0.02)):
        layer = beginning(Attention(), start, 0).core.blocks[0].attention
        for part in (layer.query, layer.key):
            assert float(part(x).detach().std()) == pytest.approx(spread, rel=0.05)


def test_until_half_takes_means_of_five_and_counts_from_one() -> None:
    assert until_half([2.0] * 3 + [0.0] * 9) == 2  # 2, 2, 0, 0, 0 is the first five with such a mean
    assert until_half([2.0] * 12) == 12
    assert until_half([HALF] * 12) == 1


# -- the outcome -----------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def outcome() -> Outcome:
    return EXPERIMENT.run(Scale(0.02), silent)


def test_a_small_run_has_rows_finite_numbers_and_a_picture(outcome: Outcome, tmp_path: Path) -> None:
    assert len(outcome.table.rows) == 2 * len(STARTS)
    assert all(abs(number) < float("inf") for number in outcome.numbers.values())
    assert Outcome.of_json(outcome.json()) == outcome
    assert drawn(EXPERIMENT, outcome, tmp_path / "scale.png").stat().st_size > 10_000


def test_words_follow_the_numbers(outcome: Outcome) -> None:
    def told(bare: list[float]) -> str:
        series = copy.deepcopy(outcome.series)
        for start in series["training"].values():
            for way, seeds in start.items():
                for seed in seeds:
                    seed["losses"] = [2.0] * 10 + [0.0] * 40 if way == "with √d" else bare
        return outcome_of(series).says

    some = f"at d_k = {TRAINED[1]}"
    assert f"is not seen {some}" in told([2.0] * 10 + [0.0] * 40)
    assert f"costs 3.0 times the steps {some}" in told([2.0] * 28 + [0.0] * 22)
