"""Figures that many chapters draw: a matrix of weights, and curves over a number."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..._drawing.svg import Drawing, shade, upon
from .scales import lines_of as curves_of

__all__ = ["curves_of", "matrix_of"]

CELL = 40


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
