"""The page without Python: one script, many places, and no text that becomes markup."""

from __future__ import annotations

import json
import re
from typing import Any
from xml.etree import ElementTree as ET

import numpy as np
import pytest

pytest.importorskip("anywidget", reason='the widgets need it: pip install "regard[learn]"')

from regard.course.widgets import Plane, mount_html, shared_html, still_html
from regard.course.widgets.pictures import picture_of

from .conftest import WORDS, made

HOSTILE = "</script><img src=x onerror=window.hit=1>"


def test_a_place_holds_the_state_of_its_widget(widget: Any) -> None:
    html = mount_html(widget)
    (text,) = re.findall(r'<script type="application/json">(.*?)</script>', html)
    state = json.loads(text)
    assert state == json.loads(json.dumps({
        "kind": widget.kind, "given": widget.given, "at": widget.at, "found": widget.found, "still": True,
    }))  # fmt: skip
    assert html.startswith(f'<div data-hand="{widget.kind}">')


def test_a_text_cannot_end_the_script() -> None:
    html = mount_html(Plane([[1, 0]], labels=[HOSTILE]))
    assert html.count("</script") == 1
    assert "<img" not in html


def test_without_a_script_its_first_state_is_drawn(widget: Any) -> None:
    figure = ET.fromstring(re.findall(r"<figure.*</figure>", mount_html(widget))[0])
    assert figure.get("class") == "at-rest"
    picture, caption = figure
    assert picture.findtext("title") == caption.text
    words = {text.text for text in picture.iter("text")}
    assert words >= set(widget.given.get("tokens", WORDS if widget.kind != "ellipse" else ()))


@pytest.mark.parametrize(("kind", "count"), [("rows", 5), ("matrix", 25 + 1), ("mistakes", 25)])
def test_a_cell_for_each_weight(kind: str, count: int) -> None:
    assert picture_of(made(kind)).count("<rect") == count


def test_the_nearest_points_are_joined_with_the_ring() -> None:
    ellipse = made("ellipse")
    for way, tone in (("euclidean", "slate"), ("mahalanobis", "accent")):
        point = ellipse.given["points"][ellipse.found[way]["nearest"]]
        (line,) = re.findall(rf'<path d="([^"]*)" fill="none" stroke="var\(--{tone}\)"', picture_of(ellipse))
        ends = np.array(line.removeprefix("M").replace("L", "").split(), float).reshape(2, 2)
        unit = 320 / (2 * ellipse.given["reach"])  # one scale both ways
        moved = unit * np.subtract(point, ellipse.at["query"])
        np.testing.assert_allclose(ends[1] - ends[0], moved * [1, -1], atol=0.02)


def test_what_is_no_number_is_drawn_as_zero() -> None:
    rows = made("rows")
    rows.found = {**rows.found, "weights": [None, 0.25, 0.75, 0.0, 0.0]}
    assert "nan" not in picture_of(rows)


def test_the_script_is_there_once_and_whole() -> None:
    shared = shared_html()
    assert shared.count('<script type="module">') == shared.count("</script>") == 1
    assert "mountHands(document)" in shared
    assert not re.search(r"^(import|export)\b", shared, re.MULTILINE)
    assert "https://" not in shared.replace("https://www.w3.org", "")


def test_one_widget_alone_has_all_that_it_needs(widget: Any) -> None:
    assert still_html(widget) == f"{mount_html(widget)}\n{shared_html()}"
