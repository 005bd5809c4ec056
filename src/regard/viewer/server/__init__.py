"""The lens as a web server on this machine: one page, questions about lenses, and new looks by a live model.

    run        binds, opens the browser, stops;  app: who answers what;  guard: who may ask, and how much
    asking     a question as it stands in an address, answered by workers;  workers: threads that may be given up
    shelf      the lenses that can be asked;  live: a model that looks at what it is given;  files: the page

Nothing that a client sends names a file: the page is read when the server starts, and lenses have names.
"""

from __future__ import annotations

from typing import Any

from ..._names import brought, by_name

_NAMES = by_name({"run": "Served serve", "shelf": "shipped"})

__all__ = sorted(_NAMES)  # noqa: PLE0605 - one list, in one place


def __getattr__(name: str) -> Any:
    return brought(__name__, _NAMES, name, starlette="lens", uvicorn="lens")


def __dir__() -> list[str]:
    return list(__all__)
