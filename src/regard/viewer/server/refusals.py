"""A request that is refused: a status of HTTP, and a reason in words that names nothing of this machine."""

from __future__ import annotations

from collections.abc import Mapping

from starlette.responses import JSONResponse

UNREAD = (403, 405, 413, 414, 415, 421)  # what is left of such a request is not waited for


class Refusal(Exception):  # noqa: N818 - it is no error of ours
    """Ends a request with a status and a reason."""

    def __init__(self, status: int, reason: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(reason)
        unread = {"Connection": "close"} if status in UNREAD else {}
        self.status, self.reason, self.headers = status, reason, {**unread, **(headers or {})}

    def response(self) -> JSONResponse:
        """As the client reads it: {"error": reason}."""
        return JSONResponse({"error": self.reason}, self.status, self.headers)
