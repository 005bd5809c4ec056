"""The page comes whole and small, in light and dark, on a desk and on a phone, and turns from lens to lens."""

from __future__ import annotations

from typing import Any

import pytest

LOAD = 300_000  # bytes


def test_the_first_load_is_small(opened: Any) -> None:
    tab, sent = opened(), []
    network = tab.context.new_cdp_session(tab.page)
    network.send("Network.enable")
    network.on("Network.loadingFinished", lambda one: sent.append(one["encodedDataLength"]))
    tab.open("sentence")
    tab.until("document.querySelectorAll('.wall-cell canvas.here').length === 72")
    tab.page.wait_for_load_state("networkidle")
    tab.settled()
    assert len(sent) > 20
    assert 20_000 < sum(sent) < LOAD
    assert tab.page.title() == "A sentence · regard"
    assert "token" not in tab.page.url


def test_a_long_text_opens_without_an_error(opened: Any) -> None:
    tab = opened("long")
    for view in ("map", "text"):
        tab.page.click(f".tab[data-view={view}]")
        tab.linked(view=view)
        tab.frames(4)
    tab.settled()


@pytest.mark.parametrize(
    ("lens", "scheme"),
    [("sentence", "light"), ("middle", "dark"), ("image", "light"), ("cross", "dark"), ("hostile", "light")],
)
def test_a_phone_shows_it_without_scrolling_sideways(opened: Any, lens: str, scheme: str) -> None:
    tab = opened(lens, given={"viewport": {"width": 390, "height": 844}, "color_scheme": scheme})
    wide = "document.documentElement.scrollWidth"
    assert tab.page.get_attribute(".regard", "data-theme") == scheme
    for view in ("text", "map", "image") if lens == "image" else ("text", "map"):
        tab.page.click(f".tab[data-view={view}]")
        tab.linked(view=view)
        tab.settled()
        assert tab.page.evaluate(wide) <= 390
    tab.page.locator(".formula-field").fill("softmax(2 * dot / sqrt(d) - 0.125 * abs(i - j) + 0 * i)")
    tab.page.wait_for_selector(".three-map")
    tab.settled()
    assert tab.page.evaluate(wide) <= 390


def test_light_and_dark_are_switched_and_kept(opened: Any) -> None:
    tab = opened("sentence", given={"color_scheme": "dark"})
    paper = "getComputedStyle(document.querySelector('.regard')).backgroundColor"
    dark = tab.page.evaluate(paper)
    tab.page.click("[aria-label='Light or dark']")
    tab.page.wait_for_selector(".regard[data-theme=light]")
    assert tab.page.evaluate(paper) != dark
    tab.page.reload()
    tab.page.wait_for_selector(".regard[data-theme=light] .pair-weight b")
    tab.page.keyboard.press("d")
    tab.page.wait_for_selector(".regard[data-theme=dark]")
    assert tab.page.evaluate(paper) == dark


def test_another_lens_is_chosen_from_the_list(opened: Any, lenses: Any, read: Any) -> None:
    tab = opened("sentence", layer=2, head=3)
    options = tab.page.locator("select.title option").all_text_contents()
    assert options == [lenses[name].title for name in lenses.names()]
    tab.page.select_option("select.title", label="middle")
    tab.linked(lens="given-2")
    tab.until("document.querySelectorAll('.running .token').length === 53")
    tab.page.wait_for_selector(".pair-weight b")
    tab.linked(layer=2, head=3)
    tab.until("/query=\\d/.test(location.hash)")
    weight = lenses["middle"].weights(2, 3)[int(tab.link("query") or -1), int(tab.link("key") or -1)]
    tab.says(".pair h2", "layer 2, head 3")
    tab.settled()
    assert read.number(tab.text(".pair-weight b")) == read.as_shown(weight)
    assert tab.page.title() == "middle · regard"
    tab.page.select_option("select.title", label="cross")
    tab.until("document.querySelectorAll('.running .token').length === 11 + 17")
    tab.linked(layer=1, head=2)


def test_a_second_batch_item_has_its_own_weights(opened: Any, lenses: Any, read: Any) -> None:
    tab = opened("hostile", layer=1, head=2, query=5, key=6)
    first, second = (lenses["hostile"].weights(1, 2, batch)[5, 6] for batch in (0, 1))
    assert read.number(tab.text(".pair-weight b")) == read.as_shown(first)
    tab.page.select_option("[aria-label='Batch item']", "1")
    tab.linked(batch=1)
    tab.page.click(".running .token[data-at='5']")
    tab.page.click(".running .token[data-at='6']", modifiers=["Shift"])
    tab.linked(query=5, key=6)
    tab.says(".pair-words", "🦔")
    tab.settled()
    assert read.number(tab.text(".pair-weight b")) == read.as_shown(second)
