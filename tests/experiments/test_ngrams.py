"""Bigram, n-gram, self-attention: each model reads exactly what it is said to read."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from regard.experiments import ngrams
from regard.experiments.language import BATCH, WINDOW, NextCharacter, characters, nats
from regard.experiments.picture import drawn
from regard.experiments.record import Outcome, Scale, silent

TOKENS = 13


@pytest.fixture(scope="module")
def small() -> Outcome:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ngrams, "COUNTED", (0, 1, 2))
        return ngrams.run(Scale(0.002), silent)


def moved(model: torch.nn.Module, row: int) -> set[int]:
    """How many places before a row the characters stand that change what it says."""
    ids = torch.arange(WINDOW)[None] % TOKENS
    changed = (ids + torch.eye(WINDOW, dtype=torch.int64)) % TOKENS  # in each copy the character at one place
    with torch.no_grad():
        apart = (model(changed)[:, row] - model(ids)[:, row]).abs().amax(1)
    return {row - at for at in range(WINDOW) if apart[at] > 0}


@pytest.mark.parametrize("context", ngrams.CONTEXTS)
def test_a_model_of_context_c_reads_the_last_c_characters(context):
    model = ngrams.attentive(TOKENS, context, seed=0)
    with torch.no_grad():
        for parameter in model.decoder.blocks.parameters():
            parameter.mul_(5)  # so that what is read shows
    assert moved(model, WINDOW - 1) == set(range(context))


def test_weights_by_place_do_not_depend_on_what_stands_there():
    model, x = ngrams.placed_alone(TOKENS, 8, seed=0), torch.randn(2, 5, 64)
    for block in model.decoder.blocks:
        for layer in (block.attention.query, block.attention.key):
            assert torch.equal(layer(x)[0], layer(x)[1])
            assert not layer.weight.requires_grad
            assert layer.bias.abs().max() > 0.1  # from zeros it would never leave


def test_all_models_have_the_same_parameters_but_for_what_is_taken_away():
    counts = {ngrams.attentive(TOKENS, context, 0).count() for context in ngrams.CONTEXTS}
    assert counts == {ngrams.placed_alone(TOKENS, 8, 0).count()}
    one, other = (ngrams.attentive(TOKENS, context, 3).state_dict() for context in (1, 64))
    assert all(torch.equal(one[name], other[name]) for name in one)


def test_a_pass_reads_as_many_characters_as_the_training_text_has():
    learned = sum(len(part) for part in characters().training_ids)
    assert abs(ngrams.one_pass(characters()) * BATCH * WINDOW - learned) <= BATCH * WINDOW / 2


def test_more_counts_help_until_they_are_too_rare():
    losses = [ngrams.by_counting(characters(), context) for context in (0, 1, 2)]
    assert losses[0] > losses[1] > losses[2]
    assert losses[0] < math.log(characters().vocabulary_size)


def test_every_held_out_character_counts_once():
    task = NextCharacter(measured=None)
    assert task.held_out.count == characters().held_out_count

    class Even(torch.nn.Module):
        def forward(self, ids):
            return torch.zeros(*ids.shape, len(characters().vocabulary))

    assert task.evaluate(Even())["loss"] == pytest.approx(math.log(len(characters().vocabulary)), rel=1e-5)


def test_targets_that_do_not_count_cost_nothing():
    logits, targets = torch.randn(2, 3, 7), torch.tensor([[1, -100, 2], [-100, -100, 5]])
    alone = sum(
        float(nats(logits[b : b + 1, at : at + 1], targets[b : b + 1, at : at + 1]))
        for b, at in [(0, 0), (0, 2), (1, 2)]
    )
    assert float(nats(logits, targets)) == pytest.approx(alone, rel=1e-5)


def test_a_small_share_gives_a_table_and_finite_numbers(small, tmp_path):
    assert len(small.table.rows) == len({0, 1, 2, *ngrams.CONTEXTS})
    assert np.isfinite(list(small.numbers.values())).all()
    assert Outcome.of_json(small.json()).table == small.table
    assert drawn(ngrams.EXPERIMENT, Outcome.of_json(small.json()), tmp_path / "x.png").stat().st_size > 10_000


def test_the_answer_is_made_of_the_numbers(small):
    ahead = {**small.numbers, "attention_best": 1.0, "placed_best": 1.5, "ngram_best": 1.3}
    ahead |= {"attention_8": 1.4, "attention_64": 1.0}
    assert "is beaten" in ngrams.answer(ahead)
    assert "better still" in ngrams.answer(ahead)
    assert "are better than weights that know the place alone (+0.50 nats)" in ngrams.answer(ahead)
    behind = {**ahead, "attention_best": 1.6, "attention_64": 1.6}
    assert "is still ahead" in ngrams.answer(behind)
    assert "no better" in ngrams.answer(behind)
    assert "are worse than" in ngrams.answer(behind)
    assert "cannot be told from" in ngrams.answer({**behind, "placed_best": 1.59})
