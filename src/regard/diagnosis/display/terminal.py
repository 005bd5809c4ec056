"""A report in a terminal: the lines of the plain text, coloured, with code highlighted."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...algebra.errors import MissingExtra
from .lines import Line, Piece
from .text import lines

try:
    from rich.console import Console
    from rich.syntax import Syntax
    from rich.text import Text
except ImportError as missing:
    raise MissingExtra(missing.name or "rich", "cli") from None

if TYPE_CHECKING:
    from ..report import Report

STYLES = {
    "good": "bold green",
    "bad": "bold red",
    "warning": "bold yellow",
    "unknown": "bold yellow",
    "strong": "bold",
    "dim": "dim",
}
PYTHON = Syntax("", "python", theme="ansi_dark", background_color="default")  # colours that the terminal itself names


def show(report: Report, console: Console) -> None:
    """Print the report, at the width and in the letters of the console."""
    for line in lines(report, console.width, console.encoding):
        console.print(coloured(line), soft_wrap=True)


def coloured(line: Line) -> Text:
    """A line with the colours of its roles; no text in it is read as markup."""
    return Text.assemble(*map(_text, line))


def _text(piece: Piece) -> Text:
    if piece.role != "code":
        return Text(piece.text, style=STYLES.get(piece.role, ""))
    found = PYTHON.highlight(piece.text)
    found.right_crop(len(found.plain) - len(piece.text))  # the end of line that the highlighter adds
    return found
