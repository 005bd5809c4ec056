"""With the keyboard alone: everything is reached, what has the focus is seen, and all of it has a name."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

FOCUSED = """() => {
  const one = document.activeElement;
  if (!one || one === document.body) return null;
  const look = getComputedStyle(one), box = one.getBoundingClientRect();
  const ringed = look.outlineStyle !== 'none' && parseFloat(look.outlineWidth) > 0;
  const lined = one.matches('input, textarea') && look.borderBottomStyle !== 'none';
  const label = one.getAttribute('aria-label') ?? one.textContent.trim();
  return { name: one.className || one.tagName, label, seen: ringed || lined,
    inside: box.bottom > 0 && box.top < innerHeight && box.right > 0 && box.left < innerWidth };
}"""
REACHED = (
    "select.title", "export", "theme", "Keys and help", "wall-order", "wall-search", "wall-cell", "measure",
    "tab", "this head", "log", "running", "layer-row", "pair-formula", "rung", "formula-field", "temperature",
    "no root of d",
)  # fmt: skip


def walk(tab: Any) -> list[dict[str, Any]]:
    """Everything that Tab reaches, once around, from the top: the first time it may begin at what was scrolled to."""
    tab.page.evaluate("document.activeElement.blur()")
    list(steps(tab))
    return list(steps(tab))


def steps(tab: Any) -> Iterator[dict[str, Any]]:
    """What Tab reaches until it leaves the page."""
    for _ in range(200):
        tab.page.keyboard.press("Tab")
        one = tab.page.evaluate(FOCUSED)
        if one is None:
            return
        yield one


def test_tab_reaches_everything_and_shows_where_it_is(opened: Any) -> None:
    tab = opened("sentence", layer=1, head=2, query=4, key=6)
    tab.page.wait_for_selector(".measure")
    tab.page.wait_for_selector(".dial")
    tab.settled()
    found = walk(tab)
    assert 40 < len(found) < 150
    said = [f"{one['name']} {one['label']}" for one in found]
    for wanted in REACHED:
        assert any(wanted.removeprefix("select.") in one for one in said), wanted
    assert [one for one in found if not one["label"]] == []
    assert [one["name"] for one in found if not one["seen"]] == []
    assert [one["name"] for one in found if not one["inside"]] == []
    assert sum("wall-cell" in one for one in said) == 1  # one of the wall; the others are reached by [ and ]
    tab.page.keyboard.press("m")
    tab.linked(view="map")
    tab.settled()
    assert any("map-canvas" in one["name"] for one in walk(tab))


def test_keys_do_what_the_help_says(opened: Any, lenses: Any) -> None:
    tab = opened("middle", layer=1, head=2, query=9, key=4)
    order = np.argsort(-lenses["middle"].weights(1, 2)[9], kind="stable")
    place = order.tolist().index(4)
    for key, state in (
        ("ArrowDown", {"key": order[place + 1]}), ("ArrowUp", {"key": order[place]}), ("ArrowRight", {"query": 10}),
        ("ArrowLeft", {"query": 9}), ("Shift+ArrowRight", {"key": 5}), ("Shift+ArrowLeft", {"key": 4}),
        ("]", {"head": 3}), ("[", {"head": 2}),
        ("}", {"layer": 2}), ("{", {"layer": 1}), ("m", {"view": "map"}), ("t", {"view": "text"}),
        ("a", {"over": "mean"}), ("x", {"over": "max"}), ("h", {"over": None}), ("l", {"scale": "log"}),
        ("l", {"scale": "linear"}), ("l", {"scale": None}),
    ):  # fmt: skip
        tab.page.keyboard.press(key)
        tab.linked(**state)
    tab.page.keyboard.press("ArrowRight")
    row = lenses["middle"].weights(1, 2)[10]
    best = int(row.argmax())
    tab.says(".line", rf"^w10 reads w{best} {row[best]:.2f}, ")
    tab.page.keyboard.press("/")
    tab.page.keyboard.type("2.2")
    tab.says(".wall-head .num", "^1 of 15$")
    tab.page.keyboard.press("Escape")
    assert tab.page.evaluate("document.activeElement.tagName") == "BODY"
    tab.linked(query=10)
    tab.page.keyboard.press("?")
    tab.page.wait_for_selector("dialog[open]")
    tab.page.keyboard.press("Escape")
    tab.until("!document.querySelector('dialog[open]')")
    tab.linked(query=10)
    tab.page.keyboard.press("Escape")
    tab.linked(query=None, key=None)
    tab.says(".pair-title", "Choose a token")


def test_buttons_are_pressed_from_the_keyboard(opened: Any) -> None:
    tab = opened("middle", layer=1, head=2, query=9, key=4)
    tab.page.wait_for_selector(".measure")
    tab.page.focus(".measure[data-name=first]")
    tab.page.keyboard.press("Enter")
    tab.linked(sort="first")
    tab.page.keyboard.press("Space")
    tab.linked(sort=None)
    tab.page.focus(".export summary")
    tab.page.keyboard.press("Enter")
    tab.page.wait_for_selector(".export[open]")
    tab.page.keyboard.press("Tab")
    assert tab.page.evaluate("document.activeElement.textContent") == "PNG"
    tab.page.keyboard.press("Escape")
    tab.until("!document.querySelector('.export[open]')")
    tab.linked(query=9, key=4)
    tab.page.focus(".dial input[aria-label=temperature]")
    tab.page.keyboard.press("ArrowRight")
    tab.until("location.hash.includes('formula=')")
    tab.linked(query=9, key=4)


@pytest.mark.parametrize(("lens", "view"), [("sentence", "text"), ("middle", "map"), ("image", "image")])
def test_everything_has_a_name(opened: Any, lens: str, view: str) -> None:
    tab = opened(lens, view=view)
    tab.page.wait_for_selector(".dial")
    tab.page.wait_for_selector(".measure")
    tree = tab.page.locator(".regard").aria_snapshot()
    nameless = re.findall(
        r"^\s*- (?:button|textbox|searchbox|slider|combobox|tab|link|img|group)(?: \[[^\]]*\])*:?$", tree, re.MULTILINE
    )
    assert nameless == []
    for role, name in (
        ("slider", "temperature"),
        ("textbox", "formula"),
        ("searchbox", "Find heads"),
        ("tab", view),
        ("button", "Light or dark"),
    ):
        assert tab.page.get_by_role(role, name=re.compile(name)).count() >= 1, role
    assert tab.page.get_by_role("tab", selected=True).text_content() == view
    assert tab.page.get_by_role("heading", level=1).count() == 1
    assert tab.page.locator("main").count() == 1
