"""Positions: order decides the first task, and what cannot see it is right exactly half of the time."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from regard.experiments import positions
from regard.experiments.language import Filler, HiddenCharacters, characters
from regard.experiments.picture import drawn
from regard.experiments.positions import CAT, LENGTH, MASKS, POSITIONS, SAT, WIDTH, Answerer, Waves, WhichFirst
from regard.experiments.record import Outcome, Scale, silent
from regard.inputs.positions import Sinusoidal


@pytest.fixture(scope="module")
def small() -> Outcome:
    return positions.run(Scale(0.005), silent)


def answerer(mask: str, position: str) -> Answerer:
    """An untrained model whose attention and positions say much."""
    model = Answerer(MASKS[mask], POSITIONS[position](LENGTH, WIDTH, 1.0), seed=3).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(torch.randn_like(parameter) / 2)
    return model


# -- the task --------------------------------------------------------------------------------------------------


def test_the_answer_is_the_order_of_two_words():
    batch = WhichFirst(seed=2).batch(5)
    for words, answer in zip(batch["words"].tolist(), batch["answers"].tolist(), strict=True):
        assert words.count(CAT) == words.count(SAT) == 1
        assert answer == (words.index(SAT) < words.index(CAT))


def test_a_batch_is_a_function_of_seed_and_step():
    same, other = WhichFirst(seed=2).batch(5), WhichFirst(seed=2).batch(6)
    assert torch.equal(same["words"], WhichFirst(seed=2).batch(5)["words"])
    assert not torch.equal(same["words"], other["words"])


def test_every_held_out_row_has_its_mirror_image_with_the_other_answer():
    batch = WhichFirst().held_out()
    rows, mirrored = batch["words"].chunk(2)
    assert torch.equal(rows.flip(1), mirrored)
    assert float(batch["answers"].double().mean()) == 0.5


# -- who can know ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("mask", "position"), [(mask, position) for mask in MASKS for position in POSITIONS])
def test_who_sees_a_mirror_image_as_the_row_itself(mask, position):
    words = WhichFirst().batch(0)["words"]
    with torch.no_grad():
        model = answerer(mask, position)
        apart = float((model(words) - model(words.flip(1))).abs().max())
    blind = mask == "no mask" and position in ("none", "ALiBi")
    assert apart < 1e-5 if blind else apart > 1e-2


def test_without_mask_and_positions_any_order_is_the_same_row():
    words, order = WhichFirst().batch(0)["words"], torch.randperm(LENGTH, generator=torch.Generator().manual_seed(1))
    with torch.no_grad():
        for position, same in (("none", True), ("ALiBi", False)):
            model = answerer("no mask", position)
            assert torch.allclose(model(words), model(words[:, order]), atol=1e-5) == same


def test_waves_are_as_large_as_what_they_are_added_to():
    added = Waves(0.02).add(torch.zeros(1, 97, 64))
    assert float(added.square().mean().sqrt()) == pytest.approx(0.02, rel=1e-3)
    x = torch.randn(2, 7, 12)
    assert torch.allclose(Waves(0.5**0.5).add(x, 3), Sinusoidal().add(x, 3), atol=1e-6)


def test_masks_change_no_parameter():
    causal, free = (answerer(mask, "learned").state_dict() for mask in MASKS)
    assert causal.keys() == free.keys()


# -- hidden characters -----------------------------------------------------------------------------------------


def test_what_is_hidden_is_asked_for_and_nothing_else():
    tokens = characters()
    task = HiddenCharacters(0, tokens, measured=3)
    batch, whole = task.batch(4), task.batches[4].inputs
    hidden = batch["inputs"] == tokens.vocabulary_size
    assert torch.equal(batch["targets"][hidden], whole[hidden])
    assert (batch["targets"][~hidden] == -100).all()
    assert torch.equal(batch["inputs"][~hidden], whole[~hidden])
    assert batch.count == int(hidden.sum())
    assert 0.1 < hidden.double().mean() < 0.3
    assert torch.equal(batch["inputs"], HiddenCharacters(0, tokens, measured=5).batch(4)["inputs"])


def test_a_filler_reads_both_sides():
    model, ids = Filler(13, seed=0), torch.arange(7)[None]
    other = ids.clone()
    other[0, 6] = 9
    assert not torch.equal(model(ids)[0, 2], model(other)[0, 2])


# -- the whole -------------------------------------------------------------------------------------------------


def test_a_small_share_gives_a_table_and_finite_numbers(small, tmp_path):
    assert small.table.column("positions") == list(POSITIONS)
    assert np.isfinite(list(small.numbers.values())).all()
    assert small.numbers["accuracy, no mask, none"] == 0.5
    assert drawn(positions.EXPERIMENT, Outcome.of_json(small.json()), tmp_path / "x.png").stat().st_size > 10_000


def test_the_answer_is_made_of_the_numbers():
    def said(alone: float, distance: float) -> str:
        accuracy = {(mask, position): 1.0 for mask in MASKS for position in POSITIONS}
        accuracy |= {("causal", "none"): alone, ("no mask", "ALiBi"): distance, ("no mask", "none"): 0.5}
        loss = dict.fromkeys(accuracy, 2.0) | {("no mask", "none"): 2.75, ("causal", "rotary"): 1.5}
        loss |= {("no mask", "learned"): 2.7, ("no mask", "sinusoidal"): 2.8}
        return positions.outcome_of(accuracy, loss).says

    assert "a causal mask alone already tells order (99.0%)" in said(0.99, 0.5)
    assert "a causal mask alone does not help much" in said(0.55, 0.5)
    assert "distance is not direction" in said(0.99, 0.5)
    assert "distance is not direction" not in said(0.99, 0.98)
    assert "rotary gains most, 0.50 nats under the mask and 0.75 without it" in said(0.99, 0.5)
    assert "sinusoidal and learned less than 0.1" in said(0.99, 0.5)
