"""Random vectors: the same product on another space.

    ⟨X, Y⟩ = E[X Y]        cov(X, Y) = ⟨X − μ, Y − ν⟩        corr(X, Y) = cos of the angle between X − μ and Y − ν

A matrix holds one drawing of the random vector in each row, so a random variable is a column, and E is the mean over
rows. Correlation is a cosine: the code says so.
"""

from __future__ import annotations

from typing import Any

from .._arrays import Library
from .._shapes import Array, Float
from ..algebra.errors import CallError
from .products import cosines, gram
from .vectors import cloud, together


def expectation(x: Any, y: Any = None) -> Float[Array, "d e"]:
    """E[X_i Y_j]: the inner product of every column of x with every column of y; y is x unless said otherwise.

    >>> expectation([[1.0, 0.0], [3.0, 2.0]])
    array([[5., 3.],
           [3., 2.]])
    """
    xp, x, y = _drawings(x, y, least=1)
    return gram(xp.matrix_transpose(x), xp.matrix_transpose(y)) / x.shape[0]


def covariance(x: Any, y: Any = None, *, ddof: int = 1) -> Float[Array, "d e"]:
    """Σ_ij = E[(X_i − μ_i)(Y_j − ν_j)], with N − ddof in place of N below the sum.

    >>> covariance([[1.0, 0.0], [3.0, 2.0]])
    array([[2., 2.],
           [2., 2.]])
    """
    xp, x, y = _drawings(x, y, least=ddof + 1)
    count = x.shape[0]
    return expectation(centred(xp, x), centred(xp, y)) * (count / (count - ddof))


def correlation(x: Any, y: Any = None) -> Float[Array, "d e"]:
    """ρ_ij = cos of the angle between X_i − μ_i and Y_j − ν_j; 0 for a column that does not vary.

    >>> correlation([[1.0, 0.0], [3.0, 2.0], [2.0, 4.0]]).round(3)
    array([[1. , 0.5],
           [0.5, 1. ]])
    """
    xp, x, y = _drawings(x, y, least=2)
    return cosines(xp.matrix_transpose(centred(xp, x)), xp.matrix_transpose(centred(xp, y)))


def centred(xp: Library, x: Any) -> Any:
    """X − μ, seen from the first row: so a column that does not vary is exactly 0."""
    x = x - x[:1, :]
    return x - xp.mean(x, axis=0)


def _drawings(x: Any, y: Any, least: int) -> tuple[Library, Any, Any]:
    xp, x = cloud(x, "x", least=least)
    y = x if y is None else cloud(y, "y", least=least)[1]
    _, (x, y) = together(x=x, y=y)
    if x.shape[0] != y.shape[0]:
        raise CallError(f"x, y: as many rows, drawn together; got {x.shape[0]} and {y.shape[0]}")
    return xp, x, y
