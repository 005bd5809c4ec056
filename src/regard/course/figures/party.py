"""Guests at a party: whom each of them reads, what it wants and what it gets; and what the matrices read of a guest."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..._drawing.svg import Drawing, shade

CELL = 46


def paint(colour: Any) -> str:
    """Three numbers from −1 to 1 as red, green and blue."""
    red, green, blue = (round(255 * min(max((float(part) + 1) / 2, 0), 1)) for part in colour)
    return f"rgb({red} {green} {blue})"


def guests_of(
    weights: Any, names: Sequence[str], partner: Sequence[int], held: Any, wanted: Any, fetched: Any, *, says: str
) -> str:
    """Weights of every guest on every other, the one who is sought with a frame; colours held above, fetched beside."""
    n, left, head = len(names), 138, 62
    drawing = Drawing(left + n * CELL + 118, head + n * CELL + 10)
    drawing.text((left - 14, head - 32), "holds", "faint", 12, "end")
    for j, name in enumerate(names):
        across = left + (j + 0.5) * CELL
        drawing.text((across, head - 52), name, "ink", 13)
        drawing.circle((across, head - 30), 9, paint(held[j]), "hair", 1.2)
    for i in range(n):
        down = head + (i + 0.5) * CELL
        drawing.text((left - 14, down), f"{names[i]} seeks {names[partner[i]]}", "ink", 13, "end")
        for j in range(n):
            share = float(weights[i][j])
            drawing.rect((left + j * CELL, head + i * CELL), CELL - 2, CELL - 2, shade(share), round_=3)
            drawing.text((left + (j + 0.48) * CELL, down - 1), f"{share:.2f}", "paper" if share > 0.55 else "soft", 12)
        corner = (left + partner[i] * CELL - 1, head + i * CELL - 1)
        drawing.rect(corner, CELL, CELL, "none", "accent", 2.2, 4)
        _colours(drawing, left + n * CELL + 28, down, wanted[i], fetched[i])
    drawing.text((left + n * CELL + 28, head - 14), "wants", "faint", 12)
    drawing.text((left + n * CELL + 82, head - 14), "gets", "faint", 12)
    return drawing.svg(says)


def _colours(drawing: Drawing, across: float, down: float, wanted: Any, fetched: Any) -> None:
    drawing.circle((across, down), 12, paint(wanted), "hair", 1.2)
    drawing.line((across + 18, down), (across + 36, down), "hair", 1.5)
    drawing.circle((across + 54, down), 12, paint(fetched), "hair", 1.2)


def parts_of(matrix: Any, rows: Mapping[str, slice], columns: Mapping[str, slice] | None, *, says: str) -> str:
    """A matrix by the parts of a guest: red where it is positive, blue where negative, darker where larger."""
    matrix = np.asarray(matrix, float)
    (n, m), side, left, head = matrix.shape, 11.5, 58, 26
    drawing, most = Drawing(left + m * side + 12, head + n * side + 6), float(np.abs(matrix).max()) or 1.0
    for i in range(n):
        for j in range(m):
            tone = shade(abs(matrix[i, j]) / most, "accent2" if matrix[i, j] > 0 else "slate")
            drawing.rect((left + j * side, head + i * side), side - 0.8, side - 0.8, tone)
    for name, part in rows.items():
        drawing.text((left - 7, head + (part.start + part.stop) / 2 * side), name, "soft", 12, "end")
        if part.start:
            _rule(drawing, (left, head + part.start * side - 0.4), (left + m * side, head + part.start * side - 0.4))
    for name, part in (columns or {}).items():
        drawing.text((left + (part.start + part.stop) / 2 * side, head - 12), name, "soft", 12)
        if part.start:
            _rule(drawing, (left + part.start * side - 0.4, head), (left + part.start * side - 0.4, head + n * side))
    return drawing.svg(says)


def _rule(drawing: Drawing, start: tuple[float, float], end: tuple[float, float]) -> None:
    drawing.line(start, end, "faint", 1)
