"""The first state of a widget as a plain picture with a sentence on it, for a page in which no script runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from html import escape
from typing import Any

import numpy as np

from ..._drawing.axes import Axis
from ..._drawing.charts import Area, Dots, Line, Mark, chart
from ..figures.charts import matrix_of
from .base import Hand

WIDTH, HEIGHT = 380, 386  # of a picture of the plane: a chart whose frame is a square


def picture_of(widget: Hand) -> str:
    """A figure with its caption."""
    picture, says = PICTURES[widget.kind](widget)
    return f'<figure class="at-rest">{picture}<figcaption>{escape(says)}</figcaption></figure>'


# -- places in the plane ---------------------------------------------------------------------------------------


def _plane(widget: Hand) -> tuple[str, str]:
    given, says = widget.given, "A vector x among the points, and y, the mean of the values that it brings back."
    marks: list[Mark] = [
        Area(*_apart(given["hull"])),
        _dots(given["values"], "slate", size=4),
        _dots(given["points"], "ink", given["labels"]),
        _dots([widget.at["query"]], "accent", ["x"], 9),
        _dots([widget.found["y"]], "accent2", ["y"], 9),
    ]
    return _square((0.0, 0.0), given["reach"], marks, says), says


def _ellipse(widget: Hand) -> tuple[str, str]:
    given, query = widget.given, widget.at["query"]
    plain, seen = widget.found["euclidean"], widget.found["mahalanobis"]
    far = [min(way["distances"]) for way in (plain, seen)]
    says = (
        f"The ring, its ellipse, and the nearest point: at {far[0]:.3g} by the plain distance (blue), at {far[1]:.3g} "
        "by the one that the ellipse makes (red)."
    )
    marks: list[Mark] = [
        Area(*_apart(_around(**widget.at))),
        _dots(given["points"], "faint", given["labels"] if given["named"] else (), 4),
        Line(*_apart([query, given["points"][plain["nearest"]]]), "slate"),
        Line(*_apart([query, given["points"][seen["nearest"]]]), "accent"),
        _dots([query], "ink", size=11),
        _dots([query], "paper", size=7),
    ]
    return _square(given["mean"], given["reach"], marks, says), says


def _around(query: Any, angle: float, spread: Any) -> Any:
    """Places on an ellipse, (90, 2)."""
    turn = np.linspace(0, 2 * np.pi, 90)
    axes = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]]) * np.asarray(spread)
    return np.asarray(query) + np.stack([np.cos(turn), np.sin(turn)], axis=1) @ axes.T


def _dots(points: Any, tone: str, names: Sequence[str] = (), size: float = 6) -> Dots:
    return Dots(*_apart(points), tone, names, size)


def _apart(points: Any) -> tuple[Any, Any]:
    """x of all points, and y of all."""
    x, y = np.asarray(points, float).T
    return x, y


def _square(middle: Sequence[float], reach: float, marks: Sequence[Mark], says: str) -> str:
    across, up = (Axis("", one - reach, one + reach) for one in middle)
    return chart(across, up, *marks, width=WIDTH, height=HEIGHT, title=says)


# -- weights ---------------------------------------------------------------------------------------------------


def _rows(widget: Hand) -> tuple[str, str]:
    query = widget.given["queries"][widget.at["row"]]
    says = f"How much “{query}” takes from each."
    return _cells([widget.found["weights"]], [query], widget.given["labels"], says), says


def _matrix(widget: Hand) -> tuple[str, str]:
    tokens, head, query = widget.given["tokens"], widget.at["head"], widget.at["query"]
    says = f"{head}: how much the word of a row takes from each; the row of “{tokens[query]}” is framed."
    return _cells(widget.given["weights"][head], tokens, tokens, says, query), says


def _mistakes(widget: Hand) -> tuple[str, str]:
    made = widget.at["mistake"]
    says = f"The weights with the mistake “{made}”." if made else "The weights as they are meant."
    return _cells(widget.found["weights"], widget.given["queries"], widget.given["tokens"], says), says


def _cells(weights: Any, rows: Sequence[str], columns: Sequence[str], says: str, lit: int | None = None) -> str:
    """Cells as wide as the longest word above them; what is no number is drawn as 0."""
    shown = np.nan_to_num(np.asarray(weights, float))
    return matrix_of(shown, rows, columns, says=says, lit=lit, cell=max(36.0, 8.0 * max(map(len, columns))))


PICTURES: dict[str, Callable[[Hand], tuple[str, str]]] = {
    "plane": _plane,
    "ellipse": _ellipse,
    "rows": _rows,
    "matrix": _matrix,
    "mistakes": _mistakes,
}
