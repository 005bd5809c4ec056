"""What if: another formula moves the maps and the numbers; a wrong one is told and moves nothing."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from regard.algebra.mistakes import MISTAKES
from regard.attention import parse
from regard.viewer.weighing.sliders import with_changes

LAYER, HEAD, QUERY, KEY = 1, 3, 31, 12
FIELD, RESET = ".formula-field", ".whatif header button"
NEXT = "softmax(dot / 3, mask=j <= i + 1)"


def parts(lens: Any) -> tuple[Any, Any, Any]:
    call = lens.layers[LAYER]
    return tuple(array[0, HEAD].astype(np.float64) for array in (call.q, call.k, call.v))  # type: ignore[return-value]


def softmax(scores: Any, mask: Any) -> Any:
    weights = np.where(mask, np.exp(scores), 0)
    return weights / weights.sum(1, keepdims=True)


def both(lens: Any) -> tuple[Any, Any, Any]:
    """The weights of the layer, those under NEXT, and the values."""
    q, k, v = parts(lens)
    i, j = np.ogrid[: len(q), : len(k)]
    return softmax(q @ k.T / np.sqrt(7), j <= i), softmax(q @ k.T / 3, j <= i + 1), v


def at_pair(opened: Any, **state: Any) -> Any:
    tab = opened("middle", layer=LAYER, head=HEAD, query=QUERY, key=KEY, **state)
    tab.page.wait_for_selector(".dial")
    return tab


def told(tab: Any, selector: str) -> list[str]:
    return [str(text) for text in tab.page.locator(selector).all_text_contents()]


def test_a_typed_formula_moves_maps_and_numbers(opened: Any, lenses: Any, read: Any) -> None:
    tab = at_pair(opened, view="map")
    own, other, v = both(lenses["middle"])
    assert not tab.page.is_visible(".shift")
    tab.page.fill(FIELD, NEXT)
    tab.page.wait_for_selector(".change dd")
    moved = 0.5 * np.abs(other - own).sum(1)
    output = np.linalg.norm((other - own) @ v) / np.linalg.norm(own @ v)
    shares = [read.number(text.removesuffix(" %")) / 100 for text in told(tab, ".change dd")]
    assert shares[0] == read.as_shown(moved.mean(), 3)
    assert shares[1] == read.as_shown(output, 3)
    assert [int(text) for text in told(tab, ".change-place")] == np.argsort(-moved, kind="stable")[:5].tolist()
    tab.says(".three figure:nth-child(3) .num", r"\d")
    tab.settled()
    for text, weight in zip(told(tab, ".three figcaption .num"), (own, other, other - own), strict=True):
        assert read.number(text.removeprefix("+")) == pytest.approx(weight[QUERY, KEY], abs=2e-3)
    tab.says(".pair-formula", "3")
    tab.settled()
    assert read.number(tab.text(".pair-weight b")) == read.as_shown(other[QUERY, KEY])
    tab.page.mouse.move(*tab.at(".map-canvas", 0.45, 0.5))
    tab.settled()
    found = tab.says(".view-map .map-told", r"^w(\d+) .*→  w(\d+) \d+    ([^\s…]+)$")
    weight = other[int(found[1]), int(found[2])]
    assert read.number(found[3]) == pytest.approx(weight, abs=6e-4)
    tab.page.click(".change-rows button")
    tab.linked(query=int(moved.argmax()))
    tab.page.click(RESET)
    tab.linked(formula=None)
    assert not tab.page.is_visible(".shift")
    assert parse(tab.page.input_value(FIELD)) == lenses["middle"].layers[LAYER].formula


def test_pointing_follows_the_formula_too(opened: Any, lenses: Any) -> None:
    tab = at_pair(opened, formula=NEXT)
    _, other, _ = both(lenses["middle"])
    tab.page.wait_for_selector(".running .token[style*=background]")
    tab.page.hover(".running .token[data-at='20']")
    tab.settled()
    painted = tab.page.locator(".running .token").evaluate_all(
        "all => all.map((one) => one.style.backgroundColor !== '')"
    )
    expected = np.sqrt(other[20])
    sure = np.abs(expected - 0.012) > 2e-3
    assert np.array(painted)[sure].tolist() == (expected > 0.012)[sure].tolist()
    assert painted[21]


WRONG = [
    ("softmax(dot / sqrt(dd))", "dd", "d"),
    ("softmax(dot", r"\(", None),
    ("dot / 3", "a whole attention", None),
    ('softmax(dot + table("b")[h])', "table", None),
    ("softmax(<img src=x onerror=window.hit=1>)", "", None),
    ("import os", "", None),
]


def test_a_wrong_formula_is_told_and_leaves_the_picture(opened: Any) -> None:
    tab = at_pair(opened, view="map", formula=NEXT)
    tab.page.wait_for_selector(".change dd")
    tab.settled()
    tab.page.mouse.move(5, 5)
    tab.settled()
    picture = "document.querySelector('.map-canvas').toDataURL()"
    shown = (".change", ".three", ".pair-weight", ".formula-math")
    before, link, drawn = [tab.text(one) for one in shown], tab.link("formula"), tab.page.evaluate(picture)
    for formula, reason, mark in WRONG:
        tab.page.fill(FIELD, formula)
        tab.says(".formula-wrong", f"{reason}." if reason else ".")
        assert tab.page.get_attribute(FIELD, "aria-invalid") == "true"
        assert mark is None or tab.text(".formula-wrong mark") == mark
        tab.settled()
        assert [tab.text(one) for one in shown] == before
        assert tab.link("formula") == link
        assert tab.page.evaluate(picture) == drawn
        tab.page.fill(FIELD, NEXT)
        tab.until("document.querySelector('.formula-wrong').textContent === ''")
        assert tab.page.get_attribute(FIELD, "aria-invalid") == "false"
    assert tab.page.evaluate("window.hit") is None


def test_sliders_turn_the_formula(opened: Any, lenses: Any) -> None:
    tab = at_pair(opened)
    own = lenses["middle"].layers[LAYER].formula
    names = tab.page.locator(".dial input").evaluate_all("all => all.map((one) => one.getAttribute('aria-label'))")
    assert names == ["scale", "temperature", "soft-cap", "window"]
    changes: dict[str, float] = {}
    for name, low, high, position in (
        ("temperature", 0.1, 10, 150),
        ("window", 1, 53, 100),
        ("scale", 0.1, 10, 60),
        ("soft-cap", 0.5, 100, 40),
    ):
        value = low * (high / low) ** (position / 200)
        changes[name] = round(value) if name == "window" else float(f"{value:.3g}")
        tab.page.fill(f".dial input[aria-label={name}]", str(position))
        tab.linked(formula=repr(with_changes(own, changes)))
        assert tab.page.input_value(FIELD) == tab.link("formula")
    call = lenses["middle"].layers[LAYER]
    weight = with_changes(own, changes).weights(call.q, call.k, start=0)[0, HEAD, QUERY]
    tab.settled()
    assert (weight > 0).sum() == changes["window"]
    tab.says(".pair-weight .faint", "forbidden by the mask" if weight[KEY] == 0 else "keys")
    tab.page.click(".dial:has(input[aria-label=window]) button")
    changes.pop("window")
    tab.linked(formula=repr(with_changes(own, changes)))
    tab.page.click(RESET)
    tab.linked(formula=None)
    assert told(tab, ".dial .num.turned") == []


def test_every_mistake_is_a_switch(opened: Any, lenses: Any) -> None:
    tab = at_pair(opened)
    own = lenses["middle"].layers[LAYER].formula
    wrong = {one.name: one.of(own) for one in MISTAKES if one.of(own) is not None}
    assert told(tab, ".mistakes button") == list(wrong)
    assert len(wrong) > 5
    for name, formula in wrong.items():
        tab.page.click(f".mistakes button:text-is('{name}')")
        tab.linked(formula=repr(formula))
        one = next(one for one in MISTAKES if one.name == name)
        tab.says(".mistake-says", f"^{re.escape(f'{one.does}: {one.leads_to}')}$")
        assert told(tab, ".mistakes [aria-pressed=true]") == [name]
    tab.page.wait_for_selector(".change dd")
    tab.page.click(".mistakes [aria-pressed=true]")
    tab.linked(formula=None)
    assert told(tab, ".mistakes [aria-pressed=true]") == []
