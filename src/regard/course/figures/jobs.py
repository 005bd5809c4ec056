"""One patch, three jobs: what it looks for, what it is found by, what it sends. Of a real model on a real photograph.

row of A       as a query: whom it reads           column of A     as a key: who reads it         v       as a value
"""

from __future__ import annotations

import io
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from ... import viewer
from ..._drawing.svg import Drawing
from .photograph import place_image

GALLERY = Path(viewer.__file__).parent / "gallery"
SIDE, GRID, GAP = 176, 16, 28


@dataclass(frozen=True, eq=False)
class Seen:
    """A photograph, and one head's weights and values for its patches; the class token stands before them, at 0."""

    pixels: Any
    weights: Any
    values: Any


@lru_cache(maxsize=4)
def seen(layer: int, head: int) -> Seen:
    """The cat of the lens's gallery, as one head of the vision model reads it."""
    from PIL import Image

    lens = viewer.Lens.open(GALLERY / "5-vision-cat.lens")
    picture = Image.open(io.BytesIO(lens.image)).convert("RGB").resize((SIDE, SIDE))
    values = np.asarray(lens.layers[layer].v, np.float32)[0, head]
    return Seen(np.asarray(picture), np.asarray(lens.weights(layer, head=head)), values)


def jobs_of(found: Seen, row: int, column: int, *, says: str = "one patch, three jobs") -> str:
    """The patch at (row, column), whom it reads, who reads it, and the numbers that it sends."""
    at = 1 + row * GRID + column
    drawing = Drawing(3 * SIDE + 2 * GAP, SIDE + 130)
    lights = (None, found.weights[at, 1:], found.weights[1:, at])
    for number, light in enumerate(lights):
        left = number * (SIDE + GAP)
        place_image(
            drawing, found.pixels if light is None else _lit(found.pixels, light), (left, 24), SIDE, SIDE, sharp=False
        )
        cell = SIDE / GRID
        drawing.rect((left + column * cell - 1, 24 + row * cell - 1), cell + 2, cell + 2, "none", "accent", 2.4, 2)
    heads = (("the patch", "soft"), ("as a query: whom it reads", "accent"), ("as a key: who reads it", "slate"))
    for number, (title, tone) in enumerate(heads):
        drawing.text((number * (SIDE + GAP) + SIDE / 2, 9), title, tone, 13)
    _bars(drawing, found.values[at], SIDE + 50)
    return drawing.svg(says)


def _lit(pixels: Any, weights: Any) -> Any:
    """The photograph, dark where nothing is read."""
    share = np.asarray(weights, float).reshape(GRID, GRID)
    share = np.sqrt(share / (share.max() or 1.0))
    light = np.kron(0.26 + 0.74 * share, np.ones((SIDE // GRID, SIDE // GRID)))
    return np.rint(pixels * light[..., None]).astype(np.uint8)


def _bars(drawing: Drawing, value: Any, top: float) -> None:
    """The numbers of a value, up and down from a line."""
    most, wide = float(np.abs(value).max()) or 1.0, drawing.width / len(value)
    middle = top + 36
    drawing.text((drawing.width / 2, top - 12), f"as a value: the {len(value)} numbers that it sends", "accent2", 13)
    drawing.line((0, middle), (drawing.width, middle), "hair", 1)
    for number, one in enumerate(value):
        high = 34 * abs(float(one)) / most
        drawing.rect((number * wide + 2, middle - high if one > 0 else middle), wide - 4, high, "accent2", round_=1.5)
