"""The convex cloud: Σ_j w_j v_j with weights that sum to 1 lies inside the hull of the v_j.

chain_of    the sum, arrow after arrow, each as long as its weight makes it
reach_of    every place that an output can come to when the query turns, for queries of several lengths
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..._drawing.svg import Drawing, Frame, Point
from ..widgets.convex import hull

SIDE = 300


def _frame(values: Any, left: float = 20, width: float = SIDE, height: float = SIDE) -> Frame:
    """Room for all values and for zero."""
    every = np.vstack([values, [[0.0, 0.0]]])
    middle, reach = (every.max(0) + every.min(0)) / 2, float((every.max(0) - every.min(0)).max()) * 0.56
    ratio = width / height
    return Frame(left, 10, width, height, (middle[0] - ratio * reach, middle[0] + ratio * reach),
                 (middle[1] - reach, middle[1] + reach))  # fmt: skip


def _cloud(drawing: Drawing, frame: Frame, values: Any, labels: Sequence[str], weights: Any) -> None:
    """The hull, and in it each value with its name, larger where it weighs more."""
    drawing.path([frame(point) for point in hull(values)], "hair", 1.2, "wash", closed=True)
    middle = values.mean(0)
    for value, label, weight in zip(values, labels, weights, strict=True):
        place = frame(value)
        drawing.circle(place, 3 + 9 * float(weight) ** 0.5, "accent2", opacity=0.35 + 0.6 * float(weight))
        side = 1 if value[0] >= middle[0] else -1
        drawing.text((place[0] + 15 * side, place[1] - 2), label, "ink", 13, "start" if side > 0 else "end")


def chain_of(values: Any, weights: Any, y: Any, labels: Sequence[str], *, says: str) -> str:
    """From zero, the first value by its weight, then the next, and so on: the last arrow ends at y."""
    values, weights = np.asarray(values, float), np.asarray(weights, float)
    drawing = Drawing(560, SIDE + 20)
    frame = _frame(values, 30, 500)
    _cloud(drawing, frame, values, labels, weights)
    zero, at = frame((0, 0)), np.zeros(2)
    drawing.circle(zero, 3, "faint")
    drawing.text((zero[0] - 9, zero[1] + 9), "0", "faint", 12, "end")
    for value, weight in zip(values, weights, strict=True):
        after = at + weight * value
        if np.linalg.norm(np.subtract(frame(_pair(after)), frame(_pair(at)))) > 1.5:
            drawing.arrow(frame(_pair(at)), frame(_pair(after)), "slate", 2.2, 7)
        at = after
    place = frame(_pair(y))
    drawing.circle(place, 6.5, "accent", "paper", 2)
    drawing.text((place[0] + 12, place[1] + 12), "y", "accent", 16, "start", italic=True, serif=True)
    return drawing.svg(says)


def reach_of(values: Any, labels: Sequence[str], paths: Mapping[str, Any], *, says: str) -> str:
    """Where outputs lie while the query turns once around, a closed path for each of its lengths."""
    values = np.asarray(values, float)
    drawing = Drawing(560, SIDE + 20)
    frame = _frame(values, 30, 500)
    _cloud(drawing, frame, values, labels, np.full(len(values), 0.1))
    for number, (tone, (name, path)) in enumerate(zip(("faint", "slate", "accent"), paths.items(), strict=False)):
        drawing.path([frame(point) for point in path], tone, 1.8, closed=True)
        _key(drawing, number, name, tone)
    return drawing.svg(says)


def _pair(point: Any) -> Point:
    return float(point[0]), float(point[1])


def _key(drawing: Drawing, number: int, name: str, tone: str) -> None:
    """What a line is, in the corner."""
    down = drawing.height - 26 - 20 * number
    drawing.line((20, down), (42, down), tone, 1.8)
    drawing.text((50, down), name, tone, 13, "start")
