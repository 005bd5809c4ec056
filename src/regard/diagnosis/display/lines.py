"""Lines of a page: pieces of text with roles, wrapped and indented by the columns that they take."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator
from typing import NamedTuple

LABEL = 11  # columns of "measured" and its like, in front of what they name
FIXED = "\N{NO-BREAK SPACE}"  # no line breaks here


class Piece(NamedTuple):
    """A text and its role: good, bad, warning, unknown, strong, dim, code, or none."""

    text: str
    role: str = ""


Line = tuple[Piece, ...]


def columns(text: str) -> int:
    """How many columns of a terminal the text takes: two for a wide character, none for an accent."""
    apart = (sign for sign in text if unicodedata.category(sign) not in ("Mn", "Me"))
    return sum(1 + (unicodedata.east_asian_width(sign) in "WF") for sign in apart)


def folded(text: str, width: int) -> list[str]:
    """The text in parts of at most `width` columns, its spaces kept; broken after a space where one is near."""
    parts = [""]
    for sign in text:
        if columns(parts[-1] + sign) > width:
            near = parts[-1].rfind(" ") + 1
            parts[-1:] = [parts[-1][:near], parts[-1][near:]] if near > width // 2 else [parts[-1], ""]
        parts[-1] += sign
    return parts


def flow(pieces: Iterable[Piece], width: int, hang: int = 0) -> list[Line]:
    """Words from left to right, on as many lines as they need; lines after the first hang back by `hang`."""
    made: list[list[Piece]] = [[]]
    for text, role in pieces:
        for word in filter(None, re.split(r"[ \n]+", text)):
            for part in folded(word, width - hang):
                if made[-1] and length(made[-1]) + 1 + columns(part) > width - (hang if made[1:] else 0):
                    made.append([])
                made[-1].append(Piece(f" {part}" if made[-1] else part.lstrip(FIXED), role))
    texts = [tuple(Piece(text.replace(FIXED, " "), role) for text, role in line) for line in made]
    return [*texts[:1], *((Piece(" " * hang), *line) for line in texts[1:])]


def indented(body: Iterable[Line], indent: int) -> Iterator[Line]:
    return ((Piece(" " * indent), *line) for line in body)


def labelled(label: str, body: Iterable[Line], size: int = LABEL) -> Iterator[Line]:
    """The body, with its name in front of the first line."""
    for place, line in enumerate(body):
        front = "" if place else label
        yield (Piece(f"  {front}{' ' * (size - columns(front))}", "dim"), *line)


def length(line: Iterable[Piece]) -> int:
    """How many columns a line takes."""
    return sum(columns(piece.text) for piece in line)
