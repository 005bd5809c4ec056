"""The vision transformer that ships with the lens: any photograph, as a small model that knows ten classes reads it.

    image → its middle square → 32 × 32 pixels → x = [class; 256 patches of 2 × 2] → 6 blocks → p(class) of x_class

It was trained by bench/vision_model.py on CIFAR-10. `lens_of_image` shows the square itself with the 16 × 16 patches
that the model reads of it, `predicted` what it takes an image for, and `model` is the model.
"""

from __future__ import annotations

import json
import os
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from .._checks import check_count
from ..algebra.errors import CallError
from .entering.pictures import colours, pillow, png
from .lenses import Lens

if TYPE_CHECKING:
    from ..nn.vit import ViT

FOLDER = Path(__file__).parent / "gallery" / "vision"
LARGEST = 448  # pixels along a side of the square that is shown
BEST = 3  # classes in the notes


def lens_of_image(image: Any, *, title: str = "") -> Lens:
    """A lens of the shipped vision model on the middle square of an image.

    image: a path, the bytes of a file, a Pillow image, or an array (height, width) or (height, width, channels)
    title: the file's name, or "An image", with what the model takes it for, unless said otherwise
    """
    from .capturing import capture
    from .entering.standing import Patches, placed

    square, vit = middle(colours(image)), model()
    with capture(vit) as seen:
        chances = _chances(square)
    grid = vit.image[0] // vit.patch[0], vit.image[1] // vit.patch[1]
    layers, axes = placed(seen.layers, [Patches(grid)])
    best = _best(chances, BEST)
    name = Path(image).name if isinstance(image, str | os.PathLike) else "An image"
    return Lens(
        layers,
        axes,
        title=title or f"{name}: {_said(best[:1])}",
        model=f"ViT, {len(layers)} layers of {layers[0].shape[1]} heads, {vit.count():,} parameters",
        image=png(_resized(square, _side_shown(square, grid[0]))),
        missing=seen.missing,
        notes=(f"the model takes it for: {_said(best)}", *described(), *seen.notes),
    )


def predicted(image: Any, count: int = BEST) -> list[tuple[str, float]]:
    """The likeliest classes of an image and their probabilities, the likeliest first."""
    check_count("count", count, 1)
    return _best(_chances(middle(colours(image))), count)


@lru_cache(maxsize=1)
def model() -> ViT:
    """The model itself, in float32, ready to be asked: pixels (batch, 3, 32, 32) as `Normal` of `told` makes them."""
    from .. import nn

    loaded: ViT = nn.ViT.load(FOLDER / "vision.safetensors").float().requires_grad_(requires_grad=False)
    return loaded


@lru_cache(maxsize=1)
def told() -> dict[str, Any]:
    """What is known of the model: classes, normalisation, what it learned from, and how well it does."""
    found: dict[str, Any] = json.loads((FOLDER / "vision.json").read_text(encoding="utf-8"))
    return found


def described() -> tuple[str, ...]:
    """What a reader should know of the model."""
    known = told()
    classes = ", ".join(known["classes"])
    return (
        f"trained on {known['learned_from']:,} images of CIFAR-10, 32 × 32 pixels each",
        f"it takes every image for one of: {classes}",
        f"right on {known['accuracy']:.1%} of {known['tested_on']:,} images that it was not trained on",
    )


# -- what the model sees ---------------------------------------------------------------------------------------------


def middle(shown: Any) -> Any:
    """The largest square in the middle of pixels (height, width, 3)."""
    height, width = shown.shape[:2]
    side = min(height, width)
    if not side:
        raise CallError(f"image: at least one pixel; got {height} × {width}")
    top, left = (height - side) // 2, (width - side) // 2
    return shown[top : top + side, left : left + side]


def _side_shown(square: Any, patches: int) -> int:
    """A multiple of the patches along a side: the square's own, at most `LARGEST`, at least two pixels a patch."""
    return max(min(len(square), LARGEST) // patches, 2) * patches


def _resized(square: Any, side: int) -> Any:
    """The square with so many pixels along a side, each the weighted mean of all that it covers."""
    image = pillow()
    return np.array(image.fromarray(square).resize((side, side), image.Resampling.LANCZOS))


def _chances(square: Any) -> Any:
    """p(class), NumPy."""
    vit = model()  # first: it says what is missing, where PyTorch is
    import torch

    from ..train.data.normal import Normal

    normal = Normal(told()["mean"], told()["std"])
    pixels = torch.from_numpy(_resized(square, vit.image[0])).permute(2, 0, 1)[None]
    return vit(normal(pixels)).softmax(-1)[0].numpy()


def _best(chances: Any, count: int) -> list[tuple[str, float]]:
    names = told()["classes"]
    return [(names[at], float(chances[at])) for at in np.argsort(-chances, kind="stable")[:count]]


def _said(best: list[tuple[str, float]]) -> str:
    return ", ".join(f"{name} {chance:.0%}" for name, chance in best)
