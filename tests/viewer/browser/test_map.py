"""The map: the cell under the pointer is named with its weight however one moves; long maps come in tiles."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

CELL = r"^ ?[wk](\d+) ([\d\u202f]+)  →  [wk](\d+) ([\d\u202f]+)    ([^\s…]+)$"
PIXEL = r"^([\d\u202f]+)–([\d\u202f]+)  →  ([\d\u202f]+)–([\d\u202f]+)    max ([^ –]+)  mean ([^ –]+)$"
TOLD = ".view-map .map-told"


def cell(tab: Any, x: float, y: float) -> tuple[int, int, str]:
    """What is told of a place of the window."""
    tab.page.mouse.move(x, y)
    tab.settled()
    row, _, column, _, weight = tab.says(TOLD, CELL).groups()
    return int(row), int(column), weight


def across(tab: Any) -> float:
    """How many columns are seen."""
    return float(tab.link("zoom").split(",")[2])


def zoomed(tab: Any, act: Callable[[], object]) -> float:
    """How many columns are seen after something that zooms."""
    before = tab.link("zoom")
    act()
    tab.until("before => new URLSearchParams(location.hash.slice(1)).get('zoom') !== before", arg=before)
    tab.settled()
    return across(tab)


def close(read: Any, text: str, weight: float) -> None:
    """Three places after the point, or two digits of what is smaller."""
    assert read.number(text) == (read.as_shown(weight, 2) if "·" in text else pytest.approx(weight, abs=5.1e-4))


@pytest.mark.parametrize(("lens", "layer", "head"), [("middle", 1, 3), ("cross", 1, 2), ("sentence", 5, 11)])
def test_the_cell_under_the_pointer_is_told_with_its_weight(
    opened: Any, lenses: Any, read: Any, lens: str, layer: int, head: int
) -> None:
    tab = opened(lens, view="map", layer=layer, head=head)
    weights = lenses[lens].weights(layer, head)
    seen = set()
    for x, y in ((0.35, 0.3), (0.5, 0.62), (0.62, 0.45), (0.4, 0.75)):
        tab.page.mouse.move(*tab.at(".map-canvas", x, y))
        tab.settled()
        told = tab.says(TOLD, r"^.*\D(\d+)  →  .*\D(\d+)    ([^\s…]+)$")
        row, column = int(told[1]), int(told[2])
        close(read, told[3], weights[row, column])
        seen.add((row, column))
    assert len(seen) >= 3
    assert len({row for row, _ in seen}) > 2
    tab.page.mouse.click(*tab.at(".map-canvas", 0.62, 0.45))
    tab.until("location.hash.includes('query=')")
    tab.page.mouse.move(*tab.at(".map-canvas", 0.62, 0.45))
    tab.settled()
    told = tab.says(TOLD, r"^.*\D(\d+)  →  .*\D(\d+)    \S+$")
    tab.linked(query=told[1], key=told[2])


def test_the_map_moves_under_the_hand(opened: Any) -> None:
    tab = opened("middle", view="map", layer=1, head=3, zoom="26,26,40")
    x, y = tab.at(".map-canvas", 0.5, 0.5)
    here = cell(tab, x, y)
    wide = [zoomed(tab, lambda: tab.page.mouse.wheel(0, -100)) for _ in range(4)]  # the wheel keeps the cell
    assert wide == sorted(wide, reverse=True)
    assert wide[-1] < 0.6 * wide[0]
    assert cell(tab, x, y) == here
    tab.page.mouse.down()  # a drag takes the cell along
    tab.page.mouse.move(x - 60, y - 45, steps=5)
    tab.page.mouse.up()
    assert cell(tab, x - 60, y - 45) == here
    assert cell(tab, x, y) != here
    before, here = across(tab), cell(tab, x, y)
    near = zoomed(tab, lambda: tab.page.mouse.dblclick(x, y))  # a double click comes nearer
    assert near == pytest.approx(before / 3, rel=0.01)
    assert cell(tab, x, y) == here
    tab.page.keyboard.down("Shift")  # and with shift goes away
    far = zoomed(tab, lambda: tab.page.mouse.dblclick(x, y))
    tab.page.keyboard.up("Shift")
    assert far == pytest.approx(before, rel=0.01)
    tab.page.keyboard.press("0")
    tab.linked(zoom=None)


def test_keys_move_the_map_and_the_pair(opened: Any) -> None:
    tab = opened("middle", view="map", layer=1, head=3, query=20, key=10)
    tab.page.mouse.move(5, 5)
    for key, place in (
        ("ArrowRight", (20, 11)),
        ("ArrowDown", (21, 11)),
        ("ArrowLeft", (21, 10)),
        ("ArrowUp", (20, 10)),
    ):
        tab.page.keyboard.press(key)
        tab.linked(query=place[0], key=place[1])
    tab.page.keyboard.press("+")
    tab.until("location.hash.includes('zoom=')")
    first = tab.link("zoom").split(",")
    tab.page.keyboard.press("Shift+ArrowRight")
    tab.until("zoom => !location.hash.includes(zoom)", arg=first[0])
    second = tab.link("zoom").split(",")
    assert float(second[0]) > float(first[0])
    assert second[1:] == first[1:]
    tab.page.keyboard.press("-")
    tab.linked(zoom=None)


def test_near_cells_show_their_weights(opened: Any, lenses: Any, read: Any) -> None:
    tab = opened("middle", view="map", layer=2, head=4, zoom="20.5,30.5,8")
    weights = lenses["middle"].weights(2, 4)
    tab.until("performance.getEntriesByType('resource').some((one) => one.name.includes('/cells?'))")
    tab.settled()
    tab.page.evaluate("__drawn.length = 0")
    tab.page.mouse.move(*tab.at(".map-canvas", 0.5, 0.5))
    tab.settled()
    drawn = [
        one
        for one in tab.page.evaluate("__drawn")
        if re.fullmatch(r"(<?\.\d{3}|0\.000|1\.000|\.000|\d\S*·10\S+)", one[0])
    ]
    assert len(drawn) > 20
    box = tab.page.locator(".map-canvas").bounding_box()
    inside = [
        one
        for one in drawn
        if 0.3 * box["width"] < one[1] < 0.8 * box["width"] and 0.2 * box["height"] < one[2] < 0.8 * box["height"]
    ]
    for text, x, y in inside[:: max(1, len(inside) // 5)]:
        row, column, told = cell(tab, box["x"] + x, box["y"] + y)
        close(read, text, weights[row, column])
        close(read, told, weights[row, column])


def test_all_heads_make_one_map(opened: Any, lenses: Any, read: Any) -> None:
    tab = opened("middle", view="map", layer=1, head=3, over="mean", query=30, key=12)
    tab.says(TOLD, CELL)
    mean = lenses["middle"].weights(1).mean(0)
    row, column, weight = cell(tab, *tab.at(".map-canvas", 0.4, 0.7))
    close(read, weight, mean[row, column])


# -- a long text -----------------------------------------------------------------------------------------------------


def span(first: str, last: str) -> slice:
    bare = str.maketrans("", "", "\u202f")
    return slice(int(first.translate(bare)), int(last.translate(bare)) + 1)


def test_a_map_of_20_011_positions_becomes_exact(opened: Any, lenses: Any, read: Any) -> None:
    tab = opened("long", view="map", layer=0, head=0)
    tab.page.mouse.move(*tab.at(".map-canvas", 0.42, 0.7))
    told = tab.says(TOLD, PIXEL)  # before, what is known so far: max ≥ …, mean ≈ …
    rows, columns = span(told[1], told[2]), span(told[3], told[4])
    assert rows.stop - rows.start >= 16
    cells = lenses["long"].weights(0, 0, rows=rows, columns=columns).astype(np.float64)
    assert cells.max() > 0
    assert read.number(told[5]) == pytest.approx(cells.max(), rel=6e-3)
    assert read.number(told[6]) == pytest.approx(cells.mean(), rel=6e-3)
    tab.page.click(".map-bar [data-name=mean]")
    tab.until("location.hash.includes('mean')")
    asked = tab.page.evaluate("performance.getEntriesByType('resource').map((one) => one.name)")
    assert any("/tile?" in one for one in asked)
    assert not any("/matrix?" in one for one in asked)


def test_tiles_that_left_the_view_are_given_up(opened: Any, lenses: Any, read: Any) -> None:
    tab = opened("long", wait=".running .token")
    held: list[Any] = []
    given_up: list[str] = []
    tab.page.on("requestfailed", lambda request: given_up.append(request.url))
    tab.page.route(re.compile(r"/tile\?.*level=0&row=3[45]&"), lambda route: held.append(route))
    tab.open("long", wait="", view="map", zoom="3000,9000,300")
    tab.page.wait_for_selector(".map-overview:not([hidden])")
    tab.until("performance.getEntriesByType('resource').some((one) => one.name.includes('/tile?'))")
    tab.waits(lambda: held)
    tab.page.evaluate("location.hash = location.hash.replace(/zoom=[^&]*/, 'zoom=12000,19000,30')")
    tab.settled()
    first = [route.request.url for route in held]
    tab.waits(lambda: len(given_up) >= len(first))
    assert 1 <= len(first) <= 4
    assert sorted(url for url in given_up if "level=0" in url) == sorted(first)
    row, column, weight = cell(tab, *tab.at(".map-canvas", 0.5, 0.5))
    assert abs(row - 19_000) < 20
    assert abs(column - 12_000) < 20
    exact = lenses["long"].weights(0, 0, rows=slice(row, row + 1), columns=slice(column, column + 1))[0, 0]
    close(read, weight, exact)
