"""A cloud of points with its own axes, and the same cloud whitened: an ellipse that becomes a circle."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ... import geometry
from ..._drawing.svg import Drawing, Frame
from .photograph import as_grey, place_image

SIDE = 310.0


def whitened_of(points: Any, white: Any, matrix: Any, step: float, *, says: str, names: tuple[str, str]) -> str:
    """Left: the cloud, its axes, the ellipse two spreads away, and two steps of one length. Right: the same through the
    whitening `matrix`: a circle, and two steps that are not alike."""
    points, white, matrix = (np.asarray(one, float) for one in (points, white, matrix))
    drawing, middle = Drawing(700, SIDE + 40), points.mean(axis=0)
    found = geometry.Axes.of(points)
    spread, Q = np.sqrt(np.maximum(np.asarray(found.values), 0)), np.asarray(found.vectors)
    circle = np.stack([np.cos(np.linspace(0, 2 * np.pi, 90)), np.sin(np.linspace(0, 2 * np.pi, 90))], axis=-1)
    ellipse = middle + 2 * circle * spread @ Q.T
    reach = 1.06 * max(float(np.abs(one - middle).max()) for one in (points, ellipse))
    left = Frame(0, 6, SIDE, SIDE, (middle[0] - reach, middle[0] + reach), (middle[1] - reach, middle[1] + reach))
    right = Frame(700 - SIDE, 6, SIDE, SIDE, (-4.2, 4.2), (-4.2, 4.2))
    steps = step * np.array([[1.0, 1.0], [-1.0, 1.0]]) / np.sqrt(2)
    for frame, cloud, around, zero, apart in (
        (left, points, ellipse, middle, steps),
        (right, white, 2 * circle, np.zeros(2), steps @ matrix.T),
    ):
        drawing.rect((frame.left, frame.top), SIDE, SIDE, "none", "hair", 1, 4)
        for point in cloud:
            if frame.x[0] < point[0] < frame.x[1] and frame.y[0] < point[1] < frame.y[1]:
                drawing.circle(frame(point), 1.7, "slate", opacity=0.4)
        drawing.path([frame(one) for one in around], "accent2", 2)
        for way in apart:
            drawing.arrow(frame(zero), frame(zero + way), "accent", 3.2, 10)
            length = float(np.linalg.norm(way))
            away = zero + way * (1 + 0.062 * (frame.x[1] - frame.x[0]) / max(length, 1e-9))
            _labelled(drawing, frame(away), f"{length:.3g}" if frame is left else f"{length:.2f}")
    for axis in range(2):
        half = 2 * spread[axis] * Q[:, axis]
        drawing.line(left(middle - half), left(middle + half), "accent2", 1, "3 4")
    drawing.text((SIDE / 2, SIDE + 24), names[0], "soft", 16)
    drawing.text((700 - SIDE / 2, SIDE + 24), names[1], "soft", 16)
    drawing.arrow((SIDE + 14, SIDE / 2), (700 - SIDE - 14, SIDE / 2), "faint", 1.8)
    drawing.text((350, SIDE / 2 - 14), "A (x − μ)", "soft", 16, italic=True, serif=True)
    return drawing.svg(says)


def _labelled(drawing: Drawing, place: tuple[float, float], text: str) -> None:
    """Words upon a little paper, so that no point lies in them."""
    wide = 7.6 * len(text) + 6
    drawing.add(
        "rect", x=place[0] - wide / 2, y=place[1] - 9, width=wide, height=18, rx=3, fill="var(--paper)", opacity=0.85
    )
    drawing.text(place, text, "accent", 16, bold=True)


def components_of(vectors: Any, shares: Sequence[float], side: int, *, says: str, count: int = 16) -> str:
    """Axes of a cloud of patches as little images: white adds, black takes away."""
    edge, gap, across = 72.0, 14.0, 8
    rows = -(-count // across)
    drawing = Drawing(across * (edge + gap) - gap, rows * (edge + 30))
    for at in range(count):
        column = np.asarray(vectors)[:, at]
        most = float(np.abs(column).max())
        corner = ((at % across) * (edge + gap), (at // across) * (edge + 30))
        place_image(drawing, as_grey(column.reshape(side, side), -most, most), corner, edge, edge)
        drawing.rect(corner, edge, edge, "none", "hair")
        drawing.text((corner[0] + edge / 2, corner[1] + edge + 13), f"{shares[at]:.1%}", "soft", 15)
    return drawing.svg(says)


def rebuilt_of(before: Any, after: Any, names: tuple[str, str], *, says: str) -> str:
    """A picture and what was built of it, side by side."""
    height, width = np.asarray(before).shape
    wide = 335.0
    tall = wide * height / width
    drawing = Drawing(700, tall + 26)
    for left, pixels, name in ((0.0, before, names[0]), (700 - wide, after, names[1])):
        place_image(drawing, np.clip(np.rint(pixels), 0, 255), (left, 0), wide, tall, sharp=False)
        drawing.text((left + wide / 2, tall + 15), name, "soft", 16)
    return drawing.svg(says)
