"""The widget of a notebook in a bare page: its own module, a model that is a stand-in, and the real answers."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from regard.viewer.answering.answers import Answers
from regard.viewer.answering.packet import packed

MOUNT = """async ([esm, css, states]) => {
  const address = URL.createObjectURL(new Blob([esm], { type: 'text/javascript' }));
  const { default: widget } = await import(address);
  document.head.append(Object.assign(document.createElement('style'), { textContent: css }));
  window.__gone = states.map((state, at) => {
    const listeners = new Set();
    const model = {
      get: (name) => ({ height: 640, state })[name],
      on: (name, act) => name === 'msg:custom' && listeners.add(act),
      off: (name, act) => listeners.delete(act),
      send: async (message) => {
        const said = await __during(`widget ${at}`, window.__answer(at, message));
        if (!said) return;
        const bytes = Uint8Array.from(atob(said.packed), (sign) => sign.charCodeAt(0));
        for (const act of listeners) act(said.message, [new DataView(bytes.buffer)]);
      },
    };
    const el = document.body.appendChild(document.createElement('div'));
    el.className = `cell cell-${at}`;
    return { end: widget.render({ model, el }), listeners };
  });
}"""


@pytest.fixture
def mounted(opened: Any, lenses: Any) -> Any:
    """Two widgets, on two lenses."""
    pytest.importorskip("anywidget", reason="the widget needs it: pip install regard[lens]")
    from regard.viewer.widget import LensWidget

    tab = opened()
    answers = [Answers(lenses["sentence"]), Answers(lenses["middle"])]

    def answer(_: Any, at: int, message: dict[str, Any]) -> Any:
        if message.get("left"):
            return None
        found = packed(answers[at].answer(message["question"], message["options"]))
        return {"message": {"id": message["id"]}, "packed": base64.b64encode(found).decode()}

    tab.page.expose_binding("__answer", answer)
    tab.page.goto("about:blank")
    states = [
        {"layer": 2, "head": 5, "query": 4, "key": 6},
        {"layer": 1, "head": 3, "query": 8, "key": 2, "view": "text"},
    ]
    tab.page.evaluate(MOUNT, [LensWidget._esm, LensWidget._css, states])
    for at in (0, 1):
        tab.page.wait_for_selector(f".cell-{at} .pair-weight b")
    tab.settled()
    return tab


def test_two_widgets_do_not_disturb_each_other(mounted: Any, lenses: Any, read: Any) -> None:
    tab = mounted
    weights = lenses["sentence"].weights(2, 5), lenses["middle"].weights(1, 3)
    assert read.number(tab.text(".cell-0 .pair-weight b")) == read.as_shown(weights[0][4, 6])
    assert read.number(tab.text(".cell-1 .pair-weight b")) == read.as_shown(weights[1][8, 2])
    first = tab.text(".cell-0 .regard")
    tab.page.locator(".cell-1").scroll_into_view_if_needed()
    tab.page.hover(".cell-1 .running .token[data-at='10']")
    tab.page.wait_for_selector(".cell-1 .running .token.is-pointed[data-at='10']")
    assert tab.page.locator(".cell-0 .running .token.is-pointed[data-at='10']").count() == 0
    tab.page.click(".cell-1 .running .token[data-at='20']")
    tab.page.click(".cell-1 .running .token[data-at='7']", modifiers=["Shift"])
    tab.until("document.querySelector('.cell-1 .pair-words').textContent === 'w20 reads w7'")
    assert read.number(tab.text(".cell-1 .pair-weight b")) == read.as_shown(weights[1][20, 7])
    tab.page.focus(".cell-1 .running")
    tab.page.keyboard.press("]")
    tab.says(".cell-1 h1", "^Layer 1, head 4")
    tab.page.keyboard.press("m")
    tab.page.wait_for_selector(".cell-1 .view-map:not([hidden])")
    assert tab.page.is_visible(".cell-0 .view-text")
    assert tab.text(".cell-0 .regard") == first
    assert tab.page.url == "about:blank"
    widths = tab.page.evaluate("[document.documentElement.scrollWidth, innerWidth]")
    assert widths[0] <= widths[1]


def test_a_widget_that_goes_leaves_nothing(mounted: Any) -> None:
    tab = mounted
    tab.page.evaluate("__gone[0].end()")
    assert tab.page.evaluate(
        "[document.querySelector('.cell-0 .regard').childElementCount, __gone[0].listeners.size]"
    ) == [0, 0]
    tab.page.fill(".cell-1 .formula-field", "softmax(dot / 2)")
    tab.page.wait_for_selector(".cell-1 .change dd")
