"""Images: cropped to whole patches, prepared for models, and compared patch by patch."""

from __future__ import annotations

import io
import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from regard.algebra.errors import CallError, KindError
from regard.algebra.symbols import sqdist
from regard.attention import Attention
from regard.geometry.mahalanobis import Mahalanobis
from regard.viewer.entering.pictures import colours, cropped, lens_of_patches, png, sharpness
from regard.viewer.entering.preparing import patch_of, prepared, sides
from regard.viewer.lenses import Lens

HEIGHT, WIDTH, PATCH = 23, 31, 5  # 4 × 6 patches, and a rest on both sides


def photograph() -> Any:
    return np.random.default_rng(0).integers(0, 256, (HEIGHT, WIDTH, 3), np.uint8)


def read(content: bytes) -> Any:
    return np.asarray(Image.open(io.BytesIO(content)))


@pytest.mark.parametrize(
    "make",
    [
        lambda x: x,
        Image.fromarray,
        png,
        lambda x: np.moveaxis(x, -1, 0).astype(np.float32) / 255,
        lambda x: torch.as_tensor(np.moveaxis(x, -1, 0).copy()) / 255,
        lambda x: x.astype(np.float64) / 255,
    ],
)
def test_any_image_is_the_same_pixels(make: Any) -> None:
    np.testing.assert_array_equal(colours(make(photograph())), photograph())


def test_a_path_and_grey(tmp_path: Path) -> None:
    grey = photograph()[..., 0]
    Image.fromarray(grey).save(tmp_path / "a.png")
    for image in (tmp_path / "a.png", str(tmp_path / "a.png"), grey, grey[..., None]):
        np.testing.assert_array_equal(colours(image), np.repeat(grey[..., None], 3, -1))


def test_numbers_that_a_model_is_given_are_stretched() -> None:
    found = colours(np.linspace(-2, 3, 24).reshape(4, 6))
    assert (found.min(), found.max()) == (0, 255)


@pytest.mark.parametrize(
    ("image", "error"), [(b"no image", KindError), (np.ones((2, 3, 4, 5)), CallError), (3, KindError)]
)
def test_other_images_are_refused(image: Any, error: type[Exception]) -> None:
    with pytest.raises(error, match="image"):
        colours(image)


def test_what_fills_no_patch_is_cropped() -> None:
    assert cropped(photograph(), (4, 6)).shape == (20, 30, 3)
    with pytest.raises(CallError, match="grid"):
        cropped(photograph(), (40, 6))


# -- raw patches -------------------------------------------------------------------------------------------------------


def vectors() -> Any:
    x = photograph()[:20, :30].astype(np.float64) / 255
    return x.reshape(4, PATCH, 6, PATCH, 3).swapaxes(1, 2).reshape(24, -1)


def test_patches_by_three_measures() -> None:
    lens = lens_of_patches(photograph(), PATCH)
    x = vectors()
    assert [one.name for one in lens] == ["Euclidean", "cosine", "Mahalanobis"]
    differences = x[:, None] - x[None]
    precision = Mahalanobis.fit(x).precision
    unit = x / np.linalg.norm(x, axis=1, keepdims=True)
    scores = [
        -(differences**2).sum(-1), unit @ unit.T, -np.einsum("ijc,cd,ijd->ij", differences, precision, differences) / 2,
    ]  # fmt: skip
    for place, score in enumerate(scores):
        e = np.exp(sharpness(score) * score)
        np.testing.assert_allclose(lens.weights(place, 0), e / e.sum(-1, keepdims=True), rtol=0.03, atol=1e-4)


def test_patches_stand_on_their_grid() -> None:
    lens = lens_of_patches(photograph(), PATCH, title="noise")
    axis = lens.axes[0][lens[0].query]
    assert (axis.grid, len(axis), axis.labels[7], axis.special) == ((4, 6), 24, "1, 1", frozenset())
    np.testing.assert_array_equal(read(lens.image), photograph()[:20, :30])
    assert lens.title == "noise"
    np.testing.assert_allclose(np.asarray(lens[0].q[0, 0]), vectors(), rtol=1e-6)


def test_patches_under_a_formula_and_saved(tmp_path: Path) -> None:
    lens = lens_of_patches(photograph(), (PATCH, 7), Attention(-3 * sqdist))
    assert len(lens) == 1
    assert lens.axes[0]["patches"].grid == (4, 4)
    path = lens.save(tmp_path / "a.lens")
    assert (path / "0000.safetensors").stat().st_size < 1.2 * lens[0].q.nbytes + 1000  # q, k and v are one array
    np.testing.assert_array_equal(Lens.open(path).weights(0), lens.weights(0))


def test_a_patch_reads_about_twelve() -> None:
    scores = -(np.random.default_rng(1).normal(size=(101, 211)) ** 2)
    w = np.exp(sharpness(scores) * scores)
    w /= w.sum(1, keepdims=True)
    read_by_rows = np.exp(-(w * np.log(np.maximum(w, 1e-300))).sum(1))
    assert 11 < np.median(read_by_rows) < 13


# -- models ------------------------------------------------------------------------------------------------------------


def model_of(folder: Path, said: Any = None, **config: Any) -> Any:
    if said is not None:
        (folder / "preprocessor_config.json").write_text(json.dumps(said))
    return SimpleNamespace(config=SimpleNamespace(_name_or_path=str(folder), patch_size=PATCH, **config))


def test_without_a_word_an_image_gets_the_models_size(tmp_path: Path) -> None:
    found = prepared(photograph(), model_of(tmp_path, image_size=35, num_channels=3))
    assert (found.values.shape, found.shown.shape) == ((1, 3, 35, 35), (35, 35, 3))
    np.testing.assert_allclose(found.values[0], np.moveaxis(found.shown, -1, 0) / 127.5 - 1, atol=1e-6)


def test_a_preprocessor_says_how(tmp_path: Path) -> None:
    said = {
        "size": {"shortest_edge": 46}, "do_center_crop": True, "crop_size": {"height": 40, "width": 35},
        "image_mean": [0.1, 0.2, 0.3], "image_std": [0.5, 0.6, 0.7], "resample": 0,
    }  # fmt: skip
    found = prepared(photograph(), model_of(tmp_path, said))
    doubled = photograph().repeat(2, 0).repeat(2, 1)[3:43, 13:48]
    np.testing.assert_array_equal(found.shown, doubled)
    wanted = (doubled / 255 - np.array([0.1, 0.2, 0.3])) / np.array([0.5, 0.6, 0.7])
    np.testing.assert_allclose(found.values[0], np.moveaxis(wanted, -1, 0), atol=1e-5)


def test_a_preprocessor_that_cannot_be_read_is_told(tmp_path: Path) -> None:
    model = model_of(tmp_path, image_size=35)
    (tmp_path / "preprocessor_config.json").write_text("{")
    with pytest.raises(CallError, match="preprocessor_config"):
        prepared(photograph(), model)
    (tmp_path / "preprocessor_config.json").unlink()
    with pytest.raises(CallError, match="tells the size"):
        prepared(photograph(), model_of(tmp_path))


def test_patches_that_a_model_tells_of(tmp_path: Path) -> None:
    assert patch_of(model_of(tmp_path)) == (5, 5)
    assert patch_of(SimpleNamespace(config=SimpleNamespace(vision_config=SimpleNamespace(patch_size=[3, 7])))) == (3, 7)
    assert patch_of(SimpleNamespace(patch=(2, 3))) == (2, 3)
    assert patch_of(SimpleNamespace(config=SimpleNamespace(vocab_size=7))) is None
    assert [sides(one) for one in (3, [2, 3], {"height": 2, "width": 5}, "x", [0, 1], True)] == [
        (3, 3), (2, 3), (2, 5), None, None, None,
    ]  # fmt: skip
