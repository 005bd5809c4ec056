"""An image as a vision model takes it: resized, cropped, and normalised as the file beside the model says.

    pixel_values = (image · factor − mean) / deviation        (1, channels, height, width)

`preprocessor_config.json` is read from the folder that a model of transformers was loaded from; without one, the image
is resized to the model's own size and runs from −1 to 1.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ...algebra.errors import CallError
from .pictures import colours, pillow

BILINEAR = 2


@dataclass(frozen=True)
class Prepared:
    """What a model is given, (1, channels, height, width), and what a person sees, (height, width, 3)."""

    values: Any
    shown: Any


def vision_config(model: Any) -> Any:
    """The part of a model that says how images are cut: a config of transformers, or the model itself."""
    config = getattr(model, "config", None)
    config = getattr(config, "vision_config", None) or config
    return config if hasattr(config, "patch_size") else model


def patch_of(model: Any) -> tuple[int, int] | None:
    """The (height, width) of a patch; None where the model does not tell."""
    config = vision_config(model)
    return sides(getattr(config, "patch_size", getattr(config, "patch", None)))


def sides(size: Any) -> tuple[int, int] | None:
    """(height, width) from one number, two, or a mapping; None from anything else."""
    if isinstance(size, dict):
        size = [size.get("height"), size.get("width")]
    pair = list(size) if isinstance(size, list | tuple) else [size, size]
    return (pair[0], pair[1]) if len(pair) == 2 and all(type(side) is int and side > 0 for side in pair) else None


def prepared(image: Any, model: Any) -> Prepared:
    """One image for a model."""
    said, config = _said(model), vision_config(model)
    own = sides(getattr(config, "image_size", getattr(config, "image", None)))
    shown = _sized(colours(image), said, own)
    unit = shown.astype(np.float32) * said.get("rescale_factor", 1 / 255)
    channels = getattr(config, "num_channels", getattr(config, "channels", 3))
    unit = unit.mean(axis=-1, keepdims=True) if channels == 1 else unit
    mean, deviation = (np.asarray(said.get(name) or [0.5], np.float32) for name in ("image_mean", "image_std"))
    values = (unit - mean) / deviation if said.get("do_normalize", True) else unit
    return Prepared(np.ascontiguousarray(np.moveaxis(values.astype(np.float32), -1, 0)[None]), shown)


def _said(model: Any) -> dict[str, Any]:
    """The preprocessor_config.json beside the model; nothing where there is none."""
    name = getattr(getattr(model, "config", None), "_name_or_path", "")
    path = Path(name) / "preprocessor_config.json" if name else None
    if path is None or not path.is_file():
        return {}
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except ValueError:
        raise CallError(f"image: a preprocessor_config.json that is JSON; got {str(path)!r}; repair it") from None
    return found if isinstance(found, dict) else {}


def _sized(shown: Any, said: dict[str, Any], own: tuple[int, int] | None) -> Any:
    """Resized, then cropped in the middle, as far as that is said; to the model's own size where nothing is."""
    size = said.get("size")
    if isinstance(size, int):
        size = {"shortest_edge": size} if said.get("do_center_crop") else {"height": size, "width": size}
    if isinstance(size, dict) and "shortest_edge" in size:
        height, width = shown.shape[:2]
        scale = size["shortest_edge"] / min(height, width)
        wanted: tuple[int, int] | None = (max(1, round(height * scale)), max(1, round(width * scale)))
    else:
        wanted = sides(size) or own
    if wanted is None:
        raise CallError("image: a model that tells the size of its images; got one that does not; pass inputs instead")
    resized = _resized(shown, wanted, said) if said.get("do_resize", True) else shown
    crop = said.get("crop_size", own) if said.get("do_center_crop") else None
    return _middle(resized, sides(crop)) if crop is not None else resized


def _resized(shown: Any, size: tuple[int, int], said: dict[str, Any]) -> Any:
    if shown.shape[:2] == size:
        return shown
    image = pillow()
    return np.asarray(image.fromarray(shown).resize(size[::-1], image.Resampling(said.get("resample", BILINEAR))))


def _middle(shown: Any, size: tuple[int, int] | None) -> Any:
    if size is None or shown.shape[0] < size[0] or shown.shape[1] < size[1]:
        return shown
    top, left = (shown.shape[0] - size[0]) // 2, (shown.shape[1] - size[1]) // 2
    return shown[top : top + size[0], left : left + size[1]]
