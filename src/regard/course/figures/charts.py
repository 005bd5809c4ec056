"""Figures that many chapters draw: a matrix of weights, and curves over a number."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from .svg import Drawing, Frame, shade, upon

CELL = 40
COLOURS = ("accent", "slate", "accent2", "faint")


def matrix_of(
    weights: Any, rows: Sequence[str] = (), columns: Sequence[str] = (), *, says: str, top: float | None = None,
    digits: int = 2, cell: float = CELL, lit: int | None = None,
) -> str:  # fmt: skip
    """A matrix as cells, darker where it is larger, each with its number where there is room; `lit` marks a row."""
    weights = np.asarray(weights, float)
    n, m = weights.shape
    left = 14 + 8 * max((len(name) for name in rows), default=0)
    head = 26 if columns else 6
    drawing = Drawing(left + m * cell + 8, head + n * cell + 8)
    most = float(np.max(weights, initial=0)) if top is None else top
    for i in range(n):
        for j in range(m):
            share = weights[i, j] / most if most else 0.0
            drawing.rect((left + j * cell, head + i * cell), cell - 1.5, cell - 1.5, shade(share), round_=2)
            if cell >= 30:
                text = f"{weights[i, j]:.{digits}f}" if weights[i, j] else "0"
                place = (left + (j + 0.5) * cell - 0.75, head + (i + 0.5) * cell - 0.75)
                drawing.text(place, text, upon(share), cell * 0.28)
    for i, name in enumerate(rows):
        drawing.text((left - 8, head + (i + 0.5) * cell), name, "ink", 13, "end", bold=i == lit)
    for j, name in enumerate(columns):
        drawing.text((left + (j + 0.5) * cell, head - 12), name, "ink", 13)
    if lit is not None:
        drawing.rect((left - 2, head + lit * cell - 2), m * cell + 2.5, cell + 2.5, "none", "accent", 2, 4)
    return drawing.svg(says)


def curves_of(
    x: Any, curves: Mapping[str, Any], *, says: str, across: str, up: str, width: float = 640, height: float = 300,
    low: float | None = None, high: float | None = None, colours: Sequence[str] = COLOURS,
) -> str:  # fmt: skip
    """Curves over x, each with its name at its end."""
    drawing, x = Drawing(width, height), np.asarray(x, float)
    ys = {name: np.asarray(y, float) for name, y in curves.items()}
    every = np.concatenate(list(ys.values()))
    lowest, highest = (float(every.min()) if low is None else low), (float(every.max()) if high is None else high)
    room = 20 + 7.5 * max(len(name) for name in ys)
    frame = Frame(48, 24, width - 48 - room, height - 70, (float(x[0]), float(x[-1])), (lowest, highest or 1.0))
    _axes(drawing, frame, across, up)
    for (name, y), tone in zip(ys.items(), colours, strict=False):
        drawing.path([frame(point) for point in zip(x, y, strict=True)], tone, 2.2)
        drawing.text((frame((x[-1], y[-1]))[0] + 8, frame((x[-1], y[-1]))[1]), name, tone, 13, "start")
    return drawing.svg(says)


def _axes(drawing: Drawing, frame: Frame, across: str, up: str) -> None:
    bottom, left = frame.top + frame.height, frame.left
    drawing.line((left, bottom), (left + frame.width, bottom), "hair")
    for tick in np.linspace(*frame.x, 5):
        place = frame((tick, frame.y[0]))
        drawing.text((place[0], bottom + 14), f"{tick:.3g}", "faint", 11.5)
    for tick in np.linspace(*frame.y, 3):
        place = frame((frame.x[0], tick))
        drawing.line((left, place[1]), (left + frame.width, place[1]), "hair", 1)
        drawing.text((left - 8, place[1]), f"{tick:.2g}", "faint", 11.5, "end")
    drawing.text((left + frame.width / 2, bottom + 34), across, "soft", 12.5)
    drawing.text((left - 36, frame.top - 14), up, "soft", 12.5, "start")
