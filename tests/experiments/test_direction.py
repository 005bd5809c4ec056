"""Scenes in which hulls need ground and ground needs nothing; what is counted, and what is cut."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from regard.experiments import direction
from regard.experiments.picture import drawn
from regard.experiments.record import Outcome, Scale, silent
from regard.experiments.scenes import (
    BLANK,
    COUNT,
    EACH,
    GROUND,
    HULL,
    NAMES,
    PATCH,
    SHAPE,
    SIDE,
    drawn_scenes,
    laid_out,
)  # fmt: skip
from regard.inputs.images import patches
from regard.nn.vit import ViT

SCENES = drawn_scenes(211, 3, 5)


@pytest.fixture(scope="module")
def small() -> Outcome:
    return direction.run(Scale(0.004), silent)


@pytest.fixture(scope="module")
def model() -> ViT:
    torch.manual_seed(7)
    return ViT(SIDE * PATCH, PATCH, len(NAMES), dim=12, depth=2, heads=3, channels=1, pool="mean").eval()


def cut_up(pixels: torch.Tensor) -> torch.Tensor:
    return patches(pixels, PATCH, layout="bchw").vectors.reshape(len(pixels), COUNT, PATCH, PATCH)


# -- the scenes ------------------------------------------------------------------------------------------------


def test_scenes_are_functions_of_seed_and_step() -> None:
    again, other = drawn_scenes(211, 3, 5), drawn_scenes(211, 3, 6)
    assert torch.equal(SCENES.pixels, again.pixels)
    assert not torch.equal(SCENES.pixels, other.pixels)


def test_every_scene_has_as_many_hulls_as_ground() -> None:
    for kind in (HULL, GROUND):
        assert (SCENES.kinds == kind).sum(1).eq(EACH).all()


def test_a_hull_is_what_the_ground_says() -> None:
    names = SCENES.names
    water = (names == NAMES.index("water")).any(1)
    assert torch.equal(water, (names == NAMES.index("boat")).any(1))
    assert torch.equal(~water, (names == NAMES.index("hut")).any(1))
    assert not ((names == NAMES.index("meadow")).any(1) & water).any()
    assert 0.35 < water.double().mean() < 0.65


def test_a_hull_by_itself_tells_nothing_and_ground_tells_itself() -> None:
    cut = cut_up(drawn_scenes(2003, 3, 7).pixels)
    names = drawn_scenes(2003, 3, 7).names
    mean = {name: cut[names == at].mean(0) for at, name in enumerate(NAMES)}
    torch.testing.assert_close(mean["boat"], mean["hut"], atol=0.05, rtol=0)
    torch.testing.assert_close(mean["boat"], SHAPE, atol=0.05, rtol=0)
    assert (mean["water"] - mean["meadow"]).abs().max() > 1.9


def test_tiles_stand_where_patches_finds_them() -> None:
    parts = torch.arange(2 * COUNT * PATCH * PATCH).reshape(2, COUNT, PATCH, PATCH).double()
    assert torch.equal(cut_up(laid_out(parts)), parts)


# -- what is measured ------------------------------------------------------------------------------------------


def test_equal_weights_have_a_lift_of_one() -> None:
    weights = [torch.full((len(SCENES.kinds), 2, COUNT, COUNT), 1 / COUNT)] * 2
    for readers, read in ((HULL, GROUND), (GROUND, HULL), (BLANK, HULL)):
        assert direction.lift(weights, SCENES.kinds, readers, read) == pytest.approx(1)


def test_a_lift_counts_readers_and_what_they_read() -> None:
    ground = (SCENES.kinds == GROUND).double()
    on_ground = (ground / EACH)[:, None, None, :].expand(-1, 1, COUNT, -1)
    assert direction.lift([on_ground], SCENES.kinds, HULL, GROUND) == pytest.approx(COUNT / EACH)
    assert direction.lift([on_ground], SCENES.kinds, HULL, HULL) == 0
    only_hulls = on_ground * (SCENES.kinds == HULL).double()[:, None, :, None]
    assert direction.lift([only_hulls], SCENES.kinds, BLANK, GROUND) == 0


def test_exactly_these_weights_are_cut(model: ViT) -> None:
    mask = direction.cut(SCENES.kinds, HULL, GROUND)
    for weights in direction.weights_while(model, lambda: direction.reads(model, SCENES.pixels, mask)):
        gone = (SCENES.kinds == HULL)[:, None, :, None] & (SCENES.kinds == GROUND)[:, None, None, :]
        assert (weights == 0).eq(gone).all()
        torch.testing.assert_close(weights.sum(-1), torch.ones(weights.shape[:-1]))


def test_reads_is_what_the_model_does(model: ViT) -> None:
    rows = direction.reads(model, SCENES.pixels)
    torch.testing.assert_close(model.head(rows.mean(1)), model(SCENES.pixels))


def test_ink_tells_strokes_from_background() -> None:
    pixels = torch.zeros(1, 1, 4, 6, dtype=torch.uint8)
    pixels[..., :2, :2], pixels[..., 2:, 4:] = 255, 60
    assert direction.ink(pixels, 2).tolist() == [[HULL, GROUND, GROUND, GROUND, GROUND, BLANK]]


# -- the experiment --------------------------------------------------------------------------------------------


def test_a_small_share_of_it_runs(small: Outcome, tmp_path: Path) -> None:
    assert small.table.column("who reads whom") == list(direction.PAIRS)
    assert all(np.isfinite(number) for number in small.numbers.values())
    assert Outcome.of_json(small.json()).numbers == small.numbers
    assert drawn(direction.EXPERIMENT, small, tmp_path / "direction.png").stat().st_size > 10_000


def test_the_answer_follows_the_numbers(small: Outcome) -> None:
    told = {
        "hull → ground: after": 4.0,
        "ground → hull: after": 1.1,
        "hull → ground: right": 1.0,
        "hull → ground: right without": 0.5,
    }
    told |= {"ground → hull: right": 1.0, "ground → hull: right without": 1.0}
    assert "relevance has a direction" in direction.says(small.numbers | told)
    assert "no clear direction" in direction.says(small.numbers | told | {"ground → hull: after": 3.9})
    assert "no clear direction" in direction.says(small.numbers | told | {"hull → ground: right without": 1.0})
