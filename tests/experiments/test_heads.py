"""One head and many: two partners are really asked for, sizes are equal, a loop over heads gives the same."""

from __future__ import annotations

import copy
from pathlib import Path

import pytest
import torch

from regard.experiments.heads import (
    CEILING,
    CORES,
    EXPERIMENT,
    HEADS,
    beginning,
    difference,
    looped,
    outcome_of,
    reading,
    until,
)
from regard.experiments.pairs import count
from regard.experiments.partners import ROWS, VALUES, Partners
from regard.experiments.picture import drawn
from regard.experiments.record import Outcome, Scale, silent
from regard.nn.attention import SelfAttention


def test_each_row_asks_for_two_different_others_and_their_values_are_the_answers() -> None:
    batch = Partners(3).sequences(7, 11)
    keys, places = batch["keys"], batch["places"]
    assert keys.sort(dim=1).values.equal(torch.arange(ROWS).expand(11, -1))  # each key once
    assert places[..., 0].ne(places[..., 1]).all()
    assert places.ne(torch.arange(ROWS)[:, None]).all()
    for text in range(11):
        assert batch["asked"][text].equal(keys[text][places[text]])
        assert batch["answers"][text].equal(batch["values"][text][places[text]])
    assert batch.count == 11 * ROWS * 2


def test_reading_one_partner_or_both_alike_reaches_the_ceiling_and_no_more() -> None:
    answers = Partners().sequences(0, 2000)["answers"]
    first = answers[..., :1].expand_as(answers)  # read one of them, and say it twice
    draw = torch.Generator().manual_seed(5)
    either = answers.gather(2, torch.randint(2, answers.shape, generator=draw))  # know both, and not whose they are
    for guess in (first, either):
        assert float((guess == answers).float().mean()) == pytest.approx(CEILING, abs=0.006)
    assert CEILING == (1 + 1 / VALUES) / 2


@pytest.mark.parametrize("kind", CORES)
def test_any_number_of_heads_has_as_many_parameters_and_begins_alike(kind: str) -> None:
    assert len({count(CORES[kind](heads)) for heads in HEADS}) == 1
    states = [beginning(kind, heads, 3).state_dict() for heads in HEADS]
    assert all(states[0][name].equal(state[name]) for state in states for name in states[0])


def test_heads_in_a_loop_are_heads_at_once_and_a_wrong_cut_is_not() -> None:
    assert difference(1) < 1e-14
    torch.manual_seed(0)
    layer, other = SelfAttention(12, 3).double(), SelfAttention(12, 4).double()
    other.load_state_dict(layer.state_dict())
    x = torch.randn(2, 7, 12, dtype=torch.float64)
    assert (layer(x) - looped(other, x)).abs().max() > 1e-3  # cut into four, it is another function


def test_what_is_read_sums_to_one_and_is_even_where_queries_are_nothing() -> None:
    model = beginning("attention alone", 2, 0)
    assert [sum(row) for row in reading(model, 0)] == pytest.approx([1, 1])
    model.core[1].query.weight.data.zero_()
    model.core[1].query.bias.data.zero_()
    for row in reading(model, 0):
        assert row == pytest.approx([1 / ROWS, 1 / ROWS, 1 - 2 / ROWS], rel=1e-4)


def test_a_head_made_to_match_keys_with_the_first_question_reads_the_first_partner() -> None:
    model = beginning("attention alone", 2, 0)
    with torch.no_grad():
        for part in (model.keys, model.values, model.first, model.second):
            part.weight.zero_()
        model.keys.weight[:, :ROWS] = model.first.weight[:, ROWS : 2 * ROWS] = torch.eye(ROWS)
        layer = model.core[1]
        for part in (layer.query, layer.key):
            part.weight.zero_()
            part.bias.zero_()
        layer.query.weight[:ROWS, ROWS : 2 * ROWS] = layer.key.weight[:ROWS, :ROWS] = 9 * torch.eye(ROWS)
    first, second = reading(model, 0)
    assert first == pytest.approx([1, 0, 0], abs=0.01)
    assert second == pytest.approx([1 / ROWS, 1 / ROWS, 1 - 2 / ROWS], rel=1e-4)


def test_until_counts_steps_from_one() -> None:
    assert until([2.0, 0.5, 0.1]) == 2
    assert until([2.0, 1.0]) == 2
    assert until([0.1]) == 1


@pytest.fixture(scope="module")
def outcome() -> Outcome:
    return EXPERIMENT.run(Scale(0.02), silent)


def test_a_small_run_has_rows_finite_numbers_and_a_picture(outcome: Outcome, tmp_path: Path) -> None:
    assert outcome.table.column("heads") == [1, 2, 1, 2]
    assert all(abs(number) < float("inf") for number in outcome.numbers.values())
    assert Outcome.of_json(outcome.json()) == outcome
    assert drawn(EXPERIMENT, outcome, tmp_path / "heads.png").stat().st_size > 10_000


def test_words_follow_the_numbers(outcome: Outcome) -> None:
    def told(one: float, two: float, one_more: float) -> str:
        series = copy.deepcopy(outcome.series)
        for kind, heads, right in (
            ("attention alone", "1", one),
            ("attention alone", "2", two),
            ("with feed-forward", "1", one_more),
        ):
            for seed in series[kind][heads]:
                seed["right"] = right
        return outcome_of(series).says

    assert "two notions need two heads" in told(0.56, 1.0, 1.0)
    assert "one head learns it in 100% of" in told(0.56, 1.0, 1.0)
    assert "makes no difference of kind" in told(1.0, 1.0, 1.0)
    assert "makes no difference of kind" in told(0.5, 0.5, 0.5)
    assert "one head learns it in 0% of" in told(0.56, 1.0, 0.6)
