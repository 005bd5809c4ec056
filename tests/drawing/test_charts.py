"""Charts from numbers: everything lies where its number says, and every text is escaped."""

from __future__ import annotations

import re
from xml.etree import ElementTree as ET

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from regard._drawing.axes import Axis, axes, round_ticks
from regard._drawing.charts import Area, Columns, Dots, Line, Mark, Upright, bars, chart, shades
from regard._drawing.svg import Drawing, Frame

sizes = st.floats(-1e6, 1e6)
HOSTILE = "<script>&\"'"
FRAME = Frame(46, 26, 100, 100, (0, 10), (0, 100))


def read(markup: str) -> ET.Element:
    return ET.fromstring(markup)


def drawn(mark: Mark) -> ET.Element:
    """What a mark adds to a drawing."""
    drawing = Drawing(160, 166)
    mark.draw(drawing, FRAME)
    return read(drawing.svg(""))


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


def test_ticks_are_said_in_full() -> None:
    assert list(round_ticks(-10_000, 10_000).values()) == ["−10000", "−5000", "0", "5000", "10000"]


def test_a_number_that_is_marked_stands_where_it_lies() -> None:
    drawing = Drawing(160, 166)
    axes(drawing, FRAME, Axis("across", 0, 10, {2: "two"}), Axis("up", 0, 100, {75: "most"}))
    places = {text.text: (text.get("x"), text.get("y")) for text in read(drawing.svg("")).iter("text")}
    assert places["two"][0] == "66"
    assert places["most"][1] == "51"
    assert {"across", "up"} <= set(places)


def test_marks_are_drawn_where_their_numbers_lie() -> None:
    for mark in (Line([0, 10], [0, 100]), Area([0, 10], [0, 100]), Dots([0, 10], [0, 100])):
        (path,) = drawn(mark).iter("path")
        assert numbers((path.get("d") or "").replace("h.01", "")) == [46, 126, 146, 26]
    (column,) = drawn(Columns([5], [50], wide=2)).iter("rect")
    assert [column.get(name) for name in ("x", "y", "width", "height")] == ["86", "76", "20", "50"]
    (line,) = drawn(Upright(5, "half")).iter("line")
    assert [line.get(name) for name in ("x1", "y1", "x2", "y2")] == ["96", "26", "96", "126"]


def test_a_column_below_zero_hangs_from_it() -> None:
    drawing = Drawing(160, 166)
    Columns([5], [-1]).draw(drawing, Frame(0, 0, 100, 100, (0, 10), (-2, 2)))
    (column,) = read(drawing.svg("")).iter("rect")
    assert (column.get("y"), column.get("height")) == ("50", "25")


def test_bars_are_as_long_as_their_numbers() -> None:
    rects = list(read(bars({"one": 1, "two": 2, "four": 4}, {"two"})).iter("rect"))
    assert [rect.get("fill") for rect in rects] == ["var(--ink)", "var(--accent)", "var(--ink)"]
    one, two, four = (float(rect.get("width", "nan")) for rect in rects)
    assert two / one == pytest.approx(2, rel=1e-2)
    assert four / one == pytest.approx(4, rel=1e-2)
    assert 200 < four < 380 - 40, "the longest fills the room, and leaves some for its number"


def test_shades_have_a_cell_for_each_number_that_is_not_small() -> None:
    matrix = np.array([[1.0, -1.0, 0.0], [0.5, -0.5, 0.01]])
    paths = {
        (path.get("fill"), path.get("opacity")): path.get("d") or "" for path in read(shades(matrix, "m")).iter("path")
    }
    assert {key: cells.count("M") for key, cells in paths.items()} == {
        ("var(--accent)", "1"): 1,
        ("var(--ink)", "1"): 1,
        ("var(--accent)", "0.4"): 1,
        ("var(--ink)", "0.4"): 1,
    }
    assert paths["var(--ink)", "1"] == "M7 0h7v7h-7z"


def test_every_text_is_escaped() -> None:
    marks = Dots([0], [0], names=[HOSTILE]), Upright(0, HOSTILE)
    for markup, count in (
        (chart(Axis(HOSTILE, 0, 1, {0: HOSTILE}), Axis(HOSTILE, 0, 1), *marks, title=HOSTILE), 6),
        (bars({HOSTILE: 1}), 1),
        (shades([[1]], HOSTILE), 1),
    ):
        assert "<script" not in markup
        assert [element.text for element in read(markup).iter()].count(HOSTILE) == count
