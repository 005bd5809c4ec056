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

from importlib import import_module
from typing import Any

_HOME = {
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
_NAMES = {name: module for module, names in _HOME.items() for name in names.split()}

__all__ = sorted(_NAMES)  # noqa: PLE0605 - one list, in one place


def __getattr__(name: str) -> Any:
    if name in _NAMES:
        value = getattr(import_module(f".{_NAMES[name]}", __name__), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module 'regard.geometry' has no attribute {name!r}")


def __dir__() -> list[str]:
    return list(__all__)
