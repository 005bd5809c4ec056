"""Covariance and correlation as inner products of random variables, and covariances that can be inverted."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from sklearn.covariance import ledoit_wolf as theirs
from sklearn.covariance import shrunk_covariance

import regard as rg
from clouds import EVERY_KIND, ROWS, WIDTH, Kind, cloud, leaf, normal, numbers
from regard.geometry import correlation, cosine, covariance, expectation, inner, ledoit_wolf, shrunk

X, Y = cloud(), cloud(width=3, seed=11)
FEW = cloud(rows=3)  # rank 2 of 5
clouds = st.builds(cloud, st.integers(2, 29), st.integers(1, 7), st.integers(0, 99))

# -- moments -----------------------------------------------------------------------------------------------------


@given(clouds, st.sampled_from([0, 1]))
def test_numpy_finds_the_same(x: Any, ddof: int) -> None:
    np.testing.assert_allclose(covariance(x, ddof=ddof), np.cov(x.T, ddof=ddof).reshape(x.shape[1], -1), atol=1e-11)
    np.testing.assert_allclose(correlation(x), np.corrcoef(x.T).reshape(x.shape[1], -1), atol=1e-12)


def test_between_two_random_vectors() -> None:
    both = np.hstack([X, Y])
    np.testing.assert_allclose(covariance(X, Y), np.cov(both.T)[:WIDTH, WIDTH:], atol=1e-12)
    np.testing.assert_allclose(correlation(X, Y), np.corrcoef(both.T)[:WIDTH, WIDTH:], atol=1e-14)
    np.testing.assert_allclose(expectation(X, Y), X.T @ Y / ROWS, atol=1e-12)
    np.testing.assert_allclose(expectation(X), X.T @ X / ROWS, atol=1e-12)


def test_they_are_inner_products() -> None:
    x, y = X[:, 1] - X[:, 1].mean(), Y[:, 2] - Y[:, 2].mean()
    assert covariance(X, Y)[1, 2] == pytest.approx(inner(x, y) / (ROWS - 1), rel=1e-13)
    assert correlation(X, Y)[1, 2] == pytest.approx(cosine(x, y), rel=1e-13)
    assert expectation(X, Y)[1, 2] == pytest.approx(inner(X[:, 1], Y[:, 2]) / ROWS, rel=1e-13)


@given(clouds, st.integers(-60, 60))
def test_the_correlation_knows_neither_origin_nor_units(x: Any, power: int) -> None:
    found = correlation(x)
    assert (abs(found) <= 1).all()
    np.testing.assert_allclose(np.diagonal(found), 1, rtol=1e-15)
    np.testing.assert_allclose(correlation(np.ldexp(x, power) + 2.0**power), found, atol=1e-12)


@pytest.mark.parametrize("value", [0.0, 0.1, 1e8 / 3, -1e-300])
@pytest.mark.parametrize("rows", [3, 7, 23])
def test_a_column_that_does_not_vary_is_correlated_with_nothing(value: float, rows: int) -> None:
    x = normal(rows, 3)
    x[:, 1] = value
    found = correlation(x)
    assert not found[1].any()
    assert not found[:, 1].any()
    assert not covariance(x)[1].any()


def test_far_from_the_origin_digits_stay() -> None:
    x = normal(ROWS, WIDTH).round(3)
    far = 1e8 + x  # holds some eight digits of x
    np.testing.assert_allclose(covariance(far), covariance(far - 1e8), rtol=1e-13, atol=1e-15)


@EVERY_KIND
def test_every_library_agrees(kind: Kind) -> None:
    x, y = kind.rounded(X), kind.rounded(Y)
    for moment in (expectation, covariance, correlation):
        found = moment(kind(X), kind(Y))
        assert kind.made(found)
        np.testing.assert_allclose(numbers(found), moment(x, y), rtol=1e2 * kind.eps, atol=1e3 * kind.eps)


def test_lists_integers_and_mixed_precisions() -> None:
    np.testing.assert_array_equal(covariance(X.tolist()), covariance(X))
    np.testing.assert_array_equal(covariance(X.astype(int)), covariance(X.astype(int).astype(float)))
    assert covariance(torch.tensor(X).float(), torch.tensor(Y)).dtype == torch.float64


@pytest.mark.parametrize("moment", [expectation, covariance, correlation])
def test_gradients(moment: Any) -> None:
    x, y = leaf(normal(5, 3)), leaf(normal(5, 2, seed=4))
    assert torch.autograd.gradcheck(moment, (x, y))
    assert torch.autograd.gradcheck(moment, (x,))


# -- shrinkage ---------------------------------------------------------------------------------------------------


@given(clouds)
def test_scikit_learn_shrinks_the_same(x: Any) -> None:
    found, alpha = ledoit_wolf(x)
    expected, shrinkage = theirs(x)
    size = np.abs(expected).max()
    assert alpha == pytest.approx(shrinkage if x.shape[1] > 1 else 0, abs=1e-11)
    np.testing.assert_allclose(found, expected, atol=1e-11 * size)


@pytest.mark.parametrize("alpha", [0, 0.25, np.float32(0.5), 1.0])
def test_a_given_share(alpha: float) -> None:
    found, used = shrunk(X, alpha)
    assert used == alpha
    assert type(used) is float
    np.testing.assert_allclose(found, shrunk_covariance(np.cov(X.T), alpha), rtol=1e-13)
    assert np.trace(found) == pytest.approx(np.trace(np.cov(X.T)))


def test_auto_shrinks_where_the_rank_is_not_full() -> None:
    found, alpha = shrunk(X)
    assert alpha == 0
    np.testing.assert_array_equal(found, covariance(X))
    found, alpha = shrunk(FEW)
    expected, used = theirs(FEW)
    assert alpha == pytest.approx(used)
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    assert np.linalg.matrix_rank(found) == WIDTH
    assert shrunk(X, "ledoit-wolf")[1] == pytest.approx(theirs(X)[1])


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("width", [2, 3, 11])
def test_columns_that_depend_on_others_are_noticed(dtype: str, width: int) -> None:
    for seed in range(60):
        x = normal(10 * seed + 2 * width, width, seed=seed).astype(dtype) + np.float32(seed)
        x[:, -1] = x[:, :-1] @ normal(width - 1, seed=seed).astype(dtype)
        assert shrunk(x)[1] > 0
        assert shrunk(normal(7 * width, width, seed=seed).astype(dtype))[1] == 0


@given(st.integers(2, 7), st.integers(0, 99))
def test_the_share_of_two_rows_is_never_negative(width: int, seed: int) -> None:
    assert 0 <= ledoit_wolf(normal(2, width, seed=seed))[1] < 1e-12


def test_what_does_not_vary_stays_zero() -> None:
    found, alpha = ledoit_wolf(np.full((7, 3), 0.1))
    assert alpha == 0
    assert not found.any()
    assert not ledoit_wolf([[1.0, 2.0]])[0].any()


@EVERY_KIND
def test_every_library_shrinks_the_same(kind: Kind) -> None:
    found, alpha = shrunk(kind(FEW))
    assert kind.made(found)
    assert type(alpha) is float
    np.testing.assert_allclose(numbers(found), theirs(kind.rounded(FEW))[0], rtol=1e2 * kind.eps, atol=1e3 * kind.eps)


def test_shrinkage_is_differentiable_and_does_not_warn() -> None:
    x = leaf(normal(4, 3))
    assert torch.autograd.gradcheck(ledoit_wolf, (x,))
    torch.set_warn_always(True)
    try:
        assert torch.autograd.gradcheck(lambda x: shrunk(x, "ledoit-wolf")[0], (x,))
    finally:
        torch.set_warn_always(False)


def test_jax_compiles_them() -> None:
    found, alpha = jax.jit(ledoit_wolf)(jnp.asarray(FEW))
    np.testing.assert_allclose(found, ledoit_wolf(FEW)[0], rtol=1e-12)
    np.testing.assert_allclose(jax.jit(correlation)(jnp.asarray(X)), correlation(X), rtol=1e-12)
    np.testing.assert_allclose(jax.jit(lambda x: shrunk(x)[0])(jnp.asarray(X)), covariance(X), rtol=1e-12)
    np.testing.assert_allclose(alpha, theirs(FEW)[1])


# -- refused -----------------------------------------------------------------------------------------------------


def spoilt(value: float, row: int) -> Any:
    x = X.copy()
    x[row, 2] = x[row + 3, 0] = value
    return x


BAD: dict[str, tuple[Any, type[Exception], str]] = {
    "NaN": (lambda: covariance(spoilt(np.nan, 7)), rg.CallError, "x: finite numbers; got .* in row 7; drop .* or fill"),
    "infinity": (lambda: covariance(X, spoilt(-np.inf, 0)), rg.CallError, "y: finite numbers; .* in row 0; drop such"),
    "NaN in tensors": (lambda: shrunk(torch.tensor(spoilt(np.nan, 11))), rg.CallError, "x: finite .* in row 11"),
    "NaN in JAX": (lambda: ledoit_wolf(jnp.asarray(spoilt(np.nan, 5))), rg.CallError, "x: finite .* in row 5"),
    "one axis": (
        lambda: covariance([1.0, 2.0]),
        rg.CallError,
        r"x: a matrix, one vector in each row; got 1 axes, \(2,\)",
    ),
    "three axes": (lambda: correlation(X[None]), rg.CallError, r"x: a matrix, .*got 3 axes, \(1, 23, 5\)"),
    "one row": (lambda: covariance(X[:1]), rg.CallError, r"x: at least 2 rows and one column; got \(1, 5\)"),
    "one row correlated": (
        lambda: correlation(X[:1]),
        rg.CallError,
        r"x: at least 2 rows and one column; got \(1, 5\)",
    ),
    "ddof": (lambda: covariance(X[:3], ddof=3), rg.CallError, r"x: at least 4 rows and one column; got \(3, 5\)"),
    "one row shrunk": (lambda: shrunk(X[:1]), rg.CallError, "x: at least 2 rows"),
    "no rows": (lambda: expectation(X[:0]), rg.CallError, r"x: at least 1 rows and one column; got \(0, 5\)"),
    "no columns": (lambda: covariance(X[:, :0]), rg.CallError, r"x: at least 2 rows and one column; got \(23, 0\)"),
    "rows of y": (lambda: covariance(X, Y[1:]), rg.CallError, "x, y: as many rows, drawn together; got 23 and 22"),
    "libraries": (
        lambda: covariance(X, torch.tensor(Y)),
        rg.KindError,
        "y: comes from the library of x, numpy; got tor",
    ),
    "complex": (lambda: covariance(X * 1j), rg.KindError, "x: real numbers; got dtype complex128"),
    "text": (lambda: correlation("X"), rg.KindError, "x: an array or nested lists of numbers; got str"),
    "unknown name": (lambda: shrunk(X, "oas"), rg.KindError, 'shrinkage: "auto", "ledoit-wolf" or .*got \'oas\''),
    "None": (lambda: shrunk(X, None), rg.KindError, "shrinkage: .*got None"),
    "a bool": (lambda: shrunk(X, True), rg.KindError, "shrinkage: .*got True"),
    "below 0": (lambda: shrunk(X, -0.1), rg.CallError, "shrinkage: from 0 to 1; got -0.1"),
    "above 1": (lambda: shrunk(X, 2), rg.CallError, "shrinkage: from 0 to 1; got 2"),
    "NaN share": (lambda: shrunk(X, float("nan")), rg.CallError, "shrinkage: from 0 to 1; got nan"),
}


@pytest.mark.parametrize("name", BAD)
def test_refused(name: str) -> None:
    call, error, text = BAD[name]
    with pytest.raises(error, match=text):
        call()
