"""Drawings: numbers become places, words are escaped, shades stay in range, and a page knows how wide a drawing is."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard._drawing.svg import Drawing, Frame, shade


def test_a_frame_turns_numbers_into_places() -> None:
    frame = Frame(10, 20, 100, 50, (0, 2), (-1, 1))
    assert frame((0, -1)) == (10, 70)
    assert frame((2, 1)) == (110, 20)
    assert frame.places([1, 0], [0, -1]) == [(60, 45), (10, 70)]


def test_words_of_a_picture_are_escaped() -> None:
    drawing = Drawing(10, 10)
    drawing.text((0, 0), "<b>")
    assert "<b>" not in drawing.svg('"<i>"')
    assert "<i>" not in drawing.svg("<i>")


def test_a_page_knows_the_size_of_a_drawing() -> None:
    assert 'viewBox="0 0 640 300" width="640" height="300" style="--wide:640px"' in Drawing(640, 300).svg("")


@given(st.floats(-2, 3))
def test_shades_stay_between_paper_and_full(share: float) -> None:
    percent = float(shade(share).partition(") ")[2].partition("%")[0])
    assert 0 <= percent <= 100
    assert percent == pytest.approx(100 * min(max(share, 0), 1), abs=0.06)
