"""A call that fits a formula: random vectors, and tables of the shapes that its reads need."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from .algebra.fold import fold
from .algebra.formula import Formula
from .algebra.intervals import Intervals
from .algebra.nodes import BATCH, HEAD, HEADS, KEYS, WIDTH, I, J, Read, walk


@dataclass(frozen=True)
class Example:
    """The arguments of one call."""

    q: Any
    k: Any
    v: Any
    tables: dict[str, Any]


def example(
    formula: Formula, *, batch: int = 1, heads: int = 2, n: int = 6, width: int = 4, seed: int = 0, values: bool = True
) -> Example:
    """Random q, k, v of (batch, heads, n, width), and a table for every name that the formula reads.

    `values=False` leaves the vectors at zero, for a plan that looks at shapes alone.
    """
    rng = np.random.default_rng(seed)
    shape = (batch, heads, n, width)
    q, k, v = rng.standard_normal((3, *shape)) if values else (np.broadcast_to(np.zeros(1), shape) for _ in range(3))
    ranges = {
        I: (0, n - 1), J: (0, n - 1), HEAD: (0, heads - 1), BATCH: (0, batch - 1),
        HEADS: (heads, heads), KEYS: (n, n), WIDTH: (width, width),
    }  # fmt: skip
    reading = Intervals(ranges)
    tables: dict[str, Any] = {}
    for name, size in _shapes(formula, reading, width).items():
        tables[name] = _table(formula, name, size, rng, n)
    for name in formula.ranks:
        if name not in tables:  # a mask of the call
            tables[name] = rng.random((n, n)) < 0.7
    return Example(q, k, v, tables)


def _shapes(formula: Formula, reading: Intervals, width: int) -> dict[str, tuple[int, ...]]:
    """The smallest shape that holds every entry which the formula reads."""
    shapes: dict[str, tuple[int, ...]] = {}
    for read, metric in _reads(formula):
        highest = [fold(index, reading)[1] for index in read.indices]
        sizes = tuple(int(high) + 1 if high < 2**31 else 1 for high in highest)
        whole = (*sizes, width, width) if metric else sizes
        known = shapes.get(read.table, whole)
        shapes[read.table] = tuple(max(a, b, 1) for a, b in zip(known, whole, strict=True))
    return shapes


def _reads(formula: Formula) -> Iterator[tuple[Read, bool]]:
    metrics = {pair.metric for pair in formula.pairs if pair.metric is not None}
    for node in formula.nodes:
        for part in walk(node):
            if isinstance(part, Read):
                yield part, part in metrics


def _table(formula: Formula, name: str, shape: tuple[int, ...], rng: Any, n: int) -> Any:
    """Random numbers; where the table is compared or indexes another, integers that make blocks of the positions."""
    if name in formula.integer_tables or _is_compared(formula, name):
        return np.sort(rng.integers(0, 3, shape), axis=-1) if len(shape) > 1 else rng.integers(n // 2, n + 1, shape)
    values = rng.standard_normal(shape) if shape else np.asarray(1 + rng.random())
    squares = {pair.metric.table for pair in formula.pairs if pair.metric is not None and pair.word == "sqdist"}
    if name in squares:
        values = values @ np.swapaxes(values, -1, -2) / shape[-1]  # a metric measures: no negative distances
    return values


def _is_compared(formula: Formula, name: str) -> bool:
    masks = [part.node for part in (formula.mask, formula.weight.among) if part is not None]
    return any(isinstance(part, Read) and part.table == name for node in masks for part in walk(node))
