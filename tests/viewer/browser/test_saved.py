"""What is saved: PNG and SVG of what is shown, and the lens as one file that asks nobody for anything."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import numpy as np
import pytest

SVG = "{http://www.w3.org/2000/svg}"


def saved(tab: Any, kind: str, folder: Path) -> tuple[str, Path]:
    tab.page.click(".export summary")
    with tab.page.expect_download() as download:
        tab.page.click(f".export-list >> text={kind}")
    path = folder / download.value.suggested_filename
    download.value.save_as(path)
    return download.value.suggested_filename, path


@pytest.mark.parametrize(
    ("lens", "view"), [("sentence", "text"), ("middle", "map"), ("image", "image"), ("cross", "text")]
)
def test_a_view_is_saved_as_pixels_and_as_shapes(
    opened: Any, lenses: Any, tmp_path: Path, lens: str, view: str
) -> None:
    image = pytest.importorskip("PIL.Image", reason="Pillow opens what was saved: pip install pillow")
    tab = opened(lens, view=view, layer=1, query=4, key=3)
    tab.settled()
    title = {"sentence": "a-sentence", "image": "picture"}.get(lens, lens)
    name, path = saved(tab, "PNG", tmp_path)
    assert name == f"{title}-layer-1-head-0-{view}.png"
    with image.open(path) as picture:
        picture.load()
        assert min(picture.size) > 200
        assert len(picture.convert("RGB").getcolors(2**24)) > 20
    name, path = saved(tab, "SVG", tmp_path)
    assert name == f"{title}-layer-1-head-0-{view}.svg"
    drawing = ET.parse(path).getroot()
    assert drawing.tag == f"{SVG}svg"
    assert not [one for one in drawing.iter() if one.tag in (f"{SVG}script", f"{SVG}foreignObject")]
    texts = {one.text for one in drawing.iter(f"{SVG}text")}
    if view != "image":
        labels = [label.strip() for label in lenses[lens].axes[0]["text"].labels]
        assert texts >= set(labels[:1] if view == "map" else labels)  # of many rows a map tells some
        assert len(texts & set(labels)) >= min(len(set(labels)), 20)


def test_near_cells_are_saved_with_their_weights(opened: Any, lenses: Any, tmp_path: Path) -> None:
    tab = opened("cross", view="map", layer=1, head=2, query=2, key=3)
    tab.settled()
    drawing = ET.parse(saved(tab, "SVG", tmp_path)[1]).getroot()
    cells = [one for one in drawing.iter(f"{SVG}rect") if one.get("stroke-width") == "0.5"]
    weights = lenses["cross"].weights(1, 2)
    assert len(cells) == weights.size
    light = np.array([sum(int(one.get("fill", "#000000")[at : at + 2], 16) for at in (1, 3, 5)) for one in cells])
    assert light.argmin() == weights.reshape(-1).argmax()


# -- one file --------------------------------------------------------------------------------------------------------


@pytest.fixture
def alone(opened: Any, tmp_path: Path) -> Any:
    """The page that was saved, opened from the disk; its requests are kept."""
    first = opened("hostile")
    _, path = saved(first, "HTML", tmp_path)
    first.page.close()
    tab = opened()
    asked: list[str] = []
    tab.page.on("request", lambda request: asked.append(request.url))
    tab.page.goto(path.as_uri())
    tab.page.wait_for_selector(".pair-weight b")
    tab.settled()
    return tab, asked


def test_one_file_shows_the_same_weights_and_asks_nobody(alone: Any, lenses: Any, read: Any) -> None:
    tab, asked = alone
    lens = lenses["hostile"]
    tab.page.click(".running .token[data-at='7']")
    tab.page.click(".running .token[data-at='2']", modifiers=["Shift"])
    tab.until("document.querySelector('.pair-words').textContent.includes(']]>')")
    tab.until("document.querySelector('.pair-words').textContent.includes('&amp;')")
    assert read.number(tab.text(".pair-weight b")) == read.as_shown(lens.weights(0, 0)[7, 2])
    tab.page.mouse.move(720, 5)
    tab.settled()
    row = [read.number(text) if text else 0 for text in tab.page.locator(".threads-key .num").all_text_contents()]
    weights = lens.weights(0, 0)[7]
    np.testing.assert_allclose(row, np.where(weights >= 0.005, weights, 0), atol=6e-4)
    tab.page.click(".wall-cell[data-layer='1'][data-head='2']")
    tab.says("h1", "^Layer 1, head 2")
    tab.page.click(".tab[data-view=map]")
    tab.page.mouse.move(*tab.at(".map-canvas", 0.5, 0.5))
    tab.settled()  # the exact weights of near cells stand in for the tile's
    told = tab.says(".view-map .map-told", r"^.* (\d+)  →  .* (\d+)    ([^\s…]+)$")
    assert read.number(told[3]) == pytest.approx(lens.weights(1, 2)[int(told[1]), int(told[2])], abs=6e-4)
    tab.page.select_option(".wall-order", "broad")
    tab.until("document.querySelectorAll('.wall-ranked .wall-caption b:not(:empty)').length === 6")
    assert [url for url in asked if not url.startswith(("file:", "data:", "blob:"))] == []
    assert sum(url.startswith("file:") for url in asked) == 1


def test_one_file_keeps_labels_as_text_and_says_what_it_cannot(alone: Any) -> None:
    tab, _ = alone
    assert tab.page.evaluate("window.hit") is None
    assert tab.text(".running .token[data-at='0']") == "<script>window.hit=1</script>"
    assert tab.page.locator(".regard :is(script, img)").count() == 0
    assert tab.page.title() == "<b>title</b> \"'& · regard"
    tab.says(".what-if", "another formula.*regard lens --open")
    assert not tab.page.is_visible(".formula-field")
    tab.page.click(".export summary")
    assert "HTML" not in tab.page.locator(".export-list").inner_text()
    tab.page.click(".wall-cell[data-layer='1'][data-head='2']")
    tab.says(".pair-title", "no more than was saved with it.*regard lens --open")
