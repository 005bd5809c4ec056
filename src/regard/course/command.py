"""`regard learn`: what the command does once its options are read.

[CHAPTER]       serve the course, and open it there        --list      the chapters, and what is solved
--edit DIR      copy the notebooks, and edit the copies    --html DIR  write it as plain pages
--forget        begin anew
"""

from __future__ import annotations

import shlex
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from ..algebra.errors import CallError, MissingExtra
from .contents import CHAPTERS, Chapter, find_chapter
from .progress import Progress

Say = Callable[[str], None]
NEEDED = "marimo markdown latex2mathml pygments starlette uvicorn websockets zmq".split()
"""Packages without which no chapter opens; some chapters need more, and say so."""


@dataclass(frozen=True)
class Wanted:
    """What was asked for on the command line."""

    chapter: str | None = None
    edit: Path | None = None
    copy_only: bool = False
    html: Path | None = None
    listing: bool = False
    forget: bool = False
    yes: bool = False
    port: int | None = None
    browser: bool = True

    def check(self) -> None:
        """Refuse two things at once, and what would be left out silently."""
        given = {"--edit": self.edit, "--html": self.html, "--list": self.listing, "--forget": self.forget}
        named = [name for name, value in given.items() if value]
        if len(named) > 1:
            raise CallError(f"learn: one thing to do; got {' and '.join(named)}; leave out all but one")
        if self.copy_only and self.edit is None:
            raise CallError("--copy-only: with --edit DIR; got it without; name the folder")
        if self.yes and not self.forget:
            raise CallError("--yes: with --forget; got it without; leave it out")
        alone = named[0] if named else ""
        if self.chapter is not None and alone in ("--list", "--forget"):
            raise CallError(f"CHAPTER: to open, edit or export; got {self.chapter!r} with {alone}; leave it out")
        if self.port is not None and (alone in ("--list", "--forget", "--html") or self.copy_only):
            without = "--copy-only" if self.copy_only else alone
            raise CallError(f"--port: of a server; got it with {without}, which starts none; leave it out")

    def chapters(self) -> tuple[Chapter, ...]:
        """The one that was named, or all."""
        return CHAPTERS if self.chapter is None else (find_chapter(self.chapter),)


def show(console: Any, wanted: Wanted) -> None:
    """Do what was asked for."""

    def say(text: str) -> None:
        console.print(text, highlight=False, markup=False, soft_wrap=True)

    wanted.check()
    chapters = wanted.chapters()
    if wanted.forget:
        return forget(say, lambda asked: str(console.input(asked, markup=False)), yes=wanted.yes)  # [y/N] is no markup
    if wanted.listing:
        return list_chapters(say, CHAPTERS, Progress.read())
    _check_installed(NEEDED)
    if wanted.edit is not None:
        return edit(say, chapters, wanted.edit, wanted)
    if wanted.html is not None:
        return write_pages(say, chapters, wanted.html)
    path = f"/{chapters[0].number}/" if wanted.chapter is not None else "/"
    return open_course(say, CHAPTERS, path, port=wanted.port, browser=wanted.browser)


def open_course(
    say: Say, chapters: Sequence[Chapter], path: str = "/", *, port: int | None = None, browser: bool = True
) -> None:
    """Serve the course on this machine until Ctrl-C."""
    from ..viewer.server.run import serve_site
    from .serving.site import CourseSite

    trouble = Progress.read().trouble
    if trouble:
        say(trouble)
    serve_site(
        lambda door: CourseSite(chapters, door), name="the course", path=path, sockets=True, port=port, browser=browser,
        say=say,
    )  # fmt: skip


def edit(say: Say, chapters: Sequence[Chapter], folder: Path, wanted: Wanted) -> None:
    """Copy notebooks into a folder, and have marimo edit them there."""
    from .copying import copy_chapters

    copied = copy_chapters(chapters, folder)
    for word, paths in (("copied", copied.made), ("renewed", copied.renewed), ("there already", copied.same)):
        if paths:
            say(f"{word}: {counted(len(paths), 'notebook')} in {folder}")
    for path in copied.kept:
        say(f"kept, since you changed it: {path}; for ours, move it away and ask again")
    target = folder / chapters[0].file.name if wanted.chapter is not None else folder
    first = folder / chapters[0].file.name
    say(f"to open one: marimo edit {shlex.quote(str(first))}")
    if not wanted.copy_only:
        _run_marimo(editing(target, port=wanted.port, browser=wanted.browser))


def editing(target: Path, *, port: int | None, browser: bool) -> list[str]:
    """The command that edits a notebook or a folder of them: on this machine alone, with a token."""
    asked = [sys.executable, "-m", "marimo", "--yes", "edit", str(target), "--host", "127.0.0.1", "--token"]
    asked += ["--skip-update-check", "--no-sandbox"]  # nothing is asked of the network
    asked += [] if port is None else ["--port", str(port)]
    return asked if browser else [*asked, "--headless"]


def write_pages(say: Say, chapters: Sequence[Chapter], folder: Path) -> None:
    """The course as plain pages."""
    from .still import export

    written = export(chapters, folder, say)
    say(f"{counted(len(written), 'page')} in {folder}; open {folder / 'index.html'}")


def list_chapters(say: Say, chapters: Sequence[Chapter], progress: Progress) -> None:
    """Number, name and title of each chapter, and whether its exercise is solved."""
    if progress.trouble:
        say(progress.trouble)
    longest = max((len(chapter.name) for chapter in chapters), default=0)
    for chapter in chapters:
        mark = "solved" if progress.solved(chapter.number) else "opened" if progress.opened(chapter.number) else ""
        say(f"{chapter.number:2}  {chapter.name:{longest}}  {mark:6}  {chapter.title}")


def forget(say: Say, ask: Callable[[str], str], *, yes: bool) -> None:
    """Delete what is kept of the reader, once they say so."""
    progress = Progress.read()
    if not progress.path.exists():
        return say("nothing is kept yet")
    if not yes:
        try:
            said = ask(f"Delete your answers and marks in {progress.path}? [y/N] ")
        except EOFError:
            raise CallError("--forget: a yes, or --yes where nobody can be asked; got neither") from None
        if said.strip().lower() not in ("y", "yes"):
            return say("nothing was deleted")
    progress.forget()
    return say(progress.trouble or "begun anew")


# -- inside ----------------------------------------------------------------------------------------------------


def counted(count: int, what: str) -> str:
    """ "1 page", "16 pages"."""
    return f"{count} {what}{'' if count == 1 else 's'}"


def _check_installed(packages: Sequence[str]) -> None:
    for package in packages:
        if find_spec(package) is None:
            raise MissingExtra(package, "learn")


def _run_marimo(command: list[str]) -> None:
    """marimo in a process of its own, until it ends; Ctrl-C reaches it too, and is waited for."""
    with subprocess.Popen(command) as process:  # noqa: S603 - our own interpreter
        while True:
            try:
                code = process.wait()
                break
            except KeyboardInterrupt:
                continue
    if code not in (0, -2, 130):
        raise CallError(f"marimo: a server that ends well; got {code}, and what it printed above")
