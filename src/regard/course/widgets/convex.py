"""The hull of points in the plane: the smallest convex shape that holds them, where every weighted mean lies."""

from __future__ import annotations

from typing import Any

import numpy as np


def hull(points: Any) -> Any:
    """The corners of the smallest convex shape around points of the plane, in order: Andrew's two chains.

    >>> hull(np.asarray([[0.0, 0.0], [2.0, 0.0], [1.0, 0.5], [1.0, 2.0]])).tolist()
    [[0.0, 0.0], [2.0, 0.0], [1.0, 2.0]]
    """
    ordered = sorted({(float(x), float(y)) for x, y in points})
    if len(ordered) < 3:
        return np.asarray(ordered)
    below, above = _chain(ordered), _chain(ordered[::-1])
    return np.asarray(below[:-1] + above[:-1])


def _chain(points: list[tuple[float, float]]) -> list[tuple[float, float]]:
    kept: list[tuple[float, float]] = []
    for x, y in points:
        while len(kept) > 1 and _turn(kept[-2], kept[-1], (x, y)) <= 0:
            kept.pop()
        kept.append((x, y))
    return kept


def _turn(a: tuple[float, float], b: tuple[float, float], c: tuple[float, float]) -> float:
    """Twice the area of the triangle: above 0 for a turn to the left."""
    return (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0])
