"""Time by length: what is counted is right, what is timed is done in turns, words follow numbers."""

from __future__ import annotations

import copy
from pathlib import Path

import pytest
import torch

from regard.experiments import length
from regard.experiments.length import (
    DIM,
    EVEN,
    EXPERIMENT,
    LAYERS,
    PASSES,
    apart,
    chain,
    chains,
    in_turns,
    outcome_of,
    points_of,
    products,
    ratio,
)
from regard.experiments.picture import drawn
from regard.experiments.record import Outcome, Scale, silent

# -- steps -----------------------------------------------------------------------------------------------------


def test_chain_is_the_longest_way_and_not_the_number_of_operations() -> None:
    x = torch.ones(3, requires_grad=True)
    deep = x.exp().exp().exp()
    wide = x.exp() + x.exp() + x.exp()
    assert chain(x.exp()) == 2  # the operation, and the leaf
    assert chain(deep) == 4
    assert chain(wide) == 4
    assert chain(deep + x) == 5


@pytest.mark.parametrize(("few", "many"), [(3, 11), (5, 29)])
def test_an_lstm_adds_to_the_chain_with_every_row_and_attention_never(few: int, many: int) -> None:
    short, long = chains(few), chains(many)
    assert long["attention"] == short["attention"]
    assert (long["LSTM"] - short["LSTM"]) % (many - few) == 0
    assert long["LSTM"] - short["LSTM"] >= 2 * (many - few)


def test_rows_of_attention_may_be_worked_out_in_any_order() -> None:
    assert apart(13) < 1e-14


def test_both_do_as_many_products_at_four_times_the_width() -> None:
    assert products("LSTM", EVEN) == products("attention", EVEN)
    assert EVEN == 4 * DIM
    assert products("LSTM", EVEN - 1) > products("attention", EVEN - 1)
    square = sum(part.numel() for part in LAYERS["LSTM"](DIM).parameters() if part.ndim == 2)
    assert products("LSTM", 7) == 7 * square


# -- seconds ---------------------------------------------------------------------------------------------------


def test_every_layer_is_run_once_in_each_round_and_the_first_round_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    order: list[str] = []

    def seconds(layer: torch.nn.Module, x: torch.Tensor, which: str) -> float:
        assert x.shape == (2, 3, DIM)
        order.append(f"{type(layer).__name__} {which}")
        return float(len(order))

    monkeypatch.setattr(length, "seconds", seconds)
    found = in_turns("cpu", 2, 3, 2, 0)
    assert order == 3 * ["SelfAttention forward", "Recurrent forward", "SelfAttention both", "Recurrent both"]
    assert found["forward"] == {"attention": [5, 9], "LSTM": [6, 10]}
    assert set(found) == set(PASSES)


def test_ratio_is_the_median_of_the_rounds_own() -> None:
    assert ratio({"LSTM": [2.0, 30.0, 8.0], "attention": [1.0, 10.0, 2.0]}) == 3.0


def test_layers_have_one_width_and_both_is_a_pass_with_gradients() -> None:
    x = torch.randn(1, 3, DIM)
    for make in LAYERS.values():
        layer = make(DIM)
        assert layer(x).shape == x.shape
        length.once(layer, x, "forward")
        assert all(part.grad is None for part in layer.parameters())
        length.once(layer, x, "both")
        assert all(part.grad is not None for part in layer.parameters())


def test_points_stay_within_what_a_device_can_do_soon() -> None:
    points = points_of(["cpu", "cuda"], small=False)
    assert {(texts, rows) for device, texts, rows in points if device == "cpu"} >= {(1, EVEN), (16, EVEN), (1, 4096)}
    assert ("cpu", 16, 4096) not in points
    assert ("cuda", 16, 16384) in points
    assert {rows for _, _, rows in points_of(["cpu"], small=True)} == {16, 64}


# -- the outcome -----------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def outcome() -> Outcome:
    points = length.points_of
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(length, "points_of", lambda there, small: points(["cpu"], small=small))
        return EXPERIMENT.run(Scale(0.02), silent)


def test_a_small_run_has_rows_finite_numbers_and_a_picture(outcome: Outcome, tmp_path: Path) -> None:
    assert outcome.table.column("rows") == [16, 64, 16, 64]
    assert all(0 <= number < float("inf") for number in outcome.numbers.values())
    assert outcome.numbers["in a row, attention"] == 0 < outcome.numbers["in a row, LSTM"]
    assert Outcome.of_json(outcome.json()) == outcome
    assert drawn(EXPERIMENT, outcome, tmp_path / "length.png").stat().st_size > 10_000


def test_words_follow_the_numbers_and_two_devices_can_be_shown(outcome: Outcome, tmp_path: Path) -> None:
    def told(one: float, several: float) -> Outcome:
        series = copy.deepcopy(outcome.series)
        for texts, share in (("1", one), ("16", several)):
            for times in series["seconds"]["cpu"][texts].values():
                times["both"] = {"attention": [1.0, 1.0], "LSTM": [share, share]}
        series["seconds"]["cuda"] = series["seconds"]["cpu"]
        return outcome_of(series)

    assert "rows at once win." in told(3, 2).says
    assert "rows at once win nothing." in told(1, 0.5).says
    assert "texts at once do as well" in told(3, 1).says
    assert drawn(EXPERIMENT, told(3, 1), tmp_path / "two.png").stat().st_size > 10_000
