"""The whitening family, A Σ Aᵀ = I, and its estimator."""

from __future__ import annotations

import importlib.util
import os
import pickle
import subprocess
import sys
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.covariance import ledoit_wolf
from sklearn.decomposition import PCA
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import check_estimator

import regard as rg
from clouds import EVERY_KIND, WIDTH, Kind, cloud, leaf, metric, normal, numbers, orthogonal
from regard.geometry import Whitening, axes, covariance, distances, whitened, whitening

NAMES = ["pca", "zca", "cholesky", "pca-cor", "zca-cor"]
EVERY_NAME = pytest.mark.parametrize("rotation", NAMES)
EVERY_ROTATION = pytest.mark.parametrize("rotation", [*NAMES, orthogonal()], ids=[*NAMES, "R"])
X, NEW, COVARIANCE = cloud(), cloud(7, seed=20), metric()
FEW = X[:3]  # rank 2 of 5

# -- the family --------------------------------------------------------------------------------------------------


@given(
    st.sampled_from([1, 2, 3, 7, 13]),
    st.integers(0, 999),
    st.sampled_from([*NAMES, "R"]),
    st.sampled_from(["float32", "float64"]),
    st.sampled_from([1e-8, 1.0, 1e8]),
)
def test_what_is_whitened_has_the_identity_as_covariance(
    width: int, seed: int, name: str, dtype: str, scale: float
) -> None:
    sigma = (scale * metric(width, seed)).astype(dtype)
    A = whitening(sigma, orthogonal(width, seed).astype(dtype) if name == "R" else name)
    assert A.dtype == dtype
    rounding = 4 * width * np.finfo(dtype).eps * np.linalg.cond(sigma)
    np.testing.assert_allclose(A @ sigma @ A.T, np.eye(width), atol=rounding)
    np.testing.assert_allclose(A.T @ A @ sigma, np.eye(width), atol=4 * rounding)
    np.testing.assert_allclose(sigma @ A.T @ A, np.eye(width), atol=4 * rounding)


def test_each_by_its_own_property() -> None:
    values, Q = np.linalg.eigh(COVARIANCE)
    pca, zca, cholesky = (whitening(COVARIANCE, name) for name in ("pca", "zca", "cholesky"))
    np.testing.assert_allclose(abs(pca), abs((Q / np.sqrt(values)).T[::-1]), rtol=1e-11)
    np.testing.assert_allclose(zca, zca.T, atol=1e-14)
    assert np.linalg.eigvalsh(zca)[0] > 0
    np.testing.assert_array_equal(np.triu(cholesky, 1), 0)
    np.testing.assert_allclose(cholesky @ np.linalg.cholesky(COVARIANCE), np.eye(WIDTH), atol=1e-13)
    assert (np.diagonal(cholesky) > 0).all()
    np.testing.assert_array_equal(whitening(COVARIANCE), zca)


def test_names_are_rotations() -> None:
    pca, Q, R = whitening(COVARIANCE, "pca"), axes(COVARIANCE).vectors, orthogonal()
    np.testing.assert_array_equal(whitening(COVARIANCE, np.eye(WIDTH)), pca)
    np.testing.assert_allclose(whitening(COVARIANCE, Q), whitening(COVARIANCE, "zca"), atol=1e-13)
    np.testing.assert_allclose(whitening(COVARIANCE, R), R @ pca, atol=1e-13)
    np.testing.assert_array_equal(whitening(COVARIANCE, R.tolist()), whitening(COVARIANCE, R))
    for name in NAMES:  # A A_pca⁻¹ is the rotation that a name stands for
        turn = whitening(COVARIANCE, name) @ np.linalg.inv(pca)
        np.testing.assert_allclose(turn @ turn.T, np.eye(WIDTH), atol=1e-12)


@EVERY_ROTATION
def test_zca_is_nearest_to_the_vectors_themselves(rotation: Any) -> None:
    def near(A: Any, to: Any) -> float:  # E‖A x − to x‖² falls where this rises
        return float(np.trace(A @ COVARIANCE @ to))

    A, own = whitening(COVARIANCE, rotation), np.diag(COVARIANCE.diagonal() ** -0.5)
    assert near(A, np.eye(WIDTH)) <= near(whitening(COVARIANCE, "zca"), np.eye(WIDTH)) + 1e-12
    assert near(A, own) <= near(whitening(COVARIANCE, "zca-cor"), own) + 1e-12


@pytest.mark.parametrize(
    ("rotation", "invariant"), [("pca-cor", 1), ("zca-cor", 1), ("cholesky", 1), ("pca", 0), ("zca", 0)]
)
def test_correlations_know_no_units(rotation: str, invariant: int) -> None:
    units = 2.0 ** np.array([-7, 5, 0, 9, -3])
    found, other = whitening(COVARIANCE, rotation), whitening(COVARIANCE * units[:, None] * units, rotation) * units
    assert np.allclose(found, other, atol=1e-12) == invariant


@EVERY_KIND
@EVERY_ROTATION
def test_every_library_agrees(kind: Kind, rotation: Any) -> None:
    own = rotation if isinstance(rotation, str) else kind(rotation)
    found = whitening(kind(COVARIANCE), own)
    assert kind.made(found)
    expected = whitening(kind.rounded(COVARIANCE), rotation)
    np.testing.assert_allclose(numbers(found), expected, atol=1e3 * kind.eps)


REPEATED = {
    "distinct": metric(3),
    "identity": np.eye(3),
    "two alike": np.diag([2.0, 5.0, 2.0]),
    "turned": 3 * np.eye(3) + np.ones((3, 3)),
    "nearly alike": np.diag([2.0, 2.0 + 1e-9, 5.0]),
}


@pytest.mark.parametrize("name", REPEATED)
@pytest.mark.parametrize("rotation", ["zca", "cholesky", "zca-cor"])
def test_gradients_also_where_eigenvalues_are_equal(name: str, rotation: str) -> None:
    half = leaf(REPEATED[name] / 2)
    assert torch.autograd.gradcheck(lambda P: whitening(P + P.mT, rotation), (half,))


@pytest.mark.parametrize("rotation", ["pca", "pca-cor", orthogonal(3)], ids=["pca", "pca-cor", "R"])
def test_gradients_of_axes_that_differ(rotation: Any) -> None:
    own = rotation if isinstance(rotation, str) else torch.tensor(rotation)
    assert torch.autograd.gradcheck(lambda P: whitening(P + P.mT, own), (leaf(metric(3) / 2),))


def test_jax_compiles_and_differentiates_it() -> None:
    sigma, weights = jnp.asarray(REPEATED["turned"]), normal(3, 3)
    for rotation in ("zca", "cholesky"):
        np.testing.assert_allclose(jax.jit(lambda S, r=rotation: whitening(S, r))(sigma), whitening(sigma, rotation))
        own = leaf(REPEATED["turned"])
        (expected,) = torch.autograd.grad((whitening(own, rotation) * torch.tensor(weights)).sum(), own)
        found = jax.grad(lambda S, r=rotation: (whitening(S, r) * weights).sum())(sigma)
        np.testing.assert_allclose(found, expected, atol=1e-13)


# -- the estimator -----------------------------------------------------------------------------------------------


@EVERY_ROTATION
def test_fit_and_transform_and_back(rotation: Any) -> None:
    made = Whitening(rotation).fit(X)
    white = made.transform(X)
    np.testing.assert_allclose(white.mean(0), 0, atol=1e-13)
    np.testing.assert_allclose(covariance(white), np.eye(WIDTH), atol=1e-12)
    np.testing.assert_allclose(made.inverse_transform(made.transform(NEW)), NEW, atol=1e-12)
    np.testing.assert_allclose(made.transform(NEW)[2], made.whitening_ @ (NEW[2] - X.mean(0)), atol=1e-12)
    np.testing.assert_allclose(made.unwhitening_ @ made.whitening_, np.eye(WIDTH), atol=1e-12)
    np.testing.assert_allclose(made.whitening_, whitening(np.cov(X.T), rotation), atol=1e-12)
    np.testing.assert_allclose(made.mean_, X.mean(0))
    np.testing.assert_allclose(made.covariance_, np.cov(X.T), rtol=1e-12)
    np.testing.assert_array_equal(Whitening(rotation).fit_transform(X), white)
    assert (made.shrinkage_, made.n_features_in_) == (0.0, WIDTH)


def test_scikit_learn_whitens_the_same() -> None:
    theirs = PCA(whiten=True).fit(X)
    ours, expected = Whitening("pca").fit(X).transform(NEW), theirs.transform(NEW)
    signs = np.sign((ours * expected).sum(0))
    np.testing.assert_allclose(ours, expected * signs, atol=1e-11)


@EVERY_ROTATION
def test_euclidean_after_it_is_one_distance(rotation: Any) -> None:
    white = Whitening(rotation).fit(X).transform(NEW)
    np.testing.assert_allclose(distances(white), distances(NEW, metric=np.linalg.inv(np.cov(X.T))), atol=1e-11)


@EVERY_NAME
def test_scikit_learns_own_checks(rotation: str) -> None:
    results = check_estimator(Whitening(rotation), on_skip=None)
    unmet = {result["check_name"] for result in results if result["status"] != "passed"}
    assert all(name.startswith("check_array_api") for name in unmet), unmet  # met in another process, below
    assert len(results) - len(unmet) > 40


ARRAY_API = """
import warnings
warnings.simplefilter("error")
from sklearn.utils.estimator_checks import check_estimator
from regard.geometry import Whitening
for rotation in {names}:
    results = check_estimator(Whitening(rotation), on_skip=None)
    passed = [result for result in results if result["status"] == "passed"]
    print(rotation, sum("array_api" in result["check_name"] for result in passed))
"""


def test_scikit_learns_checks_of_tensors() -> None:
    """They need an environment variable that SciPy reads when it is imported."""
    code, environment = ARRAY_API.format(names=NAMES), os.environ | {"SCIPY_ARRAY_API": "1"}
    run = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    counts = dict(line.split() for line in run.stdout.splitlines())
    assert list(counts) == NAMES
    assert all(int(count) >= 2 for count in counts.values()), counts  # float32 and float64 on the CPU


def test_it_is_an_estimator_like_others() -> None:
    made = Whitening(orthogonal(), shrinkage=0.25).fit(X)
    again = clone(made)
    np.testing.assert_array_equal(again.get_params()["rotation"], orthogonal())
    assert again.get_params()["shrinkage"] == 0.25
    assert not hasattr(again, "mean_")
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(made)).transform(NEW), made.transform(NEW))
    assert list(made.get_feature_names_out()) == [f"whitening{column}" for column in range(WIDTH)]
    assert repr(Whitening("pca")) == "Whitening(rotation='pca')"
    y = X @ normal(WIDTH)
    pipeline = make_pipeline(Whitening(), LinearRegression()).fit(X, y)
    np.testing.assert_allclose(pipeline.predict(NEW), LinearRegression().fit(X, y).predict(NEW), atol=1e-11)
    assert Whitening().set_params(rotation="cholesky").rotation == "cholesky"


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_precision_of_the_argument_stays(dtype: str) -> None:
    for other in ("float32", "float64"):
        assert Whitening().fit(X.astype(other)).transform(NEW.astype(dtype)).dtype == dtype
        assert Whitening().fit(X.astype(other)).inverse_transform(NEW.astype(dtype)).dtype == dtype
    whole = Whitening().fit((100 * X).astype(int)).transform((100 * NEW).astype(int))
    assert whole.dtype == np.float64
    assert Whitening().__sklearn_tags__().transformer_tags.preserves_dtype == ["float64", "float32"]


# -- few rows ----------------------------------------------------------------------------------------------------


@EVERY_ROTATION
def test_few_rows_are_shrunk(rotation: Any) -> None:
    made = Whitening(rotation).fit(FEW)
    expected, alpha = ledoit_wolf(FEW)
    assert 0 < made.shrinkage_ == pytest.approx(alpha)
    np.testing.assert_allclose(made.covariance_, expected, rtol=1e-12)
    A = made.whitening_
    np.testing.assert_allclose(A @ expected @ A.T, np.eye(WIDTH), atol=1e-11)
    np.testing.assert_allclose(made.inverse_transform(made.transform(NEW)), NEW, atol=1e-11)


def test_shrinkage_is_used_as_given() -> None:
    assert Whitening(shrinkage="ledoit-wolf").fit(X).shrinkage_ == pytest.approx(ledoit_wolf(X)[1])
    sphere = Whitening(shrinkage=1).fit(FEW)
    assert sphere.shrinkage_ == 1
    np.testing.assert_allclose(sphere.whitening_, np.eye(WIDTH) / np.sqrt(FEW.var(0, ddof=1).mean()), atol=1e-14)


# -- tensors -----------------------------------------------------------------------------------------------------


@EVERY_KIND
@pytest.mark.parametrize("rows", [X, FEW], ids=["many", "few"])
def test_arrays_stay_what_they_are(kind: Kind, rows: Any) -> None:
    made, plain = Whitening().fit(kind(rows)), Whitening().fit(kind.rounded(rows))
    for array in (made.mean_, made.covariance_, made.whitening_, made.unwhitening_):
        assert kind.made(array)
    for name in ("transform", "inverse_transform"):
        found, expected = getattr(made, name)(kind(NEW)), getattr(plain, name)(kind.rounded(NEW))
        assert kind.made(found)
        np.testing.assert_allclose(numbers(found), expected, atol=3e3 * kind.eps * abs(expected).max())
    assert type(made.shrinkage_) is float


@pytest.mark.parametrize("rotation", NAMES)
def test_gradients_through_the_fit(rotation: str) -> None:
    x = leaf(cloud(7, 3))
    assert torch.autograd.gradcheck(lambda x: Whitening(rotation).fit(x).transform(x), (x,))
    made = Whitening(rotation).fit(x.detach())
    assert torch.autograd.gradcheck(lambda y: made.inverse_transform(made.transform(y) ** 3), (x,))


def test_half_precision_is_computed_in_float32() -> None:
    half = torch.tensor(X, dtype=torch.bfloat16)
    assert Whitening().fit(half).transform(half).dtype == torch.float32
    assert Whitening().fit(torch.tensor(X)).transform(torch.tensor(NEW).float()).dtype == torch.float64


# -- refused -----------------------------------------------------------------------------------------------------

FITTED = Whitening().fit(X)
TENSORS = Whitening().fit(torch.tensor(X))
SPOILT = X.copy()
SPOILT[11, 3] = np.nan
TURNED = orthogonal()

BAD: dict[str, tuple[Any, type[Exception], str]] = {
    "unknown name": (
        lambda: whitening(COVARIANCE, "ica"),
        rg.CallError,
        "rotation: pca, zca, cholesky, pca-cor, zca-cor, or an orthogonal matrix; got 'ica'",
    ),
    "None": (
        lambda: whitening(COVARIANCE, None),
        rg.KindError,
        "rotation: pca, .* or an orthogonal matrix; got NoneType",
    ),
    "a number": (lambda: Whitening(3).fit(X), rg.KindError, "rotation: pca, .*got int"),
    "another size": (lambda: whitening(COVARIANCE, orthogonal(3)), rg.CallError, r"rotation: \(5, 5\), .*got \(3, 3\)"),
    "not orthogonal": (
        lambda: whitening(COVARIANCE, 2 * TURNED),
        rg.CallError,
        "an orthogonal matrix, .*R Rᵀ off by 3",
    ),
    "nearly orthogonal": (lambda: Whitening(TURNED + 1e-9).fit(X), rg.CallError, "R Rᵀ off by"),
    "NaN in R": (lambda: whitening(COVARIANCE, TURNED * np.nan), rg.CallError, "R Rᵀ off by nan"),
    "R of another library": (
        lambda: Whitening(TURNED).fit(torch.tensor(X)),
        rg.KindError,
        "rotation: comes from the library of covariance, torch; got numpy; convert it",
    ),
    "singular": (lambda: whitening(np.diag([1.0, 0.0])), rg.CallError, "covariance: of full rank, .*got rank 1 of 2"),
    "no shrinkage": (
        lambda: Whitening(shrinkage=0).fit(FEW),
        rg.CallError,
        r"got rank 2 of 5; shrink it with ledoit_wolf\(x\) or .*take more rows, or leave out columns that are",
    ),
    "nothing varies": (lambda: Whitening().fit(np.full((7, 3), 0.1)), rg.CallError, "got rank 0 of 3; shrink it"),
    "two rows": (lambda: Whitening().fit(X[:2]), rg.CallError, "got rank 1 of 5; shrink it"),
    "negative": (lambda: whitening(-COVARIANCE), rg.CallError, "covariance: no negative eigenvalue"),
    "leaning": (lambda: whitening(np.eye(3) + np.eye(3, k=1)), rg.CallError, "covariance: a symmetric matrix"),
    "shrinkage": (lambda: Whitening(shrinkage="oas").fit(X), rg.KindError, "shrinkage: .*got 'oas'"),
    "NaN": (lambda: Whitening().fit(SPOILT), ValueError, "Input X contains NaN"),
    "NaN in tensors": (
        lambda: Whitening().fit(torch.tensor(SPOILT)),
        rg.CallError,
        "X: finite numbers; .*in row 11; drop",
    ),
    "one axis": (lambda: Whitening().fit(torch.ones(5)), rg.CallError, r"X: a matrix, one vector in .*1 axes, \(5,\)"),
    "no axes": (lambda: Whitening().fit(torch.tensor(1.0)), rg.CallError, r"X: a matrix, .*0 axes, \(\)"),
    "one row": (lambda: Whitening().fit(torch.ones(1, 5)), rg.CallError, "X: at least 2 rows"),
    "complex": (
        lambda: Whitening().fit(torch.ones(5, 2) * 1j),
        rg.KindError,
        "X: real numbers; got dtype torch.complex64",
    ),
    "not fitted": (lambda: Whitening().transform(X), NotFittedError, "not fitted yet"),
    "width": (lambda: FITTED.transform(X[:, 1:]), ValueError, "X has 4 features, but Whitening is expecting 5"),
    "width of tensors": (
        lambda: TENSORS.inverse_transform(torch.ones(7, 4)),
        rg.CallError,
        r"X: \(rows, 5\), as it was fitted; got \(7, 4\)",
    ),
    "axes of tensors": (lambda: TENSORS.transform(torch.ones(5)), rg.CallError, r"X: \(rows, 5\), .*got \(5,\)"),
    "fitted on others": (
        lambda: TENSORS.transform(X),
        rg.KindError,
        "mean: comes from the library of X, numpy; got torch",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_refused(name: str) -> None:
    call, error, text = BAD[name]
    with pytest.raises(error, match=text):
        call()


def test_a_refused_rotation_does_not_warn_of_gradients() -> None:
    torch.set_warn_always(True)
    try:
        with pytest.raises(rg.CallError, match="R Rᵀ off by 3"):
            whitening(leaf(COVARIANCE), leaf(2 * TURNED))
    finally:
        torch.set_warn_always(False)


def test_without_scikit_learn_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sklearn.base", None)
    spec = importlib.util.spec_from_file_location("regard.geometry.whitened_again", whitened.__file__)
    assert spec is not None
    assert spec.loader is not None
    with pytest.raises(rg.MissingExtra, match=r'needs scikit-learn, .*pip install "regard\[geometry\]"'):
        spec.loader.exec_module(importlib.util.module_from_spec(spec))
