"""Who answers what.

/                       the page               /page/{file}             what it is made of
/lenses                 what there is to see   /ask/{lens}/{question}   numbers about one of them
/look                   a new one, from a text or an image              /export/{lens}.html      one, as a file
"""

from __future__ import annotations

import json
import logging
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from ...algebra.errors import MissingExtra, RegardError
from ..work import Stop
from .asking import Asking, Gone, while_connected
from .files import Files
from .guard import Door, Guard, kind_of_body
from .live import Looker
from .refusals import Refusal
from .shelf import Shelf


class Site:
    """The pages of one server: a shelf of lenses, a model that may look, and the workers of both."""

    def __init__(self, shelf: Shelf, looking: Looker, door: Door, files: Files | None = None) -> None:
        self.shelf, self.looking, self.door = shelf, looking, door
        self.files, self.asking = files or Files(), Asking()

    def app(self) -> ASGIApp:
        """All of it behind the guard."""
        routes = [
            Route("/", self.front),
            Route("/page/{name}", self.part),
            Route("/lenses", self.lenses),
            Route("/ask/{lens}/{question}", self.ask),
            Route("/look", self.look, methods=["POST"]),
            Route("/export/{lens}.html", self.export),
        ]
        handlers: dict[Any, Any] = {
            Refusal: _refused, RegardError: _wrong, MissingExtra: _wrong, HTTPException: _unknown, Gone: _gone,
        }  # fmt: skip
        inside = Starlette(routes=routes, exception_handlers=handlers, middleware=[Middleware(Fallen)])
        inside.router.redirect_slashes = False
        return Guard(inside, self.door)

    def close(self) -> None:
        """Give up all work."""
        self.asking.close()
        self.looking.close()

    # -- what is asked for --------------------------------------------------------------------------------------

    async def front(self, request: Request) -> Response:
        """The page, and the cookie that lets it ask."""
        response = self.files["index.html"].response(request.headers)
        response.headers["Cache-Control"] = "no-store"
        response.set_cookie(self.door.cookie, self.door.token, path="/", httponly=True, samesite="strict")
        return response

    async def part(self, request: Request) -> Response:
        """A module or the style of the page."""
        return self.files[request.path_params["name"]].response(request.headers)

    async def lenses(self, request: Request) -> Response:
        """What there is, and what the live model reads."""
        return JSONResponse({"lenses": [entry.told() for entry in self.shelf], "live": self.looking.told()})

    async def ask(self, request: Request) -> Response:
        """One question about one lens."""
        return await self.asking.answer(
            request, self.shelf[request.path_params["lens"]], request.path_params["question"]
        )

    async def look(self, request: Request) -> Response:
        """A text or an image, seen by the live model: a new lens."""
        kind = kind_of_body(request.headers)
        if not kind:
            raise Refusal(415, 'body: JSON {"text": "…"} or the bytes of an image; got another Content-Type')
        body = await request.body()
        lens = await while_connected(request, self.looking.look(text_of(body) if kind == "text" else body))
        return JSONResponse({"id": self.shelf.look(lens).id})

    async def export(self, request: Request) -> Response:
        """A lens as one file that needs no server; it is kept, never shown from here."""
        entry, stop = self.shelf[request.path_params["lens"]], Stop()

        def work() -> str:
            from ..export import html_text

            return str(html_text(entry.lens))

        text = await while_connected(request, self.asking.heavy.do(work, stop))
        headers = {"Content-Disposition": f'attachment; filename="{entry.id}.html"'}
        return Response(text, media_type="text/html; charset=utf-8", headers=headers)


def text_of(body: bytes) -> str:
    """The text in {"text": "…"}."""
    try:
        said = json.loads(body)
    except (ValueError, RecursionError):
        said = None
    text = said.get("text") if isinstance(said, dict) else None
    if not isinstance(text, str) or not text.strip():
        raise Refusal(400, 'text: some, as in {"text": "The cat sat."}; got none')
    return text


# -- when it cannot be answered ---------------------------------------------------------------------------------


async def _refused(_request: Request, refusal: Refusal) -> Response:
    return refusal.response()


async def _wrong(_request: Request, error: Exception) -> Response:
    return JSONResponse({"error": str(error)}, 400)


async def _unknown(_request: Request, error: HTTPException) -> Response:
    reason = "method: one that this address takes; got another" if error.status_code == 405 else "address: no such page"
    return JSONResponse({"error": reason}, error.status_code, headers=error.headers)


async def _gone(_request: Request, _gone: Gone) -> Response:
    return Response(status_code=499)  # nobody reads it


class Fallen:
    """Answers for an app that failed: the client reads that it did, the terminal why."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await self.app(scope, receive, send)
        except Exception:
            logging.getLogger("regard").exception("a question was not answered")
            reason = {"error": "server: it failed to answer; its terminal says why"}
            await JSONResponse(reason, 500)(scope, receive, send)
