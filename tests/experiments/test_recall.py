"""Recall at a distance: what is asked can be answered, cores differ in one thing alone, words follow numbers."""

from __future__ import annotations

import copy
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.experiments.pairs import HELD_OUT, KEYS, NOTHING, UNASKED, VALUES, AtDistance, Held, count
from regard.experiments.picture import drawn
from regard.experiments.recall import CORES, DIM, EXPERIMENT, beginning, gradient, outcome_of, reach
from regard.experiments.record import Outcome, Scale, silent
from regard.experiments.recurrent import Recurrent

# -- the questions ---------------------------------------------------------------------------------------------


@given(st.integers(1, 23), st.integers(0, 5), st.integers(0, 99))
@settings(max_examples=20, deadline=None)
def test_key_0_stands_first_and_is_asked_for_in_the_last_row_alone(distance: int, seed: int, step: int) -> None:
    batch = AtDistance(distance, seed).sequences(step, 7)
    assert batch["keys"].shape == (7, distance + 1)
    assert batch.count == 7
    assert (batch["keys"] == 0).sum(dim=1).eq(1).all()
    assert batch["keys"][:, 0].eq(0).all()
    assert batch["asked"][:, -1].eq(0).all()
    assert batch["asked"][:, :-1].eq(NOTHING).all()
    assert batch["answers"][:, -1].equal(batch["values"][:, 0])
    assert batch["answers"][:, :-1].eq(UNASKED).all()


@given(st.integers(1, 13), st.integers(0, 5), st.integers(0, 99))
@settings(max_examples=20, deadline=None)
def test_every_answer_is_the_value_that_its_key_showed_once_and_before(pairs: int, seed: int, step: int) -> None:
    batch = Held(pairs, 17, seed).sequences(step, 5)
    asked = 0
    for keys, values, asks, answers in zip(*(batch[n] for n in ("keys", "values", "asked", "answers")), strict=True):
        for row, (key, value) in enumerate(zip(asks.tolist(), answers.tolist(), strict=True)):
            shown = (keys[:row] == key).nonzero().flatten().tolist()
            assert (key == NOTHING) == (value == UNASKED)
            if key != NOTHING:
                asked += 1
                assert key < pairs
                assert len(shown) == 1
                assert (keys == key).sum() == 1
                assert values[shown[0]] == value
        first = int((keys < pairs).nonzero()[0])
        assert asks[: first + 1].eq(NOTHING).all()
        assert asks[first + 1 :].ne(NOTHING).all()
    assert batch.count == asked


@pytest.mark.parametrize("task", [AtDistance(5, 3), Held(7, 19, 3)])
def test_a_batch_is_a_function_of_seed_and_step(task: AtDistance | Held) -> None:
    once, again, other = task.batch(11), task.batch(11), task.batch(12)
    assert all(once[name].equal(again[name]) for name in once.tensors)
    assert not once["values"].equal(other["values"])
    assert not once["values"].equal(
        type(task)(5 if isinstance(task, AtDistance) else 7, seed=4).batch(11)["values"][:, :1]
    )


def test_there_is_always_a_key_left_for_noise_and_values_are_even() -> None:
    values = AtDistance(1).sequences(HELD_OUT, 4000)["answers"][:, -1]
    shares = torch.bincount(values, minlength=VALUES) / len(values)
    assert Held(64).batch(0)["keys"].max() < KEYS
    assert (shares - 1 / VALUES).abs().max() < 0.03


# -- the cores -------------------------------------------------------------------------------------------------


def test_cores_have_as_many_parameters_within_half_a_percent() -> None:
    sizes = {kind: count(make(DIM)) for kind, make in CORES.items()}
    assert max(sizes.values()) / min(sizes.values()) < 1.005


def test_models_of_one_seed_differ_in_their_core_alone() -> None:
    states = [beginning(kind, 5).state_dict() for kind in CORES]
    shared = [name for name in states[0] if not name.startswith("core.")]
    assert len(shared) == 5
    assert all(states[0][name].equal(state[name]) for state in states for name in shared)


def test_an_open_gate_changes_the_forget_bias_and_nothing_else() -> None:
    torch.manual_seed(3)
    plain = Recurrent(7).state_dict()
    torch.manual_seed(3)
    opened = Recurrent(7, 3.0).state_dict()
    changed = {name: (plain[name] != opened[name]).flatten().nonzero().flatten().tolist() for name in plain}
    assert {name: at for name, at in changed.items() if at} == {
        "lstm.bias_ih_l0": list(range(7, 14)),
        "lstm.bias_hh_l0": list(range(7, 14)),
    }
    x = torch.full((1, 1, 7), 0.0)  # with no input the cell keeps σ(3) of itself
    cell = torch.ones(1, 1, 7)
    layer = Recurrent(7, 3.0)
    for tensor in layer.parameters():
        tensor.data.mul_(0)
    layer.lstm.bias_ih_l0.data[7:14] = 3.0
    _, (_, kept) = layer.lstm(x, (torch.zeros(1, 1, 7), cell))
    torch.testing.assert_close(kept, torch.sigmoid(torch.tensor(3.0)).expand(1, 1, 7))


@pytest.mark.parametrize("bias", [None, 2.0])
def test_unrolled_is_the_layer_itself(bias: float | None) -> None:
    layer, x = Recurrent(5, bias).double(), torch.randn(2, 11, 5, dtype=torch.float64)
    torch.testing.assert_close(layer.unrolled(x), layer(x))


# -- gradients -------------------------------------------------------------------------------------------------


def test_gradient_reaches_every_distance_alike_by_attention_and_fades_in_an_lstm() -> None:
    slopes = {kind: gradient(beginning(kind, 2), 23) for kind in CORES}
    assert all(len(slope) == 23 for slope in slopes.values())
    assert max(slopes["attention"]) / min(slopes["attention"]) < 1.5
    assert slopes["LSTM"][-1] < 0.02 * slopes["LSTM"][0]
    assert slopes["LSTM"][-1] / slopes["LSTM"][0] < slopes["LSTM, open gate"][-1] / slopes["LSTM, open gate"][0] < 0.7


def test_gradient_is_what_finite_differences_say() -> None:
    model = beginning("LSTM", 1).double()
    batch = AtDistance(3).sequences(HELD_OUT, 64)
    x = model.rows(batch).detach()
    told = gradient(model, 3)[2]  # of row 0, distance 3

    def loss(x: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.cross_entropy(
            model.read(x)[:, -1], batch["answers"][:, -1], reduction="none"
        ).detach()

    slopes = torch.empty(64, DIM, dtype=torch.float64)
    for at in range(DIM):
        step = torch.zeros_like(x)
        step[:, 0, at] = 1e-5
        slopes[:, at] = (loss(x + step) - loss(x - step)) / 2e-5
    assert float(slopes.norm(dim=1).mean()) == pytest.approx(told, rel=1e-6)


# -- the outcome -----------------------------------------------------------------------------------------------


def test_reach_is_the_last_point_before_the_first_failure() -> None:
    assert reach({1: 1.0, 4: 0.95, 8: 0.5, 16: 0.99}) == 4
    assert reach({1: 0.2, 4: 1.0}) == 0
    assert reach({1: 1.0, 4: 1.0}) == 4


@pytest.fixture(scope="module")
def outcome() -> Outcome:
    return EXPERIMENT.run(Scale(0.02), silent)


def test_a_small_run_has_a_row_for_each_task_and_finite_numbers(outcome: Outcome, tmp_path: Path) -> None:
    assert len(outcome.table.rows) == 4
    assert all(abs(number) < float("inf") for number in outcome.numbers.values())
    assert Outcome.of_json(outcome.json()) == outcome
    assert drawn(EXPERIMENT, outcome, tmp_path / "recall.png").stat().st_size > 10_000


def test_words_follow_the_numbers(outcome: Outcome) -> None:
    def told(attention: float, lstm: float, opened: float) -> str:
        series = copy.deepcopy(outcome.series)
        for kind, share in zip(CORES, (attention, lstm, opened), strict=True):
            for curve in ("distance", "pairs"):
                series[curve][kind] = {at: [share] for at in series[curve][kind]}
        return outcome_of(series).says

    assert "the long path loses it" in told(1.0, 0.1, 0.2)
    assert "distance alone is one" in told(1.0, 0.1, 0.2)
    assert "an open gate keeps it" in told(1.0, 0.1, 1.0)
    assert "neither loses it" in told(1.0, 1.0, 1.0)
    assert "is no obstacle" in told(1.0, 1.0, 1.0)
    assert "not even the short path learned it" in told(0.3, 0.1, 0.1)
