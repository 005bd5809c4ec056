"""One product, and what follows from it: length, distance, cosine, angle.

    ⟨x, y⟩ = xᵀ G y        ‖x‖ = √⟨x, x⟩        d(x, y) = ‖x − y‖        cos θ = ⟨x, y⟩ / (‖x‖ ‖y‖)

G is the metric: a symmetric matrix that makes no length negative. Without one it is the identity, and ⟨x, y⟩ = x·y.
|⟨x, y⟩| ≤ ‖x‖ ‖y‖, with equality exactly for parallel vectors: so cos θ is one. The zero vector has cosine 0 with all.

A word in the singular compares vector with vector along the last axis and broadcasts; in the plural, every row of x
with every row of y.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from .._arrays import Library
from .._shapes import Array, Float
from ..algebra.errors import CallError
from ..algebra.functions import Sqrt
from .vectors import pair, symmetric, together

ENTRIES = 2**22  # of differences that are held at once where every pair is compared


def inner(x: Any, y: Any, metric: Any = None) -> Float[Array, ...]:
    """⟨x, y⟩ = xᵀ G y, along the last axis.

    >>> inner([1.0, 2.0], [3.0, 4.0])
    np.float64(11.0)
    >>> inner([1.0, 2.0], [3.0, 4.0], metric=[[2.0, 0.0], [0.0, 1.0]])
    np.float64(14.0)
    """
    xp, x, y = pair(x, y)
    return xp.sum(_through(xp, x, metric) * y, axis=-1)


def norm(x: Any, metric: Any = None) -> Float[Array, ...]:
    """‖x‖ = √⟨x, x⟩, along the last axis; its slope at 0 is 0.

    >>> norm([3.0, 4.0])
    np.float64(5.0)
    """
    xp, (x,) = together(x=x)
    scaled, scale = _scaled(xp, x)
    square = xp.sum(_through(xp, scaled, metric) * scaled, axis=-1)
    return Sqrt.array(xp, _not_negative(xp, square, metric)) * scale[..., 0]


def distance(x: Any, y: Any, metric: Any = None) -> Float[Array, ...]:
    """d(x, y) = ‖x − y‖, along the last axis.

    >>> distance([1.0, 1.0], [4.0, 5.0])
    np.float64(5.0)
    """
    _, x, y = pair(x, y)
    return norm(x - y, metric)


def cosine(x: Any, y: Any, metric: Any = None) -> Float[Array, ...]:
    """cos θ = ⟨x, y⟩ / (‖x‖ ‖y‖), in [−1, 1]; 0 where either is the zero vector.

    >>> cosine([[1.0, 0.0], [1.0, 1.0], [0.0, 0.0]], [2.0, 0.0]).round(3)
    array([1.   , 0.707, 0.   ])
    """
    xp, x, y = pair(x, y)
    product = xp.sum(_through(xp, unit(x, metric), metric) * unit(y, metric), axis=-1)
    return xp.clip(product, -1.0, 1.0)


def angle(x: Any, y: Any, metric: Any = None) -> Float[Array, ...]:
    """θ in radians, from 0 to π; a right angle where either is the zero vector.

        θ = 2 atan2(‖u − v‖, ‖u + v‖),  u = x / ‖x‖,  v = y / ‖y‖

    arccos loses half of the digits near 0 and π; this does not.

    >>> angle([1.0, 0.0], [[3.0, 0.0], [0.0, 2.0], [-1.0, 0.0]]) / math.pi
    array([0. , 0.5, 1. ])
    """
    xp, x, y = pair(x, y)
    u, v = unit(x, metric), unit(y, metric)
    apart, along = norm(u - v, metric), norm(u + v, metric)
    nowhere = (apart == 0) & (along == 0)  # neither has a direction
    return 2 * xp.atan2(*(xp.where(nowhere, xp.ones_like(side), side) for side in (apart, along)))


def unit(x: Any, metric: Any = None) -> Float[Array, "... d"]:
    """x / ‖x‖: the direction alone. The zero vector stays zero."""
    xp, (x,) = together(x=x)
    scaled, _ = _scaled(xp, x)
    length = norm(scaled, metric)[..., None]
    empty = length == 0
    return xp.where(empty, xp.zeros_like(scaled), scaled / xp.where(empty, xp.ones_like(length), length))


# -- every row of x with every row of y ------------------------------------------------------------------------


def gram(x: Any, y: Any = None, metric: Any = None) -> Float[Array, "... n m"]:
    """⟨x_n, y_m⟩ for every pair of rows: X G Yᵀ; y is x unless said otherwise.

    >>> gram([[1.0, 0.0], [1.0, 1.0]])
    array([[1., 1.],
           [1., 2.]])
    """
    xp, x, y = row_by_row(x, y)
    _, (x, y) = together(x=_through(xp, x, metric), y=y)
    return x @ xp.matrix_transpose(y)


def cosines(x: Any, y: Any = None, metric: Any = None) -> Float[Array, "... n m"]:
    """cos θ for every pair of rows; y is x unless said otherwise."""
    xp, x, y = row_by_row(x, y)
    return xp.clip(gram(unit(x, metric), unit(y, metric), metric), -1.0, 1.0)


def distances(x: Any, y: Any = None, metric: Any = None) -> Float[Array, "... n m"]:
    """‖x_n − y_m‖ for every pair of rows, from the differences themselves: exact also far from the origin.

    y is x unless said otherwise. For the nearest rows of many, `search` holds no such matrix.
    """
    xp, x, y = row_by_row(x, y)
    return in_pieces(xp, lambda part: distance(part[..., :, None, :], y[..., None, :, :], metric), x, y)


def in_pieces(xp: Library, compare: Callable[[Any], Any], x: Any, y: Any) -> Any:
    """`compare` of some rows of x at a time, so that few differences are held at once."""
    step = max(1, ENTRIES // max(1, math.prod(x.shape[:-2]) * y.shape[-2] * y.shape[-1]))
    starts = range(0, max(x.shape[-2], 1), step)
    return xp.concat([compare(x[..., first : first + step, :]) for first in starts], axis=-2)


# -- the metric ------------------------------------------------------------------------------------------------


def row_by_row(x: Any, y: Any) -> tuple[Library, Any, Any]:
    """x and y with one vector in each row; y is x where it is None."""
    xp, x, y = pair(x, x if y is None else y)
    if x.ndim < 2 or y.ndim < 2:
        raise CallError(f"x, y: one vector in each row; got {tuple(x.shape)} and {tuple(y.shape)}")
    return xp, x, y


def _matrix(metric: Any) -> Any:
    """G, of a metric that may be an object."""
    return symmetric(getattr(metric, "precision", metric), "metric")[1]


def _through(xp: Library, x: Any, metric: Any) -> Any:
    """x G."""
    if metric is None:
        return x
    _, (x, matrix) = together(x=x, metric=_matrix(metric))
    if matrix.shape[0] != x.shape[-1]:
        raise CallError(f"metric: {x.shape[-1]} × {x.shape[-1]} for vectors of that width; got {tuple(matrix.shape)}")
    return x @ matrix if x.ndim > 1 else xp.reshape(x[None, :] @ matrix, (-1,))


def _scaled(xp: Library, x: Any) -> tuple[Any, Any]:
    """x over its largest entry, and that entry: no square over- or underflows."""
    if not x.ndim or not x.shape[-1]:
        raise CallError(f"x: vectors along the last axis, of at least one number; got {tuple(x.shape)}")
    largest = xp.constant(xp.max(xp.abs(x), axis=-1, keepdims=True))
    scale = xp.where((largest > 0) & xp.isfinite(largest), largest, xp.ones_like(largest))
    return x / scale, scale


def _not_negative(xp: Library, square: Any, metric: Any) -> Any:
    """⟨x, x⟩ of vectors of largest entry 1; below 0 by rounding it is 0, and by more it is no squared length."""
    if metric is None or not math.prod(square.shape):
        return square
    matrix, lowest = _matrix(metric), xp.constant(xp.min(square))
    rounded = 1e2 * matrix.shape[0] * float(xp.finfo(matrix.dtype).eps) * xp.max(xp.abs(matrix))
    if xp.is_true(lowest < -rounded):
        raise CallError(
            f"metric: makes no squared length negative; got ⟨x, x⟩ = {float(lowest):.3g} for a vector whose largest "
            f"entry is 1; BilinearForm holds a matrix that is no metric"
        )
    return xp.where(square < 0, xp.zeros_like(square), square)
