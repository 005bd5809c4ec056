"""Photographs within a drawing: numbers as pixels, kept small, in the page itself."""

from __future__ import annotations

import base64
import io
from functools import lru_cache
from typing import Any

import numpy as np

from ..._drawing.svg import Drawing, Point
from ...claims.measure import photograph

SMALL = 4096  # pixels up to which every one is kept as it is


@lru_cache(maxsize=4)
def in_colour(name: str = "china") -> Any:
    """A photograph of scikit-learn, (427, 640, 3) in uint8: "china", a pagoda by a lake, or "flower"."""
    return photograph(name)


@lru_cache(maxsize=4)
def in_grey(name: str = "china") -> Any:
    """The same with one number for each pixel: the mean of its three colours, rounded."""
    return np.rint(photograph(name).mean(axis=-1)).astype(np.uint8)


def link(pixels: Any, quality: int = 72) -> str:
    """An image as text that a page can hold: PNG where it is small, JPEG where it is not."""
    from PIL import Image

    array, file = np.asarray(pixels), io.BytesIO()
    small = array.shape[0] * array.shape[1] <= SMALL
    kind, options = ("PNG", {}) if small else ("JPEG", {"quality": quality})
    Image.fromarray(array.astype(np.uint8)).save(file, kind, **options)
    return f"data:image/{kind.lower()};base64,{base64.b64encode(file.getvalue()).decode()}"


def place_image(
    drawing: Drawing, pixels: Any, corner: Point, width: float, height: float, *, sharp: bool = True, **more: Any
) -> None:
    """An image from its upper left corner on; `sharp` shows each pixel as a square."""
    look = {"style": "image-rendering:pixelated"} if sharp else {}
    drawing.add("image", href=link(pixels), x=corner[0], y=corner[1], width=width, height=height,
                preserveAspectRatio="none", **look, **more)  # fmt: skip


def as_grey(numbers: Any, low: float | None = None, high: float | None = None) -> Any:
    """Any numbers as greys from 0, the lowest, to 255, the highest."""
    array = np.asarray(numbers, float)
    bottom = float(array.min()) if low is None else low
    top = float(array.max()) if high is None else high
    return np.rint(255 * np.clip((array - bottom) / ((top - bottom) or 1.0), 0, 1)).astype(np.uint8)
