"""Who answers what.

/                   the table of contents        /page/{file}    its style, and the bar above a chapter
/5/                 chapter 5, by marimo, with a kernel of its own for each window
/5, /weight         lead there                   ?token=…        is taken into a cookie, and out of the address

The front page and the chapters have a guard each: a page of marimo may do more than ours, and sockets are for it alone.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Sequence
from html import escape
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlencode

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from ...algebra.errors import MissingExtra
from ...viewer.server.files import File
from ...viewer.server.guard import Door, Guard
from ..progress import Progress
from .front import FILES, ChapterLike, front_page, sheet, unknown_page
from .policy import chapter_rules

SECONDS = 900  # that a kernel waits for a window that went to sleep
LOOK = {"display": {"theme": "system"}}  # of marimo's pages: light or dark, as the front page


class CourseSite:
    """The pages of the course.

    reading: what tells how far the reader is
    """

    def __init__(
        self, chapters: Sequence[ChapterLike], door: Door, reading: Callable[[], Progress] = Progress.read
    ) -> None:
        self.chapters, self.door, self.reading = chapters, door, reading
        self.files = {
            "course.css": File.of(sheet().encode(), "text/css; charset=utf-8"),
            "chapter.js": File.of((FILES / "chapter.js").read_bytes(), "text/javascript; charset=utf-8"),
        }
        self.notebooks = _notebooks(chapters)

    def app(self) -> ASGIApp:
        """All of it behind its guards."""
        front, chapters = Guard(self._front(), self.door), Guard(self._chapter, self.door, chapter_rules(self.door))
        numbers = {str(chapter.number) for chapter in self.chapters}

        async def course(scope: Scope, receive: Receive, send: Send) -> None:
            if scope["type"] == "lifespan":
                return
            inside = scope["path"].split("/")[1] in numbers
            await (chapters if inside else front)(scope, receive, send)

        return course

    def close(self) -> None:
        """End the kernels of all windows."""
        for sessions in _sessions(self.notebooks):
            try:
                sessions.close_all_sessions()
            except Exception:  # the others are to end all the same
                logging.getLogger("regard").exception("a chapter did not end")

    # -- the front ---------------------------------------------------------------------------------------------

    def _front(self) -> ASGIApp:
        routes = [
            Route("/", self.contents),
            Route("/page/{name}", self.part),
            *(Route(f"/{chapter.name}", _leading_to(chapter)) for chapter in self.chapters),
        ]
        handlers: dict[Any, Any] = {HTTPException: _unknown}
        inside = Starlette(routes=routes, exception_handlers=handlers)
        inside.router.redirect_slashes = False
        return inside

    async def contents(self, _request: Request) -> Response:
        """The front page, and the cookie that opens the rest."""
        page = await run_in_threadpool(lambda: front_page(self.chapters, self.reading()))
        return self._with_cookie(HTMLResponse(page))

    async def part(self, request: Request) -> Response:
        """A file of the page."""
        name = request.path_params["name"]
        if name not in self.files:
            raise HTTPException(404)
        return self.files[name].response(request.headers)

    # -- a chapter ---------------------------------------------------------------------------------------------

    async def _chapter(self, scope: Scope, receive: Receive, send: Send) -> None:
        """A page of marimo's; the token is taken out of its address first, and the opening is kept."""
        if scope["type"] == "http":
            asked = parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)
            if any(name == "token" for name, _ in asked):
                return await self._without_token(scope["path"], asked)(scope, receive, send)
            parts = scope["path"].split("/")
            if parts[2:] == [""] and scope["method"] == "GET":
                await run_in_threadpool(lambda: self.reading().keep_opened(int(parts[1])))
        return await self.notebooks(scope, receive, send)

    def _without_token(self, path: str, asked: list[tuple[str, str]]) -> Response:
        rest = urlencode([(name, value) for name, value in asked if name != "token"])
        clean = "/" + path.strip("/") + "/"
        return self._with_cookie(RedirectResponse(f"{clean}?{rest}" if rest else clean, 303))

    def _with_cookie(self, response: Response) -> Response:
        response.set_cookie(self.door.cookie, self.door.token, path="/", httponly=True, samesite="strict")
        response.headers["Cache-Control"] = "no-store"
        return response


# -- marimo ----------------------------------------------------------------------------------------------------


def _notebooks(chapters: Sequence[ChapterLike]) -> ASGIApp:
    """An app of marimo's with each chapter at its number."""
    try:
        import marimo
    except ImportError:
        raise MissingExtra("marimo", "learn") from None
    builder = marimo.create_asgi_app(
        quiet=True, include_code=True, session_ttl=SECONDS, show_tracebacks=True, html_head=_head(chapters)
    )
    for chapter in chapters:
        builder = builder.with_app(path=f"/{chapter.number}", root=str(Path(chapter.file)))
    built: Any = builder.build()
    for state in _states(built):
        state.config_manager = state.config_manager.with_overrides(LOOK)
    return built  # type: ignore[no-any-return]


def _head(chapters: Sequence[ChapterLike]) -> str:
    """What stands in the head of each chapter's page: our style, and the bar."""
    told = json.dumps([[chapter.number, chapter.title] for chapter in chapters])
    return (
        "<link rel='stylesheet' href='/page/course.css'>"
        f"<script src='/page/chapter.js' data-chapters='{escape(told, quote=True)}'></script>"
    )


def _states(built: Any) -> list[Any]:
    """What marimo keeps of each notebook."""
    found = [getattr(getattr(route, "app", None), "state", None) for route in getattr(built, "routes", ())]
    return [state for state in found if hasattr(state, "session_manager")]


def _sessions(built: Any) -> list[Any]:
    return [state.session_manager for state in _states(built)]


# -- small parts -----------------------------------------------------------------------------------------------


def _leading_to(chapter: ChapterLike) -> Callable[[Request], Response]:
    def lead(_request: Request) -> Response:
        return RedirectResponse(f"/{chapter.number}/", 307)

    return lead


async def _unknown(_request: Request, error: HTTPException) -> Response:
    return HTMLResponse(unknown_page(), error.status_code, error.headers)
