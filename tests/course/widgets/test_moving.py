"""The widgets in a browser: dragged, pressed, pointed at, with Python behind them and without."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import regard as rg
from resting import PATIENCE, until

pytest.importorskip("anywidget", reason='the widgets need it: pip install "regard[learn]"')

from regard.course.widgets import Ellipse, Matrix, Mistakes, Plane, Rows, mount_html, shared_html

RNG = np.random.default_rng(7)
CAUSAL = rg.Attention(mask=rg.causal)
WORDS = ["the", "</script><img src=x onerror=window.hit=1>", "sat", "on", "<b>mats</b>"]
LIVE = """([esm, css, state]) => {
  document.head.append(Object.assign(document.createElement('style'), { textContent: css }));
  const hears = {}, values = state;
  const model = {
    get: (name) => values[name],
    set: (name, value) => { values[name] = value; },
    on: (name, act) => { hears[name] = act; },
    off: (name) => { delete hears[name]; },
    save_changes: async () => { values.found = await window.__moved(values.at); hears['change:found']?.(); },
  };
  const address = URL.createObjectURL(new Blob([esm], { type: 'text/javascript' }));
  window.__hears = hears;
  return import(address).then(({ default: widget }) => { window.__end = widget.render({ model, el: document.body }); });
}"""


def widgets() -> dict[str, Any]:
    q, k = RNG.standard_normal((2, 5, 3))
    return {
        "plane": Plane(1.5 * RNG.standard_normal((5, 2)), labels=WORDS, query=[0.5, 0.5]),
        "rows": Rows(q, k, RNG.standard_normal((5, 2)), WORDS, CAUSAL, row=3),
        "matrix": Matrix(WORDS, {"one": (q, k), "own": np.eye(5)}, CAUSAL, query=2),
        "ellipse": Ellipse(RNG.standard_normal((11, 2)) @ [[2.0, 0.7], [0.0, 0.4]]),
        "mistakes": Mistakes(CAUSAL, q, k, WORDS),
    }


@pytest.fixture(scope="module")
def shown() -> dict[str, Any]:
    return widgets()


@pytest.fixture(scope="module")
def address(shown: dict[str, Any], tmp_path_factory: pytest.TempPathFactory) -> str:
    places = "".join(f'<section id="{name}">{mount_html(one)}</section>' for name, one in shown.items())
    path: Path = tmp_path_factory.mktemp("still") / "still.html"
    path.write_text(f'<!doctype html><meta charset="utf-8"><body class="light">{shared_html()}{places}', "utf-8")
    return path.as_uri()


Opening = Callable[..., Any]


@pytest.fixture
def opened(browser: Any, address: str) -> Iterator[Opening]:
    """A fresh page; errors in it fail its test."""
    wrong: list[str] = []
    contexts: list[Any] = []

    def page(url: str = address, **given: Any) -> Any:
        options = {"viewport": {"width": 800, "height": 900}, "reduced_motion": "reduce", **given}
        contexts.append(browser.new_context(**options))
        found = contexts[-1].new_page()
        found.set_default_timeout(1000 * PATIENCE)
        found.on("pageerror", lambda error: wrong.append(str(error)))
        found.on("console", lambda said: wrong.append(said.text) if said.type == "error" else None)
        found.goto(url)
        return found

    yield page
    for one in contexts:
        one.close()
    assert wrong == []


def middle(page: Any, selector: str) -> tuple[float, float]:
    page.locator(selector).scroll_into_view_if_needed()
    box = page.locator(selector).bounding_box()
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2


def drag(page: Any, selector: str, across: float, down: float) -> None:
    x, y = middle(page, selector)
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x + across, y + down, steps=4)


HANDLE = "#plane .handle-x .handle-seen"


def test_the_plain_picture_stands_where_no_script_runs(opened: Opening, shown: dict[str, Any]) -> None:
    without = opened(java_script_enabled=False)
    assert [without.is_visible(f"#{name} .at-rest svg") for name in shown] == [True] * 5
    page = opened()
    page.wait_for_selector("#mistakes .regard")
    assert page.locator(".regard").count() == 5
    assert page.locator(".at-rest").count() == 0


def test_what_only_python_can_answer_moves_back(opened: Opening) -> None:
    page = opened()
    for handle in (HANDLE, "#ellipse .handle-query .handle-seen", "#ellipse .handle-first .handle-seen"):
        before = middle(page, handle)
        drag(page, handle, 40, 30)
        until(page, lambda handle=handle, before=before: abs(middle(page, handle)[0] - before[0]) > 5, lambda: "a move")
        page.mouse.up()
        until(page, lambda handle=handle, before=before: middle(page, handle) == pytest.approx(before, abs=0.5),
              lambda: "the way back")  # fmt: skip
    assert page.inner_text("#plane .hand-note") == "regard learn moves this."
    assert page.is_visible("#ellipse .hand-note")


def test_rows_and_words_can_be_chosen_without_python(opened: Opening, shown: dict[str, Any]) -> None:
    page = opened()
    rows, matrix = shown["rows"], shown["matrix"]
    page.click("#rows [data-row='1']")
    page.keyboard.press("ArrowRight")
    page.wait_for_selector("#rows [data-row='2'][aria-checked='true']:focus")
    seen = page.locator("#rows .weight").all_inner_texts()
    assert [float(one) for one in seen] == pytest.approx(rows.given["weights"][2], abs=6e-4)
    assert page.locator("#rows .is-hidden").count() == 2
    page.hover("#matrix [data-at='4']")
    page.wait_for_selector("#matrix [data-at='4'].is-query")
    seen = page.locator("#matrix .bar-row .num").all_inner_texts()
    assert [float(one) for one in seen] == pytest.approx(matrix.given["weights"]["one"][4], abs=6e-4)
    page.click("#matrix .head-name >> nth=1")
    page.focus("#matrix .hand-text")
    page.keyboard.press("Home")
    page.mouse.move(0, 0)
    page.wait_for_selector("#matrix [data-at='0'].is-query")
    assert page.locator("#matrix .bar-row .num").all_inner_texts()[0] == "1.000"


def test_a_mistake_is_turned_on_and_off(opened: Opening) -> None:
    page = opened()
    page.click("#mistakes .switch:has-text('no total')")
    page.wait_for_selector("#mistakes .switch[aria-checked='true']:has-text('no total')")
    assert "ψ is taken" in page.inner_text("#mistakes .mistake-words")
    assert page.locator("#mistakes .cells-sum.is-off").count() == 5
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Space")
    page.wait_for_selector("#mistakes .switch[aria-checked='true']:has-text('scores as weights')")
    page.keyboard.press("Space")
    page.wait_for_selector("#mistakes .switches:not(:has([aria-checked='true']))")


def test_texts_are_texts_and_nothing_is_wider_than_a_phone(opened: Opening) -> None:
    page = opened(viewport={"width": 390, "height": 800}, has_touch=True)
    page.wait_for_selector("#mistakes .switch")
    assert page.evaluate("window.hit") is None
    assert page.locator("img, section b").count() == 0
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_dark_and_light_are_those_of_the_page(opened: Opening) -> None:
    page = opened(color_scheme="dark")
    page.wait_for_selector("#mistakes .regard[data-theme='light']")
    light = page.evaluate("getComputedStyle(document.querySelector('#plane .disc')).fill")
    page.evaluate("document.body.className = 'dark dark-theme'")
    page.wait_for_selector("#mistakes .regard[data-theme='dark']")
    page.evaluate("new Promise(requestAnimationFrame)")
    until(page, lambda: page.evaluate("getComputedStyle(document.querySelector('#plane .disc')).fill") != light,
          lambda: "other colours")  # fmt: skip
    page.evaluate("document.body.className = ''")
    page.wait_for_selector("#mistakes .regard[data-theme='dark']")  # as the system has it


@pytest.fixture
def alive(opened: Opening) -> Opening:
    """A widget with Python behind it: what the page sets is what the widget is told."""

    def mounted(widget: Any, **given: Any) -> Any:
        page = opened("about:blank", **given)

        def moved(_: Any, at: Any) -> Any:
            widget.set_state({"at": at})
            return json.loads(json.dumps(widget.found))

        page.expose_binding("__moved", moved)
        state = {name: getattr(widget, name) for name in ("kind", "given", "at", "found")}
        page.evaluate(LIVE, [widget._esm, widget._css, json.loads(json.dumps(state))])
        return page

    return mounted


def test_a_drag_is_answered_by_the_library(alive: Opening) -> None:
    points = 1.5 * RNG.standard_normal((5, 2))
    plane = Plane(points, query=[0.5, 0.5])
    page = alive(plane)
    drag(page, ".handle-x .handle-seen", -60, 45)
    page.mouse.up()
    until(page, lambda: plane.at["query"] != [0.5, 0.5], lambda: "a move")
    page.focus(".handle-x")
    page.keyboard.press("Shift+ArrowLeft")

    def agrees() -> bool:
        weights = rg.Attention().weights(np.asarray([plane.at["query"]]), points)[0]
        seen = [float(one.replace("<", "")) for one in page.locator(".bar-row .num").all_inner_texts()]
        return bool(np.allclose(seen, weights, atol=1.1e-3))

    until(page, agrees, lambda: "the library's weights")
    page.evaluate("__end()")
    assert page.evaluate("[Object.keys(__hears).length, document.querySelectorAll('.regard').length]") == [0, 0]


def test_a_finger_drags_too(alive: Opening) -> None:
    plane = Plane(RNG.standard_normal((5, 2)), query=[0.5, 0.5])
    page = alive(plane, has_touch=True, viewport={"width": 390, "height": 800})
    x, y = middle(page, ".handle-x .handle-seen")
    touch = page.context.new_cdp_session(page)
    for step in range(9):
        kind = "touchMove" if step else "touchStart"
        points = [{"x": x - 10 * step, "y": y + 8 * step}]
        touch.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})
    touch.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})
    width = page.locator(".field").bounding_box()["width"]
    wanted = [0.5 - 80 * 2 * plane.given["reach"] / width, 0.5 - 64 * 2 * plane.given["reach"] / width]
    until(page, lambda: plane.at["query"] == pytest.approx(wanted, abs=0.05), lambda: f"{wanted}, not {plane.at}")


def test_pulling_an_axis_changes_the_neighbours(alive: Opening) -> None:
    cloud = Ellipse(RNG.standard_normal((11, 2)) @ [[2.0, 0.7], [0.0, 0.4]])
    page, before = alive(cloud), dict(cloud.at)
    drag(page, ".handle-second .handle-seen", 50, -70)
    page.mouse.up()
    until(page, lambda: cloud.at["angle"] != before["angle"], lambda: "a turn")
    assert cloud.at["spread"][0] == before["spread"][0]
    page.click("button:has-text('a circle')")
    until(page, lambda: cloud.at["spread"][0] == cloud.at["spread"][1], lambda: "a circle")
    assert cloud.found["euclidean"]["nearest"] == cloud.found["mahalanobis"]["nearest"]
    page.wait_for_selector(".hand-line:has-text('agree')")
