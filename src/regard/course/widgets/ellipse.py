"""A covariance to pull at: which neighbour is nearest depends on what counts as far.

    Σ = R diag(s²) Rᵀ        d(x, y)² = (x − y)ᵀ Σ⁻¹ (x − y)

The ellipse has the axes s along the columns of R: the places at distance 1. Whitened, it is a circle.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...algebra.errors import CallError
from ...geometry.mahalanobis import Mahalanobis
from ...geometry.moments import covariance as covariance_of
from ...geometry.products import distances
from ...geometry.spectrum import axes
from . import checks
from .base import Hand, plain, real

ROOM = 1.2
NARROW = 0.01  # of the reach: the shortest axis that a hand can make


class Ellipse(Hand):
    """Drag the axes of an ellipse, or what it stands around: the nearest neighbour changes with them.

    points:     the cloud, (n, 2), three or more
    labels:     a text for each point
    query:      where the ellipse stands at first; beside the cloud, off its narrow side, unless said otherwise
    covariance: 2 × 2; that of the cloud unless said otherwise

    at {query: [x, y], angle: of the first axis, spread: [s₁, s₂]}
    found {covariance, euclidean: {distances: [n], nearest: j}, mahalanobis: {…}, whitened: [n][2]: A (x_j − query)}
    """

    def __init__(self, points: Any, *, labels: Any = None, query: Any = None, covariance: Any = None) -> None:
        x = checks.vectors(points, "points", width=2, least=3)
        self._points, mean = x, np.mean(x, axis=0)
        self._reach = ROOM * float(np.max(np.abs(x - mean))) or 1.0
        own = _placed(covariance_of(x), self._reach)
        begin = own if covariance is None else _placed(checks.square(covariance, "covariance"), self._reach)
        self._middle = plain(mean)
        at = {"query": _beside(mean, own) if query is None else checks.point(query, "query"), **begin}
        given = {"points": plain(x), "labels": checks.names(labels, "labels", len(x)), "mean": self._middle}
        super().__init__({**given, "own": own, "reach": self._reach, "named": labels is not None}, at)

    def allowed(self, at: dict[str, Any]) -> dict[str, Any] | None:
        """The place within what is seen, the axes neither too short to hold nor longer than the picture."""
        query, angle, spread = _about(at.get("query"), self._middle, self._reach), at.get("angle"), at.get("spread")
        turned = real(angle, -math.tau, math.tau)
        if query is None or turned is None or not isinstance(spread, list | tuple) or len(spread) != 2:
            return None
        lengths = [real(one, NARROW * self._reach, self._reach) for one in spread]
        return None if None in lengths else {"query": query, "angle": turned, "spread": lengths}

    def find(self, at: dict[str, Any]) -> dict[str, Any]:
        """Distances of the place to every point, by both measures, and the cloud as the second sees it."""
        query, metric = np.asarray([at["query"]]), Mahalanobis(_covariance(at["angle"], at["spread"]))
        by = {
            "euclidean": distances(query, self._points)[0],
            "mahalanobis": metric.distances(query, self._points)[0],
        }
        return {
            "covariance": plain(metric.covariance),
            **{name: {"distances": plain(far), "nearest": int(np.argmin(far))} for name, far in by.items()},
            "whitened": plain(metric.whiten(self._points - query)),
        }


def _covariance(angle: float, spread: Any) -> Any:
    """R diag(s²) Rᵀ."""
    rotation = np.asarray([[math.cos(angle), -math.sin(angle)], [math.sin(angle), math.cos(angle)]])
    return (rotation * np.square(np.asarray(spread))) @ rotation.T


def _placed(matrix: Any, reach: float) -> dict[str, Any]:
    """The axes of a covariance as the hand holds them: an angle and two lengths."""
    found = axes(matrix)
    if float(found.values[-1]) < 0:
        raise CallError(
            f"covariance: no negative eigenvalue, as a covariance has none; got {float(found.values[-1]):.3g}"
        )
    lengths = np.clip(np.sqrt(np.maximum(found.values, 0)), NARROW * reach, reach)
    return {"angle": math.atan2(found.vectors[1, 0], found.vectors[0, 0]), "spread": plain(lengths)}


def _beside(mean: Any, own: dict[str, Any]) -> list[float]:
    """Two of its short axes off the middle of a cloud: where the two measures part."""
    turned, short = own["angle"] + math.pi / 2, 2 * own["spread"][1]
    return [float(mean[0] + short * math.cos(turned)), float(mean[1] + short * math.sin(turned))]


def _about(value: Any, middle: list[float], reach: float) -> list[float] | None:
    """A place within ± reach of the middle."""
    if not isinstance(value, list | tuple) or len(value) != 2:
        return None
    found = [real(one, by - reach, by + reach) for one, by in zip(value, middle, strict=True)]
    return None if None in found else found  # type: ignore[return-value]
