"""The dot product, squared distance and cosine of one query and one key: each forward beside its derivative."""

from __future__ import annotations

import math
from typing import Any

Vector = list[float]
Matrix = list[list[float]]


class Dot:
    """q·k, or qᵀ M k."""

    @staticmethod
    def forward(q: Vector, k: Vector, metric: Matrix | None) -> float:
        return inner(q, k if metric is None else _times(metric, k))

    @staticmethod
    def backward(q: Vector, k: Vector, metric: Matrix | None) -> tuple[Vector, Vector, Matrix]:
        outer = [[x * y for y in k] for x in q]
        return (k, q, outer) if metric is None else (_times(metric, k), _times(_transposed(metric), q), outer)


class SqDist:
    """‖q − k‖², or (q−k)ᵀ P (q−k)."""

    @staticmethod
    def forward(q: Vector, k: Vector, metric: Matrix | None) -> float:
        difference = [x - y for x, y in zip(q, k, strict=True)]
        return Dot.forward(difference, difference, metric)

    @staticmethod
    def backward(q: Vector, k: Vector, metric: Matrix | None) -> tuple[Vector, Vector, Matrix]:
        difference = [x - y for x, y in zip(q, k, strict=True)]
        left, right, outer = Dot.backward(difference, difference, metric)
        dq = [x + y for x, y in zip(left, right, strict=True)]
        return dq, [-x for x in dq], outer


class Cosine:
    """q·k / (‖q‖ ‖k‖), and 0 where either is the zero vector."""

    @staticmethod
    def forward(q: Vector, k: Vector, metric: Matrix | None) -> float:
        value = inner(_unit(q)[0], _unit(k)[0])
        return min(max(value, -1.0), 1.0) if value == value else value

    @staticmethod
    def backward(q: Vector, k: Vector, metric: Matrix | None) -> tuple[Vector, Vector, Matrix]:
        return _pulled(q, k), _pulled(k, q), []


def _pulled(x: Vector, other: Vector) -> Vector:
    """∂cosine/∂x = (ô − (x̂·ô) x̂) / ‖x‖, and 0 where either vector is zero."""
    (unit, length), (towards, other_length) = _unit(x), _unit(other)
    if length == 0 or other_length == 0:
        return [0.0] * len(x)
    alike = inner(unit, towards)
    return [(to - alike * own) / length for to, own in zip(towards, unit, strict=True)]


def _unit(x: Vector) -> tuple[Vector, float]:
    """The vector of length 1, and the length; the zero vector stays zero."""
    largest = max(abs(value) for value in x)
    scale = largest if 0 < largest < math.inf else 1.0  # so that no square over- or underflows
    scaled = [value / scale for value in x]
    norm = math.sqrt(inner(scaled, scaled))
    return [value / norm for value in scaled] if norm != 0 else scaled, norm * scale


PAIRS: dict[str, Any] = {"dot": Dot, "sqdist": SqDist, "cosine": Cosine}


def inner(x: Vector, y: Vector) -> float:
    return sum((a * b for a, b in zip(x, y, strict=True)), 0.0)


def _times(matrix: Matrix, x: Vector) -> Vector:
    return [inner(row, x) for row in matrix]


def _transposed(matrix: Matrix) -> Matrix:
    return [list(column) for column in zip(*matrix, strict=True)]
