"""Whitening as a scikit-learn estimator: learn μ and Σ, then y = A (x − μ) has covariance I."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from .._arrays import is_array
from ..algebra.errors import CallError, MissingExtra
from .family import whitening
from .shrinkage import shrunk
from .vectors import cloud, together

try:
    from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
    from sklearn.utils.validation import check_is_fitted, validate_data
except ImportError:
    raise MissingExtra("scikit-learn", "geometry") from None


class Whitening(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """y = A (x − μ) with A Σ Aᵀ = I: unit variance along every direction, nothing correlated.

    rotation:  which A of the family: "pca", "zca", "cholesky", "pca-cor", "zca-cor", or an orthogonal matrix R
    shrinkage: α in (1 − α) Σ + α m I, m the mean variance. "auto": 0 where Σ has full rank, Ledoit and Wolf's where it
               has not; "ledoit-wolf": always theirs; a number from 0 to 1

    A scikit-learn estimator for what scikit-learn takes; arrays of PyTorch and JAX stay what they are, with gradients.

    mean_, covariance_   μ, and Σ after shrinkage
    whitening_           A
    unwhitening_         A⁻¹ = Σ Aᵀ
    shrinkage_           the α that was used
    """

    mean_: Any
    covariance_: Any
    whitening_: Any
    unwhitening_: Any
    shrinkage_: float
    n_features_in_: int

    def __init__(self, rotation: Any = "zca", *, shrinkage: float | str = "auto") -> None:
        self.rotation = rotation
        self.shrinkage = shrinkage

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn μ, Σ and A from the rows of X."""
        xp, X = cloud(self._checked(X, reset=True), "X", least=2)
        self.n_features_in_ = int(X.shape[1])
        self.mean_ = xp.mean(X, axis=0)
        self.covariance_, self.shrinkage_ = shrunk(X, self.shrinkage)
        self.whitening_ = whitening(self.covariance_, self.rotation)
        self.unwhitening_ = self.covariance_ @ xp.matrix_transpose(self.whitening_)
        return self

    def transform(self, X: Any) -> Any:
        """A (x − μ) for every row."""
        return self._mapped(X, lambda X, mean, A, back: (X - mean) @ A)

    def inverse_transform(self, X: Any) -> Any:
        """μ + A⁻¹ y for every row."""
        return self._mapped(X, lambda X, mean, A, back: X @ back + mean)

    def _mapped(self, X: Any, apply: Any) -> Any:
        check_is_fitted(self)
        X = self._checked(X, reset=False)
        if X.ndim != 2 or X.shape[1] != self.n_features_in_:
            raise CallError(f"X: (rows, {self.n_features_in_}), as it was fitted; got {tuple(X.shape)}")
        fitted = {"mean": self.mean_, "whitening": self.whitening_, "unwhitening": self.unwhitening_}
        xp, (X, mean, A, back) = together(X=X, **{name: _like(X, array) for name, array in fitted.items()})
        return apply(X, mean, xp.matrix_transpose(A), xp.matrix_transpose(back))

    def _checked(self, X: Any, *, reset: bool) -> Any:
        """What scikit-learn makes of its own kinds of input; arrays of other libraries as they are."""
        if not is_array(X) or isinstance(X, np.ndarray):
            return validate_data(self, X, reset=reset, dtype=(np.float64, np.float32), ensure_min_samples=1 + reset)
        return X

    @property
    def _n_features_out(self) -> int:
        return self.n_features_in_

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        tags.array_api_support = True
        return tags


def _like(X: Any, array: Any) -> Any:
    """What was fitted, in the dtype of X where both are NumPy's: as scikit-learn's transformers answer."""
    return array.astype(X.dtype) if isinstance(X, np.ndarray) and isinstance(array, np.ndarray) else array
