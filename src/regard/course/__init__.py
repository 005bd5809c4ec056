"""The course: from a pixel to a trained transformer, chapter by chapter.

contents   the chapters as values;          lessons    what a notebook builds its page from
chapters   the notebooks;                   exercises  what the reader writes, and how it is judged
programs   in three languages;              figures    the pictures;   widgets, page   what can be moved
serving    `regard learn`;                  still      the whole as HTML files
"""

from __future__ import annotations

from typing import Any

from .._names import brought, by_name

_NAMES = by_name({"contents": "CHAPTERS Chapter Reading find_chapter", "lessons": "Lesson lesson"})

__all__ = sorted(_NAMES)  # noqa: PLE0605 - one list, in one place


def __getattr__(name: str) -> Any:
    return brought(__name__, _NAMES, name, marimo="learn", markdown="learn", latex2mathml="learn", pygments="learn")


def __dir__() -> list[str]:
    return list(__all__)
