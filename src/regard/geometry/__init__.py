"""Similarity before attention: the road from "how similar are two vectors" to queries and keys.

    products     ⟨x, y⟩, and with it length, distance, cosine, angle, for any metric
    moments      random vectors: the same product is covariance, the same cosine correlation
    spectrum     Σ = Q Λ Qᵀ: the axes of a cloud, the variance along each, the square root of a matrix
    shrinkage    a covariance that can be inverted, from few rows
    family       whitening: every A with A Σ Aᵀ = I;  whitened: as a scikit-learn estimator
    mahalanobis  Euclidean distance after whitening
    bilinear     xᵀ M y with M = W_Qᵀ W_K: the matrix need not be symmetric any more
    nearest      search: the exact nearest of many, in blocks

Read in this order. Everything is of NumPy, PyTorch (with gradients) or JAX, and nested lists will do.
"""

from __future__ import annotations

from typing import Any

from .._names import brought, by_name

_NAMES = by_name(
    {
        "products": "angle cosine cosines distance distances gram inner norm unit",
        "moments": "correlation covariance expectation",
        "spectrum": "Axes axes square_root",
        "shrinkage": "ledoit_wolf shrunk",
        "family": "whitening",
        "whitened": "Whitening",
        "mahalanobis": "Mahalanobis",
        "bilinear": "BilinearForm Contribution Signature",
        "nearest": "Found search",
    }
)

__all__ = sorted(_NAMES)  # noqa: PLE0605 - one list, in one place


def __getattr__(name: str) -> Any:
    return brought(__name__, _NAMES, name)


def __dir__() -> list[str]:
    return list(__all__)
