"""What the rows of the ledger measure with, held against other ways to find the same."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import linprog

from regard.claims.measure import (
    asymmetry,
    changed_bits,
    gap,
    grey,
    normal,
    on_every_engine,
    outside_hull,
    photograph,
    rotation,
)


def test_hull_agrees_with_a_linear_programme() -> None:
    cloud, points = normal(2, 13, 3), 1.5 * normal(3, 101, 3)
    conditions = np.vstack([cloud.T, np.ones(13)])
    inside = [linprog(np.zeros(13), A_eq=conditions, b_eq=[*point, 1]).success for point in points]
    assert 10 < sum(inside) < 91
    assert [outside_hull(point[None], cloud) <= 0 for point in points] == inside


def test_changed_bits_sees_the_sign_of_zero_and_no_change_in_nan() -> None:
    a = np.array([0.0, np.nan, 1.0])
    assert changed_bits(a, a.copy()) == 0
    assert changed_bits(a, np.array([-0.0, np.nan, 1.0])) == 1
    with pytest.raises(ValueError, match="of one shape and dtype"):
        changed_bits(a, a.astype(np.float32))


def test_a_nan_is_never_a_small_gap() -> None:
    assert np.isnan(gap([0.0, np.nan], [0.0, 0.0]))


def test_asymmetry_of_the_last_two_axes() -> None:
    whole = normal(5, 2, 7, 7)
    assert asymmetry(whole + np.swapaxes(whole, 1, 2)) == 0
    assert asymmetry(whole) > 0.1


def test_a_rotation_keeps_lengths_and_differs_with_its_seed() -> None:
    assert gap(rotation(2, 7) @ rotation(2, 7).T, np.eye(7)) < 1e-14
    assert gap(rotation(2, 7), rotation(3, 7)) > 0.1


@pytest.mark.parametrize("name", ["china", "flower"])
def test_a_photograph_in_colours_and_in_grey(name: str) -> None:
    colours, mean = photograph(name), grey(name)
    assert (colours.shape, colours.dtype, mean.shape, mean.dtype) == ((427, 640, 3), np.uint8, (427, 640), np.uint8)
    assert gap(mean.astype(float), colours.mean(axis=-1)) <= 0.5


def test_every_engine_gets_its_own_kind_and_comes_back_as_numpy() -> None:
    kinds = {}

    def note(array: object, engine: str) -> object:
        kinds[engine, type(array).__module__.partition(".")[0]] = array
        return array

    found = on_every_engine(note, normal(7, 3, 5))
    assert {"dense on lists", "python on lists", "dense on numpy", "python on numpy"} <= set(found)
    assert {("dense", "builtins"), ("python", "numpy")} <= set(kinds)
    assert all(isinstance(array, np.ndarray) and array.shape == (3, 5) for array in found.values())
