"""Figures of the ledger's page, from numbers alone: charts and bars, maps of matrices, and small tables.

    chart(Axis("angle", 0, 180), Axis("distance", 0, 2), Line(degrees, apart), Dots([180], [2], "accent", ["opposite"]))

`heat` and `grid` are figures of their own, and `side_by_side` joins some.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import Any

from .._drawing.axes import Axis
from .._drawing.charts import Area, Columns, Dots, Line, Mark, Upright, bars, chart, shades

__all__ = [
    "Area",
    "Axis",
    "Columns",
    "Dots",
    "Line",
    "Mark",
    "Upright",
    "bars",
    "chart",
    "grid",
    "heat",
    "side_by_side",
]


def heat(matrix: Any, title: str, cell: float = 7) -> str:
    """A matrix as shades below its title."""
    return f'<div class="map"><p>{escape(title)}</p>{shades(matrix, title, cell)}</div>'


def grid(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A small table; the first cell of a row is its name."""
    head = "".join(f'<th scope="col">{escape(name)}</th>' for name in columns)
    body = "".join(
        f'<tr><th scope="row">{escape(name)}</th>{"".join(f"<td>{escape(cell)}</td>" for cell in cells)}</tr>'
        for name, *cells in rows
    )
    return f'<table class="grid"><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>'


def side_by_side(*parts: str) -> str:
    """Figures in a row, as far as there is room."""
    return f'<div class="beside">{"".join(parts)}</div>'
