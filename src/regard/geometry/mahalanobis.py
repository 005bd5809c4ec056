"""Mahalanobis distance: Euclidean distance, measured where its assumptions hold.

    d(x, y)² = (x − y)ᵀ Σ⁻¹ (x − y) = ‖A x − A y‖²        A Σ Aᵀ = I, for every A of the whitening family

Σ = I gives Euclidean distance back. As a score: −d²/2, so that softmax weighs by a Gaussian around the query.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from .._arrays import library
from .._shapes import Array, Float
from ..algebra.errors import CallError
from ..algebra.expressions import Expression
from ..algebra.symbols import sqdist, table
from . import products
from .family import whitening
from .shrinkage import shrunk
from .vectors import pair, symmetric, together


@dataclass(frozen=True, eq=False)
class Mahalanobis:
    """The metric of a covariance Σ: directions in which things vary a lot count for less.

    Stands wherever geometry takes a metric, as in distance(x, y, metric=…), and turns into a formula:
    Attention(score=metric.score())(q, k, v, **metric.tables()).
    """

    covariance: Float[Array, "d d"]

    def __post_init__(self) -> None:
        object.__setattr__(self, "covariance", symmetric(self.covariance, "covariance")[1])
        _ = self.whitening  # refuses a singular covariance now, not at the first distance

    @classmethod
    def fit(cls, x: Any, *, shrinkage: float | str = "auto") -> Mahalanobis:
        """The metric of a cloud of vectors, one in each row; shrunk after Ledoit and Wolf where it has no full rank.

        shrinkage: "auto", "ledoit-wolf" or a number from 0 to 1, as in `shrunk`
        """
        return cls(shrunk(x, shrinkage)[0])

    @classmethod
    def euclidean(cls, width: int, like: Any) -> Mahalanobis:
        """Σ = I, in the library and dtype of `like`."""
        xp, (like,) = together(like=like)
        return cls(xp.eye(width, dtype=like.dtype, device=xp.device(like)))

    @cached_property
    def whitening(self) -> Float[Array, "d d"]:
        """A = Σ^(−½), symmetric."""
        return whitening(self.covariance)

    @cached_property
    def precision(self) -> Float[Array, "d d"]:
        """Σ⁻¹ = Aᵀ A."""
        return library(self.whitening).matrix_transpose(self.whitening) @ self.whitening

    def whiten(self, x: Any) -> Float[Array, "... d"]:
        """A x: where this metric is plain Euclidean distance."""
        xp, (x, matrix) = together(x=x, covariance=self.whitening)
        if not x.ndim or x.shape[-1] != matrix.shape[0]:
            raise CallError(f"x: vectors of width {matrix.shape[0]}, as the covariance; got {tuple(x.shape)}")
        return x @ xp.matrix_transpose(matrix)

    def distance(self, x: Any, y: Any) -> Float[Array, ...]:
        """‖A (x − y)‖, along the last axis."""
        _, x, y = pair(x, y)
        return products.norm(self.whiten(x - y))

    def distances(self, x: Any, y: Any = None) -> Float[Array, "... n m"]:
        """The distance of every row of x to every row of y; y is x unless said otherwise."""
        xp, x, y = products.row_by_row(x, y)
        origin = xp.sum(y, axis=-2, keepdims=True) / max(1, y.shape[-2])  # near both: whitened, they keep their digits
        return products.distances(self.whiten(x - origin), self.whiten(y - origin))

    def score(self, name: str = "P") -> Expression:
        """−d²/2 as a score of the algebra, with the precision as table `name`.

        >>> Mahalanobis([[1.0, 0.0], [0.0, 4.0]]).score()
        -sqdist(table("P")) / 2
        """
        return -sqdist(table(name)) / 2

    def tables(self, name: str = "P") -> dict[str, Any]:
        """What a call of that formula brings: the precision."""
        return {name: self.precision}
