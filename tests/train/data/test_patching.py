"""Patches: they fill the image, and are neither few nor many; where none are, a size nearby is told."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.train.data.patching import fitting, patch_for

sides = st.integers(1, 300)
COUNTS = [(rows, columns) for rows in range(1, 65) for columns in range(1, 65) if 16 <= rows * columns <= 64]
FILLED = np.array([(p * rows, p * columns) for p in range(1, 301) for rows, columns in COUNTS])


@given(sides, sides)
def test_patches_fill_the_fitting_size(height: int, width: int) -> None:
    high, wide = fitting(height, width)
    patch = patch_for(height, width)
    assert high % patch == wide % patch == 0
    assert high * wide < 16 or 16 <= (high // patch) * (wide // patch) <= 64
    assert patch_for(high, wide) == patch
    assert fitting(high, wide) == (high, wide)


@given(st.integers(8, 300), st.floats(0.5, 2))
def test_a_fitting_size_is_near(height: int, ratio: float) -> None:
    width = max(8, round(height * ratio))
    high, wide = fitting(height, width)
    assert abs(high - height) / height + abs(wide - width) / width < 0.25


@given(sides, sides)
def test_no_fitting_size_is_nearer(height: int, width: int) -> None:
    high, wide = fitting(height, width)
    change = abs(high - height) / height + abs(wide - width) / width
    others = np.abs(FILLED - [height, width]) / [height, width]
    assert height * width < 16 or change <= others.sum(1).min() + 1e-9


@pytest.mark.parametrize(
    ("size", "patch"),
    [
        ((8, 8), 2),
        ((28, 28), 4),
        ((32, 32), 4),
        ((64, 64), 8),
        ((224, 224), 28),
        ((7, 7), 1),
        ((3, 2), 1),
        ((30, 20), 5),
    ],
)
def test_usual_sizes(size: tuple[int, int], patch: int) -> None:
    assert fitting(*size) == size
    assert patch_for(*size) == patch


@pytest.mark.parametrize(("size", "near"), [((29, 29), (28, 28)), ((97, 97), (96, 96)), ((13, 11), (12, 10))])
def test_primes_have_a_size_nearby(size: tuple[int, int], near: tuple[int, int]) -> None:
    assert fitting(*size) == near
