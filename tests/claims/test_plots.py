"""Figures from numbers: everything lies where its number says, and every text is escaped."""

from __future__ import annotations

import re
from xml.etree import ElementTree as ET

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from regard.claims.plots import (
    Area,
    Axis,
    Columns,
    Dots,
    Frame,
    Line,
    Upright,
    bars,
    chart,
    grid,
    heat,
    round_ticks,
    short,
    side_by_side,
)

sizes = st.floats(-1e6, 1e6)
HOSTILE = "<script>&\"'"


def read(markup: str) -> ET.Element:
    return ET.fromstring(markup)


def numbers(path: str | None) -> list[float]:
    assert path is not None
    return [float(number) for number in re.findall(r"-?\d+(?:\.\d+)?", path)]


@given(sizes, st.floats(1e-3, 1e6))
def test_ticks_are_few_round_and_inside(low: float, span: float) -> None:
    assume(span > 1e-6 * abs(low))
    ticks = list(round_ticks(low, low + span))
    assert 2 <= len(ticks) <= 8
    assert all(low - 1e-6 * span <= tick <= low + span * (1 + 1e-6) for tick in ticks)
    steps = np.diff(ticks)
    assert np.allclose(steps, steps[0], rtol=1e-4)
    assert f"{steps[0]:.0e}"[0] in "125"


@given(sizes, st.floats(1e-3, 1e6), st.floats(0, 1))
def test_a_number_lies_between_the_ends_of_its_axis(low: float, span: float, share: float) -> None:
    assume(span > 1e-6 * abs(low))
    axis = Axis("", low, low + span)
    frame = Frame(axis, axis)
    value = low + share * (axis.high - low)
    assert frame.x(value) == pytest.approx(frame.left + share * (380 - frame.left - frame.right), abs=1e-3)
    assert frame.y(value) == pytest.approx(236 - frame.bottom - share * (236 - frame.top - frame.bottom), abs=1e-3)


def test_marks_are_drawn_where_their_numbers_lie() -> None:
    frame = Frame(Axis("", 0, 10), Axis("", 0, 100), width=160, height=166)  # 100 pixels both ways
    marks = [Line([0, 10], [0, 100]), Area([0, 10], [0, 100]), Dots([0, 10], [0, 100])]
    for mark in marks:
        path = re.search(r' d="([^"]*)"', mark.draw(frame))
        assert path is not None
        assert numbers(path[1].replace("h0", "")) == [46, 126, 146, 26]
    column = re.search(r' d="([^"]*)"', Columns([5], [50], wide=2).draw(frame))
    assert column is not None
    assert numbers(column[1]) == [86, 126, 76, 106, 126]
    assert 'd="M96.0 26V126"' in Upright(5, "half").draw(frame)


def test_bars_are_as_long_as_their_numbers() -> None:
    drawn = read(bars({"one": 1, "two": 2, "four": 4}, {"two"}))
    found = [(rect.get("class"), float(rect.get("width", "nan"))) for rect in drawn.iter("rect")]
    assert [tone for tone, _ in found] == ["columns ink", "columns accent", "columns ink"]
    assert found[1][1] / found[0][1] == pytest.approx(2, rel=1e-2)
    assert found[2][1] / found[0][1] == pytest.approx(4, rel=1e-2)
    assert 200 < found[2][1] < 380 - 40, "the longest fills the room, and leaves some for its number"


def test_heat_has_a_cell_for_each_number_that_is_not_small() -> None:
    matrix = np.array([[1.0, -1.0, 0.0], [0.5, -0.5, 0.01]])
    paths = {
        (path.get("class"), path.get("opacity")): path.get("d") or "" for path in read(heat(matrix, "m")).iter("path")
    }
    assert {key: cells.count("M") for key, cells in paths.items()} == {
        ("columns accent", "1"): 1,
        ("columns ink", "1"): 1,
        ("columns accent", "0.4"): 1,
        ("columns ink", "0.4"): 1,
    }
    assert paths["columns ink", "1"] == "M7 0h7v7h-7z"


def test_every_text_is_escaped() -> None:
    drawn = [
        chart(
            Axis(HOSTILE, 0, 1, {0: HOSTILE}), Axis(HOSTILE, 0, 1), Dots([0], [0], names=[HOSTILE]), Upright(0, HOSTILE)
        ),
        bars({HOSTILE: 1}),
        heat([[1]], HOSTILE),
        grid([HOSTILE], [[HOSTILE, HOSTILE]]),
    ]
    joined = side_by_side(*drawn)
    assert "<script" not in joined
    texts = [element.text for element in read(joined).iter() if element.text]
    assert texts.count(HOSTILE) == 10


@pytest.mark.parametrize(("value", "shown"), [(-0.5, "−0.5"), (12345.0, "1.23e+04"), (0.0, "0"), (2.0, "2")])
def test_short(value: float, shown: str) -> None:
    assert short(value) == shown
