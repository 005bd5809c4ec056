"""The widget answers the page's messages from the kernel: one buffer for each question, or an error's text."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import regard as rg
from regard.viewer.answering.packet import unpacked
from regard.viewer.widget import LensWidget

RNG = np.random.default_rng(0)


class Page:
    """Stands for the page: what the widget sends is kept, and can be waited for."""

    def __init__(self, widget: LensWidget) -> None:
        self.widget, self.sent, self.news = widget, dict[int, Any](), threading.Condition()
        widget.send = self.take  # the comm of a notebook

    def take(self, content: Any, buffers: Any = None) -> None:
        with self.news:
            self.sent[content["id"]] = (content, buffers)
            self.news.notify_all()

    def ask(self, number: int, question: str, **options: Any) -> Any:
        self.widget._asked(None, {"id": number, "question": question, "options": options}, None)
        with self.news:
            assert self.news.wait_for(lambda: number in self.sent, timeout=60)
            return self.sent[number]


@pytest.fixture(scope="module")
def lens() -> rg.Lens:
    q, k = RNG.standard_normal((2, 1, 3, 7, 5)).astype(np.float32)
    return rg.lens(q=q, k=k, tokens="the cat sat on the mat .")


@pytest.fixture
def page(lens: rg.Lens) -> Iterator[Page]:
    widget = LensWidget(lens, height=300, layer=0, head=2)
    yield Page(widget)
    widget.close()


def test_questions_are_answered(page: Page, lens: rg.Lens) -> None:
    content, buffers = page.ask(3, "matrix", layer=0, head=1)
    assert content == {"id": 3}
    np.testing.assert_allclose(unpacked(buffers[0]).arrays[0][0], lens.weights(0, head=1), atol=1e-3)
    content, buffers = page.ask(4, "about")
    assert unpacked(buffers[0]).meta["layers"][0]["queries"] == 7


def test_what_cannot_be_asked_is_told(page: Page) -> None:
    content, buffers = page.ask(5, "matrix", layer=9)
    assert content == {"id": 5, "error": "layer: one of 1 layers, from 0; got 9"}
    assert buffers is None
    assert "question: one of" in page.ask(6, "secrets")[0]["error"]
    assert "error" in page.ask(7, "matrix", layer={"a": 1})[0]


@pytest.mark.parametrize("message", ["text", {}, {"id": "one"}, {"id": 2, "left": True}, None, 3])
def test_strange_messages_do_nothing(page: Page, message: Any) -> None:
    page.widget._asked(None, message, None)
    assert page.sent == {}


def test_a_question_that_is_left_is_given_up(page: Page, monkeypatch: pytest.MonkeyPatch) -> None:
    begun, stopped = threading.Event(), threading.Event()

    def answer(question: str, options: Any, stop: Any) -> Any:
        begun.set()
        while not stop.is_set:
            pass
        stopped.set()
        stop.check()

    monkeypatch.setattr(page.widget._answers, "answer", answer)
    page.widget._asked(None, {"id": 8, "question": "tile", "options": {}}, None)
    assert begun.wait(60)
    page.widget._asked(None, {"id": 8, "left": True}, None)
    assert stopped.wait(60)
    assert 8 not in page.sent


def test_it_brings_the_page_along(page: Page) -> None:
    widget = page.widget
    assert widget._esm.rstrip().endswith("export default { render: renderWidget };")
    assert "import {" not in widget._esm
    assert ".regard" in widget._css
    assert (widget.height, widget.state) == (300, {"layer": 0, "head": 2})


def test_a_lens_shows_itself(lens: rg.Lens) -> None:
    shown = lens._repr_mimebundle_()
    bundle = shown[0] if isinstance(shown, tuple) else shown
    assert "application/vnd.jupyter.widget-view+json" in bundle
    assert "text/plain" in bundle
