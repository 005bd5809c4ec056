"""The shipped vision model: what the lens shows is what the model did, on the pixels that are shown."""

from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from torch.nn.functional import gelu, layer_norm, linear

from regard.algebra.errors import CallError, KindError
from regard.viewer import vision
from regard.viewer.lenses import Lens

ROWS, HEADS, WIDTH, PATCH = 257, 4, 32, 2


def picture(height: int, width: int, seed: int = 0) -> Any:
    """Smooth colours, so that resizing keeps something of them."""
    waves = np.random.default_rng(seed).uniform(1, 9, (3, 2))
    at = np.stack(np.meshgrid(np.linspace(0, 1, height), np.linspace(0, 1, width), indexing="ij"))
    return (127 * (1 + np.sin(np.einsum("cd,dyx->yxc", waves, at) + seed))).astype(np.uint8)


def shown(lens: Lens) -> Any:
    assert lens.image is not None
    return np.asarray(Image.open(BytesIO(lens.image)))


def by_hand(pixels: Any) -> tuple[list[Any], Any]:
    """The weights of each block and p(class) of 32 × 32 pixels, from the tensors alone, in float64."""
    told, tensors = vision.told(), {name: t.double() for name, t in vision.model().state_dict().items()}
    mean, std = (torch.tensor(told[name], dtype=torch.float64) for name in ("mean", "std"))
    x = (torch.from_numpy(np.array(pixels)).double() / 255 - mean) / std
    side = len(x) // PATCH
    x = x.reshape(side, PATCH, side, PATCH, 3).transpose(1, 2).reshape(side * side, -1)

    def apply(name: str, x: Any) -> Any:
        return linear(x, tensors[f"{name}.weight"], tensors[f"{name}.bias"])

    def norm(name: str, x: Any) -> Any:
        return layer_norm(x, x.shape[-1:], tensors[f"{name}.weight"], tensors[f"{name}.bias"])

    x = torch.cat([tensors["token"][None], apply("embedding", x)])
    x = x + next(t for name, t in tensors.items() if tuple(t.shape) == (ROWS, x.shape[1]))
    weights = []
    for block in (f"encoder.blocks.{n}" for n in range(6)):
        y = norm(f"{block}.attention_norm", x)
        q, k, v = (
            apply(f"{block}.attention.{name}", y).reshape(ROWS, HEADS, WIDTH).movedim(1, 0)
            for name in ("query", "key", "value")
        )
        weights.append((q @ k.mT / WIDTH**0.5).softmax(-1))
        x = x + apply(f"{block}.attention.out", (weights[-1] @ v).movedim(0, 1).reshape(ROWS, -1))
        y = norm(f"{block}.feed_forward_norm", x)
        inner, outer = sorted(
            name for name in tensors if name.startswith(f"{block}.feed_forward.") and "weight" in name
        )
        x = x + apply(outer.removesuffix(".weight"), gelu(apply(inner.removesuffix(".weight"), y)))
    return weights, apply("head", norm("encoder.norm", x)[0]).softmax(-1)


# -- the file --------------------------------------------------------------------------------------------------


def test_the_file_is_small_and_tells_what_it_is() -> None:
    from safetensors import safe_open

    path = vision.FOLDER / "vision.safetensors"
    assert path.stat().st_size <= 2_500_000
    with safe_open(path, "pt") as held:
        assert {held.get_slice(name).get_dtype() for name in held.keys()} == {"F16"}  # noqa: SIM118 - no mapping
    told, vit = vision.told(), vision.model()
    assert told["parameters"] == vit.count() == sum(t.numel() for t in vit.state_dict().values())
    assert len(told["classes"]) == 10
    assert 0.8 <= told["accuracy"] < 1
    assert (told["learned_from"], told["tested_on"]) == (50_000, 10_000)
    assert {t.dtype for t in vit.parameters()} == {torch.float32}
    assert not vit.training
    assert not any(t.requires_grad for t in vit.parameters())


# -- what it sees ----------------------------------------------------------------------------------------------


def test_the_lens_shows_what_the_model_did() -> None:
    """An image of 32 × 32 pixels is seen and shown as it is, and every weight is that of the model."""
    image = picture(32, 32)
    lens, (weights, chances) = vision.lens_of_image(image), by_hand(image)
    assert np.array_equal(shown(lens), image)
    assert [one.name for one in lens] == [f"encoder.blocks.{n}.attention" for n in range(6)]
    for layer, exact in enumerate(weights):
        assert np.abs(lens.weights(layer) - exact.numpy()).max() < 1e-5
    found = dict(vision.predicted(image, 10))
    assert np.allclose([found[name] for name in vision.told()["classes"]], chances.numpy(), atol=1e-5)
    assert lens.missing == ()


def test_patches_stand_behind_the_class_token() -> None:
    lens = vision.lens_of_image(picture(47, 43))
    (axes,) = lens.axes
    (axis,) = axes.values()
    assert (len(axis), axis.special, axis.grid) == (ROWS, frozenset({0}), (16, 16))
    assert "class" in axis.labels[0]
    assert {one.query for one in lens} == {one.key for one in lens} == {axis.name}


def test_a_patch_is_where_it_is_shown() -> None:
    """A change of one patch changes that row of q in the first block, and no other but for the class token's."""
    image = picture(32, 32)
    changed = image.copy()
    changed[2 * 5 : 2 * 5 + 2, 2 * 11 : 2 * 11 + 2] ^= 255
    before, after = (vision.lens_of_image(one)[0].q for one in (image, changed))
    moved = ((before - after).abs().amax((0, 1, 3)) > 1e-3).nonzero().flatten().tolist()
    assert moved == [1 + 5 * 16 + 11]


@pytest.mark.parametrize(("height", "width"), [(53, 97), (97, 53), (53, 54)])
def test_only_the_middle_square_counts(height: int, width: int) -> None:
    image = picture(height, width)
    side = min(height, width)
    top, left = (height - side) // 2, (width - side) // 2
    square = image[top : top + side, left : left + side]
    assert np.array_equal(vision.middle(image), square)
    around = np.full_like(image, 7)
    around[top : top + side, left : left + side] = square
    assert vision.predicted(around) == vision.predicted(image) == vision.predicted(square)


def test_the_square_that_is_shown_is_cut_into_whole_patches() -> None:
    for side, expected in ((1, 32), (31, 32), (33, 32), (47, 32), (53, 48), (449, 448), (1021, 448)):
        assert vision._side_shown(np.zeros((side, side, 3)), 16) == expected
    assert shown(vision.lens_of_image(picture(53, 59))).shape == (48, 48, 3)
    assert shown(vision.lens_of_image(picture(3, 2))).shape == (32, 32, 3)


def test_large_images_are_made_smaller_without_aliasing() -> None:
    """Stripes of one pixel become grey, not black or white."""
    stripes = np.zeros((512, 512, 3), np.uint8)
    stripes[:, ::2] = 255
    assert np.abs(vision._resized(stripes, 32).astype(int) - 128).max() < 8
    grey = dict(vision.predicted(np.full((32, 32, 3), 128, np.uint8), 10))
    assert vision.predicted(stripes, 1)[0][1] == pytest.approx(grey[vision.predicted(stripes, 1)[0][0]], abs=0.05)


def test_every_kind_of_image_is_the_same_image(tmp_path: Path) -> None:
    image = picture(61, 67)
    path = tmp_path / "waves.png"
    Image.fromarray(image).save(path)
    kinds = (image, path, str(path), path.read_bytes(), Image.fromarray(image), torch.from_numpy(image))
    first, *others = (vision.predicted(one, 10) for one in kinds)
    assert all(other == first for other in others)
    assert vision.predicted(image.astype(np.float32) / 255, 10) == first


# -- what is said ----------------------------------------------------------------------------------------------


def test_the_notes_say_what_it_is_taken_for_and_how_far_to_trust_it(tmp_path: Path) -> None:
    path = tmp_path / "waves.png"
    Image.fromarray(picture(61, 67)).save(path)
    lens, best = vision.lens_of_image(path), vision.predicted(path)
    assert lens.notes[0].endswith(", ".join(f"{name} {chance:.0%}" for name, chance in best))
    text = " ".join(lens.notes)
    assert "CIFAR-10" in text
    assert "50,000" in text
    assert f"{vision.told()['accuracy']:.1%}" in text
    assert lens.title == f"waves.png: {best[0][0]} {best[0][1]:.0%}"
    assert vision.lens_of_image(path.read_bytes()).title.startswith("An image: ")
    assert vision.lens_of_image(path, title="Waves").title == "Waves"
    assert lens.model == "ViT, 6 layers of 4 heads, 1,225,866 parameters"


def test_classes_come_by_their_probability() -> None:
    best = vision.predicted(picture(37, 41), 10)
    chances = [chance for _, chance in best]
    assert chances == sorted(chances, reverse=True)
    assert sum(chances) == pytest.approx(1)
    assert vision.predicted(picture(37, 41)) == best[:3]


def test_a_cat_is_a_cat() -> None:
    data = pytest.importorskip("skimage.data", reason="the photograph comes with scikit-image: pip install it")
    name, chance = vision.predicted(data.chelsea(), 1)[0]
    assert name == "cat"
    assert chance > 0.8


# -- errors, threads, imports ----------------------------------------------------------------------------------


def test_errors_say_what_is_wrong() -> None:
    with pytest.raises(CallError, match="image: at least one pixel; got 0 × 5"):
        vision.lens_of_image(np.zeros((0, 5, 3), np.uint8))
    with pytest.raises(CallError, match="count: "):
        vision.predicted(picture(32, 32), 0)
    with pytest.raises(KindError, match="image: "):
        vision.predicted(b"no image")


def test_many_look_at_once() -> None:
    images = [picture(41, 43, seed) for seed in range(5)]
    alone = [vision.lens_of_image(one) for one in images]
    with ThreadPoolExecutor(3) as pool:
        together = list(pool.map(vision.lens_of_image, images))
    for one, other in zip(alone, together, strict=True):
        assert one.notes == other.notes
        assert all(torch.allclose(a.q, b.q, atol=1e-4) for a, b in zip(one, other, strict=True))


def test_torch_is_asked_for_when_it_is_needed() -> None:
    code = """
import sys
sys.modules["torch"] = None
from regard.viewer import vision
import numpy as np
from regard.algebra.errors import MissingExtra
assert vision.told()["classes"][3] == "cat"
for ask in (vision.lens_of_image, vision.predicted, lambda image: vision.model()):
    try:
        ask(np.zeros((32, 32, 3), np.uint8))
    except MissingExtra as missing:
        assert "torch" in str(missing)
    else:
        raise AssertionError("torch is not there")
"""
    subprocess.run([sys.executable, "-c", code], check=True)
