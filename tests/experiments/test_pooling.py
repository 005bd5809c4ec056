"""A class token or the mean: the two models differ in that alone, and the answer follows the numbers."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from regard.experiments import pooling
from regard.experiments.picture import drawn
from regard.experiments.record import Outcome, Scale, silent
from regard.train.data.image_batches import ImageBatches
from regard.train.data.images import read_images

IMAGES = read_images()


@pytest.fixture(scope="module")
def small() -> Outcome:
    return pooling.run(Scale(0.002), silent)


def test_twins_differ_in_the_token_alone() -> None:
    models = pooling.twins(IMAGES, seed=3)
    token, mean = models["class"].state_dict(), models["mean"].state_dict()
    assert set(token) - set(mean) == {"token"}
    for name, tensor in mean.items():
        assert torch.equal(token[name][1:] if "placement" in name else token[name], tensor)
    assert models["class"].count() - models["mean"].count() == 2 * pooling.DIM  # the token, and its place


def test_twins_are_other_ones_for_another_seed_and_the_same_for_the_same() -> None:
    first, again, other = (pooling.twins(IMAGES, seed)["mean"].head.weight for seed in (3, 3, 5))
    assert torch.equal(first, again)
    assert not torch.equal(first, other)


def test_twins_share_no_memory() -> None:
    models = pooling.twins(IMAGES, seed=3)
    with torch.no_grad():
        models["class"].head.weight += 1
    assert not torch.allclose(models["class"].head.weight, models["mean"].head.weight)


def test_they_are_read_from_what_they_are_said_to_be_read_from() -> None:
    pixels = torch.randn(5, *IMAGES.shape, generator=torch.Generator().manual_seed(0))
    for pool, model in pooling.twins(IMAGES, seed=3).items():
        rows = model.rows(pixels)
        read = rows[:, 0] if pool == "class" else rows.mean(1)
        torch.testing.assert_close(model(pixels), model.head(read))


def test_both_see_the_same_batches_and_what_is_held_out() -> None:
    first, second = (pooling.Digits(ImageBatches(IMAGES, 7, seed=5)).batch(11) for _ in range(2))
    assert torch.equal(first["pixels"], second["pixels"])
    assert first.count == 7
    with torch.no_grad():
        told = pooling.Digits(ImageBatches(IMAGES, 359)).evaluate(pooling.twins(IMAGES, 3)["mean"].eval())
    assert told["loss"] == pytest.approx(np.log(10), abs=0.2)  # before training: chance
    assert told["right"] < 0.3


def test_a_small_share_of_it_runs(small: Outcome, tmp_path: Path) -> None:
    assert small.table.column("rate") == list(pooling.RATES)
    assert all(np.isfinite(number) for number in small.numbers.values())
    assert small.numbers["chance"] == pytest.approx(0.1)
    assert Outcome.of_json(small.json()).numbers == small.numbers
    assert drawn(pooling.EXPERIMENT, small, tmp_path / "pooling.png").stat().st_size > 10_000


def test_means_and_spreads_are_over_seeds() -> None:
    ends = {"class": (0.9, 0.8), "mean": (0.7, 0.9)}
    curves = {(r, s, p): ([5], [ends[p][s]]) for r in pooling.RATES for s in (0, 1) for p in pooling.POOLS}
    numbers = pooling.outcome(curves, 0.1).numbers
    assert numbers["class, best"] == pytest.approx(0.85)
    assert numbers["class − mean, 0.002"] == pytest.approx(0.05)
    assert numbers["class − mean, 0.002, spread"] == pytest.approx(0.15)
    assert numbers["spread"] == pytest.approx(np.sqrt((0.05**2 + 0.1**2) / 2))


def test_the_answer_follows_the_numbers(small: Outcome) -> None:
    told = small.numbers | {"class, best": 0.96, "mean, best": 0.955, "spread": 0.01}
    assert "nothing between them" in pooling.says(told)
    assert "the class token is ahead" in pooling.says(told | {"mean, best": 0.8})
    assert "the mean is ahead" in pooling.says(told | {"class, best": 0.8})
