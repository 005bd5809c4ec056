"""One number in several places: what stands around it, a little or a lot."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..._drawing.svg import Drawing
from .photograph import place_image

Place = tuple[int, int]
MARGIN, AROUND = 49, 9  # to the edge of the photograph; what is compared around a pixel


def twins(grey: Any, colours: Any, value: int, count: int = 4) -> list[Place]:
    """Places with one and the same value, each as unlike the others as can be in what stands around it."""
    rows, columns = np.nonzero(grey[MARGIN:-MARGIN, MARGIN:-MARGIN] == value)
    step = max(1, len(rows) // 300)
    found = [(int(row) + MARGIN, int(column) + MARGIN) for row, column in zip(rows, columns, strict=True)][::step]
    around = np.array([_around(colours, place) for place in found])
    kept = [int(np.argmax(np.linalg.norm(around - around.mean(0), axis=1)))]
    while len(kept) < min(count, len(found)):
        far = np.linalg.norm(around[:, None] - around[kept], axis=-1).min(axis=1)
        kept.append(int(np.argmax(far)))
    return sorted((found[one] for one in kept), key=lambda place: place[1])


def nearest_of(grey: Any, place: Place, value: int) -> Place:
    """The pixel of a value that is nearest to a place."""
    found = np.argwhere(grey == value)
    row, column = found[np.argmin(np.abs(found - np.array(place)).sum(axis=1))]
    return int(row), int(column)


def _around(colours: Any, place: Place) -> Any:
    """Mean and spread of the colours near a place."""
    row, column = place
    near = colours[row - AROUND : row + AROUND + 1, column - AROUND : column + AROUND + 1].reshape(-1, 3).astype(float)
    return np.concatenate([near.mean(0), near.std(0)])


def windows_of(grey: Any, places: Sequence[Place], radius: int, *, says: str, whole: bool = False) -> str:
    """The same pixel value in several places, each with `radius` neighbours on every side; below, the photograph
    through these windows."""
    size, gap = 150.0, 15.0
    drawing = Drawing(len(places) * (size + gap) - gap, 0)
    near = min(radius, MARGIN - 1)
    for at, (row, column) in enumerate(places):
        left, one = at * (size + gap), size / (2 * near + 1)
        place_image(drawing, _crop(grey, (row, column), near), (left, 0), size, size)
        edge = max(one, 9.0)
        drawing.rect((left + (size - edge) / 2, (size - edge) / 2), edge, edge, "none", "accent", 2)
        drawing.text((left + size / 2, size + 16), f"{'ABCDEF'[at]}: {grey[row, column]}", "soft", 16)
    top, scale = size + 42, drawing.width / grey.shape[1]
    height = grey.shape[0] * scale
    drawing.rect((0, top), drawing.width, height, "wash", "hair", 1)
    holes = "".join(
        f'<rect x="{(column - near) * scale:.1f}" y="{top + (row - near) * scale:.1f}" '
        f'width="{(2 * near + 1) * scale:.1f}" height="{(2 * near + 1) * scale:.1f}"/>'
        for row, column in places
    )
    drawing.add("clipPath", holes, id=f"windows{radius}")
    seen = {} if whole else {"clip_path": f"url(#windows{radius})"}
    place_image(drawing, grey, (0, top), drawing.width, height, sharp=False, **seen)
    for at, (row, column) in enumerate(places):
        centre = ((column + 0.5) * scale, top + (row + 0.5) * scale)
        drawing.circle(centre, 4.5, "none", "accent", 2)
        drawing.circle((centre[0] + 13, centre[1] - 13), 9.5, "paper", opacity=0.88)
        drawing.text((centre[0] + 13, centre[1] - 13), "ABCDEF"[at], "accent", 16, bold=True)
    drawing.height = top + height + 2
    return drawing.svg(says)


def numbers_of(grey: Any, places: Sequence[Place], names: Sequence[str], *, says: str, reach: int = 2) -> str:
    """The numbers around two pixels of one value, each upon its own grey, and a wider look at each."""
    cell, wide = 44.0, 350.0
    side = cell * (2 * reach + 1)
    drawing = Drawing(wide * len(places), side + 34)
    for at, (place, name) in enumerate(zip(places, names, strict=True)):
        left = at * wide
        near = _crop(grey, place, reach)
        for i, row in enumerate(near):
            for j, value in enumerate(row):
                corner = (left + j * cell, i * cell)
                drawing.rect(corner, cell + 0.4, cell + 0.4, f"rgb({value},{value},{value})")
                drawing.text((corner[0] + cell / 2, corner[1] + cell / 2), str(value),
                             "rgb(20,20,20)" if value > 118 else "rgb(240,240,240)", 16)  # fmt: skip
        drawing.rect((left + reach * cell, reach * cell), cell, cell, "none", "accent", 3)
        seen = left + side + 12
        place_image(drawing, _crop(grey, place, 40), (seen, 0), 92, 92, sharp=False)
        mark = 92 * (2 * reach + 1) / 81
        drawing.rect((seen + 46 - mark / 2, 46 - mark / 2), mark, mark, "none", "accent", 2)
        drawing.text((left + side / 2, side + 18), name, "soft", 16)
    return drawing.svg(says)


def _crop(grey: Any, place: Place, reach: int) -> Any:
    row, column = place
    return grey[row - reach : row + reach + 1, column - reach : column + reach + 1]
