"""The axes of a symmetric matrix and of a cloud, and functions of a matrix with their derivative."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.linalg import sqrtm
from sklearn.decomposition import PCA

import regard as rg
from clouds import EVERY_KIND, ROWS, WIDTH, Kind, cloud, leaf, metric, normal, numbers
from regard.geometry import Axes, axes, covariance, square_root

X = cloud()
widths, seeds = st.sampled_from([1, 2, 3, 7, 13]), st.integers(0, 999)


def lopsided(width: int, seed: int) -> Any:
    """A symmetric matrix with eigenvalues of both signs."""
    matrix = normal(width, width, seed=seed)
    return matrix + matrix.T


# -- axes --------------------------------------------------------------------------------------------------------


@given(widths, seeds, st.sampled_from(["float32", "float64"]))
def test_the_spectral_theorem(width: int, seed: int, dtype: str) -> None:
    S = lopsided(width, seed).astype(dtype)
    found = axes(S)
    tolerance = 8 * width * np.finfo(dtype).eps
    np.testing.assert_allclose(found.values, np.linalg.eigvalsh(S)[::-1], atol=tolerance * abs(S).max())
    np.testing.assert_allclose(found.vectors.T @ found.vectors, np.eye(width), atol=tolerance)
    np.testing.assert_allclose(S @ found.vectors, found.vectors * found.values, atol=tolerance * abs(S).max())
    np.testing.assert_allclose(found.matrix(), S, atol=tolerance * abs(S).max())


@given(widths, seeds)
def test_axes_have_one_direction(width: int, seed: int) -> None:
    vectors = axes(lopsided(width, seed)).vectors
    assert (vectors[abs(vectors).argmax(0), np.arange(width)] > 0).all()


def test_scikit_learn_finds_the_same_components() -> None:
    found, pca = Axes.of(X), PCA().fit(X)
    signs = np.sign((found.vectors.T * pca.components_).sum(1))
    np.testing.assert_allclose(found.values, pca.explained_variance_, rtol=1e-12)
    np.testing.assert_allclose(found.shares, pca.explained_variance_ratio_, rtol=1e-12)
    np.testing.assert_allclose(found.vectors.T, pca.components_ * signs[:, None], atol=1e-12)
    np.testing.assert_allclose(found.coordinates(X - X.mean(0)), pca.transform(X) * signs, atol=1e-11)
    assert found.rank == WIDTH


def test_an_eigenvalue_is_the_variance_along_its_axis() -> None:
    found = Axes.of(X)
    along = found.coordinates(X)
    np.testing.assert_allclose(along.var(0, ddof=1), found.values, rtol=1e-12)
    np.testing.assert_allclose(np.cov(along.T), np.diag(found.values), atol=1e-11)
    assert not np.allclose(np.sort(X.var(0, ddof=1)), np.sort(found.values))
    assert X.var(0, ddof=1).sum() == pytest.approx(found.values.sum())
    assert found.shares.sum() == pytest.approx(1)


def test_coordinates_of_one_vector_and_of_many() -> None:
    found, x = Axes.of(X), normal(2, 3, WIDTH)
    np.testing.assert_allclose(found.coordinates(x)[1, 2], found.coordinates(x[1, 2]), rtol=1e-14)
    assert found.coordinates(x[0, 0])[1] == pytest.approx(x[0, 0] @ found.vectors[:, 1])
    assert found.coordinates([1, 0, 0, 0, 0]) == pytest.approx(found.vectors[0])
    tensors = axes(torch.tensor(metric()).float())
    assert tensors.coordinates(torch.tensor(x)).dtype == torch.float64


@pytest.mark.parametrize("rows", [2, 3, 5, ROWS])
def test_the_rank_of_a_cloud(rows: int) -> None:
    assert Axes.of(cloud(rows)).rank == min(rows - 1, WIDTH)
    assert axes(np.diag([3.0, -2.0, 0.0, 1e-17])).rank == 2


def test_nothing_varies() -> None:
    found = Axes.of(np.full((7, 3), 0.1))
    assert found.rank == 0
    np.testing.assert_array_equal(found.shares, [0, 0, 0])


@EVERY_KIND
def test_every_library_agrees(kind: Kind) -> None:
    S = metric()
    found, expected = axes(kind(S)), axes(kind.rounded(S))
    assert kind.made(found.values)
    assert kind.made(found.vectors)
    assert kind.made(found.shares)
    assert kind.made(found.matrix())
    assert kind.made(found.coordinates(kind(X)))
    assert kind.made(square_root(kind(S)))
    np.testing.assert_allclose(numbers(found.values), expected.values, atol=1e2 * kind.eps)
    np.testing.assert_allclose(numbers(found.vectors), expected.vectors, atol=1e3 * kind.eps)
    np.testing.assert_allclose(numbers(square_root(kind(S))), square_root(kind.rounded(S)), atol=1e2 * kind.eps)


def test_eigenvalues_have_gradients() -> None:
    assert torch.autograd.gradcheck(lambda P: axes(P + P.mT).values, (leaf(normal(3, 3)),))
    assert torch.autograd.gradcheck(lambda P: axes(P + P.mT).vectors, (leaf(normal(3, 3)),))


# -- the square root ---------------------------------------------------------------------------------------------


@given(widths, seeds)
def test_the_square_root(width: int, seed: int) -> None:
    S = metric(width, seed)
    found = square_root(S)
    np.testing.assert_allclose(found, sqrtm(S), atol=1e-12)
    np.testing.assert_allclose(found @ found, S, atol=1e-13 * width)
    np.testing.assert_allclose(found, found.T, atol=1e-14)
    assert np.linalg.eigvalsh(found)[0] > 0


@given(st.sampled_from([2, 3, 20, 41]), seeds, st.sampled_from(["float32", "float64"]), st.sampled_from([1e-9, 1, 1e9]))
def test_the_square_root_of_a_matrix_without_full_rank(width: int, seed: int, dtype: str, scale: float) -> None:
    root = normal(width, 1 + width // 8, seed=seed)
    S = (scale * root @ root.T).astype(dtype)
    found, eps = square_root(S), np.finfo(dtype).eps
    np.testing.assert_allclose(found @ found, S, atol=40 * width * eps * abs(S).max())


@pytest.mark.parametrize("width", [1, 3])
def test_the_square_root_of_zero(width: int) -> None:
    P = leaf(np.zeros((width, width)))
    found = square_root(P)
    assert not found.any()
    (slope,) = torch.autograd.grad(found.sum(), P)
    assert not slope.any()


REPEATED = {
    "distinct": metric(3),
    "identity": np.eye(3),
    "two alike": np.diag([2.0, 5.0, 2.0]),
    "turned": 3 * np.eye(3) + np.ones((3, 3)),
    "nearly alike": np.diag([2.0, 2.0 + 1e-9, 5.0]),
}


@pytest.mark.parametrize("name", REPEATED)
def test_the_square_root_has_a_derivative_where_eigenvalues_are_equal(name: str) -> None:
    half = leaf(REPEATED[name] / 2)
    assert torch.autograd.gradcheck(lambda P: square_root(P + P.mT), (half,))


def test_jax_differentiates_and_compiles() -> None:
    S, weights = 3 * np.eye(3) + np.ones((3, 3)), normal(3, 3)
    slope = jax.jit(jax.grad(lambda S: (square_root(S) * weights).sum()))(jnp.asarray(S))
    leaves = leaf(S)
    (expected,) = torch.autograd.grad((square_root(leaves) * torch.tensor(weights)).sum(), leaves)
    np.testing.assert_allclose(slope, expected, atol=1e-13)
    found = jax.jit(lambda S: axes(S).vectors)(jnp.asarray(metric()))
    np.testing.assert_allclose(found, axes(metric()).vectors, atol=1e-12)


# -- refused -----------------------------------------------------------------------------------------------------

SPOILT = metric()
SPOILT[3, 4] = SPOILT[4, 3] = np.inf
LEANING = np.array([[1.0, 2.0], [2.5, 1.0]])

BAD: dict[str, tuple[Any, type[Exception], str]] = {
    "not square": (lambda: axes(np.ones((2, 3))), rg.CallError, r"matrix: a square matrix; got \(2, 3\)"),
    "empty": (lambda: axes(np.ones((0, 0))), rg.CallError, r"matrix: a square matrix; got \(0, 0\)"),
    "a batch": (lambda: square_root(np.ones((2, 3, 3))), rg.CallError, r"matrix: a square matrix; got \(2, 3, 3\)"),
    "leaning": (lambda: axes(LEANING), rg.CallError, "matrix: a symmetric matrix; .* by 0.5; BilinearForm holds"),
    "slightly leaning": (
        lambda: axes(LEANING - [[0, 0], [0.5 - 1e-9, 0]]),
        rg.CallError,
        "a symmetric matrix; .* by 1e-09",
    ),
    "infinity": (lambda: axes(SPOILT), rg.CallError, "matrix: finite numbers; got NaN or infinity in row 3"),
    "negative": (
        lambda: square_root(np.diag([2.0, -0.25])),
        rg.CallError,
        "matrix: no negative eigenvalue, as a covariance has none; got -0.25",
    ),
    "slightly negative": (lambda: square_root(np.diag([2.0, -1e-13])), rg.CallError, "no negative eigenvalue"),
    "negative with a gradient": (lambda: square_root(leaf([[-1.0]])), rg.CallError, "no negative eigenvalue"),
    "a cloud of one": (lambda: Axes.of(X[:1]), rg.CallError, "x: at least 2 rows"),
    "width": (
        lambda: Axes.of(X).coordinates(X[:, 1:]),
        rg.CallError,
        r"x: vectors of width 5, as the axes; got \(23, 4\)",
    ),
    "a number": (lambda: Axes.of(X).coordinates(np.float64(1)), rg.CallError, r"x: vectors of width 5, .*got \(\)"),
    "libraries": (
        lambda: Axes.of(X).coordinates(torch.tensor(X)),
        rg.KindError,
        "axes: comes from the library of x, tor",
    ),
    "complex": (lambda: axes(np.eye(2) * 1j), rg.KindError, "matrix: real numbers; got dtype complex128"),
    "text": (lambda: square_root("S"), rg.KindError, "matrix: an array or nested lists of numbers; got str"),
}


@pytest.mark.parametrize("name", BAD)
def test_refused(name: str) -> None:
    call, error, text = BAD[name]
    with pytest.raises(error, match=text):
        call()


def test_what_rounding_left_of_an_asymmetry_is_averaged() -> None:
    S = covariance(X)
    S[0, 1] *= 1 + 1e-14
    np.testing.assert_array_equal(square_root(S), square_root(S.T))
    assert axes(S.astype("float32").astype(float)).rank == WIDTH


def test_a_second_derivative_is_refused_and_never_wrong() -> None:
    matrix = torch.eye(3, dtype=torch.float64, requires_grad=True)
    (slope,) = torch.autograd.grad((square_root(matrix * 2) ** 3).sum(), matrix, create_graph=True)
    with pytest.raises(RuntimeError, match="differentiate twice"):
        slope.sum().backward()
