"""The same pictures in a page without Python: a script once, and a place for each widget.

    shared_html()         the styles and the joined script, once in a page, anywhere
    mount_html(widget)    where a widget stands, with its first state, and as a plain picture until the script draws it
    still_html(widget)    both, for a page with one

What was given is drawn, and can be chosen from; what only Python could answer moves back to where it was. Where no
script runs, the plain picture stays.
"""

from __future__ import annotations

import json
from functools import lru_cache

from .base import Hand, joined_script, joined_style
from .pictures import picture_of


def still_html(widget: Hand) -> str:
    """One widget, with all that it needs."""
    return f"{mount_html(widget)}\n{shared_html()}"


def mount_html(widget: Hand) -> str:
    """The place of a widget in a page that has `shared_html` once."""
    state = {"kind": widget.kind, "given": widget.given, "at": widget.at, "found": widget.found, "still": True}
    text = json.dumps(state, ensure_ascii=False, allow_nan=False).replace("<", "\\u003c")
    data = f'<script type="application/json">{text}</script>'
    return f'<div data-hand="{widget.kind}">{data}{picture_of(widget)}</div>'


@lru_cache(maxsize=1)
def shared_html() -> str:
    """Styles and script for all widgets of a page; it draws each that stands in it."""
    return (
        f'<style>{joined_style()}</style>\n<script type="module">\n{joined_script()}\nmountHands(document);\n</script>'
    )
