"""The page without Python: one script, many places, and no text that becomes markup."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

pytest.importorskip("anywidget", reason='the widgets need it: pip install "regard[learn]"')

from regard.course.widgets import Plane, mount_html, shared_html, still_html

HOSTILE = "</script><img src=x onerror=window.hit=1>"


def test_a_place_holds_the_state_of_its_widget(widget: Any) -> None:
    html = mount_html(widget)
    (text,) = re.findall(r'<script type="application/json">(.*?)</script>', html)
    state = json.loads(text)
    assert state == json.loads(json.dumps({
        "kind": widget.kind, "given": widget.given, "at": widget.at, "found": widget.found, "still": True,
    }))  # fmt: skip
    assert html.startswith(f'<div data-hand="{widget.kind}">')


def test_a_text_cannot_end_the_script() -> None:
    html = mount_html(Plane([[1, 0]], labels=[HOSTILE]))
    assert html.count("</script") == 1
    assert "<img" not in html


def test_the_script_is_there_once_and_whole() -> None:
    shared = shared_html()
    assert shared.count('<script type="module">') == shared.count("</script>") == 1
    assert "mountHands(document)" in shared
    assert not re.search(r"^(import|export)\b", shared, re.MULTILINE)
    assert "https://" not in shared.replace("https://www.w3.org", "")


def test_one_widget_alone_has_all_that_it_needs(widget: Any) -> None:
    assert still_html(widget) == f"{mount_html(widget)}\n{shared_html()}"
