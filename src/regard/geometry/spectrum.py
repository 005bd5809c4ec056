"""The spectral theorem: a symmetric matrix is a rotation, a stretching, and the rotation back.

    S = Q Λ Qᵀ        f(S) = Q f(Λ) Qᵀ        S^½ = Q Λ^½ Qᵀ

The columns v_j of Q are the axes. For a covariance, λ_j is the variance along v_j: Var(v_jᵀ X) = v_jᵀ Σ v_j = λ_j. It
is not the variance of coordinate j, which is Σ_jj. The axes of greatest variance are the principal components.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from .._arrays import Library, library
from .._shapes import Array, Float
from ..algebra.errors import CallError
from .moments import covariance
from .vectors import symmetric, together


@dataclass(frozen=True, eq=False)
class Axes:
    """S = Q Λ Qᵀ, λ_1 ≥ λ_2 ≥ …

    values:  λ, the eigenvalues
    vectors: Q, the axes as columns; the largest entry of each is positive
    """

    values: Array
    vectors: Float[Array, "d d"]

    @classmethod
    def of(cls, x: Any) -> Axes:
        """The axes of a cloud of vectors, one in each row: those of its covariance."""
        return axes(covariance(x))

    @property
    def shares(self) -> Array:
        """λ_j / Σ λ: the share of the variance that each axis carries; 0 where nothing varies."""
        xp = library(self.values)
        total = xp.sum(self.values)
        return self.values / xp.where(total == 0, xp.ones_like(total), total)

    @property
    def rank(self) -> int:
        """How many eigenvalues differ from 0 by more than rounding."""
        xp = library(self.values)
        sizes = xp.abs(self.values)
        return int(xp.sum(xp.astype(sizes > rounding(xp, sizes), xp.int32)))

    def coordinates(self, x: Any) -> Float[Array, "... d"]:
        """C_j = v_jᵀ x: how far x goes along each axis."""
        _, (x, vectors) = together(x=x, axes=self.vectors)
        if not x.ndim or x.shape[-1] != vectors.shape[0]:
            raise CallError(f"x: vectors of width {vectors.shape[0]}, as the axes; got {tuple(x.shape)}")
        return x @ vectors

    def matrix(self) -> Float[Array, "d d"]:
        """Q Λ Qᵀ: the matrix again."""
        return (self.vectors * self.values) @ library(self.vectors).matrix_transpose(self.vectors)


def axes(matrix: Any) -> Axes:
    """The axes of a symmetric matrix, the largest eigenvalue first.

    >>> found = axes([[2.0, 1.0], [1.0, 2.0]])
    >>> found.values, found.vectors.round(3)
    (array([3., 1.]), array([[ 0.707,  0.707],
           [ 0.707, -0.707]]))
    """
    xp, matrix = symmetric(matrix, "matrix")
    values, vectors = xp.linalg.eigh(matrix)
    vectors = xp.flip(vectors, axis=1)
    largest = xp.take_along_axis(vectors, xp.argmax(xp.abs(vectors), axis=0)[None, :], axis=0)
    return Axes(xp.flip(values, axis=0), vectors * xp.constant(xp.sign(largest)))


def square_root(matrix: Any) -> Float[Array, "d d"]:
    """S^½ = Q Λ^½ Qᵀ: symmetric, nowhere negative, and S^½ S^½ = S; also where S is rank-deficient.

    >>> square_root([[5.0, 4.0], [4.0, 5.0]]).round(3)
    array([[2., 1.],
           [1., 2.]])
    """
    xp, matrix = symmetric(matrix, "matrix")

    def root(values: Any) -> Any:
        return xp.sqrt(nowhere_negative(xp, values, "matrix"))

    def slope(a: Any, b: Any) -> Any:  # (√a − √b) / (a − b)
        total = root(a) + root(b)
        return xp.where(total == 0, xp.zeros_like(total), 1 / xp.where(total == 0, xp.ones_like(total), total))

    return spectral(xp, matrix, root, slope)


def spectral(xp: Library, matrix: Any, f: Callable[[Any], Any], slope: Callable[[Any, Any], Any]) -> Any:
    """f(S) = Q f(Λ) Qᵀ, with its derivative also where eigenvalues are equal.

        dF = Q (K ∘ (Qᵀ dS Q)) Qᵀ,  K_ij = (f(λ_i) − f(λ_j)) / (λ_i − λ_j)        Daleckii and Krein

    slope: K_ij of λ_i and λ_j, f' where they are equal. The axes themselves have no derivative there, f(S) has one.
    First derivatives alone: the second would need that of Q, and PyTorch refuses it.
    """
    fixed = xp.constant(matrix)
    values, vectors = xp.linalg.eigh(fixed)
    back = xp.matrix_transpose(vectors)
    moved = back @ (xp.once(matrix) - fixed) @ vectors  # 0, but for automatic differentiation
    inside = slope(values[:, None], values[None, :]) * moved
    return (vectors * f(values)) @ back + vectors @ inside @ back


def nowhere_negative(xp: Library, values: Any, name: str) -> Any:
    """Eigenvalues of a matrix that makes no squared length negative; below 0 by rounding they are 0."""
    lowest = xp.min(values)
    if xp.is_true(lowest < -rounding(xp, xp.abs(values))):
        raise CallError(f"{name}: no negative eigenvalue, as a covariance has none; got {float(lowest):.3g}")
    return xp.where(values < 0, xp.zeros_like(values), values)


def rounding(xp: Library, sizes: Any) -> Any:
    """Eigenvalues that are 0 come out as large as this; a small matrix, too, was summed over many rows."""
    return xp.max(sizes) * max(32, math.prod(sizes.shape)) * float(xp.finfo(sizes.dtype).eps)
