"""The table of contents: number, title and question of each chapter, what is solved, and where to go on.

The same page stands in front of the live course and of its export; only links and marks differ.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from ..pieces.styling import style

if TYPE_CHECKING:
    from ..progress import Progress

FILES = Path(__file__).parent / "files"
LOADED = "<link rel='stylesheet' href='/page/course.css'>"
TITLE = "Attention, from one pixel to a transformer"
SAYS = (
    "A course to read, move, break and write in. Every picture is computed by the library on the spot; "
    "every exercise is judged, and the mistake is named."
)

STILL = (
    "These are its plain pages. To move things and to write answers: <code>pip install 'regard[learn]'</code>, "
    "then <code>regard learn</code>."
)


class ChapterLike(Protocol):
    """What is asked of a chapter here."""

    @property
    def number(self) -> int: ...
    @property
    def name(self) -> str: ...
    @property
    def title(self) -> str: ...
    @property
    def question(self) -> str: ...
    @property
    def file(self) -> Path: ...


Link = Callable[[ChapterLike], str]


def front_page(chapters: Sequence[ChapterLike], progress: Progress) -> str:
    """The front page of the live course."""
    told = f"<p class='trouble'>{escape(progress.trouble)}</p>" if progress.trouble else ""
    solved = sum(progress.solved(chapter.number) for chapter in chapters)
    count = f"<p class='label'>{solved} of {len(chapters)} exercises solved</p>" if progress.last else ""
    body = f"{_head()}{told}{_go_on(chapters, progress)}{count}{contents(chapters, _live, progress)}"
    return document(TITLE, f"<main class='course-front'>{body}</main>", LOADED)


def still_front(chapters: Sequence[ChapterLike], link: Link) -> str:
    """The first page of the export."""
    body = f"{_head()}<p class='go-on'>{STILL}</p>{contents(chapters, link)}"
    return document(TITLE, f"<main class='course-front'>{body}</main>", f"<style>{sheet()}</style>")


def unknown_page() -> str:
    """What stands at an address that is none."""
    body = (
        "<h1>There is no such page</h1><p class='says'><a href='/'>The table of contents</a> lists all there are.</p>"
    )
    return document("No such page", f"<main class='course-front'>{body}</main>", LOADED)


def contents(chapters: Sequence[ChapterLike], link: Link, progress: Progress | None = None) -> str:
    """The list of chapters."""
    return f"<ol class='course-list'>{''.join(_row(chapter, link, progress) for chapter in chapters)}</ol>"


def document(title: str, body: str, head: str) -> str:
    """A whole page of HTML around a body."""
    return (
        f"<!doctype html><html lang='en'><head><meta charset='utf-8'><title>{escape(title)}</title>"
        "<meta name='viewport' content='width=device-width, initial-scale=1'>"
        "<meta name='color-scheme' content='light dark'>"
        f"<link rel='icon' href='data:,'>{head}</head><body class='course'>{body}</body></html>"
    )


@cache
def sheet() -> str:
    """The style of the course's pages and of its front page; dark where the reader's system is."""
    rules = style()
    dark = rules.partition('[data-theme="dark"]')[2].partition("{")[2].partition("}")[0]
    own = (FILES / "course.css").read_text(encoding="utf-8")
    by_system = f"body.course, body.course .lesson {{ color-scheme: dark; {dark} --background: var(--paper); }}"
    return f"{rules}\n{own}\n@media (prefers-color-scheme: dark) {{ {by_system} }}"


# -- inside ----------------------------------------------------------------------------------------------------


def _head() -> str:
    brand = "<p class='course-brand'><i class='course-mark'></i>regard</p>"
    return f"<header>{brand}<h1>{TITLE}</h1><p class='says'>{SAYS}</p></header>"


def _live(chapter: ChapterLike) -> str:
    return f"/{chapter.number}/"


def _go_on(chapters: Sequence[ChapterLike], progress: Progress) -> str:
    """A way into the chapter that was opened last; into the first, where none was."""
    last = next((chapter for chapter in chapters if chapter.number == progress.last), None)
    if last is None:
        return (
            f"<p class='go-on'><a href='{_live(chapters[0])}'>Begin with the first chapter</a></p>" if chapters else ""
        )
    where = f"<span>{last.number}</span> {escape(last.title)}"
    return f"<p class='go-on'>Go on where you stopped: <a href='{_live(last)}'>{where}</a></p>"


def _row(chapter: ChapterLike, link: Link, progress: Progress | None) -> str:
    marks = "" if progress is None else _marks(chapter.number, progress)
    return (
        f"<li><a href='{escape(link(chapter), quote=True)}'><span class='number'>{chapter.number}</span>"
        f"<span class='words'><b>{escape(chapter.title)}</b><em>{escape(chapter.question)}</em></span></a>{marks}</li>"
    )


def _marks(number: int, progress: Progress) -> str:
    """What was done in a chapter, in words: read aloud they say the same."""
    found = []
    if progress.solved(number):
        found.append("<span class='done'>solved</span>")
    elif progress.answer(number) is not None:
        found.append("<span>begun</span>")
    chosen = progress.choice(number)
    if chosen is not None:
        found.append("<span class='done'>quiz right</span>" if chosen[1] else "<span>quiz answered</span>")
    if not found and progress.opened(number):
        found.append("<span>opened</span>")
    return f"<span class='marks'>{''.join(found)}</span>" if found else ""
