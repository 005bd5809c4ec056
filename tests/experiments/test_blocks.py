"""Blocks with a part taken away: that part and no other, and the words follow the numbers."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
import torch

from regard.experiments import blocks
from regard.experiments.blocks import DEPTHS, POST, STRUCTURES, WHOLE, no_residual
from regard.experiments.picture import drawn
from regard.experiments.reader import reader, size
from regard.experiments.record import Outcome, Scale, silent

NAMED = {structure.name: structure for structure in STRUCTURES}
DIM = 64
PARTS = {  # parameters of a block
    "no normalisation": 2 * 2 * DIM,
    "no feed-forward": 8 * DIM * DIM + 5 * DIM,
    "no attention": 4 * (DIM * DIM + DIM),
    "no residual": 0,
    POST: 0,
    WHOLE: 0,
}


@pytest.fixture(scope="module")
def small() -> Outcome:
    return blocks.run(Scale(0.02), silent)


@pytest.mark.parametrize("depth", [1, 3])
@pytest.mark.parametrize("name", NAMED)
def test_that_part_is_missing_and_no_other(name: str, depth: int) -> None:
    last = 0 if name not in (POST, "no normalisation") else 2 * DIM  # the norm behind the last block
    model = NAMED[name].of(depth, 3)
    assert size(reader(3, depth=depth)) - size(model) == depth * PARTS[name] + last


def test_what_is_left_begins_alike() -> None:
    whole = dict(reader(3).named_parameters())
    for structure in STRUCTURES:
        if structure.name != "no feed-forward":  # draws are in the order of the parts
            for name, parameter in structure.of(2, 3).named_parameters():
                assert torch.equal(parameter, whole[name])


def test_without_attention_rows_do_not_meet() -> None:
    ids = torch.arange(2 * 7).reshape(2, 7) % 13
    changed = ids.clone()
    changed[:, 2] += 1
    for name, structure in NAMED.items():
        model = structure.of(2, 3)
        with torch.no_grad():
            for matrix in (parameter for parameter in model.blocks.parameters() if parameter.ndim == 2):
                matrix.mul_(10)
            moved = (model(changed) - model(ids)).abs().amax((0, 2))
        assert not moved[:2].any(), name  # nor does any of them read what comes after
        assert (float(moved[3:].max()) > 1e-6) == (name != "no attention"), name


def test_without_residual_only_what_a_part_says_is_left() -> None:
    x = torch.randn(2, 7, 5)
    assert torch.equal(no_residual(x, torch.neg, torch.exp), (-x).exp())


def test_a_small_share_of_it_runs(small: Outcome, tmp_path: Path) -> None:
    assert small.table.column("block") == list(NAMED)
    assert all(map(math.isfinite, small.numbers.values()))
    assert Outcome.of_json(small.json()) == small
    assert drawn(blocks.EXPERIMENT, small, tmp_path / "picture.png").stat().st_size > 10_000


def test_the_better_rate_counts(small: Outcome) -> None:
    deepest = DEPTHS[-1]
    for name in NAMED:
        both = small.numbers[f"{name}: {deepest}"], small.numbers[f"{name}: {deepest}, slow"]
        assert small.numbers[f"{name}: best"] == min(both)


def test_the_words_follow_the_numbers(small: Outcome) -> None:
    whole = {f"{WHOLE}: best": 2.0, "no residual: best": 2.7, "no residual: 1": 2.4, "no normalisation: best": 1.9}
    told = blocks.says(small.numbers | whole)
    assert "no residual +0.70" in told
    assert "no normalisation -0.10" in told
    assert "without residual it loses 0.30" in told
    assert "without residual it gains 0.20" in blocks.says(small.numbers | whole | {"no residual: 1": 2.9})
