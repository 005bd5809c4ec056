"""Patches of a photograph side by side: one and its neighbours, by several measures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..._drawing.svg import Drawing
from .photograph import place_image


def tiles_of(tiles: Mapping[str, Any], *, says: str, side: float = 130) -> str:
    """A few patches in a row, each with its name; numbers beyond 0 and 255 are shown as these."""
    drawing = Drawing(len(tiles) * (side + 40) - 40, side + 30)
    for at, (name, pixels) in enumerate(tiles.items()):
        left = at * (side + 40)
        place_image(drawing, np.clip(np.rint(pixels), 0, 255), (left, 0), side, side)
        drawing.text((left + side / 2, side + 16), name, "soft", 16)
    return drawing.svg(says)


def neighbours_of(asked: Any, found: Mapping[str, tuple[Sequence[Any], Sequence[float]]], *, says: str) -> str:
    """One patch, and for each measure the patches that are nearest by it, each with its number."""
    side, row, left = 58.0, 92.0, 196.0
    drawing = Drawing(700, row * len(found) + 4)
    place_image(drawing, asked, (0, row * len(found) / 2 - 50), 92, 92)
    drawing.text((46, row * len(found) / 2 + 60), "this patch", "accent", 16)
    for at, (name, (tiles, numbers)) in enumerate(found.items()):
        top = at * row
        drawing.text((left - 14, top + side / 2), name, "ink", 16, "end")
        for place, (tile, number) in enumerate(zip(tiles, numbers, strict=True)):
            x = left + place * (side + 14)
            place_image(drawing, tile, (x, top), side, side)
            drawing.rect((x, top), side, side, "none", "hair")
            drawing.text((x + side / 2, top + side + 13), f"{number:.3g}", "faint", 14)
    return drawing.svg(says)
