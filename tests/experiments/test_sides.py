"""Encoder, decoder and both: the lines, what may be read, and what is asked."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from regard.experiments import dates, sides
from regard.experiments.dates import AFTER, BEFORE, EQUALS, HIDDEN, LETTERS, LINE
from regard.experiments.picture import drawn
from regard.experiments.record import Outcome, Scale, silent
from regard.experiments.sides import MODELS, HiddenPlaces, Lines, Pairs


@pytest.fixture(scope="module")
def small() -> Outcome:
    return sides.run(Scale(0.005), silent)


@pytest.fixture(scope="module")
def lines() -> torch.Tensor:
    return dates.lines(np.random.default_rng(2), 97)


def text(row: torch.Tensor) -> str:
    return "".join(LETTERS[at] for at in row.tolist())


# -- the lines -------------------------------------------------------------------------------------------------


def test_held_out_dates_are_never_learned_from():
    learned, held_out = dates.all_dates()
    assert not {*learned} & {*held_out}
    assert len(learned) + len(held_out) == 12 * 28 * 100


def test_lines_are_right_until_a_character_of_the_translation_changes(lines):
    assert dates.right(lines).all()
    for place in range(EQUALS + 1, LINE):
        other = lines.clone()
        other[:, place] = (other[:, place] + 1) % HIDDEN
        assert not dates.right(other).any()


def test_both_translations_are_drawn(lines):
    assert 0.3 < np.mean(["-" in text(row) for row in lines]) < 0.7


def test_a_hidden_digit_stands_on_the_other_side_too(lines):
    """So both sides determine it, and what came before a digit of the date does not."""
    for row in map(text, lines):
        day, month, year = row[:EQUALS].split(" ")
        translated = row[EQUALS + 1 :]
        assert sorted(translated.replace("-", ".").split(".")) == sorted(
            [day, f"{dates.MONTHS.index(month) + 1:02d}", year]
        )
        assert row[BEFORE[0]] == day[1]
        assert row[BEFORE[1]] + row[BEFORE[2]] == year
        assert row[AFTER[0]] + row[AFTER[1]] == (day if "-" in row else year)


# -- what is learned and read ----------------------------------------------------------------------------------


def test_tasks_ask_for_what_stands_in_the_line():
    rng = np.random.default_rng([5, 3])
    line = dates.lines(rng, sides.LINES)
    next_ones, hidden, pairs = (task(5).batch(3) for task in (Lines, HiddenPlaces, Pairs))
    assert torch.equal(next_ones["targets"], line[:, 1:])
    gone = hidden["inputs"] == HIDDEN
    assert torch.equal(hidden["targets"][gone], line[gone])
    assert (hidden["targets"][~gone] == -100).all()
    assert gone[::2, EQUALS + 1 :].all()
    assert not gone[::2, : EQUALS + 1].any()
    assert torch.equal(pairs["targets"], line[:, EQUALS + 1 :])
    assert next_ones.count == sides.LINES * (LINE - 1)


@pytest.mark.parametrize("name", MODELS)
def test_who_reads_what_comes_later(name, lines):
    torch.manual_seed(0)
    model = MODELS[name][0]().eval()
    with torch.no_grad():
        found = sides.reading(name, model, lines)
    if name == "encoder–decoder":
        assert found["target"] == 0
        assert min(found["source"], found["cross"]) > 1e-6
    else:
        assert (found["later"] == 0) == (name == "decoder")


class Known(torch.nn.Module):
    """Says what stands in the lines that it was given, one place further or in place; knows nothing else."""

    def __init__(self, lines: torch.Tensor, shift: int) -> None:
        super().__init__()
        self.lines, self.shift = lines, shift

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        said = torch.roll(self.lines, -self.shift, 1)[:, : ids.shape[1]]
        return torch.nn.functional.one_hot(said, dates.TOKENS) * 1e3


@pytest.mark.parametrize(("name", "shift"), [("encoder", 0), ("decoder", 1)])
def test_who_knows_the_lines_is_right_and_who_does_not_is_not(name, shift, lines):
    knows, errs = Known(lines, shift), Known(lines.roll(1, 0), shift)
    for places in (BEFORE, AFTER):
        assert sides.named(name, knows, lines, places) == 1
        assert sides.named(name, errs, lines, places) < 0.5
    assert sides.translated(name, knows, lines, seed=0) == 1
    assert sides.translated(name, errs, lines, seed=0) < 0.1


class Echo(torch.nn.Module):
    """Says what it is shown, in place."""

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.one_hot(ids, dates.TOKENS) * 1e3


def test_nothing_that_is_asked_of_an_encoder_is_shown(lines):
    assert sides.named("encoder", Echo(), lines, (*BEFORE, *AFTER)) == 0
    assert sides.translated("encoder", Echo(), lines, seed=0) == 0


# -- the whole -------------------------------------------------------------------------------------------------


def test_a_small_share_gives_a_table_and_finite_numbers(small, tmp_path):
    assert small.table.column("model") == list(MODELS)
    assert np.isfinite(list(small.numbers.values())).all()
    assert small.numbers["decoder, moved, later"] == 0
    assert drawn(sides.EXPERIMENT, Outcome.of_json(small.json()), tmp_path / "x.png").stat().st_size > 10_000


def test_the_answer_is_made_of_the_numbers(small):
    numbers = {**small.numbers, "encoder, gap before": 0.9, "decoder, gap before": 0.1}
    numbers |= {"decoder, writes": 0.95, "encoder–decoder, writes": 0.97}
    assert "needs both sides: 90% by the encoder, 10% by the decoder" in sides.answer(numbers)
    assert "as its prompt does as well" in sides.answer(numbers)
    numbers |= {"decoder, gap before": 0.8, "decoder, writes": 0.4}
    assert "does not need both sides" in sides.answer(numbers)
    assert "as its prompt does as well" not in sides.answer(numbers)
