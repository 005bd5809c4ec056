"""A link holds what is shown; the browser's own back and forward move through it; a broken one does no harm."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

import pytest

from regard.attention import parse


def test_a_reload_shows_the_same(opened: Any, read: Any) -> None:
    tab = opened("middle")
    tab.page.click(".wall-cell[data-layer='2'][data-head='3']")
    tab.linked(layer=2, head=3)
    tab.page.click(".running .token[data-at='17']")
    tab.page.click(".running .token[data-at='5']", modifiers=["Shift"])
    tab.linked(query=17, key=5)
    tab.page.fill(".formula-field", "softmax(dot / 3, mask=j <= i)")
    tab.until("location.hash.includes('formula=')")
    tab.page.click(".tab[data-view=map]")
    tab.page.click("[data-name=scale] [data-value=log]")
    tab.linked(lens="given-2", layer=2, head=3, query=17, key=5, view="map", scale="log")
    formula = tab.link("formula")
    assert parse(formula) == parse("softmax(dot / 3, mask=j <= i)")
    tab.settled()
    shown = (".pair-weight", ".pair-words", "h1", ".map-told", ".change", ".three")
    before, link = [tab.text(one) for one in shown], tab.page.url
    weight = tab.text(".pair-weight b")
    tab.page.reload()
    tab.page.wait_for_selector(".pair-weight b")
    tab.page.wait_for_selector(".change dd")
    tab.settled()
    assert [tab.text(one) for one in shown] == before
    assert tab.page.url == link
    assert read.number(weight) > 0
    assert tab.page.input_value(".formula-field") == formula
    assert tab.page.get_attribute(".tab[data-view=map]", "aria-selected") == "true"


def test_back_and_forward_move_through_what_was_shown(opened: Any) -> None:
    tab = opened("middle", layer=1, head=2, query=9, key=4)
    states = [
        (lambda: tab.page.click(".running .token[data-at='30']"), {"query": 30}),
        (lambda: tab.page.click(".wall-cell[data-layer='0'][data-head='4']"), {"layer": None, "head": 4}),
        (lambda: tab.page.click("[data-name=sense] [data-value=reads]"), {"sense": "reads"}),
        (lambda: tab.page.click(".tab[data-view=map]"), {"view": "map"}),
        (lambda: tab.page.select_option("select.title", label="cross"), {"lens": "given-5"}),
    ]
    links = [tab.page.url]
    for act, state in states:
        act()
        tab.linked(**state)
        tab.until("/query=\\d/.test(location.hash) && document.querySelector('.pair-weight b')")
        tab.settled()
        links.append(tab.page.url)
    for step, link in enumerate(reversed(links[:-1])):
        tab.page.go_back()
        tab.until("link => location.href === link", arg=link)
        assert tab.page.url == link, step
    tab.page.wait_for_selector(".running .token.is-query[data-at='9']")
    tab.page.wait_for_selector(".wall-cell[data-layer='1'][data-head='2'][aria-current]")
    assert tab.page.get_attribute(".tab[data-view=text]", "aria-selected") == "true"
    for link in links[1:]:
        tab.page.go_forward()
        tab.until("link => location.href === link", arg=link)
    tab.says(".map-told", "w\\d+ .*→.*k\\d+")


BROKEN: list[dict[str, Any]] = [
    {"lens": "nothing", "layer": 99, "head": 99, "query": 10**8, "key": 10**8, "view": "image", "__proto__": "x"},
    {"layer": "-1", "head": "1e3", "query": "abc", "view": "<b>", "batch": 7, "hover": "x", "theme": "evil"},
    {"scale": "evil", "over": "evil", "sense": "evil", "sort": "evil", "search": "evil", "constructor": "y"},
    {"zoom": "NaN,Infinity,-3,mean", "view": "map"},
    {"zoom": "1e99,-1e99,1e-99", "view": "map"},
]


@pytest.mark.parametrize("state", BROKEN, ids=lambda state: "-".join(state))
def test_a_broken_link_does_no_harm(opened: Any, lenses: Any, read: Any, state: dict[str, Any]) -> None:
    tab = opened()
    tab.page.goto(f"{tab.address}#{urlencode(state)}")
    tab.page.wait_for_selector(".pair-weight b")
    tab.page.click(".tab[data-view=text]")
    tab.page.click(".running .token[data-at='6']")
    tab.linked(query=6)
    tab.page.click(".running .token[data-at='3']", modifiers=["Shift"])
    tab.linked(key=3)
    tab.page.mouse.move(720, 5)
    tab.settled()
    layer, head = int(tab.link("layer") or 0), int(tab.link("head") or 0)
    assert read.number(tab.text(".pair-weight b")) == read.as_shown(lenses["sentence"].weights(layer, head)[6, 3])
    tab.page.wait_for_selector(".threads-key .num:not(:empty)")
    row = [read.number(text) for text in tab.page.locator(".threads-key .num").all_text_contents() if text]
    assert max(row) == pytest.approx(lenses["sentence"].weights(layer, head)[6].max(), abs=6e-4)


@pytest.mark.parametrize(
    "formula", ["softmax(((", "softmax(dot + table('x')[h])", "x" * 3000], ids=["cut", "table", "long"]
)
def test_a_broken_formula_in_a_link_is_told(opened: Any, formula: str) -> None:
    tab = opened()
    tab.allowed = "400 \\(Bad Request\\)"
    tab.open("sentence", wait=".formula-wrong:not(:empty)", formula=formula)
    tab.page.wait_for_selector(".running .token")
    assert tab.page.evaluate("window.hit") is None
    assert tab.page.is_visible(".whatif header button")
    tab.page.click(".whatif header button")
    tab.linked(formula=None)
    tab.page.wait_for_selector(".pair-weight b")
