"""An image cut into patches: the patches, the table that they make, and whom each was informed by."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from ..._drawing.svg import Drawing
from .photograph import place_image

SIDE = 250.0


def table_of(image: Any, size: int, rows: Any, lit: int, *, says: str) -> str:
    """An image with its grid, and beside it the matrix with one row for each patch; one patch and its row are lit."""
    drawing = Drawing(700, SIDE + 46)
    across = image.shape[1] // size
    _patched(drawing, image, size, (0, 24), lit)
    left, wide = SIDE + 110, 340.0
    shown = _columns(np.asarray(rows, float), 340)
    place_image(drawing, np.rint(shown).astype(np.uint8), (left, 24), wide, SIDE, sharp=True)
    tall = SIDE / len(rows)
    middle = 24 + (lit + 0.5) * tall
    edge = SIDE * size / image.shape[1]
    start = ((lit % across + 1) * edge, 24 + (lit // across + 0.5) * edge)
    drawing.rect((left - 3, middle - max(tall, 5) / 2), wide + 6, max(tall, 5), "none", "accent", 2)
    drawing.arrow((start[0] + 4, start[1]), (left - 8, middle), "accent", 1.8)
    drawing.text((SIDE / 2, 8), f"{image.shape[0]} × {image.shape[1]} pixels", "soft", 16)
    drawing.text((left + wide / 2, 8), f"X: {len(rows)} rows of {len(rows[0])} numbers", "soft", 16)
    drawing.text((left + wide / 2, SIDE + 38), f"row {lit} is patch {lit}", "accent", 16)
    return drawing.svg(says)


def informed_of(image: Any, informed: Any, size: int, weights: Any, lit: int, *, says: str, least: float = 0.02) -> str:
    """Isolated patches on the left, informed ones on the right, and arrows from those that one of them was informed by:
    as wide as their weights."""
    drawing = Drawing(700, SIDE + 50)
    across, edge, right = image.shape[1] // size, SIDE * size / image.shape[1], 700 - SIDE
    _patched(drawing, image, size, (0, 24), None)
    _patched(drawing, informed, size, (right, 24), lit)
    end = (right + (lit % across) * edge - 2, 24 + (lit // across + 0.5) * edge)
    drawing.rect(
        ((lit % across) * edge + 1, 24 + (lit // across) * edge + 1), edge - 2, edge - 2, "none", "accent", 2.5
    )
    for at in np.argsort(weights):
        weight = float(weights[at])
        if weight < least:
            continue
        start = ((at % across + 0.5) * edge, 24 + (at // across + 0.5) * edge)
        drawing.circle(start, 2 + 3 * weight, "accent")
        drawing.arrow(start, end, "accent", 0.8 + 9 * weight, 7 + 12 * weight, opacity=0.35 + 0.6 * weight)
    drawing.text((SIDE / 2, 8), "X: each patch by itself", "soft", 16)
    drawing.text((right + SIDE / 2, 8), "Y: each has looked around", "soft", 16)
    count = int(np.sum(np.asarray(weights) >= least))
    drawing.text((350, SIDE + 40), f"{count} arrows carry {float(np.sum(weights[weights >= least])):.0%} of the weight",
                 "soft", 16)  # fmt: skip
    return drawing.svg(says)


def _patched(drawing: Drawing, image: Any, size: int, corner: tuple[float, float], lit: int | None) -> None:
    """An image with lines of paper between its patches."""
    place_image(drawing, image, corner, SIDE, SIDE, sharp=False)
    across, edge = image.shape[1] // size, SIDE * size / image.shape[1]
    width = 2.5 if edge > 20 else 1.2
    for line in range(1, across):
        drawing.line((corner[0] + line * edge, corner[1]), (corner[0] + line * edge, corner[1] + SIDE), "paper", width)
        drawing.line((corner[0], corner[1] + line * edge), (corner[0] + SIDE, corner[1] + line * edge), "paper", width)
    if lit is not None:
        place = (corner[0] + (lit % across) * edge, corner[1] + (lit // across) * edge)
        drawing.rect(place, edge, edge, "none", "accent", 3)


def _columns(rows: Any, most: int) -> Any:
    """As many columns as can be seen: neighbours averaged."""
    wide = rows.shape[1]
    if wide <= most:
        return rows
    ends = np.linspace(0, wide, most + 1).astype(int)
    return np.stack([rows[:, a:b].mean(axis=1) for a, b in itertools.pairwise(ends)], axis=1)
