"""Each classic mistake is a formula that runs, and does what it is said to do."""

from __future__ import annotations

import numpy as np
import pytest

import regard as rg
from regard import d, dot, equal, i, j, sqrt, table, zoo
from regard.algebra.mistakes import MISTAKES, mistakes_of

RIGHT = rg.Attention(score=dot / sqrt(d) - (i - j), mask=j <= i)
Q, K, V = np.random.default_rng(0).standard_normal((3, 2, 3, 5, 7))
WRONG = mistakes_of(RIGHT)


def test_a_formula_with_all_parts_can_have_every_mistake() -> None:
    assert set(WRONG) == {mistake.name for mistake in MISTAKES}
    assert len({repr(formula) for formula in WRONG.values()}) == len(MISTAKES)


@pytest.mark.parametrize("name", WRONG)
def test_a_mistake_runs_and_shows(name: str) -> None:
    wrong = WRONG[name]
    assert isinstance(wrong, rg.Attention)
    assert rg.parse(repr(wrong)) == wrong
    y = wrong(Q, K, V)
    assert np.isfinite(y).all()
    if name != "finite mask value":  # differs only where a row admits nothing
        assert np.abs(y - RIGHT(Q, K, V)).max() > 1e-3
    np.testing.assert_allclose(y, wrong(Q, K, V, engine="python"), atol=1e-12)


def test_what_cannot_be_made_is_not_there() -> None:
    plain = mistakes_of(rg.Attention(score=dot))
    assert "no root of d" not in plain
    assert not [name for name in plain if "mask" in name]
    assert "query and key exchanged" not in plain, "a dot product looks the same from both sides"


def test_softmax_over_queries_sums_columns_to_one() -> None:
    weights = WRONG["softmax over queries"].weights(Q, K)
    np.testing.assert_allclose(weights.sum(-2), 1)
    assert np.abs(weights.sum(-1) - 1).max() > 0.1


def test_mask_after_the_weights_leaks_through_the_total() -> None:
    wrong, k = WRONG["mask after the weights"], K.copy()
    before = wrong.weights(Q, k)[..., 0, 0]
    k[..., 4, :] += Q[..., 0, :] * 5  # a key that row 0 must not see
    after = wrong.weights(Q, k)[..., 0, 0]
    assert (after < before / 2).all()
    assert (RIGHT.weights(Q, k)[..., 0, 0] == 1).all()


def test_masks_move_as_said() -> None:
    assert WRONG["strict mask"].mask == (j < i)
    assert WRONG["shifted mask"].mask == (j <= i + 1)
    assert WRONG["inverted mask"].mask == (j > i)
    assert mistakes_of(zoo.document_packing())["inverted mask"].mask == (j > i) | ~equal(
        table("ids")[rg.b, i], table("ids")[rg.b, j]
    )


def test_finite_mask_value_averages_an_empty_row() -> None:
    empty = rg.Attention(mask=j < i)
    wrong = mistakes_of(empty)["finite mask value"]
    np.testing.assert_array_equal(empty(Q, K, V)[..., 0, :], 0)
    np.testing.assert_allclose(wrong(Q, K, V)[..., 0, :], V.mean(-2), atol=1e-12)
