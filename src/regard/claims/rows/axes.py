"""Claims about Σ = Q Λ Qᵀ: axes of a cloud, the square root, whitening, and the distance that comes of it."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import numpy as np

from ... import geometry
from ...algebra.errors import CallError
from ...inputs.images import patches, unit
from ..measure import gap, grey, normal, relative_gap, rotation
from ..record import Measured, Measurements, Verdict
from ..registry import claim


def _cloud() -> np.ndarray:
    """The 4 240 patches of 8 × 8 of a photograph in grey, (4240, 64), from 0 to 1."""
    return np.asarray(patches(unit(grey("china")).astype(float), 8, rest="crop").vectors)


@claim(
    "G8",
    "A",
    "Σ = Q Λ Qᵀ, and the variance along axis j is λ_j; it is not the variance of coordinate j.",
    Verdict.HOLDS,
    needs=["sklearn", "PIL"],
)
def variance_along_axes() -> Measurements:
    """Var(v_jᵀ X) = v_jᵀ Σ v_j = λ_j ≠ Σ_jj, while Σ_j λ_j = Σ_j Σ_jj."""
    x = _cloud()
    covariance = np.cov(x.T)
    axes = geometry.axes(covariance)
    along, coordinates = axes.coordinates(x).var(axis=0, ddof=1), x.var(axis=0, ddof=1)
    told = f"λ_1 = {axes.values[0]:.3g}, Σ_jj = {coordinates.min():.3g} to {coordinates.max():.3g}"
    yield Measured(np.abs(along / axes.values - 1).max(), "largest |Var(v_jᵀ X) / λ_j − 1| of 64 axes", at_most=1e-10)
    yield Measured(axes.values[0] / coordinates.max(), "λ_1 over the largest Σ_jj", at_least=10, detail=told)
    yield Measured(relative_gap(covariance, axes.matrix()), "largest error of Q Λ Qᵀ", at_most=1e-13)
    yield Measured(gap(axes.vectors.T @ axes.vectors, np.eye(64)), "largest error of Qᵀ Q = I", at_most=1e-13)
    correlations = geometry.correlation(axes.coordinates(x)) - np.eye(64)
    yield Measured(np.abs(correlations).max(), "largest correlation between two axes", at_most=1e-10)


@claim(
    "G9",
    "A",
    "Principal components are those axes: the directions of greatest variance, each with its eigenvalue.",
    Verdict.HOLDS,
    needs=["sklearn", "PIL"],
)
def principal_components() -> Measurements:
    """v_1 = argmax of Var(vᵀ X) over ‖v‖ = 1; v_j the same among what is orthogonal to v_1, …, v_(j−1)."""
    from sklearn.decomposition import PCA

    x = _cloud()
    axes, theirs = geometry.Axes.of(x), PCA().fit(x)
    turned = 1 - np.abs(np.sum(theirs.components_.T * axes.vectors, axis=0))
    yield Measured(turned.max(), "largest 1 − |cos| to scikit-learn's components, of 64", at_most=1e-12)
    variances = np.abs(theirs.explained_variance_ / axes.values - 1).max()
    yield Measured(variances, "largest relative difference of the variances", at_most=1e-10)
    directions = np.asarray(geometry.unit(normal(3, 1009, 64)))
    for first in (0, 1):
        rest = axes.vectors[:, first:]
        within = np.asarray(geometry.unit(directions @ rest @ rest.T))  # orthogonal to the axes before
        share = (x @ within.T).var(axis=0, ddof=1).max() / axes.values[first]
        yield Measured(share, f"largest variance along 1009 other directions, over λ_{first + 1}", at_most=1)
    yield Measured(axes.shares[0], "share of the variance along the first", at_least=0.5)


@claim("G13", "A", "A covariance has a square root, Q Λ^½ Qᵀ.", Verdict.HOLDS, needs=["scipy"])
def root_of_a_covariance() -> Measurements:
    """Σ^½ = Q Λ^½ Qᵀ: symmetric, nowhere negative, Σ^½ Σ^½ = Σ; no λ_j of a covariance is negative."""
    from scipy.linalg import sqrtm

    covariance = np.cov(normal(2, 101, 7).T)
    root = np.asarray(geometry.square_root(covariance))
    yield Measured(gap(root, sqrtm(covariance)), "largest difference from SciPy's sqrtm", at_most=1e-13)
    flat = np.cov(normal(3, 5, 7).T)  # five rows: rank 4 of 7
    thin = np.asarray(geometry.square_root(flat))
    what = "largest error of Σ^½ Σ^½ = Σ, of rank 7 and of rank 4"
    yield Measured(max(relative_gap(covariance, root @ root), relative_gap(flat, thin @ thin)), what, at_most=1e-13)
    lowest = min(np.linalg.eigvalsh(part).min() for part in (root, thin))
    yield Measured(lowest, "least eigenvalue of Σ^½", at_least=-1e-12)
    yield Measured(_is_refused(lambda: geometry.square_root(-covariance)), "refused: a root of −Σ", at_least=1)


@claim(
    "G10",
    "A",
    "A = R Λ^(−½) Qᵀ whitens for every orthogonal R, and Aᵀ A = Σ⁻¹ whichever it is.",
    Verdict.CONDITION,
    needs=["sklearn", "PIL"],
)
def whitening_family() -> Measurements:
    """A Σ Aᵀ = R Rᵀ = I and Aᵀ A = Q Λ^(−½) Rᵀ R Λ^(−½) Qᵀ = Σ⁻¹, where no λ_j is 0: Σ has full rank.

    R = I is whitening along the axes, "pca"; R = Q turns back, "zca": Σ^(−½). N patches of an image span at most N − 1
    directions, so those of one image of 224 × 224 cannot be whitened until their covariance is shrunk.
    """
    covariance = np.cov(_cloud().T)
    Q, inverse = geometry.axes(covariance).vectors, np.linalg.inv(covariance)
    family = [np.asarray(geometry.whitening(covariance, R)) for R in (rotation(seed, 64) for seed in range(17))]
    white = max(gap(A @ covariance @ A.T, np.eye(64)) for A in family)
    yield Measured(white, "largest error of A Σ Aᵀ = I, of 17 random R", at_most=1e-11)
    squares = max(relative_gap(inverse, A.T @ A) for A in family)
    yield Measured(squares, "largest error of Aᵀ A = Σ⁻¹", at_most=1e-11)
    apart = min(relative_gap(one, other) for one, other in pairwise(family))
    yield Measured(apart, "least difference between two A", at_least=0.1)
    for name, R in (("pca", np.eye(64)), ("zca", Q)):
        A, named = geometry.whitening(covariance, R), geometry.whitening(covariance, name)
        yield Measured(relative_gap(A, named), f"difference of “{name}” from its R", at_most=1e-11)
    stretched = 2 * rotation(3, 64)
    A = stretched @ geometry.whitening(covariance, "pca")
    yield Measured(gap(A @ covariance @ A.T, np.eye(64)), "error of A Σ Aᵀ = I where R Rᵀ = 4 I", at_least=1)
    yield from _without_full_rank()


def _without_full_rank() -> Measurements:
    """The 196 patches of 16 × 16 of an image of 224 × 224, in grey: 256 numbers each."""
    x = np.asarray(patches(unit(grey("china")[100:324, 100:324]).astype(float), 16).vectors)
    found, eye = np.cov(x.T), np.eye(256)
    yield Measured(geometry.axes(found).rank, "rank of Σ, of 256, from the 196 patches of an image", at_most=195)
    yield Measured(_is_refused(lambda: geometry.whitening(found)), "refused: to whiten it", at_least=1)
    shrunk, alpha = geometry.shrunk(x)
    A = np.asarray(geometry.whitening(shrunk))
    told = f"(1 − α) Σ + α m I, α = {alpha:.3f} after Ledoit and Wolf"
    yield Measured(gap(A @ shrunk @ A.T, eye), "error of A Σ' Aᵀ = I for Σ' shrunk", at_most=1e-11, detail=told)
    yield Measured(gap(A @ found @ A.T, eye), "and of A Σ Aᵀ = I: the patches themselves are not white", at_least=0.1)


def _is_refused(ask: Callable[[], object]) -> bool:
    try:
        ask()
    except CallError:
        return True
    return False


@claim(
    "G11",
    "A",
    "Mahalanobis distance is Euclidean distance after whitening, and Euclidean distance itself where Σ = I.",
    Verdict.HOLDS,
    needs=["scipy"],
)
def euclidean_after_whitening() -> Measurements:
    """‖A x − A y‖² = (x − y)ᵀ Aᵀ A (x − y) = (x − y)ᵀ Σ⁻¹ (x − y), for every A with A Σ Aᵀ = I."""
    from scipy.spatial.distance import cdist

    cloud = normal(2, 101, 7) @ (normal(3, 7, 7) + 5 * np.eye(7)) * (1, 2, 3, 5, 7, 11, 13)
    x, y, covariance = cloud[:11], cloud[11:24], np.cov(cloud.T)
    theirs = cdist(x, y, "mahalanobis", VI=np.linalg.inv(covariance))
    ours = geometry.Mahalanobis(covariance).distances(x, y)
    yield Measured(relative_gap(theirs, ours), "largest difference from SciPy's", at_most=1e-13)
    rotations = ["pca", "zca", "cholesky", "pca-cor", "zca-cor", *(rotation(seed, 7) for seed in range(5))]
    family = [np.asarray(geometry.whitening(covariance, R)) for R in rotations]
    whitened = max(relative_gap(theirs, cdist(x @ A.T, y @ A.T)) for A in family)
    yield Measured(whitened, "of Euclid's after whitening, by ten members of the family", at_most=1e-13)
    plain = geometry.Mahalanobis(np.eye(7)).distances(x, y)
    yield Measured(gap(cdist(x, y), plain), "of Euclid's from that of Σ = I", at_most=1e-12)
    yield Measured(relative_gap(cdist(x, y), theirs), "of Euclid's from Mahalanobis' before whitening", at_least=0.1)
