"""A question about a lens, from its address to packed bytes.

    /ask/{lens}/{question}?layer=3&head=5  →  Answers(lens).answer("question", {"layer": "3", "head": "5"}, stop)

Light questions and heavy ones have threads of their own. A client that goes away sets the `Stop` of its question.
"""

from __future__ import annotations

import asyncio
import gzip
import os
from collections.abc import Awaitable, Mapping
from typing import TypeVar

from starlette.requests import Request
from starlette.responses import Response

from ..answering.packet import packed
from ..work import Stop, Stopped
from .files import takes_gzip
from .refusals import Refusal
from .shelf import Entry
from .workers import Workers

T = TypeVar("T")
SECONDS = 60.0  # that one answer may take
LONG = 1024  # positions
SMALL = 1024  # bytes up to which packing does not pay
HEAVY, HEAVY_IF_LONG = {"measures", "rollout"}, {"thumbs", "whatif"}


class Gone(Exception):  # noqa: N818 - nothing went wrong
    """The client went away: nobody reads an answer."""


class Asking:
    """Workers for light questions and for heavy ones."""

    def __init__(self, waiting: int = 64) -> None:
        cores = os.cpu_count() or 1
        self.light = Workers(max(2, cores // 2), waiting, "light")
        self.heavy = Workers(max(1, cores // 2), waiting, "heavy")

    async def answer(self, request: Request, entry: Entry, question: str) -> Response:
        """The answer to the question in an address."""
        options, stop = options_of(request), Stop(SECONDS)
        workers = self.heavy if is_heavy(entry, question, options) else self.light
        pack = takes_gzip(request.headers)

        def work() -> tuple[bytes, bool]:
            found = packed(entry.answers.answer(question, options, stop))
            small = gzip.compress(found, 1, mtime=0) if pack and len(found) > SMALL else found
            return (small, True) if len(small) < 0.9 * len(found) else (found, False)

        content, smaller = await while_connected(request, workers.do(work, stop))
        headers = {"Vary": "Accept-Encoding", **({"Content-Encoding": "gzip"} if smaller else {})}
        return Response(content, media_type="application/octet-stream", headers=headers)

    def close(self) -> None:
        """Give up all that is being answered."""
        self.light.close()
        self.heavy.close()


def options_of(request: Request) -> dict[str, str]:
    """What stands in the address, each once, but for the token."""
    pairs = [(name, value) for name, value in request.query_params.multi_items() if name != "token"]
    found = dict(pairs)
    if len(found) != len(pairs):
        raise Refusal(400, "options: each once; got one twice; leave one out")
    return found


def is_heavy(entry: Entry, question: str, options: Mapping[str, str]) -> bool:
    """Whether a question reads many rows: all of a layer's, or those of a tile far out, or those of something long."""
    if question == "tile":
        return options.get("level", "0") not in ("0", "1", "2")
    return question in HEAVY or (question in HEAVY_IF_LONG and entry.length > LONG)


async def while_connected(request: Request, work: Awaitable[T]) -> T:
    """The outcome of work, which is cancelled where the client goes away first."""
    doing, left = asyncio.ensure_future(work), asyncio.ensure_future(_left(request))
    try:
        await asyncio.wait((doing, left), return_when=asyncio.FIRST_COMPLETED)
        if not doing.done():
            raise Gone
        return doing.result()
    except Stopped:
        raise Refusal(
            503,
            "work: within its time, while the server runs; got given up; ask for less, or again",
            {"Retry-After": "1"},
        ) from None
    finally:
        for one in (doing, left):
            one.cancel()


async def _left(request: Request) -> None:
    """Return when the client has gone."""
    while (await request.receive())["type"] != "http.disconnect":
        pass
