"""The map, the image, what-if and the exports in a real browser, against the numbers of the lens."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import numpy as np
import pytest

from regard.attention import Attention
from regard.viewer.entering.pictures import png
from regard.viewer.lenses import Lens
from regard.viewer.record import Axis, Captured
from regard.viewer.weighing.rollout import rollout
from regard.viewer.weighing.whatif import what_if
from regard.viewer.work import Stop
from resting import PATIENCE, WATCHED, settled

SHORT, LONG, GRID = 11, 1511, (3, 5)
ZOOM = "new URLSearchParams(location.hash.slice(1)).get('zoom')"
SVG = "{http://www.w3.org/2000/svg}"
drawn = np.random.default_rng(7)


def lens_of(
    places: int, layers: int = 2, heads: int = 3, special: int = 0, grid: tuple[int, int] | None = None
) -> Lens:
    arrays = [
        [drawn.normal(size=(1, heads, places, 13)).astype(np.float32) * 1.7 for _ in "qkv"] for _ in range(layers)
    ]
    axis = Axis("places", tuple(f" w{place}" for place in range(places)), frozenset(range(special)), grid)
    named: Any = {"query": "places", "key": "places"}
    calls = [Captured(f"layer.{n}", Attention(), q, k, v, **named) for n, (q, k, v) in enumerate(arrays)]
    image = None if grid is None else png(drawn.integers(0, 256, (grid[0] * 8, grid[1] * 8, 3)).astype(np.uint8))
    return Lens(calls, [{"places": axis}], title=f"{places} places", image=image)


LENSES = [lens_of(SHORT), lens_of(LONG, 1, 1), lens_of(GRID[0] * GRID[1] + 1, special=1, grid=GRID)]


class Page:
    """A page on one of the lenses; what goes wrong in it fails the test."""

    def __init__(self, browser: Any, address: str, lens: int, state: str) -> None:
        self.wrong: list[str] = []
        self.asked: list[str] = []
        self.tab = browser.new_page(viewport={"width": 1440, "height": 900}, reduced_motion="reduce")
        self.tab.set_default_timeout(1000 * PATIENCE)
        self.tab.add_init_script(WATCHED)
        self.tab.on("pageerror", lambda error: self.wrong.append(str(error)))
        self.tab.on("request", lambda request: self.asked.append(request.url))
        self.tab.goto(f"{address}#lens=given-{lens + 1}&{state}")
        self.tab.wait_for_selector(".view:not([hidden])")
        settled(self.tab)

    def box(self, selector: str) -> Any:
        return self.tab.wait_for_selector(selector).bounding_box()

    def says(self, selector: str, pattern: str) -> re.Match[str]:
        """Waits until an element's text is as it should be."""
        self.tab.wait_for_function(
            "([selector, pattern]) => new RegExp(pattern).test(document.querySelector(selector)?.textContent ?? '')",
            arg=[selector, pattern],
        )  # fmt: skip
        found = re.search(pattern, self.tab.text_content(selector))
        assert found
        return found

    def point(self, selector: str, x: float, y: float) -> None:
        """Points at a place of an element, given as shares, and waits until the page has drawn it."""
        self.tab.mouse.move(*self.at(selector, x, y))
        settled(self.tab)

    def told(self, pattern: str) -> re.Match[str]:
        return self.says(".view:not([hidden]) .map-told", pattern)

    def at(self, selector: str, x: float, y: float) -> tuple[float, float]:
        box = self.box(selector)
        return box["x"] + x * box["width"], box["y"] + y * box["height"]

    def link(self, name: str) -> str:
        return str(self.tab.evaluate("name => new URLSearchParams(location.hash.slice(1)).get(name) ?? ''", name))


@pytest.fixture
def page(request: pytest.FixtureRequest, browser: Any, address: str) -> Iterator[Page]:
    page = Page(browser, address, *request.param)
    yield page
    page.tab.close()
    assert page.wrong == []


def on(lens: int, state: str) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("page", [(lens, state)], indirect=True, ids=["page"])


CELL = r"w(\d+) \d+  →  w(\d+) \d+    ([^\s…]+)$"


def number(text: str) -> float:
    """What a weight on the page says."""
    front, _, power = text.partition("·10")
    value = float(front.replace("−", "-"))
    return value * 10 ** int(power.translate(str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁻", "0123456789-"))) if power else value


# -- the map -----------------------------------------------------------------------------------------------------


@on(0, "view=map&layer=1&head=2")
def test_a_pointed_cell_tells_its_weight_and_a_click_chooses_it(page: Page) -> None:
    page.told("")
    seen = set()
    for x, y in ((0.3, 0.4), (0.7, 0.55), (0.5, 0.8)):
        page.point(".map-canvas", x, y)
        query, key, weight = page.told(CELL).groups()
        wanted = LENSES[0].weights(1, 2)[int(query), int(key)]
        assert number(weight) == pytest.approx(wanted, abs=6e-4, rel=0.06)
        seen.add((query, key))
        page.tab.mouse.click(*page.at(".map-canvas", x, y))
        page.tab.wait_for_function("key => location.hash.includes(key)", arg=f"key={key}")
        assert (page.link("query"), page.link("key")) == (query, key)
    assert len(seen) == 3


@on(0, "view=map&zoom=5.5,5.5,7")
def test_zooming_keeps_the_cell_under_the_pointer_and_0_shows_the_whole(page: Page) -> None:
    page.told("")
    page.point(".map-canvas", 0.75, 0.6)
    before = page.told(CELL).groups()
    link = page.link("zoom")
    for _ in range(4):
        page.tab.mouse.wheel(0, -80)
        settled(page.tab)
    page.tab.wait_for_function(f"zoom => {ZOOM} !== zoom", arg=link)
    assert page.told(CELL).groups()[:2] == before[:2]
    assert page.link("zoom")
    page.tab.keyboard.press("0")
    page.tab.wait_for_function("() => !location.hash.includes('zoom')")
    page.tab.keyboard.press("+")
    page.tab.wait_for_function("() => location.hash.includes('zoom')")


@on(1, "view=map")
def test_a_long_map_comes_in_tiles_whose_pixels_are_maximum_and_mean(page: Page) -> None:
    page.told("")
    page.point(".map-canvas", 0.45, 0.6)
    top, bottom, left, right, most, mean = page.told(
        r"([\d\u202f]+)–([\d\u202f]+)  →  ([\d\u202f]+)–([\d\u202f]+)    max ([^ –]+)  mean ([^ –]+)$"
    ).groups()
    place = str.maketrans("", "", "\u202f")
    ends = ((top, bottom), (left, right))
    rows, columns = (slice(int(a.translate(place)), int(b.translate(place)) + 1) for a, b in ends)
    cells = LENSES[1].weights(0, 0, rows=rows, columns=columns)
    assert cells.size > 1
    assert number(most) == pytest.approx(cells.max(), rel=0.01)
    assert number(mean) == pytest.approx(cells.mean(), rel=0.01)
    assert any("/tile?" in url for url in page.asked)
    assert not any("/matrix?" in url for url in page.asked)


@on(1, "view=map&zoom=701.5,402.5,9")
def test_a_link_opens_the_map_where_it_stood_with_its_numbers(page: Page) -> None:
    page.tab.wait_for_selector(".map-overview:not([hidden])")
    page.point(".map-canvas", 0.55, 0.55)
    query, key, weight = page.told(CELL).groups()
    assert abs(int(query) - 402) < 9
    assert abs(int(key) - 701) < 9
    assert number(weight) == pytest.approx(LENSES[1].weights(0, 0)[int(query), int(key)], rel=0.06, abs=1e-6)
    page.tab.wait_for_function(
        "() => performance.getEntriesByType('resource').some(one => one.name.includes('/cells?'))"
    )
    assert any("level=0" in url for url in page.asked)


# -- the image ---------------------------------------------------------------------------------------------------


@on(2, "view=image&layer=1&head=1&sense=reads")
def test_a_pointed_patch_tells_what_it_reads(page: Page) -> None:
    page.says(".view-image .map-told", "reads most")
    for row, column in ((0, 3), (2, 1)):
        page.point(".image-over", (column + 0.5) / GRID[1], (row + 0.5) / GRID[0])
        told = page.says(".view-image .map-told", rf"^patch {row}, {column} reads most (.*)    (\S+)$")
        weights = LENSES[2].weights(1, 1)[1 + row * GRID[1] + column]
        best = int(weights.argmax())
        name = "w0" if best == 0 else f"patch {(best - 1) // GRID[1]}, {(best - 1) % GRID[1]}"
        assert told[1] == name
        assert number(told[2]) == pytest.approx(weights.max(), abs=2e-3)
    assert page.tab.text_content(".image-chips .chip").startswith("w0")


@on(2, "view=image&sense=reads")
def test_rollout_reaches_through_all_layers(page: Page) -> None:
    page.says(".view-image .map-told", "reads most")
    page.tab.click(".image >> text=rollout")
    page.tab.locator(".rollout input").fill("0.25")
    page.point(".image-over", 0.5, 0.5)
    told = page.says(".view-image .map-told", r"^patch 1, 2 receives most from patch (\d), (\d)    (\S+)$")
    place = 1 + GRID[1] + 2
    reached = rollout(LENSES[2], 0, place, "mean", 0.25, Stop())
    assert 1 + GRID[1] * int(told[1]) + int(told[2]) == int(np.argmax(reached))
    assert number(told[3]) == pytest.approx(max(reached), abs=2e-3)


# -- what if -----------------------------------------------------------------------------------------------------


@on(0, "view=map&layer=1&head=2")
def test_a_typed_formula_is_checked_and_every_view_follows(page: Page) -> None:
    page.says(".whatif .dials", "temperature")
    field = page.tab.locator(".formula-field")
    field.fill("softmax(dot / sqrt(dd))")
    page.says(".formula-wrong", "dd")
    assert page.tab.text_content(".formula-wrong mark") == "d"
    assert page.link("formula") == ""
    text = "softmax(dot / sqrt(d), mask=j <= i)"
    field.fill(text)
    page.says(".change", r"weights moved.*%")
    change = what_if(LENSES[0], 1, 2, 0, text, Stop())["change"]
    shown = re.findall(r"([\d.]+) %", page.tab.text_content(".change"))
    assert [float(one) / 100 for one in shown] == pytest.approx([change["weights"], change["output"]], rel=5e-3)
    rows = [int(one.text_content()) for one in page.tab.query_selector_all(".change-place")]
    assert rows == [one["row"] for one in change["rows"]]
    page.point(".map-canvas", 0.75, 0.35)
    page.told(r"w\d+ \d+  →  w\d+ \d+    \.000$")
    page.tab.click(".whatif header button")
    page.tab.wait_for_function("() => !location.hash.includes('formula')")


@on(0, "view=text")
def test_sliders_and_mistakes_write_the_formula(page: Page) -> None:
    page.says(".whatif .dials", "temperature")
    page.tab.locator(".dial input[aria-label=temperature]").fill("150")
    page.tab.wait_for_function("() => location.hash.includes('formula')")
    assert page.tab.input_value(".formula-field") == page.link("formula") != ""
    page.tab.click(".whatif header button")
    page.tab.wait_for_function("() => !location.hash.includes('formula')")
    page.tab.click(".mistakes >> text=no root of d")
    page.says(".mistake-says", "saturates")
    page.tab.wait_for_function("() => location.hash.includes('softmax%28dot%29')")


# -- exports -----------------------------------------------------------------------------------------------------


def saved(page: Page, kind: str, folder: Path) -> tuple[str, bytes]:
    page.tab.click(".export summary")
    with page.tab.expect_download() as download:
        page.tab.click(f".export-list >> text={kind}")
    path = folder / kind
    download.value.save_as(path)
    return download.value.suggested_filename, path.read_bytes()


@on(0, "view=map&layer=1&head=2")
def test_a_map_is_saved_as_pixels_and_as_cells(page: Page, tmp_path: Path) -> None:
    page.point(".map-canvas", 0.5, 0.5)
    page.told(CELL)
    name, content = saved(page, "PNG", tmp_path)
    assert name == "11-places-layer-1-head-2-map.png"
    assert content.startswith(b"\x89PNG")
    name, content = saved(page, "SVG", tmp_path)
    drawing = ET.fromstring(content)
    cells = [one for one in drawing.iter(f"{SVG}rect") if one.get("stroke-width") == "0.5"]
    assert len(cells) == SHORT * SHORT
    assert {one.text for one in drawing.iter(f"{SVG}text")} >= {"w0", "w10"}


@on(0, "view=text&layer=1&head=2&query=4&key=2")
def test_the_text_is_saved_as_letters(page: Page, tmp_path: Path) -> None:
    page.says(".view-text", "w10")
    name, content = saved(page, "SVG", tmp_path)
    assert name == "11-places-layer-1-head-2-text.svg"
    drawing = ET.fromstring(content)
    assert b"oklch" not in content
    assert {one.text for one in drawing.iter(f"{SVG}text")} >= {f"w{place}" for place in range(SHORT)}
    assert len(list(drawing.iter(f"{SVG}path"))) > SHORT
    assert saved(page, "PNG", tmp_path)[1].startswith(b"\x89PNG")
