"""What the page tells a reader of an answer, of a choice, of what can be moved, and of other chapters."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Any

from ..contents import find_chapter
from ..exercises.exercise import Found, Quiz, Verdict
from .code import coloured
from .numbers import as_set
from .prose import prose, words


def verdict_told(verdict: Verdict) -> str:
    """Right, or which mistakes; how to mend them is folded: one may want to find out."""
    kind = "right" if verdict.right else "wrong"
    found = "".join(f"<p><b>{escape(one.name)}</b>. {escape(one.says)}</p>{_mend(one)}" for one in verdict.found)
    return f'<div class="verdict {kind}"><p class="title">{escape(verdict.title)}</p>{found}{verdict.page}</div>'


def _mend(found: Found) -> str:
    return f"<details><summary>How to mend it</summary>{coloured(found.mend)}</details>" if found.mend else ""


def choice_told(quiz: Quiz, text: str) -> str:
    """Why a choice is right or wrong."""
    chosen = quiz.chosen(text)
    return f"<b>{escape(text)}</b> {'Yes.' if chosen.right else 'No.'} {prose(chosen.because)[3:-4]}"


def at_rest(movable: Any) -> str:
    """What can be moved, as it stands at first: a widget draws itself, others say their value."""
    widget = getattr(movable, "widget", None)
    if widget is not None:
        from ..widgets.still import mount_html

        return mount_html(widget)
    return f"<p class='values'>{escape(movable._args.label)} <b>{escape(as_set(_first(movable)))}</b></p>"


def _first(movable: Any) -> str:
    """What it stands at: a choice by its name, as the reader would see it, and a switch as on or off."""
    value = movable._value  # the public name is refused in the cell that makes it
    if hasattr(movable, "options"):
        names = movable._initial_value_frontend
        return ", ".join(names) if isinstance(names, list) else str(names)
    if isinstance(value, bool):
        return "on" if value else "off"
    return f"{value:g}" if isinstance(value, float) else str(value)


def chapters_told(says: str, numbers: Sequence[int]) -> str:
    """Links to other chapters, in a sentence."""
    if not numbers:
        return ""
    named = ", ".join(
        f"<a href='../{one.number}' data-chapter='{one.number}'>{one.number} {escape(one.title)}</a>"
        for one in map(find_chapter, numbers)
    )
    return f"<p class='links'>{says} {named}.</p>"


def cell_told(value: Any) -> str:
    """A cell of a table: floats with three digits, numbers to the right, and `code` within words."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return f"<td>{words(str(value))}</td>"
    told = f"{value:.3g}" if isinstance(value, float) else str(value)
    return f'<td class="number">{as_set(told)}</td>'
