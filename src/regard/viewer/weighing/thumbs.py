"""Small pictures of all heads of a layer at once: each pixel shows 255 · √(the largest weight that it covers).

Of a long map one row stands for each pixel row, with all of its columns.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..record import Captured
from ..work import Stop
from .pixels import host
from .totals import Head, compact, without_values

CELLS = 2**22  # held at once
EXACT = 2**24  # cells of all heads up to which every row is read


def thumbs(captured: Captured, batch: int, side: int, stop: Stop | None = None) -> tuple[Any, bool]:
    """uint8 (heads, r, c) with at most side × side pixels, and whether every row was read."""
    parts = without_values(captured, captured.formula)
    _, heads, queries, keys = parts.shape
    down, across = _edges(queries, side), _edges(keys, side)
    exact = heads * queries * keys <= EXACT
    rows = np.arange(queries) if exact else np.minimum(down + queries // (2 * side), queries - 1)
    found = np.full((heads, len(down), len(across)), -np.inf, np.float32)
    for head in range(heads):
        for places in _blocks(rows, len(rows) if parts.shared == "rows" and not exact else CELLS // max(1, keys)):
            if stop is not None:
                stop.check()
            strip = np.maximum.reduceat(_weights(captured, batch, head, places, exact, stop), across, axis=1)
            np.maximum.at(found[head], np.searchsorted(down, places, side="right") - 1, strip)
    shown = np.sqrt(np.clip(np.nan_to_num(found, nan=0.0), 0, 1))
    return np.rint(255 * shown).astype(np.uint8), exact


def _edges(size: int, side: int) -> Any:
    """Where each of at most `side` pixels begins."""
    count = min(size, side)
    return np.arange(count) * size // max(1, count)


def _blocks(rows: Any, step: int) -> list[Any]:
    return [rows[first : first + max(1, step)] for first in range(0, len(rows), max(1, step))]


def _weights(captured: Captured, batch: int, head: int, rows: Any, exact: bool, stop: Stop | None) -> Any:
    """(rows, keys). Where rows share a total and not all are read, those that are stand for all."""
    parts = without_values(captured, captured.formula)
    if parts.shared == "rows" and not exact:
        share = len(rows) / parts.shape[2]
        return share * host(parts.by_itself(batch=batch, heads=head, rows=rows).weights[0, 0])
    if parts.shared == "columns":
        return host(parts.weights(batch=batch, heads=head, rows=compact(rows))[0, 0])
    return host(Head(captured, batch, head).weights(compact(rows), slice(None), stop))
