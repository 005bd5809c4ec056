"""The course as plain pages: index.html, and one page for each chapter, which need neither Python nor a script.

    export(CHAPTERS, Path("course"))        # runs every notebook once, and writes what its cells show

A cell's `Piece` has a still form of its own. Of other values the HTML is taken, with what could be moved reduced to its
label and its value. A link to another chapter, `href="../6" data-chapter="6"`, leads to its page. A page with widgets
has their script, which draws them in the place of their plain pictures.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from html import escape, unescape
from pathlib import Path
from typing import Any

from ..algebra.errors import CallError
from .notebook import Cell, NotebookError, run_once
from .serving.front import ChapterLike, document, sheet, still_front

Tell = Callable[[str], object]
MOVABLE = re.compile(r"<marimo-ui-element[^>]*>(.*?)</marimo-ui-element>", re.DOTALL)
INSIDE = re.compile(r"<(marimo-[\w-]+)((?:\s+[\w-]+(?:='[^']*'|=\"[^\"]*\")?)*)\s*>")
GIVEN = re.compile(r"([\w-]+)=(?:'([^']*)'|\"([^\"]*)\")")
TEX = re.compile(r"<marimo-tex[^>]*>(?:\|\|[(\[])?(.*?)(?:\|\|[)\]])?</marimo-tex>", re.DOTALL)
OTHER = re.compile(r"</?marimo-[\w-]+[^>]*>")
LINK = re.compile(r"<a\b[^>]*>")


def export(chapters: Sequence[ChapterLike], folder: Path, tell: Tell = lambda text: None) -> list[Path]:
    """Write the pages of chapters; where one fails the others are written all the same, and an error names its cell."""
    _prepare(folder)
    links = {chapter.number: page_name(chapter) for chapter in chapters}
    written, failed = [], []
    for place, chapter in enumerate(chapters):
        tell(f"{chapter.number:2}  {chapter.title}")
        try:
            page = chapter_page(chapters, place, links)
        except NotebookError as error:
            failed.append(str(error))
            tell(f"    failed: {error}")
            page = _page(chapters, place, f"<p class='still-cell'>It could not be run: {escape(str(error))}</p>")
        written.append(_write(folder / page_name(chapter), page))
    written.insert(0, _write(folder / "index.html", still_front(chapters, page_name)))
    if failed:
        raise NotebookError(f"--html: chapters that run; got {len(failed)} that did not: {'; '.join(failed)}")
    return written


def page_name(chapter: ChapterLike) -> str:
    """The file of a chapter: c05_weight.html."""
    return f"{chapter.file.stem}.html"


def chapter_page(chapters: Sequence[ChapterLike], place: int, links: dict[int, str]) -> str:
    """The page of one chapter, which is run for it."""
    shown = "".join(_shown(cell, value) for cell, value in run_once(chapters[place].file))
    return _page(chapters, place, _led(shown, links))


# -- a page ----------------------------------------------------------------------------------------------------


def _page(chapters: Sequence[ChapterLike], place: int, body: str) -> str:
    chapter = chapters[place]
    before = chapters[place - 1] if place else None
    after = chapters[place + 1] if place + 1 < len(chapters) else None
    bar = (
        "<div class='course-bar'><span class='course-brand'><i class='course-mark'></i>regard</span>"
        "<a href='index.html'>Contents</a>"
        f"{_step(before, '← {}', 'prev')}{_step(after, '{} →', 'next')}</div>"
    )
    below = (
        f"<nav class='course-steps'>{_step(before, '← {}', 'prev', whole=True) or '<span></span>'}"
        f"{_step(after, '{} →', 'next', whole=True)}</nav>"
    )
    whole = f"<div class='course-still'>{bar}<main>{body}</main>{below}</div>{_script(body)}"
    return document(f"{chapter.number} {chapter.title}", whole, f"<style>{sheet()}</style>")


def _script(body: str) -> str:
    """What draws the widgets of a page, where it has any."""
    if "<div data-hand=" not in body:
        return ""
    from .widgets.still import shared_html

    return shared_html()


def _step(chapter: ChapterLike | None, sign: str, kind: str, *, whole: bool = False) -> str:
    if chapter is None:
        return ""
    says = f"{chapter.number} {escape(chapter.title)}" if whole else str(chapter.number)
    title = escape(chapter.title, quote=True)
    return f"<a rel='{kind}' href='{page_name(chapter)}' title='{title}'>{sign.format(says)}</a>"


def _shown(cell: Cell, value: Any) -> str:
    """What a cell shows, and its code in a fold unless the page hides it."""
    code = "" if cell.hidden or not cell.code.strip() else _code(cell.code)
    if value is None:
        return code
    still = getattr(value, "still", None)
    return (still if isinstance(still, str) else f"<div class='still-cell'>{_plain(_html(value))}</div>") + code


def _code(source: str) -> str:
    return f"<details class='still-code'><summary>Code</summary><pre><code>{escape(source)}</code></pre></details>"


def _html(value: Any) -> str:
    import marimo

    return str(marimo.as_html(value).text)


# -- without marimo --------------------------------------------------------------------------------------------


def _plain(text: str) -> str:
    """HTML without marimo's own elements: what can be moved is its label and its value, mathematics its LaTeX."""
    found = MOVABLE.sub(_reduced, text)
    found = TEX.sub(lambda tex: f"<code>{tex[1]}</code>", found)
    return OTHER.sub("", found)


def _reduced(found: re.Match[str]) -> str:
    inside = INSIDE.search(found[1])
    given = {name: unescape(one or other) for name, one, other in GIVEN.findall(inside[2])} if inside else {}
    label, value = (_told(given.get(name, "")) for name in ("data-label", "data-initial-value"))
    words = re.sub(r"<[^>]+>", "", str(label or "")).strip()
    shown = ", ".join(map(str, value)) if isinstance(value, list) else str("" if value is None else value)
    return f"<span class='still-value'>{escape(words)} <b>{escape(shown)}</b></span>"


def _told(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


# -- links -----------------------------------------------------------------------------------------------------


def _led(page: str, links: dict[int, str]) -> str:
    """The page with links to chapters, and to the contents, made links to files; to one that is not written, none."""

    def lead(found: re.Match[str]) -> str:
        given = {name: one or other for name, one, other in GIVEN.findall(found[0])}
        number = given.get("data-chapter") or _chapter_in(given.get("href", ""))
        if number is None:
            return found[0].replace(f"{given['href']}", "index.html") if given.get("href") in ("/", "../") else found[0]
        target = links.get(int(number))
        return f"<a href='{target}' data-chapter='{number}'>" if target else "<a>"

    return LINK.sub(lead, page)


def _chapter_in(address: str) -> str | None:
    found = re.fullmatch(r"(?:/|\.\./)(\d+)/?", address)
    return found[1] if found else None


# -- files -----------------------------------------------------------------------------------------------------


def _prepare(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except FileExistsError:
        raise CallError(f"--html: a folder; got {str(folder)!r}, which is a file; name another") from None
    except OSError as error:
        raise CallError(f"--html: a folder that can be made; got {str(folder)!r}: {error.strerror}") from None


def _write(path: Path, text: str) -> Path:
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise CallError(f"--html: a folder that can be written; got {str(path.parent)!r}: {error.strerror}") from None
    return path
