"""A wide drawing on a narrow page: large enough to read, moved within its figure; the page stands still."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from regard.course.figures.charts import curves_of, matrix_of
from regard.course.serving.front import document, sheet

WIDE = curves_of([0, 1, 2], {"up": [0, 1, 2]}, says="wide", across="x", up="y", width=640)
SMALL = matrix_of([[1, 0]], says="small")
SIZES = """(name) => { const figure = document.getElementById(name), drawing = figure.querySelector("svg");
  return [drawing.clientWidth, figure.clientWidth, figure.scrollWidth, document.documentElement.scrollWidth]; }"""


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> str:
    figures = "".join(
        f"<div class='lesson'><figure id='{name}'>{picture}<figcaption>what it shows</figcaption></figure></div>"
        for name, picture in (("wide", WIDE), ("small", SMALL))
    )
    path: Path = tmp_path_factory.mktemp("narrow") / "page.html"
    path.write_text(document("narrow", figures, f"<style>{sheet()}</style>"), "utf-8")
    return path.as_uri()


def sizes(browser: Any, address: str, width: int, name: str) -> list[int]:
    """Widths of the drawing, of its figure, of all that is in the figure, and of all that is in the page."""
    page = browser.new_page(viewport={"width": width, "height": 800})
    page.goto(address)
    found: list[int] = page.evaluate(SIZES, name)
    page.close()
    return found


def test_a_wide_drawing_is_moved_within_its_figure(browser: Any, address: str) -> None:
    drawing, figure, inside, page = sizes(browser, address, 390, "wide")
    assert drawing == inside == round(0.72 * 640)
    assert figure < inside
    assert page == 390


def test_what_has_room_is_not_moved(browser: Any, address: str) -> None:
    for width, name, wanted in ((1280, "wide", 640), (1280, "small", 102), (390, "small", 102)):
        drawing, figure, inside, page = sizes(browser, address, width, name)
        assert drawing == wanted
        assert figure == inside
        assert page == width
