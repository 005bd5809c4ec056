"""Bilinear forms: xᵀ M y, its two parts, its rank, and what a pair contributes to it."""

from __future__ import annotations

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import regard as rg
from clouds import EVERY_KIND, Kind, leaf, metric, normal, numbers
from regard.geometry import BilinearForm, Signature, inner

WIDTH, KEY = 7, 3
M, WQ, WK = normal(WIDTH, WIDTH), normal(WIDTH, KEY, seed=1), normal(WIDTH, KEY, seed=2)
X, Y = normal(5, WIDTH, seed=3), normal(11, WIDTH, seed=4)
FORM = BilinearForm(M)

# -- queries and keys --------------------------------------------------------------------------------------------


def test_it_scores_as_queries_and_keys_do() -> None:
    form = BilinearForm.of(WQ, WK, scale=1 / math.sqrt(KEY))
    np.testing.assert_allclose(form.scores(X), rg.Attention().scores(X @ WQ, X @ WK), rtol=1e-12)
    np.testing.assert_allclose(form.scores(X, Y), (X @ WQ) @ (Y @ WK).T / math.sqrt(KEY), rtol=1e-12)
    np.testing.assert_allclose(rg.self_attention(X, M=form.matrix), rg.self_attention(X, WQ, WK), rtol=1e-12)
    np.testing.assert_allclose(BilinearForm.of(WQ, WK).matrix, WQ @ WK.T, rtol=1e-14)


def test_the_pair_asks_and_answers() -> None:
    assert FORM(X[1], Y[2]) == pytest.approx(X[1] @ M @ Y[2])
    assert FORM(X[1], Y[2]) != pytest.approx(FORM(Y[2], X[1]))
    np.testing.assert_allclose(FORM.scores(X, Y), X @ M @ Y.T, rtol=1e-12)
    np.testing.assert_allclose(FORM.scores(X, Y), FORM(X[:, None], Y), rtol=1e-12)
    np.testing.assert_allclose(FORM.scores(X), FORM.scores(X, X), rtol=1e-14)


@pytest.mark.parametrize("convert", [np.asarray, torch.asarray])
def test_as_a_formula(convert: Any) -> None:
    form, (q, k, v) = BilinearForm(convert(M)), (convert(normal(2, 3, 5, WIDTH, seed=seed)) for seed in (5, 6, 7))
    attention = rg.Attention(score=form.score("B"))
    np.testing.assert_allclose(attention.scores(q, k, **form.tables("B")), form.scores(q, k), rtol=1e-11)
    assert attention(q, k, v, **form.tables("B")).shape == v.shape
    assert FORM.score() == rg.parse('dot(table("M"))')
    assert FORM.tables()["M"] is FORM.matrix


# -- two parts ---------------------------------------------------------------------------------------------------


@given(st.sampled_from([1, 2, 5, 11]), st.integers(0, 999))
def test_what_both_directions_share_and_what_sets_them_apart(width: int, seed: int) -> None:
    form, (x, y) = BilinearForm(normal(width, width, seed=seed)), normal(2, width, seed=seed + 1)
    S, T = form.symmetric, form.antisymmetric
    np.testing.assert_allclose(S + T, form.matrix, atol=1e-15)
    np.testing.assert_array_equal(S, S.T)
    np.testing.assert_array_equal(T, -T.T)
    assert form(x, y) - form(y, x) == pytest.approx(2 * x @ T @ y, abs=1e-12)
    assert form(x, y) + form(y, x) == pytest.approx(2 * x @ S @ y, abs=1e-12)
    assert x @ T @ x == pytest.approx(0, abs=1e-12)
    share = np.linalg.norm(T) / np.linalg.norm(form.matrix)
    assert form.asymmetry == pytest.approx(share, abs=1e-15)


def test_asymmetry_goes_from_nothing_to_all() -> None:
    assert BilinearForm(FORM.symmetric).asymmetry == 0
    assert BilinearForm(FORM.antisymmetric).asymmetry == pytest.approx(1)
    assert BilinearForm(np.zeros((3, 3))).asymmetry == 0


# -- rank and signs ----------------------------------------------------------------------------------------------


@given(st.sampled_from([2, 3, 7, 23]), st.integers(1, 11), st.integers(0, 999), st.sampled_from(["float32", "float64"]))
def test_the_rank_is_at_most_that_of_the_keys(width: int, key: int, seed: int, dtype: str) -> None:
    wq, wk = normal(2, width, key, seed=seed).astype(dtype)
    form = BilinearForm.of(wq, wk)
    assert form.matrix.dtype == dtype
    assert form.rank == np.linalg.matrix_rank(form.matrix) == min(width, key)


def test_ranks_of_plain_matrices() -> None:
    assert BilinearForm(np.zeros((3, 3))).rank == 0
    assert BilinearForm(np.diag([5.0, -1e-3, 0.0])).rank == 2
    assert FORM.rank == WIDTH


def test_the_terms_are_the_singular_value_decomposition() -> None:
    u, sizes, v = BilinearForm.of(WQ, WK).terms
    np.testing.assert_allclose(u * sizes @ v.T, WQ @ WK.T, atol=1e-13)
    np.testing.assert_allclose(sizes, np.linalg.svd(WQ @ WK.T, compute_uv=False), atol=1e-13)
    for side in (u, v):
        np.testing.assert_allclose(side.T @ side, np.eye(WIDTH), atol=1e-13)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("seed", range(7))
def test_the_signs_of_random_projections(dtype: str, seed: int) -> None:
    wq, wk = normal(2, 64, 8, seed=seed).astype(dtype)
    assert BilinearForm.of(wq, wk).signature == Signature(positive=8, negative=8, zero=48)
    same = BilinearForm.of(wq, wq)
    assert same.signature == (8, 0, 56)
    assert BilinearForm(-same.matrix).signature == (0, 8, 56)
    assert not same.is_inner_product
    assert not BilinearForm.of(wq, wk).is_inner_product


def test_what_is_an_inner_product() -> None:
    form = BilinearForm(metric())
    assert form.is_inner_product
    assert form(X[0, :5], X[1, :5]) == pytest.approx(inner(X[0, :5], X[1, :5], metric()))
    assert BilinearForm(metric() + np.triu(np.full((5, 5), 1e-15), 1)).is_inner_product  # but for rounding
    assert not BilinearForm(metric() + np.triu(np.full((5, 5), 1e-6), 1)).is_inner_product
    assert not BilinearForm(-metric()).is_inner_product
    assert not BilinearForm(np.diag([1.0, 1.0, 0.0])).is_inner_product
    assert not BilinearForm(FORM.antisymmetric).is_inner_product


# -- contributions -----------------------------------------------------------------------------------------------


def sums_to_the_score(form: BilinearForm, x: Any, y: Any) -> None:
    part = form.contribution(x, y)
    score, leading = numbers(form(x, y)), np.broadcast_shapes(tuple(x.shape[:-1]), tuple(y.shape[:-1]))
    width, eps = form.matrix.shape[0], float(np.finfo(numbers(part.score).dtype).eps)
    assert numbers(part.entries).shape == (*leading, width, width)
    assert numbers(part.terms).shape == (*leading, width)
    tolerance = {"rtol": 0, "atol": 40 * width * eps * abs(numbers(part.entries)).sum((-1, -2)).max(initial=1)}
    np.testing.assert_array_equal(numbers(part.score), score)
    np.testing.assert_allclose(numbers(part.symmetric) + numbers(part.antisymmetric), score, **tolerance)
    np.testing.assert_allclose(numbers(part.entries).sum((-1, -2)), score, **tolerance)
    np.testing.assert_allclose(numbers(part.terms).sum(-1), score, **tolerance)


@given(st.sampled_from([1, 2, 5, 13]), st.integers(0, 999))
def test_every_way_to_take_it_apart_sums_to_the_score(width: int, seed: int) -> None:
    sums_to_the_score(BilinearForm(normal(width, width, seed=seed)), *normal(2, width, seed=seed + 1))


@pytest.mark.parametrize(
    "shapes", [((7,), (7,)), ((5, 7), (7,)), ((5, 1, 7), (11, 7)), ((2, 3, 7), (2, 1, 7)), ((0, 7), (7,))]
)
def test_contributions_broadcast(shapes: Any) -> None:
    x, y = (normal(*shape, seed=len(shape)) for shape in shapes)
    sums_to_the_score(FORM, x, y)
    found = FORM.contribution(X[:, None], Y)
    one = FORM.contribution(X[3], Y[5])
    for name in ("score", "symmetric", "antisymmetric", "entries", "terms"):
        np.testing.assert_allclose(getattr(found, name)[3, 5], getattr(one, name), rtol=1e-11, atol=1e-13)


def test_what_each_part_says() -> None:
    x, y = X[0], Y[0]
    part, swapped, (u, sizes, v) = FORM.contribution(x, y), FORM.contribution(y, x), FORM.terms
    assert part.symmetric == pytest.approx(swapped.symmetric)
    assert part.antisymmetric == pytest.approx(-swapped.antisymmetric)
    assert part.entries[2, 4] == pytest.approx(x[2] * M[2, 4] * y[4])
    assert part.terms[1] == pytest.approx(sizes[1] * (u[:, 1] @ x) * (v[:, 1] @ y))
    low = BilinearForm.of(WQ, WK).contribution(x, y)
    np.testing.assert_allclose(low.terms[KEY:], 0, atol=1e-13)


# -- libraries ---------------------------------------------------------------------------------------------------


@EVERY_KIND
def test_every_library_agrees(kind: Kind) -> None:
    form, expected = BilinearForm(kind(M)), BilinearForm(kind.rounded(M))
    x, y = kind.rounded(X), kind.rounded(Y)
    found = form.scores(kind(X), kind(Y))
    assert kind.made(found)
    np.testing.assert_allclose(numbers(found), expected.scores(x, y), atol=100 * kind.eps)
    part = form.contribution(kind(X), kind(Y[0]))
    assert all(kind.made(getattr(part, name)) for name in ("score", "symmetric", "antisymmetric", "entries", "terms"))
    sums_to_the_score(form, kind(X), kind(Y[0]))
    assert (form.rank, form.signature) == (expected.rank, expected.signature)
    assert form.asymmetry == pytest.approx(expected.asymmetry, rel=10 * kind.eps)


@pytest.mark.parametrize("convert", [np.asarray, torch.asarray])
def test_precisions_mix(convert: Any) -> None:
    for matrix, vectors in (("float32", "float64"), ("float64", "float32")):
        form, x = BilinearForm(convert(M.astype(matrix))), convert(X.astype(vectors))
        assert str(form(x, x).dtype).endswith("float64")
        assert str(form.scores(x).dtype).endswith("float64")
        assert str(form.contribution(x, x).terms.dtype).endswith("float64")
        assert str(form.contribution(x, x).symmetric.dtype).endswith("float64")
    half = BilinearForm(torch.eye(3, dtype=torch.bfloat16))
    assert half(torch.ones(3, dtype=torch.bfloat16), torch.ones(3, dtype=torch.bfloat16)).dtype == torch.float32
    assert BilinearForm([[0, 1], [0, 0]])([1, 2], [3, 4]) == 4


def test_gradients() -> None:
    x, y, m = leaf(normal(2, 3)), leaf(normal(2, 3, seed=1)), leaf(normal(3, 3, seed=2))
    assert torch.autograd.gradcheck(lambda x, y, m: BilinearForm(m)(x, y), (x, y, m))
    assert torch.autograd.gradcheck(lambda x, y, m: BilinearForm(m).scores(x, y), (x, y, m))
    assert torch.autograd.gradcheck(lambda x, y: BilinearForm.of(x.mT, y.mT, scale=0.5).symmetric, (x, y))
    parts = "symmetric antisymmetric entries terms".split()
    for name in parts:
        assert torch.autograd.gradcheck(
            lambda x, y, m, n=name: getattr(BilinearForm(m).contribution(x, y), n), (x, y, m)
        )


def test_numbers_of_a_matrix_with_a_gradient_do_not_warn() -> None:
    form = BilinearForm(leaf(M))
    torch.set_warn_always(True)
    try:
        assert (form.rank, form.signature, form.is_inner_product) == (FORM.rank, FORM.signature, False)
        assert form.asymmetry == pytest.approx(FORM.asymmetry)
    finally:
        torch.set_warn_always(False)


def test_jax_compiles_it() -> None:
    found = jax.jit(lambda m, x, y: BilinearForm(m).contribution(x, y).terms)(*map(jnp.asarray, (M, X[0], Y[0])))
    np.testing.assert_allclose(found, FORM.contribution(X[0], Y[0]).terms, rtol=1e-9, atol=1e-12)


# -- refused -----------------------------------------------------------------------------------------------------

SPOILT = M.copy()
SPOILT[4, 1] = np.nan
BAD: dict[str, tuple[Any, type[Exception], str]] = {
    "not square": (lambda: BilinearForm(WQ), rg.CallError, r"matrix: square, one row and one column .*got \(7, 3\)"),
    "one axis": (lambda: BilinearForm(M[0]), rg.CallError, r"matrix: square, .*got \(7,\)"),
    "empty": (lambda: BilinearForm(np.ones((0, 0))), rg.CallError, r"matrix: square, .*got \(0, 0\)"),
    "NaN": (lambda: BilinearForm(SPOILT), rg.CallError, "matrix: finite numbers; got NaN or infinity in row 4"),
    "text": (lambda: BilinearForm("M"), rg.KindError, "matrix: an array or nested lists of numbers; got str"),
    "complex": (lambda: BilinearForm(M * 1j), rg.KindError, "matrix: real numbers; got dtype complex128"),
    "projections": (
        lambda: BilinearForm.of(WQ, WK[:, 1:]),
        rg.CallError,
        r"Wq, Wk: two matrices of one shape, \(D, d_k\); got \(7, 3\) and \(7, 2\)",
    ),
    "projections of heads": (lambda: BilinearForm.of(WQ[None], WK[None]), rg.CallError, "Wq, Wk: two matrices of one"),
    "libraries": (
        lambda: BilinearForm.of(WQ, torch.tensor(WK)),
        rg.KindError,
        "Wk: comes from the library of Wq, numpy",
    ),
    "vectors of another": (
        lambda: FORM(torch.tensor(X), torch.tensor(X)),
        rg.KindError,
        "matrix: comes from the library",
    ),
    "width": (lambda: FORM(X[:, 1:], X[:, 1:]), rg.CallError, r"x, y: vectors of width 7, as the matrix; got \(5, 6\)"),
    "widths": (lambda: FORM(X, X[:, 1:]), rg.CallError, r"x, y: vectors of one width .*got \(5, 7\) and \(5, 6\)"),
    "width of scores": (lambda: FORM.scores(X[:, 1:]), rg.CallError, "x, y: vectors of width 7"),
    "width of a contribution": (
        lambda: FORM.contribution(X[0, 1:], Y[0, 1:]),
        rg.CallError,
        "x, y: vectors of width 7",
    ),
    "scores of a vector": (lambda: FORM.scores(X[0]), rg.CallError, r"x, y: one vector in each row; got \(7,\)"),
}


@pytest.mark.parametrize("name", BAD)
def test_refused(name: str) -> None:
    call, error, text = BAD[name]
    with pytest.raises(error, match=text):
        call()
