"""Rows of weights, a few at a time: whoever adds them up never holds an N × n matrix.

weights that share a total along keys        each block of rows by itself
... along queries                            after the totals of all columns, which are found once and kept
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from ...algebra.errors import CallError
from ...attention import Attention
from ...parts import Parts
from ..record import Captured
from ..work import Stop
from .totals import totals

BLOCK = 2**20  # pairs that are held at once
SAMPLE = 2**22  # pairs of a head that a sample of its rows holds
LARGEST = 2**26  # pairs of a head that are looked at where every row counts in every weight


def sample(queries: int, keys: int, most: int | None = None, cells: int = SAMPLE) -> np.ndarray[Any, Any]:
    """Every row, or evenly spaced ones: at most so many, with at most so many pairs."""
    count = min(queries, max(1, cells // max(keys, 1)), queries if most is None else most)
    return np.unique(np.linspace(0, queries - 1, count).round().astype(np.int64)) if count else np.arange(0)


def blocks(
    captured: Captured, readings: Sequence[Parts], batch: int, heads: range, rows: np.ndarray[Any, Any], stop: Stop
) -> Iterator[tuple[np.ndarray[Any, Any], list[Any]]]:
    """The rows, a block at a time, with their steps in each reading; all of the heads stand in each block.

    readings: the captured arrays under one formula or several
    """
    known = [_known(captured, parts, batch, heads, stop) for parts in readings]
    step = max(1, BLOCK // max(1, *(_deep(parts, heads) * parts.shape[3] for parts in readings)))
    for first in range(0, len(rows), step):
        stop.check()
        chosen = rows[first : first + step]
        part = {"batch": batch, "heads": list(heads), "rows": chosen}
        yield chosen, [parts.steps(totals, **part) for parts, totals in zip(readings, known, strict=True)]


def _deep(parts: Parts, heads: range) -> int:
    """How many matrices are looked at to see those of the heads."""
    items, every, _, _ = parts.shape
    return {"heads": every, "batch": len(heads) * items}.get(parts.shared or "", len(heads))


def _known(captured: Captured, parts: Parts, batch: int, heads: range, stop: Stop) -> Any | None:
    """Z of every column, (1, heads, keys), where weights share along queries; None elsewhere."""
    _, _, queries, keys = parts.shape
    if parts.shared != "rows":
        return None
    if queries * keys > LARGEST:
        raise CallError(
            f"weight: shared over queries, it is looked at up to {LARGEST} pairs of a head, since every weight needs "
            f"all rows; got {queries} × {keys}; take a shorter input"
        )
    formula = parts.formula
    assert isinstance(formula, Attention)  # as `Captured.under` was given one
    return parts.call.xp.stack([totals(captured, batch, head, formula, stop) for head in heads])[None]
