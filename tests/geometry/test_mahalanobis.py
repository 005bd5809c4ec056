"""Mahalanobis distance: Euclidean after whitening, SciPy's numbers, and a formula of attention."""

from __future__ import annotations

import pickle
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.distance import cdist, mahalanobis
from sklearn.covariance import ledoit_wolf

import regard as rg
from clouds import EVERY_KIND, WIDTH, Kind, cloud, leaf, metric, normal, numbers
from regard.geometry import Mahalanobis, distance, distances, inner, norm, whitening

X, Y, COVARIANCE = normal(7, WIDTH), normal(11, WIDTH, seed=4), metric()
METRIC = Mahalanobis(COVARIANCE)

# -- a distance --------------------------------------------------------------------------------------------------


@given(st.sampled_from([1, 2, 3, 7]), st.integers(0, 999), st.sampled_from([1e-8, 1.0, 1e8]))
def test_scipy_measures_the_same(width: int, seed: int, scale: float) -> None:
    x, y, covariance = normal(width, seed=seed), normal(width, seed=seed + 1), scale * metric(width, seed)
    assert Mahalanobis(covariance).distance(x, y) == pytest.approx(
        mahalanobis(x, y, np.linalg.inv(covariance)), rel=1e-10
    )


def test_scipy_measures_the_same_for_every_pair() -> None:
    precision = np.linalg.inv(COVARIANCE)
    np.testing.assert_allclose(METRIC.distances(X, Y), cdist(X, Y, "mahalanobis", VI=precision), rtol=1e-12)
    np.testing.assert_allclose(METRIC.precision, precision, rtol=1e-10)
    np.testing.assert_allclose(METRIC.distances(X), METRIC.distances(X, X), atol=1e-14)
    np.testing.assert_allclose(METRIC.distances(X, Y), METRIC.distance(X[:, None], Y), rtol=1e-13)


def test_of_the_identity_is_euclidean() -> None:
    euclidean = Mahalanobis.euclidean(WIDTH, like=X)
    np.testing.assert_array_equal(euclidean.covariance, np.eye(WIDTH))
    np.testing.assert_allclose(euclidean.distances(X, Y), distances(X, Y), rtol=1e-14)
    assert Mahalanobis.euclidean(3, like=torch.ones(2)).distance(torch.ones(3), torch.zeros(3)).dtype == torch.float32


@pytest.mark.parametrize("rotation", ["pca", "zca", "cholesky", "pca-cor", "zca-cor"])
def test_of_any_whitening_is_euclidean(rotation: str) -> None:
    A = whitening(COVARIANCE, rotation)
    np.testing.assert_allclose(METRIC.distances(X, Y), distances(X @ A.T, Y @ A.T), rtol=1e-12)
    np.testing.assert_allclose(METRIC.distances(X, Y), distances(METRIC.whiten(X), METRIC.whiten(Y)), rtol=1e-12)
    np.testing.assert_allclose(METRIC.whitening, whitening(COVARIANCE, "zca"), rtol=1e-12)


def test_it_stands_where_geometry_takes_a_metric() -> None:
    np.testing.assert_allclose(distances(X, Y, metric=METRIC), METRIC.distances(X, Y), rtol=1e-12)
    np.testing.assert_allclose(distance(X, Y[:7], METRIC), METRIC.distance(X, Y[:7]), rtol=1e-12)
    np.testing.assert_allclose(norm(X, METRIC), METRIC.distance(X, np.zeros(WIDTH)), rtol=1e-12)
    np.testing.assert_allclose(inner(X, Y[0], METRIC), METRIC.whiten(X) @ METRIC.whiten(Y[0]), atol=1e-12)


def test_far_from_the_origin_digits_stay() -> None:
    far = X + 2.0**30  # holds some 22 bits of X
    exact = METRIC.distances(far - 2.0**30, Y)
    np.testing.assert_allclose(METRIC.distances(far, Y + 2.0**30), exact, atol=1e-5)
    np.testing.assert_allclose(METRIC.distances(far), METRIC.distances(far - 2.0**30), rtol=1e-13, atol=1e-14)
    np.testing.assert_allclose(METRIC.distance(far[0], far[1]), METRIC.distances(far)[0, 1], rtol=1e-13)


@pytest.mark.parametrize("batch", [(), (3,), (2, 3)])
def test_batches(batch: Any) -> None:
    x, y = normal(*batch, 7, WIDTH), normal(*batch[1:], 11, WIDTH, seed=4)
    found = METRIC.distances(x, y)
    assert found.shape == (*batch, 7, 11)
    np.testing.assert_allclose(found, METRIC.distance(x[..., :, None, :], y[..., None, :, :]), rtol=1e-12)
    assert METRIC.distances(x, y[..., :0, :]).shape == (*batch, 7, 0)


# -- of a cloud --------------------------------------------------------------------------------------------------


def test_the_metric_of_a_cloud() -> None:
    x = cloud()
    np.testing.assert_allclose(Mahalanobis.fit(x).covariance, np.cov(x.T), rtol=1e-12)
    np.testing.assert_allclose(Mahalanobis.fit(x, shrinkage="ledoit-wolf").covariance, ledoit_wolf(x)[0], rtol=1e-12)
    few = Mahalanobis.fit(x[:3])
    np.testing.assert_allclose(few.covariance, ledoit_wolf(x[:3])[0], rtol=1e-12)
    assert np.isfinite(few.distances(x)).all()


@EVERY_KIND
def test_every_library_agrees(kind: Kind) -> None:
    found, expected = Mahalanobis(kind(COVARIANCE)), Mahalanobis(kind.rounded(COVARIANCE))
    for x in (found.distances(kind(X), kind(Y)), found.whiten(kind(X)), found.precision, found.tables()["P"]):
        assert kind.made(x)
    np.testing.assert_allclose(
        numbers(found.distances(kind(X), kind(Y))),
        expected.distances(kind.rounded(X), kind.rounded(Y)),
        rtol=300 * kind.eps,
    )


def test_lists_half_precision_and_mixed_precisions() -> None:
    assert Mahalanobis([[1, 0], [0, 4]]).distance([0, 0], [3, 8]) == pytest.approx(5)
    half = Mahalanobis(torch.eye(3, dtype=torch.bfloat16))
    assert half.distance(torch.ones(3, dtype=torch.bfloat16), torch.zeros(3)).dtype == torch.float32
    assert Mahalanobis(torch.eye(3)).distances(torch.ones(2, 3).double()).dtype == torch.float64


# -- a formula ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("convert", [np.asarray, torch.asarray])
@pytest.mark.parametrize("name", ["P", "precision"])
def test_as_a_score_it_is_euclidean_attention_on_whitened_vectors(convert: Any, name: str) -> None:
    q, k, v = (convert(normal(2, 3, n, d, seed=n)) for n, d in ((5, WIDTH), (7, WIDTH), (7, 11)))
    near = Mahalanobis(convert(COVARIANCE))
    attention = rg.Attention(score=near.score(name))
    found = attention(q, k, v, **near.tables(name))
    expected = rg.Attention(score=-rg.sqdist / 2)(near.whiten(q), near.whiten(k), v)
    np.testing.assert_allclose(found, expected, atol=1e-10)
    scores = attention.scores(q, k, **near.tables(name))
    np.testing.assert_allclose(scores, -(numbers(near.distances(q, k)) ** 2) / 2, atol=1e-10)


def test_the_formula_says_which_table() -> None:
    assert METRIC.score() == rg.parse('-sqdist(table("P")) / 2')
    assert METRIC.score("Q") == rg.parse('-sqdist(table("Q")) / 2')


# -- gradients ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "covariance", [metric(3), np.eye(3), np.diag([2.0, 5.0, 2.0])], ids=["distinct", "equal", "two"]
)
def test_gradients(covariance: Any) -> None:
    x, y, half = leaf(normal(2, 3)), leaf(normal(2, 3, seed=4)), leaf(covariance / 2)
    for compare in (Mahalanobis.distance, Mahalanobis.distances):
        assert torch.autograd.gradcheck(lambda x, y, P, f=compare: f(Mahalanobis(P + P.mT), x, y), (x, y, half))
    assert torch.autograd.gradcheck(lambda P: Mahalanobis(P + P.mT).precision, (half,))


def test_gradients_through_the_fit_and_at_the_same_point() -> None:
    x = leaf(cloud(5, 3))
    assert torch.autograd.gradcheck(lambda x: Mahalanobis.fit(x).distance(x[0], x[1:]), (x,))
    few = leaf(cloud(3, 3))
    assert torch.autograd.gradcheck(lambda x: Mahalanobis.fit(x).distance(x[0], x[1:]), (few,))
    (slope,) = torch.autograd.grad(Mahalanobis(torch.eye(3).double()).distances(x).sum(), x)
    assert slope.isfinite().all()


def test_jax_compiles_it() -> None:
    found = jax.jit(lambda S, x, y: Mahalanobis(S).distances(x, y))(*map(jnp.asarray, (COVARIANCE, X, Y)))
    np.testing.assert_allclose(found, METRIC.distances(X, Y), rtol=1e-12)


def test_it_is_a_value() -> None:
    again = pickle.loads(pickle.dumps(METRIC))
    np.testing.assert_array_equal(again.distances(X), METRIC.distances(X))
    with pytest.raises(AttributeError):
        METRIC.covariance = np.eye(WIDTH)  # type: ignore[misc]


# -- refused -----------------------------------------------------------------------------------------------------

FLAT = np.diag([1.0, 0.0, 2.0])
BAD: dict[str, tuple[Any, type[Exception], str]] = {
    "singular": (
        lambda: Mahalanobis(FLAT),
        rg.CallError,
        "covariance: of full rank, .* got rank 2 of 3; shrink it with",
    ),
    "nearly singular": (lambda: Mahalanobis(FLAT + 1e-17 * np.eye(3)), rg.CallError, "covariance: of full rank"),
    "no shrinkage": (
        lambda: Mahalanobis.fit(X[:3], shrinkage=0),
        rg.CallError,
        "got rank 2 of 5; shrink .*take more rows",
    ),
    "two rows": (lambda: Mahalanobis.fit(X[:2]), rg.CallError, r"got rank 1 of 5; .*or shrunk\(x, 0.1\)"),
    "nothing varies": (lambda: Mahalanobis.fit(np.ones((7, 3))), rg.CallError, "got rank 0 of 3; .*that are constant"),
    "negative": (lambda: Mahalanobis(-np.eye(3)), rg.CallError, "covariance: no negative eigenvalue, .*got -1"),
    "leaning": (lambda: Mahalanobis([[1.0, 2.0], [0.0, 1.0]]), rg.CallError, "covariance: a symmetric matrix"),
    "not square": (lambda: Mahalanobis(X), rg.CallError, r"covariance: a square matrix; got \(7, 5\)"),
    "NaN": (lambda: Mahalanobis(np.full((2, 2), np.nan)), rg.CallError, "covariance: finite numbers; .*in row 0"),
    "width": (lambda: METRIC.whiten(X[:, 1:]), rg.CallError, r"x: vectors of width 5, as the covariance; got \(7, 4\)"),
    "a number": (lambda: METRIC.whiten(np.float64(1)), rg.CallError, r"x: vectors of width 5, .*got \(\)"),
    "widths": (
        lambda: METRIC.distance(X, X[:, :1]),
        rg.CallError,
        r"x, y: vectors of one width .*\(7, 5\) and \(7, 1\)",
    ),
    "both widths": (lambda: METRIC.distance(X[:, 1:], X[:, 1:]), rg.CallError, "x: vectors of width 5"),
    "plural of one": (lambda: METRIC.distances(X[0]), rg.CallError, r"x, y: one vector in each row; got \(5,\)"),
    "libraries": (
        lambda: METRIC.whiten(torch.tensor(X)),
        rg.KindError,
        "covariance: comes from the library of x, torch",
    ),
    "text": (
        lambda: Mahalanobis("covariance"),
        rg.KindError,
        "covariance: an array or nested lists of numbers; got str",
    ),
    "share": (lambda: Mahalanobis.fit(X, shrinkage=2), rg.CallError, "shrinkage: from 0 to 1; got 2"),
}


@pytest.mark.parametrize("name", BAD)
def test_refused(name: str) -> None:
    call, error, text = BAD[name]
    with pytest.raises(error, match=text):
        call()
