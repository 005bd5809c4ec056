"""A part of a page, in two forms.

live   for a notebook: may hold what can be moved, pressed and written into
still  for a file: plain HTML, which needs neither Python nor a script
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from html import escape
from typing import Any


@dataclass(frozen=True)
class Piece:
    """Both forms. A notebook shows the first."""

    live: str
    still: str

    def _mime_(self) -> tuple[str, str]:
        """How marimo shows a value."""
        return "text/html", self.live

    def _repr_html_(self) -> str:
        return self.live


def same(text: str) -> Piece:
    """A piece that is the same in both forms."""
    return Piece(text, text)


def element(name: str, inside: Piece | str, **given: Any) -> Piece:
    """An element around a piece.

    >>> element("p", "a & b", class_="note").still
    '<p class="note">a &amp; b</p>'
    """
    held = inside if isinstance(inside, Piece) else same(escape(inside))
    open_, close = f"<{name}{attributes(given)}>", f"</{name}>"
    return Piece(f"{open_}{held.live}{close}", f"{open_}{held.still}{close}")


def joined(pieces: Iterable[Piece]) -> Piece:
    """Pieces one after the other."""
    kept = list(pieces)
    return Piece("".join(one.live for one in kept), "".join(one.still for one in kept))


def attributes(given: dict[str, Any]) -> str:
    """Attributes as they stand in a tag; class_ is class, and None is left out."""
    named = {name.rstrip("_").replace("_", "-"): value for name, value in given.items() if value is not None}
    return "".join(f' {name}="{escape(str(value), quote=True)}"' for name, value in named.items())
