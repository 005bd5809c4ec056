"""The whitening family: every A with A Σ Aᵀ = I.

Σ = Q Λ Qᵀ        A = R Λ^(−½) Qᵀ, for any orthogonal R        Aᵀ A = Σ⁻¹ always, A⁻¹ = Σ Aᵀ always

"pca"        R = I: along the axes, each divided by its standard deviation
"zca"        R = Q: turned back, A = Σ^(−½); symmetric, and nearest to x itself
"cholesky"   A = C⁻¹ with Σ = C Cᵀ, C lower triangular: each coordinate cleared of those before it
"pca-cor"    as "pca", on the correlations: first each coordinate is divided by its own standard deviation
"zca-cor"    as "zca", on the correlations; nearest to x with unit variances
R            any orthogonal matrix
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .._arrays import Library, is_array
from .._shapes import Array, Float
from ..algebra.errors import CallError, KindError
from .shrinkage import refuse_singular
from .spectrum import axes, spectral
from .vectors import symmetric, together


def whitening(covariance: Any, rotation: Any = "zca") -> Float[Array, "d d"]:
    """A with A Σ Aᵀ = I: y = A x has covariance I where x has covariance Σ.

    rotation: "pca", "zca", "cholesky", "pca-cor", "zca-cor", or an orthogonal matrix R

    >>> whitening([[4.0, 0.0], [0.0, 9.0]]).round(3)
    array([[0.5  , 0.   ],
           [0.   , 0.333]])
    """
    xp, covariance = symmetric(covariance, "covariance")
    refuse_singular(xp, covariance)
    if isinstance(rotation, str):
        return _named(rotation)(xp, covariance)
    return _rotated(xp, covariance, rotation)


def _pca(xp: Library, covariance: Any) -> Any:
    found = axes(covariance)
    return xp.matrix_transpose(found.vectors) / xp.sqrt(found.values)[:, None]


def _zca(xp: Library, covariance: Any) -> Any:
    def slope(a: Any, b: Any) -> Any:  # (1/√a − 1/√b) / (a − b)
        return -1 / (xp.sqrt(a * b) * (xp.sqrt(a) + xp.sqrt(b)))

    return spectral(xp, covariance, lambda values: 1 / xp.sqrt(values), slope)


def _cholesky(xp: Library, covariance: Any) -> Any:
    identity = xp.eye(covariance.shape[0], dtype=covariance.dtype, device=xp.device(covariance))
    return xp.linalg.solve(xp.linalg.cholesky(covariance), identity)


def _on_correlations(whiten: Callable[[Library, Any], Any]) -> Callable[[Library, Any], Any]:
    def whitened(xp: Library, covariance: Any) -> Any:
        deviations = xp.sqrt(xp.linalg.diagonal(covariance))
        return whiten(xp, covariance / deviations[:, None] / deviations) / deviations

    return whitened


ROTATIONS: dict[str, Callable[[Library, Any], Any]] = {
    "pca": _pca,
    "zca": _zca,
    "cholesky": _cholesky,
    "pca-cor": _on_correlations(_pca),
    "zca-cor": _on_correlations(_zca),
}


def _named(rotation: str) -> Callable[[Library, Any], Any]:
    if rotation not in ROTATIONS:
        raise CallError(f"rotation: {', '.join(ROTATIONS)}, or an orthogonal matrix; got {rotation!r}")
    return ROTATIONS[rotation]


def _rotated(xp: Library, covariance: Any, rotation: Any) -> Any:
    """R Λ^(−½) Qᵀ, if R is orthogonal."""
    if not is_array(rotation) and not isinstance(rotation, list | tuple):
        named = ", ".join(ROTATIONS)
        raise KindError(f"rotation: {named}, or an orthogonal matrix; got {type(rotation).__name__}")
    _, (covariance, rotation) = together(covariance=covariance, rotation=rotation)
    if rotation.shape != covariance.shape:
        raise CallError(f"rotation: {tuple(covariance.shape)}, as the covariance; got {tuple(rotation.shape)}")
    identity = xp.eye(rotation.shape[0], dtype=rotation.dtype, device=xp.device(rotation))
    apart = xp.constant(xp.max(xp.abs(rotation @ xp.matrix_transpose(rotation) - identity)))
    if xp.is_true(~(apart < 1e3 * rotation.shape[0] * xp.finfo(rotation.dtype).eps)):
        raise CallError(f"rotation: an orthogonal matrix, R Rᵀ = I; got R Rᵀ off by {float(apart):.3g}")
    return rotation @ _pca(xp, covariance)
